"""Unrolls a loop around a product and joins the copies, so that what is loaded once serves several rows.

    for i:                                      for i4 in 0..N//4:
        for k: for j:                               for k: for j:
            C[i,j] += A[i,k] * B[k,j]     ->            C[4*i4,j] += A[4*i4,k] * B[k,j]
                                                        ...
                                                        C[4*i4+3,j] += A[4*i4+3,k] * B[k,j]
                                                for i in 4*(N//4)..N: as before

Jammed are: a loop over which a load of the innermost loop stands still, if there is a reduction inside it;
and the loop of the reduction itself, if it is not the innermost: then four products are added to C while it
is in a register. So is a loop over rows each of which asks for several others that are the same for all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..dims import Dim, maximum
from ..ir import Buffer, Comment, For, Kernel, Stmt, Store
from .depend import Memory
from .fuse import fuse_body, fusible
from .order import is_window
from .tree import Access, Body, Names, accesses, map_bodies, rename_buffers, substitute, touched, walk, written
from .unroll import MOST_TRIPS
from .work import effort

ROWS = 4
MOST_STORES = 8  # in the body, before copying
MANY = 3  # rows that are the same for all: to load them takes longer than to compute
MOST_STREAMS = 24  # of all copies: more have no registers to be pointed at by
DEAR = 32  # flops of one sum's term: beside so many, what copies do not load again is nothing
MOST_COPIES = 24  # in the body, as loops inside it have been copied: each makes five of it, and gcc has to read all


def jam(kernel: Kernel) -> Kernel:
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    shared = {b.name for b in kernel.buffers if b.kind == "temp" and b.name in aliased}
    variables = {s.var for s in walk(kernel.body) if isinstance(s, For)}
    uses = Counter(a.buffer for a in accesses(kernel.body))
    state = _State(kernel, Names.of(kernel), [], uses, variables, shared)
    body = state.body(kernel.body, Memory.of(kernel))
    used = touched(body)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *(b for b in state.made if b.name in used)))


@dataclass
class _State:
    kernel: Kernel
    names: Names
    made: list[Buffer]
    uses: Counter[str]
    variables: set[str]  # of all loops
    shared: set[str]  # temporaries that go by two names: copies of a loop that writes them would mix them up

    def body(self, body: Body, memory: Memory, step: bool = False) -> Body:
        """`step`: the body is one of a recurrence, so that no loop around it will have copies of it."""
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                new = replace(stmt, body=self.body(stmt.body, memory.inside(stmt), stmt.kind == "seq"))
                grown = sum(isinstance(s, Store) for s in walk(new.body)) > MOST_COPIES
                short = is_window(stmt.body, stmt.var, self.variables)
                many = ROWS * _streams(new) > MOST_STREAMS
                rows = (
                    1
                    if grown or short or many or written((stmt,)) & self.shared
                    else factor(stmt, self.private(stmt, stmt), step)
                )
                found += self.unrolled(new, stmt, rows, memory) if rows > 1 else (new,)
            else:
                found.append(map_bodies(stmt, lambda inner: self.body(inner, memory)))
        return tuple(found)

    def unrolled(self, loop: For, old: For, rows: int, memory: Memory) -> Body:
        count = maximum(Dim.of(0), (loop.hi - loop.lo) // rows, memory.facts)  # a loop may end before it begins
        var = self.names.fresh(f"{loop.var}x{rows}")
        private = self.private(loop, old)
        places = [loop.lo + Dim.of(var) * rows + k for k in range(rows)]
        copies = [self.copy(substitute(loop.body, {loop.var: place}), private) for place in places]
        body = tuple(s for stage in zip(*copies, strict=True) for s in stage)  # so that what is alike lies side by side
        main = replace(loop, var=var, lo=Dim.of(0), hi=count, body=body)
        main = replace(main, body=fuse_body(main.body, memory.beside(self.made).inside(main), _alike))
        # What is left of a batch is too little for threads: seq leaves them to the loops inside it.
        kind = "seq" if self.kernel.batch is not None and loop.hi == Dim.of(self.kernel.batch) else loop.kind
        return main, replace(loop, lo=loop.lo + count * rows, body=self.copy(loop.body, private), kind=kind)

    def private(self, loop: For, old: For) -> set[str]:
        """Temporaries that are used in this loop only (those that inner copies made among them)."""
        own, total = Counter(a.buffer for a in accesses((old,))), self.uses
        kept = {
            b.name
            for b in self.kernel.buffers
            if b.kind == "temp" and b.name not in self.shared and own[b.name] == total[b.name]
        }
        return touched((loop,)) & (kept | {b.name for b in self.made})

    def copy(self, body: Body, private: set[str]) -> Body:
        """The statements with loops and temporaries of their own."""
        fresh: dict[str, str] = {}
        for b in (*self.kernel.buffers, *self.made):
            if b.name in private:
                fresh[b.name] = self.names.fresh(b.name)
                self.made.append(replace(b, name=fresh[b.name]))
        return self.with_loops(rename_buffers(body, fresh))

    def with_loops(self, body: Body) -> Body:
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                var = self.names.fresh(stmt.var)
                stmt = replace(stmt, var=var, body=substitute(stmt.body, {stmt.var: Dim.of(var)}))
            found.append(map_bodies(stmt, self.with_loops))
        return tuple(found)


def _streams(loop: For) -> int:
    """How many places in memory the innermost loop goes along in each iteration of this one."""
    inside = list(accesses(loop.body))
    deepest = max((len(a.loops) for a in inside), default=0)
    along = {(a.buffer, a.index) for a in inside if len(a.loops) == deepest > 0 and _names(a, a.loops[-1].var)}
    return sum(any(loop.var in d.symbols() for d in index or ()) for _, index in along)


def _alike(first: For, second: For, memory: Memory) -> bool:
    """Copies of one loop, not what `split` took apart."""
    leaves = [all(not isinstance(s, For) for s in loop.body) for loop in (first, second)]
    return leaves[0] == leaves[1] and fusible(first, second, memory)


def factor(loop: For, private: set[str], step: bool) -> int:
    """How many copies pay; 1: none. `private`: temporaries each copy has for itself, so that nothing is shared by
    sharing them."""
    if loop.kind != "map" or not _is_plain(loop.body):
        return 1
    length = (loop.hi - loop.lo).value
    if length is not None and length < 2 * ROWS:
        return 1
    inside = [a for a in accesses(loop.body) if a.buffer not in private or a.mode != "r"]
    if any(loop.var in x.lo.symbols() | x.hi.symbols() for x in walk(loop.body) if isinstance(x, For)):
        return 1
    sums = [a for a in inside if a.mode == "add" and a.loops]
    if not sums:
        return ROWS if _asks_again(loop, inside) else 1
    if any(isinstance(s, Store) and effort(s.value) >= DEAR for s in walk(loop.body)):
        return 1
    longer = [a for a in sums if not _is_short(a.loops[-1])]
    if all(len(a.loops) <= 1 for a in inside) and _carries(loop, sums, step):
        return ROWS
    deep = _is_product if any(len(a.loops) > 1 for a in inside) else _is_dot
    return ROWS if any(deep(a) and _reuses(loop, inside, a.loops[-1].var) for a in longer) else 1


def _is_plain(body: Body) -> bool:
    stmts = list(walk(body))
    return all(isinstance(s, (Store, Comment)) or (isinstance(s, For) and s.kind == "map") for s in stmts) and (
        sum(isinstance(s, Store) for s in stmts) <= MOST_STORES
    )


def _carries(loop: For, sums: list[Access], step: bool) -> bool:
    """for k: for j: C[j] += ...; in a step of a recurrence, beside sums that stay in their row: S[k,j] += ..."""
    carry = [not _names(a, loop.var) and _names(a, a.loops[-1].var) for a in sums]
    return len(loop.body) == 1 and (any(carry) if step else all(carry))


def _asks_again(loop: For, inside: list[Access]) -> bool:
    """for k: for j: y[k,j] = x[k,j] * a[j] + b[j] * c[j]"""
    match loop.body:
        case (For(var=inner) as along,) if not _is_short(along) and all(len(a.loops) <= 1 for a in inside):
            asked = {(a.buffer, a.index) for a in inside if a.mode == "r" and _names(a, inner)}
            same = [name for name, index in asked if not any(loop.var in d.symbols() for d in index or ())]
            own = all(_names(a, loop.var) and _names(a, inner) for a in inside if a.mode != "r")
            return own and len(same) >= MANY and len(same) > len(asked) - len(same)
    return False


def _is_short(loop: For) -> bool:
    """Whether it will be written out, so that what it loads is a few numbers."""
    trips = (loop.hi - loop.lo).value
    return trips is not None and trips <= MOST_TRIPS


def _is_dot(a: Access) -> bool:
    """for k: c += ..."""
    return not _names(a, a.loops[-1].var)


def _is_product(a: Access) -> bool:
    """A sum over one of the two innermost loops."""
    used = {s for d in a.index or () for s in d.symbols()}
    return len(a.loops) >= 2 and not {a.loops[-1].var, a.loops[-2].var} <= used


def _reuses(loop: For, inside: list[Access], inner: str) -> bool:
    """Some load of the innermost loop `inner` is the same for all iterations of this one."""
    return any(
        a.mode == "r" and a.loops and a.loops[-1].var == inner and _names(a, inner) and not _names(a, loop.var)
        for a in inside
    )


def _names(a: Access, var: str) -> bool:
    return any(var in d.symbols() for d in a.index or ())
