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
from dataclasses import dataclass, field, replace
from math import isfinite

from ..transpile import construct
from ..transpile.clean import clean, live_before
from ..transpile.construct import Proofs, any_config, call, const
from ..transpile.dims import Dim, Facts
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
    read,
    stmt_exprs,
    walk,
    walk_stmts,
)
from ..transpile.renaming import map_stmt, rename_block, rename_expr
from ..transpile.values import Fresh
from .blocks import taken
from .shifts import without_shifts
from .stores import is_whole
from .values import cost

_CHEAP = 8  # flops: a score of no more is computed again


def by_final_largest(function: Function) -> Function:
    """The function with sums to the final largest, where that is what it returns."""
    if not any(_update(_straight(s)) for s in walk_stmts(function.body) if isinstance(s, For)):
        return function
    counts = [p.name for p in function.params if p.role == "config" and p.type.dtype == "int"]
    idle = without_shifts(replace(function, body=_all_straight(function.body)))[1]
    state = _Rescaled(idle, Fresh(taken(function)), _reads(function.body))
    body = state.block(function.body, {name: any_config(name) for name in counts})
    return replace(function, body=clean(body, checks=True)) if state.found else function


class _Other(Exception):
    """The loop is of another kind."""


@dataclass(frozen=True)
class _Update:
    """`new = np.maximum(top, score)`, statement number `at` of a loop. `behind`: the number of `top = new`, or `at`."""

    at: int
    behind: int
    top: Name
    new: str
    score: Expr


def _update(loop: For) -> _Update | None:
    """Where a loop makes a number the larger of itself and of something else."""
    if loop.step != 1 or construct.trips(loop.start, loop.stop, 1) is None:
        return None
    count = Counter(s.name for s in walk_stmts(loop.body) if isinstance(s, Assign))
    for at, stmt in enumerate(loop.body):
        match stmt:
            case Assign(name=new, value=Call(op="maximum", args=args, type=type)) if not type.rank and type.is_float:
                for top, score in (args, args[::-1]):
                    if not isinstance(top, Name) or top.id in names(score) or count[new] != 1 or count[top.id] != 1:
                        continue
                    if top.id == new:
                        return _Update(at, at, top, new, score)
                    for behind, last in enumerate(loop.body[at + 1 :], at + 1):
                        match last:
                            case Assign(name=name, value=Name(id=id)) if (name, id) == (top.id, new):
                                return _Update(at, behind, top, new, score)
    return None


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
            except _Other:
                done.append(stmt)
        return tuple(done)

    def _apart(self, loop: Stmt, before: list[Stmt], facts: Facts) -> list[Stmt]:
        """The two loops that one becomes."""
        if not isinstance(loop, For):
            raise _Other
        own = _reads((loop,))
        loop = _straight(loop)
        update = _update(loop)
        if update is None or update.new not in self.idle:
            raise _Other
        if update.new != update.top.id and self.reads[update.new] != own[update.new]:
            raise _Other  # it is read behind the loop
        if update.new != update.top.id and update.new in live_before(loop.body):
            raise _Other  # or by the next turn
        sums = _Sums(loop, update)
        body = sums.body()
        if not sums.scaled:
            raise _Other
        largest, kept = self._largest(loop, update)
        if kept:
            assert isinstance(update.score, Name)
            body.insert(sums.ahead, Assign(update.score.id, kept, loop.span))
        begun = self._begun(loop, update, sums.scaled, before, largest, facts)
        self.found = True
        return [*begun, replace(loop, body=tuple(body))]

    def _largest(self, loop: For, update: _Update) -> tuple[list[Stmt], Expr | None]:
        """The loop that finds the largest; and what the other one reads as the score, if it is not computed again."""
        top, score, span = update.top, update.score, loop.body[update.at].span
        body = clean(loop.body[: update.at], live=names(score))
        if live_before(body, names(score)) & assigned(loop.body):
            raise _Other  # what is carried from step to step, or written for others
        made = {s.name for s in walk_stmts(body) if isinstance(s, Assign)}
        new = {name: self.fresh(name) for name in sorted(made)}  # counters run as they did
        body, score = tuple(rename_block(body, new)), rename_expr(score, new)
        if _is_cheap(body, score):
            return [replace(loop, body=(*body, _grown(top, score, span)))], None
        if not isinstance(update.score, Name) or update.score.type.is_weak:
            raise _Other
        extent = construct.trips(loop.start, loop.stop, 1)
        assert extent is not None
        row = Name(self.fresh("scores"), Type(score.type.dtype, (extent,)))
        place = (_place(loop),)
        begun = Assign(row.id, call("empty", shape=row.type.shape, dtype=row.type.dtype), span)
        kept = construct.index(row, place)
        body = (*body, Store(row, place, score, span=span), _grown(top, kept, span))
        return [begun, replace(loop, body=body)], kept

    def _begun(
        self,
        loop: For,
        update: _Update,
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
            raise _Other
        finite = _is_finite(begun[top.id])
        if finite and not sums:
            return list(largest)
        changed = sums if finite else [top.id, *sums]
        if any(begun[name] is None for name in changed):
            raise _Other
        ahead = {name: self.fresh(name) for name in changed}  # what they are before: a name means one value
        before[:] = rename_block(before, ahead)
        first, named = _constant(begun[top.id]), list[Stmt]()
        if first is None:
            first = Name(self.fresh("first"), top.type)
            named = [Assign(first.id, Name(ahead.get(top.id, top.id), top.type), span)]
        told: dict[str, Expr] = {}
        if not finite:
            # exp of 0 or less, but nan where both are -inf: 0 times that is nothing, or nan.
            lost = call("exp", call("subtract", first, call("maximum", first, _first_score(largest, loop))))
            told[top.id] = call("add", Name(ahead[top.id], top.type), call("multiply", const(0.0), lost))
        for name in sums:
            value = Name(ahead[name], types[name])
            told[name] = call("multiply", value, call("exp", call("subtract", first, top)))
        lines = [Assign(name, construct.convert(value, types[name]), span) for name, value in told.items()]
        extent = construct.trips(loop.start, loop.stop, 1)
        assert extent is not None
        if finite or Proofs(facts, _unguarded).proven(extent - 1):
            return [*named, *rename_block(largest, ahead), *lines]
        none = tuple(Assign(name, Name(ahead[name], types[name]), span) for name in told)
        asked = If(call("greater", construct.dim(extent), const(0)), tuple(lines), none, span)
        return [*named, *rename_block(largest, ahead), asked]


def _unguarded(dim: Dim, message: str) -> None:
    """Nothing is checked at the call."""


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


def _place(loop: For) -> At:
    start = construct.value_of(loop.start)
    assert start is not None
    return At(construct.dim(Dim.of(loop.var) - start))


def _first_score(largest: Sequence[Stmt], loop: For) -> Expr:
    """What the loop that finds the largest compares first."""
    found = largest[-1]
    assert isinstance(found, For)
    *made, last = found.body
    assert isinstance(last, Assign)
    assert isinstance(last.value, Call)
    score = last.value.args[1]
    if isinstance(score, Index) and any(isinstance(s, Store) for s in made):
        return construct.index(score.base, (At(const(0)),))
    start, parts = construct.value_of(loop.start), dict[str, Expr]()
    assert start is not None

    def begun(expr: Expr) -> Expr:
        if (value := construct.value_of(expr)) is not None:
            return construct.dim(value.subs({loop.var: start}))
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


def does_something(stmt: Stmt) -> bool:
    """Whether it does not only leave what there is where it is."""
    match stmt:
        case Assign(name=name, value=Name(id=id)):
            return name != id
        case Store(base=base, items=items, value=Index(base=Name(id=id), items=read), op=None) if base.id == id:
            return items != read and not (is_whole(items) and is_whole(read))
        case For(body=body):
            return any(map(does_something, body))
    return True


# -- sums that nothing scales --------------------------------------------------------------------------------------
_TOP, _ONE = "the largest so far", "what scales"  # no names of a program


@dataclass
class _Sums:
    """The body of a loop in which the largest so far is that of all. `scaled`: what it no longer scales; `ahead`: how
    many statements stand before the largest is known."""

    loop: For
    update: _Update
    scaled: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)  # names for what a sum was, once it has grown
    moved: set[str] = field(default_factory=set)  # sums that have grown by another name
    old: str = ""  # what the largest so far goes by
    ahead: int = 0

    def body(self) -> list[Stmt]:
        update, done = self.update, list[Stmt]()
        count = Counter(s.name for s in walk_stmts(self.loop.body) if isinstance(s, Assign))
        for place, stmt in enumerate(self.loop.body):
            if place == update.at:
                self.ahead = len(done)
            if place in (update.at, update.behind):
                continue
            self.old = update.top.id if update.new != update.top.id or place < update.at else ""
            stmt = self._stmt(stmt)
            match stmt:
                case _ if not does_something(stmt):
                    pass
                case Assign(name=name, value=Name(id=id)) if id in (_TOP, _ONE, *self.scaled) and count[name] == 1:
                    self.aliases[name] = id
                case _:
                    done.append(stmt)
            for name in assigned((stmt,)) - self.moved:
                self.gone |= {alias for alias, id in self.aliases.items() if id == name}
                self.aliases = {alias: id for alias, id in self.aliases.items() if id != name}
        if read(tuple(done)) & {_TOP, _ONE, *self.gone, *self.aliases}:
            raise _Other
        return done

    def _stmt(self, stmt: Stmt) -> Stmt:
        stmt = map_stmt(stmt, self._expr, lambda block: tuple(map(self._stmt, block)), lambda n: n)
        match stmt:
            case Store(base=base) if base.id in self.aliases:
                self.moved.add(self.aliases[base.id])
                return replace(stmt, base=replace(base, id=self.aliases[base.id]))
            case Assign(name=name) if name in self.moved:
                self.moved.remove(name)
        return stmt

    def _expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Name):
            if expr.id in self.moved:
                raise _Other
            if expr.id == self.old:
                return replace(expr, id=_TOP)
            if expr.id == self.update.new:
                return replace(expr, id=self.update.top.id)
            return replace(expr, id=self.aliases.get(expr.id, expr.id))
        expr = map_children(expr, self._expr)
        match expr:
            case Call(op="exp", args=[Call(op="subtract", args=[Name(id=old), Name(id=new)])]):
                if (old, new) == (_TOP, self.update.top.id):
                    return Name(_ONE, expr.type)
            case Call(op="multiply", args=[a, b]):
                for part, by in ((a, b), (b, a)):
                    if by == Name(_ONE, by.type) and part.type == expr.type:
                        base = part.base if isinstance(part, Index) else part
                        if not isinstance(base, Name):
                            raise _Other
                        self.scaled.add(base.id)
                        return part
        return expr


# -- loops that scale in a branch ----------------------------------------------------------------------------------
def _all_straight(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    done = (map_stmt(s, lambda e: e, _all_straight, lambda n: n) for s in body)
    return tuple(_straight(s) if isinstance(s, For) else s for s in done)


def _straight(loop: For) -> For:
    """The loop with `new = np.maximum(top, s); sums *= np.exp(top - new)` for

        if s > top:
            sums *= np.exp(top - s)
            top = s

    where the branch does nothing else: with s not above top it scales by 1."""
    for at, stmt in enumerate(loop.body):
        if isinstance(stmt, If) and (lines := _lines(loop, stmt)):
            return replace(loop, body=(*loop.body[:at], *lines, *loop.body[at + 1 :]))
    return loop


def _lines(loop: For, branch: If) -> list[Stmt]:
    """What a branch does, as lines that are always gone through. None where it is of another kind."""
    match branch.cond:
        case Call(op="greater" | "greater_equal", args=[score, Name() as top]):
            pass
        case Call(op="less" | "less_equal", args=[Name() as top, score]):
            pass
        case _:
            return []
    new = [s.name for s in branch.then if isinstance(s, Assign) and s.value == score]
    if len(new) != 1 or top.type.rank or not all(isinstance(s, Assign) for s in branch.orelse):
        return []
    largest = Name(new[0], top.type)

    def told(expr: Expr) -> Expr:
        match expr:
            case Call(op="subtract", args=[a, b]) if (a, b) == (top, score):
                return call("subtract", top, largest)
        return map_children(expr, told)

    def block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(map_stmt(s, told, block, lambda n: n) for s in body)

    lines = block([s for s in branch.then if not (isinstance(s, Assign) and s.name == largest.id)])
    first = Assign(largest.id, construct.convert(call("maximum", top, score), top.type), branch.span)
    update = _Update(0, 0, top, largest.id, score)
    try:
        sums = _Sums(replace(loop, body=(first, *lines)), update)
        left = sums.body()
    except _Other:
        return []
    other = {s.name: s.value for s in branch.orelse if isinstance(s, Assign)}
    if other.pop(largest.id, None) != top:
        return []
    same = all(isinstance(value, Name) and sums.aliases.get(name) == value.id for name, value in other.items())
    return [first, *lines] if not left and same else []
