"""Of a loop that carries something, what recurs stays alone where the rest is products: what needs nothing of it goes
before, what only needs it goes behind.

    best = -inf                                           for k map: z[k] = b[k]; for d: z[k] += x[d] * w[k,d]
    for k seq:                                            best = -inf
        z = b[k]                                          for k seq: if z[k] > best: best = z[k]
        for d: z += x[d] * w[k,d]                   ->
        if z > best: best = z

    for k seq:                                            for k seq:
        d_z = where(z[k] > best[k], d_best, 0)                d_z[k] = where(z[k] > best[k], d_best, 0)
        d_best = d_best - d_z                       ->        d_best = d_best - d_z[k]
        for d: d_x[d] += d_z * w[k,d]                     for k map: for d: d_x[d] += d_z[k] * w[k,d]

Both are loops of independent iterations then, which `fission` parts around products of matrices. A loop whose sums are
products of all examples at each step stays as it is (see distribute), and so does one whose temporaries would need more
memory than the layer has. Of small matrices, lanes of examples that walk through the loop as it is are as fast: both
stand there, and the extents say which. What a gradient works out again, as the layer did, is worked out once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

from ..dims import ZERO, Dim, minimum
from ..ir import Check, Const, For, Grow, If, Kernel, Product, Stmt, Store, While
from .contract import stored_first
from .depend import NONE, Memory, conflict, directions, elsewhere, independent
from .distribute import distribute
from .fission import fission
from .free import forwards, free
from .nests import State, axes_of, is_of_rows, widened
from .order import perfect
from .products import products
from .questions import compared
from .strips import set_first
from .tree import (
    Body,
    Names,
    accesses,
    dim_loads,
    has,
    map_bodies,
    rename_buffers,
    substitute,
    touched,
    walk,
    written,
)
from .usual import Versions

WORTH = 32  # of axes of products that are shorter, lanes of examples are as fast


def recur(kernel: Kernel) -> Kernel | Versions:
    parted = _parted(kernel)
    sizes = _sizes(parted, kernel) if parted is not None else []
    if parted is None or not sizes:
        return kernel
    small = reduce(minimum, sizes)
    if small.value is not None:
        return parted if small.value >= WORTH else kernel
    return Versions((parted, kernel), compared("greater_equal", small, WORTH))


def _parted(kernel: Kernel) -> Kernel | None:
    state = _Recurrences(kernel)
    body = state.body(kernel.body, ())
    if not state.found:
        return None
    made = _once(body, state.before, state.root)
    gone = touched(body) - touched(made)
    return free(replace(kernel, body=made, buffers=tuple(b for n, b in state.table.items() if n not in gone)))


def _sizes(parted: Kernel, kernel: Kernel) -> list[Dim]:
    """The axes of products that there are for parted loops only, but for the examples; none if one goes in strips."""
    now, before = (
        [p for p in walk(products(distribute(fission(k))).body) if isinstance(p, Product)] for k in (parted, kernel)
    )
    found = Counter(tuple(n for _, n in p.axes) for p in now)
    found.subtract(tuple(n for _, n in p.axes) for p in before)
    new = [axes for axes, count in found.items() if count > 0]
    known, batch = {*kernel.dims, *(s.name for s in kernel.scalars)}, Dim.of(kernel.batch or "")
    if any(not n.symbols() <= known for axes in new for n in axes):
        return []
    return list(dict.fromkeys(n for axes in new for n in axes if n != batch))


@dataclass(frozen=True)
class _Parts:
    """Statements of a loop, by number, that go before what recurs, and behind it."""

    before: frozenset[int]
    behind: frozenset[int]

    def of(self, body: Body) -> tuple[Body, Body, Body]:
        number = {k: 0 if k in self.before else 2 if k in self.behind else 1 for k in range(len(body))}
        first, middle, last = (tuple(s for k, s in enumerate(body) if number[k] == n) for n in range(3))
        return first, middle, last


class _Recurrences(State):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.memory = Memory.of(kernel)
        for loop in walk(kernel.body):
            if isinstance(loop, For):
                self.memory = self.memory.inside(loop)
        self.before: dict[str, set[str]] = {}  # the variable of a loop that goes before -> what it makes
        self.behind: set[str] = set()  # variables of those that go behind
        self.found = False

    def body(self, body: Body, around: tuple[For, ...]) -> Body:
        """What goes before, before numbers that the recurrence begins with; what is set to zero, right behind that.
        What goes behind, behind all that does not need it. So less is kept of each example."""
        body = super().body(body, around)
        if not any(isinstance(s, For) and s.var in {*self.before, *self.behind} for s in body):
            return body
        placed: list[Stmt] = []
        late: list[Stmt] = []
        for stmt in body:
            var = stmt.var if isinstance(stmt, For) else ""
            if var in self.behind or (late and not independent(late, (stmt,), self.memory)):
                late.append(stmt)
                continue
            k = len(placed)
            while k and self.may_pass(placed[k - 1], stmt):
                k -= 1
            placed.insert(k, stmt)
        return (*placed, *late)

    def may_pass(self, first: Stmt, second: Stmt) -> bool:
        """Whether the second goes up past the first, as it has nothing to do with it."""
        of_first, of_second = (s.var in self.before if isinstance(s, For) else False for s in (first, second))
        goes_up = (of_second and _is_number(first)) or (_clears(second) and not of_first)
        return goes_up and not self.memory.roots(touched((first,))) & self.memory.roots(touched((second,)))

    def stmt(self, stmt: Stmt, around: tuple[For, ...]) -> Body:
        made = super().stmt(stmt, around)
        match made:
            case (For(kind="seq") as loop,):
                return self.parted(loop, around)
        return made

    def done(self, loop: For, around: tuple[For, ...]) -> Body:
        return (loop,)

    def parted(self, loop: For, around: tuple[For, ...]) -> Body:
        known = loop.lo == ZERO and loop.hi.symbols() <= self.sizes and not dim_loads(loop.hi)
        if not known or len(loop.body) < 2 or has(loop.body, Check, While, Grow):
            return (loop,)
        own = {n for n in self.own(loop) if self.is_made_anew(n, loop.body)}
        found = self.sums_in(loop, around)
        parts = _needed(_parts(self.orders(loop, own)), self.orders(loop, own), found) if found else None
        if parts is None:
            return (loop,)
        pieces = parts.of(loop.body)
        crossing = {n for n in own if sum(n in touched(piece) for piece in pieces) > 1}
        shapes = {n: self.table[n].shape for n in crossing}
        if not all(self.has_room(n, loop) for n, shape in shapes.items() if shape):
            return (loop,)
        for n in crossing:
            self.table[n] = replace(self.table[n], shape=(loop.hi, *shapes[n]))
        self.found = True
        return self.alone(loop, pieces, crossing)

    def alone(self, loop: For, pieces: tuple[Body, Body, Body], crossing: set[str]) -> Body:
        """The three loops; what one leaves for another one lies along memory, where the loop goes backwards, too."""
        here = Dim.of(loop.var)
        place = here if forwards(loop) is loop else loop.lo + loop.hi - 1 - here
        made: list[Stmt] = []
        for k, piece in enumerate(pieces):
            if piece:
                new = loop if k == 1 else replace(loop, var=self.names.fresh(loop.var), kind="map")
                wide = widened(piece, [(replace(loop, var="'"), crossing)])
                moved = substitute(wide, {"'": place})
                new = replace(new, body=substitute(moved, {loop.var: Dim.of(new.var)}))
                made.append(new if k == 1 else forwards(new))
                if k == 0:
                    self.before[new.var] = written(piece)
                elif k == 2:
                    self.behind.add(new.var)
        return tuple(made)

    def is_made_anew(self, name: str, body: Body) -> bool:
        """Whether each iteration stores it before it reads it."""
        first = next(s for s in body if name in touched((s,)))
        if self.table[name].shape or isinstance(first, Store):
            return stored_first(body, self.table[name], set())
        return isinstance(first, If) and not has((first,), For) and set_first(name, body)

    def sums_in(self, loop: For, around: tuple[For, ...]) -> set[int]:
        """The statements with sums that are products of matrices in all these loops, and are none at each step."""
        wide = widened(loop.body, [(x, self.own(x) - self.sums) for x in (*around, loop)])
        examples = tuple(x for x in around if x.hi == self.batch)
        return {
            k
            for k, stmt in enumerate(wide)
            if any(self.is_worth_it(nest, (*around, loop), examples) for nest in _nests(stmt))
        }

    def is_worth_it(self, nest: Stmt, around: tuple[For, ...], examples: tuple[For, ...]) -> bool:
        wanted = self.kernel.flush or not is_of_rows(nest)
        return wanted and bool(axes_of(around, nest)) and not axes_of(examples, nest)

    def orders(self, loop: For, own: Set[str]) -> _Orders:
        """For each two statements the signs that (iteration of one) - (iteration of the other) may have where they
        touch one place."""
        found: dict[tuple[int, int], frozenset[int]] = {}
        every = [list(dict.fromkeys(accesses((stmt,)))) for stmt in loop.body]
        for (p, first), (q, second) in product(enumerate(every), repeat=2):
            signs = NONE
            for a, b in product(first, second):
                if self.memory.same_place(a, b) and conflict(a, b):
                    met = directions(a, elsewhere(b), loop.var, self.memory)
                    signs |= frozenset({0}) if a.buffer in own and a.buffer == b.buffer else met
            found[p, q] = signs
        return found


_Orders = Mapping[tuple[int, int], frozenset[int]]


def _parts(orders: _Orders) -> _Parts:
    """All that can go before, and of the rest all that can go behind."""
    every = frozenset(p for p, _ in orders)
    before = _settled(every, every, orders, 1)
    return _Parts(before, _settled(every - before, every - before, orders, -1))


def _settled(some: frozenset[int], every: frozenset[int], orders: _Orders, sign: int) -> frozenset[int]:
    """Of some statements those that can go before (1) or behind (-1) all others of all iterations, and whose own are
    independent."""

    def is_apart(p: int) -> bool:
        ours = all(orders[p, q] <= {0} for q in some)
        return ours and not any(
            sign in orders[p, q] or (0 in orders[p, q] and sign * (p - q) > 0) for q in every - some
        )

    while (apart := frozenset(p for p in some if is_apart(p))) != some:
        some = apart
    return some


def _needed(parts: _Parts, orders: _Orders, sums: Set[int]) -> _Parts | None:
    """Before goes what is needed for sums, behind what can go there, if sums do; None where none can."""
    before = parts.before & sums
    while more := {q for q in parts.before - before if any(q < p and orders[p, q] for p in before)}:
        before |= more
    behind = parts.behind if parts.behind & sums else frozenset[int]()
    return _Parts(before, behind) if before or behind else None


def _nests(stmt: Stmt) -> Iterator[Stmt]:
    """A nest of loops, around each of the statements in it alone."""
    if not isinstance(stmt, For) or stmt.kind != "map":
        yield stmt
        return
    for inner in stmt.body:
        for nest in _nests(inner):
            yield replace(stmt, body=(nest,))


def _clears(stmt: Stmt) -> bool:
    loops, inside = perfect(stmt) if isinstance(stmt, For) else ([], ())
    return bool(loops) and all(isinstance(s, Store) and isinstance(s.value, Const) and not s.op for s in inside)


def _is_number(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and not stmt.index


def _once(body: Body, before: Mapping[str, Set[str]], root: Mapping[str, str]) -> Body:
    """What two loops that go before make alike, from what nothing changes in between, the first one makes for both."""
    kept: list[Stmt] = []
    body = tuple(map_bodies(s, lambda inner: _once(inner, before, root)) for s in body)
    while body:
        stmt, *rest = body
        body = tuple(rest)
        names = _made_alike(stmt, kept, body, before, root) if isinstance(stmt, For) else None
        if names is None:
            kept.append(stmt)
        else:
            body = rename_buffers(body, names)
    return tuple(kept)


def _made_alike(
    loop: For, kept: Sequence[Stmt], behind: Body, before: Mapping[str, Set[str]], root: Mapping[str, str]
) -> dict[str, str] | None:
    """What a loop makes -> what an earlier one has made of the same, and which is still that."""
    if loop.var not in before or written(behind) & before[loop.var]:
        return None
    changed = set[str]()
    for other in reversed(kept):
        if isinstance(other, For) and other.var in before:
            fixed = {root[n] for n in touched((other,))} - {root[n] for n in before[other.var]}
            made = _in_order(other, before[other.var])
            ours = dict(zip(_in_order(loop, before[loop.var]), made))
            same = _numbered(rename_buffers((loop,), ours)) == _numbered((other,))
            if same and len(ours) == len(made) and not changed & (fixed | {root[n] for n in made}):
                return ours if not written(behind) & set(made) else None
        changed |= {root[n] for n in written((other,))}
    return None


def _in_order(loop: For, names: Set[str]) -> list[str]:
    return list(dict.fromkeys(s.buffer for s in walk((loop,)) if isinstance(s, Store) and s.buffer in names))


def _numbered(body: Body) -> Body:
    """With its loops numbered."""
    names = Names(())
    return tuple(_renamed(s, names) for s in body)


def _renamed(stmt: Stmt, names: Names) -> Stmt:
    if isinstance(stmt, For):
        fresh = names.fresh("'")
        stmt = replace(stmt, var=fresh, body=substitute(stmt.body, {stmt.var: Dim.of(fresh)}))
    return map_bodies(stmt, lambda inner: tuple(_renamed(s, names) for s in inner))
