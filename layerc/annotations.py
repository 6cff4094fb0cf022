"""The types of a layer file, as plain objects: `real["C *S"]`, `Param[real["K"]]`, `Memory[...]`.

An annotation is data. Under plain NumPy it says how a call binds and checks its arguments; the compiler reads
the same text from the source and never sees these objects.
"""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from layerc.runtime.generator import Random
from layerc.runtime.shapes import Shape, parse

Role = Literal["input", "param", "state", "random", "config"]

# What `real` stands for while a layer function runs: np.zeros(n, dtype=real) has the type of its arrays.
current_real: ContextVar[np.dtype] = ContextVar("current_real", default=np.dtype(np.float64))  # noqa: B039 (immutable)


@dataclass(frozen=True)
class ElementType:
    """`real`, `f32`, `f64`, `i32`, `i64` or `bool_`. Bare it is a scalar; `real["N D"]` is an array."""

    name: str
    fixed: np.dtype | None = field(default=None, compare=False)

    @property
    def dtype(self) -> np.dtype:
        """NumPy's type, so that `dtype=f32` and `.astype(real)` work in a layer file."""
        return current_real.get() if self.fixed is None else self.fixed

    def __getitem__(self, shape: str) -> "ArrayType":
        if not isinstance(shape, str):
            raise TypeError(f'{self.name}[...] takes one shape string, as in {self.name}["N D"], not {shape!r}')
        return ArrayType(self, parse(shape))

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ArrayType:
    """An element type with a shape: `real["C *S"]`."""

    element: ElementType
    shape: Shape

    def __repr__(self) -> str:
        return f'{self.element}["{self.shape}"]'


@dataclass(frozen=True)
class Param:
    """`Param[T]`: a learnable. It has a gradient and is shared over the batch."""

    type: ArrayType

    def __class_getitem__(cls, item: object) -> "Param":
        return cls(_array_type(item, "Param"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.type}]"


@dataclass(frozen=True)
class State:
    """`State[T]`: what a layer remembers between calls; `forward` may assign it. No gradient."""

    type: ArrayType

    def __class_getitem__(cls, item: object) -> "State":
        return cls(_array_type(item, "State"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.type}]"


@dataclass(frozen=True)
class Memory:
    """`Memory[T]` or `Memory[T1, T2]`: an extra output of `forward` that only its `backward` sees."""

    types: tuple[ArrayType, ...]

    def __class_getitem__(cls, item: object) -> "Memory":
        items = getattr(item, "__args__", item)
        items = items if isinstance(items, tuple) else (items,)
        return cls(tuple(_array_type(one, "Memory") for one in items))

    def __repr__(self) -> str:
        return f"Memory[{', '.join(map(repr, self.types))}]"


real = ElementType("real")
f32 = ElementType("f32", np.dtype(np.float32))
f64 = ElementType("f64", np.dtype(np.float64))
i32 = ElementType("i32", np.dtype(np.int32))
i64 = ElementType("i64", np.dtype(np.int64))
bool_ = ElementType("bool_", np.dtype(np.bool_))


class Array:
    """Placeholder for the array's kind in jaxtyping's spelling: `Float[Array, "C *S"]`."""


@dataclass(frozen=True)
class Spelling:
    """jaxtyping's way to write an element type: `Float32[Array, "N D"]` is `f32["N D"]`."""

    name: str
    element: ElementType

    def __getitem__(self, item: object) -> ArrayType:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], str)):
            raise TypeError(f'{self.name}[...] takes an array type and a shape, as in {self.name}[Array, "N D"]')
        return self.element[item[1]]

    def __repr__(self) -> str:
        return self.name


Float = Spelling("Float", real)
Float32 = Spelling("Float32", f32)
Float64 = Spelling("Float64", f64)
Int32 = Spelling("Int32", i32)
Int64 = Spelling("Int64", i64)
Bool = Spelling("Bool", bool_)


def array_type(annotation: object) -> ArrayType | None:
    """The array type that an annotation means, jaxtyping's own classes included; None if it is none."""
    match annotation:
        case ArrayType():
            return annotation
        case ElementType():
            return annotation[""]
    # jaxtyping makes a class for each annotation; it is recognised by what it carries, not by an import.
    spelling = {s.name: s for s in (Float, Float32, Float64, Int32, Int64, Bool)}
    kind, shape = getattr(annotation, "__name__", "").partition("[")[0], getattr(annotation, "dim_str", None)
    if kind in spelling and isinstance(shape, str):
        return spelling[kind].element[shape]
    return None


def _array_type(annotation: object, role: str) -> ArrayType:
    found = array_type(annotation)
    if found is None:
        raise TypeError(f'{role}[...] takes an array type, as in {role}[real["C"]], not {annotation!r}')
    return found


NO_DEFAULT: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Argument:
    """One parameter of a layer function. `type` is None for a generator; for config it is a Python type."""

    name: str
    role: Role
    type: Any
    default: Any = NO_DEFAULT

    def __str__(self) -> str:
        words = {"param": f"Param[{self.type}]", "state": f"State[{self.type}]", "random": "Random"}
        text = words.get(self.role) or getattr(self.type, "__name__", repr(self.type))
        return f"{self.name}: {text}" + ("" if self.default is NO_DEFAULT else f" = {self.default!r}")


@dataclass(frozen=True)
class Signature:
    """What a layer function takes and gives.

    outputs: (name, type) pairs, None where the return annotation is left out; single: the function returns
    its one output bare, not in a tuple; memory: number of values it returns besides, for `backward` only.
    """

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[tuple[str, ArrayType], ...] | None
    single: bool = True
    memory: int = 0

    def having(self, *roles: Role) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.role in roles)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return self.having("input")

    @property
    def slots(self) -> tuple[Argument, ...]:
        """The arguments passed by position: all but config."""
        return tuple(a for a in self.arguments if a.role != "config")

    def __str__(self) -> str:
        text = f"{self.name}({', '.join(map(str, self.arguments))})"
        if self.outputs is None:
            return text
        if self.single:
            return f"{text} -> {self.outputs[0][1]}"
        return f"{text} -> {{{', '.join(f'{name!r}: {kind}' for name, kind in self.outputs)}}}"


def read_signature(fn: Callable[..., Any], name: str, *, method: bool = False) -> Signature:
    """The signature of a layer function (of a method: without `self`). TypeError naming the argument."""
    raw = inspect.signature(fn, eval_str=True)
    parameters = list(raw.parameters.values())[1 if method else 0 :]
    arguments = tuple(_argument(p, name) for p in parameters)
    annotation = raw.return_annotation
    if annotation is inspect.Signature.empty:
        return Signature(name, arguments, None)
    return Signature(name, arguments, *_outputs(annotation, name))


def _argument(parameter: inspect.Parameter, where: str) -> Argument:
    name, annotation, default = parameter.name, parameter.annotation, parameter.default
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(f"{where}: *{name}: a layer function has a fixed number of arguments")
    match annotation:
        case Param(kind):
            return Argument(name, "param", kind, default)
        case State(kind):
            return Argument(name, "state", kind, default)
    if annotation is Random:
        return Argument(name, "random", None, default)
    if annotation in (int, float, bool):
        return Argument(name, "config", annotation, default)
    kind_ = array_type(annotation)
    if kind_ is None:
        what = "no type" if annotation is parameter.empty else f"the type {annotation!r}"
        raise TypeError(f'{where}: argument {name!r} has {what}; write for example {name}: real["N"]')
    return Argument(name, "input", kind_, default)


def _outputs(annotation: object, where: str) -> tuple[tuple[tuple[str, ArrayType], ...], bool, int]:
    """(outputs, single, memory) of a return annotation."""
    items: list[tuple[str, object]]
    single = False
    if isinstance(annotation, dict):
        items = list(annotation.items())
        single = len(items) == 1
    elif getattr(annotation, "__origin__", None) is tuple:
        parts = annotation.__args__  # type: ignore[attr-defined]
        count = sum(not isinstance(part, Memory) for part in parts)
        single = count == 1 and count < len(parts)
        items = [(f"y{i}" if count > 1 else "y", part) for i, part in enumerate(parts, 1)]
    else:
        items, single = [("y", annotation)], True
    memory = sum(len(part.types) for _, part in items if isinstance(part, Memory))
    outputs = []
    for name, part in items:
        if isinstance(part, Memory):
            continue
        kind = part.type if isinstance(part, Param) else array_type(part)  # the gradient of a Param
        if kind is None:
            raise TypeError(f'{where}: cannot read the return annotation {part!r}; write for example -> real["N"]')
        outputs.append((name, kind))
    return tuple(outputs), single, memory
