"""The PyTorch twins of the training jobs run, on the same data, and measure the same thing."""

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

pytest.importorskip("torch")
pytest.importorskip("sklearn")


@pytest.mark.parametrize("name", ["lenet", "spiral", "strips", "tabular", "vae"])
def test_twin(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "twins"))
    ours = importlib.import_module(name).run(epochs=1, picture=False)
    theirs = importlib.import_module(f"{name}_torch").run(epochs=1)
    assert theirs.measure == ours.measure
    assert theirs.iterations == ours.iterations
    assert np.isfinite(theirs.value)
