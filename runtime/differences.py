"""Is a gradient right? Finite differences along random directions, and a search for the element that is not.

One direction costs two evaluations whatever the size: with e(v) = (f(x + h v) - f(x - h v)) / 2h - g.v, an
error anywhere in g shows in e for almost every v. Where it does, halving finds an element, and differences
with several steps and from either side tell a kink of f from an error of g.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Outputs = Sequence[np.ndarray]
_DIRECTIONS = 3
_FEW = 64  # elements that are looked at one by one
_LARGE = 4096  # elements of an array in which they are fewer
_EXCLUSIONS = 24  # kinks to step around before a direction is given up


@dataclass(frozen=True)
class Precision:
    """Steps to try, relative errors to allow along a direction and in one element, and rounding."""

    steps: tuple[float, ...]
    direction: float
    element: float
    rounding: float


DOUBLE = Precision((1e-6, 1e-5, 1e-4, 1e-3), 2e-7, 1e-6, 2.2e-16)
SINGLE = Precision((3e-3, 1e-2, 3e-2), 2e-2, 5e-2, 1.2e-7)


@dataclass(frozen=True)
class Finding:
    """`error`: relative, along the worst direction or in the worst element; `text`: what there is to say."""

    passed: bool
    error: float
    text: str = ""


@dataclass(frozen=True)
class _Element:
    at: int
    kind: str  # fine kink wrong
    backward: float
    differences: float
    off: float  # |backward - differences|, relative


class Differences:
    """The derivative of sum_k <dy_k, f_k(x)> at x, where f gives several outputs."""

    def __init__(
        self, f: Callable[[np.ndarray], Outputs], x: np.ndarray, dy: Outputs, precision: Precision = DOUBLE
    ) -> None:
        self.f, self.x, self.precision = f, x, precision
        self.y = [np.asarray(y) for y in f(x)]
        self.dy = [np.where(np.isfinite(y), d, 0) for y, d in zip(self.y, dy)]
        weight = sum(float(np.sum(np.square(_product(d, y)))) for d, y in zip(self.dy, self.y))
        self.noise = 8 * precision.rounding * np.sqrt(weight)
        self.unit = (float(np.sqrt(np.mean(np.square(x)))) if x.size else 0.0) or 1.0

    def along(self, g: np.ndarray, v: np.ndarray, h: float) -> tuple[float, float]:
        """The difference quotient along v, and what g says of it."""
        high, low = self._moved(v, h), self._moved(v, -h)
        size = 2 * h * self.unit
        return self._rise(self.f(high), self.f(low)) / size, float(np.vdot(g, high - low)) / size

    def one_sided(self, v: np.ndarray, h: float) -> tuple[float, float]:
        size = h * self.unit
        left = self._rise(self.y, self.f(self._moved(v, -h))) / size
        return left, self._rise(self.f(self._moved(v, h)), self.y) / size

    def slack(self, h: float) -> float:
        """What rounding may do to a quotient."""
        return self.noise / (h * self.unit)

    def _moved(self, v: np.ndarray, h: float) -> np.ndarray:
        return (self.x + h * self.unit * v.reshape(self.x.shape)).astype(self.x.dtype)

    def _rise(self, high: Outputs, low: Outputs) -> float:
        total = 0.0
        for d, a, b in zip(self.dy, high, low):
            with np.errstate(invalid="ignore"):
                total += float(np.nansum(d * (a.astype(np.float64) - b)))
        return total


def compare(
    f: Callable[[np.ndarray], Outputs],
    x: np.ndarray,
    dy: Outputs,
    gradient: np.ndarray,
    rng: np.random.Generator,
    precision: Precision = DOUBLE,
) -> Finding:
    """Whether `gradient` is that of sum_k <dy_k, f_k> at x."""
    g = np.asarray(gradient, np.float64)
    if g.shape != x.shape:
        return Finding(False, np.inf, f"has shape {g.shape} instead of {x.shape}")
    if not np.isfinite(g).all():
        at = np.unravel_index(int(np.argmin(np.isfinite(g))), g.shape)
        return Finding(False, np.inf, f"is {g[at]} {_place([int(i) for i in at])}")
    if not x.size:
        return Finding(True, 0.0, "empty")
    return _Search(Differences(f, x, dy, precision), g, rng).run()


class _Search:
    def __init__(self, differences: Differences, g: np.ndarray, rng: np.random.Generator) -> None:
        self.differences, self.g, self.rng = differences, g, rng
        self.precision = differences.precision
        self.typical = float(np.sqrt(np.mean(np.square(g))))
        self.kinks: dict[int, _Element] = {}

    def run(self) -> Finding:
        worst = 0.0
        for _ in range(_DIRECTIONS):
            v = self.rng.uniform(0.5, 1.5, self.g.size) * self.rng.choice((-1.0, 1.0), self.g.size)
            for _ in range(_EXCLUSIONS):
                v[list(self.kinks)] = 0
                error, ratio, h = self.gap(v)
                if ratio <= 1:
                    worst = max(worst, error)
                    break
                found = self.around(v, h)
                wrong = [e for e in found if e.kind == "wrong"]
                if wrong:
                    return self._wrong(max(wrong, key=lambda e: e.off))
                kinks = {e.at: e for e in found if e.kind == "kink"}
                if not kinks:
                    return self._diffuse(error, ratio)
                self.kinks |= kinks
            else:
                return Finding(True, worst, f"more than {_EXCLUSIONS} kinks: not all was compared")
        return Finding(True, worst, self._kinks())

    def gap(self, v: np.ndarray, steps: Sequence[float] | None = None) -> tuple[float, float, float]:
        """Along v, with the step that fits best: the relative error, the same as a multiple of what is
        allowed, and the step."""
        size = float(np.linalg.norm(self.g.ravel() * v)) or self.typical
        best = (np.inf, np.inf, self.precision.steps[0])
        for h in steps or self.precision.steps:
            numeric, said = self.differences.along(self.g, v, h)
            off = abs(numeric - said)
            allowed = self.precision.direction * size + self.differences.slack(h)
            ratio = off / allowed if allowed else (np.inf if off else 0.0)
            best = min(best, (off / (size or 1.0), ratio, h), key=lambda b: b[1])
            if ratio <= 1:
                break
        return best

    # -- which element -----------------------------------------------------------------------------------
    def around(self, v: np.ndarray, h: float) -> list[_Element]:
        """A few elements, one of them among those that are most off."""
        some = np.flatnonzero(v)
        few = _FEW if len(some) <= _LARGE else _FEW // 8
        while len(some) > few:
            halves = np.array_split(some, 2)
            some = max(halves, key=lambda half: self._energy(half, v, h))
        return [self.element(int(at)) for at in some]

    def _energy(self, some: np.ndarray, v: np.ndarray, h: float) -> float:
        """About the sum of squares of what is off in these elements."""
        total = 0.0
        for _ in range(2):
            part = np.zeros_like(v)
            part[some] = v[some] * self.rng.choice((-1.0, 1.0), len(some))
            numeric, said = self.differences.along(self.g, part, h)
            total += (numeric - said) ** 2
        return total

    def element(self, at: int) -> _Element:
        """One element by itself: does some step agree, is there a kink, or is it wrong?"""
        v = np.zeros(self.g.size)
        v[at] = 1.0
        g = float(self.g.flat[at])
        trials = []
        for h in (*self.precision.steps, self.precision.steps[0] / 10):
            numeric, said = self.differences.along(self.g, v, h)
            allowed = self.precision.element * max(abs(numeric), abs(said), self.typical)
            allowed = (allowed + self.differences.slack(h)) or 1.0
            trials.append((abs(numeric - said) / allowed, numeric, said))
            settled = len(trials) > 1 and abs(numeric - trials[-2][1]) <= 10 * allowed
            if trials[-1][0] <= 1 or (settled and trials[-1][0] > 100):
                break
        ratio, numeric, said = min(trials)
        off = abs(numeric - said) / (max(abs(numeric), abs(said), self.typical) or 1.0)
        if ratio <= 1:
            near = self._bent(v, self.precision.steps[-2])
            return _Element(at, "kink" if near else "fine", g, numeric, off)
        return _Element(at, "kink" if self._kink(v, g) else "wrong", g, numeric, off)

    def _bent(self, v: np.ndarray, h: float) -> bool:
        left, right = self.differences.one_sided(v, h)
        return abs(left - right) > 1e-2 * max(abs(left), abs(right), self.typical) + self.differences.slack(h)

    def _kink(self, v: np.ndarray, g: float) -> bool:
        """Whether the slopes from either side stay apart as the step shrinks, with g between them; or f
        jumps."""
        far, near = self.precision.steps[1], self.precision.steps[0]
        (l1, r1), (l2, r2) = (self.differences.one_sided(v, h) for h in (far, near))
        allowed = 1e3 * self.precision.element * max(abs(l2), abs(r2), self.typical)
        allowed += 2 * self.differences.slack(near)
        if abs(l2 + r2) > 3 * abs(l1 + r1) and abs(l2 + r2) > allowed:
            return True  # the quotient grows as the step shrinks: a jump
        apart = abs(r2 - l2)
        return apart > allowed and apart > 0.3 * abs(r1 - l1) and min(l2, r2) - allowed <= g <= max(l2, r2) + allowed

    # -- words -------------------------------------------------------------------------------------------
    def _wrong(self, one: _Element) -> Finding:
        said = f"backward gives {one.backward:.6g}, differences {one.differences:.6g}"
        return Finding(False, one.off, f"worst {_place(self._index(one.at))} {said}")

    def _diffuse(self, error: float, ratio: float) -> Finding:
        """Off along a direction, and in no element by itself."""
        passed = error <= self.precision.element
        return Finding(passed, error, "" if passed else f"off along a direction by {ratio:.0f} times what is allowed")

    def _kinks(self) -> str:
        if not self.kinks:
            return ""
        places = ", ".join(_place(self._index(at)) for at in list(self.kinks)[:3])
        more = len(self.kinks) - 3
        return f"kinks of the layer {places}" + (f" and {more} more" if more > 0 else "") + ", left out"

    def _index(self, at: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(at, self.g.shape))


def _product(d: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(d == 0, 0.0, d * np.where(np.isfinite(y), y, 0.0))


def _place(index: Sequence[int]) -> str:
    return f"at [{', '.join(map(str, index))}]" if len(index) else "there"
