"""What iterations read before later ones write there is read from a copy, and what they add to places that earlier ones
were done with is added behind them: then they are independent.

    for c in cap..w-1 by -1 seq:                    if w >= 1:
        V[c] = logaddexp(V[c], V[c - w] + v)            for c in w..cap+1 map: prior[c - w] = V[c - w]
                                             ->         for c in w..cap+1 map: V[c] = logaddexp(V[c], prior[c-w] + v)
                                                    else: (as it was)

    for c in w..cap+1 seq:                          if w >= 1:
        d = d_V[c]                                      for c in w..cap+1 map: d_V[c] = a * d_V[c]; later[c-w] = b * d
        d_V[c] = a * d                       ->         for c in w..cap+1 map: d_V[c - w] += later[c - w]
        d_V[c - w] += b * d                         else: (as it was)

All that writes an array does so at one place of each iteration, one step along an axis for each. How far from there the
others are, a number says that is read from memory when the loop begins: which side of it they are on is asked there.
(Where no number says so, all examples walk through the loop side by side: see `lanes`.) Each place has the same values
added in the same order. Where that side is known, so is often that no index is out of range, which is not asked then;
where one may be, nothing changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from ..dims import ANY, Atom, Dim, nonnegative
from ..ir import Buffer, Check, Comment, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from ..operations import flops
from .depend import Memory
from .fold import simplify
from .free import accumulations, forwards, independent_iterations
from .guards import margins
from .predicate import conjunction, made_each_turn, masked, may_trap
from .questions import all_of, compared
from .ranges import conjuncts
from .split import DEAR
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    anew,
    another,
    bodies,
    buffers,
    dim_loads,
    has,
    map_bodies,
    map_dim,
    map_expr,
    map_own,
    parts,
    substitute,
    symbols_of,
    walk,
    written,
)

MOST = 2  # times that a fact is needed for another one
Env = dict[str, Dim]  # what whole numbers are, by others


def prior(kernel: Kernel) -> Kernel:
    state = _Prior(kernel)
    body = state.body(kernel.body, Memory.of(kernel), {})
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made)) if state.made else kernel


class _No(Exception):
    """The loop stays as it is."""


class _Prior:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.names, self.table = kernel, Names.of(kernel), buffers(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
        self.made: list[Buffer] = []
        self.numbers: dict[Load, str] = {}  # names of those that loops do not change

    def body(self, body: Body, memory: Memory, env: Env) -> Body:
        done: list[Stmt] = []
        for stmt in body:
            env = _without(env, written((stmt,)))
            done += self.stmt(stmt, memory, env)
            match stmt:
                case Store(name, (), value, None) if self.is_whole(name) and not isinstance(value, Load):
                    told = self.resolved(value, env)
                    if isinstance(told, Int) and f"{name}'" not in told.dim.symbols() and not dim_loads(told.dim):
                        env = {**env, name: told.dim}
        return tuple(done)

    def is_whole(self, name: str) -> bool:
        buffer = self.table[name]
        return (buffer.dtype, buffer.kind, buffer.shape) == ("i64", "temp", ()) and name not in self.aliased

    def known(self, expr: Expr, env: Env) -> Expr:
        """A whole number by others, or by a name of its own."""
        match expr:
            case Load(name, (), "i64"):
                return Int(env.get(name, self.named(expr)))
            case Load(name, index, "i64") if self.table[name].kind == "in" and not any(dim_loads(d) for d in index):
                return Int(self.named(expr))
        return simplify(expr)

    def named(self, load: Load) -> Dim:
        if load not in self.numbers:
            self.numbers[load] = f"{self.names.fresh(load.buffer)}'" if load.index else f"{load.buffer}'"
        return Dim.of(self.numbers[load])

    def resolved(self, expr: Expr, env: Env) -> Expr:
        return map_expr(expr, lambda e: self.known(e, env))

    def place(self, dim: Dim, env: Env) -> Dim:
        return map_dim(dim, lambda e: self.known(e, env))

    def in_full(self, stmt: Stmt, env: Env) -> Stmt:
        return map_own(stmt, lambda d: self.place(d, env), lambda e: self.resolved(e, env))

    def stmt(self, stmt: Stmt, memory: Memory, env: Env) -> Iterable[Stmt]:
        inside = memory.inside(stmt) if isinstance(stmt, For) else memory
        if isinstance(stmt, For) and stmt.kind == "seq" and _pays(stmt):
            try:
                return self.versions(stmt, memory, env)
            except _No:
                return (stmt,)
        return (map_bodies(stmt, lambda inner: self.body(inner, inside, env)),)

    def versions(self, loop: For, memory: Memory, env: Env) -> Body:
        plain, asked, truths = self.without_places(loop, env)
        numbers = {load: name for load, name in self.numbers.items() if name in symbols_of((plain,))}
        if any(load.buffer in written(plain.body) or loop.var in load.free() for load in numbers):
            raise _No
        where = dict.fromkeys(numbers.values(), ANY)
        memory = replace(memory, facts={**memory.facts, **where})
        foreign = list(self.foreign(plain))
        if not foreign:
            raise _No
        sides = list(dict.fromkeys(f.side for f in foreign))
        if not any(side.symbols() & where.keys() for side in sides):
            raise _No  # all examples walk side by side
        known = (*sides, Dim.of(plain.var) - plain.lo, plain.hi - 1 - Dim.of(plain.var))
        if any(plain.var in side.symbols() or nonnegative(-side - 1) for side in sides):
            raise _No  # never, where numbers are none below zero, as they usually are
        if any(nonnegative(-(a + b) - 1, memory.facts) for a in sides for b in sides):
            raise _No  # one before, and one behind
        anywhere = replace(memory, facts={**memory.facts, plain.var: ANY})
        sure = [margin for margin in asked if _follows(margin, known, anywhere)]
        rest = (margin for margin in asked if margin not in sure)
        if not all(any(_follows(margin - one, known, anywhere) for one in sure) for margin in rest):
            raise _No
        loops = self.apart(plain, foreign, loop, memory, truths)
        told, back = self.told(numbers)
        loops = substitute(loops, back)
        open_ones = [side.subs(back) for side in sides if not nonnegative(side, memory.facts)]
        if not open_ones:
            return (*told, *loops)
        return (*told, If(all_of(compared("greater_equal", side, 0) for side in open_ones), loops, (loop,)))

    def told(self, numbers: dict[Load, str]) -> tuple[Body, dict[str, Dim]]:
        """What the names of numbers stand for: a number of an array has a variable, as gcc would read it again behind
        each store of truths, which are bytes."""
        made: list[Stmt] = []
        back: dict[str, Dim] = {}
        for load, name in numbers.items():
            if load.index:
                far = Buffer(self.names.fresh(f"{load.buffer}_far"), "i64", (), "temp")
                self.made.append(far)
                made.append(Store(far.name, (), load))
                load = Load(far.name, (), "i64")
            back[name] = Dim.of(Atom("load", (load,)))
        return tuple(made), back

    def without_places(self, loop: For, env: Env) -> tuple[For, list[Dim], list[Buffer]]:
        """The loop with its indices in place of variables for them, as if none was out of range or counted from the
        end, and without branches; what must not be negative for that; and what it asks by."""
        lo, hi = (self.place(d, env) for d in (loop.lo, loop.hi))
        same = {n: n for n in self.table}
        flat = _Flat(self, loop, dict(env))
        body = accumulations(flat.of(accumulations(loop.body, set(), same)), set(), same)
        if any(dim_loads(d) for d in (lo, hi, *flat.asked)):
            raise _No  # what the loop may change
        return replace(loop, lo=lo, hi=hi, body=body), flat.asked, flat.made

    def foreign(self, loop: For) -> Iterator[_Foreign]:
        """What is touched of an array elsewhere than where the iteration writes."""
        for name in sorted({s.buffer for s in loop.body if isinstance(s, Store) and s.index}):
            touched = (a for a in accesses(loop.body) if a.buffer == name)
            here = [(a.index, a.mode) for a in touched if a.index is not None]
            home = {index for index, mode in here if mode == "w"} or {index for index, mode in here if mode != "r"}
            others = dict.fromkeys((index, mode) for index, mode in here if index not in home)
            if not home or not others:
                continue
            modes = [mode for _, mode in others]
            if len(home) > 1 or name in self.aliased or not (set(modes) == {"r"} or modes == ["add"]):
                raise _No
            yield from (_foreign(name, home.copy().pop(), index, mode, loop.var) for index, mode in others)

    def is_used_within(self, name: str, loop: For) -> bool:
        return sum(a.buffer == name for a in accesses((loop,))) == self.uses[name]

    def apart(self, loop: For, foreign: list[_Foreign], was: For, memory: Memory, truths: list[Buffer]) -> Body:
        before: list[Stmt] = []
        after: list[Stmt] = []
        made = list(truths)
        for f in foreign:
            given = self.table[f.buffer]
            name = self.names.fresh("prior" if f.mode == "r" else "later")
            row = Buffer(name, given.dtype, (given.shape[f.axis],), "temp")
            made.append(row)
            there = Load(f.buffer, f.index, given.dtype)
            beside = Load(row.name, (f.index[f.axis],), given.dtype)
            if f.mode == "r":
                before.append(replace(loop, body=(Store(row.name, beside.index, there),)))
                loop = replace(loop, body=tuple(_instead(s, there, beside) for s in loop.body))
            else:
                after.append(replace(loop, body=(Store(f.buffer, f.index, beside, "add"),)))
                loop = replace(loop, body=tuple(_later(s, f, beside) for s in loop.body))
        kernel = replace(self.kernel, buffers=(*self.kernel.buffers, *self.made, *made))
        if not independent_iterations(loop, kernel, memory.beside(made).inside(loop), was, False):
            raise _No
        mine = Counter(a.buffer for a in accesses((loop,)) if self.is_used_within(a.buffer, was))
        main, own = another(loop, self.names, mine, self.table)
        self.made += (*made, *own)
        return tuple(
            anew(forwards(replace(x, kind="map")), self.names) for x in (*before, main, *after) if isinstance(x, For)
        )


@dataclass
class _Flat:
    """The stores of a loop's body, in both ways of its branches."""

    state: _Prior
    loop: For
    env: Env
    asked: list[Dim] = field(default_factory=list)  # what must not be negative
    made: list[Buffer] = field(default_factory=list)
    begun: set[str] = field(default_factory=set)

    def of(self, body: Body, mask: Expr | None = None) -> Body:
        """`mask`: who comes here."""
        kept: list[Stmt] = []
        for stmt in body:
            match self.state.in_full(stmt, self.env):
                case Store(name, (), value, None) if self.state.is_whole(name):
                    if not self.state.is_used_within(name, self.loop) or name in self.env:
                        raise _No
                    self.env[name] = _place(value, self.asked)
                case Check(cond):
                    for part in conjuncts(cond):
                        if part != Const(True, "bool"):
                            found = margins(part)
                            if not found:
                                raise _No
                            self.asked += found
                case Store() as store:
                    kept.append(self.chosen(store, mask))
                case If(cond, then, orelse):
                    if any(map(may_trap, parts(cond))) and mask is not None:
                        raise _No
                    taken = Load(self.state.names.fresh("taken"), (), "bool")  # its ways may change what it asks
                    self.made.append(Buffer(taken.buffer, "bool", (), "temp"))
                    kept.append(Store(taken.buffer, (), cond))
                    kept += self.of(then, conjunction(mask, taken))
                    kept += self.of(orelse, conjunction(mask, Op("logical_not", (taken,), "bool")))
                case Comment():
                    pass
                case _:
                    raise _No
        return tuple(kept)

    def chosen(self, store: Store, mask: Expr | None) -> Store:
        first = store.buffer not in self.begun
        self.begun.add(store.buffer)
        if mask is None:
            return store
        if any(map(may_trap, parts(store.value))):
            raise _No
        if not store.index and not store.op and first and self.is_made_anew(store.buffer):
            return store  # whoever does not come here stores it, too, or does not read it
        return masked(store, mask, self.state.table)

    def is_made_anew(self, name: str) -> bool:
        """Whether each iteration has a number of its own, or one way of it."""
        if self.state.table[name].kind != "temp" or name in self.state.aliased:
            return False
        lists = [self.loop.body, *(inner for s in walk(self.loop.body) for inner in bodies(s))]
        made = any(made_each_turn(name, inner, self.loop) for inner in lists)
        return made and self.state.is_used_within(name, self.loop)


@dataclass(frozen=True)
class _Foreign:
    buffer: str
    index: Index
    mode: str
    axis: int  # along which iterations go
    side: Dim  # not negative: what is read is written later; what is added to was done with before


def _foreign(name: str, home: Index, index: Index, mode: str, var: str) -> _Foreign:
    axes = [k for k, place in enumerate(home) if var in place.symbols()]
    if len(axes) != 1 or any(dim_loads(d) for d in (*home, *index)):
        raise _No
    if home[: axes[0]] != index[: axes[0]] or home[axes[0] + 1 :] != index[axes[0] + 1 :]:
        raise _No
    split = home[axes[0]].split(var)
    if split is None or split[0].value not in (1, -1):
        raise _No
    step = 1 if split[0].value == 1 else -1
    ahead = (index[axes[0]] - home[axes[0]]) * step
    return _Foreign(name, index, mode, axes[0], (ahead if mode == "r" else -ahead) - 1)


def _instead(stmt: Stmt, old: Load, new: Load) -> Stmt:
    return map_own(stmt, lambda d: d, lambda e: map_expr(e, lambda x: new if x == old else x))


def _later(stmt: Stmt, f: _Foreign, beside: Load) -> Stmt:
    if isinstance(stmt, Store) and (stmt.buffer, stmt.index) == (f.buffer, f.index):
        return Store(beside.buffer, beside.index, stmt.value)
    return stmt


def _pays(loop: For) -> bool:
    """Whether it is long, and vectors spare something: what is dear, or a choice."""
    stmts = list(walk(loop.body))
    if (loop.hi - loop.lo).value is not None or not all(isinstance(s, (Store, Check, Comment, If)) for s in stmts):
        return False
    ops = (p for s in stmts if isinstance(s, Store) for p in parts(s.value) if isinstance(p, Op))
    return has(stmts, If) or any(flops(p.op) >= DEAR or p.op in ("maximum", "minimum") for p in ops)


def _place(value: Expr, asked: list[Dim]) -> Dim:
    match value:
        case Int(dim):
            return dim
        case Op("where", (Op("less", (Int(dim), Const(0))), _, Int(other))) if dim == other:
            asked.append(dim)
            return dim
    raise _No


def _without(env: Env, changed: set[str]) -> Env:
    names = {f"{name}'" for name in changed}
    return {name: dim for name, dim in env.items() if name not in changed and not dim.symbols() & names}


def _follows(margin: Dim, known: tuple[Dim, ...], memory: Memory) -> bool:
    """Whether it is not negative where all of those are not: it is a sum of them, and of what is not, either."""
    for times in product(range(MOST + 1), repeat=len(known)):
        if nonnegative(margin - sum((k * t for k, t in zip(known, times, strict=True)), Dim.of(0)), memory.facts):
            return True
    return False
