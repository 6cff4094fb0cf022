"""An einsum of several arrays is one of pairs where that is less work, and the same sum of products as ever."""

from __future__ import annotations

import numpy as np
import pytest

from layerc.transpile.dims import Dim
from layerc.transpile.pairwise import einsum
from layerc.transpile.program import NOWHERE, Call, Expr, Name, Type

SIZES = {"k": 6, "l": 6, "x": 1}


def _of(text: str) -> Expr:
    left, out = text.split("->")
    specs = left.split(",")
    shapes = [tuple(Dim.of(SIZES.get(c, c.upper())) for c in spec) for spec in specs]
    return einsum(specs, out, [Name(f"a{n}", Type("real", s)) for n, s in enumerate(shapes)], NOWHERE)


def _specs(expr: Expr) -> list[str]:
    if not isinstance(expr, Call):
        return []
    specs, out = expr.get("spec")
    return [*(s for a in expr.args for s in _specs(a)), f"{','.join(specs)}->{out}"]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("hk,wl,klr->hwr", 2),  # a picture made larger along both axes
        ("ij,jm,mn->in", 2),  # a chain of matrices
        ("ab,bc,cd,de->ae", 3),
        ("bi,ijm,bj->bm", 1),
        ("i,ijm,j->m", 1),  # a matrix for each is all the work there is
        ("i,j,m->ijm", 1),  # an outer product: nothing is summed
        ("ij,jk->ik", 1),
        ("ii,ij,jm->im", 1),  # a diagonal
        ("nx,nm,mx->nx", 1),  # an axis of one counts for nothing
    ],
)
def test_pairs(text: str, pairs: int) -> None:
    found = _specs(_of(text))
    assert len(found) == pairs, found
    assert found[-1].split("->")[1] == text.split("->")[1]


@pytest.mark.parametrize("text", ["hk,wl,klr->hwr", "ij,jm,mn->in", "ab,bc,cd,de->ae", "bi,ijm,bj->bm"])
def test_the_same_sums(text: str) -> None:
    rng = np.random.default_rng(1)
    size = {c: SIZES.get(c, 2 + n) for n, c in enumerate(sorted(set(text) - set(",->")))}
    arrays = {f"a{n}": rng.standard_normal([size[c] for c in s]) for n, s in enumerate(text.split("->")[0].split(","))}

    def value(expr: Expr) -> np.ndarray:
        if isinstance(expr, Name):
            return arrays[expr.id]
        assert isinstance(expr, Call)
        specs, out = expr.get("spec")
        return np.einsum(f"{','.join(specs)}->{out}", *map(value, expr.args))

    made = _of(text)
    np.testing.assert_allclose(value(made), np.einsum(text, *arrays.values()), 1e-12)
    assert made.type.shape == tuple(Dim.of(SIZES.get(c, c.upper())) for c in text.split("->")[1])
