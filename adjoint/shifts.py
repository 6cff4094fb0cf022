"""Shifts: values that what is returned does not depend on, though it is computed with them.

The largest element stands in a softmax for its roundings: what is taken off there cancels. No derivative passes through
it, so that the gradient has no ties to share out:

    top = np.max(x)                     x grows, top stays
    e = np.exp(x - top)                 top + c:  x - top grows by -1 * c, e by the factor exp(-1 * c)
    return e / np.sum(e)                so does the sum: the quotient stays, whatever c

What is followed is how each value changes when one of them grows by c: not at all, by `times * c`, or by the factor
`exp(times * c)`. All paths of a function are walked, loops until no state is new. In exact arithmetic the derivative
left out is 0 at every point; that of the roundings is left out with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ..transpile import construct
from ..transpile.clean import live_before
from ..transpile.construct import value_of
from ..transpile.dims import Dim
from ..transpile.operations import ROWS
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
    Pop,
    Pull,
    Push,
    Return,
    Stmt,
    Store,
    Type,
    While,
    assigned,
    children,
    map_children,
    names,
    read,
    stmt_exprs,
    walk,
    walk_stmts,
)
from ..transpile.program import stored as stored_in
from ..transpile.renaming import map_stmt
from ..transpile.values import Fresh
from .blocks import taken
from .growth import Growth, Lost, growth, stays, stored
from .stores import is_whole

_MOST = 16  # states of one origin at one place: beyond, nothing is claimed


@dataclass(frozen=True)
class _State:
    """What grew, and what grows with it, or would if it was not 0 or infinite. `origin`: "" where nothing did."""

    origin: str = ""
    grown: frozenset[tuple[str, Growth]] = frozenset()

    @property
    def strictly(self) -> frozenset[tuple[str, Growth]]:
        """What has grown, whatever it was."""
        return frozenset((name, growth) for name, growth in self.grown if growth.times is not None)

    @property
    def asked(self) -> set[str]:
        """What is read by the questions where something grows."""
        return {name for _, growth in self.grown for cond in growth.where for name in names(cond)}

    def given(self, name: str, growth: Growth | None) -> _State:
        left = {(n, s) for n, s in self.grown if n != name}
        return replace(self, grown=frozenset(left if growth is None else {*left, (name, growth)}))

    def moved(self, name: str) -> _State:
        """After a name has been given another value that may have said places."""
        return replace(self, grown=frozenset((n, growth.without(name)) for n, growth in self.grown))


def without_shifts(function: Function) -> tuple[Function, frozenset[str]]:
    """The function with a name for each largest element that cancels, and the names that do."""
    used = taken(function)
    named, made = _named(function, Fresh(set(used)), lambda name: True)
    idle = _idle(named, made)
    if not idle:
        return function, frozenset()
    return _named(function, Fresh(set(used)), lambda name: name in idle)[0], idle


# -- names for those within expressions ----------------------------------------------------------------------------
def _named(function: Function, fresh: Fresh, wanted: Callable[[str], bool]) -> tuple[Function, set[str]]:
    """np.exp(x - np.max(x)) becomes largest = np.max(x); np.exp(x - largest). Also the new names."""
    made: set[str] = set()

    def block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for stmt in body:
            parts: dict[Expr, str] = {}

            def without(expr: Expr, parts: dict[Expr, str] = parts) -> Expr:
                expr = map_children(expr, without)
                if _extreme(expr) not in ("max", "min"):
                    return expr
                if expr not in parts:
                    parts[expr] = fresh("largest" if _extreme(expr) == "max" else "smallest")
                return Name(parts[expr], expr.type) if wanted(parts[expr]) else expr

            match stmt:
                case Assign(value=value) if _extreme(value):
                    pass  # it has a name
                case Assign() | Store() | Return():
                    stmt = map_stmt(stmt, without, block, lambda n: n)
                case _:
                    stmt = map_stmt(stmt, lambda e: e, block, lambda n: n)
            done += [*(Assign(name, part, stmt.span) for part, name in parts.items() if wanted(name)), stmt]
            made.update(parts.values())
        return tuple(done)

    return replace(function, body=block(function.body)), made


def _extreme(expr: Expr) -> str:
    """The operation, if it is a largest or a smallest element, or the larger of two."""
    if isinstance(expr, Call) and ROWS[expr.op].kind == "derivative":
        expr = expr.args[0]
    extremes = ("max", "min", "maximum", "minimum")
    return expr.op if isinstance(expr, Call) and expr.op in extremes and expr.type.is_float else ""


# -- which of them cancel ------------------------------------------------------------------------------------------
def _idle(function: Function, made: set[str]) -> frozenset[str]:
    """Taken as given at first, all of them: what of them is found to matter is taken back."""
    types: dict[str, Type] = {}
    makers: dict[str, set[str]] = {}
    other = {p.name for p in function.params}
    found = set(made)
    for stmt in walk_stmts(function.body):
        match stmt:
            case If(cond=cond, then=then, orelse=orelse):
                found |= names(cond) & {s.base.id for s in (*then, *orelse) if isinstance(s, Store)}
            case Store(base=base, value=value) if _extreme(value):
                found.add(base.id)
            case Assign(name=name, value=value):
                types.setdefault(name, value.type)
                if types[name] != value.type:
                    other.add(name)
                if _extreme(value):
                    found.add(name)
                    makers.setdefault(name, set()).update(names(value))
            case Pop(name=name) | For(var=name):
                other.add(name)
            case Pull(names=several):
                other |= set(several)
    found = {n for n in found - other if n in types and types[n].is_float}
    function = _with_wholes(_with_places(function), found)
    while found:
        walk_through = _Walk({n: types[n] for n in found}, set())
        walk_through.block(function.body, {_State()})
        if not walk_through.lost:
            return frozenset(found)
        found -= _behind(walk_through.lost, makers)
    return frozenset()


def _with_places(function: Function) -> Function:
    """With `dst[e]` for `t`, where a loop says `t = dst[e]`: places are compared as they are written."""
    count = Counter(s.name for s in walk_stmts(function.body) if isinstance(s, (Assign, Pop)))
    still = {p.name for p in function.params} - count.keys() | {n for n in count if count[n] == 1}
    still -= {s.base.id for s in walk_stmts(function.body) if isinstance(s, Store)}
    places: dict[str, Expr] = {}
    for stmt in walk_stmts(function.body):
        match stmt:
            case Assign(name=name, value=Index(base=Name(id=array), items=(At(index=Name()),)) as value):
                if count[name] == 1 and array in still and not value.type.is_float:
                    places[name] = value

    def put(expr: Expr) -> Expr:
        return places.get(expr.id, expr) if isinstance(expr, Name) else map_children(expr, put)

    def block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(map_stmt(stmt, put, block, lambda n: n) for stmt in body)

    return replace(function, body=block(function.body)) if places else function


def _with_wholes(function: Function, found: Set[str]) -> Function:
    """With `o[...] = o[d] * a` for `for d in range(D): o[d] = o[d] * a`: all elements grow alike there, and each once.

    For those who ask how values grow only: one element stands for all of them."""

    def block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for stmt in body:
            done += _of_elements(stmt) if isinstance(stmt, For) and not stored_in((stmt,)) & found else (stmt,)
            if done[-1:] == [stmt]:
                done[-1] = map_stmt(stmt, lambda e: e, block, lambda n: n)
        return tuple(done)

    return replace(function, body=block(function.body))


def _of_elements(loop: For) -> Sequence[Stmt]:
    """The body of a loop that goes over all elements of arrays, each on its own; the loop, if it does anything else."""
    arrays, stop = stored_in((loop,)), value_of(loop.stop)

    def is_own(items: Sequence[Item]) -> bool:
        return len(items) == 1 and isinstance(items[0], At) and value_of(items[0].index) == Dim.of(loop.var)

    def alone(expr: Expr) -> bool:
        match expr:
            case Name(id=id):
                return id not in arrays
            case Index(base=Name(id=id), items=items) if id in arrays:
                return is_own(items)
        return all(map(alone, children(expr)))

    done: list[Stmt] = []
    for stmt in loop.body:
        match stmt:
            case Store(base=base, items=items, value=value, op=op) if is_own(items) and base.type.shape == (stop,):
                value = construct.call(op, construct.index(base, items), value) if op else value
                done.append(Assign(base.id, construct.call("broadcast_to", value, shape=base.type.shape), stmt.span))
            case Assign():
                done.append(stmt)
            case _:
                return (loop,)
    carried = live_before(loop.body) & (assigned(loop.body) - arrays)
    single = loop.start == construct.const(0) and loop.step == 1 and not carried
    told = [e for s in loop.body for e in stmt_exprs(s)]
    chosen = any(isinstance(e, Call) and e.op == "where" for top in told for e in walk(top))  # for some elements only
    return done if arrays and single and not chosen and all(map(alone, told)) else (loop,)


def _behind(lost: set[str], makers: Mapping[str, set[str]]) -> set[str]:
    """With those that they are the larger of: to try them one by one takes long in a chain of maxima."""
    todo, found = list(lost), set(lost)
    while todo:
        more = makers.get(todo.pop(), set()) - found
        found |= more
        todo += more
    return found


@dataclass
class _Walk:
    chosen: Mapping[str, Type]  # the names that are tried
    lost: set[str]  # those of them that matter

    def block(self, body: Sequence[Stmt], states: set[_State]) -> set[_State]:
        for stmt in body:
            states = self._few(self._stmt(stmt, states))
        return states

    def _few(self, states: set[_State]) -> set[_State]:
        """Without those of origins that are lost, or that have too many."""
        alike: dict[tuple[str, frozenset[tuple[str, Growth]]], list[_State]] = {}
        for state in states:
            alike.setdefault((state.origin, state.strictly), []).append(state)
        # Of ways on which the same has grown, what all of them know: which arrays hold zeros.
        states = {replace(some[0], grown=frozenset.intersection(*(s.grown for s in some))) for some in alike.values()}
        self.lost |= {o for o, count in Counter(s.origin for s in states).items() if o and count > _MOST}
        return {s for s in states if s.origin not in self.lost}

    def _stmt(self, stmt: Stmt, states: set[_State]) -> set[_State]:
        match stmt:
            case If(then=then, orelse=orelse):
                return self.block(then, states) | self.block(orelse, states)
            case For(body=body) | While(body=body):
                counter = {stmt.var} if isinstance(stmt, For) else set[str]()
                found = todo = self._few(states)
                while todo:
                    for name in counter:
                        todo = {state.moved(name) for state in todo}
                    behind = self._few(self.block(body, todo))
                    self.lost |= {s.origin for s in behind if s.asked & counter}
                    known = self._few(found | behind)
                    found, todo = known, known - found
                return found
        return {after for state in states for after in self._one(stmt, state)}

    def _one(self, stmt: Stmt, state: _State) -> Iterable[_State]:
        """The states after a statement without blocks."""
        try:
            return list(self._after(stmt, state))
        except Lost:
            if not state.origin:  # nothing has grown: what was known of zeros is not worth more
                return [_State()] if state.grown else [state]
            self.lost.add(state.origin)
            return []

    def _after(self, stmt: Stmt, state: _State) -> Iterable[_State]:
        match stmt:
            case Assign(name=name) | Pop(name=name):
                state = state.moved(name)
            case Store(base=base):
                state = state.moved(base.id)
            case Pull(names=several):
                for name in several:
                    state = state.moved(name)
        known = dict(state.grown)
        if assigned((stmt,)) & state.asked:
            raise Lost  # the same question would be another one
        match stmt:
            case Assign(name=name) if name in self.chosen:
                yield state.given(name, None)
                if not state.origin:
                    yield self._grown(name, state)
            case Assign(name=name, value=value):
                yield state.given(name, growth(value, known))
            case Store(base=base) if base.id in self.chosen:
                yield from self._at_places(base.id, state)
            case Store(base=base, items=items, value=value, op=None) if is_whole(items):
                found = growth(value, known)
                yield state.given(base.id, found and replace(found, axes=found.at(base.type.rank)))
            case Store(base=base, value=value):
                yield state.given(base.id, stored(known.get(base.id), growth(value, known), stmt))
            case Push(value=value):
                stays(growth(value, known))
                yield state
            case Pop(name=name):
                yield state.given(name, None)
            case Pull():
                if read((stmt,)) & known.keys():
                    raise Lost
                yield state
            case Return(values=values):
                for value in values:
                    stays(growth(value, known))
            case _:
                yield state

    def _grown(self, name: str, state: _State) -> _State:
        axes = tuple(None if d.value == 1 else k for k, d in enumerate(self.chosen[name].shape))
        return replace(state, origin=name).given(name, Growth("sum", 1, axes))

    def _at_places(self, name: str, state: _State) -> Iterable[_State]:
        """Some elements are new, and grow on their own; c is anything, and so 0 there. What has grown with those that
        were there before does so no more with these."""
        if name in dict(state.grown) and any(n != name and g.times is not None for n, g in state.grown):
            raise Lost
        yield state
        if not state.origin:
            yield self._grown(name, state)
