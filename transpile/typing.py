"""Promotion and broadcasting: the type rules that the table of operations is written in."""

from __future__ import annotations

from collections.abc import Sequence

from .dims import ONE, Dim, repeats_to, same_extent
from .program import Type


class TypingError(Exception):
    """A rule of the language is broken; the checker adds the place and draws it."""

    def __init__(self, kind: str, message: str, help: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.help = kind, message, help


# NumPy's and Python's names of element types.
DTYPES = {
    "np.float32": "f32",
    "np.float64": "f64",
    "np.int32": "i32",
    "np.int64": "i64",
    "np.bool_": "bool",
    "np.double": "f64",
    "np.single": "f32",
    "np.intp": "i64",
}
BUILTIN_DTYPES = {"float": "real", "int": "i64", "bool": "bool"}
# Every dtype as (rank in the order of promotion). Weak Python scalars give way to any array of their kind (NEP 50).
_ORDER = {"bool": 0, "int": 1, "i32": 2, "i64": 3, "float": 4, "f32": 5, "real": 6, "f64": 7}


def promote(types: Sequence[Type]) -> str:
    """The dtype of a mixture. Integers with weak floats, or with real, are real."""
    kinds = [t.dtype for t in types]
    top = max(kinds, key=_ORDER.__getitem__)
    if top == "float" and any(k in ("bool", "i32", "i64") for k in kinds):
        return "real"
    if top == "int" and "bool" in kinds:
        return "i64"
    if top in ("f32",) and any(k in ("i32", "i64") for k in kinds):
        return "real"
    return top


def as_float(dtype: str) -> str:
    """What true division and exp make of a dtype."""
    return {"bool": "real", "i32": "real", "i64": "real", "int": "float"}.get(dtype, dtype)


def broadcast(shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    rank = max((len(s) for s in shapes), default=0)
    result: list[Dim] = []
    for axis in range(rank):
        extent = ONE
        for shape in shapes:
            position = axis - rank + len(shape)
            if position < 0 or repeats_to(shape[position], extent) or same_extent(shape[position], extent):
                continue
            if not repeats_to(extent, shape[position]):
                raise TypingError(
                    "shape",
                    f"shapes {shape_text(shapes[0])} and {shape_text(shape)} do not broadcast: "
                    f"{extent} against {shape[position]}",
                    "dimensions must be equal by name or 1; use [:, None] or np.expand_dims to line axes up",
                )
            extent = shape[position]
        result.append(extent)
    return tuple(result)


def must_stretch(given: tuple[Dim, ...], shape: tuple[Dim, ...]) -> None:
    """TypingError where an array does not broadcast to a shape."""
    if broadcast([shape, given]) != shape:
        raise TypingError("shape", f"cannot broadcast {shape_text(given)} to {shape_text(shape)}")


def shape_text(shape: tuple[Dim, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def normal_axes(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Axes as sorted nonnegative numbers; None is all of them."""
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if not -rank <= a < rank:
            help = (
                f"axes are counted from 0 to {rank - 1}, or from -1 back to -{rank}"
                if rank > 1
                else "its one axis is 0"
                if rank
                else "it has none"
            )
            raise TypingError("shape", f"axis {a} is out of range for an array with {rank} axes", help)
    normal = tuple(sorted(a % rank for a in axes))
    if len(set(normal)) != len(normal):
        raise TypingError("shape", f"axis {axis} names an axis twice")
    return normal


def reduced(shape: tuple[Dim, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[Dim, ...]:
    if keepdims:
        return tuple(ONE if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)
