"""The guard: before a timing counts, a peer's outputs and gradients must be layerc's, within float32.

The tolerance, relative to max(|reference element|, rms of the reference array):

    eps (64 + sqrt(n)),   eps = 2^-23,   n = elements of the largest array that fold into one element here.

64 eps: some twenty roundings in a formula such as mish's or Newton's, each an ulp or a few from exp, tanh or
sin, times the conditioning of the cases (1/(1 - e cos E) <= 10). sqrt(n) eps: a sum of n terms of either sign
added one by one is off by eps times sqrt(n/2) of its typical size (a rounding is eps/2 of a partial sum that
grows as a random walk), and peers add in different orders. The rms stands for elements near zero, where the
error of the terms is left. The largest tolerance of a case here is 3e-5; every run also tries the guard
itself: a result scaled by 1.001 must fail.
"""

from dataclasses import dataclass

import numpy as np

EPS = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Verdict:
    """How far a peer is from the reference, in tolerances; above 1 it disagrees."""

    worst: float
    where: str

    @property
    def agrees(self) -> bool:
        return self.worst <= 1


def compare(names: list[str], got: list, want: list, largest: int) -> Verdict:
    """The worst element of all arrays. `names` label them; None stands for 'no gradient'."""
    if not len(names) == len(got) == len(want):
        return Verdict(np.inf, f"{len(got)} results; the reference has {len(want)}, the case {len(names)}")
    verdicts = [_array(*triple, largest) for triple in zip(names, got, want, strict=True)]
    return max(verdicts, key=lambda v: v.worst)


def catches_scaling(names: list[str], want: list, largest: int) -> bool:
    """Does the guard notice every single array scaled by 1.001?"""
    for i, array in enumerate(want):
        if array is not None:
            wrong = [*want[:i], (array * 1.001).astype(array.dtype), *want[i + 1 :]]
            if compare(names, wrong, want, largest).agrees:
                return False
    return True


def _array(name: str, got, want, largest: int) -> Verdict:
    if got is None or want is None:
        return Verdict(0.0 if got is want else np.inf, f"{name}: one has no gradient")
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return Verdict(np.inf, f"{name}: {got.dtype}{got.shape}, the reference is {want.dtype}{want.shape}")
    if not (np.isfinite(got).all() and np.isfinite(want).all()):
        return Verdict(np.inf, f"{name}: not finite")
    exact, other = want.astype(np.float64), got.astype(np.float64)
    tolerance = EPS * (64 + np.sqrt(largest / max(want.size, 1)))
    scale = np.maximum(np.abs(exact), np.sqrt(np.mean(exact**2)))
    error = np.abs(other - exact) / np.maximum(tolerance * scale, np.finfo(np.float32).tiny)
    index = np.unravel_index(int(np.argmax(error)), error.shape)
    at = ", ".join(map(str, index))
    return Verdict(float(error[index]), f"{name}[{at}] = {got[index]!r}, the reference has {want[index]!r}")
