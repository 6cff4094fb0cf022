"""Layers that go over windows, drawn at random: how wide, how far apart, along which axes, what a border asks, and what
is done with what is there. Values are those of NumPy, gradients those of differences; threads change no bit."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

COUNT = 8  # layers of a file
SIZES = [(1, 1, 1), (2, 3, 5), (1, 4, 33), (3, 2, 70), (2, 1, 1100)]  # examples, height, width

# What stands before a window, for each place of it that is there, and behind it.
FORMS = {
    "added": ([], ["{y} += {x} * {w}"], []),
    "spread": ([], ["{there} += {here} * {w}"], []),
    "squared": (["total = 0.3"], ["total += np.sin({x}) * {w}"], ["{y} = total * total"]),
    "mean": (
        ["total = 0.0", "weight = 1.0"],
        ["total += {x} * {w}", "weight += {w} * {w} + {x} * {x}"],
        ["{y} = total / weight"],
    ),
    "own": (
        ["total = 0.0", "weight = 2.0"],
        ["d = {x} - {w}", "e = np.tanh(d)", "weight += e * e", "total += e * {x}"],
        ["{y} = total / weight"],
    ),
    "largest": (["total = -9.0"], ["total = max(total, {x} * {w})"], ["{y} = total"]),
}


@dataclass(frozen=True)
class Drawn:
    """A layer, and the shapes of its arguments but for sizes."""

    text: str
    plane: bool  # a window of two axes
    weights: tuple[int, ...]


def drawn(r: random.Random, name: str) -> Drawn:
    plane, channels, form = r.random() < 0.6, r.random() < 0.5, r.choice(list(FORMS))
    wide, high = (r.choice([2, 3, 3, 5]), r.choice([1, 2, 3])) if plane else (r.choice([1, 2, 3, 4, 5, 7, 9]), 1)
    step, back, up = r.choice([1, 1, 1, 2, 3]), r.choice([0, wide // 2, wide - 1, -1]), r.choice([0, high // 2])
    column = f"j - b + {back}" if step == 1 and r.random() < 0.3 else f"{step} * j + b - {back}"
    row = f"i + a - {up}, " if plane else ""
    asked = [f"0 <= {column} < n", *([f"0 <= i + a - {up} < h"] if plane else [])]
    r.shuffle(asked)
    own = "i, j" if plane else "j"
    places = {
        "x": f"x[k, {row}{column}]",
        "w": f"w[{'k, ' if channels else ''}{'a, b' if plane else 'b'}]",
        "y": f"y[k, {own}]",
        "there": f"y[k, {row}{column}]",
        "here": f"x[k, {own}]",
    }
    weights = (*((2,) if channels else ()), *((high, wide) if plane else (wide,)))
    before, inside, behind = FORMS[form]
    axes = "C H W" if plane else "C W"
    lines = [
        "@layer",
        f'def {name}(x: real["{axes}"], w: Param[real["{" ".join(map(str, weights))}"]]) -> real["{axes}"]:',
        f"    c, {'h, ' if plane else ''}n = x.shape",
        "    y = np.zeros_like(x)",
        f"    for k in range({2 if channels else 'c'}):",
    ]
    depth = 2

    def put(texts: list[str]) -> None:
        lines.extend("    " * depth + text.format(**places) for text in texts)

    for loop in (["for i in range(h):"] if plane else []) + ["for j in range(n):"]:
        put([loop])
        depth += 1
    put(before)
    outside = depth
    for loop in ([f"for a in range({high}):"] if plane else []) + [f"for b in range({wide}):"]:
        put([loop])
        depth += 1
    put([f"if {' and '.join(asked)}:"])
    depth += 1
    put(inside)
    depth = outside
    put(behind)
    return Drawn("\n".join([*lines, "    return y"]), plane, weights)


@pytest.mark.parametrize(
    "seed", [1, 2, pytest.param(3, marks=pytest.mark.heavy), pytest.param(4, marks=pytest.mark.heavy)]
)
def test_windows_drawn_at_random(tmp_path, seed):
    r = random.Random(seed)
    layers = [drawn(r, f"window_{k}") for k in range(COUNT)]
    head = "import numpy as np\nfrom layerc import Param, layer, real\n"
    package = built_from(tmp_path, f"windows_{seed}", "\n\n\n".join([head, *(x.text for x in layers)]) + "\n")
    for k, one in enumerate(layers):
        layer = getattr(package, f"window_{k}")
        for examples, high, wide in SIZES:
            rng = np.random.default_rng(wide)
            x = rng.standard_normal((examples, 2, *((high,) if one.plane else ()), wide))
            values = [x, rng.standard_normal(one.weights)]
            try:
                agrees(layer, values, rng, 1e-9, 1e-4, exact=False)
                same_bits(layer, [v.astype(np.float32) for v in values])
            except Exception as fault:
                pytest.fail(f"{fault}\nof {x.shape}:\n\n{one.text}")
