"""What every pass may rely on and must leave behind. Runs after each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..dims import Atom, Dim, nonnegative
from ..ir import THREADS, Buffer, Expr, For, Grow, If, Int, Kernel, Load, Op, Product, Scalar, Stmt, Store
from .tree import accesses, bodies, own_accesses, own_dims, own_exprs, parts, roots, walk

STORE_OPS = ("add", "mul", "max", "min", "or", "and")
DTYPES = ("real", "f32", "f64", "i32", "i64", "bool")


class IRError(AssertionError):
    """A pass, or lowering, made a kernel that means nothing."""


def verify(kernel: Kernel, own_loops: bool = False) -> Kernel:
    """Names are known where they are used and mean one thing, ranks agree, inputs are not written. `own_loops`: no two
    loops have one variable (`tidy` sees to that), not even where one cannot see the other: passes take what they find
    out of a name for true wherever it stands."""
    checker = _Checker(kernel)
    checker.declarations()
    checker.body(kernel.body, checker.known)
    if own_loops:
        checker.loops()
    if checker.faults:
        raise IRError(f"{kernel.name}: " + "; ".join(checker.faults[:10]))
    return kernel


def shared_places(body: tuple[Stmt, ...], following: frozenset[str]) -> Iterator[str]:
    """Buffers with a place that more than one iteration may write to. `following`: the variables of the loop, and of
    those inside whose bounds depend on it."""
    for stmt in body:
        for name, index, mode in own_accesses(stmt):
            if mode != "r" and not following & {s for d in index or () for s in d.symbols()}:
                yield name
        match stmt:
            case If(cond, _, orelse) if _of_one(cond, following):
                yield from shared_places(orelse, following)
            case For(var, lo, hi, inside) if following & (lo.symbols() | hi.symbols()):
                yield from shared_places(inside, following | {var})
            case _:
                for block in bodies(stmt):
                    yield from shared_places(block, following)


def _of_one(cond: Expr, following: frozenset[str]) -> bool:
    """Whether a condition holds for one iteration only."""
    match cond:
        case Op("equal", (Int(dim), _)):
            return bool(dim.symbols() & following)
        case Op("logical_and", (Op("greater_equal", (Int(a), Int(low))), Op("less", (Int(b), Int(high))))) if a == b:
            return not a.symbols() & following and any(_are_parts(low, high, var) for var in following)
        case Op("logical_and", terms):
            return any(_of_one(term, following) for term in terms)
    return False


def _are_parts(low: Dim, high: Dim, var: str) -> bool:
    """Whether `low..high` are ranges one behind the other: n*var//parts .. n*(var + 1)//parts."""
    places = [a for a in low.atoms() if isinstance(a, Atom) and a.kind == "floordiv" and var in Dim.of(a).symbols()]
    if len(places) != 1 or high != low.subs({var: Dim.of(var) + 1}):
        return False
    (dividend, parts), rest = places[0].args, low - Dim.of(places[0])
    step = dividend.split(var)
    fixed = var not in parts.symbols() | rest.symbols() and step is not None and var not in step[0].symbols()
    return fixed and nonnegative(step[0])


class _Checker:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.faults: list[str] = []
        self.table = {b.name: b for b in kernel.buffers}
        integers = {s.name for s in kernel.scalars if s.dtype in ("i32", "i64", "bool")}
        self.known = frozenset(kernel.dims) | integers | {THREADS} | ({kernel.batch} if kernel.batch else set())

    def fault(self, text: str) -> None:
        self.faults.append(text)

    def declarations(self) -> None:
        names = [
            *self.kernel.dims,
            *(s.name for s in self.kernel.scalars),
            *(b.name for b in self.kernel.buffers),
        ]
        for name in sorted({n for n in names if names.count(n) > 1}):
            self.fault(f"{name} is declared twice")
        for b in self.kernel.buffers:
            if b.dtype not in DTYPES or b.kind not in ("in", "out", "temp", "list"):
                self.fault(f"buffer {b.name} has type {b.dtype}, kind {b.kind}")
            if b.alias and b.alias not in self.table:
                self.fault(f"buffer {b.name} is an alias of nothing")
            elif b.alias and self.table[b.alias].alias:
                self.fault(f"buffer {b.name} is an alias of an alias")
            if b.kind in ("in", "out"):
                self.dims(b.shape, self.known, f"the shape of {b.name}")

    def body(self, body: tuple[Stmt, ...], known: frozenset[str]) -> None:
        for stmt in body:
            self.dims(own_dims(stmt), known, type(stmt).__name__)
            for expr in own_exprs(stmt):
                self.expr(expr, known)
            inner = known
            match stmt:
                case Store(buffer, index, _, op):
                    self.access(buffer, index, known, write=True)
                    if op is not None and op not in STORE_OPS:
                        self.fault(f"store into {buffer} with unknown operation {op}")
                case Product():
                    self.product(stmt, known)
                case Grow(buffer, lent=lent):
                    if self.table.get(buffer, Buffer("", "", (), "")).kind != "list":
                        self.fault(f"grows {buffer}, which is no list")
                    if lent and self.table[lent.buffer].kind != "in":
                        self.fault(f"lends {lent.buffer}, which may be written to")
                case For(var, kind=kind):
                    if var in known:
                        self.fault(f"loop variable {var} hides another")
                    if kind not in ("map", "seq"):
                        self.fault(f"loop {var} of kind {kind}")
                    inner = known | {var}
                    if stmt.parallel:
                        self.parallel(stmt)
            for b in bodies(stmt):
                self.body(b, inner)

    def loops(self) -> None:
        for name, times in Counter(s.var for s in walk(self.kernel.body) if isinstance(s, For)).items():
            if times > 1:
                self.fault(f"{times} loops have the variable {name}")

    def parallel(self, loop: For) -> None:
        """No two iterations write to one place: each has a part of the buffer, or a copy that storage gives it."""
        root = roots(self.kernel)
        shared = dict.fromkeys(root[name] for name in shared_places(loop.body, frozenset({loop.var})))
        if not shared:
            return
        everywhere, inside = (Counter(root[a.buffer] for a in accesses(b)) for b in (self.kernel.body, (loop,)))
        for name in shared:
            # A temporary that is used in this loop only is private: see `emit_storage`.
            if self.table[name].kind not in ("temp", "list") or inside[name] != everywhere[name]:
                self.fault(f"iterations of {loop.var}, which threads share, write to the same places of {name}")

    def product(self, stmt: Product, known: frozenset[str]) -> None:
        row, column, depth = (name for name, _ in stmt.axes)
        if len({row, column, depth} - known) < 3:
            self.fault(f"the axes of a product, {row}, {column}, {depth}, hide one another or what is around")
        if stmt.op not in (None, "add"):
            self.fault(f"a product is stored into {stmt.buffer} with operation {stmt.op}")
        for what, index, own in (
            (stmt.buffer, stmt.index, {row, column}),
            (stmt.left.buffer, stmt.left.index, {row, depth}),
            (stmt.right.buffer, stmt.right.index, {depth, column}),
        ):
            self.access(what, index, known | own, write=what == stmt.buffer)
            for dim in index:
                for var in own:
                    if (parts := dim.split(var)) is None or parts[0].symbols() & own:
                        self.fault(f"an index of {what} is not linear in {var}")
        if stmt.buffer in (stmt.left.buffer, stmt.right.buffer):
            self.fault(f"a product overwrites {stmt.buffer}, which it reads")

    def expr(self, expr: Expr, known: frozenset[str]) -> None:
        scalars = {s.name for s in self.kernel.scalars}
        for part in parts(expr):
            match part:
                case Load(buffer, index, _):
                    self.access(buffer, index, known, write=False)
                case Int(dim):
                    self.dims((dim,), known, "an integer")
                case Scalar(name, _) if name not in scalars:
                    self.fault(f"unknown scalar {name}")
                case Op(dtype=dtype) if dtype not in DTYPES:
                    self.fault(f"operation of type {dtype}")

    def access(self, name: str, index: tuple[Dim, ...], known: frozenset[str], write: bool) -> None:
        buffer = self.table.get(name)
        if buffer is None:
            self.fault(f"unknown buffer {name}")
            return
        if len(index) != len(buffer.shape):
            self.fault(f"{name} has {len(buffer.shape)} axes, indexed by {len(index)}")
        if write and buffer.kind == "in":
            self.fault(f"writes the input {name}")
        self.dims(index, known, f"an index of {name}")

    def dims(self, dims: tuple[Dim, ...], known: frozenset[str], where: str) -> None:
        for dim in dims:
            if unknown := dim.symbols() - known:
                self.fault(f"{where} uses {', '.join(sorted(unknown))}, unknown there")
