"""Replaces compositions by cheaper expressions of the same value, as exact as what they replace.

    tanh(log1p(v))    ->    n / (n + 2)  with n = v * (v + 2),  as exp(2 log(1 + v)) = (1 + v)**2

One division instead of two transcendental functions, in mish and all that is made of softplus. v is held at
1e10, where the result is 1 in both float types and n does not overflow; below -1 the logarithm is NaN.
Comes before `share`: v stands in it four times.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Const, Expr, Kernel, Op
from .tree import map_all


def ease(kernel: Kernel) -> Kernel:
    return replace(kernel, body=map_all(kernel.body, _ease))


def _ease(expr: Expr) -> Expr:
    match expr:
        case Op("tanh", (Op("log1p", (v,), dtype),), _):
            held = Op("minimum", (v, Const(1e10, dtype)), dtype)
            n = Op("multiply", (held, Op("add", (held, Const(2.0, dtype)), dtype)), dtype)
            ratio = Op("divide", (n, Op("add", (n, Const(2.0, dtype)), dtype)), dtype)
            below = Op("less", (v, Const(-1.0, dtype)), "bool")
            return Op("where", (below, Const(float("nan"), dtype), ratio), dtype)
    return expr
