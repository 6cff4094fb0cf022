"""Loops that write and read at places drawn at random: halves, steps, places that count from the end, places that meet
or do not. Values are those of NumPy, gradients those of differences."""

from __future__ import annotations

import random

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

COUNT = 25  # layers of a file
SIZES = [3, 4, 5, 6, 7, 8, 9, 12, 13]
FEWEST = 3  # of the sizes that the places of a layer must be in range for

BEGINNINGS = ["np.zeros_like(x)", "np.zeros_like(x)", "x * 0.5", "np.copy(x)"]
ENDS = ["n", "n // 2", "n - 1", "n // 2 + 1", "n - 2", "n // 3"]
VALUES = ["{x} ** 2", "{x} * {also}", "np.sin({x})", "{y} * {x}", "0.5 * {y} + {x}", "{x} * 2"]


def place(r: random.Random) -> str:
    """A subscript: a few steps of i, from the start, the middle or the end."""
    step, shift = r.choice([1, 1, 1, 1, 2, 2, -1, 3]), r.choice([0, 0, 0, 1, -1, 2, -2, -3])
    text = {1: "i", -1: "-i"}.get(step, f"{step} * i")
    base = r.choice(["", "", "", "n // 2", "n"])
    if base and step < 0:
        text = f"{base} - i"
    elif base:
        text = f"{text} - {base}" if base == "n" or r.random() < 0.4 else f"{base} + {text}"
    return text + (f" {'+' if shift > 0 else '-'} {abs(shift)}" if shift else "")


def drawn(r: random.Random, name: str) -> str:
    lines = [
        "@layer",
        f'def {name}(x: real["N"]) -> real["N"]:',
        "    n = x.shape[0]",
        f"    y = {r.choice(BEGINNINGS)}",
    ]
    for _ in range(r.choice([1, 1, 2])):
        count = f"range({r.choice(ENDS)})"
        lines.append(f"    for i in {count if r.random() < 0.8 else f'reversed({count})'}:")
        for _ in range(r.choice([1, 2, 2, 3])):
            indent = "        "
            if r.random() < 0.2:
                lines.append(f"{indent}if {r.choice(['i > 1', 'i % 2 == 0'])}:")
                indent += "    "
            value = r.choice(VALUES).format(x=f"x[{place(r)}]", also=f"x[{place(r)}]", y=f"y[{place(r)}]")
            lines.append(f"{indent}y[{place(r)}] {r.choice(['=', '=', '=', '+='])} {value}")
    return "\n".join([*lines, "    return y"])


def sizes(text: str, name: str) -> list[int]:
    """Those that all places are in range for, by NumPy, and no number grows out of hand."""
    scope: dict[str, object] = {"np": np}
    exec(text.replace("@layer\n", "").replace('(x: real["N"]) -> real["N"]', "(x)"), scope)
    found = []
    for n in SIZES:
        try:
            y = scope[name](np.random.default_rng(n).uniform(-1, 1, n))  # type: ignore[operator]
        except IndexError:
            continue
        if np.all(np.isfinite(y)) and np.max(np.abs(y)) < 1e4:
            found.append(n)
    return found


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(4))
def test_places_drawn_at_random(tmp_path, seed):
    r, layers, fitting = random.Random(seed), [], []
    while len(layers) < COUNT:
        text = drawn(r, f"places_{len(layers)}")
        if len(here := sizes(text, f"places_{len(layers)}")) >= FEWEST:
            layers.append(text)
            fitting.append(here)
    head = "import numpy as np\nfrom layerc import layer, real\n"
    package = built_from(tmp_path, f"places_{seed}", "\n\n\n".join([head, *layers]) + "\n")
    for k, (text, here) in enumerate(zip(layers, fitting, strict=True)):
        for n in here:
            rng = np.random.default_rng(n)
            try:
                agrees(getattr(package, f"places_{k}"), [rng.uniform(-1, 1, (2, n))], rng, 1e-10, 3e-5)
            except Exception as fault:
                pytest.fail(f"{fault}\nof {n}:\n\n{text}")
