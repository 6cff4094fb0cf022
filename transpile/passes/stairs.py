"""A triangle goes in steps: what the rows of one have in common is a rectangle, its sums products of matrices.

    for i in 0..T:                                  for step: for row in 0..min(16, T - 16*step):
        for j in 0..i+1:                                for j in 0..16*step+1:
            for d: s[j] += q[i,d] * k[j,d]      ->          for d: s[j] += q[16*step+row,d] * k[j,d]
                                                        for j in 16*step+1..16*step+row+1: ...

So goes the past that an attention in loops looks at, a band around a diagonal, and pairs each of which is taken once.
Nothing is computed that was not: what lies beyond a triangle may be no number. Part of fission, which parts the loop
over the rows around the rectangles.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..dims import ZERO, Atom, Dim, Facts, largest, maximum, minimum, nonnegative
from ..ir import For, Stmt
from .addends import addends
from .nests import State, axes_of, widened
from .order import perfect
from .tree import Body, Names, accesses, map_bodies, map_stmts, nest_anew, rename_buffers, substitute, walk

HEIGHT = 16  # rows of a step, as many as a tile of a product has: of more, more would be left beside the rectangle
SIZE, ELEMENTS = Dim.of("+"), Dim.of("+elements")  # sides of a square: of one that ends at a size, and of others
LONG = 4 * HEIGHT  # rows known to be shorter are mostly what is left


class Stairs(State):
    """Makes steps of loops around triangles in which there are sums of products."""

    def done(self, loop: For, around: tuple[For, ...]) -> Body:
        was, length = loop, (loop.hi - loop.lo).value
        sized = {n for n, b in self.table.items() if any(loop.var in d.symbols() for d in b.shape)}
        if (length is not None and length < LONG) or sized & self.fixed:
            return (loop,)
        loop = replace(loop, body=map_stmts(loop.body, partial(_numbered_alone, loop.var)))
        inside = (*around, loop)
        facts = {x.var: (x.lo, x.hi - 1) for x in inside}
        sides = {s.var for s in walk(loop.body) if isinstance(s, For) and _is_side(s, loop.var, facts)}
        squared = map_stmts(loop.body, partial(_squared, sides, loop.var))
        found = self.in_products(squared, inside, sides) if sides else set()
        if not found:
            return (was,)
        steps = self.in_steps(loop, found, sized)
        self.uses.update(a.buffer for a in accesses((steps,)))
        self.uses.subtract(a.buffer for a in accesses((loop,)))
        return (steps,)

    def in_products(self, body: Body, around: tuple[For, ...], sides: set[str], rows: int = -1) -> set[str]:
        """The sides of a triangle that are loops of products of matrices, of which the last loop `around` is an axis,
        too, were it a square."""
        rows %= len(around)
        found = set[str]()
        for stmt in body:
            if isinstance(stmt, For) and stmt.kind == "map":
                terms = addends(stmt, self.private(stmt), Names(self.names.taken)) or (stmt,)
                wide = widened(terms, [(x, self.own(x) - self.sums) for x in around])
                row = around[rows].var
                if any(row in axes_of(around, term) and not _is_window(around, term, row) for term in wide):
                    found |= sides & {x.var for x in (*around, *perfect(stmt)[0])}
                else:
                    found |= self.in_products(stmt.body, (*around, stmt), sides, rows)
        return found

    def in_steps(self, loop: For, found: set[str], sized: set[str]) -> For:
        """`sized`: the arrays whose sizes the row says."""
        step, row = self.names.fresh("step"), self.names.fresh(loop.var)
        length, first = loop.hi - loop.lo, Dim.of(step) * HEIGHT
        height = minimum(Dim.of(HEIGHT), length - first)
        steps = (length + (HEIGHT - 1)) // HEIGHT
        moved = {loop.var: loop.lo + first + Dim.of(row)}
        body = substitute(loop.body, moved)
        facts = {step: (ZERO, steps - 1), row: (ZERO, height - 1)}
        for name in sized:
            shape = tuple(largest(d.subs(moved), facts) for d in self.table[name].shape)
            self.table[name] = replace(self.table[name], shape=shape)
        return For(step, ZERO, steps, (For(row, ZERO, height, self.split(body, found, row, facts)),))

    def split(self, body: Body, found: set[str], row: str, facts: Facts) -> Body:
        """With the loops that were found in parts: what comes before the rectangle, the rectangle, what comes after."""
        return tuple(
            new
            for stmt in body
            for new in (
                self.parts(stmt, row, facts)
                if isinstance(stmt, For) and stmt.var in found
                else (map_bodies(stmt, lambda inner: self.split(inner, found, row, facts)),)
            )
        )

    def parts(self, loop: For, row: str, facts: Facts) -> Body:
        over = {row: facts[row]}
        begin = largest(loop.lo, over)
        end = maximum(begin, -largest(-loop.hi, over), facts)
        ends = [(begin, end)]
        if row in loop.hi.symbols():
            end = begin + (end - begin) // HEIGHT * HEIGHT  # whole tiles
            ends = [(begin, end), (end, loop.hi)]
        if row in loop.lo.symbols():
            ends.insert(0, (loop.lo, minimum(begin, loop.hi, facts)))
        return tuple(self.anew(replace(loop, lo=lo, hi=hi)) for lo, hi in ends)

    def anew(self, loop: For) -> For:
        """The loop with temporaries and counters of its own."""
        fresh = {name: self.names.fresh(name) for name in sorted(self.own(loop))}
        for old, new in fresh.items():
            self.table[new], self.root[new] = replace(self.table[old], name=new), new
        made = nest_anew(loop, self.names)
        assert isinstance(made, For), "a loop anew is a loop"
        return replace(made, body=rename_buffers(made.body, fresh))


def _is_side(loop: For, row: str, facts: Facts) -> bool:
    """Whether it goes as far as the row says, and the rows of a step have much in common."""
    if row not in loop.lo.symbols() | loop.hi.symbols():
        return False
    is_short = nonnegative(LONG - 1 - loop.hi + loop.lo, facts)
    moved = {row: Dim.of(row) + Dim.of("+")}
    over = {"+": (ZERO, Dim.of(HEIGHT - 1))}

    def is_steep(end: Dim) -> bool:
        spread = largest(end.subs(moved), over) + largest(-end.subs(moved), over)
        return not nonnegative(Dim.of(HEIGHT) - spread, facts)

    return not is_short and not is_steep(loop.lo) and not is_steep(loop.hi)


def _is_window(around: tuple[For, ...], term: Stmt, row: str) -> bool:
    """Whether rows are places of a window, of which elements around the edge have less: they are few mostly. Where a
    side ends at a size all the same, it is the window, and the rows are elements."""
    loops = (*around, *perfect(term)[0]) if isinstance(term, For) else around
    elements = {x.var for x in loops if x.hi == ELEMENTS}
    return any(row in d.symbols() and elements & d.symbols() for a in accesses((term,)) for d in a.index or ())


def _numbered_alone(row: str, stmt: Stmt) -> Body:
    """A loop over x[row + 1 + j] goes over x[j], from row + 1 on."""
    if not isinstance(stmt, For) or row not in stmt.lo.symbols() | stmt.hi.symbols():
        return (stmt,)
    places = {d for a in accesses(stmt.body) for d in a.index or () if stmt.var in d.symbols()}
    apart = {d - Dim.of(stmt.var) for d in places}
    first = apart.pop() if len(apart) == 1 else ZERO
    if row not in first.symbols() or stmt.var in first.symbols():
        return (stmt,)
    body = substitute(stmt.body, {stmt.var: Dim.of(stmt.var) - first})
    return (replace(stmt, lo=stmt.lo + first, hi=stmt.hi + first, body=body),)


def _squared(sides: set[str], row: str, stmt: Stmt) -> Body:
    if not isinstance(stmt, For) or stmt.var not in sides:
        return (stmt,)
    match stmt.hi.symbol:
        case Atom("min", args) if row not in stmt.lo.symbols() and any(row not in d.symbols() for d in args):
            return (replace(stmt, lo=ZERO, hi=SIZE),)
    return (replace(stmt, lo=ZERO, hi=ELEMENTS),)
