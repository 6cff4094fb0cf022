"""Arrays that a loop goes over, in place: what they held before has a name of its own.

    for j: y[t, j] = np.exp(x[t, j]); s += y[t, j]            for j: y_2[j] = np.exp(x[t, j]); s += y_2[j]
    for j: y[t, j] = y[t, j] / s                       ->     for j: y[t, j] = y_2[j] / s

Where the gradient needs both, it takes back no write, and the forward saves none: y is what was returned, and y_2 is
made again. All that is read and written until then is at the places that the last loop goes over, one by one. What a
branch stores only sometimes goes over zeros, if the array was made of them and has not been touched at these places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ..transpile import construct
from ..transpile.construct import value_of
from ..transpile.dims import ZERO, Dim
from ..transpile.program import (
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
    Type,
    While,
    assigned,
    children,
    item_exprs,
    map_children,
    read,
    stmt_exprs,
)
from ..transpile.renaming import map_stmt
from .stores import is_whole

Range = tuple[Expr, Expr, int]


@dataclass(frozen=True)
class _Place:
    """Where an array is touched. `loops`: those around, within a statement; `write`: the statement, if it stores."""

    loops: tuple[For, ...]
    items: tuple[Item, ...] | None  # None: as a whole
    write: Store | None
    plain: bool  # no branch is around


def by_phases(function: Function, arrays: Set[str], fresh: Callable[[str], str]) -> Function:
    """The function with such names for what these arrays held. The very function where there are none."""
    for array in sorted(arrays):
        function = _Phases(array, fresh, _lasting(function)).function(function)
    return function


@dataclass
class _Phases:
    array: str
    fresh: Callable[[str], str]
    lasting: Set[str]

    def function(self, function: Function) -> Function:
        body = self.block(function.body, None)
        return function if body == function.body else replace(function, body=body)

    def block(self, body: Sequence[Stmt], own: Set[str] | None) -> tuple[Stmt, ...]:
        """`own`: the loops around, if nothing else touches the array since it was filled with zeros."""
        done: list[Stmt] = []
        for k, stmt in enumerate(body):
            if isinstance(stmt, For):
                stmt = replace(stmt, body=self.block(stmt.body, self.zero_in(stmt, done, body[k + 1 :], own)))
            elif isinstance(stmt, While):
                stmt = replace(stmt, body=self.block(stmt.body, None))
            elif isinstance(stmt, If):
                stmt = replace(stmt, then=self.block(stmt.then, None), orelse=self.block(stmt.orelse, None))
            last = self.last(stmt)
            begin = None if last is None else self.begin(done, last)
            start = "empty"
            if last is not None and begin is None and own is not None and not self.touches(body[k + 1 :]):
                begin, start = self.first(done, last, own), "zeros"
            if last is None or begin is None:
                done.append(stmt)
            else:
                done = [*done[:begin], *self.renamed(done[begin:], stmt, last, start)]
        return tuple(done)

    def zero_in(
        self, loop: For, before: Sequence[Stmt], behind: Sequence[Stmt], own: Set[str] | None
    ) -> Set[str] | None:
        """The loops around what is in a loop, as for `block`."""
        touching = [s for s in before if self.touches((s,))]
        if not touching:
            return None if own is None or self.touches(behind) else own | {loop.var}
        match touching[-1]:
            case Assign(name=self.array, value=Call(op="zeros" | "zeros_like")):
                return {loop.var}
        return None

    def touches(self, body: Sequence[Stmt]) -> bool:
        return self.array in read(tuple(body)) | assigned(tuple(body))

    def last(self, stmt: Stmt) -> _Place | None:
        """Where a loop writes to each of the places that it has read."""
        if not isinstance(stmt, For):
            return None
        places = list(self.places(stmt))
        writes = [p for p in places if p.write]
        if len(writes) != 1 or places[0] is writes[0]:
            return None
        (write,) = writes
        assert write.write is not None
        if not write.plain or write.write.op or write.write.scatter or not _is_one_by_one(write):
            return None
        return write if all(_alike(p, write) for p in places) else None

    def begin(self, done: Sequence[Stmt], last: _Place) -> int | None:
        """The statement from which on the array is touched at these places only, the first time to store there."""
        for at in range(len(done) - 1, -1, -1):
            stmt = done[at]
            if not self.touches((stmt,)):
                continue
            if isinstance(stmt, Assign) and stmt.name == self.array:
                whole = _is_new(stmt.value) and len(last.loops) == sum(isinstance(i, At) for i in last.items or ())
                return at if whole and _is_steady(last, done[at + 1 :]) else None
            places = list(self.places(stmt))
            if not places or not all(_alike(p, last) for p in places):
                return None
            first = places[0]
            if first.write and first.plain and not first.write.op and _alike(first, last, exactly=True):
                return at if _is_steady(last, done[at:]) else None
        return None

    def first(self, done: Sequence[Stmt], last: _Place, own: Set[str]) -> int | None:
        """The statement from which on the array, which is zero, is touched at these places, by nothing before it; each
        iteration of the loops around has its own."""
        touching = [k for k, stmt in enumerate(done) if self.touches((stmt,))]
        if not touching or not own <= {_variable(item) for item in last.items or ()}:
            return None
        places = [p for k in touching for p in self.places(done[k])]
        alike = all(_alike(p, last) for p in places) and _is_steady(last, done[touching[0] :])
        return touching[0] if alike else None

    def places(self, stmt: Stmt, loops: tuple[For, ...] = (), plain: bool = True) -> Iterator[_Place]:
        """In the order in which they are touched."""
        for expr in stmt_exprs(stmt):
            yield from self.reads(expr, loops, plain)
        if isinstance(stmt, Store) and stmt.base.id == self.array:
            if stmt.op:
                yield _Place(loops, stmt.items, None, plain)
            yield _Place(loops, stmt.items, stmt, plain)
        elif isinstance(stmt, For):
            for inner in stmt.body:
                yield from self.places(inner, (*loops, stmt), plain)
        elif isinstance(stmt, If):
            for inner in (*stmt.then, *stmt.orelse):
                yield from self.places(inner, loops, False)
        elif self.array in assigned((stmt,)) | (read((stmt,)) if isinstance(stmt, While) else set()):
            yield _Place(loops, None, None, plain)

    def reads(self, expr: Expr, loops: tuple[For, ...], plain: bool) -> Iterator[_Place]:
        match expr:
            case Call(op="extent" | "size"):
                pass
            case Index(base=Name(id=self.array), items=items):
                for item in items:
                    for e in item_exprs(item):
                        yield from self.reads(e, loops, plain)
                yield _Place(loops, items, None, plain)
            case Name(id=self.array):
                yield _Place(loops, None, None, plain)
            case _:
                for e in children(expr):
                    yield from self.reads(e, loops, plain)

    def copied(self, earlier: Sequence[Stmt]) -> Name | None:
        """What the array begins as a copy of, and is not written until the loop, if that lasts."""
        match earlier[0]:
            case Assign(name=self.array, value=Call(op="copy", args=(Name() as source,))) if source.id in self.lasting:
                return None if self.array in assigned(tuple(earlier[1:])) else source
        return None

    def renamed(self, earlier: Sequence[Stmt], stmt: Stmt, last: _Place, start: str) -> list[Stmt]:
        assert last.write is not None
        base = last.write.base
        counters = {s.var for s in last.loops}
        axes = [k for k, i in enumerate(last.write.items) if isinstance(i, Slice) or _variable(i) in counters]
        type = Type(base.type.dtype, tuple(base.type.shape[k] for k in axes))
        own = self.copied(earlier) or Name(self.fresh(self.array), type)
        passed = False  # the last write: from there on the array holds what it is called after

        def there(expr: Expr) -> Expr:
            match expr:
                case Index(base=Name(id=self.array), items=items) if not passed:
                    return construct.index(own, [items[k] for k in axes])
            return map_children(expr, there)

        def moved(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
            return tuple(map(one, body))

        def one(inner: Stmt) -> Stmt:
            nonlocal passed
            was = inner
            inner = map_stmt(inner, there, moved, lambda n: n)
            if was is last.write:
                passed = True
            elif isinstance(inner, Store) and inner.base.id == self.array:
                inner = replace(inner, base=own, items=tuple(inner.items[k] for k in axes))
            return inner

        make = Assign(own.id, construct.call(start, shape=type.shape, dtype=type.dtype), last.write.span)
        match earlier[0]:
            case Assign(name=self.array, value=value) as made:
                before = () if own.id in self.lasting else (replace(made, name=own.id),)
                blank = value if _is_blank(value) else _left(own, last)
                return [*before, replace(made, value=blank), *moved(earlier[1:]), one(stmt)]
        return [make, *moved(earlier), one(stmt)]


def _is_new(value: Expr) -> bool:
    return isinstance(value, Call)  # a name may be another's memory


def _lasting(function: Function) -> set[str]:
    """Arguments that mean the same throughout."""
    return {p.name for p in function.params if p.role in ("input", "param")} - assigned(function.body)


def _left(own: Name, last: _Place) -> Expr:
    """What an array begins with that holds `own` wherever the last loop does not go."""
    whole = all(
        loop is None or _covers(loop, extent) for loop, extent in zip(_along(last), own.type.shape, strict=True)
    )
    return construct.call("empty", shape=own.type.shape, dtype=own.type.dtype) if whole else construct.call("copy", own)


def _along(last: _Place) -> list[For | None]:
    """The loop along each axis; None where it is meant as a whole."""
    loops = {loop.var: loop for loop in last.loops}
    return [loops.get(_variable(item) or "") for item in last.items or ()]


def _covers(loop: For, extent: Dim) -> bool:
    start, stop = value_of(loop.start), value_of(loop.stop)
    up = loop.step == 1 and start == ZERO and stop == extent
    return up or (loop.step == -1 and start == extent - 1 and stop == Dim.of(-1))


def _is_blank(value: Expr) -> bool:
    return isinstance(value, Call) and value.op in ("zeros", "ones", "full", "empty")


def _range(loop: For) -> Range:
    return loop.start, loop.stop, loop.step


def _variable(item: Item) -> str | None:
    return item.index.id if isinstance(item, At) and isinstance(item.index, Name) else None


def _is_steady(last: _Place, between: Sequence[Stmt]) -> bool:
    """Whether the ranges and places mean the same all the way."""
    exprs = [e for s in last.loops for e in (s.start, s.stop)]
    exprs += [e for item in last.items or () for e in item_exprs(item)]
    told = {n for e in exprs for n in _contents(e)} - {s.var for s in last.loops}
    return not told & assigned((*between, *last.loops[:1]))


def _contents(expr: Expr) -> set[str]:
    """The names that it reads; of which it asks the extents alone, none."""
    if isinstance(expr, Call) and expr.op in ("extent", "size"):
        return set()
    return {expr.id} if isinstance(expr, Name) else set().union(*map(_contents, children(expr)))


def _is_one_by_one(place: _Place) -> bool:
    """Whether each iteration has a place of its own, the same whatever else goes on."""
    variables = [s.var for s in place.loops]
    own = [_variable(item) for item in place.items or ()]
    bounds = {n for s in place.loops for e in (s.start, s.stop) for n in _contents(e)}
    return all(own.count(v) == 1 for v in variables) and not bounds & set(variables)


def _alike(place: _Place, last: _Place, exactly: bool = False) -> bool:
    """Whether it is, in loops over the same ranges, the same place. `exactly`: with no other loops inside."""
    count = len(last.loops)
    if place.items is None or (len(place.loops) != count if exactly else len(place.loops) < count):
        return False
    if tuple(map(_range, place.loops[:count])) != tuple(map(_range, last.loops)):
        return False
    called = {mine.var: other.var for mine, other in zip(place.loops, last.loops)}
    return _spelled(place.items, called) is not None and _spelled(place.items, called) == _spelled(last.items or (), {})


def _spelled(items: tuple[Item, ...], called: dict[str, str]) -> list[Expr | Item] | None:
    """The indices with other names, and without what their values are known to be in the old ones."""

    def bare(expr: Expr) -> Expr:
        expr = map_children(expr, bare)
        if isinstance(expr, Name):
            return replace(expr, id=called.get(expr.id, expr.id), value=None)
        return replace(expr, value=None) if isinstance(expr, (Call, Index)) else expr

    found: list[Expr | Item] = [bare(item.index) if isinstance(item, At) else item for item in items]
    return found if all(isinstance(item, At) or is_whole((item,)) for item in items) else None


__all__ = ["by_phases"]
