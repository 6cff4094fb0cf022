"""A number that seldom changes is taken to stand still for a few steps, which are then done side by side.

    for j in 0..N seq:                          for q in 0..(N + 15)//16 seq:
        saved[j] = top                              changes = 0
        top = max(top, x[j])         ->             for j in the strip map: changes += max(top, x[j]) != top
                                                    if changes == 0: for j in the strip map: saved[j] = top
                                                    else: as before, for j in the strip

Of the largest so far, and of what the reverse of it hands from step to step, few of many steps make another number. It
is one that is chosen, between what it was and something else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..dims import Dim, minimum
from ..ir import FLOATS, Buffer, Comment, Const, Expr, For, If, Kernel, Load, Op, Stmt, Store
from .depend import Memory
from .free import forwards, independent_iterations
from .tree import Body, Names, accesses, anew, buffers, loads, map_bodies, roots

_CHOICES = {"max": "maximum", "min": "minimum"}
STRIP = 16  # steps: a vector of float32, or two


def lulls(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.table, self.names = kernel, buffers(kernel), Names.of(kernel)
        self.root = roots(kernel)
        self.made: list[Buffer] = []

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(self.stmt(s, memory) for s in body)

    def stmt(self, stmt: Stmt, memory: Memory) -> Stmt:
        if not isinstance(stmt, For):
            return map_bodies(stmt, lambda inner: self.body(inner, memory))
        inside = memory.inside(stmt)
        if stmt.kind == "seq" and (carried := self.carried(stmt)) is not None:
            others = tuple(s for s in stmt.body if s is not carried)
            still = replace(stmt, body=others, kind="map")
            if independent_iterations(still, self.kernel, inside, stmt, of_branches=False):
                return self.strips(stmt, still, carried)
        return replace(stmt, body=self.body(stmt.body, inside))

    def carried(self, loop: For) -> Store | None:
        """The store of the one number that goes from step to step, if it is chosen."""
        if not all(isinstance(s, (Store, Comment)) for s in loop.body):
            return None
        stores = [s for s in loop.body if isinstance(s, Store)]
        if any(s.op == "add" for s in stores if not s.index):
            return None  # a sum in strips is not what it is elsewhere
        stored = Counter(s.buffer for s in stores)
        first: dict[str, str] = {}
        for a in accesses(loop.body):
            first.setdefault(a.buffer, a.mode)
        found = [s for s in stores if not s.index and first[s.buffer] in ("r", s.op) and stored[s.buffer] == 1]
        if len(found) != 1 or not any(s.index for s in stores):
            return None
        (carried,) = found
        left = {self.root[s.buffer] for s in stores if s.index}
        asked = {self.root[e.buffer] for s in stores if not s.index for e in loads(s.value)}
        table = self.table[carried.buffer]
        chosen = table.dtype in FLOATS and table.kind == "temp" and _is_chosen(carried)
        return carried if chosen and not left & asked else None

    def strips(self, loop: For, still: For, carried: Store) -> For:
        dtype = self.table[carried.buffer].dtype
        changes = Buffer(self.names.fresh("changes"), dtype, (), "temp")
        self.made.append(changes)
        q, count = self.names.fresh("q"), (loop.hi - loop.lo + (STRIP - 1)) // STRIP
        lo = loop.lo + Dim.of(q) * STRIP
        loop, still = (replace(x, lo=lo, hi=minimum(lo + STRIP, loop.hi)) for x in (loop, still))
        was = Load(carried.buffer, (), dtype)
        then = Op(_CHOICES[carried.op], (was, carried.value), dtype) if carried.op else carried.value
        other = Op("where", (Op("not_equal", (then, was), "bool"), Const(1.0, dtype), Const(0.0, dtype)), dtype)
        ahead = tuple(s for s in still.body if isinstance(s, Store) and not s.index and s.op is None)
        counted = replace(still, body=(*ahead, Store(changes.name, (), other, "add")))
        none = Op("equal", (Load(changes.name, (), dtype), Const(0.0, dtype)), "bool")
        body = (
            Store(changes.name, (), Const(0.0, dtype)),
            anew(forwards(counted), self.names),
            If(none, (anew(forwards(still), self.names),), (anew(loop, self.names),)),
        )
        return For(q, Dim.of(0), count, body, "seq")


def _is_chosen(store: Store) -> bool:
    """Whether it may be what it was: the larger or lesser of that and another number, or one way of a choice."""
    if store.op:
        return store.op in _CHOICES
    match store.value:
        case Op("maximum" | "minimum", args) | Op("where", (_, *args)):
            return any(_is_itself(a, store.buffer) for a in args)
    return False


def _is_itself(expr: Expr, name: str) -> bool:
    return isinstance(expr, Load) and expr.buffer == name


__all__ = ["lulls"]
