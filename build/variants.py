"""Gradient kernels for part of the gradients: only those of params, or only those of inputs, without the
work for the others. Where that is little of it, as in a recurrence, the kernel for all of them does.
"""

from __future__ import annotations

from dataclasses import replace

from layerc.transpile.clean import clean
from layerc.transpile.dims import Dim
from layerc.transpile.ir import Kernel
from layerc.transpile.passes.tree import buffers
from layerc.transpile.passes.work import work
from layerc.transpile.program import Function, Return

_ROLES = {"params": "param", "inputs": "input"}
_MOST = 0.8  # of the work for all gradients: more of it is not worth the time to compile another kernel
_EXTENT = 32  # at which works are compared, of all axes


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


def spares_work(part: Kernel, whole: Kernel) -> bool:
    """Whether the loop nests of a variant, as they are lowered, do so much less than those of the whole gradient."""
    return _estimate(part) <= _MOST * _estimate(whole)


def _estimate(kernel: Kernel) -> float:
    total = sum((work(stmt, buffers(kernel)) for stmt in kernel.body), Dim.of(0))
    return float(total.subs({name: Dim.of(_EXTENT) for name in total.symbols()}).value or 0)
