"""The guard: before a timing counts, a peer's outputs and gradients must be layerc's, within float32.

The reference is layerc's float64 result. The tolerance, relative to max(|reference element|, rms of its array):

    eps (64 + sqrt(n)),   eps = 2^-23,   n = elements of the largest array that fold into one element here,

and NOISE times the largest error of layerc's own float32 array: what the case amplifies (128 steps of dynamic
programming, p - 1 where p is all but 1) it amplifies for everybody, though not in the same places.

64 eps: some twenty roundings in a formula such as mish's or Newton's, each an ulp or a few from exp, tanh or
sin, times the conditioning of the cases (1/(1 - e cos E) <= 10). sqrt(n) eps: a sum of n terms of either sign
added one by one is off by eps times sqrt(n/2) of its typical size (a rounding is eps/2 of a partial sum that
grows as a random walk), and peers add in different orders. The rms stands for elements near zero, where the
error of the terms is left. Every run also tries the guard itself: a result scaled by 1.001 must fail.
"""

from dataclasses import dataclass

import numpy as np

EPS = float(np.finfo(np.float32).eps)
NOISE = 8


@dataclass(frozen=True)
class Verdict:
    """How far a peer is from the reference, in tolerances; above 1 it disagrees."""

    worst: float
    where: str

    @property
    def agrees(self) -> bool:
        return self.worst <= 1


def compare(names: list[str], got: list, own: list, exact: list) -> Verdict:
    """The worst element of all arrays. `names` label them; own, exact: the reference in float32 and in float64. None
    stands for 'no gradient'."""
    if not len(names) == len(got) == len(own) == len(exact):
        return Verdict(np.inf, f"{len(got)} results; the reference has {len(own)}, the case {len(names)}")
    largest = max(np.size(a) for a in exact if a is not None)
    verdicts = [_array(*four, largest) for four in zip(names, got, own, exact, strict=True)]
    return max(verdicts, key=lambda v: v.worst)


def catches_scaling(names: list[str], own: list, exact: list) -> bool:
    """Does the guard notice every single array scaled by 1.001?"""
    for i, array in enumerate(own):
        if array is not None:
            wrong = [*own[:i], (array * 1.001).astype(array.dtype), *own[i + 1 :]]
            if compare(names, wrong, own, exact).agrees:
                return False
    return True


def _array(name: str, got, want, exact, largest: int) -> Verdict:
    if got is None or want is None:
        return Verdict(0.0 if got is want else np.inf, f"{name}: one has no gradient")
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return Verdict(np.inf, f"{name}: {got.dtype}{got.shape}, the reference is {want.dtype}{want.shape}")
    if not (np.isfinite(got).all() and np.isfinite(want).all()):
        return Verdict(np.inf, f"{name}: not finite")
    noise = NOISE * np.max(np.abs(want - exact), initial=0.0)
    tolerance = EPS * (64 + np.sqrt(largest / max(want.size, 1)))
    scale = np.maximum(np.abs(exact), np.sqrt(np.mean(exact**2)))
    error = np.abs(got - exact) / np.maximum(tolerance * scale + noise, np.finfo(np.float32).tiny)
    index = np.unravel_index(int(np.argmax(error)), error.shape)
    at = ", ".join(map(str, index))
    return Verdict(float(error[index]), f"{name}[{at}] = {got[index]!r}, the reference has {want[index]!r}")
