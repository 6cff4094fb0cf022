"""What a net does, as data: buffers, views of them, and operations in order. `layerc.build.net` makes C of it.

    Kernel   a compiled function on whole arrays, by the manifest's ABI
    Map      out[i] = function(args[i]...), element by element, with broadcasting
    Sum      out[j] = sum over the axes that out does not have
    Let      a number that later operations name
    Range    an error unless all integers of an array lie between two bounds
    Trap     an error where a condition holds
    Hold     what is looked at from outside once all before it is done

Sizes, offsets and strides are integers a N + b (`Extent`), N the batch; numbers are expressions (`Scalar.node`).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from layerc.runtime.symbolic import Node, Scalar, as_scalar

Shape = tuple[int, ...]


@dataclass(eq=False)
class Buffer:
    """Memory. kind: "arena", or "const" (with `data`), or what the caller has: its name is then `name`."""

    kind: str
    size: int  # elements
    dtype: np.dtype
    name: str = ""
    data: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class View:
    """Elements of a buffer; offset and strides count elements."""

    buffer: Buffer
    offset: int
    shape: Shape
    strides: Shape

    @property
    def contiguous(self) -> bool:
        wanted = row_major(self.shape)
        return all(n == 1 or s == w for n, s, w in zip(self.shape, self.strides, wanted))

    @property
    def whole(self) -> bool:
        """Whether it shows all of its buffer, in order."""
        return self.contiguous and self.offset == 0 and math.prod(self.shape) == self.buffer.size


@dataclass
class Kernel:
    package: Any  # of the built layer
    symbol: str
    scalars: tuple[Node, ...]
    reads: tuple[View, ...]
    writes: tuple[View, ...]


@dataclass
class Map:
    """types: of the arguments as the function takes them, then of its result; numbers among args are nodes."""

    function: str
    args: tuple[View | Node, ...]
    types: tuple[np.dtype, ...]
    write: View

    @property
    def reads(self) -> tuple[View, ...]:
        return tuple(a for a in self.args if isinstance(a, View))

    @property
    def writes(self) -> tuple[View, ...]:
        return (self.write,)


@dataclass
class Sum:
    """`write` has the rank of `arg`, with stride 0 where it is summed over."""

    arg: View
    write: View

    @property
    def reads(self) -> tuple[View, ...]:
        return (self.arg,)

    @property
    def writes(self) -> tuple[View, ...]:
        return (self.write,)


@dataclass
class Let:
    """name = the number, or the one element of a view."""

    name: str
    kind: str
    value: Node | View

    @property
    def reads(self) -> tuple[View, ...]:
        return (self.value,) if isinstance(self.value, View) else ()

    writes: tuple[View, ...] = ()


@dataclass
class Range:
    """low <= all elements < high, but for those that are `skip`."""

    view: View
    low: int
    high: int
    skip: int | None
    message: str  # {0}: the element

    @property
    def reads(self) -> tuple[View, ...]:
        return (self.view,)

    writes: tuple[View, ...] = ()


@dataclass
class Trap:
    condition: Node
    code: str
    message: str
    reads: tuple[View, ...] = ()
    writes: tuple[View, ...] = ()


@dataclass
class Hold:
    """`names`: what the views are to whoever looks."""

    names: tuple[Any, ...]
    reads: tuple[View, ...]
    writes: tuple[View, ...] = ()


Op = Kernel | Map | Sum | Let | Range | Trap | Hold


@dataclass
class Tape:
    """Operations as they are written down. `where`: who does what comes now."""

    ops: list[Op] = field(default_factory=list)
    makers: list[str] = field(default_factory=list)  # of each operation
    where: str = ""
    constants: dict[Any, View] = field(default_factory=dict)
    names: int = 0

    def fresh(self, shape: Sequence[int], dtype: Any, name: str = "") -> View:
        """Memory in the arena."""
        buffer = Buffer("arena", math.prod(shape), np.dtype(dtype), name or self.where)
        return View(buffer, 0, tuple(shape), row_major(shape))

    def constant(self, array: np.ndarray) -> View:
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        key = (array.tobytes(), array.dtype.str, array.shape)
        if key not in self.constants:
            buffer = Buffer("const", array.size, array.dtype, "", array)
            self.constants[key] = View(buffer, 0, array.shape, row_major(array.shape))
        return self.constants[key]

    def put(self, op: Op) -> None:
        self.ops.append(op)
        self.makers.append(self.where)

    def copy(self, source: View, target: View) -> None:
        """source may be of another type; broadcast as it is."""
        types = (source.buffer.dtype, target.buffer.dtype)
        self.put(Map("copy", (broadcast(source, target.shape),), types, target))

    def packed(self, view: View) -> View:
        """The same elements in row-major order: itself, or a copy."""
        if view.contiguous:
            return view
        made = self.fresh(view.shape, view.buffer.dtype)
        self.copy(view, made)
        return made

    def kernel(
        self,
        package: Any,
        symbol: str,
        scalars: Sequence[Any],
        reads: Sequence[View],
        specs: Sequence[tuple[Shape, np.dtype]],
        into: Mapping[int, View],
        over: Sequence[Collection[int]],
    ) -> list[View]:
        """Call a kernel. into: where the outputs go that do not go to fresh memory; over: for each output, which of the
        arrays that are read it may be written over."""
        read = tuple(map(self.packed, reads))
        made, late = [], []
        for i, (shape, dtype) in enumerate(specs):
            target = into.get(i)
            # As at a call with `out=`: a kernel writes to contiguous arrays only, and to none that it reads otherwise.
            if target is None or not target.contiguous or self._disturbs(target, read, over[i]):
                made.append(self.fresh(shape, dtype))
                late += [(made[-1], target)] if target is not None else []
            else:
                made.append(target)
        nodes = tuple(as_scalar(s).node for s in scalars)
        self.put(Kernel(package, symbol, nodes, read, tuple(made)))
        for source, given in late:
            self.copy(source, given)
        return [into.get(i, view) for i, view in enumerate(made)]

    @staticmethod
    def _disturbs(target: View, read: Sequence[View], over: Collection[int]) -> bool:
        """Whether what a kernel writes there is still to be read. Both are contiguous."""
        return any(
            v.buffer == target.buffer and not (k in over and (v.offset, v.shape) == (target.offset, target.shape))
            for k, v in enumerate(read)
        )

    def let(self, kind: str, value: Node | View) -> Scalar:
        """A number with a name."""
        self.names += 1
        name = f"s{self.names}"
        self.put(Let(name, kind, value))
        return Scalar(kind, ("name", name))


def row_major(shape: Sequence[int]) -> Shape:
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step = n * step
    return tuple(reversed(strides))


def broadcast(view: View, shape: Sequence[int]) -> View:
    """ValueError where NumPy would not."""
    extra = len(shape) - len(view.shape)
    if extra < 0 or any(n not in (1, m) for n, m in zip(view.shape, tuple(shape)[extra:])):
        raise ValueError(f"shape {view.shape} does not broadcast to {tuple(shape)}")
    steps = [0 if n == 1 and m != 1 else s for n, m, s in zip(view.shape, tuple(shape)[extra:], view.strides)]
    return View(view.buffer, view.offset, tuple(shape), (*[0] * extra, *steps))
