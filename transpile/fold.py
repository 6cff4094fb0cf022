"""Arithmetic that is known at build time: -1 and 2 * np.pi are constants, comparisons of symbolic sizes may be."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from .construct import const, value_of
from .program import Const, Expr

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "negative": operator.neg,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "floor_divide": operator.floordiv,
    "mod": operator.mod,
    "logical_not": operator.not_,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_not": operator.invert,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
}

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


BEYOND = 2**64  # stands for every integer that is too large to be computed: it fits no 64 bits either


def fold(op: str, args: Sequence[Expr]) -> Expr | None:
    """The constant that the operation gives, or None where it is not known or is an error that the run shall have."""
    numbers: list[Any] = [a.value for a in args if isinstance(a, Const)]
    if args and len(numbers) == len(args) and op in _ARITHMETIC:
        return _arithmetic(op, numbers)
    if op in _COMPARISONS and len(args) == 2:
        a, b = value_of(args[0]), value_of(args[1])
        if a is not None and b is not None and (a - b).value is not None:
            return const(_COMPARISONS[op]((a - b).value, 0))
    return None


def _arithmetic(op: str, numbers: Sequence[Any]) -> Expr | None:
    if _is_vast(op, numbers):
        return const(BEYOND)
    try:
        result = _ARITHMETIC[op](*numbers)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return const(result) if isinstance(result, (bool, int, float)) else None


def _is_vast(op: str, numbers: Sequence[Any]) -> bool:
    """Whether Python would compute an integer of more than 64 bits, which may take for ever: 10**10**9, 1 << 10**12."""
    if op not in ("power", "left_shift") or not all(isinstance(n, int) for n in numbers):
        return False
    return abs(numbers[0]) > (op == "power") and numbers[1] > 64
