"""Places the parallel loops: the outermost map loop is split into a number of chunks that depends on
extents only.

    for c in 0..C: dg[c] = 0                 for c in 0..C: dg[c] = 0
    for b in 0..batch:                       for chunk in 0..n parallel:
        for c: for s:                            for c: dg_part[chunk,c] = 0
            dg[c] += ...             ->          for b in chunk*batch//n .. (chunk+1)*batch//n:
                                                     for c: for s: dg_part[chunk,c] += ...
                                             for chunk in 0..n: for c: dg[c] += dg_part[chunk,c]

What iterations share, they share by accumulating: each chunk does so in a part of its own, and parts are
combined in order. So results are equal whatever the number of threads, and there are no atomics.

A batch may be a single large example: then the loops inside the batch loop are split instead, in a second
version of its body. So it is with all loops around matrix products, which share their work among threads
themselves. Of two loops of which the outer one holds nothing else both are split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from ..dims import Dim, maximum, minimum, nonnegative, product
from ..ir import Buffer, Comment, Const, Expr, For, If, Int, Kernel, Load, Op, Product, Stmt, Store, While
from . import owners
from .accumulate import neutral
from .columns import columns
from .depend import Memory, apart
from .fuse import fuse_body
from .questions import all_of, compared
from .tree import Body, Names, accesses, dim_loads, map_bodies, rename_buffers, roots, touched, walk
from .turned import SIDE, turned_of
from .verify import shared_places
from .work import WORTH, work

CHUNKS = 64  # at most, of a loop whose iterations share nothing
PARTS = 16  # at most, where each chunk has its own copy of something
DEEP = 2  # sequential loops around a row
SHORT = 8  # statements of a loop of a step that is written down for one thread as well
FEW = 2  # efforts worth threads, of all that an example's steps share
GRAIN = 2048  # at least so many iterations of a vector loop in a chunk
PART_BUDGET = 1 << 21  # elements of all copies together
COPIED = 24  # flops: to clear an element of a copy and to add it up takes about half as long
STEPS = 8  # at least so many iterations share a copy of what they scatter into


def chunk(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body)
    used = touched(body)
    used |= {b.alias for b in state.made if b.alias and b.name in used}
    return replace(kernel, body=body, buffers=(*kernel.buffers, *(b for b in state.made if b.name in used)))


class _State:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.table = {b.name: b for b in kernel.buffers}
        self.names = Names.of(kernel)
        self.sizes = {*kernel.dims, *(s.name for s in kernel.scalars), kernel.batch}
        self.made: list[Buffer] = []
        self.memory = Memory.of(kernel)
        self.root = roots(kernel)  # one memory may go by several names
        self.uses = Counter(self.root[a.buffer] for a in accesses(kernel.body))
        self.last: tuple[For, Counter[str], set[str]] | None = None
        self.steps = 0  # sequential loops around a statement
        self.whole: set[str] = set()  # counters of loops of which another version is shared out by rows

    def body(self, body: Body) -> Body:
        found: list[Stmt] = []
        for stmt in body:
            found = self.by_rows(stmt, found) or [*found, stmt]
        return tuple(new for stmt in found for new in self.stmt(stmt))

    def by_rows(self, loop: Stmt, before: list[Stmt]) -> list[Stmt] | None:
        """A loop that adds at looked-up rows where each thread owns some of them, and what stands before it; else, and
        where that does not pay, as it is."""
        if not isinstance(loop, For) or loop.kind == "seq" or loop.parallel or self.steps >= DEEP:
            return None
        if loop.var in self.whole:
            return None
        effort, shared = work(loop, self.table), self.shared(loop)
        if not shared or nonnegative(WORTH - effort) or self.collides(loop, shared):
            return None
        fixed = {name: len(_fixed(name, loop)) for name in shared}
        asked = owners.pays(adding, effort) if (adding := self.adding(loop, fixed)) else None
        if adding is None or asked is None:
            return None
        at = owners.taken(adding, before)
        fills = {name: before[k] for name, k in at.items()}
        mine = self.adding(self.renamed(loop), fixed)
        assert mine is not None, "a name changes nothing"
        effort = sum((work(fill, self.table) for fill in fills.values()), effort)
        parts = owners.in_parts(mine, fills, effort, self.names)
        single = owners.alone(self.renamed(loop), fixed)
        chosen = If(owners.several(effort), (parts,), (*fills.values(), single))
        self.whole |= {s.var for s in walk((loop,)) if isinstance(s, For)}
        otherwise = (If(all_of(asked), (chosen,), (*fills.values(), loop)),) if asked else (chosen,)
        return [*(s for k, s in enumerate(before) if k not in at.values()), *otherwise]

    def adding(self, loop: For, fixed: dict[str, int]) -> owners.Adding | None:
        memory = replace(self.memory, root={**{n: n for n in self.table}, **self.root})
        memory = replace(memory, shape={name: b.shape for name, b in self.table.items()})
        return owners.adding(loop, fixed, lambda name: self.is_private(name, loop), self.table, memory)

    def stmt(self, stmt: Stmt) -> Body:
        if owners.is_settled(stmt):
            return (stmt,)
        if isinstance(stmt, Product):  # no bit depends on how it is cut: its threads share it at run time
            return (replace(stmt, parallel=True),)
        if not isinstance(stmt, For) or stmt.kind == "seq":
            return (self.within(stmt),)
        if nonnegative(1 - (stmt.hi - stmt.lo)):  # it runs once at most
            return (self.within(stmt),)
        effort = work(stmt, self.table)
        if not any(a.mode == "r" for a in accesses((stmt,))):
            return (stmt,)  # filling memory is not worth a region
        if effort.value is not None and effort.value < WORTH:
            return (stmt,)
        if self.steps >= DEEP and all(len(factors) <= 1 for factors, _ in effort.terms):
            return (stmt,)  # a row in a cell of dynamic programming: to ask whether to share it would take longer
        if self.may_be_few(stmt) and (inner := self.inside(stmt)) is not None:
            least = 2 if not self.is_batch(stmt) and self.own(stmt) else 4  # what it makes stays with a thread
            many = compared("greater_equal", stmt.hi - stmt.lo, least)
            if (stmt.hi - stmt.lo).value is not None:
                many = compared("greater_equal", self.room(stmt), 2)
            if (idle := self.are_small(inner)) is not None:
                many = Op("logical_or", (many, idle), "bool")
            return (If(many, self.split(stmt, effort), inner),)
        if self.steps and self.is_short(stmt):
            return self.asked(stmt, effort)
        return self.split(stmt, effort)

    def is_short(self, loop: For) -> bool:
        """Whether a loop is little to write down twice, and leaves the same in any order."""
        stmts = list(walk((loop,)))
        return len(stmts) <= SHORT and not any(isinstance(s, Product) for s in stmts) and self.shared(loop) == {}

    def asked(self, loop: For, effort: Dim) -> Body:
        """A row of a step: to enter a region of one thread at each step may take longer than the row."""
        shared_out = self.split(loop, effort)
        if not any(_has_threads(s) for s in shared_out):
            return shared_out
        return (If(owners.several(effort), shared_out, (self.renamed(loop),)),)

    def may_be_few(self, loop: For) -> bool:
        """Whether what is inside a loop may be all there is to share: one large example, one group of a convolution, a
        step whose products all add to one large array."""
        if not self.is_batch(loop) and not any(isinstance(s, Product) for s in walk(loop.body)):
            return False
        few = (loop.hi - loop.lo).value is None or self.room(loop).value is None
        return few and self.second(loop) is None

    def are_small(self, body: Body) -> Expr | None:
        """Whether the steps inside are not worth threads; None where only running them tells, or nothing is shared in
        steps: to ask once an example costs nothing."""
        (example,) = body
        assert isinstance(example, For)
        steps = [s for s in walk(example.body) if isinstance(s, While) or (isinstance(s, For) and s.kind == "seq")]
        if not any(_has_threads(step) for step in steps):
            return None
        total = sum(
            (work(s, self.table) for s in walk(body) if isinstance(s, (For, Product)) and s.parallel), Dim.of(0)
        )
        if not total.symbols() <= self.sizes - {self.kernel.batch} or any(dim_loads(total)):
            return None
        return Op("less_equal", (Int(total), Const(FEW * WORTH, "i64")), "bool")

    def is_batch(self, loop: For) -> bool:
        return loop.hi == Dim.of(self.kernel.batch or "")

    def own(self, loop: For) -> set[str]:
        """The arrays that an iteration makes for itself alone."""
        return {n for n in self.touches(loop)[1] if self.table[n].shape and self.is_private(n, loop)}

    def within(self, stmt: Stmt) -> Any:
        """The loops inside it split."""
        outside, steps = self.memory, self.steps
        if isinstance(stmt, For):
            self.memory = outside.inside(stmt)
        self.steps += isinstance(stmt, While) or (isinstance(stmt, For) and stmt.kind == "seq")
        try:
            return map_bodies(stmt, self.body)
        finally:
            self.memory, self.steps = outside, steps

    def inside(self, loop: For) -> Body | None:
        """The batch loop in order, the loops inside it split; None if that is of no use."""
        nests = [s for s in _branches(loop.body) if isinstance(s, Product) or (isinstance(s, For) and s.kind == "map")]
        if not any(work(s, self.table).value is None for s in nests):
            return None
        renamed = self.renamed(loop)
        body = self.within(renamed).body
        if not any(isinstance(s, (For, Product)) and s.parallel for s in walk(body)):
            return None
        return (replace(renamed, body=body, kind="seq"),)

    def renamed(self, loop: For) -> For:
        """With temporaries of its own: in the other version they belong to a thread."""
        named = {a.buffer for a in accesses((loop,))}
        inner = named | {self.root.get(n, n) for n in named}  # memory may be used by its other names only
        known = list(self.table.values())
        fresh: dict[str, str] = {}
        for b in known:
            if b.name in inner and b.kind in ("temp", "list") and not b.alias and not self.outside(loop, b.name):
                fresh[b.name] = self.names.fresh(b.name)
        for b in known:
            if b.alias in fresh:
                fresh[b.name] = self.names.fresh(b.name)
        for old, new in fresh.items():
            root = self.root.get(old, old)
            self.root[new] = fresh.get(root, root)
            self.uses[new] = self.uses[old]
            b = self.table[old]
            copy = replace(b, name=new, alias=fresh.get(b.alias, b.alias) if b.alias else None)
            self.made.append(copy)
            self.table[new] = copy
        return replace(loop, body=rename_buffers(loop.body, fresh))

    # -- one loop --------------------------------------------------------------------------------------------
    def split(self, loop: For, effort: Dim) -> Body:
        shared = self.shared(loop)
        if shared is None or self.collides(loop, shared):
            return (loop,)
        q = self.names.fresh("chunk")
        by_columns = columns(loop, shared, lambda name: self.is_private(name, loop), q) if shared else None
        if by_columns is not None:
            return (For(q, Dim.of(0), *by_columns, "map", True, effort),)
        flat = all(isinstance(s, (Store, If, Comment)) for s in walk(loop.body))
        room = self.room(loop)
        count = self.count(loop, room if shared else None, flat)
        if nonnegative(1 - count):
            return (loop,)
        if any(_is_scattered(name, loop) for name in shared):
            return self.scattered(loop, shared, flat, effort)
        if not shared and (second := self.second(loop)) is not None:
            return (self.rectangles(loop, second, q, count, effort),)
        return self.chunked(loop, shared, count, room, flat, effort)

    def scattered(self, loop: For, shared: dict[str, str], flat: bool, effort: Dim) -> Body:
        """A loop that adds to places read from memory: what it adds to may be larger than all that it does. Then there
        are fewer copies than chunks might be, or none."""
        if nonnegative(2 * STEPS - 1 - (loop.hi - loop.lo)):
            return (loop,)
        pays = maximum(Dim.of(1), effort // (COPIED * maximum(Dim.of(1), self.size(loop, shared))))
        room = minimum(self.room(loop), pays)
        count = self.count(loop, room, flat)
        alone = self.renamed(loop)
        chunks, *finish = self.chunked(loop, shared, count, room, flat, effort)
        adding = self.body(tuple(map(_by_rows, finish)))
        return (If(compared("greater_equal", count, 2), (chunks, *adding), (alone,)),)

    def chunked(self, loop: For, shared: dict[str, str], count: Dim, room: Dim, flat: bool, effort: Dim) -> Body:
        """The loop in chunks, each with a part of its own of what is shared, and what adds up the parts."""
        q = self.names.fresh("chunk")
        fixed = {name: _fixed(name, loop) for name in shared}
        inside: Body = loop.body
        start: list[Stmt] = []
        leave: list[Stmt] = []
        finish: list[Stmt] = []
        for name, op in shared.items():
            b, there = self.table[name], fixed[name]
            part = self.part(b, b.shape[len(there) :], room)
            if part.shape[1:]:
                inside = _into_part(inside, name, part.name, (Dim.of(q),), len(there))
                start.append(self.fill(part, op, Dim.of(q)))
            else:  # in a register while the chunk runs
                own = Buffer(self.names.fresh(f"{name}_own"), b.dtype, (), "temp")
                self.made.append(own)
                self.table[own.name] = own
                inside = _into_part(inside, name, own.name, (), len(there))
                start.append(Store(own.name, (), neutral(op, b.dtype)))
                leave.append(Store(part.name, (Dim.of(q),), Load(own.name, (), b.dtype)))
            finish.append(self.combine(b, part, op, count, there))
        lo, hi = _share(loop, Dim.of(q), count, flat)
        body = (*fuse_body(tuple(start), self.memory), replace(loop, lo=lo, hi=hi, body=inside), *leave)
        return (For(q, Dim.of(0), count, body, "map", True, effort), *fuse_body(tuple(finish), self.memory))

    def second(self, loop: For) -> For | None:
        """The only statement of a loop, if it is a loop of loops that may be split as well; not around products, which
        have threads of their own."""
        match loop.body:
            case (For(lo=lo, hi=hi, kind="map") as inner,):
                kinds = {type(s) for s in walk(inner.body)}
                fixed = loop.var not in lo.symbols() | hi.symbols()
                if fixed and For in kinds and Product not in kinds and self.shared(inner) == {}:
                    return None if self.collides(inner, ()) else inner
        return None

    def rectangles(self, loop: For, inner: For, q: str, count: Dim, effort: Dim) -> For:
        """Both loops split: the outer one may have few iterations."""
        one = Dim.of(1)  # at least, as chunks are divided by it
        across = maximum(one, minimum(self.length(inner), Dim.of(CHUNKS) // maximum(one, count)))
        lo, hi = _share(inner, Dim.of(q) % across, across, False)
        part = replace(inner, lo=lo, hi=hi)
        lo, hi = _share(loop, Dim.of(q) // across, count, False)
        body = (replace(loop, lo=lo, hi=hi, body=(part,)),)
        return For(q, Dim.of(0), count * across, body, "map", True, effort, count)

    def shared(self, loop: For) -> dict[str, str] | None:
        """Buffer -> operation, of what different iterations accumulate into; None where iterations cannot
        be told apart."""
        found: dict[str, str] = {}
        adding = [a for a in accesses(loop.body) if a.writes and a.mode != "w" and not self.is_private(a.buffer, loop)]
        memory = self.memory.inside(loop)
        for a in adding:
            if a.index is None or all(apart(a, b, loop.var, memory) for b in adding if memory.same_place(a, b)):
                continue
            if found.setdefault(a.buffer, a.mode) != a.mode or self.goes_by_others(a.buffer, loop):
                return None
        for a in accesses(loop.body):
            if a.buffer in found and found[a.buffer] != a.mode:
                return None
        return found

    def goes_by_others(self, name: str, loop: For) -> bool:
        """Whether the loop knows the buffer's memory by another name, too."""
        return any(a.buffer != name and self.root[a.buffer] == self.root[name] for a in accesses((loop,)))

    def collides(self, loop: For, shared: Collection[str]) -> bool:
        """Whether iterations store to one place: such a loop runs once at most, though nobody could prove it."""
        names = set(shared_places(loop.body, frozenset({loop.var}))) - set(shared)
        return not all(self.is_private(name, loop) for name in names)

    def is_private(self, name: str, loop: For) -> bool:
        root = self.root.get(name, name)
        mine = self.table[root].kind in ("temp", "list") and root in self.touches(loop)[1]
        return mine and not self.outside(loop, name)

    def outside(self, loop: For, name: str) -> bool:
        """Whether the buffer is touched outside the loop."""
        root = self.root.get(name, name)
        return self.uses[root] != self.touches(loop)[0][root]

    def touches(self, loop: For) -> tuple[Counter[str], set[str]]:
        """How often the loop touches each buffer, and which it overwrites; of the last loop asked for, kept."""
        if self.last is None or self.last[0] is not loop:
            counts = Counter(self.root.get(a.buffer, a.buffer) for a in accesses((loop,)))
            written = {self.root.get(a.buffer, a.buffer) for a in accesses(loop.body) if a.mode == "w"}
            self.last = (loop, counts, written)
        return self.last[1:]

    def length(self, loop: For) -> Dim:
        """How many parts a loop has that are worth a chunk."""
        length = loop.hi - loop.lo
        return (length + (SIDE - 1)) // SIDE if turned_of(loop, self.table) else length

    def count(self, loop: For, room: Dim | None, flat: bool) -> Dim:
        length = self.length(loop)
        if flat:
            length = (length + (GRAIN - 1)) // GRAIN
        if room is None:
            return minimum(length, Dim.of(CHUNKS))
        # A chunk should have several iterations to pay for its part, and all parts together should stay in
        # cache.
        wanted = length if flat else maximum(minimum(length, Dim.of(4)), length // 4)
        return minimum(wanted, room)

    def room(self, loop: For) -> Dim:
        """How many parts of what its iterations share there may be."""
        size = self.size(loop, self.shared(loop) or {})
        if size.value is not None and size.value * PARTS <= PART_BUDGET:
            return Dim.of(PARTS)
        # An extent may be less than nothing, where the program stops for that later.
        return minimum(Dim.of(PARTS), maximum(Dim.of(1), Dim.of(PART_BUDGET) // maximum(Dim.of(1), size)))

    def size(self, loop: For, shared: Collection[str]) -> Dim:
        """The elements of one part of each."""
        return sum((product(self.table[n].shape[len(_fixed(n, loop)) :]) for n in shared), Dim.of(0))

    def part(self, b: Buffer, shape: tuple[Dim, ...], room: Dim) -> Buffer:
        known = room.symbols() <= self.sizes and not any(dim_loads(room))  # when memory is reserved
        parts = room if known else Dim.of(PARTS)
        part = Buffer(self.names.fresh(f"{b.name}_part"), b.dtype, (parts, *shape), "temp")
        self.made.append(part)
        self.table[part.name] = part
        return part

    def nest(self, shape: tuple[Dim, ...], make) -> Stmt:  # type: ignore[no-untyped-def]
        variables = [self.names.fresh("i") for _ in shape]
        stmt = make(tuple(Dim.of(v) for v in variables))
        for v, extent in zip(reversed(variables), reversed(shape)):
            stmt = For(v, Dim.of(0), extent, (stmt,), "map")
        return stmt

    def fill(self, part: Buffer, op: str, q: Dim) -> Stmt:
        return self.nest(part.shape[1:], lambda i: Store(part.name, (q, *i), neutral(op, part.dtype)))

    def combine(self, b: Buffer, part: Buffer, op: str, count: Dim, fixed: tuple[Dim, ...]) -> Stmt:
        q = self.names.fresh("chunk")

        def add(i: tuple[Dim, ...]) -> Stmt:
            return Store(b.name, (*fixed, *i), Load(part.name, (Dim.of(q), *i), b.dtype), op)

        return For(q, Dim.of(0), count, (self.nest(part.shape[1:], add),), "seq")


def _by_rows(adding: Stmt) -> Stmt:
    """What adds up large parts, in an order that lets threads share the rows."""
    match adding:
        case For(body=(For(body=(For(),)) as rows,)):
            return replace(rows, body=(replace(adding, body=rows.body),))
    return adding


def _has_threads(stmt: Stmt) -> bool:
    return any(isinstance(s, (For, Product)) and s.parallel for s in walk((stmt,)))


def _branches(body: Body) -> Iterator[Stmt]:
    """Its statements, those of its branches, and of the steps of what is only a recurrence."""
    for stmt in body:
        if isinstance(stmt, If):
            yield from _branches((*stmt.then, *stmt.orelse))
        elif isinstance(stmt, For) and stmt.kind == "seq" and len(body) == 1:
            yield from _branches(stmt.body)
        else:
            yield stmt


def _share(loop: For, q: Dim, count: Dim, flat: bool) -> tuple[Dim, Dim]:
    """The iterations of chunk q. Those of a vector loop begin on multiples of 64, so that no cache line is
    shared."""
    length = loop.hi - loop.lo
    if not flat:
        return loop.lo + (length * q) // count, loop.lo + (length * (q + 1)) // count
    step = (length // (count * 64) + 1) * 64
    return loop.lo + minimum(length, step * q), loop.lo + minimum(length, step * (q + 1))


def _is_scattered(name: str, loop: For) -> bool:
    """Whether places of a buffer are read from memory."""
    indices = [s.index for s in walk(loop.body) if isinstance(s, (Store, Product)) and s.buffer == name]
    return any(any(dim_loads(d)) for index in indices for d in index)


def _fixed(name: str, loop: For) -> tuple[Dim, ...]:
    """The first indices of a buffer that are the same wherever the loop adds to it: those of one example, say. A part
    has no axes for them."""
    stmts = list(walk((loop,)))
    inner = {s.var for s in stmts if isinstance(s, For)}
    inner |= {axis for s in stmts if isinstance(s, Product) for axis, _ in s.axes}
    first, *others = [s.index for s in stmts if isinstance(s, (Store, Product)) and s.buffer == name]
    found: list[Dim] = []
    for axis, dim in enumerate(first):
        if dim.symbols() & inner or any(dim_loads(dim)) or any(index[axis] != dim for index in others):
            break
        found.append(dim)
    return tuple(found)


def _into_part(body: Body, name: str, part: str, q: tuple[Dim, ...], fixed: int) -> Body:
    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.buffer == name:
            return Store(part, (*q, *stmt.index[fixed:]), stmt.value, stmt.op)
        if isinstance(stmt, Product) and stmt.buffer == name:
            return replace(stmt, buffer=part, index=(*q, *stmt.index[fixed:]))
        return map_bodies(stmt, lambda inner: tuple(change(s) for s in inner))

    return tuple(change(s) for s in body)
