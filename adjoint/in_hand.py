"""An element that a `while` goes back to is a variable of the loop, in hand while it runs; so is a row.

    while True:                                         E_n = E[n]
        step = (E[n] - e * np.sin(E[n]) - m[n]) / ...   while True:
        E[n] -= step                              ->        step = (E_n - e * np.sin(E_n) - m[n]) / ...
        if np.abs(step) < tol: break                        E_n = E_n - step
                                                            if np.abs(step) < tol: break
                                                        E[n] = E_n

The reverse of a `while` takes back no write, so that what it reads of an array that it changes is a whole copy of that
for each turn; of this, one number. What is stored there right before is what the variable begins with. All else that
the loop touches of the array is provably elsewhere, and nothing is looked up that might not be there, unless the loop
looks there first of all, whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.dims import Dim, Facts, nonnegative
from ..transpile.program import (
    Assert,
    Assign,
    At,
    Call,
    Expr,
    For,
    Function,
    If,
    Index,
    Item,
    Name,
    Slice,
    Stmt,
    Store,
    While,
    assigned,
    blocks,
    children,
    item_exprs,
    map_children,
    names,
    read,
    stmt_exprs,
    stored,
    walk,
    walk_stmts,
)
from ..transpile.renaming import map_stmt, rename_expr, rename_stmt
from .overlap import are_apart

Items = tuple[Item, ...]
_LAZY = ("logical_and", "logical_or", "where")  # of which Python may look at the first argument alone


def with_in_hand(function: Function, arrays: Set[str], fresh: Callable[[str], str], facts: Facts) -> Function:
    """The function with variables for what its `while` loops go back to in these arrays. The very function where there
    are none."""
    for array in sorted(arrays):
        body = _InHand(array, fresh, facts).block(function.body)
        function = function if body == function.body else replace(function, body=body)
    return function


@dataclass(frozen=True)
class _Held:
    """What is in hand: these axes of the array at these places, the others whole."""

    items: Items
    axes: tuple[int, ...]  # that have a place

    def own(self, items: Items) -> Items:
        """What is left of a subscript of the array."""
        return tuple(item for k, item in enumerate(items) if k not in self.axes)

    def has(self, items: Items) -> bool:
        return all(_same(items[k], self.items[k]) for k in self.axes)


@dataclass
class _InHand:
    array: str
    fresh: Callable[[str], str]
    facts: Facts

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for stmt in body:
            held = self.held_by(stmt, done) if isinstance(stmt, (For, While)) else []
            if held:
                behind: list[Stmt] = []
                for one in held:
                    done, stmt, last = self.taken(done, stmt, one)
                    behind.append(last)
                done += [stmt, *behind]
            else:
                done.append(map_stmt(stmt, lambda e: e, self.block, lambda n: n))
        return tuple(done)

    # -- what a loop goes back to --------------------------------------------------------------------------------
    def held_by(self, loop: For | While, before: Sequence[Stmt]) -> list[_Held]:
        """What the loop, if it is a `while` or has one that writes into the array, goes back to at each turn."""
        if not any(isinstance(s, While) and self.array in stored(s.body) for s in walk_stmts((loop,))):
            return []
        found = list(self.touched((loop,)))
        changed = assigned((loop,))
        if self.array in _bound(loop) or not found:
            return []
        places = [items for items in found if items is not None and _plain(items)]
        if len(places) < len(found):
            return []
        written = _distinct(s.items for s in walk_stmts((loop,)) if isinstance(s, Store) and s.base.id == self.array)
        held = [_Held(items, tuple(range(len(items)))) for items in written]
        if not all(self.alone(one, places, changed) for one in held):
            axes = tuple(k for k in range(len(places[0])) if _steady(places[0][k], changed) and _agree(places, k))
            held = [_Held(places[0], axes)] if axes else []
        return held if all(self.is_there(one, loop, before) for one in held) else []

    def alone(self, held: _Held, places: Sequence[Items], changed: Set[str]) -> bool:
        """Whether it is one element all the time, and the loop means this one or others, and knows which."""
        if not all(_steady(item, changed) for item in held.items):
            return False
        return all(held.has(items) or are_apart(items, held.items, self.facts) for items in places)

    def touched(self, body: Sequence[Stmt]) -> Iterator[Items | None]:
        """The subscripts of the array; None where it is meant as a whole."""
        for stmt in walk_stmts(tuple(body)):
            for expr in stmt_exprs(stmt):
                yield from self.looked_up(expr)
            if isinstance(stmt, Store) and stmt.base.id == self.array:
                yield None if stmt.scatter or stmt.binds else stmt.items

    def looked_up(self, expr: Expr, always: bool = False) -> Iterator[Items | None]:
        """As `touched`. `always`: only where the expression asks for it, whatever its values are."""
        match expr:
            case Call(op="extent" | "size"):
                return
            case Index(base=Name(id=self.array), items=items):
                yield items
                inner = [e for item in items for e in item_exprs(item)]
            case Name(id=self.array):
                yield None
                return
            case _:
                inner = list(children(expr))
                if always and isinstance(expr, Call) and expr.op in _LAZY:
                    inner = inner[:1]
        for e in inner:
            yield from self.looked_up(e, always)

    # -- whether it is there -------------------------------------------------------------------------------------
    def is_there(self, held: _Held, loop: For | While, before: Sequence[Stmt]) -> bool:
        """Whether nothing fails that is looked up before the loop, that the loop would not have looked up."""
        return self.in_range(held, loop) or (isinstance(loop, While) and self.is_first(held, loop, before))

    def in_range(self, held: _Held, loop: Stmt) -> bool:
        (shape,) = {e.type.shape for e in _names_of((loop,)) if e.id == self.array}
        return all(self.inside(held.items[k], shape[k]) for k in held.axes)

    def inside(self, item: Item, extent: Dim) -> bool:
        assert isinstance(item, At)
        place = value_of(item.index)
        if place is None or any(isinstance(e, Index) for e in walk(item.index)):
            return False
        front = nonnegative(place, self.facts) and nonnegative(extent - place - 1, self.facts)
        return front or (nonnegative(-place - 1, self.facts) and nonnegative(place + extent, self.facts))

    def is_first(self, held: _Held, loop: While, before: Sequence[Stmt]) -> bool:
        """Whether each run of a `while` looks there, and before anything is asserted."""
        found = list(self.looked_up(loop.cond, always=True))
        for stmt in loop.body if _begins(loop, before) else ():
            for expr in stmt_exprs(stmt):
                found += self.looked_up(expr, always=True)
            if isinstance(stmt, Store) and stmt.base.id == self.array:
                found.append(stmt.items)
            if isinstance(stmt, Assert) or blocks(stmt):
                break
        return any(items is not None and held.has(items) for items in found)

    # -- in hand -------------------------------------------------------------------------------------------------
    def taken(self, before: list[Stmt], loop: Stmt, held: _Held) -> tuple[list[Stmt], Stmt, Stmt]:
        """What is before the loop, the loop, and what leaves behind it what it had in hand."""
        base = next(e for e in _names_of((loop,)) if e.id == self.array)
        part = construct.index(base, self.place(base, held))
        own = Name(self.fresh(self.called(held)), part.type)
        start = self.start(before, held, loop)
        if start is None or not isinstance(first := before[start], Store):
            begin = Assign(own.id, construct.call("copy", part) if part.type.rank else part, loop.span)
            before = [*before, begin]
        else:
            begin = Assign(own.id, first.value, first.span)
            before = [*before[:start], begin, *self.moved(before[start + 1 :], held, own)]
        (inside,) = self.moved((loop,), held, own)
        assert isinstance(inside, (For, While))
        inside = (
            inside if part.type.rank else replace(inside, body=_Variable(own, self.fresh).carried(inside.body, own.id))
        )
        return before, inside, Store(base, self.place(base, held), own, span=loop.span)

    def place(self, base: Name, held: _Held) -> Items:
        whole = map(construct.full_slice, base.type.shape)
        return tuple(held.items[k] if k in held.axes else item for k, item in enumerate(whole))

    def called(self, held: _Held) -> str:
        words = [item.index for k, item in enumerate(held.items) if k in held.axes and isinstance(item, At)]
        named = [w.id for w in words if isinstance(w, Name)]
        return "_".join([self.array, *named]) if len(named) == len(words) else self.array

    def start(self, before: Sequence[Stmt], held: _Held, loop: Stmt) -> int | None:
        """The statement that gives an element what it begins with, where nothing else asks for the array until then."""
        if len(held.axes) < len(held.items) or not self.in_range(held, loop):
            return None
        for at in range(len(before) - 1, -1, -1):
            stmt = before[at]
            if isinstance(stmt, Store) and stmt.base.id == self.array and _plain(stmt.items) and held.has(stmt.items):
                steady = all(_steady(item, assigned(tuple(before[at:])) - {self.array}) for item in held.items)
                return at if steady and not (stmt.op or stmt.scatter or stmt.binds) else None
            touches = self.array in read((stmt,)) | assigned((stmt,))
            if touches and (self.array in assigned((stmt,)) or not self.only_at(held, stmt)):
                return None
        return None

    def only_at(self, held: _Held, stmt: Stmt) -> bool:
        return all(items is not None and _plain(items) and held.has(items) for items in self.touched((stmt,)))

    def moved(self, body: Sequence[Stmt], held: _Held, own: Name) -> tuple[Stmt, ...]:
        """The statements with `own` for what is in hand."""

        def there(expr: Expr) -> Expr:
            expr = map_children(expr, there)
            match expr:
                case Index(base=Name(id=self.array), items=items) if _plain(items) and held.has(items):
                    left = held.own(items)
                    return construct.index(own, left) if left else own
            return expr

        def one(stmt: Stmt) -> Stmt:
            stmt = map_stmt(stmt, there, lambda inner: tuple(map(one, inner)), lambda n: n)
            if not (isinstance(stmt, Store) and stmt.base.id == self.array and held.has(stmt.items)):
                return stmt
            if left := held.own(stmt.items):
                return replace(stmt, base=own, items=left)
            return Assign(own.id, _updated(own, stmt), stmt.span)

        return tuple(map(one, body))


@dataclass
class _Variable:
    """Gives each value of a variable a name of its own, as all have in a typed program; where branches meet, and around
    a loop, they have one."""

    own: Name
    fresh: Callable[[str], str]

    def carried(self, body: Sequence[Stmt], name: str) -> tuple[Stmt, ...]:
        """The body of a loop that carries it by this name."""
        return self.ending(*self.block(body, name), name)

    def ending(self, body: Sequence[Stmt], last: str, name: str) -> tuple[Stmt, ...]:
        """A block that leaves by this name what is called `last`."""
        return (*body, Assign(name, self.named(last)))

    def block(self, body: Sequence[Stmt], current: str) -> tuple[list[Stmt], str]:
        """The statements, and what it is called behind them."""
        done: list[Stmt] = []
        for stmt in body:
            changes = self.own.id in assigned((stmt,))
            if not changes:
                done.append(rename_stmt(stmt, {self.own.id: current}))
                continue
            name = self.fresh(self.own.id)
            match stmt:
                case Assign(value=value):
                    done.append(replace(stmt, name=name, value=rename_expr(value, {self.own.id: current})))
                case If(cond=cond, then=then, orelse=orelse):
                    ways = [self.ending(*self.block(way, current), name) for way in (then, orelse)]
                    cond = rename_expr(cond, {self.own.id: current})
                    done.append(replace(stmt, cond=cond, then=ways[0], orelse=ways[1]))
                case For(start=start, stop=stop):
                    start, stop = (rename_expr(e, {self.own.id: current}) for e in (start, stop))
                    done.append(Assign(name, self.named(current), stmt.span))
                    done.append(replace(stmt, start=start, stop=stop, body=self.carried(stmt.body, name)))
                case While(cond=cond):
                    cond = rename_expr(cond, {self.own.id: name})
                    done.append(Assign(name, self.named(current), stmt.span))
                    done.append(replace(stmt, cond=cond, body=self.carried(stmt.body, name)))
            current = name
        return done, current

    def named(self, name: str) -> Name:
        return replace(self.own, id=name)


def _updated(own: Name, stmt: Store) -> Expr:
    match stmt.op, stmt.value:
        case None, value:
            return value
        case "add", Call(op="negative", args=(value,)):
            return construct.call("subtract", own, value)
        case op, value:
            return construct.call(op, own, value)


def _plain(items: Items) -> bool:
    return all(isinstance(item, (At, Slice)) for item in items)


def _same(a: Item, b: Item) -> bool:
    if not (isinstance(a, At) and isinstance(b, At)):
        return False
    x, y = value_of(a.index), value_of(b.index)
    return x == y if x is not None and y is not None else a.index == b.index


def _steady(item: Item, changed: Set[str]) -> bool:
    """Whether it is one place, which does not depend on what is changed."""
    if not isinstance(item, At):
        return False
    told = [value for e in walk(item.index) if (value := value_of(e)) is not None]
    return not (names(item.index) | {s for value in told for s in value.symbols()}) & changed


def _agree(places: Sequence[Items], axis: int) -> bool:
    return all(_same(items[axis], places[0][axis]) for items in places)


def _distinct(places: Iterator[Items]) -> list[Items]:
    found: list[Items] = []
    for items in places:
        if not any(len(items) == len(other) and all(map(_same, items, other)) for other in found):
            found.append(items)
    return found


def _bound(loop: Stmt) -> set[str]:
    return {s.name for s in walk_stmts((loop,)) if isinstance(s, Assign)}


def _names_of(body: Sequence[Stmt]) -> Iterator[Name]:
    """All arrays that statements read and write."""
    for stmt in walk_stmts(tuple(body)):
        if isinstance(stmt, Store):
            yield stmt.base
        for expr in stmt_exprs(stmt):
            yield from (e for e in walk(expr) if isinstance(e, Name))


def _begins(loop: While, before: Sequence[Stmt]) -> bool:
    """Whether there is a first turn: `while True`, and what becomes of it where it is left inside."""
    cond = loop.cond
    if isinstance(cond, Name):
        makers = [s for s in before if cond.id in assigned((s,))]
        cond = makers[-1].value if makers and isinstance(makers[-1], Assign) else cond
    return cond == const(True)


__all__ = ["with_in_hand"]
