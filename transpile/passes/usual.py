"""What configuration usually is: its default. A call that keeps it runs code that knows it.

    y = power(x, p)      with p: float = 3.0      ->      if p == 3: y = square(x) * x
                                                          else:      y = power(x, p)

    for i: for a in 0..k: y[i] += x[i*s + a]      ->      if (k == 3) & (s == 2):
                                                              for i: for a in 0..3: y[i] += x[2*i + a]
                                                          else: ...

Each of the two is a kernel of its own to all passes, and one function in the end. Made only where it spares a power, or
where the passes can do more with a number: the extent of a window is written out, a step along memory is a stride.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..dims import Dim
from ..ir import Check, Const, Expr, For, If, Int, Kernel, Op, Scalar
from .fold import fold_body
from .questions import all_of
from .tree import Body, Names, accesses, apart, bodies, map_all, own_exprs, parts, rename_buffers, substitute, walk

MOST = 16  # of a window that is longer, nothing is written out


@dataclass(frozen=True)
class Versions:
    """A kernel, and before it, if that is worth it, what it is where `cond` holds. Passes that find more to ask make
    versions of versions."""

    kernels: tuple[Kernel | Versions, ...]
    cond: Expr | None = None

    @staticmethod
    def of(kernel: Kernel) -> Versions:
        scalars = {s.name: s for s in kernel.scalars if s.usual is not None}
        asked = _in_exponents(kernel, scalars) | _in_places(kernel, scalars)
        if not asked:
            return Versions((kernel,))
        usual = [s for name, s in scalars.items() if name in asked]
        cond = all_of(Op("equal", (_argument(s), _default(s)), "bool") for s in usual)
        return Versions((_known(kernel, usual), kernel), cond)

    def map(self, change: Callable[[Kernel], Kernel | Versions]) -> Versions:
        return replace(
            self, kernels=tuple(k.map(change) if isinstance(k, Versions) else change(k) for k in self.kernels)
        )

    def joined(self) -> Kernel:
        whole = [k.joined() if isinstance(k, Versions) else k for k in self.kernels]
        if self.cond is None:
            return whole[0]
        usual, kernel = whole
        names = Names({*Names.of(usual).taken, *Names.of(kernel).taken})
        body, more = apart(usual, names)
        given = {b.name: b for b in kernel.buffers if b.kind in ("in", "out")}
        seen = [b for b in usual.buffers if b != given.get(b.name, b)]  # arguments whose shapes tell more
        own = [replace(b, name=names.fresh(b.name), kind="temp", alias=b.name) for b in seen]
        body = rename_buffers(body, {b.alias: b.name for b in own if b.alias})
        return replace(kernel, buffers=(*kernel.buffers, *more, *own), body=(If(self.cond, body, kernel.body),))


def _in_exponents(kernel: Kernel, scalars: dict[str, Scalar]) -> set[str]:
    """What is part of an exponent, if powers are spared where it is known."""
    found: set[str] = set()
    for op in _ops(kernel.body):
        if op.op == "power":
            for part in parts(op.args[1]):
                found |= {part.name} if isinstance(part, Scalar) else set()
                found |= part.dim.symbols() if isinstance(part, Int) else set()
    found &= scalars.keys()
    known = _known(kernel, [scalars[name] for name in found])
    return found if _powers(known.body) < _powers(kernel.body) else set()


def _in_places(kernel: Kernel, scalars: dict[str, Scalar]) -> set[str]:
    """Whole numbers that are the extent of a window, or a step along memory."""
    whole = {name for name, s in scalars.items() if s.dtype == "i64"}
    found: set[str] = set()
    for place, along, loops in _places(kernel.body) if whole else ():
        extents = {loop.var: loop.hi - loop.lo for loop in loops}
        inside = place.symbols() & extents.keys()
        if len(inside) > 1:  # a window, and not groups: those are as far apart as they are long
            near = [v for v in inside if (split := place.split(v)) is not None and split[0].symbols() <= whole]
            found |= {name for var in near for name in _short(extents[var], scalars, whole)}
        if along:
            found |= _steps(place, inside, whole)
    return found


def _places(body: Body) -> Iterator[tuple[Dim, bool, tuple[For, ...]]]:
    """Where elements are touched, whether that may be along memory, and the loops around."""
    for access in accesses(body):
        for axis, place in enumerate(access.index or (), 1):
            yield place, axis == len(access.index or ()), access.loops
    for check, loops in _checks(body):  # what is counted from the end if negative has no place yet, but is asked of
        for part in parts(check.cond):
            if isinstance(part, Int):
                yield part.dim, True, loops


def _checks(body: Body, loops: tuple[For, ...] = ()) -> Iterator[tuple[Check, tuple[For, ...]]]:
    for stmt in body:
        if isinstance(stmt, Check):
            yield stmt, loops
        for inner in bodies(stmt):
            yield from _checks(inner, (*loops, stmt) if isinstance(stmt, For) else loops)


def _short(extent: Dim, scalars: dict[str, Scalar], whole: set[str]) -> set[str]:
    """What a loop's extent hangs on, where that is all and makes it a short one."""
    names = extent.symbols()
    if not names or not names <= whole:
        return set()
    number = extent.subs({name: Dim.of(int(scalars[name].usual or 0)) for name in names}).value
    return set(names) if number is not None and number <= MOST else set()


def _steps(place: Dim, counters: Iterable[str], whole: set[str]) -> set[str]:
    """What counters are multiplied with, where that is all."""
    parted = (place.split(var) for var in counters)
    steps = [split[0].symbols() for split in parted if split is not None]
    return set().union(*(names for names in steps if names <= whole))


def _known(kernel: Kernel, usual: list[Scalar]) -> Kernel:
    numbers = {s.name: Dim.of(int(s.usual or 0)) for s in usual if s.dtype == "i64"}
    values = {s.name: _default(s) for s in usual}
    body = map_all(kernel.body, lambda e: values.get(e.name, e) if isinstance(e, Scalar) else e)
    shaped = [replace(b, shape=tuple(n.subs(numbers) for n in b.shape)) for b in kernel.buffers]
    return replace(kernel, body=fold_body(substitute(body, numbers)), buffers=tuple(shaped))


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
