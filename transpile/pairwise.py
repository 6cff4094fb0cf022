"""An einsum of several arrays goes pair by pair, where that is less work.

    np.einsum("hi,wj,ijr->hwr", a, b, z)    ->    np.einsum("hi,iwr->hwr", a, np.einsum("wj,ijr->iwr", b, z))

All at once are h*w*i*j*r products, one after the other i*w*j*r + h*w*i*r. What is in between is no larger than the
largest array of all. An extent that is no number counts as 64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

from . import construct
from .program import Expr, Span

NOMINAL = 64
LESS = 1.5  # times less work
MOST = 5  # operands: of more there are too many orders

Order = tuple[tuple[int, int, str], ...]


def einsum(specs: Sequence[str], out: str, operands: Sequence[Expr], span: Span) -> Expr:
    whole = construct.call("einsum", *operands, spec=(tuple(specs), out), span=span)
    if not 2 < len(operands) <= MOST or len(specs) != len(operands) or any(len(set(s)) < len(s) for s in specs):
        return whole
    size = {c: d.value or NOMINAL for s, a in zip(specs, operands) for c, d in zip(s, a.type.shape) if d.value != 1}
    room = max(_count(s, size) for s in (*specs, out))
    work, orders = min(_orders(tuple(specs), out, size, room), default=(0, ()))
    if not orders or work * LESS > _count("".join(specs), size):
        return whole
    parts = list(zip(specs, operands, strict=True))
    for i, j, made in orders:
        pair = (parts[i], parts[j])
        spec = (tuple(s for s, _ in pair), made)
        made_of = construct.call("einsum", *(a for _, a in pair), spec=spec, span=span)
        parts = [*(p for k, p in enumerate(parts) if k not in (i, j)), (made, made_of)]
    return parts[0][1]


def _orders(specs: tuple[str, ...], out: str, size: dict[str, int], room: int) -> Iterator[tuple[int, Order]]:
    """The work of each order of pairs, and the order: the places of a pair among what is left, and the letters of what
    is made of it, which comes last then."""
    for i, j in combinations(range(len(specs)), 2):
        left = tuple(s for k, s in enumerate(specs) if k not in (i, j))
        letters = "".join(dict.fromkeys(specs[i] + specs[j]))
        made = out if not left else "".join(c for c in letters if c in out or any(c in s for s in left))
        if _count(made, size) > room:
            continue
        work = _count(letters, size)
        if not left:
            yield work, ((i, j, made),)
        for more, orders in _orders((*left, made), out, size, room) if left else ():
            yield work + more, ((i, j, made), *orders)


def _count(letters: str, size: dict[str, int]) -> int:
    return prod(size.get(c, 1) for c in set(letters))
