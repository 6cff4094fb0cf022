"""The training jobs of examples/: a step or two of each, and, slow, that each reaches what it promises."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from layerc.runtime import get_num_threads, set_num_threads

pytestmark = pytest.mark.optimised

ROOT = Path(__file__).resolve().parent.parent
JOBS = ("lenet", "letters", "spiral", "strips", "tabular", "vae")

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


@pytest.fixture
def job(request, monkeypatch, tmp_path):
    """A job's module, drawing into tmp_path; on one thread, as tests run side by side."""
    before = get_num_threads()
    set_num_threads(1)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setattr(importlib.import_module("jobs"), "OUT", tmp_path)
    yield importlib.import_module(request.param)
    set_num_threads(before)


@pytest.mark.parametrize("job", JOBS, indirect=True)
def test_a_job_trains_and_draws(job, tmp_path, monkeypatch):
    if job.__name__ == "letters":
        begun = job.text()[:60_000]
        monkeypatch.setattr(job, "text", lambda: begun)
    elif job.__name__ == "strips":
        monkeypatch.setattr(job, "STRIPS", 320)
    result = job.run(epochs=1)
    assert np.isfinite(result.value)
    assert result.iterations > 0
    assert result.seconds > 0
    (picture,) = tmp_path.glob("*.png")
    assert picture.stat().st_size > 10_000


def test_every_job_has_its_twin_in_pytorch():
    twins = {p.name.removesuffix("_torch.py") for p in (ROOT / "examples" / "twins").glob("*_torch.py")}
    assert twins == {*JOBS, "digits"}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_job_reaches_its_target(name, tmp_path):
    """As a user runs it: in a process of its own, whose status says whether it did."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ok  .* in .* s", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize("job", ["letters"], indirect=True)
def test_letters_follow_letters(job):
    """Each target is the next letter of its stream; a batch goes on where the one before ended."""
    alphabet, (x, t), _ = job.data()
    assert np.array_equal(x[:, 1:], t[:, :-1])
    assert np.array_equal(t[: job.STREAMS, -1], x[job.STREAMS : 2 * job.STREAMS, 0])
    text = "".join(alphabet[k] for k in x[:: job.STREAMS].ravel()[:300])
    assert job.text().startswith(text)


@pytest.mark.parametrize("job", ["letters"], indirect=True)
def test_bits_of_a_writer_that_knows_nothing(job):
    """All letters equally likely: log2 of their number."""
    alphabet, training, test = job.data()
    writer = job.net(alphabet, training)
    writer.params["readout"]["weight"].data[...] = 0
    np.testing.assert_allclose(job.bits(writer, test), np.log2(len(alphabet)), rtol=1e-5)


@pytest.mark.parametrize("job", ["strips"], indirect=True)
def test_strips_are_read_as_they_were_made(job):
    """Scores that are sure of one digit at a place read as that digit; errors are counted as edits."""
    scores = np.zeros((1, 6, 11))
    for place, label in enumerate([3, 3, 0, 3, 5, 0]):
        scores[0, place, label] = 9
    assert job.read(scores) == [[2, 2, 4]]
    assert job.right(scores, np.array([[3, 3, 5, -1]])) == 1
    assert job.right(scores, np.array([[3, 5, -1, -1]])) == 0.5  # one too many of two
