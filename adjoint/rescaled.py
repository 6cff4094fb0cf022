"""Sums that are scaled down whenever the largest element so far grows, as a softmax that goes over its scores once.

    top = -np.inf; total = 0.0                             top = -np.inf; total = 0.0; scores = np.empty(n)
    for j in range(n):                                     for k in range(n):
        s = f(j)                                               scores[k] = f(k)
        new = np.maximum(top, s)                               top = np.maximum(top, scores[k])
        old = np.exp(top - new)                   ->       for j in range(n):
        total = total * old + np.exp(s - new)                  total = total + np.exp(scores[j] - top)
        top = new

Each step waits for the one before, where sums could go together, and a gradient would go back through all of them.
What `shifts.py` has found not to matter may be any number: so all steps take the largest of all, and nothing is left to
scale down. `f` is computed twice where that is cheap, and else kept in a row.

NumPy's nan stays: it comes where the first of all scores is as infinite as what the loop begins with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from math import isfinite

from ..transpile import construct
from ..transpile.clean import clean, live_before
from ..transpile.construct import any_config, call, const
from ..transpile.dims import Dim, Facts, nonnegative
from ..transpile.iteration import bounds_of
from ..transpile.program import (
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
    Span,
    Stmt,
    Store,
    Type,
    assigned,
    map_children,
    names,
    stmt_exprs,
    walk,
    walk_stmts,
)
from ..transpile.renaming import map_stmt, rename_block, rename_expr
from ..transpile.values import Fresh
from .blocks import taken
from .running import Other, Sums, Update, all_straight, straight, update_of
from .shifts import without_shifts
from .values import cost

_CHEAP = 8  # flops: a score of no more is computed again


def by_final_largest(function: Function) -> Function:
    """The function with sums to the final largest, where that is what it returns."""
    if not any(update_of(straight(s)) for s in walk_stmts(function.body) if isinstance(s, For)):
        return function
    counts = [p.name for p in function.params if p.role == "config" and p.type.dtype == "int"]
    idle = without_shifts(replace(function, body=all_straight(function.body)))[1]
    state = _Rescaled(idle, Fresh(taken(function)), _reads(function.body))
    body = state.block(function.body, {name: any_config(name) for name in counts})
    return replace(function, body=clean(body, checks=True)) if state.found else function


@dataclass
class _Rescaled:
    idle: frozenset[str]
    fresh: Fresh
    reads: Counter[str]
    found: bool = False

    def block(self, body: Sequence[Stmt], facts: Facts) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for stmt in body:
            inside = {**facts, stmt.var: bounds_of(stmt)} if isinstance(stmt, For) else facts
            stmt = map_stmt(stmt, lambda e: e, lambda b, known=inside: self.block(b, known), lambda n: n)
            try:
                done += self._apart(stmt, done, facts)
            except Other:
                done.append(stmt)
        return tuple(done)

    def _apart(self, loop: Stmt, before: list[Stmt], facts: Facts) -> list[Stmt]:
        """The two loops that one becomes."""
        if not isinstance(loop, For):
            raise Other
        own = _reads((loop,))
        loop = straight(loop)
        update = update_of(loop)
        if update is None or update.new not in self.idle:
            raise Other
        if update.new != update.top.id and self.reads[update.new] != own[update.new]:
            raise Other  # it is read behind the loop
        if update.new != update.top.id and update.new in live_before(loop.body):
            raise Other  # or by the next turn
        sums = Sums(loop, update)
        body = sums.body()
        if not sums.scaled:
            raise Other
        largest, kept = self._largest(loop, update)
        if kept:
            assert isinstance(update.score, Name)
            body.insert(sums.ahead, Assign(update.score.id, kept, loop.span))
        begun = self._begun(loop, update, sums.scaled, before, largest, facts)
        self.found = True
        return [*begun, replace(loop, body=tuple(body))]

    def _largest(self, loop: For, update: Update) -> tuple[list[Stmt], Expr | None]:
        """The loop that finds the largest; and what the other one reads as the score, if it is not computed again."""
        top, score, span = update.top, update.score, loop.body[update.at].span
        body = clean(loop.body[: update.at], live=names(score))
        if live_before(body, names(score)) & assigned(loop.body):
            raise Other  # what is carried from step to step, or written for others
        made = {s.name for s in walk_stmts(body) if isinstance(s, Assign)}
        new = {name: self.fresh(name) for name in sorted(made)}  # counters run as they did
        body, score = tuple(rename_block(body, new)), rename_expr(score, new)
        if _is_cheap(body, score):
            return [replace(loop, body=(*body, _grown(top, score, span)))], None
        if not isinstance(update.score, Name) or update.score.type.is_weak:
            raise Other
        row = Name(self.fresh("scores"), Type(score.type.dtype, (update.extent,)))
        place = (At(construct.dim(Dim.of(loop.var) - update.start)),)
        begun = Assign(row.id, call("empty", shape=row.type.shape, dtype=row.type.dtype), span)
        kept = construct.index(row, place)
        body = (*body, Store(row, place, score, span=span), _grown(top, kept, span))
        return [begun, replace(loop, body=body)], kept

    def _begun(
        self,
        loop: For,
        update: Update,
        scaled: Set[str],
        before: list[Stmt],
        largest: Sequence[Stmt],
        facts: Facts,
    ) -> list[Stmt]:
        """What finds the largest, and what sums that do not begin with zeros begin with; what is `before` goes by other
        names then."""
        top, span = update.top, loop.body[update.at].span
        begun = {name: _begun_with(name, before) for name in (top.id, *sorted(scaled))}
        sums = [name for name in sorted(scaled) if not _is_zero(begun[name])]
        types = {n.id: n.type for s in loop.body for e in stmt_exprs(s) for x in walk(e) if isinstance(n := x, Name)}
        if any(types[name].rank for name in sums):
            raise Other
        finite = _is_finite(begun[top.id])
        if finite and not sums:
            return list(largest)
        changed = sums if finite else [top.id, *sums]
        if any(begun[name] is None for name in changed):
            raise Other
        ahead = {name: self.fresh(name) for name in changed}  # what they are before: a name means one value
        before[:] = rename_block(before, ahead)
        first, named = _constant(begun[top.id]), list[Stmt]()
        if first is None:
            first = Name(self.fresh("first"), top.type)
            named = [Assign(first.id, Name(ahead.get(top.id, top.id), top.type), span)]
        told: dict[str, Expr] = {}
        if not finite:
            # exp of 0 or less, but nan where both are -inf: 0 times that is nothing, or nan.
            lost = call("exp", call("subtract", first, call("maximum", first, _first_score(largest, loop, update))))
            told[top.id] = call("add", Name(ahead[top.id], top.type), call("multiply", const(0.0), lost))
        for name in sums:
            value = Name(ahead[name], types[name])
            told[name] = call("multiply", value, call("exp", call("subtract", first, top)))
        lines = [Assign(name, construct.convert(value, types[name]), span) for name, value in told.items()]
        if finite or nonnegative(update.extent - 1, facts):
            return [*named, *rename_block(largest, ahead), *lines]
        none = tuple(Assign(name, Name(ahead[name], types[name]), span) for name in told)
        asked = If(call("greater", construct.dim(update.extent), const(0)), tuple(lines), none, span)
        return [*named, *rename_block(largest, ahead), asked]


def _reads(body: Sequence[Stmt]) -> Counter[str]:
    """How many expressions read each name."""
    return Counter(name for s in walk_stmts(tuple(body)) for e in stmt_exprs(s) for name in names(e))


def _grown(top: Name, score: Expr, span: Span) -> Stmt:
    return Assign(top.id, construct.convert(call("maximum", top, score), top.type), span)


def _is_cheap(body: Sequence[Stmt], score: Expr) -> bool:
    """Whether it is computed again: numbers made of numbers."""
    if not all(isinstance(s, Assign) and not s.value.type.rank for s in body):
        return False
    return sum(cost(e) for s in body for e in stmt_exprs(s)) + cost(score) <= _CHEAP


def _first_score(largest: Sequence[Stmt], loop: For, update: Update) -> Expr:
    """What the loop that finds the largest compares first."""
    found = largest[-1]
    assert isinstance(found, For)
    *made, last = found.body
    assert isinstance(last, Assign)
    assert isinstance(last.value, Call)
    score = last.value.args[1]
    if isinstance(score, Index) and any(isinstance(s, Store) for s in made):
        return construct.index(score.base, (At(const(0)),))
    parts = dict[str, Expr]()

    def begun(expr: Expr) -> Expr:
        if (value := construct.value_of(expr)) is not None:
            return construct.dim(value.subs({loop.var: update.start}))
        return parts.get(expr.id, expr) if isinstance(expr, Name) else map_children(expr, begun)

    for stmt in made:
        assert isinstance(stmt, Assign)
        parts[stmt.name] = begun(stmt.value)
    return begun(score)


def _begun_with(name: str, before: Sequence[Stmt]) -> Expr | None:
    """What a name was given in front of a loop, where nothing has been done with it since."""
    for stmt in reversed(before):
        if name in assigned((stmt,)):
            return stmt.value if isinstance(stmt, Assign) else None
    return None


def _is_zero(expr: Expr | None) -> bool:
    match expr:
        case Const(value=value):
            return value == 0
        case Call(op="zeros" | "zeros_like"):
            return True
    return False


def _constant(expr: Expr | None) -> Expr | None:
    """The expression, if it is a number or minus one."""
    match expr:
        case Const() | Call(op="negative", args=[Const()]):
            return expr
    return None


def _is_finite(expr: Expr | None) -> bool:
    if isinstance(expr, Call) and _constant(expr):
        expr = expr.args[0]
    return isinstance(expr, Const) and isfinite(expr.value)
