"""Scalar recurrences are vectorised across the batch: sixteen examples walk through the loops together.

    for b in 0..batch:                         for g in 0..batch//16:
        h = 0                                      for l in 0..16: h[l] = 0
        for t seq:                     ->          for t seq:
            h = a * h + x[b,t]                         for l in 0..16: h[l] = a * h[l] + x[16*g + l, t]
        y[b] = h                                   for l in 0..16: y[16*g + l] = h[l]
                                               for b in 16*(batch//16)..batch: as before

A loop that runs until a condition fails runs until it has failed for all: examples that are done keep their
values.

    loop:                                          loop:
        leave unless h < 1             ->              any = 0; for l: live[l] &= h[l] < 1; any |= live[l]
        h = 2 * h                                      leave unless any
                                                       for l: h[l] = where(live[l], 2 * h[l], h[l])

Only kernels that have such loops: where there are map loops inside, those are vectorised as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..dims import Dim
from ..ir import (
    Buffer,
    Cast,
    Check,
    Comment,
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
from .accumulate import neutral
from .depend import Memory
from .tree import (
    Body,
    Names,
    accesses,
    bodies,
    dim_loads,
    has,
    map_all,
    own_accesses,
    own_dims,
    own_exprs,
    parts,
    substitute,
    walk,
)

LANES = 16
INTEGERS = ("i32", "i64")


def lanes(kernel: Kernel) -> Kernel:
    if kernel.batch is None:
        return kernel
    body: list[Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, For) and stmt.hi == Dim.of(kernel.batch) and stmt.kind == "map":
            made = _split(stmt, kernel)
            if made is not None:
                loops, kernel = made
                body += loops
                continue
        body.append(stmt)
    return replace(kernel, body=tuple(body))


def is_recurrence(stmt: Stmt) -> bool:
    """A sequential loop without any loop inside that could be vectorised."""
    if not (isinstance(stmt, While) or (isinstance(stmt, For) and stmt.kind == "seq")):
        return False
    return not any(isinstance(s, Product) or (isinstance(s, For) and s.kind == "map") for s in walk((stmt,)))


def _split(loop: For, kernel: Kernel) -> tuple[list[Stmt], Kernel] | None:
    state = _State(kernel, loop)
    if not any(is_recurrence(s) for s in loop.body) or not state.possible():
        return None
    full = Dim.of(kernel.batch or "") // LANES
    inside: list[Stmt] = []
    for stmt in loop.body:
        if isinstance(stmt, For) and stmt.kind == "map" and not any(is_recurrence(s) for s in walk((stmt,))):
            # A nest that is vectorised along its own axis: one example after another.
            inside.append(For(var := state.names.fresh("l"), Dim.of(0), Dim.of(LANES), (state.one(stmt, var),), "map"))
        else:
            inside += state.body((stmt,), None)
    first = For(state.group, Dim.of(0), full, _joined(tuple(inside)), "map")
    kernel = replace(kernel, buffers=(*kernel.buffers, *state.made))
    rest = replace(loop, lo=full * LANES, kind="seq")  # a few examples: not worth threads
    return [first, rest], kernel


@dataclass
class _State:
    kernel: Kernel
    loop: For
    made: list[Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = Names.of(self.kernel)
        self.group = self.names.fresh("group")
        self.table = {b.name: b for b in self.kernel.buffers}
        self.memory = Memory.of(self.kernel).inside(self.loop)
        self.wide: dict[str, str] = {}  # private temporary -> its copy with an axis of lanes
        for name in sorted({a.buffer for a in accesses(self.loop.body)}):
            if self.table[name].kind == "temp":
                self.wide[name] = self.add(name, self.table[name].dtype, (*self.table[name].shape, Dim.of(LANES)))

    def add(self, base: str, dtype: str, shape: tuple[Dim, ...]) -> str:
        name = self.names.fresh(base)
        self.made.append(Buffer(name, dtype, shape, "temp"))
        self.table[name] = self.made[-1]
        return name

    # -- may it be done --------------------------------------------------------------------------------------
    def possible(self) -> bool:
        """All examples take the same way through the loops, and what is computed for one that is done does
        no harm."""
        if has(self.loop.body, Check, Grow, Product):
            return False
        outside = [a.buffer for a in accesses(self.kernel.body)]
        inside = [a.buffer for a in accesses(self.loop.body)]
        if any(outside.count(n) != inside.count(n) for n in self.wide) or any(self.table[n].alias for n in self.wide):
            return False
        return self.uniform(self.loop.body, self.memory, masked=False)

    def uniform(self, body: Body, memory: Memory, masked: bool) -> bool:
        for stmt in body:
            if any(True for d in own_dims(stmt) for _ in dim_loads(d)):
                return False
            for expr in own_exprs(stmt):
                if any(isinstance(p, Int) and any(True for _ in dim_loads(p.dim)) for p in parts(expr)):
                    return False
                if masked and not _harmless(expr, memory):
                    return False
            match stmt:
                case For(lo=lo, hi=hi):
                    if masked or self.loop.var in lo.symbols() | hi.symbols():
                        return False
                    if not self.uniform(stmt.body, memory.inside(stmt), masked):
                        return False
                case If() | While():
                    if not all(self.uniform(b, memory, True) for b in bodies(stmt)):
                        return False
        return True

    # -- doing it --------------------------------------------------------------------------------------------
    def body(self, body: Body, mask: Expr | None) -> Body:
        found: list[Stmt] = []
        for stmt in body:
            found += self.stmt(stmt, mask)
        return _joined(tuple(found))

    def stmt(self, stmt: Stmt, mask: Expr | None) -> Body:
        match stmt:
            case Comment():
                return (stmt,)
            case Store():
                return (self.lane(_masked(stmt, mask, self.table)),)
            case For(body=inside):
                return (replace(stmt, body=self.body(inside, mask)),)
            case If(cond, then, orelse):
                taken = self.flag("taken")
                yes = _and(mask, Load(taken, (), "bool"))
                no = _and(mask, Op("logical_not", (Load(taken, (), "bool"),), "bool"))
                return (self.lane(Store(taken, (), cond)), *self.body(then, yes), *self.body(orelse, no))
            case While(before, cond, inside):
                return self.loop_until_all_done(before, cond, inside, mask)
        raise TypeError(stmt)

    def loop_until_all_done(self, before: Body, cond: Expr, inside: Body, mask: Expr | None) -> Body:
        live, some = self.flag("live"), self.add("some", "i64", ())
        running = Load(live, (), "bool")
        # What is used in one iteration only may hold anything for an example that is done.
        free = {n for n in self.wide if _only_within(n, before, cond, inside, self.loop)}
        start = self.lane(Store(live, (), mask or Const(True, "bool")))
        test = (
            *self.body(_unmasked(before, free, running, self.table), None),
            self.lane(Store(live, (), _and(running, cond))),
            Store(some, (), Const(0, "i64")),
            self.lane(Store(some, (), Cast(running, "i64"), "max")),
        )
        go_on = Op("greater", (Load(some, (), "i64"), Const(0, "i64")), "bool")
        return (
            start,
            While(_joined(test), go_on, self.body(_unmasked(inside, free, running, self.table), None)),
        )

    def flag(self, base: str) -> str:
        name = self.names.fresh(base)
        self.table[name] = Buffer(name, "bool", (), "temp")
        self.wide[name] = self.add(name, "bool", (Dim.of(LANES),))
        return name

    def lane(self, stmt: Store) -> For:
        var = self.names.fresh("l")
        return For(var, Dim.of(0), Dim.of(LANES), (self.one(stmt, var),), "map")

    def one(self, stmt: Stmt, var: str) -> Stmt:
        """The statement for the example of a lane."""
        lane = Dim.of(var)

        def load(e: Expr) -> Expr:
            return (
                Load(self.wide[e.buffer], (*e.index, lane), e.dtype)
                if isinstance(e, Load) and e.buffer in self.wide
                else e
            )

        def store(s: Stmt) -> Stmt:
            if isinstance(s, Store) and s.buffer in self.wide:
                s = replace(s, buffer=self.wide[s.buffer], index=(*s.index, lane))
            return replace(s, body=tuple(store(x) for x in s.body)) if isinstance(s, For) else s

        body = substitute((stmt,), {self.loop.var: Dim.of(self.group) * LANES + lane})
        return store(map_all(body, load)[0])


def _joined(body: Body) -> Body:
    """Neighbouring lane loops are one."""
    found: list[Stmt] = []
    for stmt in body:
        last = found[-1] if found else None
        if _is_lane(stmt) and _is_lane(last):
            assert isinstance(stmt, For)
            assert isinstance(last, For)
            found[-1] = replace(last, body=last.body + substitute(stmt.body, {stmt.var: Dim.of(last.var)}))
        else:
            found.append(stmt)
    return tuple(found)


def _is_lane(stmt: Stmt | None) -> bool:
    return isinstance(stmt, For) and stmt.hi.value == LANES and all(isinstance(s, Store) for s in stmt.body)


def _and(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else Op("logical_and", (a, b), "bool")


def _masked(stmt: Store, mask: Expr | None, table: dict[str, Buffer]) -> Store:
    if mask is None:
        return stmt
    dtype = table[stmt.buffer].dtype
    other = neutral(stmt.op, dtype) if stmt.op else Load(stmt.buffer, stmt.index, dtype)
    return replace(stmt, value=Op("where", (mask, stmt.value, other), dtype))


def _unmasked(body: Body, free: set[str], mask: Expr, table: dict[str, Buffer]) -> Body:
    """The stores of a loop's body, masked where it matters."""
    found: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Store(buffer) if buffer not in free:
                stmt = _masked(stmt, mask, table)
            case If(cond, then, orelse):
                stmt = If(cond, _unmasked(then, free, mask, table), _unmasked(orelse, free, mask, table))
            case While(before, cond, inside):
                stmt = While(
                    _unmasked(before, free, mask, table),
                    _and(mask, cond),
                    _unmasked(inside, free, mask, table),
                )
        found.append(stmt)
    return tuple(found)


def _only_within(name: str, before: Body, cond: Expr, inside: Body, loop: For) -> bool:
    """Stored by a plain store in the body, then used in it only."""
    uses = sum(a.buffer == name for a in accesses(loop.body))
    own = [(n, mode) for s in inside for n, _, mode in own_accesses(s) if n == name and isinstance(s, Store)]
    return len(own) == uses and bool(own) and _first_stores(inside, name)


def _first_stores(body: Body, name: str) -> bool:
    for stmt in body:
        modes = [mode for n, _, mode in own_accesses(stmt) if n == name]
        if modes:
            return modes == ["w"]
    return False


def _harmless(expr: Expr, memory: Memory) -> bool:
    for part in parts(expr):
        match part:
            case Load() if not memory.in_bounds(part):
                return False
            case Op("floor_divide" | "mod" | "power", _, dtype) if dtype in INTEGERS:
                return False
    return True
