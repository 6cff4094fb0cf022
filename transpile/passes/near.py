"""Angles are near: a loop asks of a strip of them, and takes the sines of such, which cost half.

    before:  for i in lo..hi map:             after:  for s in 0..(hi - lo + 1023)//1024 seq:
                 y[i] = sin(x[i])                         far = 0
                                                          for i in the strip: far max= abs(x[i])
                                                          if far <= 2**20:
                                                              for i in the strip: y[i] = sin_near(x[i])
                                                          else:
                                                              for i in the strip: y[i] = sin_far(x[i])

Bit for bit the same, as `sin` is `sin_near` where that is right. Only of angles that are cheap to compute before the
loop. A strip stays in the first cache. Angles beyond a million are so rare that their sines are called one by one:
written out, they would take the C compiler longer than all the rest. Comes last, as `strides` does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from ..dims import Dim, minimum
from ..ir import Buffer, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from ..operations import ROWS
from .overwrite import overwrites
from .tree import (
    Body,
    Names,
    accesses,
    dim_loads,
    has,
    in_vectors,
    loads,
    map_expr,
    map_stmts,
    parts,
    rename_buffers,
    roots,
    substitute,
)

ANGLES = ("sin", "cos")
LIMIT = 2.0**20  # LC_NEAR
STRIP = 1024  # elements
CHEAP = 4  # operations that an angle may be computed with twice


def near(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = map_stmts(kernel.body, state.asked)
    if not state.made:
        return kernel
    # A strip reads what its own iterations read, before any of them writes: what may be written over stays so.
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made), over=overwrites(kernel))


@dataclass
class _Angles:
    """What a loop takes sines of, as it is before the loop."""

    root: dict[str, str]
    sums: set[str]  # what it adds up for who is behind it
    known: dict[str, Expr | None] = field(default_factory=dict)  # scalars of an iteration, None: dear
    written: set[str] = field(default_factory=set)  # arrays, so far
    found: dict[tuple[int, Op], Expr] = field(default_factory=dict)  # of a statement: what is asked -> its angle

    def look(self, position: int, stmt: Store) -> None:
        for part in parts(stmt.value):
            if isinstance(part, Op) and part.op in ANGLES and (angle := self.before(part.args[0])) is not None:
                self.found[position, part] = angle
        if stmt.index == () and stmt.op is None:
            self.known[stmt.buffer] = self.before(stmt.value)
        elif stmt.index == () and stmt.buffer not in self.sums:
            self.known[stmt.buffer] = None
        else:
            self.written.add(self.root.get(stmt.buffer, stmt.buffer))

    def before(self, expr: Expr) -> Expr | None:
        """The expression without scalars that the iteration makes; None where it is dear, or reads what it writes."""
        if any(self.known.get(x.buffer, x) is None or x.buffer in self.sums for x in loads(expr)):
            return None
        looked_up = {load.buffer for x in loads(expr) for d in x.index for load in dim_loads(d)}
        if any(not isinstance(self.known[name], (Int, Load)) for name in looked_up & self.known.keys()):
            return None  # a place that is worked out in the iteration: an index holds no such expression
        plain = map_expr(expr, lambda e: self.known.get(e.buffer) or e if isinstance(e, Load) else e)
        ops = [p for p in parts(plain) if isinstance(p, Op)]
        if any(ROWS[p.op].flops > 1 for p in ops) or len(ops) > CHEAP:
            return None
        return None if any(self.root.get(x.buffer, x.buffer) in self.written for x in loads(plain)) else plain


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.names, self.root = Names.of(kernel), roots(kernel)
        self.table = {b.name: b for b in kernel.buffers}
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.made: list[Buffer] = []

    def asked(self, stmt: Stmt) -> Body:
        if not in_vectors(stmt) or has(stmt.body, If):
            return (stmt,)
        size = (stmt.hi - stmt.lo).value
        if size is not None and size < 64:
            return (stmt,)
        angles = _Angles(self.root, _sums(stmt.body))
        for position, inner in enumerate(stmt.body):
            if isinstance(inner, Store):
                angles.look(position, inner)
        uses = Counter(a.buffer for a in accesses(stmt.body))
        if not angles.found or any(uses[n] < self.uses[n] for n in angles.known):
            return (stmt,)
        return (self.strips(stmt, angles),)

    def strips(self, loop: For, angles: _Angles) -> For:
        strip = self.names.fresh("strip")
        lo = loop.lo + Dim.of(strip) * STRIP
        part = replace(loop, lo=lo, hi=minimum(lo + STRIP, loop.hi), work=None)
        asked = list(dict.fromkeys(angles.found.values()))
        dtype = next(op.dtype for _, op in angles.found)
        far = Buffer(self.names.fresh("far"), dtype, (), "temp")
        self.made.append(far)
        asks = tuple(Store(far.name, (), Op("abs", (a,), dtype), "max") for a in asked)
        near, others = ([self.turned(s, k, angles, to) for k, s in enumerate(loop.body)] for to in ("near", "far"))
        question = Op("less_equal", (Load(far.name, (), dtype), Const(LIMIT, dtype)), "bool")
        body = (
            Store(far.name, (), Const(0.0, dtype)),
            self.own(replace(part, body=asks)),
            If(
                question,
                (self.own(replace(part, body=self.apart(tuple(near), angles))),),
                (replace(part, body=tuple(others)),),
            ),
        )
        return For(strip, Dim.of(0), (loop.hi - loop.lo + (STRIP - 1)) // STRIP, body, "seq")

    def turned(self, stmt: Stmt, position: int, angles: _Angles, to: str) -> Stmt:
        if not isinstance(stmt, Store):
            return stmt

        def change(expr: Expr) -> Expr:
            match expr:
                case Op(op, args, dtype) if (position, expr) in angles.found:
                    return Op(f"{op}_{to}", args, dtype)
            return expr

        return replace(stmt, value=map_expr(stmt.value, change))

    def apart(self, body: Body, angles: _Angles) -> Body:
        """With scalars of its own: two loops would share them, and none run in vectors."""
        fresh = {name: self.names.fresh(name) for name in angles.known}
        self.made += [replace(self.table[old], name=new) for old, new in fresh.items()]
        return rename_buffers(body, fresh)

    def own(self, loop: For) -> For:
        """With a variable of its own."""
        var = self.names.fresh(loop.var)
        return replace(loop, var=var, body=substitute(loop.body, {loop.var: Dim.of(var)}))


def _sums(body: Body) -> set[str]:
    """Variables that a loop only adds to."""
    stores = [s for s in body if isinstance(s, Store) and not s.index]
    return {s.buffer for s in stores if s.op} - {s.buffer for s in stores if not s.op}


__all__ = ["near"]
