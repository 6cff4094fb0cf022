"""What no example changes is made once, before the loop over them.

    for b in 0..batch:                                for k: norm[k] = sqrt(sum(w[k] * w[k]))
        for k: norm[k] = sqrt(sum(w[k] * w[k]))  ->   for b in 0..batch:
        for k: y[b,k] = x[b] @ w[k] / norm[k]             for k: y[b,k] = x[b] @ w[k] / norm[k]

A layer is written for one example, and what its weights alone tell would be made for each: norms of rows,
matrices made orthogonal. What takes more memory than what it is made of, and costs little, stays where it is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..ir import Comment, For, If, Kernel, Op, Stmt, Store
from ..operations import flops
from .depend import Memory
from .predicate import harmless, is_within
from .tree import (
    Body,
    accesses,
    buffers,
    degree,
    loads,
    over_examples,
    own_dims,
    own_exprs,
    parts,
    symbols,
    walk,
    written,
)

DEAR = 8  # flops of one operation: a quotient, an exponential


def once(kernel: Kernel) -> Kernel:
    if kernel.batch is None:
        return kernel
    found: list[Stmt] = []
    for stmt in kernel.body:
        if over_examples(stmt, kernel):
            found += Examples(kernel, stmt).parted()
        else:
            found.append(stmt)
    return replace(kernel, body=tuple(found))


class Examples:
    """The loop over the examples. `own`: temporaries that it alone touches."""

    def __init__(self, kernel: Kernel, loop: For) -> None:
        self.loop, self.table = loop, buffers(kernel)
        self.memory = Memory.of(kernel)
        self.own = own_temporaries(kernel, loop)
        self.changed = {self.memory.root[n] for n in written(loop.body)}

    def parted(self) -> Body:
        chosen = self.chosen(self.steady())
        first = tuple(s for k, s in enumerate(self.loop.body) if k in chosen)
        rest = tuple(s for k, s in enumerate(self.loop.body) if k not in chosen)
        return (*first, replace(self.loop, body=rest)) if first else (self.loop,)

    def steady(self) -> set[int]:
        """The statements that do the same for every example, with all that writes what they read."""
        body = self.loop.body
        found = {k for k, s in enumerate(body) if self.may_move(s)}
        while True:
            good = {n for n in self.own if self.writers(n) and self.writers(n) <= found and self.is_whole(n, found)}
            left = {k for k in found if written((body[k],)) <= good and not self.read(body[k]) & self.changed - good}
            if left == found:
                return found
            found = left

    def writers(self, name: str) -> set[int]:
        return {k for k, s in enumerate(self.loop.body) if name in written((s,))}

    def is_whole(self, name: str, found: set[int]) -> bool:
        """Whether what stays in the loop reads it only when all of it is made."""
        return all(k > max(self.writers(name)) for k in self.readers(name, found))

    def readers(self, name: str, found: set[int]) -> set[int]:
        """Those that are not among the found ones."""
        return {k for k, s in enumerate(self.loop.body) if k not in found and name in self.read(s)}

    def read(self, stmt: Stmt) -> set[str]:
        """The memory that it reads."""
        return {self.memory.root[a.buffer] for a in accesses((stmt,)) if not a.writes}

    def may_move(self, stmt: Stmt) -> bool:
        """Whether it asks nothing of an example, and does no harm where there is none."""
        alike = asks_nothing_of(self.loop.var, stmt)
        return alike and written((stmt,)) <= self.own and is_harmless(stmt, self.memory)

    def chosen(self, steady: set[int]) -> set[int]:
        """Those that are worth it, what they need, and what reads between two of them."""
        body, found = self.loop.body, set[int]()
        added = self.added(steady)
        todo = {k for k in steady if any(self.pays(n, added) for n in written((body[k],)))}
        while todo:
            found |= todo
            made = written(body[k] for k in found)
            needed = (made | {n for k in found for n in self.read(body[k])}) & self.changed
            between = {k for n in made for k in self.readers(n, found) if k < max(self.writers(n))}
            todo = {k for n in needed for k in self.writers(n)} | between
            todo -= found
        return found

    def pays(self, name: str, added: set[str]) -> bool:
        """`added`: what hangs on sums, or on other loops that must end first. What is made of arguments element by
        element is for `tables`."""
        if name not in added or self.is_dear(name):
            return name in added
        read = {e.buffer for s in self.stores(name) for e in loads(s.value)} - {name}
        return bool(read) and degree(self.table[name]) <= max(degree(self.table[n]) for n in read)

    def added(self, steady: set[int]) -> set[str]:
        """What is added up, or made by steps, of all that does not change; what is dear of what counters tell; and
        what is made of those."""
        body, found = self.loop.body, set[str]()
        told = {n for n in self.told_by_counters(steady) if self.table[n].shape and self.is_dear(n)}
        for k in sorted(steady):
            inside = tuple(walk((body[k],)))
            steps = any(isinstance(s, For) and s.kind == "seq" for s in inside)
            sums = any(isinstance(s, Store) and s.op for s in inside)
            if steps or sums or self.read(body[k]) & found or written((body[k],)) & told:
                found |= written((body[k],))
        return found

    def told_by_counters(self, steady: set[int]) -> set[str]:
        """What no argument tells."""
        found = {n for n in self.own if self.writers(n) and self.writers(n) <= steady}
        while True:
            left = {n for n in found if all(self.read(self.loop.body[k]) <= found for k in self.writers(n))}
            if left == found:
                return found
            found = left

    def stores(self, name: str) -> list[Store]:
        """All of the statements that write it."""
        return [s for k in self.writers(name) for s in walk((self.loop.body[k],)) if isinstance(s, Store)]

    def is_dear(self, name: str) -> bool:
        return any(isinstance(p, Op) and flops(p.op) >= DEAR for s in self.stores(name) for p in parts(s.value))


def own_temporaries(kernel: Kernel, loop: For) -> set[str]:
    """Those that a loop alone touches, under one name."""
    inside = Counter(a.buffer for a in accesses(loop.body))
    uses = Counter(a.buffer for a in accesses(kernel.body))
    aliased = {name for b in kernel.buffers if b.alias for name in (b.name, b.alias)}
    return {b.name for b in kernel.buffers if b.kind == "temp" and inside[b.name] == uses[b.name]} - aliased


def asks_nothing_of(var: str, stmt: Stmt) -> bool:
    """Whether neither a place nor a value is told by a loop's counter."""
    dims = {v for s in walk((stmt,)) for d in own_dims(s) for v in d.symbols()}
    return var not in dims and not any(var in symbols(e) for s in walk((stmt,)) for e in own_exprs(s))


def is_harmless(stmt: Stmt, memory: Memory) -> bool:
    match stmt:
        case Comment():
            return True
        case Store(buffer, index, value):
            return harmless(value, memory) and is_within(buffer, index, memory, ())
        case For(body=body):
            return all(is_harmless(s, memory.inside(stmt)) for s in body)
        case If(cond, then, orelse):
            return harmless(cond, memory) and all(is_harmless(s, memory) for s in (*then, *orelse))
    return False


__all__ = ["Examples", "asks_nothing_of", "is_harmless", "once", "own_temporaries"]
