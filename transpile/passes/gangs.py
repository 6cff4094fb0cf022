"""What each row asks for as a number is computed for many rows side by side.

    for b:                                          for g: for row in a gang of up to 32:
        for i: total += exp(x[b,i])                            for i: total += exp(x[32*g + row,i])
        scale = 1 / total                  ->                  totals[row] = total
        for i: y[b,i] *= scale                             for row: scales[row] = 1 / totals[row]
                                                           for row: for i: y[32*g + row,i] *= scales[row]

A number's division, root or logarithm takes as long as that of sixteen, and a row can do nothing while it waits for
its own. So a gang goes through the phases of an iteration together: loops over rows, numbers of all rows in one
vector, loops over rows again. A gang has as many rows as stay in the first cache from phase to phase. As `split`, which
does it for whole loops inside an example; here the loop goes over examples, or over a thread's share of them. After
`chunk`: how the loop is shared out stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from ..dims import ONE, Dim, maximum, minimum, product
from ..ir import Buffer, Check, Comment, Const, For, Kernel, Load, Op, Stmt, Store, While
from ..operations import flops
from .depend import Memory, in_order, independent
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    has,
    in_vectors,
    loads,
    map_bodies,
    map_places,
    named,
    own_accesses,
    own_exprs,
    parts,
    rename_buffers,
    substitute,
    touched,
    walk,
    written,
)
from .work import LAST_CACHE

GANG = 32  # rows at most
FIT = 4096  # elements of a gang that a later phase reads again: 16 KB, half the first cache; results go there, too
SHORT = 1024  # ... where arrays come from memory: reads and writes in turns of a few rows keep it busy
CHEAP = 8  # flops: less than a quotient
DEAR = 16  # flops of what is not cheap: two quotients, a logarithm

Place = tuple[str, tuple[Dim, ...]]  # a buffer, and its indices but for those of inner loops: a row of it


def gangs(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel), frozenset())
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.names = Names.of(kernel)
        self.table = {b.name: b for b in kernel.buffers}
        self.shared = {b.alias for b in kernel.buffers if b.alias} | {b.name for b in kernel.buffers if b.alias}
        self.made: list[Buffer] = []
        self.groups: set[str] = set()  # variables of loops over gangs

    def body(self, body: Body, memory: Memory, outside: frozenset[str]) -> Body:
        """`outside`: the buffers that are touched elsewhere."""
        users = Counter(name for stmt in body for name in touched((stmt,)))
        found = []
        for stmt in body:
            own = touched((stmt,))
            others = outside | {name for name, count in users.items() if count > (name in own)}
            found.append(self.stmt(stmt, memory, others))
        return tuple(found)

    def stmt(self, stmt: Stmt, memory: Memory, outside: frozenset[str]) -> Stmt:
        within = memory.inside(stmt) if isinstance(stmt, For) else memory
        around = outside | {name for name, _, _ in own_accesses(stmt)}
        if isinstance(stmt, While):
            around |= touched((stmt,))
        stmt = map_bodies(stmt, lambda inner: self.body(inner, within, around))
        if not isinstance(stmt, For) or stmt.kind != "map" or stmt.parallel or not self.has_rows(stmt.body):
            return stmt
        private = {n for n in touched(stmt.body) - around if self.is_single_owner(n)}
        return self.in_gangs(stmt, private, within) or stmt

    def has_rows(self, body: Body) -> bool:
        """Whether a loop over rows holds it: loops whose work is a row's."""
        loops = [s for s in walk(body) if isinstance(s, (For, While))]
        if any(isinstance(s, While) or s.kind != "map" or s.parallel or s.var in self.groups for s in loops):
            return False
        return any(in_vectors(s) or (isinstance(s, For) and has(s.body, For)) for s in body)

    def is_single_owner(self, name: str) -> bool:
        buffer = self.table.get(name)
        return buffer is not None and buffer.kind == "temp" and name not in self.shared

    def in_gangs(self, loop: For, private: set[str], memory: Memory) -> For | None:
        phases = self.phases(loop, private, memory)
        if not _are_worth_it(phases):
            return None
        phases = [phase for phase in phases if phase]
        crossing = sorted(n for n in private if sum(n in touched(phase) for phase in phases) > 1)
        gang = self.size(loop, phases, set(crossing), memory.root)
        if loop.var in gang.symbols().union(*(d.symbols() for n in crossing for d in self.table[n].shape)):
            return None  # rows of different lengths
        kept = {n: replace(self.table[n], name=self.names.fresh(f"{n}_of")) for n in crossing}
        kept = {n: replace(b, shape=(gang, *b.shape) if b.shape else (Dim.of(GANG),)) for n, b in kept.items()}
        phases, renamed = self.expanded(phases, kept, Dim.of(loop.var))
        known = memory.beside(kept.values())
        if not all(in_order(a, b, loop.var, known, {0, -1}) for a, b in combinations(phases, 2)):
            return None
        self.made += [*kept.values(), *renamed]
        self.table |= {b.name: b for b in (*kept.values(), *renamed)}
        group, first, size = (self.names.fresh(n) for n in ("gang", "first", "rows"))
        self.groups.add(group)
        rows = gang if gang.value is not None else Dim.of(size)
        inside = []
        for phase in phases:
            row = self.names.fresh("row")
            body = substitute(phase, {loop.var: Dim.of(first) + Dim.of(row)})
            body = _at(body, {b.name for b in kept.values()}, Dim.of(row))
            last = minimum(rows, loop.hi - Dim.of(first))
            inside.append(replace(loop, var=row, lo=Dim.of(0), hi=last, body=body))
        count = (loop.hi - loop.lo + (rows - 1)) // rows
        found = For(group, Dim.of(0), count, (named(first, loop.lo + Dim.of(group) * rows, tuple(inside)),))
        return found if rows == gang else named(size, gang, (found,))

    def phases(self, loop: For, private: set[str], memory: Memory) -> list[Body]:
        """What an iteration does in turns: numbers, loops, numbers, loops... each statement as early as what it needs
        lets it. Those at even places are of numbers."""
        steps = _with_comments(loop.body)
        single = {n for n in private if not self.table[n].shape}
        checked = _checked(steps, memory)
        at: list[int] = []
        for k, step in enumerate(steps):
            if k in checked:
                at.append(1)  # a fault of one row comes before that of a later one
                continue
            starts, numbers = _is_start(step[-1]), self.is_number(step[-1], loop.var, private)
            asked = single & _asked(step)
            place = 0 if numbers else 1
            for j in (j for j in range(k) if not independent(steps[j], step, memory)):
                waits = _is_loop(steps[j]) and _is_loop(step) and asked & written(steps[j])
                apart = at[j] % 2 == numbers and not starts
                place = max(place, at[j] + (2 if waits else apart))
            at.append(place)
        for k in (k for k in reversed(range(len(steps))) if k not in checked):
            later = (j for j in range(k + 1, len(steps)) if j not in checked)
            users = [at[j] for j in later if not independent(steps[k], steps[j], memory)]
            if users and _is_start(steps[k][-1]):  # what a loop adds to begins beside it
                at[k] = min(users)
            elif users and at[k] % 2 == 0:  # numbers are computed where they are asked for
                at[k] = max(at[k], min(users) // 2 * 2)
        return _phases(at, steps)

    def expanded(self, phases: Sequence[Body], kept: Mapping[str, Buffer], row: Dim) -> tuple[list[Body], list[Buffer]]:
        """The phases with arrays for what goes from one to another: numbers are left there, and taken from there."""
        found: list[Body] = []
        renamed: list[Buffer] = []
        for k, phase in enumerate(phases):
            made = {n: b for n, b in kept.items() if not self.table[n].shape and n in written(phase)}
            own = {n: self.names.fresh(n) if any(n in written(p) for p in phases[:k]) else n for n in made}
            renamed += [replace(self.table[n], name=new) for n, new in own.items() if new != n]
            asked, later = _asked(phase), touched(s for p in phases[k + 1 :] for s in p)
            taken = tuple(Store(own[n], (), Load(b.name, (row,), b.dtype)) for n, b in made.items() if n in asked)
            left = tuple(Store(b.name, (row,), Load(own[n], (), b.dtype)) for n, b in made.items() if n in later)
            chosen = {n: kept[n] for n in _chosen(phase) & kept.keys() - made.keys() if not self.table[n].shape}
            for n in sorted(chosen):  # one that is read inside of a choice keeps gcc from vectors
                own[n] = self.names.fresh(n)
                renamed.append(replace(self.table[n], name=own[n]))
                taken = (*taken, Store(own[n], (), Load(chosen[n].name, (row,), chosen[n].dtype)))
            crossed = {n: b.name for n, b in kept.items() if n not in made and n not in chosen}

            def place(buffer: str, index: Index, crossed: Mapping[str, str] = crossed) -> tuple[str, Index]:
                return (crossed[buffer], (row, *index)) if buffer in crossed else (buffer, index)

            found.append((*taken, *map_places(rename_buffers(phase, own), place), *left))
        return found, renamed

    def is_number(self, stmt: Stmt, var: str, private: set[str]) -> bool:
        """Whether it makes a number of its own for each row."""
        if not isinstance(stmt, Store):
            return False
        if not stmt.index:
            return stmt.buffer in private
        return not stmt.op and any(d == Dim.of(var) for d in stmt.index)

    def size(self, loop: For, phases: Sequence[Body], crossing: set[str], root: Mapping[str, str]) -> Dim:
        """How many rows a gang has: those of which the first cache holds what loops of a later phase go along again, by
        whatever name."""
        seen: dict[Place, set[int]] = {}
        sizes: dict[Place, Dim] = {}
        for k, phase in enumerate(phases):
            for a in accesses(phase):
                if a.index and a.loops and (a.buffer in crossing or any(loop.var in d.symbols() for d in a.index)):
                    inner = {x.var for x in a.loops}
                    along = [bool(d.symbols() & inner) for d in a.index]
                    place = root[a.buffer], tuple(d for d, moves in zip(a.index, along) if not moves)
                    size = product(n for n, moves in zip(self.table[a.buffer].shape, along) if moves)
                    seen.setdefault(place, set()).add(k)
                    sizes[place] = maximum(sizes.get(place, size), size)
        again = sum((sizes[place] for place, at in seen.items() if len(at) > 1), Dim.of(0))
        if not again.terms:
            return Dim.of(GANG)
        arrays = dict.fromkeys(self.table[name] for name, _ in seen)
        moved = sum((product(b.shape) for b in arrays if b.kind in ("in", "out")), Dim.of(0))
        fit = maximum(Dim.of(SHORT), minimum(Dim.of(FIT), Dim.of(LAST_CACHE) // maximum(ONE, moved) * FIT))
        return maximum(ONE, minimum(Dim.of(GANG), fit // maximum(ONE, again)))


def _chosen(phase: Body) -> set[str]:
    """The numbers that loops read inside of a choice."""
    loops = (s for s in phase if isinstance(s, For))
    exprs = (e for loop in loops for s in walk((loop,)) for own in own_exprs(s) for e in parts(own))
    chosen = (e for e in exprs if isinstance(e, Op) and e.op in ("where", "or_zero"))
    return {load.buffer for e in chosen for load in loads(e) if not load.index}


def _with_comments(body: Body) -> list[Body]:
    """Each statement, and the comments before it."""
    found: list[Body] = []
    held: Body = ()
    for stmt in body:
        held = (*held, stmt)
        if not isinstance(stmt, Comment):
            found.append(held)
            held = ()
    return found


def _checked(steps: Sequence[Body], memory: Memory) -> set[int]:
    """Statements that check something, and those before them that they must not overtake."""

    def roots_of(names: set[str]) -> set[str]:
        return {memory.root.get(n, n) for n in names}

    found: set[int] = set()
    asked: set[str] = set()
    changed: set[str] = set()
    for k in reversed(range(len(steps))):
        own, stored = roots_of(touched(steps[k])), roots_of(written(steps[k]))
        if has(steps[k], Check) or asked & stored or changed & own:
            found.add(k)
            asked |= own
            changed |= stored
    return found


def _phases(at: Sequence[int], steps: Sequence[Body]) -> list[Body]:
    """Cheap numbers that wait for no loop, or for which none waits, are computed beside loops."""
    phases = [[k for k, place in enumerate(at) if place == n] for n in range(max(at) + 1)]
    for numbers, loops in ((0, 1), (len(phases) - 1, len(phases) - 2)):
        cheap = sum(_dear(s) for k in phases[numbers] for s in steps[k]) < CHEAP
        if cheap and numbers % 2 == 0 and 0 <= loops < len(phases):
            phases[loops] += phases[numbers]
            phases[numbers] = []
    return [tuple(s for k in sorted(phase) for s in steps[k]) for phase in phases]


def _at(body: Body, arrays: Collection[str], row: Dim) -> Body:
    """With the rows of these arrays where a gang has them."""

    def place(buffer: str, index: Index) -> tuple[str, Index]:
        return buffer, (row, *index[1:]) if buffer in arrays else index

    return map_places(body, place)


def _asked(body: Body) -> set[str]:
    """Buffers of which something is read that was not stored here before."""
    first: dict[str, str] = {}
    for a in accesses(body):
        first.setdefault(a.buffer, a.mode)
    return {name for name, mode in first.items() if mode != "w"}


def _is_start(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and not stmt.op and not stmt.index and isinstance(stmt.value, Const)


def _is_loop(step: Body) -> bool:
    return isinstance(step[-1], For)


def _are_worth_it(phases: Sequence[Body]) -> bool:
    """Whether a loop waits for the numbers of its row, or rows end with dear ones."""
    waits = sum(any(isinstance(s, For) for s in loops) for loops in phases[1::2]) > 1
    return waits or (len(phases) > 2 and sum(map(_dear, phases[2])) >= DEAR)


def _dear(stmt: Stmt) -> int:
    """The flops of operations that take longer than an addition."""
    costs = (flops(p.op) for e in own_exprs(stmt) for p in parts(e) if isinstance(p, Op))
    return sum(n for n in costs if n >= CHEAP)


__all__ = ["gangs"]
