"""Gradients of what all steps share are one product, whose depth are the steps; a loop around a product is a part of
one of its axes.

    for t seq:                                             for t seq:
        d[k,j] = ...                                           d_all[t,k,j] = ...
        dw[i,j] += product h[t,k,i] d[k,j] for i, j, k  ->  dw[i,j] += product h_flat[n,i] d_flat[n,j] for i, j, n

    for b: p[b,i,j] = product x[b,k,i] d[b,k,j]        ->   dw[i,j] += product x_flat[n,i] d_flat[n,j] for i, j, n
    for b: for i: for j: dw[i,j] += p[b,i,j]

    for t seq:                                             for t seq:
        d[t,k,j] = ...                                         d[t,k,j] = ...
        dx[t,k,i] = product d[t,k,j] w[i,j] for k, i, j -> dx_flat[n,i] = product d_flat[n,j] w[i,j] for n, i, j

    for k: d[b,k,j] = product dy[b,i] c[i,k,j] for b, j, i  ->  d_flat[b,n] = product dy[b,i] c_flat[i,n] for b, n, i

A product of a few rows spends its time with what it adds to; a deep one does not, and threads share it. A temporary of
one step gets an axis for the steps, where the kernel has arrays as large as that anyway; an operand that numbers steps
and depth in another order than the other one is copied, a row at a time. The order of roundings changes: what is done
to steps is for gradients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..dims import Dim
from ..ir import Buffer, For, Kernel, Load, Product, Stmt, Store
from .contract import over, stored_first
from .order import perfect
from .products import beginning
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    grows,
    map_bodies,
    map_places,
    read_from_dims,
    roots,
    touched,
    written,
)


def deepen(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body)
    used = touched(body)
    used |= {b.alias for b in state.table.values() if b.alias and b.name in used}
    return replace(kernel, body=body, buffers=tuple(b for n, b in state.table.items() if n in used or b.kind != "temp"))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.deep, self.table = kernel.flush, {b.name: b for b in kernel.buffers}
        self.names, self.root = Names.of(kernel), roots(kernel)
        self.several = {n for n, count in Counter(self.root.values()).items() if count > 1}  # memory with several names
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.fixed = read_from_dims(kernel)
        self.sizes = {grows(b.shape) for b in kernel.buffers}

    def body(self, body: Body) -> Body:
        found: list[Stmt] = []
        if self.deep:
            body = tuple(self.summed([new for stmt in body for new in self.out_of(stmt)]))
        for stmt in body:
            deep = stmt if isinstance(stmt, Product) else self.joined(stmt)
            if deep is None:
                found.append(map_bodies(stmt, self.body))
                continue
            begins = beginning(found, [], deep, self.root) if deep.op else None
            if begins is not None:
                del found[begins]
                deep = replace(deep, op=None)
            found.append(deep)
        return tuple(found)

    # -- a sum of products ---------------------------------------------------------------------------------------
    def summed(self, body: list[Stmt]) -> list[Stmt]:
        """Products that are only summed up, added to the sum at once."""
        for k, stmt in enumerate(body):
            match _alone(stmt):
                case (loop,), Product(op=None) as made if self.is_own(made.buffer, 2):
                    pass
                case _:
                    continue
            for later in range(k + 1, len(body)):
                target = self.added(body[later], loop, made)
                changed = {self.root[n] for n in written(body[k:later])}
                if target is None or changed & {self.root[made.left.buffer], self.root[made.right.buffer]}:
                    continue
                each = replace(made, buffer=target.buffer, index=target.index, op="add")
                deep = self.joined(replace(loop, body=(each,)))
                if deep is not None:
                    return self.summed([*body[:k], *body[k + 1 : later], deep, *body[later + 1 :]])
        return body

    def added(self, stmt: Stmt, loop: For, made: Product) -> Store | None:
        """The store that adds all of what a loop of products makes to something of fewer axes, in their variables."""
        if not isinstance(stmt, For):
            return None
        loops, inside = perfect(stmt)
        match inside:
            case (Store(value=Load(made.buffer, index), op="add") as store,):
                shape = self.table[made.buffer].shape
                first = {
                    loop.var: (loop.lo, loop.hi),
                    **{name: (Dim.of(0), n) for name, n in (made.rows, made.columns)},
                }
                names = _numbered(index, shape, {x.var: (x.lo, x.hi) for x in loops})
                if names is None or len(names) != len(loops) or _numbered(made.index, shape, first) is None:
                    return None
                changed = replace(store, index=tuple(d.subs(dict(zip(names, made.index))) for d in store.index))
                placed = [d.symbol for d in changed.index]
                return changed if sorted(placed, key=str) == sorted((made.rows[0], made.columns[0])) else None
        return None

    def is_own(self, name: str, uses: int) -> bool:
        """Whether it is a temporary that is touched so often."""
        plain = self.table[name].kind == "temp" and name not in self.several | self.fixed
        return plain and self.root[name] == name and self.uses[name] == uses

    # -- a product in a recurrence -------------------------------------------------------------------------------
    def out_of(self, loop: Stmt) -> list[Stmt]:
        """The loop, and behind it the products that it only adds to something."""
        if not isinstance(loop, For) or loop.kind != "seq" or loop.lo != Dim.of(0):
            return [loop]
        for stmt in loop.body:
            if isinstance(stmt, Product) and (moved := self.moved(loop, stmt) or self.left(loop, stmt)) is not None:
                return [*self.out_of(moved[0]), *moved[1]]
        return [loop]

    def left(self, loop: For, stmt: Product) -> tuple[For, list[Stmt]] | None:
        """The loop without a product that each step stores and none asks for, and that of all steps: of more rows."""
        at = next(k for k, s in enumerate(loop.body) if s is stmt)
        rest = (*loop.body[:at], *loop.body[at + 1 :])
        inside, late = ({self.root[n] for n in written(body)} for body in (rest, loop.body[at + 1 :]))
        left, right = self.root[stmt.left.buffer], self.root[stmt.right.buffer]
        asked = self.is_asked(stmt, rest) or self.root[stmt.buffer] in (left, right)
        if asked or right in inside or left in late or loop.var in _symbols(stmt.right.index):
            return None
        if left in inside and not self.is_of_steps(stmt.left, loop, rest):
            return None
        target = Load(stmt.buffer, stmt.index, self.table[stmt.buffer].dtype)
        kept = self.along(loop, stmt, "rows", (target, stmt.left), stmt.right)
        if kept is None:
            return None
        (to, of), axis = kept
        whole = replace(stmt, buffer=to.buffer, index=to.index, left=of, rows=axis)
        return replace(loop, body=rest), [whole]

    def moved(self, loop: For, stmt: Product) -> tuple[For, list[Stmt]] | None:
        """The loop without the product, and behind it what all its steps add."""
        if stmt.op != "add":
            return None
        at = next(k for k, s in enumerate(loop.body) if s is stmt)
        rest = (*loop.body[:at], *loop.body[at + 1 :])
        inside, late = ({self.root[n] for n in written(body)} for body in (rest, loop.body[at + 1 :]))
        if self.is_asked(stmt, rest) or loop.var in _symbols(stmt.index):
            return None
        operands = (stmt.left, stmt.right)
        if any(self.root[p.buffer] in late for p in operands):
            return None  # behind the loop it would see what the step made of it afterwards
        own = [p for p in operands if self.root[p.buffer] in inside and not self.is_of_steps(p, loop, rest)]
        steps = [self.step(loop, stmt, p) for p in operands if p not in own]
        if not all(steps) or not all(self.is_of_a_step(p, loop, stmt.depth) for p in own):
            return None
        step = next(iter(steps), None) or (Dim.of(loop.var), 0)
        for place in {p.buffer: p for p in own}.values():
            loop = self.with_steps(place, stmt.depth[0], step, loop)
        left = replace(loop, body=(*loop.body[:at], *loop.body[at + 1 :]))
        each = replace(loop, body=(loop.body[at],))
        deep = self.joined(each)
        behind: list[Stmt] | None = self.turned(each) if deep is None else [deep]
        return None if behind is None else (left, behind)

    def is_asked(self, stmt: Product, rest: Body) -> bool:
        """Whether anything touches what a product stores, but products that are added to it as well as this one."""
        target, others = self.root[stmt.buffer], list[str]()
        for s in rest:
            if stmt.op and isinstance(s, Product) and (s.buffer, s.op) == (stmt.buffer, stmt.op):
                others += [s.left.buffer, s.right.buffer]
            else:
                others += touched((s,))
        return target in {self.root[n] for n in others}

    def is_of_a_step(self, place: Load, loop: For, depth: tuple[str, Dim]) -> bool:
        """Whether it is a temporary that each step makes anew, as a whole, with one axis along the depth."""
        b = self.table[place.buffer]
        everywhere = sum(a.buffer == b.name for a in accesses((loop,)))
        if not self.is_own(b.name, everywhere) or not stored_first(loop.body, b, set()):
            return False
        along = [k for k, dim in enumerate(place.index) if depth[0] in dim.symbols()]
        if len(along) != 1 or (place.index[along[0]], b.shape[along[0]]) != (Dim.of(depth[0]), depth[1]):
            return False
        return loop.var not in _symbols(place.index) and self.has_room((loop.hi, *b.shape))

    def has_room(self, shape: Sequence[Dim]) -> bool:
        """Whether the kernel has arrays as large as that anyway."""
        return grows(shape) in self.sizes

    def with_steps(self, place: Load, depth: str, step: tuple[Dim, int], loop: For) -> For:
        """With an axis for the steps in the temporary that an operand is, beside that of the depth."""
        b, axis = self.table[place.buffer], place.index.index(Dim.of(depth))

        def widened(index: Sequence[Dim], number: Dim) -> Index:
            first = (number, index[axis]) if step[1] == 0 else (index[axis], number)
            return (*first, *index[:axis], *index[axis + 1 :])

        wide = self.new(f"{b.name}_all", b.dtype, widened(b.shape, loop.hi))
        self.uses[wide.name] = self.uses[b.name]

        def seen(name: str, index: Index) -> tuple[str, Index]:
            return (wide.name, widened(index, step[0])) if name == b.name else (name, index)

        return replace(loop, body=map_places(loop.body, seen))

    def turned(self, each: For) -> list[Stmt] | None:
        """All steps of a product whose operands number steps and depth in different orders: of a copy of the left one
        in the order of the right one."""
        (stmt,) = each.body
        assert isinstance(stmt, Product)
        step = self.step(each, stmt, stmt.right)
        (depth, extent), (row, rows) = stmt.depth, stmt.rows
        others = [d for d in stmt.left.index if not {each.var, depth} & d.symbols()]
        if step is None or others != [Dim.of(row)]:
            return None
        first, later = (
            ((each.var, each.hi), (depth, extent)) if step[1] == 0 else ((depth, extent), (each.var, each.hi))
        )
        axes = (first, later, (row, rows))
        shape = tuple(n for _, n in axes)
        if not self.has_room(shape):
            return None
        copy = self.new(f"{stmt.left.buffer}_turned", self.table[stmt.left.buffer].dtype, shape)
        index = tuple(step[0] if v == each.var else Dim.of(v) for v, _ in axes)
        deep = self.joined(replace(each, body=(replace(stmt, left=Load(copy.name, index, stmt.left.dtype)),)))
        if deep is None:
            return None
        fresh = {v: self.names.fresh(v) for v, _ in axes}
        names = {v: Dim.of(n) for v, n in fresh.items()}
        fill: Stmt = Store(copy.name, tuple(d.subs(names) for d in index), stmt.left.subs(names))
        for v, n in reversed(axes):
            fill = For(fresh[v], Dim.of(0), n, (fill,))
        return [fill, deep]

    def new(self, name: str, dtype: str, shape: Index) -> Buffer:
        buffer = Buffer(self.names.fresh(name), dtype, shape, "temp")
        self.table[buffer.name], self.root[buffer.name] = buffer, buffer.name
        return buffer

    def is_of_steps(self, place: Load, loop: For, rest: Body) -> bool:
        """Whether each step has a part of the array, and knows none but its own."""
        touching = [a for a in accesses(rest) if self.root[a.buffer] == self.root[place.buffer]]
        for axis, dim in enumerate(place.index):
            if over(dim, self.table[place.buffer].shape[axis], {loop.var: (loop.lo, loop.hi)}) == loop.var:
                return all(a.buffer == place.buffer and a.index and a.index[axis] == dim for a in touching)
        return False

    def step(self, loop: For, stmt: Product, place: Load) -> tuple[Dim, int] | None:
        """How an operand numbers the steps, if that and depth are neighbouring axes, and 1 if depth is the first."""
        for axis, dim in enumerate(place.index):
            if loop.var in dim.symbols():
                found = self.pair(place, loop, stmt.depth, axis)
                return None if found is None else (dim, int(found < axis))
        return None

    def pair(self, place: Load, loop: For, beside: tuple[str, Dim], axis: int) -> int | None:
        """The axis `beside`, if it is the neighbour of the one that the loop runs along, both go over all there is,
        and no other one names either."""
        shape = self.table[place.buffer].shape
        if over(place.index[axis], shape[axis], {loop.var: (loop.lo, loop.hi)}) != loop.var:
            return None
        var, extent = beside
        for other in (axis - 1, axis + 1):
            if 0 <= other < len(shape) and (place.index[other], shape[other]) == (Dim.of(var), extent):
                rest = [d for k, d in enumerate(place.index) if k not in (axis, other)]
                return None if {loop.var, var} & _symbols(rest) else other
        return None

    # -- loop and axis are one -----------------------------------------------------------------------------------
    def joined(self, stmt: Stmt) -> Product | None:
        """A loop that holds nothing but a product, as part of one of its axes; of its depth, where it is added."""
        match _alone(stmt):
            case (loop,), whole if self.deep or loop.kind == "map":
                pass
            case _:
                return None
        target = Load(whole.buffer, whole.index, self.table[whole.buffer].dtype)
        if whole.op == "add" and (kept := self.along(loop, whole, "depth", (whole.left, whole.right), target)):
            (left, right), axis = kept
            return replace(whole, left=left, right=right, depth=axis)
        if kept := self.along(loop, whole, "rows", (target, whole.left), whole.right):
            (target, left), axis = kept
            return replace(whole, buffer=target.buffer, index=target.index, left=left, rows=axis)
        if kept := self.along(loop, whole, "columns", (target, whole.right), whole.left):
            (target, right), axis = kept
            return replace(whole, buffer=target.buffer, index=target.index, right=right, columns=axis)
        return None

    def along(
        self, loop: For, whole: Product, name: str, places: tuple[Load, Load], other: Load
    ) -> tuple[tuple[Load, Load], tuple[str, Dim]] | None:
        """Two places with a loop and an axis as one, and that axis, if both number them alike, and the other place does
        not know the loop."""
        if loop.var in _symbols(other.index):
            return None
        var, extent = getattr(whole, name)
        n = self.names.fresh(var)
        one, two = (self.place(p, loop, (var, extent), n) for p in places)
        if one is None or two is None or one[1] != two[1]:
            return None
        return (one[0], two[0]), (n, (loop.hi - loop.lo) * extent)

    def place(self, place: Load, loop: For, beside: tuple[str, Dim], n: str) -> tuple[Load, tuple[bool, bool]] | None:
        """The place with both axes as one; whether the loop runs along it upwards, and is the first of the two."""
        b = self.table[place.buffer]
        for axis, dim in enumerate(place.index):
            if loop.var not in dim.symbols():
                continue
            if (other := self.pair(place, loop, beside, axis)) is None:
                return None
            first = min(axis, other)
            shape = (*b.shape[:first], b.shape[first] * b.shape[first + 1], *b.shape[first + 2 :])
            flat = Buffer(self.names.fresh(f"{b.name}_flat"), b.dtype, shape, "temp", alias=b.alias or b.name)
            self.table[flat.name], self.root[flat.name] = flat, self.root[b.name]
            index = (*place.index[:first], Dim.of(n), *place.index[first + 2 :])
            return Load(flat.name, index, place.dtype), (dim == Dim.of(loop.var), axis == first)
        return None


def _alone(stmt: Stmt) -> tuple[list[For], Product] | None:
    """Loops that hold nothing but a product, and it."""
    loops: list[For] = []
    while isinstance(stmt, For) and len(stmt.body) == 1:
        loops.append(stmt)
        stmt = stmt.body[0]
    return (loops, stmt) if loops and isinstance(stmt, Product) else None


def _numbered(index: Sequence[Dim], shape: Sequence[Dim], ranges: dict[str, tuple[Dim, Dim]]) -> list[str] | None:
    """The variables of an index, a different one for each axis, that runs over all of it."""
    names = [d.symbol for d in index if isinstance(d.symbol, str)]
    whole = [ranges.get(v) for v in names] == [(Dim.of(0), n) for n in shape]
    return names if whole and len(set(names)) == len(names) else None


def _symbols(index: Sequence[Dim]) -> set[str]:
    return {s for d in index for s in d.symbols()}
