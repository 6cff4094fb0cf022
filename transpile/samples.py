"""Numbers for sizes and counters: what is negative for some of them cannot be proven not to be.

    i in 0..N:  N - 2*i >= 0?        N = 97, i = 96: -95; there is no use in looking for a proof

A proof that exists is mostly found at once, and a search for one that does not goes on for long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from .dims import Atom, Dim

# Sizes, one of which each name has: large ones first, as loops of which some do not run show nothing.
_SIZES = ((97, 203, 151, 311, 257, 64), (1009, 5, 64, 17, 700, 3), (2, 3, 1, 4, 8, 5))
_ENDS = (0, 1, 2)  # of its range, each counter has the least, the largest, or one of them by its name
_NUMBERS = (3, -2, 40, -101)  # what is read from memory, and what may be any number


class _Nothing(Exception):
    """There is no such number: a loop that does not run, a quotient by zero."""


def refuted(dim: Dim, facts: Mapping[str, tuple[Dim, Dim]]) -> bool:
    """Whether there are sizes, and counters in their ranges, for which it is negative."""
    return any(value < 0 for value in _values(dim, facts))


def _values(dim: Dim, facts: Mapping[str, tuple[Dim, Dim]]) -> Iterator[int]:
    for sizes, end in product(_SIZES, _ENDS):
        try:
            yield _Sample(facts, sizes, end).of(dim)
        except _Nothing:
            continue


class _Sample:
    def __init__(self, facts: Mapping[str, tuple[Dim, Dim]], sizes: tuple[int, ...], end: int) -> None:
        self.facts, self.sizes, self.end = facts, sizes, end
        self.known: dict[Any, int] = {}

    def of(self, dim: Dim) -> int:
        total = 0
        for monomial, times in dim.terms:
            for symbol in monomial:
                times *= self.symbol(symbol)
            total += times
        return total

    def symbol(self, symbol: str | Atom) -> int:
        if symbol not in self.known:
            self.known[symbol] = self.counter(symbol) if isinstance(symbol, str) else self.atom(symbol)
        return self.known[symbol]

    def counter(self, name: str) -> int:
        seed = crc32(name.encode())
        if name not in self.facts:
            return self.sizes[seed % len(self.sizes)]
        low, high = map(self.of, self.facts[name])
        if low > high:
            raise _Nothing
        if high - low > 2**60:  # it may be any number
            return max(low, min(high, _NUMBERS[(seed + self.end) % len(_NUMBERS)]))
        return (low, high)[self.end if self.end < 2 else seed % 2]

    def atom(self, atom: Atom) -> int:
        if atom.kind not in ("min", "max", "floordiv", "mod"):
            return _NUMBERS[(crc32(str(atom).encode()) + self.end) % len(_NUMBERS)]
        a, b = map(self.of, atom.args)
        if atom.kind in ("min", "max"):
            return min(a, b) if atom.kind == "min" else max(a, b)
        if not b:
            raise _Nothing
        return a // b if atom.kind == "floordiv" else a % b


__all__ = ["refuted"]
