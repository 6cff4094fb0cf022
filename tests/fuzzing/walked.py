"""Programs of loops over elements, at places of all kinds: where the counter is, before and behind it, from the end, in
steps, around an axis, or one place all along; sums, recurrences, extremes, in a number or in an array.
"""

from __future__ import annotations

import random

from fuzzing.lines import Lines, indented

Counters = list[tuple[str, str]]  # each with the extent that it runs through


class Walked:
    """One program: `text`, of a layer `name`. `shapes`: of its arguments, by their dims."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.shapes = {"x": ["N", "M"], "v": ["N"], "w": ["K"]}
        self.out = rng.choice([["N"], ["N", "M"], ["K"]])
        self.names = 0
        start = rng.choice(["np.zeros", "np.zeros", "np.ones"])
        head = ["N, M = x.shape", "K = w.shape[0]", "s = 0.0", f"y = {start}(({', '.join(self.out)},))"]
        body = [line for _ in range(rng.choice([1, 2, 2, 3])) for line in self._part()]
        signature = ", ".join(f'{n}: real["{" ".join(s)}"]' for n, s in self.shapes.items())
        lines = [f"def {name}({signature}):", *indented([*head, *body, "return y + s"])]
        self.text = "\n".join(["@layer", *lines]) + "\n"

    def _part(self) -> Lines:
        if self.rng.random() < 0.2 and len(self.out) == 1:
            return [self.rng.choice(self._slices)]
        return self._loop([])

    @property
    def _slices(self) -> Lines:
        of = {"N": "v", "K": "w"}[self.out[0]]
        return [
            f"y[:1] += {of}[-1:]",
            f"y[1:] += 0.5 * {of}[:-1]",
            f"y[-1:] *= {of}[:1]",
            f"y += np.concatenate([{of}[1:], {of}[:1]])",
            f"y[::2] += {of}[::2] * {of}[0]",
            f"y[:2] -= {of}[-2:]",
            f"s += np.sum({of}[1:] * {of}[:-1])",
        ]

    def _loop(self, around: Counters) -> Lines:
        rng = self.rng
        self.names += 1
        counter, extent = f"i{self.names}", rng.choice("NMK")
        bounds = [extent] * 4 + [f"1, {extent}", f"{extent} - 1", f"{extent} - 1, -1, -1", f"0, {extent}, 2"]
        inside = [*around, (counter, extent)]
        total = f"t{self.names}"
        body: Lines = []
        if len(around) < 2 and rng.random() < 0.5:
            body += self._loop(inside)
        body += [line for _ in range(rng.choice([1, 1, 2])) for line in self._statement(inside, total)]
        lines = [f"for {counter} in range({rng.choice(bounds)}):", *indented(body)]
        if any(total in line for line in body):
            return [f"{total} = 0.0", *lines, *self._kept(around, total)]
        return lines

    def _kept(self, around: Counters, total: str) -> Lines:
        return [
            f"{self._place('y', self.out, around)} {self.rng.choice(['+=', '='])} {total}"
            if around
            else f"s += {total}"
        ]

    def _statement(self, counters: Counters, total: str) -> Lines:
        rng = self.rng
        y, value = self._place("y", self.out, counters), self._value(counters)
        kinds = [
            f"s += {value}",
            f"s = 0.5 * s + {value}",
            f"{total} += {value}",
            f"{total} += {value}",
            f"{total} = max({total}, {value})",
            f"{y} += {value}",
            f"{y} += {value}",
            f"{y} = {value}",
            f"{y} = 0.3 * {self._place('y', self.out, counters)} + {value}",
            f"{y} = max({y}, {value})",
        ]
        line = rng.choice(kinds)
        if rng.random() < 0.2:
            (c, n), a = rng.choice(counters), self._value(counters)
            asked = rng.choice([f"{c} > 0", f"{c} < {n} - 1", f"{a} > 0.1", f"{c} % 2 == 0"])
            return [f"if {asked}:", f"    {line}"]
        return [line]

    def _value(self, counters: Counters) -> str:
        counters = counters if self.rng.random() < 0.8 else []  # one value all along
        name, other = (self.rng.choice(list(self.shapes)) for _ in range(2))
        a, b = (self._place(n, self.shapes[n], counters) for n in (name, other))
        return self.rng.choice([a, f"{a} * {b}", f"0.5 * {a}", f"np.tanh({a})", f"{a} * {b}", f"({a} - {b}) ** 2"])

    def _place(self, name: str, shape: Lines, counters: Counters) -> str:
        return f"{name}[{', '.join(self._index(n, counters) for n in shape)}]"

    def _index(self, extent: str, counters: Counters) -> str:
        rng = self.rng
        own = [c for c, n in counters if n == extent]
        if not counters or rng.random() < 0.2:
            return rng.choice(["0", "-1", f"{extent} - 1", f"{extent} // 2"])
        if own and rng.random() < 0.8:
            c = rng.choice(own)
            others = [f"{extent} - 1 - {c}", f"max({c} - 1, 0)", f"min({c} + 1, {extent} - 1)", f"{c} - 1", f"{c} // 2"]
            return rng.choice([c, c, c, *others, f"{c} - {extent}"])
        c = rng.choice(counters)[0]
        return rng.choice(
            [f"{c} % {extent}", f"({c} + 1) % {extent}", f"2 * {c} % {extent}", f"min({c}, {extent} - 1)"]
        )
