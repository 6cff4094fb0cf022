"""Programs dense in names for the same few arrays: bound anew on branches, in loops and by helpers, swapped, returned
early, and written into under any of their names. All arrays are of one shape, so nearly every program is well-typed;
matrices have rows with names besides, which outlive the iterations that bind them.
"""

from __future__ import annotations

import random

from fuzzing.lines import Lines, indented

# Helpers that choose between their arguments and write into them; [I] is an element.
_HELPERS: tuple[Lines, ...] = (
    ["if p[I] > r[I]:", "    p[I] += 0.5", "    return p", "r[I] *= 0.5", "return r"],
    ["z = p", "if r[I] > 0:", "    z = r", "z[I] = 0.25", "return z"],
    ["for i in range(2):", "    if p[I] > 0:", "        p, r = r, p", "    p[I] -= 0.5", "return p"],
    ["if p[I] > 0:", "    return r", "return p * 0.5"],
    ["p += 0.25", "return r"],
)


class Aliased:
    """One program: `text`, of a layer `name` with the arrays `inputs` of `rank` 1 or 2 and a scalar s."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.rank = rng.choice([1, 1, 2])
        self.inputs = ["a", "b", "c"][: rng.choice([2, 2, 3])]
        self.names = [*self.inputs, *["u", "v", "w"][: rng.choice([1, 2, 3])]]
        self.rows = ["p", "q"][: rng.choice([0, 1, 2])] if self.rank == 2 else []
        self.returned = ", ".join(rng.sample(self.names, rng.choice([2, len(self.names)])))
        self.loops = 0
        self.counters: list[str] = []  # of the loops around
        self.helpers: list[Lines] = []
        body = [self._first(n) for n in self.names[len(self.inputs) :]]
        body += [f"{row} = {rng.choice(self.names)}[{rng.choice(['0', '-1'])}]" for row in self.rows]
        body += self._block(rng.choice([3, 4, 5, 6]), depth=0, loops=0)
        dims = " ".join(["N"] * self.rank)
        signature = ", ".join([*(f'{n}: real["{dims}"]' for n in self.inputs), "s: real"])
        lines = [f"def {name}({signature}):", "    N = a.shape[0]", *indented(body), f"    return {self.returned}"]
        self.text = "\n".join([*(line for h in self.helpers for line in [*h, "", ""]), "@layer", *lines]) + "\n"

    # -- expressions -------------------------------------------------------------------------------------------
    def _one(self) -> str:
        return self.rng.choice(self.names)

    def _element(self, name: str) -> str:
        ends = ["0", "-1"] if self.rank == 2 else ["0", "-1", "N - 1"]
        return f"{name}[{', '.join(self.rng.choice(ends) for _ in range(self.rank))}]"

    def _scalar(self) -> str:
        element = self._element(self._one())
        return self.rng.choice([element, "s", self.rng.choice(["0.5", "-0.5", "1.0"]), f"{element} * 0.5"])

    def _condition(self) -> str:
        left, right = self._element(self._one()), self._element(self._one())
        return f"{self.rng.choice([left, left, 's'])} > {self.rng.choice(['0', '0.5', '-0.5', right])}"

    def _array(self, depth: int = 0) -> str:
        """A name mostly; else a view, a choice, or a new array."""
        name, kind = self._one(), self.rng.random()
        if kind < 0.15 and depth < 2:
            return f"({self._array(depth + 1)} if {self._condition()} else {self._array(depth + 1)})"
        if kind < 0.5:
            views = [f"{name}[::-1]", f"{name}.T" if self.rank == 2 else f"{name}[:]"]
            made = [f"{name} * {self.rng.choice(['0.5', '-1', 's'])}", f"np.sin({name})", f"{name}.copy()"]
            return self.rng.choice([*views, *made, f"{name} - {self._one()}"])
        return name

    def _first(self, name: str) -> str:
        one, other = self.rng.choice(self.inputs), self.rng.choice(self.inputs)
        if self.rng.random() < 0.5:
            return f"{name} = {one}"
        return f"{name} = {one} if {self.rng.choice(['s', self._element(other)])} > 0 else {other}"

    # -- statements --------------------------------------------------------------------------------------------
    def _block(self, count: int, depth: int, loops: int) -> Lines:
        lines: Lines = []
        for _ in range(count):
            kind = self.rng.random()
            if self.rows and self.rng.random() < 0.35:
                lines += self._row()
            elif kind < 0.4:
                lines += self._store()
            elif kind < 0.65:
                lines.append(self._bind())
            elif kind < 0.82 and depth < 3:
                lines += self._branch(depth, loops)
            elif kind < 0.92 and depth < 2 and loops < 2:
                lines += self._loop(depth, loops)
            elif kind < 0.95 and loops:
                lines += [f"if {self._condition()}:", f"    {self.rng.choice(['break', 'continue'])}"]
            elif kind < 0.97 and depth:
                lines += [f"if {self._condition()}:", f"    return {self.returned}"]
            else:
                lines += self._store()
        return lines

    def _branch(self, depth: int, loops: int) -> Lines:
        lines = [f"if {self._condition()}:", *indented(self._block(self.rng.choice([1, 1, 2]), depth + 1, loops))]
        if self.rng.random() < 0.4:
            lines += ["else:", *indented(self._block(self.rng.choice([1, 1, 2]), depth + 1, loops))]
        return lines

    def _loop(self, depth: int, loops: int) -> Lines:
        self.loops += 1
        i = f"i{self.loops}"
        self.counters.append(i)
        body = indented(self._block(self.rng.choice([2, 3]), depth + 1, loops + 1))
        self.counters.pop()
        if self.rng.random() < 0.75:
            return [f"for {i} in range({self.rng.choice([1, 2, 3])}):", *body]
        return [f"{i} = 0", f"while {i} < 3 and {self._condition()}:", f"    {i} += 1", *body]

    def _store(self) -> Lines:
        name, other = self._one(), self._one()
        view = self.rng.choice(["[1:]", "[::-1]", "[::2]", ".T" if self.rank == 2 else "[:-1]"])
        kinds = [
            [f"{self._element(name)} {self.rng.choice(['=', '+=', '*=', '-='])} {self._scalar()}"],
            [f"{name} {self.rng.choice(['+=', '-='])} {self.rng.choice([self._scalar(), f'0.5 * {other}', other])}"],
            [f"{name} *= {self.rng.choice(['0.5', '-0.7', 's'])}"],
            [f"{name}[1:] {self.rng.choice(['=', '+='])} 0.5 * {other}[{self.rng.choice([':-1', '1:'])}]"],
            [self.rng.choice([f"{name}[...] = {other}", f"{name}[:] = {other} * 0.5"])],
            [f"{name}[{name} > 0.3] {self.rng.choice(['=', '*='])} {self.rng.choice(['0.4', '-0.5'])}"],
            [f"t = {name}{view}", f"t *= {self.rng.choice(['0.5', 's'])}"],
            [f"{self._element(name)}, {self._element(other)} = {self._scalar()}, {self._scalar()}"],
            [f"w = 0.5 * {other}", f"{self._element(other)} += 0.3 * {self._element(name)}", f"{name} += w"],
        ]
        if self.rng.random() < 0.1:
            return [f"{self._one()} = {self._helper()}({name}, {other})"]
        return self.rng.choices(kinds, weights=[6, 3, 2, 2, 1, 2, 1, 1, 2])[0]

    def _row(self) -> Lines:
        """A row bound anew, swapped, or written into."""
        row, other, matrix = self.rng.choice(self.rows), self.rng.choice(self.rows), self._one()
        places = ["0", "-1", *(f"{i} % N" for i in self.counters), f"np.argmax({matrix}[:, 0])"]
        bound = f"{row} = {matrix}[{self.rng.choice(places)}]"
        kinds = [
            [bound],
            [f"if {row}[0] > {self.rng.choice(['0', other + '[-1]', 's'])}:", f"    {bound}"],
            [f"{row}, {other} = {other}, {row}"] if row != other else [f"{row} = {row}[::-1]"],
            [f"{row}[{self.rng.choice(['0', '-1'])}] {self.rng.choice(['=', '+=', '*='])} {self._scalar()}"],
            [f"{row} {self.rng.choice(['*=', '+='])} {self.rng.choice(['0.5', 's', other + '[0]'])}"],
            [f"{matrix}[{self.rng.choice(places)}] = {row} * 0.5"],
        ]
        return self.rng.choices(kinds, weights=[3, 3, 1, 2, 2, 1])[0]

    def _helper(self) -> str:
        name, element = f"{self.name}_helper{len(self.helpers)}", ", ".join(["0"] * self.rank)
        body = [line.replace("[I]", f"[{element}]") for line in self.rng.choice(_HELPERS)]
        self.helpers.append([f"def {name}(p, r):", *indented(body)])
        return name

    def _bind(self) -> str:
        kind = self.rng.random()
        if kind < 0.6:
            return f"{self._one()} = {self._array()}"
        if kind < 0.85:
            to = self.rng.sample(self.names, 2)
            of = self.rng.sample(self.names, 2) if self.rng.random() < 0.4 else to[::-1]
            if self.rng.random() < 0.3:
                chosen = f"({', '.join(of)}) if {self._condition()} else ({self._one()}, {self._one()})"
                return f"{', '.join(to)} = {chosen}"
            return f"{', '.join(to)} = {', '.join(of)}"
        turned = self.rng.sample(self.names, min(3, len(self.names)))
        return f"{', '.join(turned)} = {', '.join([*turned[1:], turned[0]])}"
