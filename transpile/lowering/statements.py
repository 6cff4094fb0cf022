"""Statements: names get their memory, array statements become nests, control flow stays control flow."""

from __future__ import annotations

from dataclasses import replace

from .. import construct, ir
from ..construct import value_of
from ..dims import Atom, Dim
from ..operations import ROWS
from ..program import (
    Assert,
    Assign,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Gather,
    If,
    Name,
    Pop,
    Push,
    Return,
    Stmt,
    Store,
    Type,
    While,
    walk,
)
from .aliases import Writes, is_view
from .context import Place
from .facts import assumed
from .reductions import Reductions
from .scalars import cast, compare, ir_dtype


class Statements(Reductions):
    writes: Writes
    destined: dict[str, Place]  # names whose memory is that of an output
    trapping: bool = False  # NaN and infinity are errors
    lists: dict[str, str]  # list -> the buffer of its length
    taken: frozenset[str]  # names that buffers cannot have: sizes and arguments

    def body(self, stmts: tuple[Stmt, ...]) -> None:
        for stmt in stmts:
            self.span = stmt.span if stmt.span.line else self.span
            self.memo, self.checked = {}, set()
            self.statement(stmt)

    def captured(self, stmts: tuple[Stmt, ...]) -> tuple[ir.Stmt, ...]:
        into: list[ir.Stmt] = []
        with self.block(into):
            self.body(stmts)
        return tuple(into)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Assign():
                self._assign(stmt)
            case Store():
                self._store(stmt)
            case For():
                self._for(stmt)
            case While(cond, body):
                before: list[ir.Stmt] = []
                with self.block(before):
                    test = self._condition(cond)
                self.emit(ir.While(tuple(before), test, self.captured(body)))
            case If():
                self._if(stmt)
            case Assert(cond, message):
                text = message or "what is asserted here does not hold"
                self.check(self._condition(cond), stmt.error, text.replace("{", "{{").replace("}", "}}"))
            case Push(list, value):
                self._push(list, value)
            case Pop(name, list, kind):
                self._pop(name, list, kind)
            case Return(values):
                self.results(values)
            case Comment():
                pass  # prose would only keep apart the loops that it stands between
            case _:
                raise self.fail(f"no lowering of {type(stmt).__name__}")

    def results(self, values: tuple[Expr, ...]) -> None:
        raise NotImplementedError

    def _condition(self, cond: Expr) -> ir.Expr:
        return cast(self.element(self.prepare(cond), ()), "bool")

    # -- names ---------------------------------------------------------------------------------------------
    def _assign(self, stmt: Assign) -> None:
        name, value = stmt.name, stmt.value
        if isinstance(value, Call) and value.op == "list":
            self._new_list(name, value.type)
            if value.args:
                self._lend(name, *value.args)
            return
        if (
            value.type.is_integer
            and not value.type.rank
            and value_of(value) is not None
            and name not in self.writes.loaded
        ):
            self.divisions(value)
            return
        if name not in self.destined and self.writes.once(name) and (view := self._viewed(stmt)) is not None:
            self.env[name] = view
            return
        place = self.place_of(name, value.type)
        if isinstance(value, Call) and ("unset", True) in value.static:
            return  # of a gradient, which reads nothing there that it has not written
        self.compute(place, value)
        self.trap(place, name)

    def trap(self, place: Place, name: str) -> None:
        """With `--checked`: FloatingPointError if the statement has made a NaN or an infinity."""
        if not self.trapping or place.dtype not in ir.FLOATS:
            return
        number = self.errors.number("FloatingPointError", f"NaN or infinity in {name}", self.span, self.layer)

        def make(index: tuple[Dim, ...]) -> tuple[ir.Stmt, ...]:
            value = ir.Load(place.buffer, place.at(index), place.dtype)
            return (ir.Check(ir.Op("isfinite", (value,), "bool"), number),)

        self.nest(place.shape, make)

    def _viewed(self, stmt: Assign) -> Expr | None:
        """What the name stands for, if it needs no memory of its own: a constant, a view of settled memory, or integers
        that their places tell.
        """
        value = stmt.value
        if isinstance(value, Const):
            return value
        if isinstance(value, Name) and not value.type.rank and isinstance(self.env.get(value.id), (ir.Scalar, Const)):
            return value
        if value.type.rank and value.type.is_integer and (told := self.told_by_place(value)) is not None:
            return told
        if not value.type.rank or not is_view(value):
            return None
        root = next((e for e in walk(value) if isinstance(e, Name)), None)  # a view may spread a scalar
        if root is None:
            return None
        if not all(self.writes.settled(r, stmt) for r in self._roots(root)):
            return None
        return self.prepare(value)

    def _roots(self, expr: Expr) -> set[str]:
        """The names of the program whose memory a view shows."""
        found: set[str] = set()
        for part in walk(expr):
            if isinstance(part, Name):
                bound = self.env.get(part.id)
                if isinstance(bound, Place):
                    found.add(part.id)
                elif bound is not None and not isinstance(bound, ir.Scalar):
                    found |= self._roots(bound)
        return found

    def place_of(self, name: str, type: Type) -> Place:
        """The memory of a name, made at its first assignment."""
        place = self.env.get(name)
        if isinstance(place, Place):
            return place
        place = self.destined.get(name)
        if place is None:
            shape, dtype = self.dims(type.shape), ir_dtype(type)
            place = Place(self.buffer(self._own(name), dtype, shape), shape, dtype)
        self.env[name] = place
        return place

    def _own(self, name: str) -> str:
        """A buffer's name: the variable's, unless a size or an argument has it."""
        return name if name not in self.buffers and name not in self.taken else self.fresh(name)

    # -- writes into arrays --------------------------------------------------------------------------------
    def _store(self, stmt: Store) -> None:
        base = self.env.get(stmt.base.id)
        if not isinstance(base, Place):
            raise self.fail(f"{stmt.base.id} has no memory to write into")
        items = self.items(stmt.base, stmt.items)
        part = construct.index(stmt.base, items)
        shape = self.dims(part.type.shape)

        def at(index: tuple[Dim, ...]) -> tuple[Dim, ...]:
            return base.at(self.pulled(stmt.base.type, items, index))

        place = Place(base.buffer, shape, base.dtype, (), at)
        gathers = [i for i in items if isinstance(i, Gather)]
        if gathers:
            self._store_gathered(place, stmt, frozenset(range(part.type.rank)))
        elif stmt.value.type.shape != part.type.shape:
            self.copy(place, self.prepare(stmt.value), stmt.op)
        elif stmt.op is None:
            self.compute(place, stmt.value)
        else:
            self.accumulate(place, stmt.value, stmt.op)
        self.trap(place, stmt.base.id)

    def _store_gathered(self, place: Place, stmt: Store, axes: frozenset[int]) -> None:
        """Repeated indices: the last write wins, or, with `scatter`, all are accumulated; reads see the
        array as it was.
        """
        value = self.prepare(stmt.value)
        if self.root(place.buffer) in self.reads(value):
            value = self.apart(value)
        self.copy(place, value, stmt.op, frozenset() if stmt.scatter else axes)

    def accumulate(self, place: Place, value: Expr, op: str) -> None:
        """place[...] op= value; a sum is summed where it belongs."""
        if op == "add" and isinstance(value, Call) and not self.reads(value) & {self.root(place.buffer)}:
            if value.op == "sum":
                self.reduce(place, value, begin=False)
                return
            if ROWS[value.op].kind == "product":
                self.product(place, value, begin=False)
                return
        self.copy(place, self.prepare(value), op)

    # -- control flow --------------------------------------------------------------------------------------
    def _bound(self, expr: Expr) -> Dim:
        """A loop's bound in the typed program's symbols; what is read from memory is fixed before the
        loop.
        """
        self.divisions(expr)
        value = value_of(expr)
        if value is not None:
            return value
        number = cast(self.element(self.prepare(expr), ()), "i64")
        return Dim.of(Atom("load", (self.scalar(number, "stop"),)))

    def _for(self, stmt: For) -> None:
        start, stop, step = self._bound(stmt.start), self._bound(stmt.stop), stmt.step
        low, high = self.dim(start), self.dim(stop)
        self.facts[stmt.var] = (start, stop - 1) if step > 0 else (stop + 1, start)
        variable = stmt.var
        if step != 1:
            variable = self.fresh(f"{stmt.var}_step")
            self.symbols[stmt.var] = low + Dim.of(variable) * step
            span = high - low if step > 0 else low - high
            low, high = Dim.of(0), (span + (abs(step) - 1)) // abs(step)
        known = set(self.env)
        body = self.captured(stmt.body)
        del self.facts[stmt.var]
        self.symbols.pop(stmt.var, None)
        for name in self.env.keys() - known:  # memory of another size in every iteration: there is none behind the loop
            place = self.env[name]
            if isinstance(place, Place) and any(variable in extent.symbols() for extent in place.shape):
                del self.env[name]
        self.emit(ir.For(variable, low, high, body, "seq"))

    def _if(self, stmt: If) -> None:
        test = self._condition(stmt.cond)
        known, branches = self.facts, []
        for block, holds in ((stmt.then, True), (stmt.orelse, False)):
            self.facts = assumed(stmt.cond, holds, known)
            branches.append(self.captured(block))
        self.facts = known
        if branches[0] or branches[1]:
            self.emit(ir.If(test, branches[0], branches[1]))

    # -- lists ---------------------------------------------------------------------------------------------
    def _new_list(self, name: str, type: Type) -> None:
        if name not in self.env:
            length = self.buffer(self.fresh(f"{name}_length"), "i64", ())
            count = Dim.of(Atom("load", (ir.Load(length, (), "i64"),)))
            shape, dtype = self.dims(type.shape), ir_dtype(type)
            buffer = self.buffer(self._own(name), dtype, (count, *shape), "list")
            self.lists[name] = length
            self.env[name] = Place(buffer, shape, dtype, (count,))
        self.emit(ir.Store(self.lists[name], (), ir.Const(0, "i64")))

    def _lend(self, name: str, array: Expr, count: Expr) -> None:
        """list(array[:count])"""
        assert isinstance(array, Name)
        lender, borrower = self.env[array.id], self.env[name]
        assert isinstance(lender, Place)
        assert isinstance(borrower, Place)
        number = self.element(self.prepare(count), ())
        self.emit(ir.Store(self.lists[name], (), number))
        first = ir.Load(lender.buffer, lender.at((Dim.of(0),) * len(lender.shape)), lender.dtype)
        self.emit(ir.Grow(borrower.buffer, borrower.prefix[0], first))

    def _push(self, target: Name, value: Expr) -> None:
        place, length = self.env[target.id], self.lists[target.id]
        assert isinstance(place, Place)
        prepared = self.prepare(value)
        self.emit(ir.Grow(place.buffer, place.prefix[0] + 1))
        self.copy(place, prepared)
        self.emit(ir.Store(length, (), ir.Const(1, "i64"), "add"))

    def _pop(self, name: str, source: Name, type: Type) -> None:
        place, length = self.env[source.id], self.lists[source.id]
        assert isinstance(place, Place)
        count = ir.Load(length, (), "i64")
        self.check(compare("greater", count, ir.Const(0, "i64")), "IndexError", "pop from empty list")
        self.emit(ir.Store(length, (), ir.Const(-1, "i64"), "add"))
        self.copy(self.place_of(name, type), replace(source, type=type))
