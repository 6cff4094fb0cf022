"""Where a loop goes on until an index is out of range, that is asked at its ends, and not at each of its steps.

    for j in 0..n:                                 for j in 0..min(n, S):
        check j < S else fault(j)          ->          y += x[j]
        y += x[j]                                  check n <= S else fault(S)

For bounds that only running the program tells, as the length of a row that is read from memory: what extents say is
asked before all loops (`ranges`). A comparison that is linear in the counter holds up to some step, or from some step
on. So the loop ends where the first of its checks fails, and the checks are made as of its first step, and of the one
it did not take.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dims import Dim, Facts, maximum, minimum, nonnegative
from ..ir import Check, Expr, For, If, Int, Kernel, Op, Stmt
from .depend import Memory
from .fold import fold_body
from .guards import margins
from .ranges import conjuncts
from .tree import Body, has, map_bodies, own_accesses, substitute, symbols, written


def ends(kernel: Kernel) -> Kernel:
    if not has(kernel.body, Check):
        return kernel
    return replace(kernel, body=_body(kernel.body, Memory.of(kernel)))


def _body(body: Body, memory: Memory) -> Body:
    return tuple(new for stmt in body for new in _stmt(stmt, memory))


def _stmt(stmt: Stmt, memory: Memory) -> Body:
    if not isinstance(stmt, For):
        return (map_bodies(stmt, lambda inner: _body(inner, memory)),)
    loop = replace(stmt, body=_body(stmt.body, memory.inside(stmt)))
    checks = [s for s in loop.body if isinstance(s, Check)]
    if not any(loop.var in symbols(check.cond) for check in checks):
        return (loop,)  # what is asked of no counter is asked once by those who turn loops around (`interchange`)
    if any(has((s,), Check) for s in loop.body if not isinstance(s, Check)):
        return (loop,)
    changed = {memory.root[name] for name in written(loop.body)}
    if any(memory.root[name] in changed for check in checks for name, _, _ in own_accesses(check)):
        return (loop,)
    limits = [limit for check in checks if (limit := _limits(check, loop))]
    return _at_ends(loop, checks, limits, memory.facts) if len(limits) == len(checks) else (loop,)


@dataclass(frozen=True)
class _Limits:
    """Steps from which on a check may fail, and whether it may fail at the first one only."""

    last: tuple[Dim, ...]
    first: bool


def _limits(check: Check, loop: For) -> _Limits | None:
    """None: it may fail anywhere."""
    last: list[Dim] = []
    first = False
    for part in conjuncts(check.cond):
        if loop.var not in symbols(part):
            first = True
            continue
        asked = margins(part)
        if not asked:
            return None
        for margin in asked:
            split = margin.split(loop.var)
            if split is None or split[0].value is None or any(loop.var in d.symbols() for d in split):
                return None
            step, rest = split[0].value, split[1]
            if step > 0:
                first = True
            elif step < 0:
                last.append((rest - step) // -step)
    return _Limits(tuple(last), first)


def _at_ends(loop: For, checks: list[Check], limits: list[_Limits], facts: Facts) -> Body:
    runs = loop.hi - loop.lo
    idle = None if nonnegative(runs - 1, facts) else compared("less_equal", runs, Dim.of(0))
    steps = replace(loop, body=tuple(s for s in loop.body if not isinstance(s, Check)))
    before: Body = ()
    if any(limit.first for limit in limits):
        before = tuple(unless(idle, check, loop, loop.lo) for check in checks)
    end = loop.hi
    for place in (place for limit in limits for place in limit.last):
        end = minimum(end, place, facts)
    if end == loop.hi:
        return (*fold_body(before), steps)
    end = maximum(loop.lo, end, facts)
    done = compared("greater_equal", end, loop.hi)
    left = done if idle is None else Op("logical_or", (idle, done), "bool")
    after = tuple(unless(left, check, loop, end) for check, limit in zip(checks, limits, strict=True) if limit.last)
    return (*fold_body(before), replace(steps, hi=end), *fold_body(after))


def unless(excuse: Expr | None, check: Check, loop: For, step: Dim) -> Stmt:
    """The check as of one step of a loop, unless there is none: then what it reads may not be there either."""
    (here,) = substitute((check,), {loop.var: step})
    assert isinstance(here, Check)
    if excuse is None:
        return here
    if any(index for _, index, _ in own_accesses(here)):
        return If(Op("logical_not", (excuse,), "bool"), (here,))
    return replace(here, cond=Op("logical_or", (excuse, here.cond), "bool"))


def compared(op: str, a: Dim, b: Dim) -> Expr:
    return Op(op, (Int(a), Int(b)), "bool")


__all__ = ["compared", "ends", "unless"]
