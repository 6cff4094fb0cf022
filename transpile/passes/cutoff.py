"""What is looked up along a line that is cut off at 0 is looked up at 0 before it, and along it behind.

    for c: asked = max(c - w, 0); check ...            if w >= 0:
           at[c] = asked                                   for c in 0..min(w, n): y[c] = -inf
    for c: y[c] = where(c >= w, x[at[c]] + v, -inf)  ->    for c in min(w, n)..n: y[c] = x[c - w] + v
                                                       else: (as it was)

Places that an array has are gathered one by one, and what is scattered to them is added one by one. Where the line ends
inside of what it is looked up in for sure, which the number w tells before the loop, none is out of range. What chooses
by the same line is told which side it is on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..dims import ANY, Atom, Dim, maximum, minimum, nonnegative
from ..ir import Check, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from .depend import Memory
from .fold import fold_body
from .guards import margins, told
from .questions import all_of, compared
from .ranges import conjuncts
from .tree import (
    Body,
    Names,
    accesses,
    buffers,
    dim_loads,
    map_all,
    map_bodies,
    map_expr,
    nest_anew,
    substitute,
    touched,
    written,
)


def cutoff(kernel: Kernel) -> Kernel:
    state = _Cutoff(kernel)
    body = state.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body) if state.found else kernel


@dataclass(frozen=True)
class _Line:
    """A line that is cut off at 0."""

    number: str  # the variable that says where it begins
    along: Dim  # over the loop's counter and the number
    loop: For

    def like(self, other: _Line) -> bool:
        along = other.along.subs({other.loop.var: Dim.of(self.loop.var)})
        bounds = (self.loop.lo, self.loop.hi) == (other.loop.lo, other.loop.hi)
        return bounds and (self.number, self.along) == (other.number, along)


@dataclass
class _Block:
    """Statements of a body that make places along one line, and look them up."""

    line: _Line
    made: set[str]  # arrays of places
    makers: set[int]  # the statements that make them
    ends: list[Dim]  # what must not be negative, for the places to be there
    count: int = 0  # of statements, up to the last one that looks up


class _Cutoff:
    def __init__(self, kernel: Kernel) -> None:
        self.names, self.table = Names.of(kernel), buffers(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
        self.found = False

    def body(self, body: Body, memory: Memory) -> Body:
        done: list[Stmt] = []
        at = 0
        while at < len(body):
            stmt = body[at]
            if block := self.block(body[at:]):
                done += self.versions(block, body[at : at + block.count], memory)
                self.found = True
                at += block.count
                continue
            inside = memory.inside(stmt) if isinstance(stmt, For) else memory
            done.append(map_bodies(stmt, lambda inner, m=inside: self.body(inner, m)))  # type: ignore[misc]
            at += 1
        return tuple(done)

    def line(self, loop: Stmt) -> tuple[Load, _Line, Body] | None:
        """Where a loop leaves max(line, 0), an array's place or a number of its own, the line, and what it does
        then."""
        match loop:
            case For(
                body=(
                    Store(
                        name,
                        index,
                        Op("maximum", (Op("subtract", (Int(along), Load(w, (), "i64"))), Const(0)))
                        | Op("maximum", (Const(0), Op("subtract", (Int(along), Load(w, (), "i64"))))),
                        None,
                    ),
                    *rest,
                ),
                kind="map",
            ) if index == ((Dim.of(loop.var),) if not rest else ()) and self.is_own(name) and w not in self.aliased:
                split = along.split(loop.var)
                if split is None or split[0] != Dim.of(1) or any(dim_loads(d) for d in (along, loop.lo, loop.hi)):
                    return None
                if rest and Counter(a.buffer for a in accesses(loop.body))[name] < self.uses[name]:
                    return None
                return Load(name, index, "i64"), _Line(w, along - Dim.of(f"{w}'"), loop), tuple(rest)
        return None

    def is_own(self, name: str) -> bool:
        return self.table[name].kind == "temp" and name not in self.aliased

    def block(self, rest: Body) -> _Block | None:
        first = self.line(rest[0])
        if first is None:
            return None
        block = _Block(first[1], set(), set(), [])
        for k, stmt in enumerate(rest):
            if not isinstance(stmt, For | Store) or block.line.number in written((stmt,)):
                break
            if self.makes(stmt, block):
                block.makers.add(k)
            elif block.made & touched((stmt,)):
                if not _goes_along(stmt, block):
                    return None
                block.count = k + 1
        used = Counter(a.buffer for a in accesses(rest[: block.count]))
        return block if block.count and all(used[name] in (0, self.uses[name]) for name in block.made) else None

    def makes(self, stmt: Stmt, block: _Block) -> bool:
        """Whether a loop makes such places, or asks whether they are there and leaves them, counted from the start."""
        line = self.line(stmt)
        if line is not None and block.line.like(line[1]):
            place, _, rest = line
            name = self.asks(rest, place, line[1].loop, block) if rest else place.buffer
            if name:
                block.made.add(name)
            return bool(name)
        match stmt:
            case For(body=(Check(), Store()) as body, kind="map") if (stmt.lo, stmt.hi) == _bounds(block):
                read = {a.buffer for a in accesses(body) if a.mode == "r"}
                if len(read) == 1 and read <= block.made:
                    if name := self.asks(body, Load(read.pop(), (Dim.of(stmt.var),), "i64"), stmt, block):
                        block.made.add(name)
                        return True
        return False

    def asks(self, body: Body, place: Load, loop: For, block: _Block) -> str | None:
        """The array in which it stores such a place when it has checked it, one below 0 counted from the end."""
        match body:
            case (
                Check(cond),
                Store(name, (here,), Op("where", (Op("less", (asked, Const(0))), _, other)), None),
            ) if self.is_own(name) and (here, asked, other) == (Dim.of(loop.var), place, place):
                ends = _ends(cond, place, block.line)
                block.ends += ends
                return name if ends else None
        return None

    def versions(self, block: _Block, body: Body, memory: Memory) -> Body:
        number = block.line.number
        facts = {**memory.facts, f"{number}'": ANY}
        new: list[Stmt] = []
        for k, stmt in enumerate(body):
            if k in block.makers:
                continue
            if isinstance(stmt, For) and block.made & touched((stmt,)):
                new += self.sides(stmt, block, replace(memory, facts=facts))
            else:
                new.append(nest_anew(stmt, self.names))
        back = {f"{number}'": Dim.of(Atom("load", (Load(number, (), "i64"),)))}
        asked = [d.subs(back) for d in dict.fromkeys(block.ends) if not nonnegative(d, facts)]
        known = substitute(tuple(new), back)
        return (If(all_of(compared("greater_equal", d, 0) for d in asked), known, body),) if asked else known

    def sides(self, loop: For, block: _Block, memory: Memory) -> Body:
        """A loop before the line, and one along it."""
        number = Load(block.line.number, (), "i64")
        body = map_all(loop.body, lambda e: Int(Dim.of(f"{number.buffer}'")) if e == number else e)
        line = block.line.along.subs({block.line.loop.var: Dim.of(loop.var)})
        facts = memory.inside(loop).facts
        middle = maximum(loop.lo, minimum(loop.hi, Dim.of(loop.var) - line, facts), facts)
        found: list[Stmt] = []
        for place, known, lo, hi in ((Dim.of(0), -1 - line, loop.lo, middle), (line, line, middle, loop.hi)):

            def there(e: Expr, place: Dim = place) -> Expr:
                return Int(place) if isinstance(e, Load) and e.buffer in block.made else e

            def chosen(e: Expr, known: Dim = known) -> Expr:
                return told(e, (known,), facts)

            here = fold_body(map_all(map_all(body, there), chosen))
            found.append(nest_anew(replace(loop, lo=lo, hi=hi, body=here), self.names))
        return tuple(found)


def _bounds(block: _Block) -> tuple[Dim, Dim]:
    return block.line.loop.lo, block.line.loop.hi


def _goes_along(stmt: Stmt, block: _Block) -> bool:
    """Whether a loop looks each of the places up in the iteration that it is of."""
    if not isinstance(stmt, For) or stmt.kind != "map" or not all(isinstance(s, Store) for s in stmt.body):
        return False
    asked = [a for a in accesses(stmt.body) if a.buffer in block.made]
    alike = all(a.mode == "r" and a.index == (Dim.of(stmt.var),) for a in asked)
    return alike and (stmt.lo, stmt.hi) == _bounds(block)


def _ends(cond: Expr, place: Load, line: _Line) -> list[Dim]:
    """What must not be negative, for the places to pass a check: of 0, and of the last one."""
    found: list[Dim] = []
    for at in (Dim.of(0), line.along.subs({line.loop.var: line.loop.hi - 1})):

        def there(e: Expr, at: Dim = at) -> Expr:
            return Int(at) if e == place else e

        for part in conjuncts(map_expr(cond, there)):
            margin = margins(part)
            if not margin or not isinstance(part, Op):
                return []
            if part.op in ("less", "less_equal"):  # none of them is below 0
                found += margin
    return found


__all__ = ["cutoff"]
