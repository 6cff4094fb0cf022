"""Small layers that draw random numbers, one a row: by its name, its parameters, its body, the shapes of its arrays."""

from __future__ import annotations

from typing import Any

HEAD = """\
import numpy as np
from layerc import Layer, Param, Random, State, bool_, config, i64, init, layer, real

"""

# A layer a row, by its name: its parameters, its body, the shapes of its arrays.
LAYERS: dict[str, tuple[str, str, tuple[tuple[int, ...], ...]]] = {
    "uniform01": ('x: real["N M"]', "return x * 0 + rng.random(x.shape)", ((3, 5),)),
    "limits": ('x: real["N M"]', "return x * 0 + rng.uniform(-1.5, 2, x.shape)", ((3, 5),)),
    "limits_of_arrays": ('x: real["N M"], a: real["M"]', "return x * 0 + rng.uniform(a - 1, high=a * a, shape=x.shape)", ((3, 5), (5,))),
    "as_large_as_its_limits": ('a: real["M"]', "return rng.uniform(np.exp(a), 3)", ((5,),)),
    "normal": ('x: real["N M"]', "return x * 0 + rng.standard_normal(x.shape)", ((3, 5),)),
    "whole": ('x: real["N M"]', "return x * 0 + rng.integers(-3, 12, x.shape)", ((3, 5),)),
    "whole_below": ('x: real["N"]', "return x * 0 + rng.integers(7, shape=x.shape)", ((9,),)),
    "whole_by_size": ('x: real["N"]', "return x * 0 + rng.integers(low=2, high=x.size + 3, size=x.size)", ((9,),)),
    "coin": ('x: real["N M"]', "return np.where(rng.bernoulli(0.3, x.shape), x, 0)", ((3, 5),)),
    "coin_of_arrays": ('x: real["N"]', "return np.where(rng.bernoulli(np.abs(x)), x, -1)", ((9,),)),
    "scalars": (
        'x: real["N"]',
        "return x * rng.random() + rng.uniform(1, 2) + rng.standard_normal(()) * rng.integers(5) + rng.bernoulli(0.5, shape=())",
        ((9,),),
    ),
    "in_order": ('x: real["N"]', "return rng.random(x.shape) - 2 * rng.random(x.shape) + x * 0", ((9,),)),
    "unused": ('x: real["N"]', "rng.random(3)\nreturn x * rng.random(x.shape)", ((9,),)),
    "kept": ('x: real["N"]', "e = rng.random(x.shape)\ny = x + e\nreturn y * e", ((9,),)),
    "branch": (
        'x: real["N"]',
        "y = x\nif x[0] > 0:\n    y = y + rng.random(x.shape)\n    y = y * rng.random()\nelse:\n    y = y - rng.random()\n"
        "return y * rng.random(x.shape)",
        ((9,),),
    ),
    "branch_alone": ('x: real["N"]', "y = x\nif x[0] > 0:\n    y = y + rng.random(x.shape)\nreturn y * rng.random(x.shape)", ((9,),)),
    "choice": ('x: real["N"]', "y = (rng.random() if x[0] > 0 else 1.0) * x\nreturn y * rng.random(x.shape)", ((9,),)),
    "either": ('x: real["N"]', "a = x[0] > 0 or rng.random() < 0.5\nreturn np.where(a, x, -x) * rng.random()", ((9,),)),
    "both": ('x: real["N"]', "a = x[0] > 0 and rng.random() < 0.5\nreturn np.where(a, x, -x) * rng.random()", ((9,),)),
    "loop": (
        'x: real["T D"]',
        "h = np.zeros(x.shape[1])\ny = np.zeros_like(x)\nfor t in range(x.shape[0]):\n    h = np.tanh(h) + x[t] * rng.random(h.shape)\n"
        "    y[t] = h\nreturn y * rng.random()",
        ((4, 5),),
    ),
    "steps": (
        'x: real["T"]',
        "s = np.zeros(3)\nfor t in range(7, 1, -2):\n    s = s + rng.standard_normal(3) * x[t]\nreturn s * rng.random()",
        ((9,),),
    ),
    "nested": (
        'x: real["T D"]',
        "s = 0.0\nfor t in range(x.shape[0]):\n    s = s + rng.random()\n    for d in range(x.shape[1]):\n        s = s + x[t, d] * rng.random()\n"
        "    s = s * rng.random()\nreturn s + rng.random()",
        ((4, 5),),
    ),
    "triangle": (
        'x: real["T"]',
        "s = 0.0\nfor t in range(x.size):\n    for k in range(t):\n        s = s + x[k] * rng.random()\nreturn s + rng.random()",
        ((5,),),
    ),
    "over_rows": ('x: real["T D"]', "s = np.zeros(x.shape[1])\nfor i, row in enumerate(x):\n    s += row * rng.random(row.shape) * i\nreturn s", ((4, 5),)),
    "collected": ('x: real["T D"]', "rows = [row * rng.random() for row in x]\nreturn np.stack(rows) + rng.random()", ((4, 5),)),
    "appended": ('x: real["T D"]', "ys = []\nfor t in range(x.shape[0]):\n    ys.append(x[t] + rng.random(x.shape[1]))\nreturn np.stack(ys)", ((4, 5),)),
    "conditional_loop": (
        'x: real["T"]',
        "s = x * 0.0\nfor t in range(x.size):\n    if x[t] > 0:\n        s = s + rng.random(x.shape)\nreturn s * rng.random() + x",
        ((6,),),
    ),
    "left": (
        'x: real["T"]',
        "s = x * 1.0\nfor t in range(x.size):\n    if rng.random() < 0.3:\n        break\n    if rng.random() < 0.3:\n        continue\n"
        "    s = s * rng.random(x.shape)\nreturn s + rng.random()",
        ((6,),),
    ),
    "returned": ('x: real["T"]', "if rng.random() < 0.5:\n    return x * rng.random()\ny = x - rng.random()\nreturn y * rng.random()", ((6,),)),
    "until": (
        'x: real["N"]',
        "y = x * 1.0\nwhile rng.random() < 0.8 and np.sum(y) < 30:\n    y = y * (1 + 0.1 * rng.random(x.shape))\n    if rng.random() < 0.5:\n"
        "        y = y + rng.standard_normal(x.shape) * x\nreturn y * rng.random()",
        ((4,),),
    ),
    "counted_while": ('x: real["N"]', "y = x\nk = 0\nwhile k < 3:\n    y = y + rng.random(x.shape) * x\n    k += 1\nreturn y * rng.random()", ((4,),)),
    "helped": ('x: real["N"]', "r = rng\nreturn drop(x, rng, 0.5) + drop(x * x, r, p=0.2) * rng.random()", ((9,),)),
    "enclosed": ('x: real["N"]', "f = lambda a: a * rng.random(a.shape)\nreturn f(x) - f(x) * rng.random()", ((9,),)),
    "inner_function": ('x: real["N"]', "def more(a):\n    e = rng.random()\n    return a * e\nreturn more(x) - more(x) * rng.random()", ((9,),)),
    "by_index": ('x: real["N"]', "return x[rng.integers(0, x.size, 4)] * rng.random()", ((9,),)),
    "one_index": ('x: real["N"]', "return x[rng.integers(x.size)] * rng.random()", ((9,),)),
    "stored": ('x: real["N"]', "y = np.zeros_like(x)\ny[1:] = rng.random()\ny[rng.integers(x.size)] += rng.random()\nreturn y * x", ((9,),)),
    "keywords": ('x: real["N"]', "return np.clip(x, a_max=rng.random(), a_min=rng.random() - 1)", ((9,),)),
    "limits_drawn": ('x: real["N"]', "return x * rng.uniform(rng.random(), 1 + rng.random(), x.shape)", ((9,),)),
    "turned": ('x: real["N M"]', "return rng.random((x.shape[1], x.shape[0])).T * x", ((3, 5),)),
    "a_part": ('x: real["N"]', "return rng.random(2 * x.size)[1::2] * x", ((9,),)),
    "column": ('x: real["N M"]', "return x * rng.standard_normal((x.shape[0], 1))", ((3, 5),)),
    "reduced": ('x: real["N M"]', "return np.sum(rng.random(x.shape) * x, axis=0) @ rng.random((x.shape[1], 2))", ((3, 5),)),
    "numbered": ('x: real["N"]', "return rng.at(2).random(x.shape) * x + rng.random() + rng.at(x.size).uniform(1, 2)", ((9,),)),
    "cumulated": ('x: real["N"]', "return np.cumsum(rng.random(x.shape) * x)", ((9,),)),
    "recurrence": ('x: real["T"]', "h = 0.0\nfor t in range(x.size):\n    h = 0.9 * h + x[t] * rng.random()\nreturn h", ((9,),)),
    "scattered": ('x: real["T"]', "y = np.zeros_like(x)\nnp.add.at(y, rng.integers(0, x.size, 20), rng.random(20))\nreturn y * x", ((9,),)),
    "listed": ('x: real["T"]', "return np.stack([rng.random(x.shape) * k for k in range(3)]) * rng.random()", ((9,),)),
    "drawn_choice": ('x: real["T"]', "a = rng.random(x.shape) if rng.random() < 0.5 else rng.standard_normal(x.shape) * rng.random()\nreturn a * x * rng.random()", ((9,),)),
    "while_in_for": ('x: real["T"]', "s = 0.0\nfor t in range(x.size):\n    k = 0\n    while k < 10 and rng.random() < 0.7:\n        s = s + rng.random() * x[t]\n        k += 1\nreturn s + rng.random()", ((9,),)),
    "branches_alike": ('x: real["T"]', "s = x * 0\nfor t in range(x.size):\n    for k in range(2):\n        if x[t] > 0:\n            s = s + rng.random(x.shape)\n        else:\n            s = s - rng.random(x.shape) * x\nreturn s * rng.random()", ((9,),)),
    "in_tuples": ('x: real["T"]', "return np.stack((x, rng.random(x.shape), rng.random(x.shape))) * rng.random()", ((9,),)),
    "joined_lists": ('x: real["N M"]', "return np.vstack([x * rng.random() for k in range(3)]) * rng.random()", ((3, 4),)),
    "array_of_scalars": ('x: real["T"]', "return np.array([rng.random(), rng.random(), x[0]]) * rng.random()", ((9,),)),
    "largest": ('x: real["T"]', "return x * max(rng.random(), rng.random()) + min((rng.random(), 0.3)) + sum([rng.random(), rng.random()]) + rng.random()", ((9,),)),
    "padded": ('x: real["T"]', "return np.pad(rng.random(x.shape), 2) + np.concatenate((x, rng.random(4)))", ((9,),)),
    "reshaped": ('x: real["N M"]', "return rng.random(x.size).reshape(x.shape) * x + rng.random(x.shape).ravel().reshape(x.shape)", ((3, 4),)),
    "standardised": ('x: real["T"]', "z = rng.standard_normal((x.size, 50))\nreturn x * z.mean(axis=1) / z.std(axis=1)", ((9,),)),
    "short_circuits": ('x: real["T"]', "a = x[0] > 0 and rng.random() < 0.5 and rng.random() < 0.5 or rng.random() < 0.3\nreturn np.where(a, x, -x) * rng.random()", ((9,),)),
    "while_drawn": ('x: real["T"]', "k = 0.0\nwhile not (rng.random() < 0.3 or k > 20):\n    k = k + 1\nreturn x * k + rng.random()", ((9,),)),
    "products": ('x: real["T"]', "return np.roll(rng.random(x.shape), 2) * x + np.einsum('i,i->', rng.random(3), rng.random(3)) + np.tensordot(x, rng.random(x.size), 1) * rng.random()", ((9,),)),
    "two_indices": ('x: real["N M"]', "return x[rng.integers(x.shape[0])] * x[:, rng.integers(x.shape[1])][0] * rng.random() + x[rng.integers(0, x.shape[0], 2), rng.integers(0, x.shape[1], 2)][1]", ((3, 4),)),
    "vae": ('mu: real["D"], logvar: real["D"]', "return mu + np.exp(0.5 * logvar) * rng.standard_normal(mu.shape)", ((5,), (5,))),
    "scale": ('low: real["D"], high: real["D"]', "return np.tanh(rng.uniform(low, high)) * high", ((5,), (5,))),
    "dropout": ('x: real["N"]', "return np.where(rng.bernoulli(0.8, x.shape), x * x / 0.8, 0)", ((9,),)),
    "masked": ('x: real["N"], w: real["N"]', "return np.where(rng.bernoulli(0.8, x.shape), x * w, 0) * drop(w * w, rng)", ((9,), (9,))),
    "recurrent": (
        'x: real["T D"], w: real["D"]',
        "h = np.zeros_like(w)\nfor t in range(x.shape[0]):\n    h = np.tanh(h * w + x[t]) * rng.random(h.shape)\nreturn h",
        ((4, 5), (5,)),
    ),
    "with_params": ('x: real["N"], w: Param[real["N"]]', "return np.tanh(w * x + 0.1 * rng.standard_normal(x.shape)) * w", ((5,), (5,))),
}
HELPER = "def drop(x, g, p=0.5):\n    kept = g.bernoulli(1 - p, x.shape)\n    return np.where(kept, x / (1 - p), 0.0)\n\n\n"
WHOLE = {  # batched=True
    "rows": ('x: real["N D"]', "return x * rng.random(x.shape) + rng.random()", ((7, 4),)),
    "shuffled": ('x: real["N D"]', "return x[np.argsort(rng.random(x.shape[0]))] * rng.standard_normal(x.shape)", ((7, 4),)),
}
CLASSES = '''
class Drop(Layer):
    ratio: float = 0.5

    def predict(self, x: real["*S"]) -> real["*S"]:
        return x

    def forward(self, x: real["*S"], rng: Random) -> real["*S"]:
        return np.where(rng.bernoulli(1 - self.ratio, x.shape), x / (1 - self.ratio), 0)


class Noisy(Layer):
    scale: Param[real["N"]] = init.ones()

    def predict(self, x: real["N"], rng: Random) -> real["N"]:
        return x + self.scale * self.noise(x, rng)

    def noise(self, x, rng):
        return rng.standard_normal(x.shape)


class Running(Layer):
    batched = True
    mean: State[real["D"]] = init.zeros()

    def forward(self, x: real["N D"], rng: Random) -> real["N D"]:
        e = rng.standard_normal(x.shape)
        self.mean = 0.9 * self.mean + 0.1 * np.mean(x * e, axis=0)
        return x * e


@layer
def edited(x: real["N"], rng: Random) -> real["N"]:
    return x * rng.random(x.shape)


@edited.backward
def edited_backward(rng: Random, dy):
    return 3 * dy * rng.at(0).random(dy.shape)
'''


def function(name: str, row: tuple[str, str, Any], decorator: str) -> str:
    body = "\n".join("    " + line for line in row[1].splitlines())
    return f"{decorator}\ndef {name}({row[0]}, rng: Random):\n{body}\n\n\n"


TEXT = HEAD + HELPER
TEXT += "".join(function(n, r, "@layer") for n, r in LAYERS.items())
TEXT += "".join(function(n, r, "@layer(batched=True)") for n, r in WHOLE.items()) + CLASSES
