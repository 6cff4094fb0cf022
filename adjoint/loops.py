"""The reverse of loops: the forward saves what one carries; the reverse restores it, runs the body again, then back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.dims import ZERO, Dim, maximum
from ..transpile.errors import Mistake
from ..transpile.operations import ROWS, letters
from ..transpile.program import (
    Assign,
    At,
    Call,
    Expr,
    For,
    Index,
    Name,
    Pop,
    Push,
    Stmt,
    Store,
    Type,
    While,
    assigned,
    names,
    read,
    stored,
    walk,
    walk_stmts,
)
from .activity import flows
from .blocks import rebound, without_stores
from .cotangents import Cotangents
from .parts import by_name, by_names
from .reductions import shrinks
from .rooms import most_trips, position, room
from .rules import asks_which
from .versions import with_versions

DEAR = 10  # flops: a function of the mathematical library


class Loops:
    """Mixed into `Reverser`."""

    def _loop(self: Any, stmt: For | While, cots: Cotangents, before: set[str]) -> list[Stmt]:
        if self._is_undone(stmt):
            return self._undone_loop(stmt, cots, before)
        made, forward, stmt = self._replaying(stmt)
        written = {s.base.id for s in walk_stmts(stmt.body) if isinstance(s, Store)}
        carried = (rebound(stmt.body) | (written & self.versioned)) & before
        inside, leaving = with_versions(stmt.body, carried, self.versioned, self.types, self.version)
        touched = [n for n in sorted(self._touched(inside)) if n not in carried]
        if not any(n in self.active for n in [*touched, *carried]):
            return [*made, forward]
        self.quote(stmt.span, cots.out, len(cots.out), always=True)
        flowing = {n for n in carried & self.active if self._flows_in(n, inside, cots)}
        inner = self._inner(cots, inside, carried, flowing, touched)
        for name in sorted(flowing):
            inner.pending[leaving.get(name, name)] = [cots.variable(name)]
        again = self.block(inside, inner, before | carried)
        self._leave(flowing, cots, inner)
        room: list[Stmt] = []
        if cots.outer is None or isinstance(forward, While):  # else the loop runs again anyway
            forward, named = _with_names(forward, again, carried)
            again, inner.out = _made_first(by_names(again, named), named), by_names(inner.out, named)
            forward, again, room = self._taped(forward, again, carried)
        saving, restores, counter = self._saving(forward, sorted(carried))
        saving = [*room, *saving]
        again = without_stores(again, rebound([*inside, *again]) | carried)
        cots.emit(self._backward(stmt, counter, [*restores, *again, *inner.out]))
        return [*made, *saving]

    def _flows_in(self: Any, name: str, inside: Sequence[Stmt], cots: Cotangents) -> bool:
        """Whether a derivative can pass through the value of a carried variable from one iteration to the next,
        or after the last."""
        if not cots.owns(name) or name in cots.variables or cots.pending.get(name):
            return True
        return any(name in flows(s.value) for s in walk_stmts(tuple(inside)) if isinstance(s, (Assign, Store, Push)))

    def version(self: Any, name: str) -> str:
        """A new name for a later value of a variable."""
        new = self.fresh(name)
        self.types[new] = self.types[name]
        self.origins[new] = self.origins.get(name, name)
        for facts in (self.active, self.versioned, self.undone, self.written, self.chosen, self.lists):
            if name in facts:
                facts.add(new)
        return new

    def _touched(self: Any, body: Sequence[Stmt]) -> set[str]:
        """Active names of outer blocks whose cotangent the body adds to or reads."""
        inner = rebound(body)
        found: set[str] = set()
        for s in walk_stmts(tuple(body)):
            match s:
                case Assign(name=name, value=value) if name in self.active:
                    found |= flows(value)
                case Store(base=target, value=value) | Push(list=target, value=value) if target.id in self.active:
                    found |= {target.id, *flows(value)}
                case Pop(list=target):
                    found.add(self.replayed.get(target.id, target).id)
        return {n for n in found - inner if n in self.active}

    def _inner(
        self: Any, cots: Cotangents, body: Sequence[Stmt], carried: set[str], flowing: set[str], touched: Sequence[str]
    ) -> Cotangents:
        """Cotangents of a nested block: outer names have variables, its own names wait in it."""
        for name in [*touched, *sorted(flowing)]:
            if name not in cots.variables and cots.owns(name):
                if name in self.only_written:
                    cots.borrow_variable(name)
                else:
                    cots.make_variable(name, own=name not in carried)
        for name in [*touched, *sorted(flowing)]:
            cots.freeze(cots.variable(name).id)
        own = rebound(body) | carried
        return Cotangents(self.types, self.new, self.like, self.lists, self.left, self.facts, [], cots, own)

    def _leave(self: Any, carried: set[str], cots: Cotangents, inner: Cotangents) -> None:
        """At the start of the body, going back: the cotangent of each carried name is that of its entering value."""
        ending: list[tuple[Name, Expr]] = []
        for name in sorted(carried & self.active):
            variable = cots.variable(name)
            entering = inner.take(name)
            if entering is None:
                entering = inner.zeros(name)
            if entering != variable:
                ending.append(
                    (variable, construct.convert(entering, variable.type) if variable.type.rank else entering)
                )
        reassigned = {v.id for v, _ in ending}
        if len(ending) > 1 and any(names(e) & (reassigned - {v.id}) for v, e in ending):
            held = []
            for variable, expr in ending:
                held.append((variable, self._named(expr, f"{variable.id}_next", inner)))
            ending = list(held)
        for variable, expr in ending:
            if variable.type.rank and not isinstance(expr, (Call,)):
                expr = construct.call("copy", expr) if isinstance(expr, Index) else expr
            inner.emit(Assign(variable.id, expr))

    def _saving(self: Any, stmt: For | While, carried: list[str]) -> tuple[list[Stmt], list[Stmt], Expr]:
        """The forward loop that saves what it carries, the statements that restore it, and how often it ran."""
        if isinstance(stmt, While):
            return self._saving_while(stmt, carried)
        return self._saving_on_lists(stmt, carried) if self._trips(stmt) is None else self._saving_for(stmt, carried)

    def _saving_for(self: Any, stmt: For, kept: list[str]) -> tuple[list[Stmt], list[Stmt], Expr]:
        count = self._trips(stmt)
        assert count is not None
        place = At(position(stmt))
        before: list[Stmt] = []
        at_start: list[Stmt] = []
        restore: list[Stmt] = []
        for name in kept:
            type = self.types[name]
            saved, make = room(self.fresh(f"{name}_saved"), type, [count])
            before.append(make)
            items = construct.complete(saved, [place])
            at_start.append(Store(saved, items, Name(name, type)))
            part = construct.index(saved, [place])
            restore.append(Assign(name, part))
        return [*before, replace(stmt, body=(*at_start, *stmt.body))], restore, const(0)

    def _taped(
        self: Any, stmt: For | While, again: Sequence[Stmt], carried: set[str]
    ) -> tuple[For | While, Sequence[Stmt], list[Stmt]]:
        """A product of matrices costs more than its memory, a reduction where the loop runs forward anyway: each
        iteration leaves it to the reverse, which makes all else again. Returns the loop that saves, the body of the
        reverse that restores, and what makes the arrays or lists."""
        bound = Counter(s.name for s in walk_stmts(stmt.body) if isinstance(s, (Assign, Pop)))
        moving = {*bound, *([stmt.var] if isinstance(stmt, For) else [])}
        made: list[Stmt] = []
        filling: list[Stmt] = []
        restored: dict[str, Stmt] = {}
        for inner in stmt.body:
            filling.append(inner)
            if isinstance(inner, Assign) and self._is_dear(inner, stmt, carried) and bound[inner.name] == 1:
                type = inner.value.type
                if inner.name in carried | stored(stmt.body) or not type.is_float:
                    continue
                if moving & {s for d in type.shape for s in d.symbols()}:
                    continue  # of another size in each iteration
                make, save, restored[inner.name] = self._left_behind(stmt, Name(inner.name, type))
                made.append(make)
                filling.append(save)
        again = [restored.get(s.name, s) if isinstance(s, Assign) else s for s in again]
        return replace(stmt, body=tuple(filling)), again, made

    def _left_behind(self: Any, stmt: For | While, value: Name) -> tuple[Stmt, Stmt, Stmt]:
        """What makes room for a value of each iteration, saves it there, and restores it."""
        count = self._trips(stmt)
        if count is None:
            saved, make = self._list(value.id, value.type)
            return make, Push(saved, value), Pop(value.id, saved, saved.type)
        assert isinstance(stmt, For)
        saved, make = room(self.fresh(f"{value.id}_saved"), value.type, [count])
        items = [At(position(stmt))]
        save = Store(saved, construct.complete(saved, items), value)
        return make, save, Assign(value.id, construct.index(saved, items))

    def _is_dear(self: Any, stmt: Assign, loop: For | While, carried: set[str]) -> bool:
        if isinstance(stmt.value, Call) and shrinks(stmt.value):
            # Which element was the largest is asked of what is computed again.
            return bool(carried) and not (stmt.name in self.active and asks_which(stmt.value))
        if not stmt.value.type.rank and isinstance(loop, For):
            return False
        return _is_left(stmt.value, loop)

    def _trips(self: Any, stmt: For | While) -> Dim | None:
        """How often a loop runs at most, if sizes tell."""
        if isinstance(stmt, While):
            return None
        count = most_trips(stmt)
        return None if count is None else maximum(count, ZERO, self.facts)

    def _saving_while(self: Any, stmt: While, kept: list[str]) -> tuple[list[Stmt], list[Stmt], Expr]:
        trips = Name(self.fresh("trips"), Type("int"))
        counted = Assign(trips.id, construct.call("add", trips, const(1)))
        forward, restore, _ = self._saving_on_lists(replace(stmt, body=(*stmt.body, counted)), kept)
        return [Assign(trips.id, const(0)), *forward], restore, trips

    def _saving_on_lists(self: Any, stmt: For | While, kept: list[str]) -> tuple[list[Stmt], list[Stmt], Expr]:
        """For a number of iterations that is not known before they are done."""
        before: list[Stmt] = []
        at_start: list[Stmt] = []
        restore: list[Stmt] = []
        for name in kept:
            saved, make = self._list(name, self.types[name])
            before.append(make)
            value: Expr = Name(name, self.types[name])
            if name in stored(stmt.body):  # a list holds the array itself, which the body goes on to change
                value = construct.call("copy", value)
            at_start.append(Push(saved, value))
            restore.append(Pop(name, saved, saved.type))
        return [*before, replace(stmt, body=(*at_start, *stmt.body))], restore, const(0)

    def _backward(self: Any, stmt: For | While, trips: Expr, body: list[Stmt]) -> Stmt:
        if isinstance(stmt, While):
            return For(self.fresh("_"), const(0), trips, 1, tuple(body), stmt.span)
        one = const(abs(stmt.step))
        if abs(stmt.step) == 1:
            start = construct.call("subtract" if stmt.step > 0 else "add", stmt.stop, one)
        else:
            first = value_of(stmt.start)
            count = construct.trips(stmt.start, stmt.stop, stmt.step)  # below 0, the reverse runs as little
            if first is None or count is None:
                raise Mistake(
                    stmt.span,
                    "derivative",
                    "this loop has a step, and bounds that depend on values: its gradient is not derived",
                    "count by 1 and multiply: for k in range(n): i = start + step * k",
                )
            start = construct.dim(first + (count - 1) * stmt.step)
        stop = construct.call("subtract" if stmt.step > 0 else "add", stmt.start, const(1))
        return For(stmt.var, _constant(start), _constant(stop), -stmt.step, tuple(body), stmt.span)


def _with_names(loop: For | While, again: Sequence[Stmt], carried: set[str]) -> tuple[For | While, dict[Expr, Name]]:
    """With names for what is dear in it and has one in the reverse, so that an iteration can leave it there. A name
    means the same in both until a second value is bound to it."""
    dear = [s for s in again if isinstance(s, Assign) and _is_left(s.value, loop)]
    wanted = {s.value: Name(s.name, s.value.type) for s in reversed(dear)}  # the first of equal ones
    body: list[Stmt] = []
    named: dict[Expr, Name] = {}
    times = Counter(s.name for s in walk_stmts(loop.body) if isinstance(s, (Assign, Pop)))
    again_bound = carried | {name for name, count in times.items() if count > 1}
    changed = stored(loop.body)
    for stmt in loop.body:
        if isinstance(stmt, (Assign, Store)):
            for part in tuple(walk(stmt.value)):
                if part in wanted and part != stmt.value and not names(part) & changed:
                    if part not in named:
                        named[part] = wanted[part]
                        body.append(Assign(named[part].id, part, stmt.span))
                    stmt = replace(stmt, value=by_name(stmt.value, part, named[part]))
        changed |= assigned((stmt,)) & again_bound
        body.append(stmt)
    return replace(loop, body=tuple(body)), named


def _made_first(body: Sequence[Stmt], named: Mapping[Expr, Name]) -> list[Stmt]:
    """What has a name is made before the first statement that reads it, which had made it on its own."""
    body = list(body)
    for part, name in named.items():
        at = next(k for k, s in enumerate(body) if isinstance(s, Assign) and (s.name, s.value) == (name.id, part))
        first = next((k for k, s in enumerate(body[:at]) if name.id in read((s,))), at)
        body.insert(first, body.pop(at))
    return body


def costs(expr: Expr) -> int:
    """The flops of the dearest operation in it."""
    return max((ROWS[e.op].flops for e in walk(expr) if isinstance(e, Call)), default=0)


def _is_left(expr: Expr, loop: For | While) -> bool:
    """Whether an iteration leaves it to the reverse: a product, and of few iterations, whose arrays are in the cache
    when the reverse comes to them, what is dear."""
    if isinstance(loop, While) and costs(expr) >= DEAR:
        return True
    return any(isinstance(e, Call) and is_product(e) for e in walk(expr))


def is_product(call: Call) -> bool:
    """Whether it adds up products: what np.outer makes is a product of two numbers each."""
    if ROWS[call.op].kind != "product":
        return False
    specs, out = letters(call)
    return not set("".join(specs)) <= set(out)


def _constant(expr: Expr) -> Expr:
    value = value_of(expr)
    return const(value.value) if value is not None and value.value is not None else expr


__all__ = ["DEAR", "Loops", "costs", "is_product"]
