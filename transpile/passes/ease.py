"""Replaces expressions by cheaper ones of the same value, as exact as what they replace.

    tanh(log1p(v))              ->    n / (n + 2)  with n = v * (v + 2),  as exp(2 log(1 + v)) = (1 + v)**2
    clip(x, 0, 6)               ->    at_most(six, at_least(zero, x))
    y = logaddexp(a, b); exp(a - y)     ->    expit(a - b), where nothing else asks for y

One division instead of two transcendental functions, in mish and all that is made of softplus. v is held at
1e10, where the result is 1 in both float types and n does not overflow; below -1 the logarithm is NaN. Bounds
that the program names are held before the loops, where gcc does not know them: each is one instruction then.
Comes before `share`: v stands in it four times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ..ir import FLOATS, Const, Expr, Kernel, Load, Op, Store
from .depend import Memory
from .tree import Body, accesses, loads, map_all, map_bodies, own_exprs, parts, walk, written

_BOUNDS = {"maximum": "at_least", "minimum": "at_most"}


def ease(kernel: Kernel) -> Kernel:
    uses = Counter(a.buffer for a in accesses(kernel.body))
    roots = Memory.of(kernel).root
    body = _without_sums(kernel.body, {n for n, k in uses.items() if roots[n] == n}, uses, roots)
    return replace(kernel, body=map_all(body, _ease))


def _without_sums(body: Body, own: set[str], uses: Counter[str], roots: Mapping[str, str]) -> Body:
    """Without logarithms of sums of exponentials of which only the shares are asked."""
    body = tuple(map_bodies(s, lambda inner: _without_sums(inner, own, uses, roots)) for s in body)
    for k, stmt in enumerate(body):
        match stmt:
            case Store(y, (), Op("logaddexp", (a, b), _), None) if y in own:
                rest = body[k + 1 :]
                asked = sum(
                    _share_of(e, y, a, b) is not None for s in walk(rest) for o in own_exprs(s) for e in parts(o)
                )
                read = {roots[e.buffer] for e in (*loads(a), *loads(b))}
                if asked + 1 == uses[y] and not read & {roots[n] for n in written(rest)}:
                    share = partial(_share, y, a, b)
                    return _without_sums((*body[:k], *map_all(rest, share)), own - {y}, uses, roots)
    return body


def _share(y: str, a: Expr, b: Expr, expr: Expr) -> Expr:
    return expr if (share := _share_of(expr, y, a, b)) is None else share


def _share_of(expr: Expr, y: str, a: Expr, b: Expr) -> Expr | None:
    match expr:
        case Op("exp", (Op("subtract", (v, Load(name, ())), dtype),), _) if name == y and v in (a, b):
            return _expit(v, b if v == a else a, dtype)
    return None


def _expit(v: Expr, other: Expr, dtype: str) -> Expr:
    zero = isinstance(other, Const) and other.value == 0
    return Op("expit", (v if zero else Op("subtract", (v, other), dtype),), dtype)


def _ease(expr: Expr) -> Expr:
    match expr:
        case Op("tanh", (Op("log1p", (v,), dtype),), _):
            held = _ease(Op("minimum", (v, Const(1e10, dtype)), dtype))
            n = Op("multiply", (held, Op("add", (held, Const(2.0, dtype)), dtype)), dtype)
            ratio = Op("divide", (n, Op("add", (n, Const(2.0, dtype)), dtype)), dtype)
            below = Op("less", (v, Const(-1.0, dtype)), "bool")
            return Op("where", (below, Const(float("nan"), dtype), ratio), dtype)
        case Op("exp", (Op("subtract", (v, Op("logaddexp", (a, b))), dtype),), _) if v in (a, b):
            return _expit(v, b if v == a else a, dtype)
        case Op("clip", (v, low, high), dtype) if dtype in FLOATS:
            return _ease(Op("minimum", (_ease(Op("maximum", (v, low), dtype)), high), dtype))
        case Op("maximum" | "minimum" as op, (v, Const() as bound), dtype) if _is_number(bound, dtype):
            return Op(_BOUNDS[op], (Op("held", (bound,), dtype), v), dtype)
        case Op("maximum" | "minimum" as op, (Const() as bound, v), dtype) if _is_number(bound, dtype):
            held = Op("held", (bound,), dtype)
            # Of zeros with two signs the first is taken, and then the bound is.
            return Op(_BOUNDS[op], (held, v), dtype) if bound.value else Op(op, (held, v), dtype)
        case Op("maximum" | "minimum" as op, (v, bound), dtype) if dtype in FLOATS and any(loads(v)):
            if not any(loads(bound)):  # the second is asked whether it is NaN: gcc has no vectors for what lanes share
                return Op(op, (bound, v), dtype)
    return expr


def _is_number(bound: Const, dtype: str) -> bool:
    return dtype in FLOATS and bound.dtype == dtype and not math.isnan(bound.value)
