"""Interchanges the loops of a perfect nest so that the innermost one runs along memory.

    for i: for j: for k: C[i,j] += A[i,k] * B[k,j]    ->    for i: for k: for j: C[i,j] += A[i,k] * B[k,j]
    for j: for i: s[j] += x[i,j]                      ->    for i: for j: s[j] += x[i,j]

Iterations of map loops are independent but for accumulation, so every order is right as long as no bound
names a variable of a loop it would leave. The innermost loop is the one whose accesses are cheapest; the
others keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dims import Atom, Dim
from ..ir import Comment, Const, For, Kernel, Stmt, Store
from .tree import Body, accesses, buffers, dim_loads, map_bodies, walk

UNIT, NEAR, STILL, FAR, NEVER = 1.0, 3.0, 0.5, 16.0, 1e9
MOST_IN_GROUP = 64  # neighbours, where their number is known: of more, each is a row
NEXT = 4  # elements that a vector of near ones is picked from: one of so many
SUM_INSIDE = 1.5  # an accumulator that stands still: a reduction over the vector's lanes, dearer than a load


def order(kernel: Kernel) -> Kernel:
    return _ordered(kernel, unrolls=True)


def reorder(kernel: Kernel) -> Kernel:
    """After `unroll`: windows that are left stay loops."""
    return _ordered(kernel, unrolls=False)


def _ordered(kernel: Kernel, unrolls: bool) -> Kernel:
    return replace(kernel, body=_body(kernel.body, _known(kernel, unrolls)))


def dearness(nest: Stmt, kernel: Kernel) -> float:
    """What an iteration of a nest costs, along the loop that suits it best."""
    found, known = stores(nest), _known(kernel, unrolls=True)
    movable, inside = (_tail(found[0]), found[1]) if found else ([], ())
    return min((_cost(inside, loop, known) for loop in movable), default=NEVER)


def _known(kernel: Kernel, unrolls: bool) -> _Known:
    shapes = {b.name: b.shape for b in buffers(kernel).values() if b.shape or b.kind != "temp"}
    return _Known({s.var for s in walk(kernel.body) if isinstance(s, For)}, shapes, unrolls)


@dataclass(frozen=True)
class _Known:
    variables: set[str]
    shapes: dict[str, tuple[Dim, ...]]
    unrolls: bool


def _body(body: Body, known: _Known) -> Body:
    return tuple(_stmt(s, known) for s in body)


def _stmt(stmt: Stmt, known: _Known) -> Stmt:
    if (nest := stores(stmt)) is not None:
        loops, inside = nest
        movable = _tail(loops)
        if len(movable) > 1 and inside:
            best = min(reversed(movable), key=lambda loop: _cost(inside, loop, known))
            if best is not movable[-1]:
                moved = [x for x in movable if x is not best] + [best]
                return rebuild(loops[: -len(movable)] + moved, inside)
            return stmt
    return map_bodies(stmt, lambda inner: _body(inner, known))


def perfect(stmt: For) -> tuple[list[For], Body]:
    """The loops of a nest of map loops each of which holds nothing but the next, and what is innermost."""
    loops = [stmt]
    while len(stmt.body) == 1 and isinstance(stmt.body[0], For) and stmt.body[0].kind == "map":
        stmt = stmt.body[0]
        loops.append(stmt)
    return loops, stmt.body


def stores(stmt: Stmt) -> tuple[list[For], Body] | None:
    """The loops of a nest of map loops that holds nothing but stores, and those."""
    if not isinstance(stmt, For) or stmt.kind != "map":
        return None
    loops, inside = perfect(stmt)
    return (loops, inside) if all(isinstance(s, (Store, Comment)) for s in inside) else None


def filled(stmt: Stmt) -> tuple[list[For], Store] | None:
    """The loops, and the store of a constant that is all there is in them."""
    loops, body = perfect(stmt) if isinstance(stmt, For) else ([], (stmt,))
    match [s for s in body if not isinstance(s, Comment)]:
        case [Store(_, _, Const(), None) as store]:
            return loops, store
    return None


def rebuild(loops: list[For], inside: Body) -> Stmt:
    for loop in reversed(loops):
        inside = (replace(loop, body=inside),)
    return inside[0]


def _tail(loops: list[For]) -> list[For]:
    """The innermost loops that may change places: those whose bounds name no variable among them."""
    for start in range(len(loops)):
        variables = {x.var for x in loops[start:]}
        if not any((x.lo.symbols() | x.hi.symbols()) & variables for x in loops[start:]):
            return loops[start:]
    return []


def _cost(inside: Body, loop: For, known: _Known) -> float:
    var, trips = loop.var, (loop.hi - loop.lo).value
    # One of known length is written out by `unroll`, and then another loop is innermost.
    stays = trips is None or not known.unrolls
    window = is_window(inside, var, known.variables) or overlaps(inside, loop, known.variables)
    total = NEVER if stays and window else 0.0
    for a in set(accesses(inside)):
        if a.buffer not in known.shapes:
            continue  # a register of each iteration
        stride = _stride(a.index or (), var, known.shapes[a.buffer])
        if stride is None:
            total += FAR
        elif stride == 0:
            total += SUM_INSIDE if a.mode not in ("r", "w") else STILL if a.mode == "r" else FAR
        else:
            total += UNIT if abs(stride) == 1 else NEAR if abs(stride) <= NEXT else FAR
    return total


def is_group(k: For, l: For) -> bool:
    """Whether the inner loop goes over a part of a row, of which the outer one goes over all."""
    if k.lo.value != 0 or l.lo.value != 0 or k.var in l.hi.symbols() or any((*dim_loads(k.hi), *dim_loads(l.hi))):
        return False
    if l.hi.value is not None:
        return l.hi.value < MOST_IN_GROUP
    return any(isinstance(atom, Atom) and atom.kind == "floordiv" for atom in l.hi.atoms())


def is_window(inside: Body, var: str, variables: set[str]) -> bool:
    """Whether the variable is only ever added to another one, which stands without it elsewhere: x[i*s + a] beside
    y[i]. Such loops are short. (In x[W*i//4 + a] it goes over a part of a row.)"""
    dims = {d for a in accesses(inside) for d in a.index or ()}
    seen = {frozenset(d.symbols() & variables) for d in dims}
    with_it = [s for s in seen if var in s]
    others = frozenset.intersection(*with_it) - {var} if with_it else frozenset()
    others -= {n for n in others for d in dims if var in d.symbols() and d.split(n) is None}
    return any(other in s and var not in s for other in others for s in seen)


def overlaps(inside: Body, loop: For, variables: set[str]) -> bool:
    """Whether it goes over few places, of which the next iteration of another loop has some: windows, and weights."""
    trips = (loop.hi - loop.lo).value
    if trips is None:
        return False
    for dim in {d for a in accesses(inside) for d in a.index or () if loop.var in d.symbols()}:
        for other in dim.symbols() & variables - {loop.var}:
            split = dim.split(other)
            if split is not None and 0 < abs(split[0].value or 0) < trips:
                return True
    return False


def _stride(index: tuple[Dim, ...], var: str, shape: tuple[Dim, ...]) -> int | None:
    """By how many elements the place moves when var goes up by one; None: far, or unknown."""
    if any(isinstance(a, Atom) and var in Dim.of(a).symbols() for d in index for a in d.atoms()):
        return None
    for axis, dim in enumerate(index):
        if var in dim.symbols():
            parts = dim.split(var)
            last = all(n.value == 1 for n in shape[axis + 1 :])
            return parts[0].value if parts is not None and last and parts[0].value is not None else None
    return 0
