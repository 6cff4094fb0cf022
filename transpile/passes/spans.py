"""A number that is only ever given places in range is in range, whichever of them it has.

    k = 2*i                                               k = 2*i
    for r in ..: if (0 <= r) & (r < H):                   for r in ..: if (0 <= r) & (r < H):
        check (k >= -H) & (k < H)                  ->         if x[r] > x[k]: k = r
        at = where(k < 0, k + H, k)                       y[i] = x[k]
        if x[r] > x[at]: k = r
    check (k >= -H) & (k < H); at_2 = ...; y[i] = x[at_2]

The place of the largest so far, a pivot, the state that a path goes through: variables of the user, and what a gradient
saves of them in arrays. What is asked of such a number is answered by what its stores say, each where it stands: of
counters, and of what branches have asked there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ..dims import Atom, Dim
from ..ir import Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from .copies import copies
from .depend import Memory
from .fold import fold_body
from .guards import margins, negated, without_places
from .ranges import as_dim, conjuncts
from .tree import (
    Body,
    accesses,
    bodies,
    dim_loads,
    map_all,
    map_expr,
    roots,
)

Spans = dict[str, list[tuple[Dim, Memory]]]  # number, or array of them -> all that it ever is, and what is known there


def spans(kernel: Kernel) -> Kernel:
    if not (found := _found(kernel)):
        return kernel
    sizes = _sizes(kernel)
    body = map_all(kernel.body, lambda e: map_expr(e, lambda part: _answered(part, found, sizes)))
    named = copies(replace(kernel, body=without_places(fold_body(body), kernel)))
    return kernel if named.body == kernel.body else named


def places(kernel: Kernel) -> tuple[Dim, ...]:
    """What is not negative, as such numbers are places of the arrays that they are places of."""
    found, sizes = _found(kernel), _sizes(kernel)
    shape = {b.name: b.shape for b in kernel.buffers}
    asked: dict[Dim, None] = {}
    for access in accesses(kernel.body) if found else ():
        for dim, extent in zip(access.index or (), shape[access.buffer]):
            if isinstance(dim.symbol, Atom) and dim.symbol.kind == "load":
                asked |= dict.fromkeys((dim, extent - 1 - dim))
    return tuple(m for m in asked if _holds(m, found, sizes))


def numbers_of(kernel: Kernel) -> set[str]:
    """The integer variables that go by one name, and of which no extent is made."""
    return {b.name for b in kernel.buffers if not b.shape} & _integers(kernel)


def within(cond: Expr | None, memory: Memory) -> Memory:
    """What is known where a condition of counters holds."""
    return memory if cond is None else memory.where(m for part in conjuncts(cond) for m in margins(part))


def _sizes(kernel: Kernel) -> set[str]:
    return {*kernel.dims, *(s.name for s in kernel.scalars)}


def _integers(kernel: Kernel) -> set[str]:
    root = roots(kernel)
    known_as = Counter(root.values())
    asked = {load.buffer for b in kernel.buffers for d in b.shape for load in dim_loads(d)}
    found = (b.name for b in kernel.buffers if b.kind == "temp" and b.dtype == "i64")
    return {name for name in found if root[name] == name and known_as[name] == 1 and name not in asked}


def _found(kernel: Kernel) -> Spans:
    """The integers that are set to counters only, or to others of them."""
    own = _integers(kernel)
    values: Spans = {name: [] for name in own}
    copied: dict[str, set[str]] = {name: set() for name in own}
    bad: set[str] = set()
    for stmt, memory in _leaves(kernel.body, Memory.of(kernel)) if own else ():
        match stmt:
            case Store(name, _, value, None) if name in own:
                for one in choices(value):
                    if isinstance(one, Load) and one.buffer in own:
                        copied[name].add(one.buffer)
                    elif (dim := as_dim(one)) is not None and not any(dim_loads(dim)):
                        values[name].append((dim, memory))
                    else:
                        bad.add(name)
            case _:
                bad |= {a.buffer for a in accesses((stmt,)) if a.writes}
    good = own - bad
    while stale := {name for name in good if not copied[name] <= good}:
        good -= stale
    for _ in good:  # a copy of a copy
        for name in good:
            for other in copied[name]:
                values[name] += [v for v in values[other] if v not in values[name]]
    return {name: values[name] for name in sorted(good) if values[name]}


def choices(value: Expr) -> Iterator[Expr]:
    """What a value may be, whichever of them is chosen."""
    match value:
        case Op("where", (_, one, other)):
            yield from choices(one)
            yield from choices(other)
        case _:
            yield value


def _leaves(body: Body, memory: Memory) -> Iterator[tuple[Stmt, Memory]]:
    """All statements that hold no others, and what is known where they are."""
    for stmt in body:
        match stmt:
            case For():
                yield from _leaves(stmt.body, memory.inside(stmt))
            case If(cond, then, orelse):
                yield from _leaves(then, within(cond, memory))
                yield from _leaves(orelse, within(negated(cond), memory))
            case _ if inside := bodies(stmt):
                for inner in inside:
                    yield from _leaves(inner, memory)
            case _:
                yield stmt, memory


def _answered(expr: Expr, found: Spans, sizes: set[str]) -> Expr:
    """A comparison of such a number with a size, if all that the number may be have one answer."""
    if not isinstance(expr, Op) or len(expr.args) != 2:
        return expr
    asked = Op(expr.op, tuple(map(_as_integer, expr.args)), expr.dtype)
    for wanted in (True, False):
        needed = margins(asked, wanted)
        if needed and all(_holds(m, found, sizes) for m in needed):
            return Const(wanted, "bool")
    return expr


def _as_integer(arg: Expr) -> Expr:
    return Int(Dim.of(Atom("load", (arg,)))) if isinstance(arg, Load) and arg.dtype == "i64" else arg


def _holds(margin: Dim, found: Spans, sizes: set[str]) -> bool:
    read = set(dim_loads(margin))
    if len(read) != 1 or (load := next(iter(read))).buffer not in found:
        return False

    def given(value: Dim) -> Dim:
        return margin.rebuilt(lambda atom: value if atom == Atom("load", (load,)) else Dim.of(atom))

    rest = given(Dim.of(0))
    if not rest.symbols() <= sizes or any(dim_loads(rest)):
        return False
    return all(memory.natural(given(value)) for value, memory in found[load.buffer])
