"""Whether linear inequalities over the integers contradict each other: elimination by Fourier and Motzkin."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from fractions import Fraction

# a*x + b*y + c is {x: a, y: b, None: c}
Form = dict[Hashable, Fraction]

_MOST = 300  # inequalities: beyond, nothing is claimed


def contradictory(forms: Iterable[Form]) -> bool:
    """Whether no numbers make every form >= 0. False means only: not proven."""
    left = _distinct(forms)
    while True:
        if any(set(f) <= {None} and f.get(None, 0) < 0 for f in left):
            return True
        variables = {v for f in left for v in f if v is not None}
        if not variables or len(left) > _MOST:
            return False
        left = _without(min(variables, key=lambda v: (_growth(left, v), str(v))), left)


def _growth(forms: list[Form], variable: Hashable) -> int:
    above = sum(f.get(variable, 0) < 0 for f in forms)
    below = sum(f.get(variable, 0) > 0 for f in forms)
    return above * below - above - below


def _without(variable: Hashable, forms: list[Form]) -> list[Form]:
    below = [f for f in forms if f.get(variable, 0) > 0]
    above = [f for f in forms if f.get(variable, 0) < 0]
    kept = [f for f in forms if not f.get(variable, 0)]
    for low in below:
        for high in above:
            a, b = low[variable], -high[variable]
            made = {v: b * low.get(v, Fraction(0)) + a * high.get(v, Fraction(0)) for v in {*low, *high}}
            kept.append({v: c for v, c in made.items() if c and v != variable})
    return _distinct(kept)


def _distinct(forms: Iterable[Form]) -> list[Form]:
    """Scaled alike, and of those that differ in the constant only the strictest."""
    strictest: dict[tuple[tuple[Hashable, Fraction], ...], Fraction] = {}
    for form in forms:
        terms = sorted(((v, c) for v, c in form.items() if v is not None and c), key=lambda t: str(t[0]))
        scale = abs(terms[0][1]) if terms else Fraction(1)
        key = tuple((v, c / scale) for v, c in terms)
        constant = form.get(None, Fraction(0)) / scale
        strictest[key] = min(constant, strictest.get(key, constant))
    return [{**dict(key), None: constant} for key, constant in strictest.items()]


def difference(a: Form | None, b: Form | None) -> Form | None:
    if a is None or b is None:
        return None
    return {v: a.get(v, Fraction(0)) - b.get(v, Fraction(0)) for v in {*a, *b}}


__all__ = ["Form", "contradictory", "difference"]
