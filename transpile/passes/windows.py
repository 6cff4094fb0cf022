"""Loops over windows go outside of the loop along memory that they are windows of, a strip of it at a time.

    for j in 0..W:                                      for s in 0..(W + 255)//256:
        t = f(dy[j])                                        for j in the strip: t_row[j] = f(dy[j])
        for b in 0..K:                        ->            for b in 0..K:
            if (0 <= j + b - 1) & (j + b - 1 < W):              for j in the strip, from 1 - b to W - b + 1:
                d_x[j + b - 1] += t * w[b]                          d_x[j + b - 1] += t_row[j] * w[b]

What windows share is then added to in vectors, and what a branch asks of the counter is a range of it. What is added to
one place comes in another order. A window of any length that the border cuts off in the bounds of its loop, as in
`for k in 0..min(K, t + 1)`, asks so as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from ..dims import Dim, Facts, maximum, minimum, nonnegative, product
from ..ir import FLOATS, Buffer, Comment, Expr, For, If, Kernel, Load, Op, Stmt, Store
from ..operations import flops
from .clipped import whole
from .depend import Memory, directions, elsewhere, injective
from .fills import stores_slice
from .flatten import Nest, flat
from .guards import margins
from .order import perfect
from .products import step
from .questions import all_of, compared
from .ranges import conjuncts
from .select import masked_adds
from .strips import set_first
from .tree import (
    Access,
    Body,
    Index,
    Names,
    accesses,
    buffers,
    descend,
    dim_loads,
    loads,
    map_bodies,
    map_places,
    map_stmts,
    substitute,
    symbols,
    walk,
    written,
)
from .unroll import MOST_STATEMENTS, MOST_TRIPS

STRIP = 256  # iterations: rows of them stay in the first cache, and what stands around their loops does not count
SHORT = 16  # iterations: a loop of no more is no loop to run in vectors
LIGHT = 4  # operations that are not worth a row
ADDED = 256  # places of a window that are added up one after the other
FARTHEST = 4  # elements from one iteration to the next, of which a vector is still worth gathering


def windows(kernel: Kernel) -> Kernel:
    kernel = flat(kernel, _asking)
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel).facts)
    return replace(kernel, body=body, buffers=tuple(state.table.values()))


def _asking(stmt: Stmt) -> Nest:
    """A nest around sums behind a branch: rows of an image are not as long as all of it."""
    if not isinstance(stmt, For) or stmt.kind != "map":
        return None
    loops, inside = perfect(stmt)
    sums = (s for s in inside if isinstance(s, For))
    asking = any(isinstance(s, If) and loop.var in symbols(s.cond) for loop in sums for s in loop.body)
    return (loops, inside) if asking else None


@dataclass
class _Piece:
    """Statements that stand together, and where in the strip they run: where these are not negative."""

    body: Body
    asked: tuple[Dim, ...]


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.names, self.memory = buffers(kernel), Names.of(kernel), Memory.of(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.settings = {s.name for s in kernel.scalars if s.dtype == "i64"}
        self.made: set[str] = set()  # variables for what the places of a window have alike

    def body(self, body: Body, facts: Facts) -> Body:
        return tuple(self.stmt(s, facts) for s in body)

    def stmt(self, stmt: Stmt, facts: Facts) -> Stmt:
        if not isinstance(stmt, For):
            return map_bodies(stmt, lambda inner: self.body(inner, facts))
        facts = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
        inside = replace(stmt, body=self.body(stmt.body, facts))
        if inside.body != stmt.body:
            return inside
        uses = Counter(a.buffer for a in accesses(stmt.body))
        alone = {name for name, count in uses.items() if count == self.uses[name]}
        loop = replace(stmt, body=_uncut(stmt))
        if not (found := _Loop(self, loop, facts, alone)).is_good():
            loop = replace(loop, body=self.chosen(loop.body, replace(self.memory, facts=facts)))
            if loop.body == stmt.body or not (found := _Loop(self, loop, facts, alone)).is_good():
                return stmt
        strips = _Loop(self, replace(loop, body=self.lifted(loop.body)), facts, alone | self.made).in_strips()
        asked = [compared("greater_equal", Dim.of(name), 1) for name in sorted(found.steps)]
        if not nonnegative(ADDED - (large := found.most_places()), facts):  # sums of more are added up in blocks
            asked.append(compared("less_equal", large, ADDED))
        return If(all_of(asked), (strips,), (stmt,)) if asked else strips

    def chosen(self, body: Body, memory: Memory) -> Body:
        """Where a branch asks for numbers, what it adds is chosen: what it asks of counters the loops may leave out."""
        found: list[Stmt] = []
        for stmt in body:
            match stmt:
                case For():
                    found.append(replace(stmt, body=self.chosen(stmt.body, memory.inside(stmt))))
                case If(cond, then, ()) if all(margins(part) for part in conjuncts(cond)):
                    inside = memory.where(m for part in conjuncts(cond) for m in margins(part))
                    found.append(If(cond, self.chosen(then, inside)))
                case _:
                    begun = frozenset(s.buffer for s in found if isinstance(s, Store) and not s.index)
                    found += masked_adds(stmt, memory, self.table, frozenset(), begun)
        return tuple(found)

    def lifted(self, body: Body) -> Body:
        """With variables for what is dear and the same for all places of a window, which would have no row else."""
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For) and ((stmt.hi - stmt.lo).value or 0) > 0:
                before, inside = self.out_of(replace(stmt, body=self.lifted(stmt.body)))
                found += [*before, replace(stmt, body=inside)]
            else:
                found.append(stmt)
        return tuple(found)

    def out_of(self, loop: For) -> tuple[list[Stmt], Body]:
        """What its iterations make alike, and what is left in it."""
        changed = {self.root(n) for n in written(loop.body)}
        before: list[Stmt] = []

        def alike(expr: Expr) -> bool:
            return loop.var not in symbols(expr) and not any(self.root(x.buffer) in changed for x in loads(expr))

        def lift(expr: Expr) -> Expr:
            if not isinstance(expr, Op) or flops(expr.op) <= LIGHT or not alike(expr):
                return descend(expr, lift)
            made = next((s.buffer for s in before if isinstance(s, Store) and s.value == expr), None)
            if made is None:
                made = self.names.fresh("e")
                self.made.add(made)
                self.table[made] = Buffer(made, expr.dtype, (), "temp")
                before.append(Store(made, (), expr))
            return Load(made, (), expr.dtype)

        inside: list[Stmt] = []
        for stmt in loop.body:
            if isinstance(stmt, Store) and stmt.buffer in self.made and alike(stmt.value):
                before.append(stmt)
                changed.discard(stmt.buffer)
            else:
                inside.append(replace(stmt, value=lift(stmt.value)) if isinstance(stmt, Store) else stmt)
        return before, tuple(inside)

    def root(self, name: str) -> str:
        return self.table[name].alias or name

    def is_set(self, dim: Dim) -> bool:
        """Whether it is an integer of the configuration."""
        return dim.symbol in self.settings

    def is_shared(self, name: str) -> bool:
        """Whether it goes by another name, too."""
        return any(name != b.name and self.root(name) == self.root(b.name) for b in self.table.values())


@dataclass
class _Loop:
    """`alone`: what is touched in this loop only."""

    state: _State
    loop: For
    facts: Facts
    alone: set[str]
    inner: list[For] = field(default_factory=list)
    steps: set[str] = field(default_factory=set)  # settings that are positive if it is as it seems to be

    def __post_init__(self) -> None:
        self.inner = [s for s in walk(self.loop.body) if isinstance(s, For)]
        self.facts = {**self.facts, **{s.var: (s.lo, s.hi - 1) for s in self.inner}}
        self.memory = replace(self.state.memory, facts=self.facts)
        self.all = list(accesses(self.loop.body))
        self.changed = {a.buffer for a in self.all if a.writes} | {self.root(a.buffer) for a in self.all if a.writes}
        table = self.state.table
        self.saved = {n: kept for n in sorted(self.changed & self.alone) if (kept := self.axes_of(n))}
        self.own = {
            n
            for n in self.changed & self.alone
            if table[n].kind == "temp" and not table[n].shape and not table[n].alias
            if set_first(n, self.loop.body)
        }

    def axes_of(self, name: str) -> tuple[int, ...]:
        """The axes of what an iteration has for itself in an array, of few places: what a reverse saves of a window's
        steps; none where it is anything else."""
        buffer, inner = self.state.table[name], {s.var for s in self.inner}
        places = [a.index for a in self.all if a.buffer == name and a.index is not None]
        if buffer.kind != "temp" or self.state.is_shared(name):
            return ()
        axes = [{place[axis] for place in places} for axis in range(len(buffer.shape))]
        kept = tuple(k for k, found in enumerate(axes) if any(d.symbols() & inner for d in found))
        fixed = [next(iter(found)) for k, found in enumerate(axes) if k not in kept and len(found) == 1]
        splits = [d.split(self.loop.var) for d in fixed]
        own = all(s is not None and s[0].value in (0, 1) for s in splits)
        apart = not any(self.loop.var in d.symbols() for k in kept for d in axes[k])
        few = 0 < (product(buffer.shape[k] for k in kept).value or 0) <= SHORT * SHORT
        if not (kept and own and apart and few and len(fixed) + len(kept) == len(axes)):
            return ()
        still = {k: next(iter(found)) for k, found in enumerate(axes) if k not in kept}
        return kept if stores_slice(self.loop, buffer, still) else ()

    def most_places(self) -> Dim:
        """How many places a window has that an iteration adds up in rows, or whose number the configuration says."""
        sums = [n for n in sorted(self.own) if self.state.table[n].dtype in FLOATS]
        nests = [s for s in self.loop.body if isinstance(s, For) and any(isinstance(inner, For) for inner in s.body)]
        adding = [s for s in nests if any(a.buffer in sums and a.mode == "add" for a in accesses((s,)))]
        found = [_places(nest) for nest in adding]
        of_rows = (s for s in self.inner if self.asks(s) or self.jumps(s))
        found += [s.hi - s.lo for s in of_rows if any(a.buffer in sums and a.mode == "add" for a in accesses(s.body))]
        found += [s.hi - s.lo for s in self.inner if (s.hi - s.lo).symbols() & self.state.settings]
        large = reduce(maximum, found, Dim.of(0))
        return Dim.of(0) if large.symbols() & {self.loop.var, *(s.var for s in self.inner)} else large

    # -- whether -------------------------------------------------------------------------------------------------
    def is_good(self) -> bool:
        return self.is_along_memory() and self.is_dull() and self.may_be()

    def is_along_memory(self) -> bool:
        """Whether memory lies along it, and along no loop inside but windows and short ones."""
        loop, extent = self.loop, (self.loop.hi - self.loop.lo).value
        if loop.kind != "map" or loop.parallel or (extent is not None and extent < SHORT):
            return False
        places = [
            (a.index, self.state.table[a.buffer].shape)
            for a in self.all
            if a.index and a.buffer not in self.saved and not self.is_set(a)
        ]
        steps = {step(i, s, loop.var) for i, s in places}
        if not steps & {1, -1} or any(s is None or abs(s) > FARTHEST for s in steps):
            return False
        for other in self.inner:
            trips = (other.hi - other.lo).value
            if trips is not None and trips <= SHORT:
                continue
            if self.is_window(other):
                continue
            inside = self.asks(other) or self.jumps(other)  # what moves with it alone is a number, then
            if {step(i, s, other.var) for i, s in places if not inside or self.moves(i)} & {1, -1}:
                return False
        return True

    def moves(self, index: Index) -> bool:
        return any(self.loop.var in dim.symbols() for dim in index)

    def asks(self, other: For) -> bool:
        """Whether it adds up behind a branch that asks for its counter, and not for that of the loop: `0 <= c + k < C`
        of the channels beside a place."""
        for stmt in other.body:
            if isinstance(stmt, If) and other.var in symbols(stmt.cond) and self.is_same(stmt.cond):
                return not stmt.orelse and all(isinstance(s, Store) and s.op == "add" for s in stmt.then)
        return False

    def is_set(self, access: Access) -> bool:
        """Whether it reads elements, or adds to some, as far apart as the configuration says: not far, mostly."""
        if access.mode == "w" or not access.index or (along := access.index[-1].split(self.loop.var)) is None:
            return False
        before = any(self.loop.var in d.symbols() for d in access.index[:-1])
        return not before and self.state.is_set(along[0])

    def is_window(self, other: For) -> bool:
        both = {self.loop.var, other.var}
        return any(both <= d.symbols() for a in self.all for d in a.index or ())

    def is_dull(self) -> bool:
        """Whether it would not run in vectors as it is: windows that are not written out, or overlap where they add."""
        if not any(self.is_window(other) or self.jumps(other) or self.asks(other) for other in self.inner):
            return False
        small = all((s.hi - s.lo).value is not None and (s.hi - s.lo).value <= MOST_TRIPS for s in self.inner)
        plain = all(isinstance(s, (Store, For, Comment)) for s in walk(self.loop.body))
        many = sum(isinstance(s, Store) for s in walk(self.loop.body)) * MOST_TRIPS > MOST_STATEMENTS
        inside = {a.buffer for s in self.inner for a in accesses(s.body) if a.writes} - self.own - self.saved.keys()
        return not (small and plain and not many and all(self.are_apart(name) for name in inside))

    def jumps(self, other: For) -> bool:
        """Whether a loop that is too long to be written out goes along no memory that this one goes along."""
        trips, table = (other.hi - other.lo).value, self.state.table
        if other.kind != "map" or (trips is not None and trips <= MOST_TRIPS):
            return False
        places = ((a.index, table[a.buffer].shape) for a in accesses(other.body) if a.index and self.moves(a.index))
        mine = {step(index, shape, other.var) for index, shape in places}
        return bool(mine) and not {1, -1} & mine and mine != {0}

    def are_apart(self, name: str) -> bool:
        """Whether windows share no place of an array: they are as far from each other as they are wide, or each has one
        place of its own."""
        return any(self.are_apart_along(name, axis) for axis in range(len(self.state.table[name].shape)))

    def are_apart_along(self, name: str, axis: int) -> bool:
        """Whether that can be told along an axis."""
        places = [a.index for a in self.all if self.root(a.buffer) == self.root(name)]
        if any(a.buffer != name for a in self.all if self.root(a.buffer) == self.root(name)):
            return False
        splits = [index[axis].split(self.loop.var) if index is not None else None for index in places]
        found = [s for s in splits if s is not None]
        if len(found) < len(places) or len({s.value for s, _ in found}) != 1 or not found[0][0].value:
            return False
        rests = {rest for _, rest in found}
        for other in self.inner:
            if not any(other.var in rest.symbols() for rest in rests):
                continue
            trips = (other.hi - other.lo).value
            if trips is None or len(rests) * trips > SHORT * SHORT:
                return False
            rests = {rest.subs({other.var: other.lo + k}) for rest in rests for k in range(max(trips, 1))}
        apart = [(rest - next(iter(rests))).value for rest in rests]
        known = [n for n in apart if n is not None]
        return len(known) == len(apart) and max(known) - min(known) < abs(found[0][0].value)

    def may_be(self) -> bool:
        """Whether no iteration needs what another one leaves."""
        return all(self.is_plain(s) for s in self.loop.body) and all(self.is_apart(a) for a in self.all if a.writes)

    def is_plain(self, stmt: Stmt) -> bool:
        match stmt:
            case Store() | Comment():
                return True
            case For(lo=lo, hi=hi):
                fixed = not any(self.loop.var in d.symbols() or any(True for _ in dim_loads(d)) for d in (lo, hi))
                return fixed and not stmt.parallel and all(self.is_plain(s) for s in stmt.body)
            case If(cond, then, orelse):
                sure, ranged = self.asked(cond)
                if sure is None or (ranged and orelse):
                    return False
                return all(self.is_plain(s) for s in (*then, *orelse))
        return False

    def asked(self, cond: Expr) -> tuple[list[Expr] | None, list[Dim]]:
        """What a branch asks that is the same for all iterations (None: what can be told of none), and what must not be
        negative of those that take it."""
        same: list[Expr] = []
        ranged: list[Dim] = []
        for part in conjuncts(cond):
            if self.is_same(part):
                same.append(part)
                continue
            found = margins(part)
            splits = [m.split(self.loop.var) for m in found]
            if not found or any(s is None or not self.is_step(s[0]) for s in splits):
                return None, []
            if any(True for m in found for _ in dim_loads(m)):
                return None, []
            self.steps |= {name for s in splits if s is not None for name in s[0].symbols()}
            ranged += found
        return same, ranged

    def is_step(self, dim: Dim) -> bool:
        return bool(dim.value) or self.state.is_set(dim) or self.state.is_set(-dim)

    def is_same(self, expr: Expr) -> bool:
        return self.loop.var not in symbols(expr) and not any(x.buffer in self.changed for x in loads(expr))

    def is_apart(self, access: Access) -> bool:
        """Whether iterations write to places of their own, or all add to one place and nothing asks for it."""
        if access.buffer in self.own or access.buffer in self.saved:
            return True
        if access.index is None or any(True for d in access.index for _ in dim_loads(d)):
            return False
        inner = {s.var for s in self.inner}
        others = [a for a in self.all if self.root(a.buffer) == self.root(access.buffer)]
        others = [a for a in others if not (a.buffer == access.buffer and self.are_rows(a.index, access.index))]
        others = [a for a in others if a == access or directions(access, elsewhere(a), self.loop.var, self.memory)]
        mixed = any(self.loop.var in d.symbols() and d.symbols() & inner for d in access.index)
        alike = all(a.buffer == access.buffer and a.index == access.index for a in others)
        if alike and not mixed and injective(access.index, self.loop.var, self.facts):
            return True
        return access.mode != "w" and all(a.mode == access.mode for a in others)

    def are_rows(self, a: Index | None, b: Index | None) -> bool:
        """Whether two places of an array are of different rows, of those that `jam` has put side by side."""
        counters = {self.loop.var, *(s.var for s in self.inner)}
        pairs = zip(a or (), b or (), strict=False)
        still = [(p, q) for p, q in pairs if not (p.symbols() | q.symbols()) & counters]
        return any((p - q).value not in (None, 0) for p, q in still)

    def root(self, name: str) -> str:
        return self.state.root(name)

    # -- how -----------------------------------------------------------------------------------------------------
    def in_strips(self) -> For:
        loop, names = self.loop, self.state.names
        strip = names.fresh("strip")
        start = loop.lo + Dim.of(strip) * STRIP
        tree = tuple(self.pieces(loop.body, ()))
        rows = self.rows(list(_leaves(tree)))

        def place(name: str, index: Index) -> tuple[str, Index]:
            kept = tuple(index[axis] for axis in self.saved.get(name, ()))
            return (rows[name], (*kept, Dim.of(loop.var) - start)) if name in rows else (name, index)

        def emit(node: _Piece | For | If) -> Stmt:
            if not isinstance(node, _Piece):
                return map_bodies(node, lambda inner: tuple(emit(n) for n in inner))  # type: ignore[arg-type]
            var, shift = names.fresh(loop.var), self.shift(node)
            low, high = Dim.of(0), minimum(Dim.of(STRIP), loop.hi + (shift or 0) - start)
            if shift is not None:
                low = maximum(low, loop.lo + shift - start)
            for margin in node.asked:
                step, rest = margin.split(loop.var)  # type: ignore[misc]
                rest = rest - step * (shift or 0)
                if _is_upwards(step):
                    low = maximum(low, -(rest // step) - start)
                else:
                    high = minimum(high, rest // -step + 1 - start)
            body = substitute(map_places(node.body, place), {loop.var: start + Dim.of(var) - (shift or 0)})
            return For(var, low, high, body, "map")

        body = tuple(emit(n) for n in tree)
        return For(strip, Dim.of(0), (loop.hi - loop.lo + (STRIP - 1)) // STRIP, body, "map")

    def shift(self, piece: _Piece) -> Dim | None:
        """How far behind the counter it adds, if its strips can be those of what it adds to: the places that windows
        share are then those of one strip."""
        match piece.body:
            case (Store(_, (*others, last), _, str()) as stmt,):
                still = not any(self.loop.var in d.symbols() for d in others)
                shift = last - Dim.of(self.loop.var)
                moves = bool(shift.symbols()) and self.loop.var not in shift.symbols()
                within = (last - self.loop.lo, self.loop.hi - 1 - last)
                alone = not self.changed & {self.root(x.buffer) for x in loads(stmt.value)}  # of no strip before
                return shift if still and moves and alone and set(within) <= set(piece.asked) else None
        return None

    def pieces(self, body: Body, asked: tuple[Dim, ...]) -> Iterator[_Piece | For | If]:
        run: list[Stmt] = []  # of statements that may run together, in vectors
        for stmt in body:
            if isinstance(stmt, Store) and all(self.may_join(stmt, other) for other in run):
                run.append(stmt)
                continue
            if run:
                yield _Piece(tuple(run), asked)
            run = [stmt] if isinstance(stmt, Store) else []
            if isinstance(stmt, For):
                yield replace(stmt, body=tuple(self.pieces(stmt.body, asked)))  # type: ignore[arg-type]
            elif isinstance(stmt, If):
                yield from self.branch(stmt, asked)
        if run:
            yield _Piece(tuple(run), asked)

    def may_join(self, a: Stmt, b: Stmt) -> bool:
        """Whether one loop may do both: not what all iterations add to one place, nor neighbours in an array."""
        assert isinstance(a, Store)
        assert isinstance(b, Store)
        shared = any(x.buffer not in self.own and not _names(x.index, self.loop.var) for x in (a, b))
        return not shared and (a.buffer != b.buffer or a.index == b.index or self.are_rows(a.index, b.index))

    def branch(self, stmt: If, asked: tuple[Dim, ...]) -> Iterator[_Piece | For | If]:
        same, ranged = self.asked(stmt.cond)
        then = tuple(self.pieces(stmt.then, (*asked, *ranged)))
        if not same:
            yield from then
            return
        cond = same[0]
        for part in same[1:]:
            cond = Op("logical_and", (cond, part), "bool")
        yield If(cond, then, tuple(self.pieces(stmt.orelse, asked)))  # type: ignore[arg-type]

    def rows(self, leaves: list[_Piece]) -> dict[str, str]:
        """The variables that one piece leaves to another, or to itself, and the rows that take their place."""
        found: dict[str, str] = {}
        for name in sorted(self.own):
            using = [p.body for p in leaves if any(a.buffer == name for a in accesses(p.body))]
            if len(using) > 1 or not set_first(name, using[0]):
                found[name] = self.state.names.fresh(f"{name}_row")
                table = self.state.table
                table[found[name]] = Buffer(found[name], table[name].dtype, (Dim.of(STRIP),), "temp")
        for name, kept in self.saved.items():
            found[name] = self.state.names.fresh(f"{name}_row")
            shape = (*(self.state.table[name].shape[axis] for axis in kept), Dim.of(STRIP))
            self.state.table[found[name]] = Buffer(found[name], self.state.table[name].dtype, shape, "temp")
        return found


def _uncut(loop: For) -> Body:
    """With windows as long everywhere, where they are cut off at some of its iterations."""

    def uncut(stmt: Stmt) -> Iterator[Stmt]:
        cut = isinstance(stmt, For) and loop.var in (stmt.hi - stmt.lo).symbols()
        yield whole(stmt, loop.var) if isinstance(stmt, For) and cut else stmt

    return map_stmts(loop.body, uncut)


def _is_upwards(step: Dim) -> bool:
    """Of a number, or a setting that is taken to be positive."""
    return nonnegative(step) or step.symbol is not None


def _places(nest: For) -> Dim:
    """How often what is inside all loops of a nest runs, at most."""
    return (nest.hi - nest.lo) * reduce(maximum, (_places(s) for s in nest.body if isinstance(s, For)), Dim.of(1))


def _leaves(tree: tuple) -> Iterator[_Piece]:
    for node in tree:
        if isinstance(node, _Piece):
            yield node
        elif isinstance(node, For):
            yield from _leaves(node.body)
        else:
            yield from _leaves((*node.then, *node.orelse))


def _names(index: Index, var: str) -> bool:
    return any(var in d.symbols() for d in index)


__all__ = ["windows"]
