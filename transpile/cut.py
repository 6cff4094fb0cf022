"""Windows that borders cut off: range(max(0, i - 1), min(H, i + 2)) is three places, of which some may not be there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .dims import Atom, Dim, unclamped

MOST = 16  # places: a loop over more may as well have ends of its own


@dataclass(frozen=True)
class Window:
    """All of a window. `bottom` and `top`: where the range begins and ends, 0 where nothing cuts it off; `first` and
    `end`: where the window does; `lower` and `upper`: the borders; `behind`: how much longer than top - bottom the
    range is; `places`: how many there are."""

    bottom: Dim
    top: Dim
    first: Dim
    end: Dim
    lower: tuple[Dim, ...]
    upper: tuple[Dim, ...]
    behind: Dim
    places: Dim


def windows(trips: Dim, counter: str | None = None) -> Iterator[Window]:
    """What a range of so many places may be some of: of a few, or, where each value of a counter has a window, of as
    many as that does not tell."""
    trips = unclamped(trips)  # a loop over less than nothing does nothing
    for top, end, upper in _sides(trips, "min", 1):
        for bottom, first, lower in _sides(trips, "max", -1):
            behind = trips - top + bottom
            places = behind + end - first
            moves = end.value is None or first.value is None  # x[:4] is no window of anything
            few = places.value is not None and 1 < places.value <= MOST
            there = any(counter in d.symbols() for d in (*lower, *upper, first, end))
            told = there and places.value is None and counter not in places.symbols()
            if (lower or upper) and moves and (few or told):
                yield Window(bottom, top, first, end, lower, upper, behind, places)


def _sides(trips: Dim, kind: str, sign: int) -> Iterator[tuple[Dim, Dim, tuple[Dim, ...]]]:
    """The bounds that a number of places may be made of, and each of what they choose from as the one that counts
    inside; at last no bound at all: that end is nowhere cut off."""
    for monomial, times in trips.terms:
        match monomial:
            case (Atom(found, args),) if found == kind and times == sign and all(isinstance(a, Dim) for a in args):
                for k, arg in enumerate(args):
                    yield Dim.of(monomial[0]), arg, (*args[:k], *args[k + 1 :])
    yield Dim.of(0), Dim.of(0), ()


__all__ = ["Window", "windows"]
