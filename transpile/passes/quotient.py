"""A quotient by what the innermost loop does not change is a product with its reciprocal, corrected.

    for i: y[i] = x[i] / s        ->        for i: y[i] = quotient(x[i], r, l, f),  f = scale(s), ...

The inverse in two parts, and a power of two, are hoisted by `share`. See lc_quotient in math.h for what makes the
result that of the division. A gradient, whose terms are rounded many times, is as good without the second part (1 unit
in the last place instead of 1/2): rough_quotient(x[i], 1 / (s * f), f), two products. What decides something stays
exact there, too: a gradient that asks which element the forward took must find it. Before `inline`: a value that is
scaled is then cheap to compute again.

What the outer loops of a nest do not change is inverted before it, in a gradient:

    for i: for j: d[i,j] = dy[i,j] / s[j]    ->    for j: v[j] = 1 / (s[j] * f), ...;    for i: for j: d[i,j] = ... v[j]
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..dims import Dim
from ..ir import Buffer, Cast, Const, Expr, For, Int, Kernel, Load, Op, Product, Stmt, Store
from .decide import deciding, decisions
from .order import is_group, rebuild, stores
from .tree import (
    Body,
    Names,
    dim_loads,
    loads,
    map_bodies,
    map_expr,
    map_stmts,
    parts,
    roots,
    subst_expr,
    symbols,
    walk,
    written,
)


def quotient(kernel: Kernel) -> Kernel:
    root, mild = roots(kernel), _mild(kernel)
    body = kernel.body
    if kernel.flush:
        nests = _Nests(kernel, root)
        body = nests.body(body)
        kernel = replace(kernel, buffers=(*kernel.buffers, *nests.made))
        root = roots(kernel)
    body = _body(body, None, root, mild)
    if kernel.flush and any(_is_quotient(part) for s in walk(body) if isinstance(s, Store) for part in parts(s.value)):
        exact = deciding(kernel)
        body = map_stmts(body, lambda stmt: (_rough(stmt, root, exact),))
    return replace(kernel, body=body)


def _mild(kernel: Kernel) -> set[str]:
    """The buffers that hold nothing but numbers whose inverses are normal numbers, or 0, infinite or none: roots are
    neither large nor small, nor are integers that a kernel knows by name."""
    stores = [s for s in walk(kernel.body) if isinstance(s, Store | Product)]
    made = {b.name for b in kernel.buffers if b.kind == "temp"} - {b.alias for b in kernel.buffers}
    made -= {b.name for b in kernel.buffers if b.alias}
    other = {s.buffer for s in stores if not (isinstance(s, Store) and s.op is None and _is_mild(s.value, set()))}
    return (made & {s.buffer for s in stores}) - other


def _is_mild(expr: Expr, mild: set[str]) -> bool:
    match expr:
        case Op("sqrt") | Cast(Int()):
            return True
        case Load(buffer):
            return buffer in mild
    return False


def _body(body: Body, loop: For | None, root: dict[str, str], mild: set[str]) -> Body:
    return tuple(_stmt(s, loop, root, mild) for s in body)


def _stmt(stmt: Stmt, loop: For | None, root: dict[str, str], mild: set[str]) -> Stmt:
    if isinstance(stmt, For):
        return replace(stmt, body=_body(stmt.body, stmt, root, mild))
    if not isinstance(stmt, Store):
        return map_bodies(stmt, lambda inner: _body(inner, None, root, mild))
    if loop is None or loop.kind != "map":
        return stmt
    changed = {root.get(name, name) for name in written(loop.body)}

    def steady(expr: Expr) -> bool:
        return loop.var not in symbols(expr) and not any(root.get(x.buffer, x.buffer) in changed for x in loads(expr))

    def turned(expr: Expr) -> Expr:
        match expr:
            case Op("divide", (above, below), dtype) if steady(below) and not steady(above):
                factor = Const(1.0, dtype) if _is_mild(below, mild) else Op("scale", (below,), dtype)
                scaled = below if _is_mild(below, mild) else Op("multiply", (below, factor), dtype)
                inverse = Op("inverse", (scaled,), dtype)
                return Op("quotient", (above, inverse, Op("inverse_rest", (scaled, inverse), dtype), factor), dtype)
        return expr

    return replace(stmt, value=map_expr(stmt.value, turned))


Inverted = dict[tuple[Expr, str, tuple[Dim, ...]], list[Buffer]]  # a divisor of numbered axes, their extents


class _Nests:
    """Nests of loops around one store, which divides by what the inner ones alone change."""

    def __init__(self, kernel: Kernel, root: dict[str, str]) -> None:
        self.root, self.names, self.exact = root, Names.of(kernel), deciding(kernel)
        self.made: list[Buffer] = []

    def body(self, body: Body) -> Body:
        found: list[Stmt] = []
        known: Inverted = {}  # until what the divisor reads is written
        for stmt in body:
            nest = stores(stmt)
            if nest is None:
                found.append(map_bodies(stmt, self.body))
            else:
                before, inside = self.inverted(*nest, known)
                found += [*before, rebuild(nest[0], inside)]
            changed = {self.root.get(name, name) for name in written((stmt,))}
            known = {k: v for k, v in known.items() if not self.reads(k[0], changed)}
        return tuple(found)

    def reads(self, expr: Expr, changed: set[str]) -> bool:
        return any(self.root.get(x.buffer, x.buffer) in changed for x in loads(expr))

    def inverted(self, loops: list[For], inside: Body, known: Inverted) -> tuple[list[Stmt], Body]:
        changed = {self.root.get(name, name) for name in written(inside)}
        before: list[Stmt] = []

        def turned(decided: set[Expr], expr: Expr) -> Expr:
            match expr:
                case Op("divide", (above, below), dtype) if expr not in decided and (
                    own := self.own(below, loops, changed)
                ):
                    numbered = subst_expr(below, {loop.var: Dim.of(f"#{k}") for k, loop in enumerate(own)})
                    key = (numbered, dtype, tuple(loop.hi for loop in own))
                    if key not in known:
                        known[key], made = self.before(below, own, dtype)
                        before.append(made)
                    there = tuple(Dim.of(loop.var) for loop in own)
                    return Op("rough_quotient", (above, *(Load(b.name, there, dtype) for b in known[key])), dtype)
            return expr

        def one(stmt: Stmt) -> Body:
            if not isinstance(stmt, Store) or self.root[stmt.buffer] in self.exact:
                return (stmt,)
            return (replace(stmt, value=map_expr(stmt.value, partial(turned, decisions(stmt.value)))),)

        return before, map_stmts(inside, one)

    def own(self, below: Expr, loops: list[For], changed: set[str]) -> list[For]:
        """The loops that change the divisor, if the innermost is one, or goes over the neighbours of a group that has
        one divisor, and one outside of it is not."""
        own = [loop for loop in loops if loop.var in symbols(below)]
        variables = {loop.var for loop in loops}
        last = len(loops) - 1
        if len(loops) > 2 and loops[-1].var not in symbols(below) and is_group(*loops[-2:]):
            last -= 1
        if not own or own[-1] is not loops[last] or len(own) == last + 1:
            return []
        if any(loop.lo != Dim.of(0) or loop.hi.symbols() & variables or any(dim_loads(loop.hi)) for loop in own):
            return []
        return [] if self.reads(below, changed) else own

    def before(self, below: Expr, own: list[For], dtype: str) -> tuple[list[Buffer], Stmt]:
        """What stands for the divisor in nests, its inverse and its factor, and the loops that make them."""
        fresh = {loop.var: self.names.fresh(loop.var) for loop in own}
        place = tuple(Dim.of(fresh[loop.var]) for loop in own)
        shape = tuple(loop.hi for loop in own)
        made = [Buffer(self.names.fresh(n), dtype, shape, "temp") for n in ("inverse", "factor")]
        self.made += made
        divisor = subst_expr(below, {v: Dim.of(n) for v, n in fresh.items()})
        factor = Op("scale", (divisor,), dtype)
        inverse = Op("divide", (Const(1.0, dtype), Op("multiply", (divisor, factor), dtype)), dtype)
        body: Body = (Store(made[0].name, place, inverse), Store(made[1].name, place, factor))
        loops = [replace(loop, var=fresh[loop.var]) for loop in own]
        return made, rebuild(loops, body)


def _rough(stmt: Stmt, root: dict[str, str], exact: set[str]) -> Stmt:
    """The statement with rough quotients, wherever nothing is decided by them."""
    if not isinstance(stmt, Store) or root[stmt.buffer] in exact:
        return stmt
    decided = decisions(stmt.value)

    def rough(expr: Expr) -> Expr:
        match expr:
            case Op("quotient", (above, Op("inverse", (scaled,)), _, factor), dtype) if expr not in decided:
                return Op("rough_quotient", (above, Op("divide", (Const(1.0, dtype), scaled), dtype), factor), dtype)
        return expr

    return replace(stmt, value=map_expr(stmt.value, rough))


def _is_quotient(expr: Expr) -> bool:
    return isinstance(expr, Op) and expr.op == "quotient"
