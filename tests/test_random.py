"""Random numbers: Philox, draws in the language, the same numbers under NumPy and compiled, replayed by backward."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from random_layers import HEAD, HELPER, LAYERS, TEXT, WHOLE, function
from scipy import stats

import layerc
from layerc.adjoint.gradient import gradient_file, gradient_text
from layerc.build import driver
from layerc.runtime import threads
from layerc.runtime.generator import Random, philox
from layerc.transpile.errors import InvalidFile
from layerc.transpile.layers import check_file

pytestmark = pytest.mark.optimised  # but for the layers that are many

FLOATS = (np.float32, np.float64)
CLOSE = {np.float32: {"rtol": 1e-5, "atol": 2e-6}, np.float64: {"rtol": 1e-13, "atol": 1e-14}}


OPTIMISED = (
    "uniform01",
    "limits",
    "normal",
    "whole",
    "coin",
    "in_order",
    "loop",
    "recurrence",
    "reduced",
)  # vectorised, threaded


def _build(folder: Path, name: str, text: str) -> tuple[ModuleType, ModuleType]:
    """The file as Python, and compiled."""
    (folder / f"{name}.py").write_text(text)
    driver.build(folder / f"{name}.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        return importlib.import_module(name), importlib.import_module(f"{name}_compiled")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, ModuleType]:
    """All layers. There are many: they are compiled in a hurry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYERC_CFLAGS", "-O0")
        return _build(tmp_path_factory.mktemp("random"), "draws", TEXT)


@pytest.fixture(scope="module")
def optimised(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, ModuleType]:
    """Some of them as users get them."""
    text = HEAD + "".join(function(n, LAYERS[n], "@layer") for n in OPTIMISED)
    return _build(tmp_path_factory.mktemp("random"), "fast_draws", text)


def arrays(shapes: Any, dtype: Any, lead: tuple[int, ...] = (), seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, (*lead, *shape)).astype(dtype) for shape in shapes]


def leads(name: str) -> tuple[tuple[int, ...], ...]:
    return ((),) if name in WHOLE else ((), (6,), (1,), (0,))


def inputs_of(name: str, dtype: Any, lead: tuple[int, ...] = (), seed: int = 0) -> list[np.ndarray]:
    header, _, shapes = {**LAYERS, **WHOLE}[name]
    made = arrays(shapes, dtype, lead, seed)
    for k, parameter in enumerate(re.findall(r"\w+: (?:Param\[)?real", header)):
        if "Param" in parameter and lead:  # shared by the batch
            made[k] = arrays(shapes, dtype, (), seed)[k]
    return made


# -- Philox ------------------------------------------------------------------------------------------------------
PUBLISHED = [  # Random123, kat_vectors: counter, key, result
    ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize(("counter", "key", "result"), PUBLISHED)
def test_published_vectors(counter: str, key: str, result: str) -> None:
    words = [tuple(int(w, 16) for w in text.split()) for text in (counter, key, result)]
    assert tuple(int(w) for w in philox(words[0], words[1])) == words[2]  # type: ignore[arg-type]


def test_the_counter_is_element_draw_and_example() -> None:
    words = philox((5, 0, 3, 2), (7, 0))
    expected = ((int(words[0]) << 21) | (int(words[1]) >> 11)) * 2.0**-53
    assert Random(7, example=2).at(3).random(8)[5] == expected


def test_numpy_draws() -> None:
    rng = Random(1)
    assert rng.random().shape == () and rng.random(3).shape == (3,) and rng.random((2, 0)).shape == (2, 0)
    assert rng.random(size=(2, 3)).shape == (2, 3)
    assert rng.uniform(np.zeros(4), 1).shape == rng.bernoulli(np.zeros((4,))).shape == (4,)
    assert rng.integers(3, 9, 100).dtype == np.int64 and rng.bernoulli(0.5, 3).dtype == bool
    assert Random(1, dtype=np.float32).random(3).dtype == Random(1, dtype="f4").standard_normal(3).dtype == np.float32
    full = rng.integers(-(2**63), 2**63 - 1, 1000)
    assert full.min() < -(2**62) and full.max() > 2**62
    for wrong in (lambda: rng.integers(3, 3), lambda: rng.random(-1), lambda: rng.uniform(np.zeros(3), 1, 2)):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError):
        rng.random(2, size=3)
    with pytest.raises(TypeError, match="expected a seed or a generator, got str"):
        Random("a")  # type: ignore[arg-type]


def test_integers_are_the_upper_half_of_a_product() -> None:
    rng = Random(3)
    for low, high in ((0, 7), (-5, 2**40), (-(2**63), 2**63 - 1)):
        a, b, _, _ = Random(3).at(rng._draw)._words((50,))
        expected = [low + (((int(x) << 32 | int(y)) * (high - low)) >> 64) for x, y in zip(a, b, strict=True)]
        assert rng.integers(low, high, 50).tolist() == expected


# -- the same numbers --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", FLOATS, ids=["f32", "f64"])
@pytest.mark.parametrize("name", [*LAYERS, *WHOLE])
def test_numpy_and_compiled_draw_the_same(built: Any, name: str, dtype: Any) -> None:
    python, compiled = built
    for lead in leads(name):
        given = inputs_of(name, dtype, lead)
        for seed in (1, 2**62 + 12345):
            found = getattr(compiled, name)(*given, rng=seed)
            expected = getattr(python, name)(*given, rng=seed)
            assert found.dtype == expected.dtype == dtype and found.shape == expected.shape
            np.testing.assert_allclose(found, expected, **CLOSE[dtype])
    assert name in WHOLE or np.ptp(getattr(compiled, name)(*inputs_of(name, dtype, (6,)), rng=1)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS, ids=["f32", "f64"])
@pytest.mark.parametrize("name", OPTIMISED)
def test_vectorised_code_draws_the_same(optimised: Any, name: str, dtype: Any) -> None:
    python, compiled = optimised
    given = arrays(tuple((*s[:-1], 37) for s in LAYERS[name][2]), dtype, (35,))
    found, expected = (getattr(m, name)(*given, rng=4) for m in (compiled, python))
    np.testing.assert_allclose(found, expected, **{**CLOSE[dtype], **({"atol": 2e-5} if dtype == np.float32 else {})})


@pytest.mark.parametrize("dtype", FLOATS, ids=["f32", "f64"])
@pytest.mark.parametrize("name", [*LAYERS, *WHOLE])
def test_gradients_replay(built: Any, name: str, dtype: Any) -> None:
    """The gradient source under NumPy and compiled; and, in float64, finite differences with the seed held."""
    _, compiled = built
    layer = getattr(compiled, name)
    if "backward" not in layer.core.methods:
        pytest.skip("not differentiable")
    for lead in leads(name)[:2]:
        given = inputs_of(name, dtype, lead, seed=1)
        y, pullback = layer.vjp(*given, rng=5)
        np.testing.assert_array_equal(y, layer(*given, rng=5))
        dy = np.random.default_rng(2).uniform(-1, 1, np.shape(y)).astype(dtype)
        gradients = pullback(dy)
        for again, first in zip(pullback(dy), gradients, strict=True):
            np.testing.assert_array_equal(again, first)
        if dtype == np.float64:
            for k, (x, g) in enumerate(zip(given, gradients, strict=True)):
                direction = np.random.default_rng(3).uniform(-1, 1, x.shape)

                up, down = (layer(*given[:k], x + h * direction, *given[k + 1 :], rng=5) for h in (1e-6, -1e-6))
                slope = np.sum((up - down) * dy) / 2e-6
                np.testing.assert_allclose(np.sum(g * direction), slope, rtol=2e-7, atol=2e-8)


@pytest.mark.parametrize("name", [*LAYERS, *WHOLE])
def test_gradient_source_runs_under_numpy(built: Any, name: str) -> None:
    _, compiled = built
    layer = getattr(compiled, name)
    if "backward" not in layer.core.methods:
        pytest.skip("not differentiable")
    gradients = importlib.import_module(f"{compiled.__name__}.gradients")
    source = getattr(gradients, f"d_{name}")
    given = inputs_of(name, np.float64, seed=4)
    y, pullback = layer.vjp(*given, rng=9)
    dy = np.random.default_rng(2).uniform(-1, 1, np.shape(y))
    known = {**dict(zip(layer.core.array_names, given, strict=True)), "y": y, "dy": dy, "rng": Random(9)}
    wanted = source.__code__.co_varnames[: source.__code__.co_argcount]
    found = source(**{n: known[n] for n in wanted})
    found = found if isinstance(found, tuple) else (found,)
    for ours, theirs in zip(found, pullback(dy), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_float32_and_float64_agree(optimised: Any) -> None:
    _, L = optimised
    x32, x64 = (np.ones((50, 40, 30), dtype) for dtype in FLOATS)
    for name, most in (("uniform01", 2**-24), ("normal", 1e-4), ("whole", 0), ("coin", 0)):
        a, b = getattr(L, name)(x32, rng=3), getattr(L, name)(x64, rng=3)
        assert np.max(np.abs(a - b)) <= most, name


@pytest.mark.parametrize("name", [*OPTIMISED, "until", "rows", "shuffled"])
def test_any_number_of_threads(optimised: Any, built: Any, name: str) -> None:
    _, L = optimised if name in OPTIMISED else built
    shapes = {**LAYERS, **WHOLE}[name][2]
    large = [
        np.linspace(-1, 1, 300 * int(np.prod(s))).reshape(300, *s) if name not in WHOLE else np.ones((900, 60))
        for s in shapes
    ]
    found = []
    for count in (1, 2):
        with_threads = threads.get_num_threads()
        threads.set_num_threads(count)
        try:
            y, pullback = getattr(L, name).vjp(*large, rng=8)
            found.append([y, *pullback(np.ones_like(y))])
        finally:
            threads.set_num_threads(with_threads)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


# -- seeds -------------------------------------------------------------------------------------------------------
def test_fresh_at_every_call_and_reproducible(built: Any) -> None:
    python, L = built
    x = np.ones((4, 5))
    assert not np.array_equal(L.normal(x), L.normal(x))
    assert not np.array_equal(L.normal(x, rng=1), L.normal(x, rng=2))
    np.testing.assert_array_equal(L.normal(x, rng=1), L.normal(x, rng=1))
    ours, theirs, again = Random(7), Random(7), layerc.Random(7)
    drawn = [L.normal(x, rng=ours) for _ in range(3)]
    np.testing.assert_array_equal(drawn[0], L.normal(x, rng=7))  # the first evaluation has the seed itself
    assert not np.array_equal(drawn[0], drawn[1]) and not np.array_equal(drawn[1], drawn[2])
    for y in drawn:
        np.testing.assert_allclose(python.normal(x, rng=theirs), y, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(L.normal.reference(x, rng=again), y, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(L.normal(x, rng=np.random.default_rng(3)), L.normal(x, rng=np.random.default_rng(3)))
    assert not np.array_equal(python.normal(x), python.normal(x))
    with pytest.raises(TypeError, match="normal: argument 'rng': expected a seed or a generator, got str"):
        python.normal(x, rng="a")


def test_the_seed_of_a_generator_passed_on_is_not_shared_with_what_it_draws() -> None:
    rng = Random(5)
    rng.random(10)
    assert rng.next_seed() == 5 and rng.next_seed() != 5


def test_examples_have_numbers_of_their_own(built: Any) -> None:
    _, L = built
    y = L.uniform01(np.ones((6, 3, 5)), rng=3)
    assert len(np.unique(y)) == y.size
    np.testing.assert_array_equal(L.uniform01(np.ones((3, 5)), rng=3), y[0])
    np.testing.assert_array_equal(L.uniform01(np.ones((2, 3, 5)), rng=3), y[:2])


def test_arrays_in_any_order_in_memory(built: Any) -> None:
    _, L = built
    x = np.random.default_rng(0).normal(size=(5, 3)).T
    np.testing.assert_array_equal(L.coin(x, rng=2), L.coin(x.copy(), rng=2))


# -- distributions -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", FLOATS, ids=["f32", "f64"])
def test_distributions(optimised: Any, dtype: Any) -> None:
    _, L = optimised
    x, n = np.ones((8, 50, 500), dtype), 200_000
    u, z = L.uniform01(x, rng=1).ravel(), L.normal(x, rng=1).ravel()
    assert 0 <= u.min() and u.max() < 1 and -1.5 <= L.limits(x, rng=1).min()
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert abs(z.mean()) < 4 / n**0.5 and abs(z.var() - 1) < 4 * (2 / n) ** 0.5 and abs(stats.skew(z)) < 0.03
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / n**0.5
    counts = np.bincount((L.whole(x, rng=1).ravel() + 3).astype(int), minlength=15)
    assert counts.size == 15 and stats.chisquare(counts).pvalue > 1e-3
    assert abs((L.coin(x, rng=1) != 0).mean() - 0.3) < 4 * (0.21 / n) ** 0.5


def test_examples_and_draws_are_independent(optimised: Any) -> None:
    _, L = optimised
    y = L.in_order(np.zeros((40, 5000)), rng=1)
    assert np.max(np.abs(np.corrcoef(y) - np.eye(40))) < 0.08


# -- second order, custom backward -------------------------------------------------------------------------------
def test_gradients_are_layer_files(tmp_path: Path, built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """d_<layer> built as layers of their own: the same gradients, and gradients of those by finite differences."""
    _, L = built
    names = ["vae", "scale", "masked", "recurrent"]
    (tmp_path / "some.py").write_text(HEAD + HELPER + "".join(function(n, LAYERS[n], "@layer") for n in names))
    text = gradient_file(check_file(tmp_path / "some.py"))
    (tmp_path / "second.py").write_text(text)
    driver.build(tmp_path / "second.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    second = importlib.import_module("second_compiled")
    for name in names:
        first, derived = getattr(L, name), getattr(second, f"d_{name}")
        given = inputs_of(name, np.float64, seed=3)
        y, pullback = first.vjp(*given, rng=4)
        dy = np.random.default_rng(2).uniform(-1, 1, np.shape(y))
        known = {**dict(zip(first.core.array_names, given, strict=True)), "y": y, "dy": dy}
        taken = [known[n] for n in derived.core.array_names]
        found = derived(**{n: known[n] for n in derived.core.array_names}, rng=4)
        for ours, theirs in zip(found if isinstance(found, tuple) else (found,), pullback(dy), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
        report = derived.check(*(a.shape for a in taken))
        assert report.passed, str(report)


def test_an_edited_gradient_replays(built: Any) -> None:
    _, L = built
    x = np.ones((3, 6))
    y, pullback = L.edited.vjp(x, rng=6)
    np.testing.assert_allclose(pullback(np.ones_like(x))[0], 3 * y, rtol=1e-15)


def test_gradient_source_reads_well(tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text(
        HEAD + function("vae", LAYERS["vae"], "@layer") + function("loop", LAYERS["loop"], "@layer")
    )
    module = check_file(tmp_path / "some.py")
    vae, loop = (gradient_text(layer, module.source, module.path) for layer in module.layers)
    assert "rng: Random" in vae and "rng.at(0).standard_normal((D,))" in vae
    assert "rng.at(t).random((D,))" in loop and "rng.at(T).random()" in loop
    assert "draws" not in loop  # a number that follows from the counter needs no variable
    assert not re.search(r"(draw|eps)\w*_saved", vae + loop)  # numbers are made again, not kept


# -- classes, Net ------------------------------------------------------------------------------------------------
def test_class_layers(built: Any) -> None:
    python, L = built
    for kind, shape in (("Noisy", (5,)), ("Drop", (4, 3))):
        ours, theirs = getattr(L, kind)(name="a"), getattr(python, kind)(name="a")
        for s in (ours, theirs):
            s.initialize(shape, seed=3, dtype=np.float64)
        x = np.random.default_rng(0).normal(size=(6, *shape))
        drawn = []
        for _ in range(3):
            y, pullback = ours.vjp(x)
            np.testing.assert_allclose(theirs.forward(x), y, rtol=1e-13, atol=1e-14)
            first, again = pullback(np.ones_like(y)), pullback(np.ones_like(y))
            np.testing.assert_array_equal(first.inputs[0], again.inputs[0])
            drawn.append(y)
        assert not np.array_equal(drawn[0], drawn[1])
        ours.initialize(shape, seed=3, dtype=np.float64)
        np.testing.assert_array_equal(ours.vjp(x)[0], drawn[0])
        np.testing.assert_array_equal(ours.vjp(x, rng=9)[0], ours.vjp(x, rng=Random(9))[0])
        np.testing.assert_array_equal(ours.vjp(x, 9)[0], ours.vjp(x, rng=9)[0])
        with pytest.raises(TypeError, match="'rng' is given twice"):
            ours.vjp(x, 9, rng=9)
        assert ours.check(shape).passed, str(ours.check(shape))
    drop = L.Drop()
    drop.initialize((4, 3))
    x = np.ones((6, 4, 3), np.float32)
    y, pullback = drop.vjp(x)
    np.testing.assert_array_equal(drop(x), x)
    np.testing.assert_array_equal(pullback(x).inputs[0], y)  # the same elements, and the same factor
    assert 0.2 < (y == 0).mean() < 0.8
    running = L.Running(name="r")
    running.initialize((50, 3), seed=1)
    running.vjp(np.ones((50, 3), np.float32))
    assert np.all(running.states["mean"] != 0)


def test_a_net_trains_through_a_random_layer(built: Any) -> None:
    from layerc.runtime import SGD, CompiledLayer, InnerProduct, LRPolicy, MemoryData, Net, Neurons, SoftmaxLoss

    _, L = built
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6)).astype(np.float32)
    t = (x[:, 0] * x[:, 1] > 0).astype(np.int64)

    def net() -> Net:
        return Net(
            "mc",
            [
                MemoryData(name="data", tops=["data", "label"], data=[x, t], batch_size=50),
                InnerProduct(name="ip1", bottoms=["data"], tops=["ip1"], output_dim=32, neuron=Neurons.ReLU()),
                CompiledLayer(L.dropout, name="drop", bottoms=["ip1"], tops=["drop"]),
                L.Drop(name="drop2", bottoms=["drop"], tops=["drop2"], ratio=0.1),
                InnerProduct(name="ip2", bottoms=["drop2"], tops=["ip2"], output_dim=2),
                SoftmaxLoss(name="loss", bottoms=["ip2", "label"], tops=[]),
            ],
            seed=1,
        )

    losses = []
    with net() as n:
        solver = SGD(max_iter=150, lr=LRPolicy.Fixed(0.1), momentum=0.9)
        before = np.mean([n.forward() for _ in range(4)])
        solver.solve(n)
        after = np.mean([n.forward() for _ in range(4)])
        assert after < 0.7 * before
        losses.append(after)
        n.forward()
        n.backward()
        kept = n.blobs["drop"].data != 0
        flowing = n.blobs["ip1"].diff != 0
        assert not np.any(flowing & ~kept)  # backward has the forward's numbers
    with net() as n:
        for _ in range(4):
            n.forward()
        SGD(max_iter=150, lr=LRPolicy.Fixed(0.1), momentum=0.9).solve(n)
        assert np.mean([n.forward() for _ in range(4)]) == losses[0]


# -- mistakes ----------------------------------------------------------------------------------------------------
# fmt: off
WRONG = [  # body | what is said | what stands under the caret
    ("return np.where(0 < rng.random() < rng.random(), x, 0)", "it may not draw", "0 < rng.random() < rng.random()"),
    ("return x + rng", "expected an array or a scalar, got a random generator", "rng"),
    ("return x * rng.normal(x.shape)", "random generators have no method normal here", "rng.normal(x.shape)"),
    ("return x * rng.random((x.size, -1))[:, 0]", "negative dimensions are not allowed", "(x.size, -1)"),
    ("return x * rng.random(int(x[0]))", "the shape would depend on values", "int(x[0])"),
    ("return x * rng.random(1.5)", "an extent must be an integer", "1.5"),
    ("return x * rng.random(x.size, 3)", "rng.random takes at most 1 arguments", "rng.random(x.size, 3)"),
    ("return x * rng.random(x.size, size=3)", "rng.random has no argument shape left to give", "rng.random(x.size, size=3)"),
    ("return x * rng.integers(3, 3)", "rng.integers: low >= high", "rng.integers(3, 3)"),
    ("return x * rng.integers(0.5, 3)", "low of rng.integers is an integer, got float", "0.5"),
    ("return x * rng.integers()", "rng.integers needs low", "rng.integers()"),
    ("return x * rng.uniform(x, 1, ())", "the limits of rng.uniform do not fit the shape", "rng.uniform(x, 1, ())"),
    ("return x * rng.bernoulli(x, ())", "a draw of shape () cannot be made from arguments of shape (N,)", "rng.bernoulli(x, ())"),
    ("return x * rng.bernoulli(x > 0)", "p of rng.bernoulli is a number, got bool", "x > 0"),
    ("r = rng.at(1)\nreturn x * r.random()", "rng.at(k) is drawn from where it is written", "rng.at(1)"),
    ("return x * rng.at(-1).random()", "the number of a draw is an integer, from 0", "-1"),
    ("return x * rng.at().random()", "rng.at takes the number of a draw", "rng.at()"),
    ("return x * rng.seed", "expected an array or a scalar, got a random generator", "rng"),
    ("return x * np.random.rand(3)", "np.random", "np.random.rand(3)"),
    ("y = x\nfor r in rng:\n    y = y + 1\nreturn y", "expected an array or a scalar, got a random generator", "rng"),
]
# fmt: on


@pytest.mark.parametrize(("body", "message", "under"), WRONG, ids=[w[0][-40:] for w in WRONG])
def test_mistakes_are_drawn(tmp_path: Path, body: str, message: str, under: str) -> None:
    (tmp_path / "wrong.py").write_text(HEAD + function("f", ('x: real["N"]', body, ()), "@layer"))
    with pytest.raises(InvalidFile) as caught:
        check_file(tmp_path / "wrong.py")
    drawn = str(caught.value)
    assert message in drawn
    lines = drawn.splitlines()
    at = next(i for i, line in enumerate(lines) if "^" in line)
    assert lines[at - 1][lines[at].index("^") : lines[at].rindex("^") + 1] == under, drawn


def _invalid(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "wrong.py").write_text(HEAD + text)
    with pytest.raises(InvalidFile, match=message):
        check_file(tmp_path / "wrong.py")


def test_mistakes_of_arguments(tmp_path: Path) -> None:
    # fmt: off
    _invalid(tmp_path, '@layer\ndef f(x: real["N"], a: Random, b: Random):\n    return x\n', "a layer takes one random generator")
    _invalid(tmp_path, '@layer\ndef f(x: real["N"], rng: Random = 3):\n    return x\n', "the generator rng has a default")
    _invalid(tmp_path, 'class F(Layer):\n    rng: Random\n    def predict(self, x: real["N"]):\n        return x\n', "is a random generator")
    # fmt: on


def test_nothing_to_draw_from_is_an_error_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + '@layer\ndef pick(x: real["N"], n: i64, rng: Random):\n    return x * rng.integers(2, n)\n'
    (tmp_path / "pick.py").write_text(text)
    driver.build(tmp_path / "pick.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    compiled = importlib.import_module("pick_compiled").pick
    python = importlib.import_module("pick").pick
    runs: list[Callable[..., Any]] = [compiled, python]
    for run in runs:
        assert np.all(run(np.ones(3), 3, rng=1) == 2)
        with pytest.raises(ValueError, match="low >= high"):
            run(np.ones(3), 2, rng=1)
