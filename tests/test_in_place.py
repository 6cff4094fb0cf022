"""Random programs that write into one array again and again: the gradient as source, beside differences."""

from __future__ import annotations

import pytest
from in_place import Program, fault

from layerc.adjoint import operands

MANY = 120


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_gradients(first):
    faults = [found for seed in range(first, first + MANY // 4) if (found := fault(Program(seed)))]
    assert not faults, faults[0]


@pytest.mark.parametrize(
    ("what", "says"),
    [("is_constant", lambda self, level, access: True), ("is_final", lambda self, access: True)],
)
def test_they_notice(monkeypatch, what, says):
    """A proof that is left out is a wrong gradient here."""
    monkeypatch.setattr(operands._Reverse, what, says)
    assert any(fault(Program(seed)) for seed in range(60))
