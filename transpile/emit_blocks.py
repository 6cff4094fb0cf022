"""A sum in blocks, in C: one loop over vectors, that stops behind each block and adds what there is in double.

for (q ...) {                            part = 0;
    part = 0;                            for (i_at = lo; i_at < i_whole; i_at += lanes) {
    for (i of block q) part += f;    ->      part_lanes += f;
    wide += part;                            if (i_at + lanes == i_block && i_block < hi) { part += part_lanes; ... }
}                                        }
                                         wide += part;

Most rows are shorter than a block. A loop of one turn around theirs takes longer than what it is there for: gcc keeps
in memory what has to last for more turns than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .dims import Atom, Dim, minimum
from .ir import Buffer, Cast, For, Load, Stmt, Store
from .passes.accumulate import BLOCK, neutral
from .passes.tree import symbols_of


@dataclass(frozen=True)
class Blocks:
    """`loop`: all blocks in one, which is statement `at` of the body of the loop over them; what begins the sum of a
    block, and what adds it to the others."""

    loop: For
    at: int
    begun: tuple[Store, ...]
    added: tuple[Store, ...]

    @property
    def sums(self) -> set[str]:
        return {s.buffer for s in self.begun}


def blocks_of(loop: For, table: Mapping[str, Buffer]) -> Blocks | None:
    """Of a loop over blocks, as `accumulate` makes them. None in any other loop."""
    inner = [at for at, s in enumerate(loop.body) if isinstance(s, For)]
    if len(inner) != 1 or loop.lo.value != 0 or loop.parallel or loop.ahead:
        return None
    at = inner[0]
    begun, added = ([s for s in some if isinstance(s, Store)] for some in (loop.body[:at], loop.body[at + 1 :]))
    sums = {s.buffer for s in begun if s == Store(s.buffer, (), neutral("add", table[s.buffer].dtype))}
    others = len(loop.body) - 1 - len(begun) - len(added)
    if others or len(sums) < len(begun) or {_added(s) for s in added} != sums:
        return None
    whole = _whole(loop, loop.body[at])
    if whole is None or loop.var in symbols_of((*begun, whole, *added)).union(*(p.free() for p in whole.ahead)):
        return None
    return Blocks(whole, at, tuple(begun), tuple(added))


def _whole(loop: For, block: Stmt) -> For | None:
    """The loop that has been cut."""
    assert isinstance(block, For)
    lo = block.lo.subs({loop.var: Dim.of(0)})
    end = lo + Dim.of(loop.var) * BLOCK + BLOCK
    for atom in block.hi.atoms():
        if isinstance(atom, Atom) and atom.kind == "min":
            for hi in atom.args:
                count = (hi - lo + (BLOCK - 1)) // BLOCK
                if (block.lo + BLOCK, block.hi, loop.hi) == (end, minimum(hi, end), count):
                    return replace(block, lo=lo, hi=hi)
    return None


def _added(stmt: Store) -> str:
    """The variable that is added to another, as a number of any width; "" where it is not that."""
    value = stmt.value.value if isinstance(stmt.value, Cast) else stmt.value
    return value.buffer if isinstance(value, Load) and not value.index and stmt.op == "add" else ""


__all__ = ["Blocks", "blocks_of"]
