"""What examples are asked is asked of all of them before anything is computed.

    for b in 0..batch:                                   for b in 0..batch:
        s = x[b] @ w                                         at = label[b]; check 0 <= at < K
        at = label[b]; check 0 <= at < K       ->        for b in 0..batch:
        y[b] = s[at]                                         s = x[b] @ w; at = label[b]; y[b] = s[at]

Which example fails first, and how, stays as it is; the loop over them may then be taken apart (`distribute`).
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import Dim
from ..ir import Buffer, Check, For, Kernel, Stmt, Store
from .depend import Memory
from .once import own_temporaries
from .tree import Body, Names, accesses, has, loads, over_examples, own_accesses, rename_buffers, substitute, written


def asked_before(kernel: Kernel) -> Kernel:
    """The kernel, where its examples are asked before their loop, if they can be."""
    body: list[Stmt] = []
    made: list[Buffer] = []
    for stmt in kernel.body:
        if over_examples(stmt, kernel):
            body += _parted(kernel, stmt, made)
        else:
            body.append(stmt)
    return replace(kernel, body=tuple(body), buffers=(*kernel.buffers, *made))


def _parted(kernel: Kernel, loop: For, made: list[Buffer]) -> Body:
    rest = tuple(s for s in loop.body if not isinstance(s, Check))
    if len(rest) == len(loop.body) or has(rest, Check):
        return (loop,)
    asked = _asked(kernel, loop)
    if asked is None:
        return (loop,)
    names = Names.of(kernel)
    numbers = sorted(written(asked))
    fresh = {n: names.fresh(n) for n in numbers}
    made += [replace(b, name=fresh[b.name]) for b in kernel.buffers if b.name in fresh]
    var = names.fresh(loop.var)
    first = rename_buffers(substitute(asked, {loop.var: Dim.of(var)}), fresh)
    return (replace(loop, var=var, body=first), replace(loop, body=rest))


def _asked(kernel: Kernel, loop: For) -> Body | None:
    """The checks, and the numbers that they ask, which hang on arguments alone."""
    own, root = own_temporaries(kernel, loop), Memory.of(kernel).root
    needed = {a.buffer for s in loop.body if isinstance(s, Check) for a in accesses((s,))}
    found: list[Stmt] = []
    for stmt in reversed(loop.body):
        if isinstance(stmt, Check):
            found.append(stmt)
        elif needed & written((stmt,)):
            if not isinstance(stmt, Store) or stmt.index or stmt.op or stmt.buffer not in own:
                return None
            found.append(stmt)
            needed |= {load.buffer for load in loads(stmt.value)}
    numbers = written(found)
    changed = {root[n] for n in written(loop.body)} - numbers
    if any(root[name] in changed for s in found for name, _, mode in own_accesses(s) if mode == "r"):
        return None
    once = all(sum(n in written((s,)) for s in loop.body) == 1 for n in numbers)
    return tuple(reversed(found)) if once else None


__all__ = ["asked_before"]
