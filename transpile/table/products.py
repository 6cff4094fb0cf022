"""Sums of products over shared axes: each is an einsum, and says which."""

from __future__ import annotations

from typing import Any

from ..dims import ONE, Dim
from ..operations import Row, add
from ..program import Type
from ..typing import TypingError, promote, same_extent, shape_text

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def _matmul_spec(args: list[Type]) -> tuple[list[str], str]:
    a, b = args
    if not a.rank or not b.rank:
        raise TypingError("shape", "@ needs arrays with at least one axis", "use * with a scalar")
    rows, columns = ("R" if a.rank > 1 else ""), ("C" if b.rank > 1 else "")
    batch = max(a.rank, b.rank, 2) - 2
    letters = _LETTERS[:batch]
    left, right = letters[batch - max(a.rank - 2, 0) :], letters[batch - max(b.rank - 2, 0) :]
    return [left + rows + "K", right + "K" + columns], letters + rows + columns


def _dot_spec(args: list[Type]) -> tuple[list[str], str]:
    a, b = args
    if not a.rank or not b.rank:
        return ["i" * 0 + _LETTERS[: a.rank], _LETTERS[: b.rank]], _LETTERS[: max(a.rank, b.rank)]
    if b.rank == 1:
        left = _LETTERS[: a.rank - 1]
        return [left + "K", "K"], left
    left, right = _LETTERS[: a.rank - 1], _LETTERS[a.rank - 1 : a.rank + b.rank - 3]
    return [left + "K", right + "K" + "C"], left + right + "C"


def _inner_spec(args: list[Type]) -> tuple[list[str], str]:
    left, right = _LETTERS[: args[0].rank - 1], _LETTERS[args[0].rank - 1 : args[0].rank + args[1].rank - 2]
    return [left + "K", right + "K"], left + right


def _outer_spec(args: list[Type]) -> tuple[list[str], str]:
    return ["i", "j"], "ij"


def einsum_extents(specs: list[str], args: list[Type], rigid: str = "") -> dict[str, Dim]:
    """Letter -> extent; a 1 against another extent broadcasts, but not for letters that are `rigid`."""
    extents: dict[str, Dim] = {}
    for spec, a in zip(specs, args, strict=True):
        if len(spec) != a.rank:
            raise TypingError("shape", f"expected {len(spec)} axes, got shape {shape_text(a.shape)}", "a letter an axis: \"ij\" is of a matrix")
        for letter, extent in zip(spec, a.shape, strict=True):
            known = extents.setdefault(letter, extent)
            if known == ONE and letter not in rigid:
                extents[letter] = extent
            elif not same_extent(known, extent) and (extent != ONE or letter in rigid):
                raise TypingError(
                    "shape", f"the product has axes of extents {known} and {extent} in one place, of shapes "
                    + " and ".join(shape_text(x.shape) for x in args),
                    "extents must be equal by name: of matrices, the last axis of a and the last but one of b",
                )
    return extents


def _typed(spec: Any) -> Any:
    def rule(args: list[Type], static: dict[str, Any]) -> Type:
        specs, out = spec(args)
        extents = einsum_extents(specs, args, rigid="K")
        return Type(promote(args), tuple(extents[letter] for letter in out))

    return rule


def _einsum(args: list[Type], static: dict[str, Any]) -> Type:
    specs, out = static["spec"]
    if len(specs) != len(args):
        raise TypingError("shape", f"einsum names {len(specs)} operands and gets {len(args)}", "between commas, one for each operand: \"ij,jk->ik\"")
    extents = einsum_extents(list(specs), args)
    return Type(promote(args), tuple(extents[letter] for letter in out))


for _name, _spell, _spec in (
    ("matmul", "np.matmul MatMult", _matmul_spec),
    ("dot", "np.dot", _dot_spec),
    ("inner", "np.inner", _inner_spec),
    ("outer", "np.outer", _outer_spec),
):
    add(Row(_name, _spell, "a, b", "product", _typed(_spec), (f"{_name}_left(dy, b)", f"{_name}_right(a, dy)"), spec=_spec))
add(Row("einsum", "np.einsum", "spec: text, a: arrays", "product", _einsum, "einsum"))
