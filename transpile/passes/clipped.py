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

from ..cut import Window, windows
from ..dims import Atom, Dim
from ..ir import Comment, Const, Expr, For, If, Int, Kernel, Op
from .predicate import conjunction
from .tree import Body, accesses, dim_loads, map_stmts, substitute


def clipped(kernel: Kernel) -> Kernel:
    return replace(kernel, body=map_stmts(kernel.body, lambda s: (_from_zero(whole(s)) if isinstance(s, For) else s,)))


def _from_zero(loop: For) -> For:
    """for r in i - 1..i + 2: x[r]    ->    for r in 0..3: x[i + r - 1]"""
    places = loop.hi - loop.lo
    if places.value is None or loop.lo.value is not None or any(dim_loads(loop.lo)):
        return loop
    body = substitute(loop.body, {loop.var: loop.lo + Dim.of(loop.var)})
    return replace(loop, lo=Dim.of(0), hi=places, body=body)


def whole(loop: For, counter: str | None = None) -> For:
    """The loop over all places of its window, if it is over some of a window (of which each value of a counter has
    one)."""
    found = windows(loop.hi - loop.lo, counter)
    for window in sorted(found, key=lambda w: counter not in w.first.symbols() | w.end.symbols()):  # not all of the row
        for place, step in _ways(window, Dim.of(loop.var)):
            body = substitute(loop.body, {loop.var: loop.lo + step})
            if _places(body) & {*_clips(window.bottom), *_clips(window.top)}:
                continue
            asked = [place - border for border in window.lower]
            asked += [border + window.behind - 1 - place for border in window.upper]
            cond: list[Expr] = [Op("greater_equal", (Int(d), Const(0, "i64")), "bool") for d in asked]
            body = _where(reduce(conjunction, cond), body)
            return replace(loop, lo=Dim.of(0), hi=window.places, body=body)
    return loop


def _ways(window: Window, k: Dim) -> Iterator[tuple[Dim, Dim]]:
    """The k-th place of the whole window, and which step of the loop is there: upwards, and downwards."""
    yield window.first + k, window.first + k - window.bottom
    last = window.end + window.behind - 1 - k
    yield last, window.top + window.behind - 1 - last


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


__all__ = ["clipped", "whole"]
