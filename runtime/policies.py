"""How rates change over the iterations: `LRPolicy.Inv(0.01, 1e-4, 0.75)`. Called with the number of
updates done."""

import math
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Protocol

from layerc.runtime.fields import check_numbers
from layerc.runtime.symbolic import choose, cos


class Policy(Protocol):
    """A rate as a function of the number of updates done (0 before the first)."""

    def __call__(self, it: int) -> float: ...


@dataclass(frozen=True)
class Fixed:
    """base."""

    base: float

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, it: int) -> float:
        return self.base


@dataclass(frozen=True)
class Step:
    """base gamma^floor(it/stepsize)."""

    base: float
    gamma: float
    stepsize: int

    def __post_init__(self) -> None:
        _check(self, "stepsize")

    def __call__(self, it: int) -> float:
        return self.base * self.gamma ** (it // self.stepsize)


@dataclass(frozen=True)
class Exp:
    """base gamma^it."""

    base: float
    gamma: float

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, it: int) -> float:
        return self.base * self.gamma**it


@dataclass(frozen=True)
class Inv:
    """base (1 + gamma it)^-power."""

    base: float
    gamma: float
    power: float

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, it: int) -> float:
        return self.base * (1 + self.gamma * it) ** -self.power


@dataclass(frozen=True)
class Linear:
    """Straight from base to end in n_iter iterations, then end."""

    base: float
    end: float
    n_iter: int

    def __post_init__(self) -> None:
        _check(self, "n_iter")

    def __call__(self, it: int) -> float:
        straight = lambda: self.base + (self.end - self.base) * it / self.n_iter  # noqa: E731
        return choose(it < self.n_iter, straight, lambda: self.end)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from base to end in n_iter iterations, then end."""

    base: float
    n_iter: int
    end: float = 0.0

    def __post_init__(self) -> None:
        _check(self, "n_iter")

    def __call__(self, it: int) -> float:
        half = lambda: self.end + (self.base - self.end) * (1 + cos(math.pi * it / self.n_iter)) / 2  # noqa: E731
        return choose(it >= self.n_iter, lambda: self.end, half)


class Staged:
    """Stages (n, policy): each lasts n iterations, the last for ever. A policy sees the total iteration."""

    def __init__(self, *stages: tuple[int, Any]) -> None:
        if not stages or not all(isinstance(s, tuple) and len(s) == 2 and _is_count(s[0]) for s in stages):
            raise ValueError(f"Staged takes (n_iter, policy) pairs, got {stages!r}")
        self.stages = tuple((int(n), as_policy(policy, "Staged")) for n, policy in stages)

    def __call__(self, it: int) -> float:
        return self._from(0, 0, it)

    def _from(self, stage: int, start: int, it: int) -> float:
        """The rate, if the stages before are over."""
        n, policy = self.stages[stage]
        if stage + 1 == len(self.stages):
            return policy(it)
        return choose(it < start + n, lambda: policy(it), lambda: self._from(stage + 1, start + n, it))

    def stage_at(self, it: int) -> Policy:
        """The policy of iteration `it`."""
        for n, policy in self.stages[:-1]:
            if it < n:
                return policy
            it -= n
        return self.stages[-1][1]

    def __repr__(self) -> str:
        return f"Staged({', '.join(map(repr, self.stages))})"


@dataclass(frozen=True)
class CappedStep:
    """min(base gamma^floor(it/stepsize), max)."""

    base: float
    gamma: float
    stepsize: int
    max: float

    def __post_init__(self) -> None:
        _check(self, "stepsize")
        _check_max(self)

    def __call__(self, it: int) -> float:
        rate = self.base * self.gamma ** (it // self.stepsize)
        return choose(self.max < rate, lambda: self.max, lambda: rate)


@dataclass(frozen=True)
class CappedLinear:
    """min(base + floor(it/stepsize) gamma, max)."""

    base: float
    gamma: float
    stepsize: int
    max: float

    def __post_init__(self) -> None:
        _check(self, "stepsize")
        _check_max(self)

    def __call__(self, it: int) -> float:
        rate = self.base + (it // self.stepsize) * self.gamma
        return choose(self.max < rate, lambda: self.max, lambda: rate)


@dataclass
class DecayOnValidation:
    """base, times `ratio` whenever `statistic` of a validation is worse than at the one before; not below
    min_lr.

    If there is a `Snapshot`, the net then goes back to the latest one not younger than the better validation.
    """

    base: float
    statistic: str
    ratio: float = 0.5
    min_lr: float = 1e-8
    higher_better: bool = True

    def __post_init__(self) -> None:
        _check(self)
        if not (isinstance(self.statistic, str) and self.statistic):
            raise ValueError(f"DecayOnValidation: statistic={self.statistic!r} must be the name of one")
        if not 0 < self.ratio < 1:
            raise ValueError(f"DecayOnValidation: ratio={self.ratio!r} must be between 0 and 1")
        if not isinstance(self.higher_better, bool):
            raise ValueError(f"DecayOnValidation: higher_better={self.higher_better!r} must be True or False")
        self.reset()

    def reset(self) -> None:
        """As before any validation."""
        self.rate = self.base
        self.before: tuple[int, float] | None = None  # iteration and value of the last validation

    def __call__(self, it: int) -> float:
        return self.rate

    def observe(self, it: int, value: float) -> int | None:
        """Take a validation's value; the better one's iteration where this one is worse."""
        before, self.before = self.before, (it, value)
        if before is None or (value >= before[1] if self.higher_better else value <= before[1]):
            return None
        self.rate = max(self.rate * self.ratio, self.min_lr)
        return before[0]


def decays(policy: Policy) -> list[DecayOnValidation]:
    """The policies, this one or its stages, that depend on validations."""
    if isinstance(policy, Staged):
        return [one for _, stage in policy.stages for one in decays(stage)]
    return [policy] if isinstance(policy, DecayOnValidation) else []


def acting(policy: Policy, it: int) -> DecayOnValidation | None:
    """The one of them that gives the rate of iteration `it`."""
    while isinstance(policy, Staged):
        policy = policy.stage_at(it)
    return policy if isinstance(policy, DecayOnValidation) else None


class LRPolicy:
    """The namespace of the policies of learning rates."""

    Fixed, Step, Exp, Inv, Linear, Cosine, Staged = Fixed, Step, Exp, Inv, Linear, Cosine, Staged
    DecayOnValidation = DecayOnValidation


class MomPolicy:
    """The namespace of the policies of momenta."""

    Fixed, Step, Exp, Inv, Linear, Cosine, Staged = Fixed, CappedStep, Exp, Inv, CappedLinear, Cosine, Staged


def as_policy(value: Any, owner: str) -> Policy:
    """A policy; a number is `Fixed`. ValueError for anything else."""
    if isinstance(value, bool) or value is None or isinstance(value, type):
        raise ValueError(f"{owner}={value!r} must be a number or a policy")
    if callable(value):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{owner}={value!r} must be a number or a policy") from None
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{owner}={value!r} must be 0 or more")
    return Fixed(number)


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _check_max(policy: CappedStep | CappedLinear) -> None:
    if not 0 <= policy.max < 1:
        raise ValueError(f"{type(policy).__name__}: max={policy.max!r} must be 0 or more, and below 1")


def _check(policy: Any, *positive: str) -> None:
    """ValueError unless the numbers are numbers, the base not negative and these fields positive."""
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.type not in (float, int):
            continue
        check_numbers(policy, field.name)
        if field.name == "base" and value < 0:
            raise ValueError(f"{type(policy).__name__}: base={value!r} must be 0 or more")
        if field.name in positive and value <= 0:
            raise ValueError(f"{type(policy).__name__}: {field.name}={value!r} must be positive")
