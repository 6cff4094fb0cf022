"""Which outputs of a kernel may lie in the memory of an input: an update of a solver writes over what it read.

That is so where each place of the input is read for the last time before the same place of the output is written, by
the same iteration, and no other iteration asks for it. The pointers of such a pair are not `restrict`; the manifest
tells of it, and `out=` with the input itself needs no copy.
"""

from __future__ import annotations

from ..dims import Dim
from ..ir import Buffer, For, If, Kernel, Stmt
from .depend import Memory, injective
from .tree import Body, accesses, bodies, buffers, own_accesses

Pair = tuple[str, str]  # output, input


def overwrites(kernel: Kernel) -> tuple[Pair, ...]:
    """All such pairs, in the order of the arguments."""
    if kernel.over is not None:
        return kernel.over
    ins = [b for b in kernel.buffers if b.kind == "in"]
    outs = [b for b in kernel.buffers if b.kind == "out"]
    search = _Search(kernel)
    return tuple(
        (out.name, read.name)
        for out in outs
        for read in ins
        if (out.dtype, out.shape) == (read.dtype, read.shape) and out.shape and search.fits(out, read)
    )


class _Search:
    def __init__(self, kernel: Kernel) -> None:
        self.body, self.memory = kernel.body, Memory.of(kernel)
        self.shapes = {name: b.shape for name, b in buffers(kernel).items()}

    def fits(self, out: Buffer, read: Buffer) -> bool:
        return self._body(self.body, out.name, read.name, ())

    def _body(self, body: Body, out: str, read: str, around: tuple[For, ...]) -> bool:
        touching = [s for s in body if any(self.root(a.buffer) in (out, read) for a in accesses((s,)))]
        if not touching:
            return True
        if len(touching) == 1 and not self._own(touching[0], out, read):
            match touching[0]:
                case For(body=inner) as loop:
                    return self._body(inner, out, read, (*around, loop))
                case If(then=then, orelse=orelse):
                    return all(self._body(one, out, read, around) for one in (then, orelse))
        return self._one_place(touching, out, read, around)

    def _one_place(self, stmts: list[Stmt], out: str, read: str, around: tuple[For, ...]) -> bool:
        """Whether an iteration has one place in both, and has read it before it writes it."""
        places: set[tuple[tuple[Dim, ...], tuple[Dim, ...]]] = set()
        written = False
        for stmt in stmts:
            if list(bodies(stmt)):
                return False
            own = self._own(stmt, out, read)
            for root, shape, index, mode in own:
                if index is None or (root == read and written) or (root == out and mode != "w" and not written):
                    return False
                places.add((shape, index))
            written |= any(root == out and mode == "w" for root, _, _, mode in own)
        if len(places) != 1:
            return False
        # Iterations of a map loop, which write, have places of their own; those of others may come back to one.
        ((_, index),) = places
        return all(loop.kind == "map" or injective(index, loop.var, self.memory.facts) for loop in around)

    def _own(self, stmt: Stmt, out: str, read: str) -> list[tuple[str, tuple[Dim, ...], tuple[Dim, ...] | None, str]]:
        """What the statement itself touches of the two: root, shape as it is seen, index and mode."""
        found = [(self.root(b), self.shapes[b], index, mode) for b, index, mode in own_accesses(stmt)]
        return [one for one in found if one[0] in (out, read)]

    def root(self, buffer: str) -> str:
        return self.memory.root.get(buffer, buffer)


__all__ = ["overwrites"]
