"""Sums of products that are matrix products become one statement.

    for b: for i: for j: C[b,i,j] = 0                           for b:
    for b: for i: for j: for k: C[b,i,j] += A[b,i,k] * B[k,j]  ->    C[b,i,j] = product A[b,i,k] B[k,j] for i, j, k

Which operand is transposed, sliced or reversed does not matter: each has a stride for every axis (see gemm.h).
Three loops of the nest become axes: one that only the left operand and the result name, one that only the right
operand and the result name, one that both operands name and the result does not. The others stay loops.

Products of a few numbers stay loops: the vectoriser unrolls them, and they fuse with what is around.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dims import Atom, Dim, Facts, largest
from ..dims import product as multiplied
from ..ir import FLOATS, Buffer, Comment, Const, For, Kernel, Load, Op, Product, Stmt, Store
from .order import perfect, rebuild
from .tree import Body, accesses, buffers, map_bodies, roots

SHORT = 16  # an axis known to be shorter is one only where there is no other
FEW = 4  # an axis known to be shorter is no axis of a product
SMALL = 512  # multiplications: a product known to have fewer stays a nest


def products(kernel: Kernel) -> Kernel:
    return replace(kernel, body=State.of(kernel).body(kernel.body, {}))


def stride(index: tuple[Dim, ...], shape: tuple[Dim, ...], var: str) -> Dim:
    """By how many elements the place moves when var goes up by one; the index is linear in it."""
    total = Dim.of(0)
    for axis, dim in enumerate(index):
        parts = dim.split(var)
        assert parts is not None, f"{dim} is not linear in {var}"
        total += parts[0] * multiplied(shape[axis + 1 :])
    return total


def step(index: tuple[Dim, ...], shape: tuple[Dim, ...], var: str) -> int | None:
    """The same as a number; None where it is none that is known, or the index is not linear."""
    return None if any(d.split(var) is None for d in index) else stride(index, shape, var).value


@dataclass
class State:
    table: dict[str, Buffer]
    root: dict[str, str]
    known: frozenset[str]  # integers that are known when the kernel is called

    @staticmethod
    def of(kernel: Kernel) -> State:
        known = frozenset(kernel.dims) | {s.name for s in kernel.scalars} | {kernel.batch or ""}
        return State(buffers(kernel), roots(kernel), known)

    def body(self, body: Body, facts: Facts) -> Body:
        found: list[Stmt] = []
        for stmt in body:
            if (made := self.recognised(stmt, facts)) is not None:
                loops, product = made
                begins = beginning(found, loops, product, self.root)
                if begins is not None:
                    del found[begins]
                    product = replace(product, op=None)
                found.append(rebuild(loops, (product,)))
                continue
            inside = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)} if isinstance(stmt, For) else facts
            found.append(map_bodies(stmt, lambda inner, inside=inside: self.body(inner, inside)))  # type: ignore[misc]
        return tuple(found)

    def recognised(self, stmt: Stmt, facts: Facts) -> tuple[list[For], Product] | None:
        """The loops that stay, and the product inside them."""
        if not isinstance(stmt, For) or stmt.kind != "map":
            return None
        loops, inside = perfect(stmt)
        match [s for s in inside if not isinstance(s, Comment)]:
            case [Store(buffer, index, Op("multiply", (Load() as left, Load() as right), dtype), "add")]:
                pass
            case _:
                return None
        same = {dtype, self.table[buffer].dtype, left.dtype, right.dtype}
        if (
            len(same) > 1
            or dtype not in FLOATS
            or self.root[buffer] in (self.root[left.buffer], self.root[right.buffer])
        ):
            return None
        target = Load(buffer, index, dtype)
        steering = {name for x in loops for name in x.lo.symbols() | x.hi.symbols()}  # how far others go
        free = [x for x in loops if x.var not in steering]
        row = self.axis(free, left, target, right, target)
        beside = [x for x in free if row is None or not _meet(target, x.var, row.var)]
        column = self.axis(beside, right, target, left, target)
        depth = self.axis(free, left, right, target, target)
        if row is None or column is None or depth is None:
            return None
        if any(self.is_filter(x, depth, target, place) for x in loops for place in (left, right)):
            return None
        if self.is_along(target, row.var) and not self.is_along(target, column.var):
            left, right, row, column = right, left, column, row
        rest = [x for x in loops if x not in (row, column, depth)]
        facts = {**facts, **{x.var: (x.lo, x.hi - 1) for x in rest}}
        if not self.is_product((row, column, depth), (target, left, right), facts):
            return None
        moved = {x.var: x.lo + Dim.of(x.var) for x in (row, column, depth)}
        axes = [(x.var, x.hi - x.lo) for x in (row, column, depth)]
        target, left, right = (load.subs(moved) for load in (target, left, right))
        return rest, Product(buffer, target.index, left, right, axes[0], axes[1], axes[2], "add")

    def axis(self, loops: list[For], one: Load, other: Load, without: Load, target: Load) -> For | None:
        """The innermost loop that two of three places name, best one that is no step in a window, and runs along
        memory; where both are read, one that is not known to be short."""
        named = one.free() & other.free() - without.free()
        found = [x for x in loops if x.var in named]
        long = [x for x in found if not any(_is_in_window(place, x, loops) for place in (one, other))]
        found = long or found
        if without is target:
            found = [x for x in found if not 0 < ((x.hi - x.lo).value or 0) < SHORT] or found
        along = [x for x in found if any(self.is_along(place, x.var) for place in (one, other))]
        best = along or found
        return best[-1] if best else None

    def is_filter(self, loop: For, depth: For, target: Load, source: Load) -> bool:
        """Whether the depth is a window, cut off where a row begins, of a filter along it: it goes along there."""
        cut = loop.var in depth.lo.symbols() | depth.hi.symbols()
        return cut and _meet(source, loop.var, depth.var) and all(self.is_along(p, loop.var) for p in (target, source))

    def is_along(self, place: Load, var: str) -> bool:
        return step(place.index, self.table[place.buffer].shape, var) == 1

    def is_product(self, axes: tuple[For, ...], places: tuple[Load, ...], facts: Facts) -> bool:
        own = {x.var for x in axes}
        sizes = [x.hi - x.lo for x in axes]
        if any(_reads_memory(d) for place in places for d in place.index) or any(_reads_memory(s) for s in sizes):
            return False
        for place in places:
            for x in axes:
                if any((parts := d.split(x.var)) is None or parts[0].symbols() & own for d in place.index):
                    return False
                if not stride(place.index, self.table[place.buffer].shape, x.var).symbols() <= self.known:
                    return False
        if any(s.symbols() & own for s in sizes):
            return False
        try:
            if not all(largest(s, facts).symbols() <= self.known for s in sizes):
                return False
        except ValueError:
            return False
        values = [s.value for s in sizes]
        if any(v is not None and v < FEW for v in values):
            return False
        total = multiplied(sizes).value
        return total is None or total >= SMALL


def _meet(place: Load, one: str, other: str) -> bool:
    """Whether two variables number one axis together, as in y[i + j]: there are not as many places as numbers."""
    return one != other and any({one, other} <= d.symbols() for d in place.index)


def _is_in_window(place: Load, loop: For, loops: list[For]) -> bool:
    """Whether it and another loop number one axis together, as in x[i + j]: one of both goes along a window, and those
    are short."""
    return any(_meet(place, loop.var, x.var) for x in loops)


def _reads_memory(dim: Dim) -> bool:
    return any(isinstance(a, Atom) and a.kind == "load" for a in dim.atoms())


def beginning(before: list[Stmt], loops: list[For], product: Product, root: dict[str, str]) -> int | None:
    """Where the result is set to zero, if that is the last thing done to it and for just these elements."""
    for k in range(len(before) - 1, -1, -1):
        touching = [a for a in accesses((before[k],)) if root[a.buffer] == root[product.buffer]]
        if touching:
            return k if len(touching) == 1 and _zeroes(before[k], loops, product) else None
    return None


def _zeroes(stmt: Stmt, loops: list[For], product: Product) -> bool:
    if not isinstance(stmt, For):
        return False
    nest, inside = perfect(stmt)
    match [s for s in inside if not isinstance(s, Comment)]:
        case [Store(product.buffer, index, Const(0.0), None)]:
            pass
        case _:
            return False
    ranges = {x.var: (x.lo, x.hi) for x in loops}
    ranges |= {name: (Dim.of(0), extent) for name, extent in (product.rows, product.columns)}
    # At 64*strip + i it is row i of the product that stands at 64*strip + k.
    same = {x.var: p - (d - Dim.of(x.var)) for x in nest for d, p in zip(index, product.index) if x.var in d.symbols()}
    names = {x.var: same.get(x.var) for x in nest}
    if any(new is None or new.symbol not in ranges for new in names.values()) or len(names) != len(ranges):
        return False
    renamed = {old: new for old, new in names.items() if new is not None}
    if {new.symbol for new in renamed.values()} != set(ranges):
        return False
    if any(ranges[str(renamed[x.var].symbol)] != (x.lo.subs(renamed), x.hi.subs(renamed)) for x in nest):
        return False
    return all(d.subs(renamed) == p for d, p in zip(index, product.index))
