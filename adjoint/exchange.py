"""What is dear to compute again crosses the cut in place of an argument, where the pullback reads the argument for
nothing else and that is no more memory.

    before:  f(x) -> y, largest, total      d_f(x, largest, total, dy): e = np.exp(x - largest); d_x = dy / total * e
    after:   f(x) -> y, e, total            d_f(e, total, dy): d_x = dy / total * e
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..transpile.dims import ZERO, Dim, product
from ..transpile.program import Assign, Function, Stmt, Type, assigned, read, walk_stmts
from .loops import DEAR, costs

ALIKE = 16  # elements of any extent, where sizes are compared that are not known
LARGE = 4096


def exchanged(
    primal: Function,
    head: Sequence[Stmt],
    found: set[str],
    types: Mapping[str, Type],
    pullback: Callable[[set[str]], tuple[Stmt, ...]],
) -> set[str]:
    """The names that cross. `head`: the gradient before the cut; `found`: what crosses otherwise; `types`: of the names
    that may; `pullback`: what is left of the gradient where names cross."""
    given = {p.name: p.type for p in primal.params if p.role != "param"}
    given |= {r.name: r.type for r in primal.results}
    times = Counter(n for s in walk_stmts(tuple(head)) for n in assigned((s,)))

    def held(crossing: set[str], used: set[str]) -> list[Type]:
        return [*(types[n] for n in crossing & used), *(t for n, t in given.items() if n in used)]

    used = read(pullback(found))
    for stmt in reversed(head):
        if not isinstance(stmt, Assign) or costs(stmt.value) < DEAR:
            continue
        if stmt.name in types and stmt.name in used and stmt.name not in found and times[stmt.name] == 1:
            trial = found | {stmt.name}
            then = read(pullback(trial))
            if never_more(held(trial, then), held(found, used)):
                found, used = trial & then, then
    return found


def never_more(kept: Sequence[Type], given: Sequence[Type]) -> bool:
    """Whether the ones have no more elements than the others: where all extents are alike, and where one is large."""
    symbols = {s for t in (*kept, *given) for d in t.shape for s in d.symbols()}
    return all(elements(kept, large) <= elements(given, large) for large in (None, *sorted(symbols)))


def elements(types: Sequence[Type], large: str | None = None) -> int:
    """How many they have where all extents are alike, but for a large one."""
    size: Dim = sum((product(t.shape) for t in types), ZERO)
    return size.evaluate({s: LARGE if s == large else ALIKE for s in size.symbols()})
