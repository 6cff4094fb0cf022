"""Programs of windows: loops over places and over what is around each, whose border a branch asks for, the ends of the
loop cut off, or that is held at the edge or around the axis; sums, products with weights and matrices, extremes.
"""

from __future__ import annotations

import random

from fuzzing.lines import Lines, indented


class Windowed:
    """One program: `text`, of a layer `name` with x of one to three axes (channels first or last), weights w and a matrix
    m. `shapes`: of its arguments, by their dims."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.axes = rng.choice([1, 1, 2])  # along which windows go
        self.channels = rng.choice(["", "", "first", "last"])
        self.width = rng.choice(["2", "3", "w.shape[0]"])
        self.offset = rng.choice(["0", "1", "-1", "w.shape[0] // 2", "2"])
        self.step = rng.choice(["", "", "", "2 * "])
        self.places = ["N", "M"][: self.axes]
        shape = self.places
        shape = ["C", *shape] if self.channels == "first" else [*shape, "C"] if self.channels == "last" else shape
        self.shapes = {"x": shape, "w": ["K"], "m": ["C", "D"]}
        extents = [f"{n} = x.shape[{shape.index(n)}]" for n in shape]
        body = self._nest()
        if rng.random() < 0.3 and not self._is_product:
            body = [*body, "x = y", *self._nest()]
        signature = ", ".join(f'{n}: real["{" ".join(s)}"]' for n, s in self.shapes.items())
        lines = [f"def {name}({signature}):", *indented([*extents, "D = m.shape[1]", *body, "return y"])]
        self.text = "\n".join(["@layer", *lines]) + "\n"

    def _nest(self) -> Lines:
        rng = self.rng
        self._is_product = bool(self.channels) and rng.random() < 0.5
        out = ["D" if n == "C" and self._is_product else n for n in self.shapes["x"]]
        start = "np.zeros" if rng.random() < 0.8 or self._is_product else "np.ones"
        counters = [f"i{k}" for k in range(self.axes)]
        windows = [f"j{k}" for k in range(self.axes)]
        borders = [rng.choice(["ask", "ask", "cut", "hold", "hold", "around", "clip"]) for _ in counters]
        places = [f"{self.step}{i} + {j} - {self.offset}" for i, j in zip(counters, windows, strict=True)]
        asked = [f"0 <= {p} < {n}" for p, n, b in zip(places, self.places, borders, strict=True) if b in ("ask", "cut")]
        seen = [self._held(p, n, b) for p, n, b in zip(places, self.places, borders, strict=True)]
        heads = [f"for {i} in range({n}):" for i, n in zip(counters, self.places, strict=True)]
        inner = [self._window(*args) for args in zip(windows, counters, self.places, borders, strict=True)]
        core = self._core(counters, windows, seen)
        if asked and rng.random() < 0.5:
            core = [f"if {' and '.join(asked)}:", *indented(core)]
        elif asked:
            for condition in reversed(asked):
                core = [f"if {condition}:", *indented(core)]
        if self.channels:
            inner = [*inner, *self._loops] if rng.random() < 0.5 else [*self._loops, *inner]
        for head in reversed([*heads, *inner]):
            core = [head, *indented(core)]
        return [f"y = {start}(({', '.join(out)},))", *core]

    @property
    def _loops(self) -> Lines:
        return ["for c in range(C):", "for d in range(D):"] if self._is_product else ["for c in range(C):"]

    def _window(self, j: str, i: str, n: str, border: str) -> str:
        first = f"{self.step}{i} - {self.offset}"
        if border == "cut":
            return f"for {j} in range(max(0, -({first})), min({self.width}, {n} - ({first}))):"
        if self.rng.random() < 0.3:
            return f"for {j} in range(-1, {self.width} - 1):"
        return f"for {j} in range({self.width}):"

    def _held(self, place: str, n: str, border: str) -> str:
        held = [f"min(max({place}, 0), {n} - 1)", f"max(min({place}, {n} - 1), 0)"]
        return {
            "hold": self.rng.choice(held),
            "clip": f"np.clip({place}, 0, {n} - 1)",
            "around": f"({place}) % {n}",
        }.get(border, place)

    def _core(self, counters: Lines, windows: Lines, seen: Lines) -> Lines:
        def at(places: Lines, channel: str) -> str:
            if not self.channels:
                return ", ".join(places)
            return ", ".join([channel, *places] if self.channels == "first" else [*places, channel])

        x, here = f"x[{at(seen, 'c')}]", f"x[{at(counters, 'c')}]"
        y = f"y[{at(counters, 'd' if self._is_product else 'c')}]"
        weight = self.rng.choice([f"w[({windows[0]} + 1) % w.shape[0]]", "0.3", f"(0.2 * {windows[-1]} - 0.1)"])
        if self._is_product:
            return [
                f"{y} += {self.rng.choice([x + ' * m[c, d]', f'{weight} * {x} * m[c, d]', f'np.sin({x}) * m[c, d]'])}"
            ]
        values = [f"{weight} * {x}", f"np.tanh({x} - {here})", f"{weight} * np.exp(-({x} - {here}) ** 2)"]
        kinds = [f"{y} += {self.rng.choice(values)}", f"{y} = max({y}, {x})", f"{y} += {self.rng.choice(values)}"]
        return [self.rng.choice(kinds)]
