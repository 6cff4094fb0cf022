"""What a condition on sizes tells where it holds: `if t > 0:` makes t - 1 an index, `assert k <= n` x[:k] one of k."""

from __future__ import annotations

from dataclasses import replace

from ..construct import is_unknown, value_of
from ..dims import Dim, nonnegative
from ..program import Call, Expr

Facts = dict[str, tuple[Dim, Dim]]
_OPPOSITE = {
    "less": "greater_equal",
    "greater_equal": "less",
    "greater": "less_equal",
    "less_equal": "greater",
    "equal": "not_equal",
    "not_equal": "equal",
}


def at_least(cond: Expr) -> list[Dim]:
    """What is not negative where cond holds, of conditions on sizes: M - 1 of `M > 0`."""
    if not isinstance(cond, Call) or len(cond.args) < 2:
        return []
    if cond.op == "logical_and":
        return [dim for arg in cond.args for dim in at_least(arg)]
    a, b = (value_of(arg) for arg in cond.args[:2])
    if a is None or b is None:
        return []
    match cond.op:
        case "greater":
            return [a - b - 1]
        case "greater_equal":
            return [a - b]
        case "less":
            return [b - a - 1]
        case "less_equal":
            return [b - a]
        case "equal":
            return [b - a, a - b]
    return []


def assumed(cond: Expr, holds: bool, facts: Facts) -> Facts:
    """The facts where cond holds (or does not)."""
    if not isinstance(cond, Call):
        return facts
    if cond.op == "logical_not":
        return assumed(cond.args[0], not holds, facts)
    if cond.op == ("logical_and" if holds else "logical_or"):
        for arg in cond.args:
            facts = assumed(arg, holds, facts)
        return facts
    op = cond.op if holds else _OPPOSITE.get(cond.op, "")
    if op not in _OPPOSITE:
        return facts
    if op == "not_equal":
        a, b = (value_of(arg) for arg in cond.args)
        return facts if a is None or b is None else _different(a - b, facts)
    for dim in at_least(replace(cond, op=op)):
        facts = _nonnegative(dim, facts)
    return facts


def _nonnegative(dim: Dim, facts: Facts) -> Facts:
    """With dim >= 0 known: a tighter range of the loop variables that stand alone in it."""
    for variable, (low, high) in facts.items():
        parts = dim.split(variable)
        if parts is None or parts[0].value not in (1, -1) or not _outer(parts[1], variable, facts):
            continue
        coefficient, rest = parts
        if coefficient.value == 1 and (is_unknown(low) or nonnegative(-rest - low, facts)):  # variable >= -rest
            facts = {**facts, variable: (-rest, high)}
        elif coefficient.value == -1 and (is_unknown(high) or nonnegative(high - rest, facts)):  # variable <= rest
            facts = {**facts, variable: (low, rest)}
    return facts


def _outer(dim: Dim, variable: str, facts: Facts) -> bool:
    """A range may be said in terms of what is known before the variable only: proofs replace inner variables
    first.
    """
    order = list(facts)
    return not dim.symbols() & set(order[order.index(variable) :])


def _different(dim: Dim, facts: Facts) -> Facts:
    """With dim != 0 known: at the end of a range, that end is left out."""
    for variable, (low, high) in facts.items():
        parts = dim.split(variable)
        if parts is None or parts[0].value not in (1, -1) or not _outer(parts[1], variable, facts):
            continue
        value = parts[1] * -1 if parts[0].value == 1 else parts[1]
        if value == low:
            facts = {**facts, variable: (low + 1, high)}
        elif value == high:
            facts = {**facts, variable: (low, high - 1)}
    return facts
