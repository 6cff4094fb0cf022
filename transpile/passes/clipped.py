"""A window that is cut off at a border has as many places everywhere, and asks of each whether it is there.

    for a in max(0, i - 1)..min(H, i + 2):          for k in 0..3:
        s += x[a]                            ->         if (i + k - 1 >= 0) & (i + k - 1 < H):
                                                            s += x[i + k - 1]

A loop whose length changes from pixel to pixel is a loop for each pixel; one of three places can be written out, or go
outside of the row, whose ends take care of the branch (`windows`, `overlap`). Gradients go over the same places,
counted from the border: for a in 0..min(H, i + 2) - max(0, i - 1), at x[a + max(0, i - 1)].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from ..dims import Atom, Dim
from ..ir import Comment, Const, Expr, For, If, Int, Kernel, Op, Stmt
from .predicate import conjunction
from .tree import Body, accesses, map_stmts, substitute

MOST = 16  # places: a loop over more may as well have ends of its own
_Side = tuple[Dim, Dim, list[Dim]]  # a bound, one of what it is the larger or lesser of, and the others


def clipped(kernel: Kernel) -> Kernel:
    return replace(kernel, body=map_stmts(kernel.body, lambda s: (_whole(s) if isinstance(s, For) else s,)))


def _whole(loop: For) -> Stmt:
    """The loop over all places of its window, if it is over some of a window."""
    trips = loop.hi - loop.lo
    for top, end, others in _sides(trips, "min", 1):
        for bottom, start, more in _sides(trips, "max", -1):
            places = (trips - top + bottom + end - start).value
            if not (others or more) or places is None or not 0 < places <= MOST:
                continue
            at = Dim.of(loop.var) + start  # counted from the first place of the whole window
            body = substitute(loop.body, {loop.var: at - bottom + loop.lo})
            if _places(body) & {*_clips(top), *_clips(bottom)}:
                continue
            asked = [at - q for q in more] + [s + trips - top + bottom - at - 1 for s in others]
            cond = [Op("greater_equal", (Int(d), Const(0, "i64")), "bool") for d in asked]
            return replace(loop, lo=Dim.of(0), hi=Dim.of(places), body=_where(reduce(conjunction, cond), body))
    return loop


def _sides(trips: Dim, kind: str, sign: int) -> Iterator[_Side]:
    """The bounds that a number of iterations may be made of, and each of what they choose from as the one that counts
    inside; at last no bound at all, so that this end of the window is nowhere cut off."""
    for monomial, times in trips.terms:
        match monomial:
            case (Atom(found, args),) if found == kind and times == sign and all(isinstance(a, Dim) for a in args):
                for k, arg in enumerate(args):
                    yield Dim.of(monomial[0]), arg, [*args[:k], *args[k + 1 :]]
    yield Dim.of(0), Dim.of(0), []


def _clips(bound: Dim) -> set[Atom]:
    return {a for a in bound.atoms() if isinstance(a, Atom) and a.kind in ("min", "max")}


def _places(body: Body) -> set[Atom]:
    """The atoms of all indices."""
    return {atom for a in accesses(body) for d in a.index or () for atom in d.atoms() if isinstance(atom, Atom)}


def _where(cond: Expr, body: Body) -> Body:
    """The statements under a condition; it goes into a loop that is all of them, beside what that asks."""
    match [s for s in body if not isinstance(s, Comment)]:
        case [For(body=inner) as loop] if not any(isinstance(s, For) for s in inner):
            match [s for s in inner if not isinstance(s, Comment)]:
                case [If(other, then, ())]:
                    return (replace(loop, body=(If(conjunction(cond, other), then),)),)
    return (If(cond, body),)


__all__ = ["clipped"]
