"""A product that a gradient adds beside something else is added on its own: with the batch, it is one of matrices.

    for i: for j:                                          for i: for j: d_w[i,j] += h[j] * dy[i]
        d_w[i,j] += h[j] * dy[i] + x[i] * g[j]     ->      for i: for j: d_w[i,j] += x[i] * g[j]

So it is where a weight is used twice. Nests that are no products after all are one again (see fuse).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir import FLOATS, Expr, Kernel, Op, Stmt, Store
from .inline import inline_summands
from .order import rebuild, stores
from .share import dtype_of
from .tree import Body, Names, loads, map_bodies, nest_anew, symbols


def terms(kernel: Kernel) -> Kernel:
    if not kernel.flush:
        return kernel
    added = inline_summands(kernel)
    body = _body(added.body, Names.of(added))
    return replace(added, body=body) if body != added.body else kernel


def _body(body: Body, names: Names) -> Body:
    return tuple(new for stmt in body for new in _stmt(stmt, names))


def _stmt(stmt: Stmt, names: Names) -> Iterator[Stmt]:
    nest = stores(stmt)
    if nest is None:
        yield map_bodies(stmt, lambda inner: _body(inner, names))
        return
    loops, inside = nest
    match inside:
        case [Store(buffer, index, value, "add") as store] if dtype_of(value) in FLOATS and not _asks(value, buffer):
            counters = {x.var for x in loops} & {n for d in index for n in d.symbols()}
            found = list(_summands(value))
            outer = [t for t in found if _is_outer(t, counters)]
            if outer and len(found) > 1:
                rest = [t for t in found if t not in outer]
                yield rebuild(loops, (replace(store, value=_sum(rest or outer[-1:])),))
                for term in outer if rest else outer[:-1]:
                    yield nest_anew(rebuild(loops, (replace(store, value=term),)), names)
                return
    yield stmt


def _summands(value: Expr, negative: bool = False) -> Iterator[Expr]:
    match value:
        case Op("add" | "subtract" as op, (a, b), _):
            yield from _summands(a, negative)
            yield from _summands(b, negative != (op == "subtract"))
        case Op("negative", (a,), _):
            yield from _summands(a, not negative)
        case _:
            yield _minus(value) if negative else value


def _minus(value: Expr) -> Expr:
    match value:
        case Op("multiply", (a, b), dtype):
            return Op("multiply", (_minus(a), b), dtype)
    return Op("negative", (value,), dtype_of(value))


def _sum(found: list[Expr]) -> Expr:
    total = found[0]
    for term in found[1:]:
        total = Op("add", (total, term), dtype_of(total))
    return total


def _asks(value: Expr, buffer: str) -> bool:
    """Whether it hangs on what is in the buffer, which the first of its terms would change."""
    return any(load.buffer == buffer for load in loads(value))


def _is_outer(term: Expr, counters: set[str]) -> bool:
    """Whether it is a product of what one counter names and what the others name."""
    match term:
        case Op("multiply", (a, b), _):
            one, other = symbols(a) & counters, symbols(b) & counters
            return bool(one and other) and not one & other and one | other == counters
    return False
