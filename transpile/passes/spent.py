"""What nothing reads any more is not stored.

    for b: h[i] = 0; for t: h_saved[t,i] = h[i]; h[i] = ...        for b: h[i] = 0; for t: ...
           for t: h[i] = h_saved[t,i]; d[t,i] = f(h[i])     ->            for t: d[t,i] = f(h_saved[t,i])

A reverse restores what an iteration began with; where it is read from where it was saved (`inline`), the copy is left
over. Of a temporary that is filled as a whole before an iteration does anything else with it, nothing is handed on.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import FLOATS, Buffer, For, Kernel, Stmt, Store, While
from .fills import stores_all
from .tidy import drop_idle
from .tree import Body, accesses, bodies, in_dims, map_bodies, touched, walk


def spent(kernel: Kernel) -> Kernel:
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    asked = {name for s in walk(kernel.body) for name in in_dims(s)}
    ours = {
        b.name: b
        for b in kernel.buffers
        if b.kind == "temp" and b.shape and b.dtype in FLOATS and b.name not in aliased | asked
    }
    body = _body(kernel.body, ours, again=False)
    return replace(kernel, body=drop_idle(body)) if body != kernel.body else kernel


def _body(body: Body, ours: dict[str, Buffer], again: bool) -> Body:
    """`ours`: temporaries that nothing outside of the body touches; `again`: the body runs more than once."""
    for name, buffer in ours.items():
        touching = [k for k, s in enumerate(body) if name in touched((s,))]
        if touching and not (again and not _fills(body[touching[0]], buffer)):
            last = max((k for k in touching if _reads(body[k], name)), default=-1)
            body = tuple(_without(s, name) if k > last and k in touching else s for k, s in enumerate(body))
    return tuple(_inside(s, body, ours, again) for s in body)


def _inside(stmt: Stmt, body: Body, ours: dict[str, Buffer], again: bool) -> Stmt:
    if not bodies(stmt):
        return stmt
    others = touched(s for s in body if s is not stmt)
    own = {n: b for n, b in ours.items() if n not in others}
    again = again or isinstance(stmt, (For, While))
    if sum(bool(touched(inner) & own.keys()) for inner in bodies(stmt)) > 1:
        return stmt
    return map_bodies(stmt, lambda inner: _body(inner, own, again))


def _reads(stmt: Stmt, name: str) -> bool:
    return any(a.buffer == name and a.mode != "w" for a in accesses((stmt,)))


def _fills(stmt: Stmt, buffer: Buffer) -> bool:
    return stores_all(stmt, [a for a in accesses((stmt,)) if a.buffer == buffer.name], buffer, {})


def _without(stmt: Stmt, name: str) -> Stmt:
    def kept(body: Body) -> Body:
        return tuple(map_bodies(s, kept) for s in body if not (isinstance(s, Store) and s.buffer == name))

    return map_bodies(stmt, kept)
