"""The benchmarks see what PyTorch keeps for a backward."""

import importlib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")


def test_what_autograd_holds(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))
    case, peers = importlib.import_module("case"), importlib.import_module("peers")
    eager = peers.TorchEager()
    eager.torch, eager.twins = torch, {"gate": gate}
    one = case.Case("gate", {"x": case.normal(10, 10), "bias": case.normal(10)}, lambda *_: None, ("gate",))
    kept = eager.bind(one, "gate").kept()
    assert kept == {"in all": 3 * 400, "own": 400}  # x, y and exp(x); no bias; nothing of what is thrown away


def gate(x, bias):
    torch.tanh(x + bias)  # its part of the graph is gone
    return torch.sigmoid(torch.exp(x) * x.T + bias)
