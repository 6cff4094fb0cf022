"""The training jobs and their PyTorch twins, an epoch of each: what `make compare` prints."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

COMPARE = Path(__file__).resolve().parents[2] / "examples" / "compare.py"


@pytest.mark.parametrize("name", ["digits", "spiral", "tabular", "vae"])
def test_a_job_and_its_twin_run_side_by_side(name):
    command = [sys.executable, str(COMPARE), name, "--epochs", "1", "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    job, _, ours, torch, *_ = [cell.strip() for cell in done.stdout.splitlines()[-1].strip("|").split("|")]
    assert job == name
    assert float(ours) > 0
    assert float(torch) > 0
