"""Common subexpressions are computed once, and what a loop does not change before it.

    for s:                                                  low = tl[c]
        y[c,s] = where(x[c,s] < tl[c], a, x[c,s])    ->     for s:
        z[c,s] = where(x[c,s] < tl[c], 0, x[c,s])               xv = x[c,s]
                                                                e = xv < low
                                                                y[c,s] = where(e, a, xv)
                                                                z[c,s] = where(e, 0, xv)

gcc does neither around `omp simd` and OpenMP regions as well as one would think, and a load inside a select
keeps it from being branch-free; so loads there are made before, if they are proven to be in range. An
unproven load is never moved.

What is dear, and told by the counter of a short loop alone, is a row of that loop, made before the loop around it.

    for j: for l in 0..16: m[j,l] /= p[l]    ->    for l in 0..16: e[l] = 1 / p[l]
                                                   for j: for l in 0..16: m[j,l] *= e[l]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..dims import Dim
from ..ir import FLOATS, Buffer, Cast, Check, Const, Expr, For, If, Int, Kernel, Load, Op, Scalar, Stmt, Store
from ..operations import flops
from .alike import MANY_LANES
from .copies import copies
from .depend import Memory
from .predicate import may_trap
from .tree import (
    Body,
    Names,
    descend,
    loads,
    map_bodies,
    map_expr,
    needed,
    parts,
    subst_expr,
    symbols,
    written,
)
from .work import effort

LIGHT = 4  # operations that are not worth a row

Key = tuple[Expr, frozenset[tuple[str, int]]]


def share(kernel: Kernel) -> Kernel:
    shared = _shared(kernel)
    plain = copies(shared)
    return shared if plain == shared else _shared(plain)


def _shared(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made.values()))


class _State:
    def __init__(self, kernel: Kernel):
        self.table = {b.name: b for b in kernel.buffers}
        self.names = Names.of(kernel)
        self.made: dict[str, Buffer] = {}

    def temp(self, value: Expr, shape: tuple[Dim, ...] = ()) -> str:
        base = f"{value.buffer}v" if isinstance(value, Load) else "e"
        name = self.names.fresh(base)
        self.made[name] = self.table[name] = Buffer(name, dtype_of(value), shape, "temp")
        return name

    def body(self, body: Body, memory: Memory) -> Body:
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                inside = self.body(stmt.body, memory.inside(stmt))
                hoisted, inside = self.hoist(inside, stmt, memory)
                found += [*hoisted, replace(stmt, body=inside)]
            else:
                found.append(map_bodies(stmt, lambda inner: self.body(inner, memory)))
        return _Block(self, memory).run(tuple(found))

    # -- out of a loop ---------------------------------------------------------------------------------------
    def hoist(self, body: Body, loop: For, memory: Memory) -> tuple[Body, Body]:
        changed = {memory.root.get(n, n) for n in written(body)}
        known: dict[Expr, str] = {}
        before: list[Stmt] = []

        def steady(expr: Expr) -> bool:
            return loop.var not in symbols(expr) and not any(
                memory.root.get(x.buffer, x.buffer) in changed for x in loads(expr)
            )

        def lift(expr: Expr) -> Expr:
            if steady(expr) and self.is_work(expr) and self.is_safe(expr, memory):
                if expr not in known:
                    known[expr] = self.temp(expr)
                    before.append(Store(known[expr], (), expr))
                return Load(known[expr], (), dtype_of(expr))
            return descend(expr, lift)

        kept: list[Stmt] = []
        for stmt in body:
            if (
                isinstance(stmt, Store)
                and stmt.buffer in self.made
                and steady(stmt.value)
                and self.is_safe(stmt.value, memory)
            ):
                before.append(stmt)
                changed.discard(stmt.buffer)
            elif isinstance(stmt, For) and stmt.kind == "map" and 0 < _trips(stmt) <= MANY_LANES:
                row, left = self.beside(stmt, steady, memory)
                before += row
                kept += left
                changed -= written(row)
            else:
                kept.append(_with_exprs(stmt, lift))
        return tuple(before), tuple(kept)

    def beside(self, short: For, steady: Callable[[Expr], bool], memory: Memory) -> tuple[Body, Body]:
        """Rows of what is dear in a short loop, and told by its counter alone; and what is left of it."""
        if all(isinstance(s, Store) and s.buffer in self.made and s.index and steady(s.value) for s in short.body):
            return (short,), ()
        told: dict[str, Expr] = {}  # of its variables, those that its counter tells
        known: dict[Expr, str] = {}
        here = Dim.of(short.var)

        def in_full(expr: Expr) -> Expr:
            return map_expr(expr, lambda e: told.get(e.buffer, e) if isinstance(e, Load) else e)

        def lift(expr: Expr) -> Expr:
            full = in_full(expr)
            if not (isinstance(full, Op) and full.dtype in FLOATS and short.var in symbols(full)):
                return descend(expr, lift)
            if not (steady(full) and self.is_safe(full, memory.inside(short))):
                return descend(expr, lift)
            if full not in known:
                known[full] = self.temp(full, (short.hi,))
            return Load(known[full], (here,), full.dtype)

        kept: list[Stmt] = []
        for stmt in short.body:
            if isinstance(stmt, Store) and stmt.buffer in self.made and not stmt.index and steady(in_full(stmt.value)):
                told[stmt.buffer] = in_full(stmt.value)
                kept.append(stmt)
            else:
                kept.append(_with_exprs(stmt, lift))
        if all(effort(value) <= LIGHT for value in known):
            return (), (short,)
        made = replace(short, var=self.names.fresh(short.var))
        there = Dim.of(made.var)
        row = (Store(name, (there,), subst_expr(value, {short.var: there})) for value, name in known.items())
        made = replace(made, body=_Block(self, memory.inside(made)).run(tuple(row)))
        return (made,), (replace(short, body=needed(kept, told.keys())),)

    def is_work(self, expr: Expr) -> bool:
        """Worth a variable: an operation, or memory; not a number or a variable."""
        match expr:
            case Load(buffer, index, _):
                return bool(index) or (buffer in self.table and self.table[buffer].kind in ("in", "out"))
            case Op(op, args, _):
                return (flops(op) > 0 and not all(isinstance(a, (Const, Int, Scalar)) for a in args)) or flops(op) > 4
            case Cast(value, _):
                return self.is_work(value) or isinstance(value, Int)
        return False

    def is_safe(self, expr: Expr, memory: Memory) -> bool:
        """May be computed where the program would not have: nothing is read out of range, nothing traps."""
        for part in parts(expr):
            if isinstance(part, Load) and part.buffer not in self.made:
                if part.buffer not in memory.shape or not memory.in_bounds(part):
                    return False
            if may_trap(part):
                return False
        return True


def _trips(loop: For) -> int:
    return (loop.hi.value or 0) if loop.lo == Dim.of(0) else 0


def dtype_of(expr: Expr) -> str:
    return "i64" if isinstance(expr, Int) else expr.dtype


def _with_exprs(stmt: Stmt, f):  # type: ignore[no-untyped-def]
    """The statement with f applied to its own expressions; also to those on its branches, but not in its
    loops."""
    match stmt:
        case Store(value=value):
            return replace(stmt, value=f(value))
        case If(cond, then, orelse):
            return If(f(cond), tuple(_with_exprs(s, f) for s in then), tuple(_with_exprs(s, f) for s in orelse))
        case Check(cond=cond):
            return replace(stmt, cond=f(cond))
    return stmt


@dataclass
class _Seen:
    count: int = 0
    unconditional: bool = False  # its first use is evaluated in any case
    in_select: bool = False


@dataclass
class _Block:
    """Value numbering in one list of statements: an expression with the versions of the buffers it reads is
    one value."""

    state: _State
    memory: Memory
    version: dict[str, int] = field(default_factory=dict)
    seen: dict[Key, _Seen] = field(default_factory=dict)
    names: dict[Key, str] = field(default_factory=dict)

    def run(self, body: Body) -> Body:
        for stmt in body:
            for expr in _own(stmt):
                self.count(expr, always=True)
            self.bump(stmt)
        self.version = {}
        found: list[Stmt] = []
        for stmt in body:
            made: list[Stmt] = []
            stmt = self.rewrite(stmt, made)
            found += [*made, stmt]
            self.bump(stmt)
        return tuple(found)

    def bump(self, stmt: Stmt) -> None:
        for name in written((stmt,)):
            if name not in self.state.made:
                root = self.memory.root.get(name, name)
                self.version[root] = self.version.get(root, 0) + 1

    def key(self, expr: Expr) -> Key:
        root = self.memory.root
        return expr, frozenset(
            (r, self.version.get(r, 0)) for x in loads(expr) for r in (root.get(x.buffer, x.buffer),)
        )

    def count(self, expr: Expr, always: bool) -> None:
        if not self.state.is_work(expr) and not isinstance(expr, (Op, Cast)):
            return
        seen = self.seen.setdefault(self.key(expr), _Seen(unconditional=always))
        seen.count += 1
        seen.in_select |= not always
        if seen.count > 1:
            return
        match expr:
            case Op("where", (cond, a, b), _):
                self.count(cond, always)
                self.count(a, False)
                self.count(b, False)
            case Op(args=args):
                for arg in args:
                    self.count(arg, always)
            case Cast(value=value):
                self.count(value, always)

    def wanted(self, key: Key) -> bool:
        seen, expr = self.seen.get(key), key[0]
        if seen is None or not self.state.is_work(expr):
            return False
        if not seen.unconditional and not self.state.is_safe(expr, self.memory):
            return False
        return seen.count > 1 or (seen.in_select and isinstance(expr, Load))

    def rewrite(self, stmt: Stmt, made: list[Stmt]) -> Stmt:
        def put(expr: Expr) -> Expr:
            key = self.key(expr)
            if key in self.names:
                return Load(self.names[key], (), dtype_of(expr))
            if not self.wanted(key):
                return descend(expr, put)
            inside = descend(expr, put)
            name = self.names[key] = self.state.temp(expr)
            made.append(Store(name, (), inside))
            return Load(name, (), dtype_of(expr))

        match stmt:
            case Store(buffer, (), value, None) if (
                self.key(value) not in self.names and self.wanted(self.key(value)) and (buffer in self.state.made)
            ):
                self.names[self.key(value)] = buffer  # it has a variable already
                return replace(stmt, value=descend(value, put))
            case Store(value=value):
                return replace(stmt, value=put(value))
            case If(cond=cond) | Check(cond=cond):
                return replace(stmt, cond=put(cond))
        return stmt


def _own(stmt: Stmt) -> tuple[Expr, ...]:
    match stmt:
        case Store(value=value):
            return (value,)
        case If(cond=cond) | Check(cond=cond):
            return (cond,)
    return ()
