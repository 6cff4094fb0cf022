"""Largest elements that cancel: which they are, and that the gradient without them is the gradient."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from test_gradient_source import HEAD, call_gradient, outputs_of, plain_namespace

from layerc.adjoint.gradient import gradient_file
from layerc.adjoint.shifts import without_shifts
from layerc.transpile.layers import check_file

SHAPES = {"x": (3, 4), "z": (3, 4), "a": (4,), "r": (3,), "s": (4, 3)}
KINDS = 'x: real["N K"], z: real["N K"], a: real["K"], r: real["N"], s: real["K N"]'

# name of what is tried -> whether it cancels; each is the body of a function
BODIES = [
    ("largest", "top = np.max(x, axis=1)[:, None]\ne = np.exp(x - top)\nreturn e / np.sum(e, axis=1)[:, None]"),
    ("largest", "e = np.exp(x - np.max(x))\nreturn e / np.sum(e)"),
    ("largest", "return np.max(x) + np.log(np.sum(np.exp(x - np.max(x))))"),
    ("top", "top = np.max(x, axis=0)\nreturn top + np.log(np.sum(np.exp(x - top), axis=0))"),
    ("top", "top = np.max(x, axis=0)\nd = np.log(np.sum(np.exp(x - top), axis=0))\nreturn (top + d) * a"),
    ("top", "top = np.max(2.0 * x)\nreturn np.log(np.mean(np.exp(2.0 * x - top))) * 0.5 + top / 2.0"),
    ("top", "top = np.max(x * z)\ne = np.where(z > 0, np.exp(x * z - top), 0)\nreturn e * e / np.sum(np.square(e))"),
    ("top", "top = np.max(x)\nt = np.where(z > 0, x - top, -np.inf)\nreturn np.exp(t) / np.sum(np.exp(x - top))"),
    ("top", "top = np.max(x, axis=1, keepdims=True)\np = np.exp(x - top)\nreturn (p @ s) / np.sum(p, axis=1)[:, None]"),
    ("top", "top = np.max(x, axis=0)\np = np.exp(x - top)\nreturn np.einsum('nk,nk->k', p, z) / np.sum(p, axis=0)"),
    ("top", "top = max(x[0, 0], x[1, 1])\nu, v = np.exp(x[0, 0] - top), np.exp(x[1, 1] - top)\nreturn a * u / (u + v)"),
    ("low", "low = np.min(x)\ne = np.exp(low - x)\nreturn low - np.log(np.sum(e))"),
    (
        "m",
        "m = a[0]\nfor k in range(4):\n    m = max(m, a[k])\n"
        "t = 0.0\nfor k in range(4):\n    t += np.exp(a[k] - m)\nreturn m + np.log(t)",
    ),
    (
        "best",
        "m, t = a[0], 1.0\nfor k in range(1, 4):\n    best = max(m, a[k])\n"
        "    t = t * np.exp(m - best) + np.exp(a[k] - best)\n    m = best\nreturn m + np.log(t)",
    ),
    ("m", "m = np.max(a)\ne = np.empty((4,))\nfor k in range(4):\n    e[k] = np.exp(a[k] - m)\nreturn e / np.sum(e)"),
    (
        "top",
        "y = np.zeros_like(x)\nfor i in range(x.shape[0]):\n    top = np.max(x[i])\n"
        "    e = np.exp(x[i] - top)\n    y[i] = e / np.sum(e)\nreturn y",
    ),
    (  # of a row of which nothing is left, too
        "top",
        "t = np.where(z > 0, x, -np.inf)\ntop = np.max(t, axis=1, keepdims=True)\n"
        "m = np.where(np.isfinite(top), top, 0.0)\ne = np.exp(t - m)\nu = np.sum(e, axis=1, keepdims=True)\n"
        "return np.where(u > 0, e / np.where(u > 0, u, 1.0), 0.0)",
    ),
    ("top", "top = np.max(x)\nm = np.where(top > 0.5, 0.0, top)\nreturn m + np.log(np.sum(np.exp(x - m)))"),
    (  # what is 0 there is another number for each column, or asked of something else, or at another time
        "",
        "top = np.max(x, axis=1, keepdims=True)\nm = np.where(z > 0, top, 0.0)\ne = np.exp(x - m)\n"
        "return e / np.sum(e, axis=1, keepdims=True)",
    ),
    (
        "",
        "top = np.max(x)\nm = np.where(a[0] > 0.5, top, 0.0)\nl = np.where(a[1] > 0.5, top, 0.0)\n"
        "return l + np.log(np.sum(np.exp(x - m)))",
    ),
    (
        "",
        "top = np.max(x)\nm = np.zeros(())\ny = np.zeros_like(a)\nfor k in range(4):\n    y[k] = top + m\n"
        "    m = -np.where(a[k] > 0.5, top, 0.0)\nreturn y",
    ),
    ("", "top = np.max(x)\ne = np.exp(x - top)\nu = np.sum(e)\nreturn e / np.where(u > 0.5, u, 1.0)"),
    ("", "top = np.max(x)\nreturn np.exp(x - top)"),
    ("", "q = x @ s\ne = np.exp(q - np.max(q, axis=1, keepdims=True))\nreturn e / np.sum(e, axis=1)"),  # of a square
    ("", "q = x @ s\ntop = np.max(q, axis=1)\nreturn (q - top[:, None]) + top"),
    ("", "q = x @ s\ntop = np.max(q, axis=1)\nreturn np.exp(q - top[:, None]) * np.exp(top)"),
    (
        "",
        "t = (x @ s)[:, :, None] * (x @ s)\ntop = np.maximum(t, 0.1)\np = np.exp(t * t - top)\n"
        "return np.einsum('iji,j->ij', p, r) / np.einsum('iij,j->ji', p, r)",
    ),
    ("", "top = np.max(x)\ne = np.exp(x - top)\nreturn top * e / np.sum(e)"),
    (
        "",
        "top = np.max(x, axis=1)\ne = np.exp(x.T - top)\nreturn e / np.sum(e, axis=1)[:, None]",
    ),  # along the other axis
    ("", "top = np.max(x, axis=1)[:, None]\ne = np.exp(x - top)\nreturn e / np.sum(e)"),
    ("", "top = np.max(x)\ne = np.exp(x - top)\nreturn (e + 1) / np.sum(e + 1)"),
    ("", "top = np.max(a)\ne = np.exp(a - top)\nreturn e / np.sum(np.square(e))"),
    (
        "",
        "top = np.max(a)\ne = np.zeros((4,))\nfor k in range(2):\n    e[k] = a[k] - top\nreturn e - e[0]",
    ),  # not all of it
    ("", "top = np.max(a)\ne = np.exp(a - top)\ne[1:3] += 1.0\nreturn e / np.sum(e)"),
    ("", "top = np.max(a)\nt = 1.0\nfor k in range(4):\n    t += np.exp(a[k] - top)\nreturn top + np.log(t)"),
    ("", "top = np.max(a)\ny = 0.0\nif r[0] > 0:\n    y = top\nreturn y - top + a"),
    ("", "top = np.max(a)\nfor k in range(3):\n    a = a - top\nreturn a + 2.0 * top"),
    ("", "top = np.max(a)\nys = []\nfor k in range(3):\n    ys.append(a[k] - top)\nreturn np.stack(ys)"),
    ("", "top = np.max(a)\nreturn np.log1p(np.exp(a - top)) + top"),
]

# -- segments: of rows that go to nodes, the largest that goes to each -------------------------------------------------
NODES = "N, K = x.shape\nn = (z[:, 0] > 0).astype(np.int64)\ntop = np.full((2, K), -np.inf)\n"
ROWS = "for i in range(N):\n    top[n[i]] = np.maximum(top[n[i]], x[i])\n"
BRANCH = "for i in range(N):\n    for k in range(K):\n"
BRANCH += "        if x[i, k] > top[n[i], k]:\n            top[n[i], k] = x[i, k]\n"
NAMED = "for i in range(N):\n    t = n[i]\n    top[t] = np.maximum(top[t], x[i])\n"
WHOLE = "e = np.exp(x - top[n])\ns_2 = np.zeros((2, K))\nnp.add.at(s_2, n, e)\n"
LOOP = "s_2 = np.zeros((2, K))\ne = np.empty_like(x)\nfor i in range(N):\n"
LOOP += "    e[i] = np.exp(x[i] - top[n[i]])\n    s_2[n[i]] += e[i]\n"
BODIES += [
    ("top", NODES + ROWS + WHOLE + "return e / s_2[n]"),
    ("top", NODES + BRANCH + WHOLE + "return e / s_2[n]"),
    ("top", NODES + NAMED + LOOP + "y = np.empty_like(x)\nfor i in range(N):\n    y[i] = e[i] / s_2[n[i]]\nreturn y"),
    (
        "top",
        "s_2 = np.zeros((2, x.shape[1]))\n" + NODES + ROWS + "np.add.at(s_2, n, np.exp(x - top[n]))\nreturn s_2 / s_2",
    ),
    (
        "",
        NODES + BRANCH + LOOP + "for i in range(N):\n    t = n[i]\n    e[i] /= s_2[t] * 2.0\nreturn np.sum(e * z)",
    ),  # in place: once it is two arrays
    ("top", NODES + ROWS + WHOLE + "return (np.log(s_2) + top)[n]"),
    (
        "top",
        NODES
        + ROWS
        + "y = np.zeros((N, K))\nfor i in range(N):\n    y[i] = top[n[i]] - x[i] + (x[i] - top[n[i]])\nreturn y",
    ),
    ("", NODES + ROWS + WHOLE + "return e / s_2[1 - n]"),
    ("", NODES + ROWS + WHOLE + "n = 1 - n\nreturn e / s_2[n]"),
    ("", NODES + ROWS + LOOP + "for i in range(N):\n    n[i] = 0\nreturn e / s_2[n]"),
    ("", NODES + ROWS + WHOLE + "return e / s_2[0]"),
    (
        "",
        NODES + "e = np.empty_like(x)\n" + ROWS + "    e[i] = np.exp(x[i] - top[n[i]])\ns_2 = np.zeros((2, K))\n"
        "np.add.at(s_2, n, e)\nreturn e / s_2[n]",
    ),  # some before others have come
    (
        "",
        "N, K = x.shape\ntop = np.zeros((2, K))\nfor i in range(2):\n    top[i] = np.maximum(x[i], z[i])\n"
        "s_3 = np.zeros((N, K))\nfor i in range(-2, 0):\n    s_3[i] += np.exp(x[i] - top[i])\n"
        "y = np.empty((2, K))\nfor i in range(2):\n    y[i] = s_3[i] * np.exp(top[i])\nreturn y",
    ),  # another place from the end
    (
        "",
        NODES + ROWS + "t = np.exp(x[0] - top[n[0]])\ny = np.zeros_like(x)\nfor i in range(N):\n"
        "    y[i] = t / np.exp(x[i] - top[n[i]])\n    t = np.exp(x[i] - top[n[i]])\nreturn y",
    ),  # of the row before
    ("", "top = np.max(x)\ne = np.exp(x - top)\nf_2 = np.exp(z - top)\ne[:] *= f_2\nreturn e / np.sum(f_2)"),
]


def source_of(body: str) -> str:
    return f"{HEAD}@layer\ndef f({KINDS}):\n" + "".join(f"    {line}\n" for line in body.split("\n"))


def values(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-2, 2, shape) for name, shape in SHAPES.items()}


def agrees(source: str, seed: int) -> bool:
    """Whether the gradient source is the derivative, by differences along a direction for each argument. False where
    values are too large to say."""
    with np.errstate(all="ignore", over="raise"):
        d = plain_namespace(gradient_file(check_file(Path("f.py"), source)))["d_f"]
        f = plain_namespace(source)["f"]
        args = values(seed)
        try:
            ys = outputs_of(f(**{k: v.copy() for k, v in args.items()}))
        except FloatingPointError:
            return False
        if not all(np.all(np.abs(y) < 1e4) for y in ys):
            return False
        rng = np.random.default_rng(seed + 100)
        dys = [rng.standard_normal(y.shape) for y in ys]
        with np.errstate(over="ignore"):
            gradients = call_gradient(d, args, ys, dys)

        def along(name: str, direction: np.ndarray, step: float) -> float:
            moved = {k: v + step * direction if k == name else v.copy() for k, v in args.items()}
            return sum(float(np.sum(y * dy)) for y, dy in zip(outputs_of(f(**moved)), dys, strict=True))

        for (name, value), gradient in zip(args.items(), gradients, strict=True):
            direction = rng.standard_normal(value.shape)
            right, coarse = ((along(name, direction, h) - along(name, direction, -h)) / (2 * h) for h in (1e-6, 4e-6))
            scale = 1 + abs(right) + sum(float(np.max(np.abs(y))) for y in ys)
            if abs(right - coarse) > 1e-6 * scale:
                return False  # a kink, or roundings
            assert abs(float(np.sum(gradient * direction)) - right) <= 1e-5 * scale, (name, source)
    return True


@pytest.mark.parametrize("case", BODIES, ids=[str(k) for k in range(len(BODIES))])
def test_what_cancels(case: tuple[str, str]) -> None:
    name, body = case
    source = source_of(body)
    _, idle = without_shifts(check_file(Path("f.py"), source).layers[0].predict)
    assert len(idle) == bool(name)
    assert not name or any(n.startswith(name) for n in idle)
    assert sum(agrees(source, seed) for seed in range(3))


# -- random programs ---------------------------------------------------------------------------------------------------
THIN = ("axis=1, keepdims=True",)  # how a row of (N, K) becomes one number


class Draw:
    """Statements over arrays of (N, K) and (N, 1), of which softmaxes and the like are made, and what spoils them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.wide, self.thin, self.positive = ["x", "z", "x * z"], ["r[:, None]"], list[str]()

    def name(self, value: str, thin: bool, positive: bool) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {value}")
        (self.thin if thin else self.wide).append(name)
        if positive:
            self.positive.append(name)
        return name

    def program(self) -> str:
        for _ in range(self.rng.randint(1, 2)):
            kind = self.rng.choice(["np.max", "np.max", "np.min"])
            self.name(f"{kind}({self.rng.choice(self.wide)}, {self.rng.choice(THIN)})", True, False)
        for _ in range(self.rng.randint(3, 9)):
            self.step()
        last = self.lines[-1].split(" ")[0]
        return source_of("\n".join([*self.lines, f"return {last} + {self.rng.choice(self.wide)} * 0.1"]))

    def step(self) -> None:
        rng = self.rng
        w, t = rng.choice(self.wide[-5:]), rng.choice(self.thin[-4:])
        any_ = rng.choice([*self.wide[-3:], *self.thin[-3:]])
        thin = any_ in self.thin
        match rng.randrange(12):
            case 0 | 1:
                self.name(f"np.exp({w} - {t})", False, True)
            case 2 | 3 if self.positive:
                p = rng.choice(self.positive[-3:])
                if p in self.wide:
                    self.name(f"np.sum({p}, {rng.choice(THIN)})", True, True)
            case 4 | 5 if self.positive:
                p = rng.choice(self.positive[-3:])
                self.name(f"{any_} / {p}", thin and p in self.thin, any_ in self.positive)
            case 6 if self.positive:
                p = rng.choice(self.positive[-3:])
                self.name(f"np.log({p})", p in self.thin, False)
            case 7:
                other = rng.choice(["z > 0", "x > z"])
                self.name(f"np.where({other}, {w}, {rng.choice(['0', w, t, rng.choice(self.wide)])})", False, False)
            case 8:
                self.name(f"{any_} {rng.choice('+-')} {t}", thin, False)
            case 9:
                self.name(f"{rng.choice(['0.5 *', '-', '2.0 *'])} {any_}", thin, False)
            case 10:
                self.name(f"np.mean({w}, {rng.choice(THIN)})", True, w in self.positive)
            case _:
                self.name(f"{w} * {any_}", False, w in self.positive and any_ in self.positive)


def check_drawn(first: int, count: int) -> tuple[int, int]:
    """How many of the programs could be compared, and of those, in how many something cancels."""
    compared = cancels = 0
    for seed in range(first, first + count):
        source = Draw(seed).program()
        if agrees(source, seed):
            compared += 1
            cancels += bool(without_shifts(check_file(Path("f.py"), source).layers[0].predict)[1])
    return compared, cancels


@pytest.mark.parametrize("square", [False, True])
def test_random_programs(square: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a square array, what varies along its rows broadcasts along its columns, too: the wrong axis is no mistake."""
    if square:
        monkeypatch.setitem(SHAPES, "x", (4, 4))
        for name in ("z", "s"):
            monkeypatch.setitem(SHAPES, name, (4, 4))
        monkeypatch.setitem(SHAPES, "r", (4,))
        monkeypatch.setattr(f"{__name__}.KINDS", KINDS.replace("K", "N"))
        monkeypatch.setattr(f"{__name__}.THIN", ("axis=1, keepdims=True", "axis=0, keepdims=True", "axis=1", "axis=0"))
    compared, cancels = check_drawn(0, 150)
    assert compared > 75
    assert cancels > 10


def test_an_extent_keeps_its_name() -> None:
    source = HEAD + "@layer\ndef f(x: real['largest K']):\n    e = np.exp(x - np.max(x))\n    n = x.shape[0]\n"
    text = gradient_file(check_file(Path("f.py"), source + "    return n * e / np.sum(e) * np.ones((n, 1))\n"))
    check_file(Path("gradients.py"), text)
