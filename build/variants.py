"""Gradient kernels for part of the gradients: only those of params, or only those of inputs, without the
work for the others.
"""

from __future__ import annotations

from dataclasses import replace

from layerc.transpile.clean import clean
from layerc.transpile.program import Function, Return

_ROLES = {"params": "param", "inputs": "input"}


def variants(gradient: Function) -> dict[str, Function]:
    """The variants of a gradient function by their name in the manifest; none where it has one kind of
    gradient only.
    """
    roles = {result.role for result in gradient.results}
    if not roles >= set(_ROLES.values()):
        return {}
    return {want: keep_results(gradient, role) for want, role in _ROLES.items()}


def keep_results(function: Function, role: str) -> Function:
    """The function with the results of one role, and what they need."""
    *body, final = function.body
    assert isinstance(final, Return)
    kept = [(r, v) for r, v in zip(function.results, final.values, strict=True) if r.role == role]
    returned = replace(final, values=tuple(v for _, v in kept))
    return replace(function, body=clean([*body, returned]), results=tuple(r for r, _ in kept))
