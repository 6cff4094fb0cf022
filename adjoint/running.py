"""What a loop does with the largest so far: which number that is, which sums it scales, and what is left where the
largest is that of all.

    new = np.maximum(top, s)                          (`Update`)
    old = np.exp(top - new)
    total = total * old + np.exp(s - new)     ->      total = total + np.exp(s - top)          (`Sums`)
    top = new
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..transpile import construct
from ..transpile.construct import call
from ..transpile.dims import ZERO, Dim
from ..transpile.program import (
    Assign,
    Call,
    Expr,
    For,
    If,
    Index,
    Name,
    Stmt,
    Store,
    assigned,
    map_children,
    names,
    read,
    walk_stmts,
)
from ..transpile.renaming import map_stmt
from .stores import is_whole


class Other(Exception):
    """The loop is of another kind."""


@dataclass(frozen=True)
class Update:
    """`new = np.maximum(top, score)`, statement number `at` of a loop. `behind`: the number of `top = new`, or `at`."""

    at: int
    behind: int
    top: Name
    new: str
    score: Expr
    start: Dim
    extent: Dim  # how many scores there are


def update_of(loop: For) -> Update | None:
    """Where a loop makes a number the larger of itself and of something else."""
    start, extent = construct.value_of(loop.start), construct.trips(loop.start, loop.stop, 1)
    if loop.step != 1 or start is None or extent is None:
        return None
    count = Counter(s.name for s in walk_stmts(loop.body) if isinstance(s, Assign))
    for at, stmt in enumerate(loop.body):
        match stmt:
            case Assign(name=new, value=Call(op="maximum", args=args, type=type)) if not type.rank and type.is_float:
                for top, score in (args, args[::-1]):
                    if not isinstance(top, Name) or top.id in names(score) or count[new] != 1 or count[top.id] != 1:
                        continue
                    if top.id == new:
                        return Update(at, at, top, new, score, start, extent)
                    for behind, last in enumerate(loop.body[at + 1 :], at + 1):
                        match last:
                            case Assign(name=name, value=Name(id=id)) if (name, id) == (top.id, new):
                                return Update(at, behind, top, new, score, start, extent)
    return None


def _does_something(stmt: Stmt) -> bool:
    """Whether it does not only leave what there is where it is."""
    match stmt:
        case Assign(name=name, value=Name(id=id)):
            return name != id
        case Store(base=base, items=items, value=Index(base=Name(id=id), items=read), op=None) if base.id == id:
            return items != read and not (is_whole(items) and is_whole(read))
        case For(body=body):
            return any(map(_does_something, body))
    return True


# -- sums that nothing scales --------------------------------------------------------------------------------------
_TOP, _ONE = "the largest so far", "what scales"  # no names of a program


@dataclass
class Sums:
    """The body of a loop in which the largest so far is that of all. `scaled`: what it no longer scales; `ahead`: how
    many statements stand before the largest is known."""

    loop: For
    update: Update
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
                case _ if not _does_something(stmt):
                    pass
                case Assign(name=name, value=Name(id=id)) if id in (_TOP, _ONE, *self.scaled) and count[name] == 1:
                    self.aliases[name] = id
                case _:
                    done.append(stmt)
            for name in assigned((stmt,)) - self.moved:
                self.gone |= {alias for alias, id in self.aliases.items() if id == name}
                self.aliases = {alias: id for alias, id in self.aliases.items() if id != name}
        if read(tuple(done)) & {_TOP, _ONE, *self.gone, *self.aliases}:
            raise Other
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
                raise Other
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
                            raise Other
                        self.scaled.add(base.id)
                        return part
        return expr


# -- loops that scale in a branch ----------------------------------------------------------------------------------
def all_straight(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    done = (map_stmt(s, lambda e: e, all_straight, lambda n: n) for s in body)
    return tuple(straight(s) if isinstance(s, For) else s for s in done)


def straight(loop: For) -> For:
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
    update = Update(0, 0, top, largest.id, score, ZERO, ZERO)  # of one turn
    try:
        sums = Sums(replace(loop, body=(first, *lines)), update)
        left = sums.body()
    except Other:
        return []
    other = {s.name: s.value for s in branch.orelse if isinstance(s, Assign)}
    if other.pop(largest.id, None) != top:
        return []
    same = all(isinstance(value, Name) and sums.aliases.get(name) == value.id for name, value in other.items())
    return [first, *lines] if not left and same else []
