"""Random programs that write into one array again and again, in nested loops: what `undo.py` and `operands.py` reverse.

    for i in range(n):
        for k in range(i):
            if k != i:
                s = np.sin(m[n - 1 - k, i]) * a[i, k]
                m[k, i:] -= 0.1 * (s * m[0, k]) * m[k, i:]
    return m * m

Nothing is compiled: the gradient runs as NumPy source, many programs a second.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from layerc.adjoint.gradient import gradient_file
from layerc.transpile.layers import check_file

DEEPEST = 3  # loops in loops
STEP = 1e-6


@dataclass
class Program:
    """`rank`: the axes of the array, each of n."""

    seed: int
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.rank = self.draw.choice((1, 2, 2))
        self.loops = self.draw.randint(2, 5)
        self.block([], [], "    ", branches=0)
        self.final = self.draw.choice(("m", "m", "m * a", "m * m"))

    @property
    def text(self) -> str:
        shape = " ".join(["n"] * self.rank)
        head = f'@layer\ndef f(a: real["{shape}"]) -> real["{shape}"]:\n    m = a.copy()\n    n = a.shape[0]\n'
        body = "\n".join(self.lines)
        return f"import numpy as np\nfrom layerc import layer, real\n\n\n{head}{body}\n    return {self.final}\n"

    # -- statements --------------------------------------------------------------------------------------------
    def block(self, counters: list[str], values: list[str], indent: str, branches: int) -> None:
        for _ in range(self.draw.randint(1, 3)):
            kind = self.draw.random()
            if len(counters) < DEEPEST and not branches and self.loops and kind < (0.45 if counters else 0.75):
                self.loops -= 1
                counter = "ijk"[len(counters)] + self.draw.choice(("", "", str(self.loops)))
                self.lines.append(f"{indent}for {counter} in {self.range(counters)}:")
                self.block([*counters, counter], [*values], indent + "    ", 0)
            elif kind < 0.55 and len(counters) > 1 and branches < 2:
                one, other = self.draw.sample(counters, 2)
                self.lines.append(f"{indent}if {one} {self.draw.choice(('!=', '<', '>', '==', '<='))} {other}:")
                self.block(counters, [*values], indent + "    ", branches + 1)
            elif kind < 0.68:
                values.append(f"s{len(self.lines)}")
                self.lines.append(f"{indent}{values[-1]} = {self.value(counters, values[:-1])}")
            else:
                self.lines.append(indent + self.write(counters, values))

    def range(self, counters: list[str]) -> str:
        whole = ["range(n)", "range(n)", "range(1, n)", "range(n - 1)", "range(n - 1, -1, -1)"]
        of = [f"range({c} + 1, n)" for c in counters] + [f"range({c})" for c in counters]
        return self.draw.choice([*whole, *of])

    def write(self, counters: list[str], values: list[str]) -> str:
        place, value = self.place(counters), self.value(counters, values)
        along = f" * {place}" if ":" in place or place.count(",") < self.rank - 1 else ""
        forms = [
            f"= np.tanh({value}){along}",
            f"= 0.7 * {place} + 0.1 * ({value}){along}",
            f"+= 0.1 * ({value}){along}",
            f"-= 0.1 * ({value}){along}",
            f"*= 1 + 0.1 * ({value})",
        ]
        return f"{place} {self.draw.choice(forms)}"

    # -- places and values -------------------------------------------------------------------------------------
    def index(self, counters: list[str]) -> str:
        at = self.draw.choice(counters or ["0"])
        usual, others = [at] * 6, [f"n - 1 - {at}", "0", "n - 1", "-1", f"({at} + 1) % n", f"{at} // 2"]
        return self.draw.choice([*usual, *others])

    def number(self, counters: list[str], array: str = "m") -> str:
        return f"{array}[{', '.join(self.index(counters) for _ in range(self.rank))}]"

    def place(self, counters: list[str]) -> str:
        kind, start = self.draw.random(), self.draw.choice(counters or ["1"])
        if kind < 0.75:
            return self.number(counters)
        if self.rank == 1:
            return f"m[{start}:]"
        return f"m[{self.index(counters)}, {start}:]" if kind < 0.9 else f"m[{self.index(counters)}]"

    def value(self, counters: list[str], values: list[str]) -> str:
        found = []
        for _ in range(self.draw.randint(1, 2)):
            part = self.draw.choice([self.number(counters)] * 3 + [self.number(counters, "a"), *values])
            found.append(self.draw.choice(("{}", "{}", "np.sin({})", "0.5 * {}", "np.cos({})")).format(part))
        return self.draw.choice((" * ", " + ")).join(found)


def fault(program: Program, sizes: tuple[int, ...] = (4, 1, 2, 3)) -> str | None:
    """What is wrong with the gradient of a program; None: it agrees with differences."""
    forward: dict[str, Any] = {}
    backward: dict[str, Any] = {}
    exec(program.text, forward)
    exec(gradient_file(check_file(Path("f.py"), program.text)), backward)
    f, d_f = forward["f"].fn, backward["d_f"]
    rng = np.random.default_rng(program.seed)
    for n in sizes:
        a, way = 0.5 * rng.standard_normal((2, *[n] * program.rank))
        try:
            y, ends = f(a), [f(a + s * way) for s in (STEP, -STEP)]
        except IndexError:
            continue  # m[1:] of one number is none, m[1 % 0] nothing
        dy = rng.standard_normal(a.shape)
        given = {"a": a, "y": y, "dy": dy}
        names = d_f.__code__.co_varnames[: d_f.__code__.co_argcount]
        found = d_f(**{name: given[name].copy() for name in names})
        want, got = np.sum(dy * (ends[0] - ends[1])) / (2 * STEP), np.sum(found * way)
        if not abs(want - got) <= 1e-5 * (1 + abs(want) + np.sum(np.abs(found))):
            return f"seed {program.seed}, n = {n}: {got}, by differences {want}\n{program.text}"
    return None


__all__ = ["Program", "fault"]
