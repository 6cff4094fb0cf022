"""Programs of sweeps: windows of slices around whole arrays, rows or columns one by one with sums and extremes of their
own, running extremes, one sweep after the other over what they have left.
"""

from __future__ import annotations

import random

from fuzzing.lines import Lines, indented


class Swept:
    """One program: `text`, of a layer `name`. `shapes`: of its arguments, by their dims."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.shapes = {"x": ["N", "M"], "w": ["3", "3"]}
        self.names = 0
        body = [line for _ in range(rng.choice([1, 2, 2, 3])) for line in self._part()]
        head = ["assert k >= 1", "N, M = x.shape", "s = 0.0", "y = np.zeros((N, M))"]
        signature = ", ".join(f'{n}: real["{" ".join(s)}"]' for n, s in self.shapes.items())
        size = f", k: int = {rng.choice([2, 3])}"
        lines = [f"def {name}({signature}{size}):", *indented([*head, *body, "return y + s"])]
        self.text = "\n".join(["@layer", *lines]) + "\n"

    def _part(self) -> Lines:
        return self.rng.choice([self._window, self._window, self._lines, self._lines, self._lines])()

    def _new(self, base: str) -> str:
        self.names += 1
        return f"{base}{self.names}"

    # -- windows of slices -------------------------------------------------------------------------------------
    def _window(self) -> Lines:
        rng = self.rng
        z, count, by = self._new("z"), rng.choice(["3", "3", "2", "k"]), rng.choice([1, 1, 2])
        h, q = self._new("h"), self._new("q")
        sizes = [f"{h}, {q} = (N - {count}) // {by} + 1, (M - {count}) // {by} + 1"]
        a, b = self._new("a"), self._new("b")
        step = f" : {by}" if by > 1 else ""
        rows = f"{a} : {a} + {by} * {h}{step}" if by > 1 else f"{a} : {a} + {h}"
        columns = f"{b} : {b} + {by} * {q}{step}" if by > 1 else f"{b} : {b} + {q}"
        part = f"{rng.choice(['x', 'x', 'x', 'y'])}[{rows}, {columns}]"
        g = self._new("g")
        inside = rng.choice(
            [
                [f"{z} += {part} * w[{a} % 3, {b} % 3]"],
                [f"{z} = np.maximum({z}, {part})"],
                [f"{g} = np.tanh({part})", f"{z} += {g} * {part}", f"s += np.sum({g})"],
                [f"{z} += {part} ** 2", f"{z} *= 0.5"],
                [f"{g} = {part} * w[{a} % 3, 0]", f"{z} += {g}", f"y[:{h}, :{q}] += 0.1 * {g}"],
            ]
        )
        loops = [f"for {a} in range({count}):", f"    for {b} in range({count}):", *indented(indented(inside))]
        if rng.random() < 0.3:
            loops = [f"for {b} in range({count}):", f"    for {a} in range({count}):", *indented(indented(inside))]
        return [*sizes, f"{z} = np.zeros(({h}, {q}))", *loops, f"y[:{h}, :{q}] += {z}"]

    # -- rows or columns one by one ------------------------------------------------------------------------------
    def _lines(self) -> Lines:
        rng = self.rng
        i, j, m, t = self._new("i"), self._new("j"), self._new("m"), self._new("t")
        columns = rng.random() < 0.6
        outer, inner = ("M", "N") if columns else ("N", "M")
        place = f"[{j}, {i}]" if columns else f"[{i}, {j}]"
        first = f"[0, {i}]" if columns else f"[{i}, 0]"
        x, y = f"x{place}", f"y{place}"
        start, found = rng.choice(
            [
                ("0.0", [f"{m} += {x}"]),
                ("0.0", [f"{m} += {x} * {y}"]),
                (f"x{first}", [f"{m} = max({m}, {x})"]),
                (f"x{first}", [f"if {x} > {m}:", f"    {m} = {x}"]),
                ("-1e30", [f"{m} = max({m}, {x})", f"{y} += 0.5 * {m}"]),
                ("0.0", [f"{m} = 0.5 * {m} + {x}", f"{y} += {m}"]),
                ("1e30", [f"{m} = min({m}, {x} * {x})"]),
                (f"x{first}", [f"if {x} < 0.1:", "    continue", f"{m} = max({m}, {x})"]),
                ("-np.inf", [f"{y} += 0.3 * {x}", f"{m} = max({m}, {y})"]),
                (f"x{first}", [f"if {i} != {j}:", f"    {m} = max({m}, {x} - w[{i} % 3, {j} % 3])"]),
                ("1e30", [f"{t} = {x} + x{first}", f"{m} = min({t} - {y}, {m})"]),
            ]
        )
        used = rng.choice(
            [
                [f"{y} += np.tanh({x} - {m})", f"{t} += {y}"],
                [f"{y} = 0.5 * {y} + {x} * {m}", f"{t} += {x} * {m}"],
                [f"{t} = np.tanh(0.5 * {t} + {x} * {m})", f"{y} += {t}"],
                [f"if {x} < {m}:", f"    {t} += {x}", "else:", f"    {t} += np.sqrt(1.0 + {x} * {x})"],
            ]
        )
        ends = rng.choice(
            [
                [f"for {j} in range({inner}):", f"    {y} /= 1.0 + {t} * {t}"],
                [f"s += 0.1 * {t}"],
                [f"for {j} in range({inner}):", f"    {y} += 0.3 * np.tanh({t})"],
            ]
        )
        size = rng.choice([inner, inner, inner, f"max({inner} - 1, 0)"])
        body = [
            f"{m} = {start}",
            f"for {j} in range({size}):",
            *indented(found),
            f"{t} = 0.0",
            f"for {j} in range({inner}):",
            *indented(used),
            *ends,
        ]
        return [f"for {i} in range({outer}):", *indented(body)]
