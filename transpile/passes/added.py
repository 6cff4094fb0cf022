"""What is stored, and added to before anything reads it, is stored once, as the sum.

    d[i, j] = s                             e = f(t)
    e = f(t)                       ->       d[i, j] = s + e
    d[i, j] += e

So a gradient that several statements add to is written, not read: a loop that adds to a place that it has stored itself
shares nothing with its other iterations, and its vectors need not wait for what was just written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir import FLOATS, Buffer, Check, Const, Expr, Grow, Kernel, Op, Stmt, Store, While
from .tree import Body, buffers, has, map_bodies, own_accesses, roots, touched, written


def added(kernel: Kernel) -> Kernel:
    state = _State(buffers(kernel), roots(kernel))
    return replace(kernel, body=state.body(kernel.body))


class _State:
    def __init__(self, table: Mapping[str, Buffer], root: Mapping[str, str]) -> None:
        self.table, self.root = table, root

    def body(self, body: Body) -> Body:
        kept: list[Stmt] = []
        for stmt in body:
            stmt = map_bodies(stmt, self.body)
            if isinstance(stmt, Store) and (k := self.stored(stmt, kept)) is not None:
                first = kept.pop(k)
                assert isinstance(first, Store)
                value = Op("add", (first.value, stmt.value), self.table[stmt.buffer].dtype)
                stmt = replace(stmt, value=value, op=None)
            kept.append(stmt)
        return tuple(kept)

    def stored(self, adding: Store, before: Sequence[Stmt]) -> int | None:
        """Where the place that a statement adds to was stored, with nothing in between that reads it or changes what
        its value was made of; a check may leave in between."""
        own, dtype = self.root[adding.buffer], self.table[adding.buffer].dtype
        if adding.op != "add" or not adding.index or dtype not in FLOATS or own in self.read(adding):
            return None
        for k in range(len(before) - 1, -1, -1):
            first, between = before[k], before[k + 1 :]
            if own not in {self.root[n] for n in touched((first,))}:
                continue
            if not isinstance(first, Store) or first.op or first.index != adding.index or first.buffer != adding.buffer:
                return None
            if isinstance(first.value, Const) or not _of(dtype, first.value, adding.value):
                return None
            changed = {self.root[n] for n in written(between)}
            return None if has(between, Check, While, Grow) or changed & self.read(first) else k
        return None

    def read(self, store: Store) -> set[str]:
        return {self.root[name] for name, _, mode in own_accesses(store) if mode == "r"}


def _of(dtype: str, *values: Expr) -> bool:
    return all(getattr(value, "dtype", None) == dtype for value in values)
