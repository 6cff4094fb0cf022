"""Expressions for a wanted shape. Arguments are kept inside the domain of their function, and magnitudes small."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from fuzzing.scope import ONE, Dead, Scope, Shape, Variable, broadcasts
from layerc.transpile.dims import Dim


class E(NamedTuple):
    """An expression: its text, and about its largest magnitude."""

    text: str
    mag: float


_MOST = 60.0  # beyond this magnitude an expression is squashed


class Expressions:
    """Draws expressions over `self.scope`. Every method may raise Dead; `real`, `boolean` and `integer` find another way."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.scope = Scope()
        self.helpers: list[tuple[str, tuple[Shape, ...], Shape, float]] = []  # name, arguments, result, magnitude
        self.counter = 0
        self.generator = ""  # the name of a random generator
        self.said: list[tuple[Shape, E, dict[str, Variable]]] = []  # expressions, and the variables they are over

    # -- drawing ---------------------------------------------------------------------------------------------
    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, items):  # type: ignore[no-untyped-def]
        items = list(items)
        if not items:
            raise Dead
        return self.rng.choice(items)

    def fresh(self, stem: str = "v") -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def dim(self) -> Dim:
        """An extent that source can say here: mostly one of a variable."""
        pool = self.scope.pool()
        if not pool or self.chance(0.12):
            return Dim.of(self.rng.randint(1, 3))
        d = self.rng.choice(pool)
        if self.chance(0.08):
            d = self.pick([d + 1, d * 2, d + self.rng.choice(pool)])
        return d if len(d.terms) <= 2 and all(len(m) <= 2 for m, _ in d.terms) else ONE

    def any_shape(self, most: int = 3) -> Shape:
        shapes = [v.shape for v in self.scope.having() if v.rank <= most]
        if shapes and self.chance(0.7):
            return self.rng.choice(shapes)
        return tuple(self.dim() for _ in range(self.rng.randint(0, min(most, 2 if self.chance(0.7) else 3))))

    # -- the three kinds ---------------------------------------------------------------------------------------
    def real(self, shape: Shape, depth: int) -> E:
        """A real expression of this shape."""
        if depth > 0:
            if self.chance(0.07) and (before := self.said_before(shape)):
                return before
            for _ in range(6):
                production, wanted = self.rng.choices(_REAL, _WEIGHTS)[0]
                if wanted is not None and not wanted(shape):
                    continue
                try:
                    found = production(self, shape, depth - 1)
                except Dead:
                    continue
                found = self.squashed(found) if found.mag > _MOST else found
                self.say(shape, found)
                return found
        return self.leaf(shape)

    def say(self, shape: Shape, e: E) -> None:
        words = set(re.findall(r"\w+", e.text))
        if self.generator in words:
            return  # it draws
        self.said.append((shape, e, {n: v for n, v in self.scope.variables.items() if n in words}))

    def said_before(self, shape: Shape) -> E | None:
        """The same once more, as people write it, with the values that its variables have now."""
        over = self.scope.variables
        found = [e for s, e, names in self.said if s == shape and names and names.items() <= over.items()]
        return self.rng.choice(found) if found else None

    def squashed(self, e: E) -> E:
        t = e.text
        return self.pick([E(f"np.tanh({t})", 1), E(f"np.sin({t})", 1), E(f"({t} / (1 + np.abs({t})))", 1) if len(t) < 30 else E(f"np.cos({t})", 1),
                          E(f"np.arctan({t})", 2)])  # fmt: skip

    def limited(self, shape: Shape, depth: int, most: float) -> E:
        e = self.real(shape, depth)
        return e if e.mag <= most else self.squashed(e)

    def constant(self) -> str:
        return self.pick(["0.5", "1.5", "2.0", "-0.75", "3", "2", "0.3", "-1.25", "1", "0.0"])

    def leaf(self, shape: Shape) -> E:
        same = self.scope.having("real", shape)
        if same and self.chance(0.85):
            v = self.rng.choice(same)
            return E(v.name, v.mag)
        for _ in range(4):
            try:
                return self.rng.choices(
                    [self._stretched, self._element, self._made, self._scaled_ints], [5, 5, 1.5, 1]
                )[0](shape)
            except Dead:
                continue
        if same:
            return E(same[0].name, same[0].mag)
        if not shape:
            return E(self.constant(), 3)
        return self._made(shape)

    def _stretched(self, shape: Shape) -> E:
        v = self.pick([v for v in self.scope.having() if broadcasts(v.shape, shape)])
        where = self.scope.shape(shape)
        return self.pick(
            [
                E(f"np.broadcast_to({v.name}, {where})", v.mag),
                E(f"({v.name} + np.zeros({where}))", v.mag),
                E(f"({v.name} * np.ones({where}))", v.mag),
            ]
        )

    def _element(self, shape: Shape) -> E:
        """A part of a variable with one or two axes more."""
        v = self.pick([v for v in self.scope.having() if 1 <= v.rank - len(shape) <= 2])
        places: list[str] = []
        left = list(shape)
        for k, d in enumerate(v.shape):
            if left and d == left[0] and v.rank - k >= len(left):
                places.append(self.whole(d))
                left.pop(0)
            else:
                places.append(self.place(d))
        if left:
            raise Dead
        while places and places[-1] == ":" and self.chance(0.5):
            places.pop()
        return E(f"{v.name}[{', '.join(places)}]", v.mag) if places else E(v.name, v.mag)

    def whole(self, d: Dim) -> str:
        """A slice that keeps the extent."""
        return self.pick([":", ":", ":", "::-1", "::1"])

    def place(self, d: Dim) -> str:
        """An integer that is a place along an axis of this extent."""
        named = [v for v in self.scope.having("int", ()) if v.below == d]
        if named and self.chance(0.75):
            v = self.rng.choice(named)
            if v.wraps or self.chance(0.7):
                return v.name
            return self.pick([f"-1 - {v.name}", f"-{v.name} - 1", f"{self.scope.extent(d)} - 1 - {v.name}"])
        if d.value is not None:
            return str(self.rng.randint(-d.value, d.value - 1))
        ints = self.scope.having("int", ())
        if ints and self.chance(0.2):
            return f"{self.rng.choice(ints).name} % {self.scope.extent(d)}"
        if self.chance(0.1):
            return f"{self.scope.extent(d)} // 2"
        return self.pick(["0", "-1", "0", "-1"])

    def _made(self, shape: Shape) -> E:
        if not shape:
            return E(self.constant(), 3)
        where = self.scope.shape(shape)
        options = [
            E(f"np.full({where}, {float(self.constant())})", 3),
            E(f"np.ones({where})", 1),
            E(f"np.zeros({where})", 0),
        ]
        likes = self.scope.having("real", shape)
        if likes:
            v = self.rng.choice(likes).name
            options += [E(f"np.full_like({v}, 0.7)", 1), E(f"np.ones_like({v})", 1), E(f"np.zeros_like({v})", 1)]
        if len(shape) == 1:
            n = self.scope.extent(shape[0])
            options += [
                E(f"(np.arange({n}) * 0.25)", 2),
                E(f"np.linspace(0.0, 1.0, {n})", 1),
                E(f"np.linspace({self.leaf(()).text}, 1.5, {n})", 4),
            ]
        if len(shape) == 2:
            n, m = self.scope.extent(shape[0]), self.scope.extent(shape[1])
            options += [E(f"np.eye({n}, {m}, {self.pick(['0', '1', '-1'])})", 1), E(f"np.tri({n}, {m})", 1)]
        return self.pick(options)

    def _scaled_ints(self, shape: Shape) -> E:
        v = self.pick([v for v in self.scope.having("int") if broadcasts(v.shape, shape)])
        if v.shape == shape:
            return self.pick(
                [E(f"({v.name} * 0.5)", 3), E(f"({v.name} / 3)", 3)] + ([E(f"float({v.name})", 6)] if not shape else [])
            )
        return E(f"({v.name} * 0.5 + {self._made(shape).text})", 5)

    def boolean(self, shape: Shape, depth: int) -> str:
        for _ in range(6):
            try:
                return self.pick(BOOLEAN)(self, shape, depth - 1)
            except Dead:
                continue
        return f"({self.real(shape, 0).text} > 0.25)"

    def integer(self, shape: Shape, depth: int) -> str:
        """Small integers, of any sign."""
        for _ in range(6):
            try:
                return self.pick(INTEGER)(self, shape, depth - 1)
            except Dead:
                continue
        return self.pick(["1", "2"]) if not shape else f"np.ones({self.scope.shape(shape)}, dtype=np.int64)"

    # -- domains -------------------------------------------------------------------------------------------------
    def argument(self, shape: Shape, depth: int, domain: str) -> E:
        """An expression whose values are in a domain of `_UNARY`."""
        positive = [v for v in self.scope.having("real", shape) if v.domain == "pos"]
        if domain == "pos" and positive and self.chance(0.4):
            v = self.rng.choice(positive)
            return E(v.name, v.mag)
        e = self.real(shape, depth)
        t, m = e
        match domain:
            case "any":
                return e
            case "small":
                return e if m <= 3 else self.pick([E(f"np.tanh({t})", 1), E(f"(2 * np.sin({t}))", 2)])
            case "unit":
                return self.pick(
                    [E(f"(0.9 * np.tanh({t}))", 1), E(f"(0.8 * np.sin({t}))", 1), E(f"np.clip({t}, -0.9, 0.8)", 1)]
                )
            case "above":
                return self.pick([E(f"(1.2 + np.abs({t}))", m + 1), E(f"(2.5 + np.sin({t}))", 4)])
            case "open":
                return E(f"(0.1 + 0.8 * special.expit({t}))", 1)
        return self.pick(
            [E(f"(1.5 + np.sin({t}))", 3), E(f"(np.abs({t}) + 0.4)", m + 1), E(f"(0.5 + np.square({t}))", m * m + 1), E(f"np.exp(np.tanh({t}))", 3),
             E(f"(special.expit({t}) + 0.3)", 2), E(f"np.maximum({t}, 0.6)", m + 1), E(f"np.sqrt(1 + ({t}) ** 2)", m + 1)]
        )  # fmt: skip

    def smaller(self, shape: Shape) -> Shape:
        """A shape that is broadcast to this one."""
        kept = tuple(ONE if self.chance(0.2) else d for d in shape)
        drop = self.rng.randint(0, len(kept)) if self.chance(0.5) else 0
        return kept[drop:]


# -- productions, which other files add ----------------------------------------------------------------------------
Production = Callable[[Expressions, Shape, int], E]
_REAL: list[tuple[Production, Callable[[Shape], bool] | None]] = []
_WEIGHTS: list[float] = []
BOOLEAN: list[Callable[[Expressions, Shape, int], str]] = []
INTEGER: list[Callable[[Expressions, Shape, int], str]] = []


def produce(weight: float, production: Production, wanted: Callable[[Shape], bool] | None = None) -> None:
    """Adds a production of real expressions, for shapes that are `wanted`."""
    _REAL.append((production, wanted))
    _WEIGHTS.append(weight)
