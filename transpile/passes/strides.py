"""Where a stride of configuration is 1, as it mostly is, the innermost loop runs along memory and may be vectorised.

    before:  for j in 0..n map:                         after:  if (s == 1):
                 a[j*s + b] += p[j]                                 for j in 0..n map: a[j + b] += p[j]
                                                                else:
                                                                    for j in 0..n map: a[j*s + b] += p[j]

With an unknown stride loads are gathered one by one, and stores may meet in one place (s = 0), which forbids vectors.
Comes last: a branch between loops stands in the way of other passes.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import ONE, Dim
from ..ir import For, If, Kernel, Stmt
from .questions import all_of, compared
from .tree import Body, in_vectors, map_stmts, own_accesses, substitute, walk


def strides(kernel: Kernel) -> Kernel:
    settings = {s.name for s in kernel.scalars if s.dtype == "i64"}

    def asked(stmt: Stmt) -> Body:
        if not in_vectors(stmt):
            return (stmt,)
        steps = sorted(_steps(stmt) & settings)
        if not steps:
            return (stmt,)
        ones = all_of(compared("equal", Dim.of(name), 1) for name in steps)
        return (If(ones, substitute((stmt,), dict.fromkeys(steps, ONE)), (stmt,)),)

    return replace(kernel, body=map_stmts(kernel.body, asked)) if settings else kernel


def _steps(loop: For) -> set[str]:
    """The symbols that are how far apart in memory two iterations are."""
    found: set[str] = set()
    for stmt in walk(loop.body):
        for _, index, _ in own_accesses(stmt):
            if index and (split := index[-1].split(loop.var)) is not None:
                found |= {s for s in split[0].symbols() if split[0] == Dim.of(s)}
    return found


__all__ = ["strides"]
