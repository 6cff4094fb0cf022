"""The PyTorch twins of the training jobs run, on the same data, and measure the same thing."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from layerc.runtime import get_num_threads, set_num_threads

ROOT = Path(__file__).resolve().parent.parent.parent

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")


@pytest.fixture(autouse=True)
def one_thread():
    """Tests run side by side, and threads that wait for each other then wait for long."""
    before = get_num_threads(), torch.get_num_threads()
    set_num_threads(1)
    torch.set_num_threads(1)
    yield
    set_num_threads(before[0])
    torch.set_num_threads(before[1])


@pytest.mark.parametrize("name", ["digits", "lenet", "spiral", "strips", "tabular", "vae"])
def test_twin(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "twins"))
    job = importlib.import_module(name)
    if name == "strips":
        monkeypatch.setattr(job, "STRIPS", 320)
    ours, theirs = job.run(epochs=1, picture=False), importlib.import_module(f"{name}_torch").run(epochs=1)
    assert theirs.measure == ours.measure
    assert theirs.iterations == ours.iterations
    assert np.isfinite(theirs.value)
