"""A number that is made anew has a name of its own each time: loops that only share a name do not wait for each other.

    for j: v = f(j); a[j] = v                        for j: v = f(j); a[j] = v
    for j: v = b[j]; c[j] = v * v           ->       for j: v_2 = b[j]; c[j] = v_2 * v_2

What is a loop's own, `free` lets each iteration have for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..ir import Buffer, For, Kernel, Stmt, Store
from .predicate import made_each_turn
from .tree import Body, Names, accesses, buffers, dim_loads, loads, map_bodies, rename_buffers, touched


def lives(kernel: Kernel) -> Kernel:
    state = _Lives(kernel)
    body = state.body(kernel.body)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made)) if state.made else kernel


class _Lives:
    def __init__(self, kernel: Kernel) -> None:
        self.names, self.table = Names.of(kernel), buffers(kernel)
        aliased = {b.alias for b in kernel.buffers}
        shapes = {load.buffer for b in kernel.buffers for d in b.shape for load in dim_loads(d)}
        self.numbers = {b.name for b in kernel.buffers if b.kind == "temp" and not b.shape and not b.alias}
        self.numbers -= aliased | shapes
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.made: list[Buffer] = []

    def body(self, body: Body) -> Body:
        inside = Counter(a.buffer for a in accesses(body))
        for name in sorted(self.numbers & inside.keys()):
            mine = [k for k, s in enumerate(body) if name in touched((s,))]
            # Nobody else knows it, and no turn of a loop around reads what the one before has left.
            if len(mine) > 1 and inside[name] == self.uses[name] and _begins(body[mine[0]], body[mine[0] + 1 :], name):
                body = self.apart(body, name)
        return tuple(map_bodies(s, self.body) for s in body)

    def apart(self, body: Body, name: str) -> Body:
        found: list[Stmt] = []
        called = name
        for k, stmt in enumerate(body):
            if name not in touched((stmt,)):
                found.append(stmt)
                continue
            if any(name in touched((s,)) for s in body[:k]) and _begins(stmt, body[k + 1 :], name):
                called = self.names.fresh(name)
                self.made.append(replace(self.table[name], name=called))
                self.table[called] = self.made[-1]
            found += rename_buffers((stmt,), {name: called}) if called != name else [stmt]
        return tuple(found)


def _begins(stmt: Stmt, rest: Sequence[Stmt], name: str) -> bool:
    """Whether what the number was before is nothing to a statement, or to those that follow it."""
    match stmt:
        case Store(buffer, (), value, None) if buffer == name:
            return not any(load.buffer == name for load in loads(value))
        case For(lo=lo, hi=hi, body=inner):
            if any(load.buffer == name for d in (lo, hi) for load in dim_loads(d)):
                return False
            if not made_each_turn(name, inner, stmt) and not _next_begins(inner, name):
                return False
            return _next_begins(rest, name)  # of no iterations it leaves what was
    return False


def _next_begins(body: Sequence[Stmt], name: str) -> bool:
    """The same of the first statement that knows it, if there is one."""
    at = next((k for k, s in enumerate(body) if name in touched((s,))), None)
    return at is None or _begins(body[at], body[at + 1 :], name)
