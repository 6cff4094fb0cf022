"""What a nest of a gradient adds to several places is added to each on its own, where that makes products of matrices.

    for j: for d:                                    for j: for d: t[j] += g[i,d] * v[j,d]
        r = g[i,d] * v[j,d]                          for j: d_p[j] += t[j] / z
        d_p[j] += r / z                       ->     for j: for d: d_v[j,d] += g[i,d] * p[j]
        d_v[j,d] += g[i,d] * p[j]
        d_z += r * p[j]                              for j: d_z += t[j] * p[j]

So is the gradient of `y[i,d] += p[j] / z * v[j,d]`, an attention in loops. What all terms have in common is left to
their sum (see common), and equal sums are made once. Part of fission, which knows what a product is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ..ir import FLOATS, Expr, Stmt, Store
from .factor import with_values
from .order import rebuild, stores
from .share import dtype_of
from .tree import Body, Names, loads, nest_anew
from .work import effort

CHEAP = 4  # flops of what is made again for each of them
FEWEST = 2


def addends(stmt: Stmt, own: Collection[str], names: Names) -> Body | None:
    """The nests that add to one place each; None where it does anything else, or adds to one only. `own`: variables of
    the nest alone."""
    nest = stores(stmt)
    if nest is None:
        return None
    loops, inside = nest
    found = [s for s in inside if isinstance(s, Store)]
    stored = Counter(s.buffer for s in found)
    known: dict[str, Expr] = {}
    added: list[Store] = []
    for store in found:
        value = with_values(store.value, known)
        if store.buffer in own and not store.index and store.op is None and stored[store.buffer] == 1:
            if effort(value) > CHEAP or dtype_of(value) not in FLOATS:  # others may say where something is
                return None
            known[store.buffer] = value
        elif store.op == "add":
            added.append(Store(store.buffer, store.index, value, "add"))
        else:
            return None
    targets = {s.buffer for s in added}
    if len(added) < FEWEST or any(
        load.buffer in targets or load.buffer in own for s in added for load in loads(s.value)
    ):
        return None
    return tuple(nest_anew(rebuild(loops, (s,)), names) for s in added)
