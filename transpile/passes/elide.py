"""Copy elision: what is made only to be copied is made where the copy goes.

    for i: t[i] = f(x[b,i]); t[k] += g; for i: y[b,i] = t[i]    ->    for i: y[b,i] = f(x[b,i]); y[b,k] += g

Legal if the temporary is stored as a whole before anything else is done to it, the copy is the last that is, and
nothing touches the copy's place meanwhile.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..dims import ONE
from ..ir import Buffer, Comment, Kernel, Load, Stmt, Store
from .contract import drop_dead, stored_first
from .direct import is_whole
from .order import stores
from .tree import Body, Index, accesses, buffers, dim_loads, map_bodies, map_places, read_from_dims, roots


def elide(kernel: Kernel) -> Kernel:
    table, root = buffers(kernel), roots(kernel)
    uses = Counter(a.buffer for a in accesses(kernel.body))
    alone = Counter(root.values())
    asked = read_from_dims(kernel)
    temps = {n for n, b in table.items() if b.kind == "temp" and b.shape and alone[root[n]] == 1 and n not in asked}

    def made_there(before: Body, copy: Store, of: Load) -> Body | None:
        """What comes before the copy, done where the copy goes."""
        name, result = of.buffer, root[copy.buffer]
        first = next((k for k, s in enumerate(before) if _count(s, name)), len(before))
        meanwhile = before[first:]
        if uses[name] != 1 + sum(_count(s, name) for s in meanwhile) or not _begun(meanwhile, table[name]):
            return None
        if any(root[a.buffer] == result for a in accesses(meanwhile)):
            return None

        def place(buffer: str, index: Index) -> tuple[str, Index]:
            if buffer != name:
                return buffer, index
            at = {str(old.symbol): new for old, new in zip(of.index, index)}
            return copy.buffer, tuple(d.subs(at) for d in copy.index)

        return (*before[:first], *map_places(meanwhile, place))

    def body(statements: Body) -> Body:
        found: Body = ()
        for stmt in statements:
            copied = _copy(stmt, temps, table)
            there = made_there(found, *copied) if copied is not None else None
            found = (*found, stmt) if there is None else there
        return tuple(map_bodies(stmt, body) for stmt in found)

    changed = replace(kernel, body=body(kernel.body))
    return kernel if changed == kernel else drop_dead(changed)


def _count(stmt: Stmt, name: str) -> int:
    return sum(a.buffer == name for a in accesses((stmt,)))


def _copy(stmt: Stmt, temps: set[str], table: dict[str, Buffer]) -> tuple[Store, Load] | None:
    """The store and the load, where a statement is a nest that copies a whole temporary, the rows of both the same."""
    loops, inside = stores(stmt) or ([], ())
    match [s for s in inside if not isinstance(s, Comment)]:
        case [Store(target, index, Load(name, place) as of, None) as store] if name in temps:
            ranges = {x.var: (x.lo, x.hi) for x in loops}
            alike = table[target].kind == "out" and table[name].dtype == table[target].dtype
            rows = index[-1].split(str(place[-1].symbol)) if place[-1].symbol is not None else None
            known = not any(dim_loads(d) for d in index)
            if alike and known and rows and rows[0] == ONE and is_whole(place, table[name].shape, ranges):
                return store, of
    return None


def _begun(body: Body, buffer: Buffer) -> bool:
    """Whether the buffer is stored as a whole first. A loop along none of its axes may run no times."""
    if not stored_first(body, buffer, set()):
        return False
    stored = next(a for a in accesses(body) if a.buffer == buffer.name)
    return all(any(loop.var in d.symbols() for d in stored.index or ()) for loop in stored.loops)
