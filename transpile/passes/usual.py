"""What an exponent usually is: its default. A call that keeps it has multiplications where others have powers.

    y = power(x, p)      with p: float = 3.0      ->      if p == 3: y = square(x) * x
                                                          else:      y = power(x, p)

Each of the two is a kernel of its own to all passes, and one function in the end. Made only where it spares a power.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..dims import Dim
from ..ir import Const, Expr, If, Int, Kernel, Op, Scalar
from .fold import fold_body
from .questions import all_of
from .tree import Body, Names, apart, map_all, own_exprs, parts, walk


@dataclass(frozen=True)
class Versions:
    """A kernel, and before it, if that is worth it, what it is where `cond` holds."""

    kernels: tuple[Kernel, ...]
    cond: Expr | None = None

    @staticmethod
    def of(kernel: Kernel) -> Versions:
        asked = _in_exponents(kernel)
        body = fold_body(map_all(kernel.body, lambda e: _known(e, asked)))
        if not asked or _powers(body) == _powers(kernel.body):
            return Versions((kernel,))
        cond = all_of(Op("equal", (_argument(s), _default(s)), "bool") for s in asked.values())
        return Versions((replace(kernel, body=body), kernel), cond)

    def map(self, change: Callable[[Kernel], Kernel]) -> Versions:
        return replace(self, kernels=tuple(change(k) for k in self.kernels))

    def joined(self) -> Kernel:
        if self.cond is None:
            return self.kernels[0]
        usual, kernel = self.kernels
        body, more = apart(usual, Names({*Names.of(usual).taken, *Names.of(kernel).taken}))
        return replace(kernel, buffers=(*kernel.buffers, *more), body=(If(self.cond, body, kernel.body),))


def _in_exponents(kernel: Kernel) -> dict[str, Scalar]:
    """Scalars that have a default and are part of an exponent."""
    usual = {s.name: s for s in kernel.scalars if s.usual is not None}
    found: set[str] = set()
    for op in _ops(kernel.body):
        if op.op == "power":
            for part in parts(op.args[1]):
                found |= {part.name} if isinstance(part, Scalar) else set()
                found |= part.dim.symbols() if isinstance(part, Int) else set()
    return {name: scalar for name, scalar in usual.items() if name in found}


def _known(expr: Expr, usual: dict[str, Scalar]) -> Expr:
    match expr:
        case Scalar(name) if name in usual:
            return _default(usual[name])
        case Int(dim) if dim.symbols() & usual.keys():
            return Int(dim.subs({name: Dim.of(int(s.usual or 0)) for name, s in usual.items() if s.dtype == "i64"}))
    return expr


def _default(scalar: Scalar) -> Const:
    assert scalar.usual is not None
    return Const(scalar.usual, scalar.dtype)


def _argument(scalar: Scalar) -> Expr:
    return Int(Dim.of(scalar.name)) if scalar.dtype == "i64" else scalar


def _powers(body: Body) -> int:
    return sum(op.op == "power" for op in _ops(body))


def _ops(body: Body) -> Iterator[Op]:
    return (p for s in walk(body) for e in own_exprs(s) for p in parts(e) if isinstance(p, Op))


__all__ = ["Versions"]
