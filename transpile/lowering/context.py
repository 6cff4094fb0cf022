"""What lowering keeps while it goes through a function: buffers, names, symbols, the block being written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .. import ir
from ..dims import ONE, ZERO, Atom, Dim, maximum, nonnegative
from ..errors import InternalError
from ..program import NOWHERE, Expr, Name, Span, Type
from ..values import Fresh
from .faults import ErrorTable
from .scalars import ir_dtype

Index = tuple[Dim, ...]


@dataclass(frozen=True)
class Place:
    """Where the elements of an array live: buffer[at(index)]. `whole`: it is all of a buffer, behind
    `prefix`.
    """

    buffer: str
    shape: Index
    dtype: str
    prefix: Index = ()
    mapped: Callable[[Index], Index] | None = None

    def at(self, index: Index) -> Index:
        return self.mapped(index) if self.mapped else (*self.prefix, *index)

    @property
    def whole(self) -> bool:
        return self.mapped is None


# An expression: a view, or a constant, that needs no memory of its own.
Binding = Place | ir.Scalar | Expr


class Context:
    def __init__(self, layer: str, errors: ErrorTable, reserved: Iterable[str]) -> None:
        self.layer, self.errors = layer, errors
        self.fresh = Fresh(set(reserved))
        self.buffers: dict[str, ir.Buffer] = {}
        self.env: dict[str, Binding] = {}
        self.symbols: dict[str, Dim] = {}  # loop variables of the user -> what they are in the IR
        self.facts: dict[str, tuple[Dim, Dim]] = {}
        self.out: list[ir.Stmt] = []
        self.span: Span = NOWHERE
        self.row: Dim | None = None  # the number of the example, in a function of one
        self.aliases: dict[tuple[str, Index], Name] = {}  # a buffer's memory under another shape
        self.memo: dict[object, Name] = {}  # what this statement has computed into temporaries already
        self.checked: set[object] = set()  # what it has checked already

    # -- symbols -------------------------------------------------------------------------------------------
    def dim(self, dim: Dim) -> Dim:
        """A symbolic integer of the typed program in the IR's symbols. Passes may move it before the check
        of a divisor, so
        that an extent that divides is taken as 1 where it is 0."""
        dim = dim.subs(self.symbols)
        return self._divisible(dim) if any(isinstance(a, Atom) for a in dim.atoms()) else dim

    def _divisible(self, dim: Dim) -> Dim:
        total = Dim.of(0)
        for monomial, c in dim.terms:
            factor = Dim.of(c)
            for atom in monomial:
                factor = factor * (self._divisible_atom(atom) if isinstance(atom, Atom) else Dim.of(atom))
            total = total + factor
        return total

    def _divisible_atom(self, atom: Atom) -> Dim:
        args = [self._divisible(a) if isinstance(a, Dim) else a for a in atom.args]
        if atom.kind in ("floordiv", "mod"):
            divisor = args[1]
            if nonnegative(divisor, self.facts) and not nonnegative(divisor - 1, self.facts):
                divisor = maximum(divisor, ONE, self.facts)
            return args[0] // divisor if atom.kind == "floordiv" else args[0] % divisor
        return Dim.of(Atom(atom.kind, tuple(args)))

    def dims(self, shape: Sequence[Dim]) -> Index:
        return tuple(self.dim(d) for d in shape)

    # -- memory --------------------------------------------------------------------------------------------
    def buffer(self, name: str, dtype: str, shape: Index, kind: str = "temp", alias: str | None = None) -> str:
        assert name not in self.buffers, name
        self.buffers[name] = ir.Buffer(name, dtype, shape, kind, alias)
        return name

    def temp(self, type: Type, hint: str) -> tuple[Name, Place]:
        """A temporary array, as a name of the typed program and as a place."""
        shape, dtype = self.dims(type.shape), ir_dtype(type)
        buffer = self.buffer(self.fresh(hint), dtype, shape)
        place = Place(buffer, shape, dtype)
        name = Name(f"%{buffer}", Type(dtype, type.shape), None, self.span)
        self.env[name.id] = place
        return name, place

    def root(self, buffer: str) -> str:
        while (alias := self.buffers[buffer].alias) is not None:
            buffer = alias
        return buffer

    # -- statements ----------------------------------------------------------------------------------------
    def emit(self, *stmts: ir.Stmt) -> None:
        self.out.extend(stmts)

    @contextmanager
    def block(self, into: list[ir.Stmt]) -> Iterator[None]:
        """Statements emitted inside go into the list. What was computed inside is not known outside."""
        out, memo, checked = self.out, self.memo, self.checked
        self.out, self.memo, self.checked = into, dict(memo), set(checked)
        try:
            yield
        finally:
            self.out, self.memo, self.checked = out, memo, checked

    def nest(self, shape: Index, make: Callable[[Index], Iterable[ir.Stmt]], seq: frozenset[int] = frozenset()) -> None:
        """A perfect nest of loops over the space, row-major; `seq`: axes whose order matters. No loop over
        one index.
        """
        variables = [
            ZERO if extent == ONE else Dim.of(self.fresh("ijklmn"[axis] if axis < 6 else "i"))
            for axis, extent in enumerate(shape)
        ]
        body = tuple(make(tuple(variables)))
        for axis in reversed(range(len(shape))):
            if shape[axis] != ONE:
                variable = variables[axis].symbol
                assert isinstance(variable, str)
                body = (ir.For(variable, ZERO, shape[axis], body, "seq" if axis in seq else "map"),)
        self.emit(*body)

    def scalar(self, value: ir.Expr, hint: str) -> ir.Load:
        """A scalar variable that holds the value from here on."""
        dtype = "i64" if isinstance(value, ir.Int) else value.dtype
        buffer = self.buffer(self.fresh(hint), dtype, ())
        self.emit(ir.Store(buffer, (), value))
        return ir.Load(buffer, (), dtype)

    def check(self, cond: ir.Expr, exception: str, message: str, info: Index = ()) -> None:
        """Raises unless cond holds; once a statement."""
        number = self.errors.number(exception, message, self.span, self.layer)
        if (key := (cond, number)) not in self.checked:
            self.checked.add(key)
            self.emit(ir.Check(cond, number, info))

    def fail(self, message: str) -> InternalError:
        return InternalError("lower", message, self.span)


def number(dim: Dim) -> ir.Expr:
    """A symbolic integer as a number."""
    return ir.Int(dim) if dim.value is None else ir.Const(dim.value, "i64")


def as_dim(expr: ir.Expr) -> Dim | None:
    """An integer expression as a Dim, where it is a symbol or a read of memory."""
    match expr:
        case ir.Int(dim):
            return dim
        case ir.Const(value) if not isinstance(value, float):
            return Dim.of(int(value))
        case ir.Load(_, _, "i32" | "i64"):
            return Dim.of(Atom("load", (expr,)))
    return None
