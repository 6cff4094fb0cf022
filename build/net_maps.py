"""NumPy's element functions, types and numbers in C, and names, for the loops of a net."""

import re
from collections.abc import Callable, Sequence
from typing import Any

C_TYPES = {
    "float32": "float", "float64": "double", "bool": "uint8_t",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
}  # fmt: skip

Text = Callable[[Sequence[str], Sequence[str]], str]  # arguments, types -> expression


def _by(pattern: str) -> Text:
    return lambda args, types: pattern.format(*args)


def _real(name: str) -> Text:
    """A function of `math.h` (layerc's), float's by its suffix."""
    return lambda args, types: f"{name}{'f' if types[0] == 'float32' else ''}({', '.join(args)})"


def _either(real: str, whole: str) -> Text:
    return lambda args, types: (_real(real) if types[0].startswith("float") else _by(whole))(args, types)


ELEMENTWISE: dict[str, Text] = {
    "copy": _by("{0}"),
    "where": _by("{0} ? {1} : {2}"),
    "add": _by("{0} + {1}"),
    "subtract": _by("{0} - {1}"),
    "multiply": _by("{0} * {1}"),
    "divide": _by("{0} / {1}"),
    "negative": _by("-{0}"),
    "square": _by("{0} * {0}"),
    "sqrt": _real("lc_sqrt"),
    "exp": _real("lc_exp"),
    "log": _real("lc_log"),
    "tanh": _real("lc_tanh"),
    "sign": _either("lc_sign", "({0} > 0) - ({0} < 0)"),
    "absolute": _either("lc_abs", "{0} < 0 ? -{0} : {0}"),
    "maximum": _either("lc_max", "{0} > {1} ? {0} : {1}"),
    "minimum": _either("lc_min", "{0} < {1} ? {0} : {1}"),
    "greater": _by("{0} > {1}"),
    "greater_equal": _by("{0} >= {1}"),
    "less": _by("{0} < {1}"),
    "less_equal": _by("{0} <= {1}"),
    "equal": _by("{0} == {1}"),
    "not_equal": _by("{0} != {1}"),
    "logical_and": _by("{0} && {1}"),
    "logical_or": _by("{0} || {1}"),
    "logical_not": _by("!{0}"),
    "bitwise_and": _by("{0} & {1}"),
    "bitwise_or": _by("{0} | {1}"),
    "invert": lambda args, types: f"!{args[0]}" if types[0] == "bool" else f"~{args[0]}",
}


def literal(value: Any, dtype: str) -> str:
    """A number of that type, exactly."""
    if dtype.startswith("float"):
        value = float(value)
        if value != value:
            return "NAN"
        if abs(value) == float("inf"):
            return "INFINITY" if value > 0 else "-INFINITY"
        if value == int(value) and abs(value) < 1e6:
            text = f"{value:.1f}"
        else:
            text = value.hex()
        text += "f" if dtype == "float32" else ""
        return f"({text})" if text.startswith("-") else text
    value = int(value)
    if value == -(2**63):
        return "INT64_MIN"
    if abs(value) < 2**31:
        return f"({value})" if value < 0 else str(value)
    return f"UINT64_C({value})" if value >= 2**63 else f"INT64_C({value})"


def number_text(n: Any) -> str:
    """An integer a N + b."""
    if not isinstance(n, list | tuple):
        return str(n)
    times, plus = n
    if not times:
        return str(plus)
    text = "batch" if times == 1 else f"{times} * batch"
    return (
        f"({text} + {plus})" if plus > 0 else f"({text} - {-plus})" if plus < 0 else text if times == 1 else f"({text})"
    )


def c_name(name: str) -> str:
    """An identifier for a blob's name."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"b_{made}" if not made or made[0].isdigit() or made in _TAKEN else made


_TAKEN = frozenset(
    "net batch loss auto break case char const continue default do double else enum extern float for goto if inline "
    "int long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile "
    "while main errno NULL NAN INFINITY".split()
)
