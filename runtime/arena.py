"""Where blobs and temporaries lie in one stretch of memory: those that live at different times share a place."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lifetime:
    """Something of `size` bytes, needed from step `first` to step `last`, both included."""

    size: int
    first: int
    last: int


def pack(lives: Sequence[Lifetime]) -> tuple[list[int], int]:
    """The place of each, and the bytes of all: the largest first, each at the lowest place that is free while it lives
    (first fit decreasing)."""
    places = [0] * len(lives)
    done: list[int] = []
    for k in sorted(range(len(lives)), key=lambda k: (-lives[k].size, lives[k].first, k)):
        one = lives[k]
        taken = sorted(
            (places[j], places[j] + lives[j].size)
            for j in done
            if lives[j].first <= one.last and lives[j].last >= one.first
        )
        at = 0
        for start, stop in taken:
            if at + one.size <= start:
                break
            at = max(at, stop)
        places[k] = at
        done.append(k)
    return places, max((places[k] + one.size for k, one in enumerate(lives)), default=0)
