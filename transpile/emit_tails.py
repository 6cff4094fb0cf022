"""What a vectorised loop leaves, fewer iterations than a vector has lanes: one vector more, of which a part counts.

gcc writes such a rest as a loop by element: up to fifteen times a dear body, of a row that may be as short itself.
`parts.h` has masks for loads and stores, so that lanes beyond the end touch no memory; they compute with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .dims import Atom, Dim
from .ir import FLOATS, Buffer, Cast, Expr, For, Int, Load, Op, Store
from .operations import flops
from .passes.depend import distinct
from .passes.rows import step_of
from .passes.tree import dim_loads, own_accesses, parts

LANES = 16  # of the widest vectors: a length that is a multiple leaves nothing
WORTH = 12  # flops of a body that is as dear as the masks; a sum is worth them always: its order is then the same in
#             whatever loop it ends up, so that a forward and the forward of `vjp` round alike
FARTHEST = 4  # elements from one iteration to the next that a part of a vector is still worth to be picked from
PICKED = 8  # flops of a body for each place that is picked from one by one
ABREAST = 4  # vectors that a sum fills at a time
MOST_SUMS = 2
_CHOICES = ("where", "either", "or_zero")
_SELDOM = frozenset(("sin_far", "cos_far"))  # what runs is not worth the code
_TRAPS = frozenset(("floor_divide", "mod"))  # of integers: what does not count would divide by 0
_BYTES = {"f32": 4, "i32": 4, "f64": 8, "i64": 8}


@dataclass(frozen=True)
class Tail:
    """The places that a loop walks along; which of them it reads, and stores: they are 0 in lanes that do not count, as
    no other place is; whether it computes with its counter; the flops of an iteration; whether what is left over does
    not matter."""

    places: tuple[Load, ...]
    read: frozenset[Load]
    stored: frozenset[Load]
    counts: bool
    cost: int
    long: bool


def tail_of(loop: For, table: Mapping[str, Buffer], root: Mapping[str, str], real: str) -> Tail | None:
    """Of a vectorised loop, if its last iterations can be part of a vector: each array stands still or goes by one
    element, or a few, and one that is stored is touched at one place only, or at places that are never one."""
    size = (loop.hi - loop.lo).value
    if size is not None and (size < LANES or size % LANES == 0):
        return None
    truths = frozenset(truths_of(loop, table))
    part = part_of(loop, table, root, real, FARTHEST, truths)
    if part is None:
        return None
    picked = sum(step_of(place.index, table[place.buffer].shape, loop.var) != 1 for place in part.places)
    if picked and (part.long or part.cost < WORTH + PICKED * picked or _adds_up(loop)):
        return None
    sums = any(
        isinstance(s, Store) and s.op == "add" and not s.index and table[s.buffer].dtype in FLOATS for s in loop.body
    )
    return part if part.cost >= WORTH or sums or truths else None


def _adds_up(loop: For) -> bool:
    """Whether iterations add to one variable."""
    stores = [s for s in loop.body if isinstance(s, Store) and not s.index]
    return bool({s.buffer for s in stores if s.op} - {s.buffer for s in stores if not s.op})


def part_of(
    loop: For,
    table: Mapping[str, Buffer],
    root: Mapping[str, str],
    real: str,
    farthest: int = 1,
    truths: frozenset[Load] = frozenset(),
) -> Tail | None:
    """Of a vectorised loop, if a part of a vector can do iterations of it that are at most so many elements apart.
    `truths`: those that it may read."""
    body = [s for s in loop.body if isinstance(s, Store)]
    found = [part for s in body for part in parts(s.value)]
    cost = sum(flops(p.op) for p in found if isinstance(p, Op)) + sum(s.op is not None for s in body)
    if len(body) < len(loop.body):
        return None
    if any(isinstance(p, Op) and p.op in _SELDOM for p in found):
        return None
    if any(isinstance(p, Op) and p.op in _TRAPS and p.dtype not in FLOATS for p in found):
        return None
    touched, read, stored = _touched(body, table)
    pairs = [(p, q) for p in stored for q in touched.values() if p != q and root[p.buffer] == root[q.buffer]]
    if any(p.buffer != q.buffer or not distinct(p.index, q.index, loop.var) for p, q in pairs):
        return None
    own = {s.buffer for s in body if not s.index}
    if any(load.buffer in own for place in touched.values() for d in place.index for load in dim_loads(d)):
        return None  # each iteration works out where it is
    moving = [place for place in touched.values() if loop.var in place.free()]
    if not all(p in truths or _walks(p, loop.var, table[p.buffer], real, farthest) for p in moving):
        return None
    if not stored <= set(moving):
        return None
    counts = any(isinstance(p, Int) and loop.var in p.dim.symbols() for p in found)
    return Tail(tuple(moving), frozenset(read & set(moving)), frozenset(stored), counts, cost, is_long(loop.hi))


def is_long(end: Dim) -> bool:
    """Whether a loop to there goes over more than one axis, or a share of a thread: what it leaves does not count."""
    inside = [arg for a in end.atoms() if isinstance(a, Atom) for arg in a.args if isinstance(arg, Dim)]
    return any(len(monomial) > 1 for dim in (end, *inside) for monomial, _ in dim.terms)


def _touched(
    body: list[Store], table: Mapping[str, Buffer]
) -> tuple[dict[tuple[str, tuple[Dim, ...]], Load], set[Load], set[Load]]:
    """The places of arrays, those that are read before they are stored, and those that are stored."""
    found: dict[tuple[str, tuple[Dim, ...]], Load] = {}
    read: set[Load] = set()
    stored: set[Load] = set()
    for stmt in body:
        for name, index, mode in own_accesses(stmt):
            if not index:
                continue
            place = found.setdefault((name, index), Load(name, index, table[name].dtype))
            if mode != "w" and place not in stored:
                read.add(place)
        if stmt.index:
            stored.add(found[stmt.buffer, stmt.index])
    return found, read, stored


def _walks(place: Load, var: str, buffer: Buffer, real: str, farthest: int) -> bool:
    kind = real if buffer.dtype == "real" else buffer.dtype
    return _BYTES.get(kind) == _BYTES[real] and 1 <= (step_of(place.index, buffer.shape, var) or 0) <= farthest


def truths_of(loop: For, table: Mapping[str, Buffer]) -> list[Load]:
    """The places of truths that a loop reads in each of its iterations, one after the other, and leaves as they are."""
    stores = [s for s in loop.body if isinstance(s, Store)]
    if len(stores) < len(loop.body) or any(s.index and table[s.buffer].dtype == "bool" for s in stores):
        return []
    places = (p for s in stores for p in _surely(s.value) if p.dtype == "bool" and p.index)
    return list(dict.fromkeys(p for p in places if step_of(p.index, table[p.buffer].shape, loop.var) == 1))


def _surely(expr: Expr) -> Iterator[Load]:
    """What is read in any case, whatever is chosen."""
    match expr:
        case Load():
            yield expr
        case Op(op, args):
            for arg in args[:1] if op in _CHOICES else args:
                yield from _surely(arg)
        case Cast(value):
            yield from _surely(value)


def sums_up(loop: For, sums: set[str], table: Mapping[str, Buffer]) -> bool:
    """Whether a loop adds up one or two floats: then in ABREAST vectors, however dear it is, as a forward and the
    forward of `vjp` have to add up in one order. More sums have no room in registers, and enough to do meanwhile."""
    added = {s.buffer for s in loop.body if isinstance(s, Store) and s.op == "add" and s.buffer in sums}
    return len(sums) <= MOST_SUMS and any(table[name].dtype in FLOATS for name in added)


def waits(tail: Tail) -> bool:
    """Whether a sum takes the time of a chain of additions: what is added is cheap."""
    return tail.cost < WORTH
