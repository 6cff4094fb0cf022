"""What a loop has kept in a few places, of all that it has seen: its derivative goes to where each was found.

    for n ...:                                     for n ...:
        for k in range(3): near[k] = 1e9               near = np.zeros(3); at = np.zeros(3)
        for p in range(P):                             for k in range(3): near[k] = 1e9
            d = f(x[n], y[p])                          for p in range(P):
            ...                            ->              d = f(x[n], y[p])
            near[k] = near[k - 1]                          ...
            ...                                            near[k] = near[k - 1]; at[k] = at[k - 1]
            near[k] = d                                    near[k] = d; at[k] = p + 1
        ... near[k] ...                                for k in range(3):
                                                           if at[k] > 0:
                                                               p = at[k] - 1
                                                               found[k] = with_derivative(near[k], f(x[n], y[p]))
                                                           else: found[k] = near[k]
                                                       ... found[k] ...

Otherwise the reverse takes back each move, in all of the steps, though most of them have kept nothing. What is kept
must be compared and moved only while the loop runs, and what it is made of must stay as it is. Arrays that each
iteration of the loop around fills first are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.dims import Dim
from ..transpile.program import (
    FLOATS,
    Assign,
    At,
    Call,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Name,
    Pop,
    Push,
    Slice,
    Stmt,
    Store,
    Type,
    While,
    map_children,
    names,
    stmt_exprs,
    stored,
    walk,
    walk_stmts,
)
from ..transpile.renaming import map_stmt
from ..transpile.values import Fresh
from .blocks import rebound, taken
from .extremes import moved


def by_places(function: Function, idle: Set[str]) -> tuple[Function, frozenset[str]]:
    """The function with places beside such arrays, and the arrays, through which no derivative flows any more."""
    sunk = _sunk(function.body)
    state = _Places(Fresh(taken(function)), idle, _mentions(sunk))
    body = state.block(sunk)
    return (replace(function, body=body) if state.found else function), frozenset(state.found)


# -- arrays of an iteration's own --------------------------------------------------------------------------------
def _sunk(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Arrays that are made before a loop, and filled first in each of its iterations, are made there."""
    done = list(body)
    for k in range(len(done) - 1, -1, -1):
        stmt = done[k]
        if not isinstance(stmt, Assign) or not _is_empty(stmt):
            continue
        using = [j for j, other in enumerate(done) if j != k and stmt.name in _mentioned((other,))]
        loop = done[using[0]] if len(using) == 1 and using[0] > k else None
        if isinstance(loop, For):
            bounds = names(loop.start) | names(loop.stop)
            first = next((s for s in loop.body if stmt.name in _mentioned((s,))), None)
            if first is not None and stmt.name not in bounds and _fills(first, stmt.name, stmt.value.type):
                at = next(j for j, s in enumerate(loop.body) if s is first)
                done[using[0]] = replace(loop, body=(*loop.body[:at], stmt, *loop.body[at:]))
                del done[k]
    return tuple(replace(s, body=_sunk(s.body)) if isinstance(s, For) else s for s in done)


def _is_empty(stmt: Assign) -> bool:
    return isinstance(stmt.value, Call) and stmt.value.op == "zeros" and stmt.value.type.rank == 1


def _fills(loop: Stmt, array: str, type: Type) -> bool:
    """Whether a loop stores numbers into all places of an array, and does nothing else with it."""
    if not isinstance(loop, For) or loop.step != 1 or loop.start != const(0):
        return False
    stores = [s for s in loop.body if isinstance(s, Store) and s.base.id == array]
    others = [s for s in loop.body if not any(s is store for store in stores)]
    if len(stores) != 1 or array in _mentioned(others) or value_of(loop.stop) != type.shape[0]:
        return False
    (store,) = stores
    return _place(store.items) == Dim.of(loop.var) and not store.op and array not in names(store.value)


def _place(items: Sequence[object]) -> Dim | None:
    match items:
        case [At(index)]:
            return value_of(index)
    return None


def _mentioned(body: Sequence[Stmt]) -> set[str]:
    return set(_mentions(body))


def _mentions(body: Sequence[Stmt]) -> Counter[str]:
    """How many statements name what, on their own."""
    found: Counter[str] = Counter()
    for stmt in walk_stmts(tuple(body)):
        own = {n for e in stmt_exprs(stmt) for n in names(e)}
        match stmt:
            case Assign(name=name) | Pop(name=name) | Push(list=Name(id=name)) | Store(base=Name(id=name)):
                own.add(name)
        found.update(own)
    return found


# -- places beside them ------------------------------------------------------------------------------------------
@dataclass
class _Places:
    fresh: Fresh
    idle: Set[str]
    mentions: Counter[str]
    found: set[str] = field(default_factory=set)

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        done = [replace(s, body=self.block(s.body)) if isinstance(s, (For, While)) else s for s in body]
        for made in [s for s in done if isinstance(s, Assign) and _is_empty(s) and s.value.type.dtype in FLOATS]:
            if made.name not in self.idle:
                done = self.kept(made, done)
        return tuple(done)

    def kept(self, made: Assign, block: list[Stmt]) -> list[Stmt]:
        """A block that makes an array, with places beside the array if a loop keeps there what it finds."""
        start = next(k for k, s in enumerate(block) if s is made)
        writing = [k for k, s in enumerate(block) if made.name in stored((s,)) and not _only_constants(s, made.name)]
        if len(writing) != 1 or writing[0] < start or _mentions(block)[made.name] < self.mentions[made.name]:
            return block
        at = writing[0]
        before, loop, after = block[start + 1 : at], block[at], block[at + 1 :]
        array = Name(made.name, made.value.type)
        reads_before = any(made.name in names(e) for s in walk_stmts(tuple(before)) for e in stmt_exprs(s))
        if not isinstance(loop, For) or loop.step != 1 or reads_before or made.name in stored(tuple(after)):
            return block
        if not isinstance(loop.start, Const) or loop.start.value < 0 or not _only_keeps(loop.body, made.name):
            return block
        if not all(_reads_elements(s, made.name) for s in after):
            return block
        sources = _sources(loop, made.name)
        makers = [_makers(loop, s) for s in sources]
        moves = any(_is_move(s) for s in _stores(loop, made.name))
        if not moves or len({s.value for s in sources}) != 1 or makers[0] is None:
            return block
        self.found.add(made.name)
        places = Name(self.fresh(f"{made.name}_at"), Type("i64", array.type.shape))
        found = Name(self.fresh(f"{made.name}_found"), array.type)
        none = Assign(places.id, construct.zeros(places.type), made.span)
        kept = replace(loop, body=_beside(loop.body, array, places, loop.var))
        told = self.told(loop, array, places, found, sources[0], makers[0])
        return [*block[:start], made, none, *before, kept, *told, *_with_found(after, array.id, found)]

    def told(
        self, loop: For, array: Name, places: Name, found: Name, source: Store, makers: Sequence[Assign]
    ) -> list[Stmt]:
        """The array once more, with the derivative of what is in it."""
        var = self.fresh("k")
        each = [At(Name(var, Type("int"), Dim.of(var)))]
        place = Name(self.fresh("at"), Type("i64"))
        own = {s.name: self.fresh(s.name) for s in makers}
        here = construct.index(array, each)
        counter = Name(self.fresh(loop.var), Type("i64"))
        again: list[Stmt] = [Assign(counter.id, construct.call("subtract", place, const(1)), loop.span)]
        again += [Assign(own[s.name], moved(s.value, loop.var, counter, own), s.span) for s in makers]
        of = construct.call("with_derivative", here, moved(source.value, loop.var, counter, own))
        again.append(Store(found, tuple(each), of, span=source.span))
        asked = If(
            construct.call("greater", place, const(0)),
            tuple(again),
            (Store(found, tuple(each), here, span=source.span),),
            source.span,
        )
        body = (Assign(place.id, construct.index(places, each), source.span), asked)
        stop = construct.dim(array.type.shape[0])
        empty = Assign(found.id, construct.zeros(found.type), source.span)
        return [empty, For(var, const(0), stop, 1, body, source.span)]


def _only_constants(stmt: Stmt, array: str) -> bool:
    """Whether a statement stores nothing into an array that has a derivative."""
    return all(not names(s.value) and not s.op for s in _stores(stmt, array))


def _stores(stmt: Stmt, array: str) -> list[Store]:
    return [s for s in walk_stmts((stmt,)) if isinstance(s, Store) and s.base.id == array]


def _sources(loop: For, array: str) -> list[Store]:
    """The writes into an array of what comes from elsewhere."""
    return [s for s in _stores(loop, array) if not _is_move(s) and names(s.value)]


def _is_move(store: Store) -> bool:
    match store.value:
        case Index(base=Name(id=id), items=[At()]):
            return id == store.base.id
    return False


def _only_keeps(body: Sequence[Stmt], array: str) -> bool:
    """Whether the numbers in an array are compared and moved only."""
    for stmt in walk_stmts(tuple(body)):
        if isinstance(stmt, Store) and stmt.base.id == array:
            one_place = len(stmt.items) == 1 and isinstance(stmt.items[0], At) and not stmt.op
            if not one_place or not (_is_move(stmt) or array not in names(stmt.value)):
                return False
            if any(array in names(e) for e in stmt_exprs(replace(stmt, value=const(0)))):
                return False
            continue
        for expr in stmt_exprs(stmt):
            if array in names(expr) and (expr.type.dtype != "bool" or not _reads_elements_in(expr, array)):
                return False
    return True


def _reads_elements(stmt: Stmt, array: str) -> bool:
    return all(_reads_elements_in(e, array) for s in walk_stmts((stmt,)) for e in stmt_exprs(s))


def _reads_elements_in(expr: Expr, array: str) -> bool:
    """Whether an expression reads nothing of an array but single elements."""
    match expr:
        case Name(id=id):
            return id != array
        case Index(base=Name(id=id), items=[At(index)]) if id == array:
            return _reads_elements_in(index, array)
        case Index(base=base, items=items):
            inside = (e for i in items for e in (getattr(i, "index", None),) if e is not None)
            return _reads_elements_in(base, array) and all(_reads_elements_in(e, array) for e in inside)
        case Call(args=args):
            return all(_reads_elements_in(a, array) for a in args)
    return True


def _makers(loop: For, source: Store) -> list[Assign] | None:
    """What makes the value of a write, again at any time after the loop; None where that cannot be."""
    path = _path(loop.body, source)
    changed, bound = stored(loop.body), Counter(s.name for s in walk_stmts(loop.body) if isinstance(s, Assign))
    inner = {s.var for s in walk_stmts(loop.body) if isinstance(s, For)}
    others = rebound(loop.body) - bound.keys()
    needed, found, makers = names(source.value), [], set[str]()
    for stmt in reversed(path):
        if stmt.name in needed:
            makers.add(stmt.name)
            if names(stmt.value) & makers:  # what an earlier iteration has left
                return None
            needed |= names(stmt.value)
            found.append(stmt)
    once = all(bound[n] == 1 for n in makers) and needed & bound.keys() <= makers
    exprs = [source.value, *(s.value for s in found)]
    scalar = all(not e.type.rank and _has_one_size(e, loop.var) for e in exprs)
    return found[::-1] if once and scalar and not needed & (changed | inner | others) else None


def _has_one_size(expr: Expr, var: str) -> bool:
    """Whether its parts are as large, and its slices where they are, in all iterations."""
    dims = [d for e in walk(expr) for d in e.type.shape]
    for item in (i for e in walk(expr) if isinstance(e, Index) for i in e.items):
        if isinstance(item, Slice):
            dims += [item.first, item.extent]
        elif not isinstance(item, At):
            return False
    return not any(var in d.symbols() for d in dims)


def _path(body: Sequence[Stmt], target: Stmt) -> list[Assign]:
    """The assignments that run before a statement whenever it runs."""
    found: list[Assign] = []
    for stmt in body:
        if stmt is target:
            break
        if any(s is target for s in walk_stmts((stmt,))):
            ways = (stmt.then, stmt.orelse) if isinstance(stmt, If) else (getattr(stmt, "body", ()),)
            way = next(w for w in ways if any(s is target for s in walk_stmts(w)))
            return [*found, *_path(way, target)]
        if isinstance(stmt, Assign):
            found.append(stmt)
    return found


def _beside(body: Sequence[Stmt], array: Name, places: Name, var: str) -> tuple[Stmt, ...]:
    """A block that writes beside each number where it was found, counted from 1."""
    done: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, (For, While)):
            stmt = replace(stmt, body=_beside(stmt.body, array, places, var))
        elif isinstance(stmt, If):
            then, orelse = (_beside(way, array, places, var) for way in (stmt.then, stmt.orelse))
            stmt = replace(stmt, then=then, orelse=orelse)
        done.append(stmt)
        if isinstance(stmt, Store) and stmt.base.id == array.id:
            at: Expr = const(0)
            if isinstance(stmt.value, Index) and _is_move(stmt):
                at = construct.index(places, stmt.value.items)
            elif names(stmt.value):
                counter = Name(var, Type("int"), Dim.of(var))
                at = construct.cast(construct.call("add", counter, const(1)), "i64")
            done.append(Store(places, stmt.items, at, span=stmt.span))
    return tuple(done)


def _with_found(body: Sequence[Stmt], array: str, found: Name) -> tuple[Stmt, ...]:
    def renamed(expr: Expr) -> Expr:
        return found if isinstance(expr, Name) and expr.id == array else map_children(expr, renamed)

    def block(inside: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(map_stmt(s, renamed, block, lambda n: n) for s in inside)

    return block(body)


__all__ = ["by_places"]
