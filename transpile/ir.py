"""The loop-nest IR: scalar statements inside loops over named buffers. The whole grammar is on this screen.

    kernel = Kernel(name, dims, scalars, buffers, body)
    stmt   = For | While | If | Store | Product | Grow | Check | Comment
    expr   = Const | Load | Int | Op | Cast

Buffers are row-major; a rank-0 buffer is a scalar. Every index, extent and bound is a `Dim` over dims, config
integers and loop variables; an integer that was read from memory is the atom `Atom("load", (Load(...),))`.
Loops count up by one from `lo` to `hi`; the user's other steps are folded into the indices. `kind` "map": the
iterations are independent, except that they may accumulate into one place with one commutative operation;
"seq": run in order. A temp buffer is undefined until stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from .dims import Dim
from .node import node

# Scalar types: "real" (the kernel's float type), "f32", "f64", "i32", "i64", "bool".
FLOATS = ("real", "f32", "f64")

THREADS = "threads?"  # the symbol of how many there are, in a Dim: it must not change any result


@node
class Buffer:
    name: str
    dtype: str
    shape: tuple[Dim, ...]
    kind: str  # in (never written), out, temp, list (temp whose axis 0 grows)
    alias: str | None = None  # the same memory as this other buffer (no alias itself), seen in another shape
    lanes: bool = False  # a variable to add up in: each lane has its own sum until it is read, which ends them


# -- expressions -----------------------------------------------------------------------------------------------
@node
class Const:
    value: bool | int | float
    dtype: str


@node
class Int:
    """A symbolic integer used as a number (i64)."""

    dim: Dim


@node
class Scalar:
    """A scalar argument of the kernel: a config float, int or bool, by name; `usual` is its default, if it has one."""

    name: str
    dtype: str
    usual: float | None = None


@node
class Load:
    buffer: str
    index: tuple[Dim, ...]
    dtype: str

    def free(self) -> set[str]:
        """The symbols in its indices: what a Dim asks of an atom's argument."""
        return set().union(*(d.symbols() for d in self.index)) if self.index else set()

    def subs(self, values: Mapping[str, Dim]) -> Load:
        return Load(self.buffer, tuple(d.subs(values) for d in self.index), self.dtype)


@node
class Op:
    """A scalar operation of the table of operations; all arguments have the types its C wants, and all are computed:
    both values of a `where`, too."""

    op: str
    args: tuple[Expr, ...]
    dtype: str


@node
class Cast:
    value: Expr
    dtype: str


Expr = Union[Const, Int, Scalar, Load, Op, Cast]
Axis = tuple[str, Dim]


# -- statements ------------------------------------------------------------------------------------------------
@node
class Store:
    """buffer[index] = value, or, with `op` (add mul max min or and), buffer[index] = op(buffer[index], value)."""

    buffer: str
    index: tuple[Dim, ...]
    value: Expr
    op: str | None = None


@node
class Product:
    """A matrix product: for all rows and columns, buffer[index] = (with `op` "add": +=) the sum over the depth
    of left * right. The three axes, a variable and an extent each (all start at 0), are bound here; every index
    is linear in them. `left` does not name the column, `right` not the row, `index` not the depth."""

    buffer: str
    index: tuple[Dim, ...]
    left: Load
    right: Load
    rows: Axis
    columns: Axis
    depth: Axis
    op: str | None = None
    parallel: bool = False
    asked: tuple[Dim, ...] = ()  # of rows and columns: an element for which one is negative need not be made

    @property
    def axes(self) -> tuple[Axis, Axis, Axis]:
        return (self.rows, self.columns, self.depth)


@node
class For:
    var: str
    lo: Dim
    hi: Dim
    body: tuple[Stmt, ...]
    kind: str = "map"  # map seq
    parallel: bool = False
    work: Dim | None = None  # estimated flops of all iterations together
    coarse: Dim | None = None  # of chunks of two loops: those of the outer one
    ahead: tuple[Load, ...] = ()  # places of a later iteration of a loop outside, asked for meanwhile
    when: Expr | None = None  # ... if this holds
    past: bool = False  # copies a row, past the caches


@node
class While:
    """Runs `before`, leaves if not cond, runs body, and again."""

    before: tuple[Stmt, ...]
    cond: Expr
    body: tuple[Stmt, ...]


@node
class If:
    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@node
class Grow:
    """Makes room in a list buffer for `count` entries along axis 0; keeps those there are. With `lent`, the first of
    `count` entries of an input, in one piece: the list lies there, and is only read."""

    buffer: str
    count: Dim
    lent: Load | None = None


@node
class Check:
    """Leaves the kernel with error `number` and integers `info` unless cond holds."""

    cond: Expr
    number: int
    info: tuple[Dim, ...] = ()


@node
class Comment:
    text: str


Stmt = Union[Store, Product, For, While, If, Grow, Check, Comment]


@node
class Kernel:
    name: str
    dims: tuple[str, ...]  # int64_t arguments, in order
    scalars: tuple[Scalar, ...]  # config arguments, in order (integers among them may appear in Dims)
    buffers: tuple[Buffer, ...]  # arguments first, in the order of the ABI: in, out; then temps and lists
    body: tuple[Stmt, ...]
    batch: str | None = None  # the dim that is the batch of an example-level function
    flush: bool = False  # results below the smallest normal number become 0 (gradients: see emit_function)
    over: tuple[tuple[str, str], ...] | None = None  # outputs that may lie over inputs, where the body no longer tells
