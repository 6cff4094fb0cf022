"""What a gradient makes of each example's part by factors that no example changes is made of their sum, once.

    for b in 0..batch:                                 for b in 0..batch:
        for k: d_n[k] = dy[b,k] * x[b,k]                   for k: d_n[k] = dy[b,k] * x[b,k]
        for k: d_w[k] += d_n[k] / norm[k]       ->         for k: all[k] += d_n[k]
                                                       for k: d_w[k] += all[k] / norm[k]

As a framework has it, in which weights are made ready before the batch is looked at, and their gradient goes back
through that once. After `once`, which says what no example changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..dims import ZERO, Dim
from ..ir import FLOATS, Buffer, Cast, Comment, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from .depend import Memory
from .once import asks_nothing_of, own_temporaries
from .tree import (
    Body,
    Names,
    accesses,
    buffers,
    degree,
    dim_loads,
    loads,
    over_examples,
    parts,
    rename_buffers,
    touched,
    walk,
    written,
)

STEADY, LINEAR = 0, 1


def summed(kernel: Kernel) -> Kernel:
    if kernel.batch is None or not kernel.flush:
        return kernel
    found: list[Stmt] = []
    for stmt in kernel.body:
        if over_examples(stmt, kernel):
            loop = _Examples(kernel, stmt)
            found += loop.parted()
            kernel = replace(kernel, buffers=(*kernel.buffers, *loop.made))
        else:
            found.append(stmt)
    return replace(kernel, body=tuple(found))


class _Examples:
    """The loop over the examples. `changed`: what it writes; `sums`: outputs that all examples add to."""

    def __init__(self, kernel: Kernel, loop: For) -> None:
        self.loop, self.table, self.names = loop, buffers(kernel), Names.of(kernel)
        self.root = Memory.of(kernel).root
        self.own = own_temporaries(kernel, loop)
        self.changed = {self.root[n] for n in written(loop.body)}
        self.made: list[Buffer] = []
        touches = [a for a in accesses(loop.body) if self.table[a.buffer].kind == "out"]
        self.sums = {a.buffer for a in touches} - {a.buffer for a in touches if a.mode != "add"}

    def parted(self) -> Body:
        moved = self.moved()
        body = self.loop.body
        behind = tuple(s for k, s in enumerate(body) if k in moved)
        rest = tuple(s for k, s in enumerate(body) if k not in moved)
        left = sorted(n for n in touched(behind) & self.own if n in written(rest))
        if not self.pays(behind, left):
            return (self.loop,)
        fresh = {n: self.names.fresh(f"{n}_all") for n in left}
        self.made = [replace(self.table[n], name=new) for n, new in fresh.items()]
        zeros = tuple(self.each(n, Store(new, (), Const(0.0, self.table[n].dtype))) for n, new in fresh.items())
        adds = tuple(self.each(n, Store(new, (), Load(n, (), self.table[n].dtype), "add")) for n, new in fresh.items())
        some = Op("greater", (Int(self.loop.hi), Const(0, "i64")), "bool")
        return (*zeros, replace(self.loop, body=(*rest, *adds)), If(some, rename_buffers(behind, fresh)))

    def each(self, name: str, store: Store) -> Stmt:
        """The store, for all elements of a temporary."""
        made, places = self.table[name], [self.names.fresh("n") for _ in self.table[name].shape]
        index = tuple(Dim.of(v) for v in places)
        value = replace(store.value, index=index) if isinstance(store.value, Load) else store.value
        stmt: Stmt = replace(store, index=index, value=value)
        for var, extent in zip(reversed(places), reversed(made.shape), strict=True):
            stmt = For(var, ZERO, extent, (stmt,))
        return stmt

    def moved(self) -> set[int]:
        """The statements that are linear in what the others leave."""
        body = self.loop.body
        found = {k for k, s in enumerate(body) if self.may_move(s)}
        while True:
            left = {k for k in found if not self.is_changed_behind(k, found)}
            left = {k for k in left if written((body[k],)) & self.sums or self.feeds(k, left)}
            if left == found:
                return found
            found = left

    def is_changed_behind(self, k: int, found: set[int]) -> bool:
        """Whether what stays changes what it touches, or reads what it changes, later in an iteration."""
        body = self.loop.body
        later = tuple(s for m, s in enumerate(body) if m > k and m not in found)
        mine, set_ = touched((body[k],)) - self.sums, written((body[k],)) - self.sums
        return bool(mine & written(later) or set_ & touched(later))

    def feeds(self, k: int, among: set[int]) -> bool:
        """Whether another statement among them reads what it writes."""
        body = self.loop.body
        return any(written((body[k],)) & _read(body[m]) for m in among if m > k)

    def may_move(self, stmt: Stmt) -> bool:
        if not asks_nothing_of(self.loop.var, stmt) or not written((stmt,)) <= self.own | self.sums:
            return False
        stores = [s for s in walk((stmt,)) if not isinstance(s, (For, Comment))]
        return all(isinstance(s, Store) and self.is_linear(s) for s in stores)

    def is_linear(self, store: Store) -> bool:
        if self.table[store.buffer].dtype not in FLOATS or store.op not in (None, "add"):
            return False
        if any(self.is_changed(load) for d in store.index for load in dim_loads(d)):
            return False
        return _is_zero(store.value) or self.power(store.value) == LINEAR

    def power(self, expr: Expr) -> int | None:
        """Whether it is steady, or linear in what examples change; None: neither."""
        match expr:
            case Load(buffer, index) if buffer in self.own & self.changed and self.table[buffer].dtype in FLOATS:
                return LINEAR if not any(self.is_changed(e) for d in index for e in dim_loads(d)) else None
            case Op("add" | "subtract", args):
                return self.of_all(args)
            case Op("where", (cond, *values)) if self.power(cond) == STEADY:
                return self.of_all(values)
            case Op("negative", (a,)) | Cast(a, "real" | "f32" | "f64"):
                return self.power(a)
            case Op("multiply", (a, b)):
                one, other = self.power(a), self.power(b)
                return None if one is None or other is None or one + other > LINEAR else one + other
            case Op("divide", (a, b)) if self.power(b) == STEADY:
                return self.power(a)
        return None if any(self.is_changed(e) for e in loads(expr)) else STEADY

    def of_all(self, values: Iterable[Expr]) -> int | None:
        """Of numbers that are alike, or 0."""
        powers = {self.power(e) for e in values if not _is_zero(e)}
        return None if len(powers) > 1 else powers.pop() if powers else STEADY

    def is_changed(self, load: Load) -> bool:
        return self.root[load.buffer] in self.changed

    def pays(self, behind: Body, left: list[str]) -> bool:
        """Whether there is more to it than adding, and no more to add up than there was."""
        ops = {p.op for s in walk(behind) if isinstance(s, Store) for p in parts(s.value) if isinstance(p, Op)}
        targets = written(behind) & self.sums
        counters = {s.var for s in walk(self.loop.body) if isinstance(s, For)}
        if any(d.symbols() & counters for n in left for d in self.table[n].shape):
            return False
        if not left or not targets or ops <= {"add", "subtract", "negative"}:
            return False
        return max(degree(self.table[n]) for n in left) <= max(degree(self.table[n]) for n in targets)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0


def _read(stmt: Stmt) -> set[str]:
    return {a.buffer for a in accesses((stmt,)) if not a.writes}


__all__ = ["summed"]
