"""Replaces expressions by cheaper ones of the same value, as exact as what they replace.

    tanh(log1p(v))              ->    n / (n + 2)  with n = v * (v + 2),  as exp(2 log(1 + v)) = (1 + v)**2
    clip(x, 0, 6)               ->    at_most(six, at_least(zero, x))

One division instead of two transcendental functions, in mish and all that is made of softplus. v is held at
1e10, where the result is 1 in both float types and n does not overflow; below -1 the logarithm is NaN. Bounds
that the program names are held before the loops, where gcc does not know them: each is one instruction then.
Comes before `share`: v stands in it four times.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..ir import FLOATS, Const, Expr, Kernel, Op
from .tree import map_all

_BOUNDS = {"maximum": "at_least", "minimum": "at_most"}


def ease(kernel: Kernel) -> Kernel:
    return replace(kernel, body=map_all(kernel.body, _ease))


def _ease(expr: Expr) -> Expr:
    match expr:
        case Op("tanh", (Op("log1p", (v,), dtype),), _):
            held = _ease(Op("minimum", (v, Const(1e10, dtype)), dtype))
            n = Op("multiply", (held, Op("add", (held, Const(2.0, dtype)), dtype)), dtype)
            ratio = Op("divide", (n, Op("add", (n, Const(2.0, dtype)), dtype)), dtype)
            below = Op("less", (v, Const(-1.0, dtype)), "bool")
            return Op("where", (below, Const(float("nan"), dtype), ratio), dtype)
        case Op("clip", (v, low, high), dtype) if dtype in FLOATS:
            return _ease(Op("minimum", (_ease(Op("maximum", (v, low), dtype)), high), dtype))
        case Op("maximum" | "minimum" as op, (v, Const() as bound), dtype) if _is_number(bound, dtype):
            return Op(_BOUNDS[op], (Op("held", (bound,), dtype), v), dtype)
        case Op("maximum" | "minimum" as op, (Const() as bound, v), dtype) if _is_number(bound, dtype):
            held = Op("held", (bound,), dtype)
            # Of zeros with two signs the first is taken, and then the bound is.
            return Op(_BOUNDS[op], (held, v), dtype) if bound.value else Op(op, (held, v), dtype)
    return expr


def _is_number(bound: Const, dtype: str) -> bool:
    return dtype in FLOATS and bound.dtype == dtype and not math.isnan(bound.value)
