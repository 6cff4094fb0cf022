"""Walking and rebuilding the IR: what every pass needs and none should write twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeGuard

from ..dims import Atom, Dim, Facts, Monomial, largest, nonnegative, product
from ..ir import (
    Buffer,
    Cast,
    Check,
    Const,
    Expr,
    For,
    Grow,
    If,
    Int,
    Kernel,
    Load,
    Op,
    Product,
    Stmt,
    Store,
    While,
)
from ..node import remembered

Body = tuple[Stmt, ...]
Index = tuple[Dim, ...]


# -- expressions ---------------------------------------------------------------------------------------------
@remembered
def dim_loads(dim: Dim) -> tuple[Load, ...]:
    """The integers read from memory inside a Dim, those inside their indices too."""
    found: list[Load] = []
    for atom in dim.atoms():
        if isinstance(atom, Atom):
            for arg in atom.args:
                if isinstance(arg, Load):
                    found.append(arg)
                    for index in arg.index:
                        found += dim_loads(index)
    return tuple(found)


@remembered
def parts(expr: Expr) -> tuple[Expr, ...]:
    """All nodes of an expression, and the loads inside its indices."""
    found: list[Expr] = [expr]
    match expr:
        case Load(index=index):
            for dim in index:
                found += dim_loads(dim)
        case Int(dim):
            found += dim_loads(dim)
        case Op(args=args):
            for arg in args:
                found += parts(arg)
        case Cast(value=value):
            found += parts(value)
    return tuple(found)


def loads(expr: Expr) -> Iterator[Load]:
    return (p for p in parts(expr) if isinstance(p, Load))


def map_dim(dim: Dim, f: Callable[[Expr], Expr]) -> Dim:
    """Rebuilds a Dim with f applied to the loads inside it."""
    if not any(isinstance(a, Atom) for a in dim.atoms()):
        return dim
    return dim.rebuilt(lambda atom: _map_atom(atom, f) if isinstance(atom, Atom) else Dim.of(atom))


def _map_atom(atom: Atom, f: Callable[[Expr], Expr]) -> Dim:
    args = []
    for arg in atom.args:
        if isinstance(arg, Dim):
            arg = map_dim(arg, f)
        elif isinstance(arg, Load):
            arg = map_expr(arg, f)
            if isinstance(arg, Int) and atom.kind == "load":
                return arg.dim
        args.append(arg)
    return Dim.of(Atom(atom.kind, tuple(args)))


def map_expr(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Rebuilds an expression from the leaves up; f sees every node after its arguments. What does not change stays the
    same object: what is remembered of it is."""
    match expr:
        case Load(buffer, index, dtype) if index:
            places = tuple(map_dim(d, f) for d in index)
            expr = expr if same(places, index) else Load(buffer, places, dtype)
        case Int(dim):
            place = map_dim(dim, f)
            expr = expr if place is dim else Int(place)
        case Op(op, args, dtype):
            done = tuple(map_expr(a, f) for a in args)
            expr = expr if same(done, args) else Op(op, done, dtype)
        case Cast(value, dtype):
            inner = map_expr(value, f)
            expr = expr if inner is value else Cast(inner, dtype)
    return f(expr)


def descend(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """The expression with f of what it is made of."""
    match expr:
        case Op(op, args, dtype):
            return Op(op, tuple(f(a) for a in args), dtype)
        case Cast(value, dtype):
            return Cast(f(value), dtype)
    return expr


def same(new: Sequence[object], old: Sequence[object]) -> bool:
    """Whether they hold the very same objects."""
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def symbols(expr: Expr) -> set[str]:
    """The integer symbols (dims, loop variables) an expression depends on."""
    found: set[str] = set()
    for part in parts(expr):
        match part:
            case Load(index=index):
                for dim in index:
                    found |= dim.symbols()
            case Int(dim):
                found |= dim.symbols()
    return found


# -- statements ----------------------------------------------------------------------------------------------
def bodies(stmt: Stmt) -> tuple[Body, ...]:
    """The statement lists inside a statement."""
    match stmt:
        case For(body=body):
            return (body,)
        case While(before=before, body=body):
            return (before, body)
        case If(then=then, orelse=orelse):
            return (then, orelse)
    return ()


def walk(body: Iterable[Stmt]) -> Iterator[Stmt]:
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from walk(inner)


def map_bodies(stmt: Stmt, f: Callable[[Body], Body]) -> Stmt:
    """The statement with f applied to the statement lists directly inside it."""
    old = bodies(stmt)
    if not old:
        return stmt
    new = tuple(f(body) for body in old)
    if all(same(a, b) for a, b in zip(new, old, strict=True)):
        return stmt
    match stmt:
        case For():
            return replace(stmt, body=new[0])
        case While():
            return replace(stmt, before=new[0], body=new[1])
    assert isinstance(stmt, If)
    return replace(stmt, then=new[0], orelse=new[1])


def map_stmts(body: Body, f: Callable[[Stmt], Iterable[Stmt]]) -> Body:
    """Rebuilds statements from the inside out; f gives the statements that take one's place."""
    return tuple(new for stmt in body for new in f(map_bodies(stmt, lambda inner: map_stmts(inner, f))))


def own_dims(stmt: Stmt) -> tuple[Dim, ...]:
    """The Dims a statement itself evaluates, besides those inside its expressions."""
    match stmt:
        case Store(index=index):
            return index
        case For(lo=lo, hi=hi):
            return (lo, hi)
        case Product():
            return tuple(extent for _, extent in stmt.axes)
        case Grow(count=count):
            return (count,)
        case Check(info=info):
            return info
    return ()


def own_exprs(stmt: Stmt) -> tuple[Expr, ...]:
    match stmt:
        case Store(value=value):
            return (value,)
        case While(cond=cond) | If(cond=cond) | Check(cond=cond):
            return (cond,)
        case Grow(lent=Load() as lent):
            return (lent,)
    return ()


def map_own(stmt: Stmt, dim: Callable[[Dim], Dim], expr: Callable[[Expr], Expr]) -> Stmt:
    """The statement with its own Dims and expressions replaced, the lists inside it kept."""
    match stmt:
        case Store(buffer, index, value, op):
            place, new = tuple(dim(d) for d in index), expr(value)
            return stmt if new is value and same(place, index) else Store(buffer, place, new, op)
        case For(lo=lo, hi=hi, work=work, coarse=coarse):
            ends, costs = (dim(lo), dim(hi)), tuple(None if d is None else dim(d) for d in (work, coarse))
            if same((*ends, *costs), (lo, hi, work, coarse)):
                return stmt
            return replace(stmt, lo=ends[0], hi=ends[1], work=costs[0], coarse=costs[1])
        case While(cond=cond) | If(cond=cond):
            new = expr(cond)
            return stmt if new is cond else replace(stmt, cond=new)
        case Product(index=index, left=left, right=right):
            left, right = expr(left), expr(right)  # type: ignore[assignment]
            assert isinstance(left, Load), "a product reads arrays"
            assert isinstance(right, Load), "a product reads arrays"
            rows, columns, depth = ((name, dim(extent)) for name, extent in stmt.axes)
            place, asked = tuple(dim(d) for d in index), tuple(dim(d) for d in stmt.asked)
            stmt = replace(stmt, index=place, left=left, right=right, asked=asked)
            return replace(stmt, rows=rows, columns=columns, depth=depth)
        case Grow(buffer, count, lent):
            first = expr(lent) if lent else None
            assert first is None or isinstance(first, Load), "a list is lent the memory of an array"
            return Grow(buffer, dim(count), first)
        case Check(cond, number, info):
            return Check(expr(cond), number, tuple(dim(d) for d in info))
    return stmt


def map_all(body: Body, f: Callable[[Expr], Expr]) -> Body:
    """f over every expression node of every statement, and over the loads inside every Dim."""

    def dim(d: Dim) -> Dim:
        return map_dim(d, f)

    return map_stmts(body, lambda s: (map_own(s, dim, lambda e: map_expr(e, f)),))


def substitute(body: Body, values: Mapping[str, Dim]) -> Body:
    """Replaces integer symbols in a list of statements."""
    if not values:
        return body

    def dim(d: Dim) -> Dim:
        return d.subs(values)

    return map_stmts(body, lambda s: (map_own(s, dim, lambda e: subst_expr(e, values)),))


def rename_buffers(body: Body, fresh: dict[str, str]) -> Body:
    def load(e: Expr) -> Expr:
        return Load(fresh[e.buffer], e.index, e.dtype) if isinstance(e, Load) and e.buffer in fresh else e

    def target(stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Product, Grow)) and stmt.buffer in fresh:
            stmt = replace(stmt, buffer=fresh[stmt.buffer])
        return map_bodies(stmt, lambda inner: tuple(target(s) for s in inner))

    return tuple(target(s) for s in map_all(body, load))


def map_places(body: Body, place: Callable[[str, Index], tuple[str, Index]]) -> Body:
    """Replaces buffer and index wherever elements are read, stored, or computed by a product."""

    def load(e: Expr) -> Expr:
        return Load(*place(e.buffer, e.index), e.dtype) if isinstance(e, Load) else e

    def target(s: Stmt) -> Body:
        if not isinstance(s, (Store, Product)):
            return (s,)
        buffer, index = place(s.buffer, s.index)
        return (replace(s, buffer=buffer, index=index),)

    return map_stmts(map_all(body, load), target)


def factors_of(expr: Expr) -> tuple[Expr, ...]:
    """Those of a product, in its order; else what it is."""
    match expr:
        case Op("multiply", (a, b)):
            return (*factors_of(a), *factors_of(b))
    return (expr,)


def product_of(factors: Sequence[Expr], dtype: str) -> Expr:
    return reduce(lambda a, b: Op("multiply", (a, b), dtype), factors)


def subst_expr(expr: Expr, values: Mapping[str, Dim]) -> Expr:
    match expr:
        case Load(index=index):
            return expr if all(not d.symbols() & values.keys() for d in index) else expr.subs(values)
        case Int(dim):
            new = dim.subs(values)
            return expr if new is dim else Int(new)
        case Op(op, args, dtype):
            done = tuple(subst_expr(a, values) for a in args)
            return expr if same(done, args) else Op(op, done, dtype)
        case Cast(value, dtype):
            inner = subst_expr(value, values)
            return expr if inner is value else Cast(inner, dtype)
    return expr


# -- accesses ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Access:
    """One place where a buffer is touched: mode "r", "w", or the operation it is accumulated with; Grow is
    a "w" of everything. `loops` are the loops around it, outermost first, from where the search began, and
    the axes of a product as loops."""

    buffer: str
    index: tuple[Dim, ...] | None
    mode: str
    loops: tuple[For, ...] = ()

    @property
    def writes(self) -> bool:
        return self.mode != "r"


@remembered
def own_accesses(stmt: Stmt) -> tuple[tuple[str, tuple[Dim, ...] | None, str], ...]:
    """Buffer, index and mode of what a statement itself touches."""
    dims, exprs = own_dims(stmt), own_exprs(stmt)
    if isinstance(stmt, Product):  # its index, whose variables it binds, may read memory too
        dims, exprs = (*dims, *stmt.index), (stmt.left, stmt.right)
    read = [load for d in dims for load in dim_loads(d)] + [load for e in exprs for load in loads(e)]
    found: list[tuple[str, tuple[Dim, ...] | None, str]] = [(load.buffer, load.index, "r") for load in read]
    match stmt:
        case Store(buffer, index, _, op) | Product(buffer, index, op=op):
            found.append((buffer, index, op or "w"))
        case Grow(buffer):
            found.append((buffer, None, "w"))
    return tuple(found)


def accesses(body: Iterable[Stmt], loops: tuple[For, ...] = ()) -> Iterator[Access]:
    for stmt in body:
        for a in _accesses(stmt):
            yield Access(a.buffer, a.index, a.mode, loops + a.loops) if loops else a


@remembered
def _accesses(stmt: Stmt) -> tuple[Access, ...]:
    axes = as_loops(stmt) if isinstance(stmt, Product) else ()
    found = [Access(buffer, index, mode, axes) for buffer, index, mode in own_accesses(stmt)]
    around = (stmt,) if isinstance(stmt, For) else ()
    for body in bodies(stmt):
        found += accesses(body, around)
    return tuple(found)


def as_loops(product: Product) -> tuple[For, ...]:
    """The axes of a product as loops that hold nothing."""
    return tuple(For(name, Dim.of(0), extent, ()) for name, extent in product.axes)


def spelled_out(product: Product, names: Names) -> For:
    """A product as the nest of loops that it stands for."""
    fresh = {name: Dim.of(names.fresh(name)) for name, _ in product.axes}
    row, column, depth = (For(str(fresh[name]), Dim.of(0), extent, ()) for name, extent in product.axes)
    dtype = product.left.dtype
    term = Store(product.buffer, product.index, Op("multiply", (product.left, product.right), dtype), "add")
    start = () if product.op else (replace(term, value=Const(0.0, dtype), op=None),)
    inside = (*start, replace(depth, body=(term,)))
    return replace(row, body=(replace(column, body=substitute(inside, fresh)),))


def touched(body: Iterable[Stmt]) -> set[str]:
    return set().union(*map(_touched, body))


@remembered
def _touched(stmt: Stmt) -> frozenset[str]:
    own = (buffer for buffer, _, _ in own_accesses(stmt))
    return frozenset(own).union(*(_touched(s) for body in bodies(stmt) for s in body))


def over_examples(stmt: Stmt | None, kernel: Kernel) -> TypeGuard[For]:
    """Whether it is a loop over all examples of a batch."""
    return isinstance(stmt, For) and stmt.kind == "map" and kernel.batch is not None and stmt.hi == Dim.of(kernel.batch)


def unread(kernel: Kernel) -> set[str]:
    """Arguments in which the kernel never looks: it takes their extents, as numbers."""
    root = roots(kernel)
    return {b.name for b in kernel.buffers if b.kind == "in"} - {root[name] for name in touched(kernel.body)}


def written(body: Iterable[Stmt]) -> set[str]:
    return set().union(*map(_written, body))


@remembered
def _written(stmt: Stmt) -> frozenset[str]:
    own = (buffer for buffer, _, mode in own_accesses(stmt) if mode != "r")
    return frozenset(own).union(*(_written(s) for body in bodies(stmt) for s in body))


def symbols_of(body: Iterable[Stmt]) -> set[str]:
    """The integer symbols that statements depend on, those inside them too."""
    inside = list(walk(body))
    dims = (d.symbols() for s in inside for d in own_dims(s))
    return set().union(*dims, *(symbols(e) for s in inside for e in own_exprs(s)))


def needed(body: Sequence[Stmt], names: Collection[str]) -> Body:
    """Without those of these variables that nothing behind their stores reads."""
    kept: list[Stmt] = []
    read: set[str] = set()
    for stmt in reversed(body):
        if not (isinstance(stmt, Store) and stmt.buffer in names and stmt.buffer not in read):
            kept.insert(0, stmt)
            read |= {a.buffer for a in accesses((stmt,)) if not a.writes}
    return tuple(kept)


def roots(kernel: Kernel) -> dict[str, str]:
    """Buffer -> the buffer whose memory it is."""
    alias = {b.name: b.alias for b in kernel.buffers}
    found = {}
    for name in alias:
        root, parent = name, alias[name]
        while parent:
            root, parent = parent, alias[parent]
        found[name] = root
    return found


def buffers(kernel: Kernel) -> dict[str, Buffer]:
    return {b.name: b for b in kernel.buffers}


def grows(shape: Iterable[Dim]) -> frozenset[Monomial]:
    """What an array of this shape grows with: numbers left out."""
    return frozenset(monomial for monomial, _ in product(shape).terms)


def rooms(kernel: Kernel) -> set[frozenset[Monomial]]:
    """What arrays grow with that the layer takes or gives for each example, or at all where there is no batch."""
    given = (b.shape for b in kernel.buffers if b.kind in ("in", "out"))
    if kernel.batch is None:
        return {grows(shape) for shape in given}
    return {grows(shape[1:]) for shape in given if shape[:1] == (Dim.of(kernel.batch),)}


def extent_of(loop: For, facts: Facts, sizes: Set[str]) -> Dim | None:
    """How many places an array has that has one for each iteration, where the sizes say it; `facts`: of the loops
    around. None where something else does."""
    most = largest(loop.hi, facts)
    return most if nonnegative(loop.lo, facts) and most.symbols() <= sizes and not any(dim_loads(most)) else None


def fits(shape: Iterable[Dim], known: Iterable[frozenset[Monomial]]) -> bool:
    """Whether an array of this shape grows no faster than one of those: all its sizes are among theirs."""
    own = [Counter(monomial) for monomial, _ in product(shape).terms]
    return any(all(any(m <= Counter(other) for other in room) for m in own) for room in known)


def of_terms(sum_: Stmt, kernel: Kernel, around: Iterable[For] = ()) -> set[str]:
    """What a nest touches each of whose terms has an element of its own in an array that the layer is given: what it
    makes, and makes it of, is less than that for each example."""
    loops, nest = [x for x in around if x.hi != Dim.of(kernel.batch or "")], sum_
    while isinstance(nest, For):
        loops.append(nest)
        nest = nest.body[0]
    batch = Dim.of(kernel.batch or "")
    given = [b.shape[1:] if b.shape[:1] == (batch,) else b.shape for b in kernel.buffers if b.kind == "in"]
    return touched((sum_,)) if fits([x.hi for x in loops], {grows(shape) for shape in given}) else set()


def degree(buffer: Buffer) -> int:
    """How many sizes its size is the product of."""
    return max((len(monomial) for monomial, _ in product(buffer.shape).terms), default=0)


def read_from_dims(kernel: Kernel) -> set[str]:
    """Buffers that some Dim reads an integer from: their values cannot be replaced by expressions."""
    return {name for stmt in kernel.body for name in in_dims(stmt)}


@remembered
def in_dims(stmt: Stmt) -> frozenset[str]:
    """Buffers that Dims of the statement, or of those inside, read integers from."""
    dims = list(own_dims(stmt))
    if isinstance(stmt, Product):
        dims += [*stmt.index, *stmt.left.index, *stmt.right.index]
    for expr in own_exprs(stmt):
        for part in parts(expr):
            dims += part.index if isinstance(part, Load) else [part.dim] if isinstance(part, Int) else []
    found = {load.buffer for d in dims for load in dim_loads(d)}
    return frozenset(found.union(*(in_dims(s) for body in bodies(stmt) for s in body)))


class Names:
    """Fresh names: `base`, or `base_2`, `base_3`..."""

    def __init__(self, taken: Iterable[str]):
        self.taken = set(taken)

    @staticmethod
    def of(kernel: Kernel) -> Names:
        taken = set(kernel.dims) | {s.name for s in kernel.scalars} | {b.name for b in kernel.buffers}
        taken |= {s.var for s in walk(kernel.body) if isinstance(s, For)}
        return Names(taken | {name for s in walk(kernel.body) if isinstance(s, Product) for name, _ in s.axes})

    def fresh(self, base: str) -> str:
        name, count = base, 1
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


def anew(loop: For, names: Names) -> For:
    """The loop with a variable of its own."""
    fresh = names.fresh(loop.var)
    return replace(loop, var=fresh, body=substitute(loop.body, {loop.var: Dim.of(fresh)}))


def nest_anew(nest: Stmt, names: Names) -> Stmt:
    """A nest whose loops all have variables of their own."""
    if not isinstance(nest, For):
        return map_bodies(nest, lambda inner: tuple(nest_anew(s, names) for s in inner))
    loop = anew(nest, names)
    return replace(loop, body=tuple(nest_anew(s, names) for s in loop.body))


def apart(kernel: Kernel, names: Names) -> tuple[Body, list[Buffer]]:
    """The body with temporaries of its own: what one of two versions makes is nothing to the other."""
    fresh = {b.name: names.fresh(b.name) for b in kernel.buffers if b.kind in ("temp", "list")}
    more = [
        replace(b, name=fresh[b.name], alias=fresh.get(b.alias, b.alias) if b.alias else None)
        for b in kernel.buffers
        if b.name in fresh
    ]
    return rename_buffers(kernel.body, fresh), more


def has(body: Iterable[Stmt], *kinds: type) -> bool:
    return any(not _kinds(stmt).isdisjoint(kinds) for stmt in body)


@remembered
def _kinds(stmt: Stmt) -> frozenset[type]:
    return frozenset((type(stmt),)).union(*(_kinds(s) for body in bodies(stmt) for s in body))


def named(var: str, value: Dim, body: Body) -> For:
    """The body with a name for a number: a loop of one iteration."""
    return For(var, value, value + 1, body)


def in_vectors(stmt: Stmt) -> TypeGuard[For]:
    """Whether it is a loop that gcc may run in vectors: a map, for one thread, with no loop and no way out inside."""
    if not isinstance(stmt, For) or stmt.kind != "map" or stmt.parallel:
        return False
    return not has(stmt.body, For, While, Check, Grow, Product)


def another(loop: For, names: Names, uses: Mapping[str, int], table: Mapping[str, Buffer]) -> tuple[For, list[Buffer]]:
    """The loop with numbers of its own, where nothing else of the kernel knows them. `uses`: how often the kernel
    touches each buffer."""
    inside = Counter(a.buffer for a in accesses((loop,)))
    single = (n for n, b in table.items() if b.kind == "temp" and not b.shape and not b.alias)
    fresh = {n: names.fresh(n) for n in single if inside[n] and inside[n] == uses[n]}
    made = [replace(table[n], name=new) for n, new in fresh.items()]
    return replace(loop, body=rename_buffers(loop.body, fresh)), made
