"""Local derivatives of what iterates, made in the forward along with the values.

A loop that has few inputs and results would leave to the pullback what each turn made, or run all of them again there.
But where all it does is of elements, what comes back through a result is one number an element times a derivative by
each input: the forward makes those (see tangents.py), and the pullback multiplies. (Preaccumulation: Griewank and
Walther, Evaluating Derivatives, 2nd ed., ch. 10.)

    before:  for i in range(N):                after:  for i in range(N):
                 w = start(x[i])                           w_by_x = ...; w_2 = start(x[i])
                 while far(w):                             while far(w_2):
                     w = step(w, x[i])                         w_by_x = ...; w_2 = step(w_2, x[i])
                 y[i] = w                                  slope[i] = w_by_x
                                                           y[i] = with_derivative(w_2, slope[i] * x[i])

The adjoint of what is written so is the pullback; `with_derivative` is gone after it (see primal.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from math import inf

from ..transpile import construct
from ..transpile.clean import live_before
from ..transpile.program import (
    Assign,
    At,
    Call,
    Expr,
    For,
    Function,
    If,
    Name,
    Return,
    Stmt,
    Store,
    While,
    names,
    stmt_exprs,
    walk_stmts,
)
from ..transpile.values import Fresh
from .activity import active_names, flows
from .blocks import taken
from .loops import DEAR, costs
from .rooms import most_trips, position, room
from .tangents import Piece, Tangents

MOST = 4  # derivatives and values: of more, what they are made of may be less


@dataclass(frozen=True)
class Ahead:
    """A function that makes derivatives beside what iterates."""

    function: Function
    idle: frozenset[str]  # names that no derivative flows through any more
    slopes: frozenset[str]  # those that hold the derivatives of an example


def preaccumulated(function: Function) -> Ahead | None:
    """None where nothing iterates so."""
    search = _Search(Fresh(taken(function)), function, active_names(function, function.body))
    body = search.block(function.body, (), set())
    if not search.idle:
        return None
    return Ahead(replace(function, body=(*search.rooms, *body)), frozenset(search.idle), frozenset(search.slopes))


@dataclass(frozen=True)
class _View:
    """Statements of a block, from one to before another, and what they would leave to the pullback."""

    first: int
    last: int
    piece: Piece
    results: Mapping[str, bool]  # each with whether its value is asked for behind them

    @property
    def slopes(self) -> int:
        return sum(len(self.piece.depends[r]) for r in self.results)

    @property
    def left(self) -> tuple[float, int]:
        asked = sum(self.results.values())
        return (self.slopes + asked if self.slopes else inf), asked


@dataclass
class _Views:
    """Of one block."""

    body: Sequence[Stmt]
    active: Set[str]
    live: Set[str]  # behind it

    def around(self, k: int) -> _View | None:
        """The statements around one that leave the least, and of those that do as many as can be: from which on, then
        to which, and once more from which on, as there may be fewer results."""
        view = _least(self.of(first, k + 1) for first in range(k, -1, -1))
        view = view and _least(self.of(view.first, last) for last in range(k + 1, len(self.body) + 1))
        view = view and _least(self.of(first, view.last) for first in range(k, -1, -1))
        return view if view and view.left[0] <= MOST and _pays(view.piece, view.slopes) else None

    def of(self, first: int, last: int) -> _View | None:
        behind = self.body[last:]
        live = live_before(behind, self.live)
        piece = Piece.of(self.body[first:last], self.active, live)
        if piece is None:
            return None
        return _View(first, last, piece, {r: _is_asked(r, behind) for r in piece.results(live)})


def _least(views: Iterable[_View | None]) -> _View | None:
    best: _View | None = None
    for view in views:
        if view is None:
            break
        if best is None or view.left <= best.left:
            best = view
    return best


def _active_in(body: Sequence[Stmt], active: Set[str]) -> Set[str]:
    """With the names that parts of a block have been given."""
    return active | {s.name for s in body if isinstance(s, Assign) and flows(s.value) & active}


@dataclass
class _Search:
    fresh: Fresh
    function: Function
    active: Set[str]
    rooms: list[Stmt] = field(default_factory=list)
    idle: set[str] = field(default_factory=set)
    slopes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        params = self.function.params
        sizes = {s for p in params for d in p.type.shape for s in d.symbols()}
        self.sizes = sizes | {p.name for p in params if p.role == "config"}  # that a call tells

    def block(self, body: Sequence[Stmt], around: tuple[For, ...], live: Set[str]) -> tuple[Stmt, ...]:
        """`live`: names that are read behind it."""
        parted = self.parted(body)
        views = _Views(parted, _active_in(parted, self.active), live)
        for k, stmt in enumerate(parted):
            if _runs_long(stmt) and (view := views.around(k)):
                before, behind = parted[: view.first], parted[view.last :]
                return (
                    *self.block(before, around, live_before(parted[view.first :], live)),
                    *self.spliced(view, around),
                    *self.block(behind, around, live),
                )
        return tuple(self.inside(s, around, live_before(body[k + 1 :], live)) for k, s in enumerate(body))

    def inside(self, stmt: Stmt, around: tuple[For, ...], live: Set[str]) -> Stmt:
        if not _runs_long(stmt):
            return stmt
        match stmt:
            case If(then=then, orelse=orelse):
                return replace(stmt, then=self.block(then, around, live), orelse=self.block(orelse, around, live))
            case For() if (trips := most_trips(stmt)) is not None and trips.symbols() <= self.sizes:
                return replace(stmt, body=self.block(stmt.body, (*around, stmt), live | live_before([stmt], live)))
        return stmt

    def parted(self, body: Sequence[Stmt]) -> list[Stmt]:
        """With names for what is stored, added up or returned."""
        done: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Store(value=value):
                    stmt = replace(stmt, value=self.part("value", value, done))
                case Assign(name=name, value=Call(op="add", args=[Name(id=old), term]) as add) if name == old:
                    stmt = replace(stmt, value=replace(add, args=(add.args[0], self.part("term", term, done))))
                case Return(values=values):
                    stmt = replace(stmt, values=tuple(self.part("result", v, done) for v in values))
            done.append(stmt)
        return done

    def part(self, hint: str, value: Expr, done: list[Stmt]) -> Expr:
        if not isinstance(value, Call) or not flows(value) & self.active:
            return value
        name = self.fresh(hint)
        done.append(Assign(name, value))
        return Name(name, value.type)

    def spliced(self, view: _View, around: tuple[For, ...]) -> list[Stmt]:
        """The piece with its tangents, which it leaves, and what they say of its results."""
        piece, results = view.piece, view.results
        tangents = Tangents(piece, self.fresh)
        given: dict[Expr, Expr] = {i: i for i in piece.inputs}
        before: list[Stmt] = []
        for i in piece.inputs:
            if isinstance(i, Name) and i.id in results:  # what it was is asked for behind it
                old = Name(self.fresh(i.id), i.type)
                given[i] = old
                before.append(Assign(old.id, i))
        body = tangents.written()
        self.idle |= tangents.made
        kept: list[Stmt] = []
        ends: list[Stmt] = []
        for result, asked in results.items():
            made = Name(tangents.renamed[result], tangents.types[result])
            value = self.left(made, "kept", around, kept) if asked and around else made
            terms = []
            for i in piece.of_name(result):
                slope: Expr = tangents.tangent[result, i]
                if isinstance(slope, Name):
                    slope = self.left(slope, "slope", around, kept) if around else slope
                    self.slopes |= names(slope) - {loop.var for loop in around}
                terms.append(construct.call("multiply", slope, given[i]))
            of = reduce(partial(construct.call, "add"), terms)
            ends.append(Assign(result, construct.call("with_derivative", value, of)))
        return [*before, *body, *kept, *ends]

    def left(self, value: Name, hint: str, around: tuple[For, ...], kept: list[Stmt]) -> Expr:
        """A value in a room of its own, one for each turn of the loops around."""
        counts = [n for loop in around if (n := most_trips(loop)) is not None]
        array, made = room(self.fresh(f"{hint}_{value.id}"), value.type, counts)
        place = construct.complete(array, [At(position(loop)) for loop in around])
        self.rooms.append(made)
        self.idle.add(array.id)
        kept.append(Store(array, place, value))
        return construct.index(array, place)


def _is_asked(name: str, behind: Sequence[Stmt]) -> bool:
    """Whether the adjoint may ask for its value: it does not where that is handed on or added up, unless it asks for
    the sum."""
    seen, todo = {name}, [name]
    while todo:
        name = todo.pop()
        for stmt in walk_stmts(tuple(behind)):
            if any(name in names(e) and not _hands_on(e, name) for e in stmt_exprs(stmt)):
                return True
            if isinstance(stmt, Assign) and name in names(stmt.value) and stmt.name not in seen:
                seen.add(stmt.name)
                todo.append(stmt.name)
    return False


def _hands_on(expr: Expr, name: str) -> bool:
    match expr:
        case Name():
            return True
        case Call(op="add" | "subtract" | "negative", args=args):
            return all(_hands_on(a, name) for a in args if name in names(a))
    return False


def _pays(piece: Piece, slopes: int) -> bool:
    """Whether all turns would leave more to the pullback."""
    for stmt in walk_stmts(piece.body):
        if isinstance(stmt, For) and _is_dear(stmt):
            count = most_trips(stmt)
            return count is None or count.value is None or count.value > slopes
    whiles = [s for s in walk_stmts(piece.body) if isinstance(s, While)]
    return any(_is_dear(s) for s in whiles) or (bool(whiles) and not any(i.type.rank for i in piece.inputs))


def _runs_long(stmt: Stmt) -> bool:
    """Whether there is a loop in it that nobody wants to run again."""
    return any(isinstance(s, While) or (isinstance(s, For) and _is_dear(s)) for s in walk_stmts((stmt,)))


def _is_dear(loop: For | While) -> bool:
    return any(costs(e) >= DEAR for s in walk_stmts(loop.body) for e in stmt_exprs(s))


__all__ = ["preaccumulated"]
