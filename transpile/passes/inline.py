"""Forward-substitutes temporaries that are cheaper to compute again than to keep.

    for i: t[i] = x[i] - m                for j: s += (x[j] - m) * (x[j] - m)
    for j: s += t[j] * t[j]         ->    for k: y[k] = x[k] - m
    for k: y[k] = t[k]

Inlined are: values of a few flops (less than writing and reading them takes) and at most two loads, where what does
not change along the last axis is free (it is hoisted), unless it is a dear number or is looked up by an index, and what
all rows share is nearly so (it is in the first cache); and any value read once, by a nest that runs over just its
elements. Legal where the one store of the temporary comes before all its loads, and nothing its value reads is written
from there to them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..dims import ONE, ZERO, Dim
from ..ir import Buffer, Cast, Expr, For, Kernel, Load, Op, Product, Stmt, Store, While
from ..node import remembered
from ..operations import flops
from .fold import simplify
from .tidy import drop_idle
from .tree import (
    Access,
    Body,
    accesses,
    bodies,
    buffers,
    dim_loads,
    loads,
    map_all,
    parts,
    read_from_dims,
    roots,
    subst_expr,
    symbols,
    walk,
    written,
)
from .work import effort

CHEAP_FLOPS, CHEAP_LOADS, CHEAP_SHARED, MOST_NODES = 8, 2, 4, 60
MOST_TWICE = 300  # nodes of what is told more than once: each line that says it twice would be twice as long
AGAIN_FLOPS = 2  # of what a recurrence would compute again in each turn
ONCE_FLOPS = 1  # of what is made once, and would be for each example
DEAR_FLOPS = 16  # of a number: loops that do not change it need not be asked to leave it out


@dataclass(frozen=True)
class _Limits:
    """`shared`: how many loads may be of what all rows share, beside the others; `batch`: the examples."""

    root: dict[str, str]
    shared: int
    batch: str | None


def cost(expr: Expr, variable: str) -> int:
    """Flops that a loop over the variable has to do."""
    if variable not in symbols(expr):
        return 0
    match expr:
        case Op(op, args, _):
            return flops(op) + sum(cost(a, variable) for a in args)
        case Cast(value, _):
            return cost(value, variable)
    return 0


def inline(kernel: Kernel) -> Kernel:
    """One temporary at a time, in the order of their stores, so that chains collapse."""
    return _inline(kernel, set(), CHEAP_SHARED)


def inline_summands(kernel: Kernel) -> Kernel:
    """Only temporaries that are just added to something: C += t, where t is an outer product, is C += a * b. They are
    operands of products, too, which want arrays: nothing is let off here."""
    kept = {b.name for b in kernel.buffers}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Store) and stmt.op == "add" and isinstance(stmt.value, Load):
            kept.discard(stmt.value.buffer)
    return _inline(kernel, kept, 0)


def _inline(kernel: Kernel, refused: set[str], shared: int) -> Kernel:
    """`shared`: how many loads may be of what all rows share, beside the others."""
    while (found := _candidate(kernel, refused, shared)) is not None:
        name, changed = found
        refused.add(name)
        if changed is not None:
            kernel = changed
    return replace(kernel, body=drop_idle(kernel.body))


def _candidate(kernel: Kernel, refused: set[str], shared: int) -> tuple[str, Kernel | None] | None:
    table, root = buffers(kernel), roots(kernel)
    aliased = {b.alias for b in kernel.buffers if b.alias} | {b.name for b in kernel.buffers if b.alias}
    order = [name for stmt in kernel.body for name in _stored(stmt)]
    stores = Counter(order)
    whole = {name for stmt in kernel.body for name in _multiplied(stmt)}
    fixed = read_from_dims(kernel) | aliased | refused | whole
    for name in order:
        if table[name].kind == "temp" and stores[name] == 1 and name not in fixed:
            body = _in_body(kernel.body, table[name], _Limits(root, shared, kernel.batch))
            return name, None if body is None else replace(
                kernel, body=body, buffers=tuple(b for b in kernel.buffers if b.name != name)
            )
    return None


@remembered
def _stored(stmt: Stmt) -> tuple[str, ...]:
    """The buffers of the stores in a statement, in order."""
    own = (stmt.buffer,) if isinstance(stmt, Store) else ()
    return own + tuple(name for body in bodies(stmt) for inner in body for name in _stored(inner))


@remembered
def _multiplied(stmt: Stmt) -> frozenset[str]:
    """The buffers that products in it touch: a product takes arrays."""
    own = {a.buffer for a in accesses((stmt,))} if isinstance(stmt, Product) else set()
    return frozenset(own.union(*(_multiplied(inner) for body in bodies(stmt) for inner in body)))


def _in_body(body: Body, buffer: Buffer, limits: _Limits) -> Body | None:
    """The statements with the buffer's loads replaced and its store gone, or None where that is not
    allowed."""
    for position, stmt in enumerate(body):
        if not any(a.buffer == buffer.name for a in accesses((stmt,))):
            continue
        rest = body[position + 1 :]
        made = definition(stmt, buffer, rest)
        if made is None:
            return _one_level_down(body, position, buffer, limits)
        variables, value = made
        if not _worth(variables, value, rest, buffer, limits) or not _unchanged(value, rest, buffer, limits.root):
            return None
        return body[:position] + _put(rest, buffer, variables, value)
    return None


def _put(body: Body, buffer: Buffer, variables: tuple[str, ...], value: Expr) -> Body:
    return map_all(body, lambda e: _replaced(e, buffer, variables, value))


def _one_level_down(body: Body, position: int, buffer: Buffer, limits: _Limits) -> Body | None:
    stmt = body[position]
    if any(a.buffer == buffer.name for a in accesses(body[position + 1 :])) or not isinstance(stmt, For):
        return None
    inside = _in_body(stmt.body, buffer, limits)
    return None if inside is None else (*body[:position], replace(stmt, body=inside), *body[position + 1 :])


def definition(stmt: Stmt, buffer: Buffer, uses: Body | None = None) -> tuple[tuple[str, ...], Expr] | None:
    """(variables, value) where the statement is a nest that stores value at [variables] for all of the
    buffer, or for all that is read of it in `uses`; no variable ("") for an axis of one number."""
    extents: dict[str, tuple[Dim, Dim]] = {}
    while isinstance(stmt, For):
        if len(inner := [s for s in stmt.body if not _is_comment(s)]) != 1 or stmt.kind != "map":
            return None
        extents[stmt.var] = (stmt.lo, stmt.hi)
        stmt = inner[0]
    if not isinstance(stmt, Store) or stmt.buffer != buffer.name or stmt.op is not None:
        return None
    if any(load.buffer == buffer.name for load in loads(stmt.value)):
        return None
    variables = []
    for axis, (index, extent) in enumerate(zip(stmt.index, buffer.shape)):
        if (index, extent) == (ZERO, ONE) and not any(loads(stmt.value)):  # `np.arange(n)[:, None]`
            variables.append("")
            continue
        var = index.symbol
        if not isinstance(var, str) or var not in extents or var in variables:
            return None
        if extents[var] != (Dim.of(0), extent) and not _in_strip(uses, buffer.name, axis, extents[var]):
            return None
        variables.append(var)
    if len([v for v in variables if v]) != len(extents):
        return None
    value = stmt.value
    return tuple(variables), simplify(Cast(value, buffer.dtype))


def _in_strip(uses: Body | None, name: str, axis: int, strip: tuple[Dim, Dim]) -> bool:
    """Whether all places read are those of loops that go from where to where the strip does."""
    found = [a for a in accesses(uses or ()) if a.buffer == name]
    ranges = [{x.var: (x.lo, x.hi) for x in a.loops} for a in found]
    return uses is not None and all(r.get(str((a.index or ())[axis].symbol)) == strip for a, r in zip(found, ranges))


def _is_comment(stmt: Stmt) -> bool:
    return type(stmt).__name__ == "Comment"


def _worth(variables: tuple[str, ...], value: Expr, rest: Body, buffer: Buffer, limits: _Limits) -> bool:
    size = sum(1 for _ in parts(value))
    last = next((v for v in reversed(variables) if v), "")
    memory = [load for load in loads(value) if load.index and (not last or last in symbols(load))]
    rows = {load for load in memory if not {*variables} <= symbols(load)}
    uses = [a for a in accesses(rest) if a.buffer == buffer.name]
    if len(uses) > 1 and size > MOST_TWICE:
        return False
    again = not variables and any(a.loops for a in uses)  # in loops that it does not know of
    if again and effort(value) > DEAR_FLOPS:
        return False
    looked_up = any(any(dim_loads(d)) for a in uses for d in a.index or ())  # in loops that cannot leave it out
    if looked_up and effort(value) > CHEAP_FLOPS:
        return False
    if any(_is_picked(load, last) for load in memory) and not all(map(_same_space, uses)):
        return False
    if effort(value) > ONCE_FLOPS and any(_for_each(a, limits.batch) for a in uses):
        return False
    if cost(value, last) > AGAIN_FLOPS and _in_each_turn(rest, uses, buffer.name):
        return False
    few = len(memory) <= CHEAP_LOADS or (len({*memory} - rows) <= CHEAP_LOADS and 0 < len(rows) <= limits.shared)
    if few and cost(value, last) <= CHEAP_FLOPS:
        return True
    if len(uses) > 1 or size > MOST_NODES:
        return not uses
    return not uses or _same_space(uses[0])


def _is_picked(load: Load, variable: str) -> bool:
    """Whether neighbours are looked up one by one: a window would look up each of them again and again."""
    return any(variable in symbols(inner) for d in load.index for inner in dim_loads(d))


def _in_each_turn(rest: Body, uses: list[Access], name: str) -> bool:
    """Whether turns of a loop in order would compute again what has been computed before it."""
    turns = ((loop, use) for use in uses for loop in use.loops if loop.kind == "seq")
    if any(not any(loop.var in d.symbols() for d in use.index or ()) for loop, use in turns):
        return True
    return any(isinstance(s, While) and any(a.buffer == name for a in accesses((s,))) for s in walk(rest))


def _for_each(use: Access, batch: str | None) -> bool:
    """Whether each example would compute what is computed once."""
    if batch is None or not use.loops or use.loops[0].hi != Dim.of(batch):
        return False
    return not any(use.loops[0].var in d.symbols() for d in use.index or ())


def _same_space(use: Access) -> bool:
    """Every loop around the use names one axis: no element is computed twice."""
    return {loop.var for loop in use.loops} == {d.symbol for d in use.index or ()} or not use.loops


def _unchanged(value: Expr, rest: Body, buffer: Buffer, root: dict[str, str]) -> bool:
    read = {root[load.buffer] for load in loads(value)}
    last = max((n for n, s in enumerate(rest) if any(a.buffer == buffer.name for a in accesses((s,)))), default=-1)
    return not any(root[name] in read for name in written(rest[: last + 1]))


def _replaced(expr: Expr, buffer: Buffer, variables: tuple[str, ...], value: Expr) -> Expr:
    if isinstance(expr, Load) and expr.buffer == buffer.name:
        return subst_expr(value, dict(zip(variables, expr.index)))
    return simplify(expr)
