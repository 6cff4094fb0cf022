"""What a branch has asked of integers is known inside of it: it is not checked again there.

if (0 <= r) & (r < H):                              if (0 <= r) & (r < H):
    check (r >= -H) & (r < H)               ->          s += x[r]
    at = where(r < 0, r + H, r)
    s += x[at]

So is its opposite where it does not hold: `if (r < 0) | (r >= H): continue` asks the same. And so is what a variable
stands for: `a and b[i]` is two branches, of which the second asks for a variable that the first sets.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial, reduce

from ..dims import Dim, Facts, nonnegative
from ..ir import Check, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store, While
from .depend import Memory
from .fold import fold_body
from .ranges import as_dim, conjuncts
from .tree import Body, accesses, dim_loads, has, loads, map_all, map_bodies, map_expr, map_own, written


def guards(kernel: Kernel, known: tuple[Dim, ...] = ()) -> Kernel:
    """`known`: what is not negative anyway."""
    if not has(kernel.body, If):
        return kernel
    body = _body(kernel.body, known, Memory.of(kernel).facts, {})
    if body == kernel.body:
        return kernel
    return replace(kernel, body=without_places(fold_body(body), kernel))


_OPPOSITE = {"less": "greater_equal", "greater_equal": "less", "greater": "less_equal", "less_equal": "greater"}
Known = tuple[Dim, ...]  # what is not negative
Meaning = dict[str, Known]  # variable -> what is not negative if it is true


def _body(body: Body, known: Known, facts: Facts, meaning: Meaning) -> Body:
    done = []
    for stmt in body:
        done.append(_stmt(stmt, known, facts, meaning))
        meaning = _behind(stmt, meaning)
    return tuple(done)


def _stmt(stmt: Stmt, known: Known, facts: Facts, meaning: Meaning) -> Stmt:
    match stmt:
        case If(cond, (), orelse) if orelse and (other := negated(cond)) is not None:
            return _stmt(If(other, orelse), known, facts, meaning)
        case If(Op("logical_not", (cond,)), then, orelse) if (other := negated(cond)) is not None:
            return _stmt(If(other, then, orelse), known, facts, meaning)
        case If(cond, then, orelse):
            inside = (*known, *_said(cond, meaning))
            cond = _in_full(cond, meaning)
            other = negated(cond)
            outside = known if other is None else (*known, *_said(other, meaning))
            then, orelse = _body(then, inside, facts, meaning), _body(orelse, outside, facts, meaning)
            return If(told(cond, known, facts), then, orelse)
        case For(var, lo, hi):
            within = {**facts, var: (lo, hi - 1)}
            return replace(stmt, body=_body(stmt.body, known, within, _unchanged(stmt, meaning)))
        case While():
            kept = _unchanged(stmt, meaning)
            return map_bodies(stmt, lambda inner: _body(inner, known, facts, kept))
    return map_own(stmt, lambda d: d, lambda e: told(e, known, facts)) if known else stmt


def _said(cond: Expr, meaning: Meaning) -> Known:
    """What is not negative where a condition holds."""
    found: list[Dim] = []
    for part in conjuncts(cond):
        if isinstance(part, Load) and not part.index:
            found += meaning.get(part.buffer, ())
        found += margins(part)
    return tuple(found)


def _in_full(cond: Expr, meaning: Meaning) -> Expr:
    """A variable, and what it says, which others can tell of a counter."""
    if isinstance(cond, Load) and not cond.index:
        for margin in meaning.get(cond.buffer, ()):
            at_least = Op("greater_equal", (Int(margin), Const(0, "i64")), "bool")
            cond = Op("logical_and", (at_least, cond), "bool")
    return cond


def _unchanged(stmt: Stmt, meaning: Meaning) -> Meaning:
    return {name: said for name, said in meaning.items() if name not in written((stmt,))}


def _behind(stmt: Stmt, meaning: Meaning) -> Meaning:
    """What variables mean behind a statement."""
    match stmt:
        case Store(buffer, (), value, None):
            return {**meaning, buffer: _lasting(_said(value, meaning))}
        case If(cond, then, orelse):
            ways: dict[str, list[set[Dim]]] = {}
            for way, known in ((then, _lasting(_said(cond, meaning))), (orelse, ())):
                after = reduce(lambda found, s: _behind(s, found), way, meaning)
                for name in written((stmt,)):
                    if not (way is orelse and _is_false(name, way, cond)):
                        ways.setdefault(name, []).append({*after.get(name, ()), *known})
            joined = {name: tuple(sorted(set.intersection(*said), key=str)) for name, said in ways.items()}
            return {**_unchanged(stmt, meaning), **joined}
    return _unchanged(stmt, meaning)


def _is_false(name: str, orelse: Body, cond: Expr) -> bool:
    """Whether a variable is false behind the way of a branch whose condition does not hold."""
    match [s for s in orelse if name in written((s,))]:
        case [Store(_, (), Const(False), None)]:
            return True
        case [Store(_, (), value, None)]:
            return value == cond and not {e.buffer for e in loads(cond)} & written(orelse)
    return False


def _lasting(known: Known) -> Known:
    """Of counters and extents, which stay what they are; not of memory."""
    return tuple(m for m in known if not any(dim_loads(m)))


def negated(cond: Expr) -> Expr | None:
    """What holds where a condition made of comparisons of integers does not, made of comparisons, too."""
    match cond:
        case Op("logical_or" | "bitwise_or" | "logical_and" | "bitwise_and" as op, (a, b), dtype):
            left, right = negated(a), negated(b)
            if left is None or right is None:
                return None
            return Op("logical_and" if op.endswith("or") else "logical_or", (left, right), dtype)
        case Op(op, (a, b), dtype) if op in _OPPOSITE and as_dim(a) is not None and as_dim(b) is not None:
            return Op(_OPPOSITE[op], (a, b), dtype)
    return None


def told(expr: Expr, known: Known, facts: Facts) -> Expr:
    """With what is known in the place of comparisons."""
    return map_expr(expr, lambda e: answer(e, known, facts)) if known else expr


def answer(expr: Expr, known: Known, facts: Facts) -> Expr:
    """A comparison that is known to hold, or not to, as that."""
    for wanted in (True, False):
        needed = margins(expr, wanted)
        if needed and all(any(nonnegative(m - k, facts) for k in known) for m in needed):
            return Const(wanted, "bool")
    return expr


def margins(comparison: Expr, wanted: bool = True) -> tuple[Dim, ...]:
    """What is not negative if, and only if, the comparison of two integers is as wanted."""
    if not isinstance(comparison, Op) or len(comparison.args) != 2:
        return ()
    a, b = map(as_dim, comparison.args)
    if a is None or b is None:
        return ()
    match comparison.op, wanted:
        case ("less", True) | ("greater_equal", False):
            return (b - a - 1,)
        case ("less_equal", True) | ("greater", False):
            return (b - a,)
        case ("greater", True) | ("less_equal", False):
            return (a - b - 1,)
        case ("greater_equal", True) | ("less", False):
            return (a - b,)
        case ("equal", True):
            return (a - b, b - a)
    return ()


def without_places(body: Body, kernel: Kernel) -> Body:
    """Without checks that always hold; and an index that is a variable because it could wrap is itself."""
    uses = Counter(a.buffer for a in accesses(body))
    own = {b.name for b in kernel.buffers if b.kind == "temp" and not b.shape and not b.alias}

    def kept(inner: Body) -> Body:
        found, rest = [], inner
        while rest:
            stmt, rest = rest[0], rest[1:]
            match stmt:
                case Check(Const(True)):
                    continue
                case Store(buffer, (), Int(dim), None) if buffer in own and not any(True for _ in dim_loads(dim)):
                    here = [a for a in accesses(rest) if a.buffer == buffer]
                    if len(here) + 1 == uses[buffer] and not any(a.writes for a in here):
                        rest = map_all(rest, partial(_in_place, buffer, dim))
                        continue
            found.append(map_bodies(stmt, kept))
        return tuple(found)

    return kept(body)


def _in_place(buffer: str, dim: Dim, expr: Expr) -> Expr:
    return Int(dim) if isinstance(expr, Load) and expr.buffer == buffer else expr
