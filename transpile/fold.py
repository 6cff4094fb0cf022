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
}

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


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
    if op == "power" and all(isinstance(n, int) for n in numbers) and numbers[1] < 0:
        return None  # NumPy's error, not Python's float
    try:
        result = _ARITHMETIC[op](*numbers)
    except (ArithmeticError, TypeError):
        return None
    return const(result) if isinstance(result, (bool, int, float)) else None
