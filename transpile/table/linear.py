"""Linear algebra of small dense matrices: the last two axes; those before are mapped over, as NumPy does.

In a derivative, `swap(e)` swaps the last two axes, `fit(e)` sums what broadcasting of the leading axes repeated.
"""

from __future__ import annotations

from typing import Any

from ..dims import Dim, same_extent
from ..operations import Row, add
from ..program import Type
from ..typing import TypingError, as_float, broadcast, normal_axes, promote, shape_text
from . import bodies


def _square(a: Type) -> tuple[Dim, ...]:
    """The leading axes of square matrices."""
    if a.rank < 2 or not same_extent(a.shape[-1], a.shape[-2]):
        raise TypingError("shape", f"expected square matrices, got shape {shape_text(a.shape)}", "the last two axes are of one extent: \"N N\"")
    return a.shape[:-2]


def _like(args: list[Type], static: dict[str, Any]) -> Type:
    _square(args[0])
    return Type(as_float(args[0].dtype), args[0].shape)


def _scalar(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(as_float(args[0].dtype), _square(args[0]))


def _solved(args: list[Type], static: dict[str, Any]) -> Type:
    """As NumPy 2: b is a vector if it has one axis, else matrices."""
    a, b = args
    lead, core = _square(a), min(b.rank, 2)
    if not core or not same_extent(b.shape[-core], a.shape[-1]):
        raise TypingError("shape", f"cannot solve with matrices of shape {shape_text(a.shape)} for {shape_text(b.shape)}", "a right side has as many rows as the matrix: \"N\" or \"N K\" for \"N N\"")
    return Type(as_float(promote(args)), (*broadcast([lead, b.shape[:-core]]), *b.shape[-core:]))


def _crossed(args: list[Type], static: dict[str, Any]) -> Type:
    rest = []
    for a in args:
        (axis,) = normal_axes(static["axis"], a.rank)
        if a.shape[axis] != Dim.of(3):
            raise TypingError("shape", f"np.cross takes vectors of 3 elements, got shape {shape_text(a.shape)}", "of 2: a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]")
        rest.append((*a.shape[:axis], *a.shape[axis + 1 :]))
    shape = list(broadcast(rest))
    (axis,) = normal_axes(static["axis"], len(shape) + 1)
    return Type(promote(args), (*shape[:axis], Dim.of(3), *shape[axis:]))


def _cross(args: list[Type], static: dict[str, Any]) -> str:
    """Of each element the two products of the others, along an axis that each array counts for itself."""
    a, b = (f"{name}[{':, ' * normal_axes(static['axis'], t.rank)[0]}{{}}]" for name, t in zip("ab", args, strict=True))
    parts = (f"{a.format(j)} * {b.format(k)} - {a.format(k)} * {b.format(j)}" for j, k in ((1, 2), (2, 0), (0, 1)))
    return f"np.stack([{', '.join(parts)}], axis=axis)"


add(
    Row(
        "cross", "np.cross", "a, b, axis: axis = -1", "compose", _crossed,
        ("np.cross(b, dy, axis=axis)", "np.cross(dy, a, axis=axis)"),
        define=_cross, truths=("np.cross subtracts, and NumPy has no - for booleans", "m.astype(np.float64)"),
    ),
    Row(
        "solve", "np.linalg.solve", "a, b", "body", _solved, ("-fit_a(product(back, y))", "fit_b(back)"),
        body=bodies.solve, each="matrix", shared="back = solve_back(dy)",
    ),
    # Of the one triangle of a that these read (see transpile/triangular.py).
    Row(
        "solve_lower", "", "a, b", "body", _solved, ("-fit_a(np.tril(product(back, y)))", "fit_b(back)"),
        body=bodies.solve_lower, each="matrix", shared="back = solve_back(dy)", define="np.linalg.solve(np.tril(a), b)",
    ),
    Row(
        "solve_upper", "", "a, b", "body", _solved, ("-fit_a(np.triu(product(back, y)))", "fit_b(back)"),
        body=bodies.solve_upper, each="matrix", shared="back = solve_back(dy)", define="np.linalg.solve(np.triu(a), b)",
    ),
    Row("inv", "np.linalg.inv", "a", "body", _like, ("-(swap(y) @ dy @ swap(y))",), body=bodies.inv, each="matrix"),
    Row("det", "np.linalg.det", "a", "body", _scalar, ("on_matrix(dy * y) * swap(np.linalg.inv(a))",), body=bodies.det, each="matrix"),
    Row(
        "cholesky", "np.linalg.cholesky", "a", "body", _like,
        # L^-T W L^-1 with W symmetric: the lower triangle of L^T dL, mirrored, half of it.
        ("0.5 * solve_upper(swap(y), swap(solve_upper(swap(y), np.where(np.tri(a.shape[-1], dtype=bool), inner, swap(inner)))))",),
        body=bodies.cholesky, each="matrix", shared="inner = swap(y) @ dy",
    ),
)
