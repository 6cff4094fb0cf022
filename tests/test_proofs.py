"""What can be proven of symbolic integers: facts about signs, bounds, and the slices and loops that rest on them."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from layerc.build.driver import build, compile_module, read_module
from layerc.transpile.dims import ANY, Atom, Dim, _Proof, _proven, largest, maximum, minimum, nonnegative
from layerc.transpile.emit_text import _unary
from layerc.transpile.samples import refuted

N, K, S, I, J = (Dim.of(name) for name in ("N", "K", "s", "i", "j"))
COUNT = (N - K) // S  # of windows, less one

PROVEN = [
    (N - I * S - K, {"s": (Dim.of(0), ANY[1]), "i": (Dim.of(0), COUNT)}),
    (N - I * 3 - K, {"i": (Dim.of(0), (N - K) // 3)}),
    (N - S * (N // S), {}),
    (N - (N // 2) * 2, {}),
    (N - N % 4, {}),
    (Dim.of(3) - N % 4, {}),
    (minimum(N, I, {"i": (Dim.of(0), N)}), {"i": (Dim.of(0), N)}),
    (maximum(S, Dim.of(0)), {"s": ANY}),
    (N - minimum(N, S + 1), {"s": ANY}),
    (N // 3, {}),
]
NOT_PROVEN = [
    (S, {"s": ANY}),
    (I * S, {"s": ANY, "i": (Dim.of(0), N)}),
    (N - I * S - K, {"s": ANY, "i": (Dim.of(0), COUNT)}),
    (I * J, {"j": (Dim.of(-2), Dim.of(2)), "i": (Dim.of(0), N)}),
    (N - S * (N // S), {"s": ANY}),
    (N - K, {}),
    (S // 2, {"s": ANY}),
    (minimum(N, S), {"s": ANY}),
]


@pytest.mark.parametrize(("dim", "facts"), PROVEN, ids=str)
def test_proves(dim: Dim, facts: Any) -> None:
    assert nonnegative(dim, facts)
    assert not refuted(dim, facts)
    assert all(value >= 0 for value in _values(dim, facts))


@pytest.mark.parametrize(("dim", "facts"), NOT_PROVEN, ids=str)
def test_does_not_prove(dim: Dim, facts: Any) -> None:
    assert not nonnegative(dim, facts)
    assert any(value < 0 for value in _values(dim, facts))


def test_numbers_refute_what_is_false() -> None:
    assert refuted(N - I * 2, {"i": (Dim.of(0), N - 1)})
    assert refuted(N - K, {})
    assert refuted(S, {"s": ANY})
    assert refuted(minimum(N, S), {"s": ANY})
    assert not refuted(N - I - 1, {"i": (Dim.of(0), N - 1)})
    assert not refuted(-I - 1, {"i": (N + 1, N)})  # a loop that does not run shows nothing


@pytest.mark.parametrize("file", ["examples/layers.py", "runtime/layers/pooling.py"])
def test_no_number_refutes_what_is_proven(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    def at_length(proof: Any, dim: Dim) -> bool:
        proven = _Proof(proof.facts).at_length(dim)
        found.append(proven)
        assert not (proven and refuted(dim, proof.facts)), (dim, proof.facts)
        return proven

    _proven.cache_clear()
    monkeypatch.setattr(_Proof, "of", at_length)
    compile_module(read_module(Path(__file__).parents[1] / file))
    assert True in found and False in found


def _values(dim: Dim, facts: Any) -> list[int]:
    """Of the dim, for small values of its symbols that keep to the facts."""
    free = sorted({s for d in (dim, *(b for f in facts.values() for b in f)) for s in d.symbols()} - facts.keys())
    found = []
    for sizes in itertools.product(range(4), repeat=len(free)):
        found += _inside(dim, dict(zip(free, sizes, strict=True)), list(facts.items()))
    return found


def _inside(dim: Dim, known: dict[str, int], facts: list[Any]) -> list[int]:
    if not facts:
        try:
            return [dim.evaluate(known)]
        except (ZeroDivisionError, KeyError):  # no such slice: its bounds have no value
            return []
    (name, bounds), rest = facts[0], facts[1:]
    try:
        low, high = (max(-3, min(4, b.evaluate(known))) for b in bounds)
    except (ZeroDivisionError, KeyError):
        low, high = -3, -4
    return [v for value in range(low, high + 1) for v in _inside(dim, {**known, name: value}, rest)]


def test_without_facts_nothing_is_known_of_signs() -> None:
    assert maximum(I, Dim.of(0)).symbol == Atom("max", (Dim.of(0), I))
    assert maximum(I, Dim.of(0), {}) == I
    assert maximum(I + 1, I) == I + 1


def test_nested_clamps_are_one() -> None:
    inner = maximum(N - 2, Dim.of(0), {})
    assert maximum(inner - 1, Dim.of(0), {}) == maximum(N - 3, Dim.of(0), {})


@pytest.mark.parametrize(
    ("dim", "bound"),
    [
        (minimum(N, I * S + S) - I * S, minimum(N, S)),
        (minimum(N, I + 3) - maximum(I - 1, Dim.of(0)), minimum(N, Dim.of(4))),
    ],
    ids=str,
)
def test_bounds_of_extents(dim: Dim, bound: Dim) -> None:
    """At least as large as the extent for every value of the loop's variable."""
    facts = {"i": (Dim.of(0), N - 1)}
    top = largest(dim, facts)
    assert "i" not in top.symbols()
    for n, s in itertools.product(range(1, 6), range(1, 4)):
        most = max(dim.evaluate({"N": n, "s": s, "i": i}) for i in range(n))
        assert bound.evaluate({"N": n, "s": s}) <= top.evaluate({"N": n, "s": s}) <= n + s + 4
        assert top.evaluate({"N": n, "s": s}) >= most


@pytest.mark.parametrize(
    "dim",
    [
        maximum(Dim.of(4), K) // maximum(Dim.of(1), N + I * 2),
        -(maximum(Dim.of(4), K) // (I + 1)),
        (K - 3) // (I + 1),
        -((K - 3) // (I + 1)),
        (I - 2) // (N + 1 - I),
        (Dim.of(-1) - K) // (I + 1),
    ],
    ids=str,
)
def test_bounds_of_quotients(dim: Dim) -> None:
    """What is divided by a variable is largest at an end of it: the search for a bound ends there."""
    facts = {"i": (Dim.of(0), N - 1)}
    top = largest(dim, facts)
    assert "i" not in top.symbols()
    for n, k in itertools.product(range(1, 6), range(7)):
        most = max(dim.evaluate({"N": n, "K": k, "i": i}) for i in range(n))
        assert most <= top.evaluate({"N": n, "K": k}) <= max(most, 0) + k


def test_a_factor_that_is_the_same_in_each_iteration_stays() -> None:
    """It is no bound of the other one, however often it is asked for."""
    facts = {"i": (Dim.of(0), N - 1)}
    dim = maximum(S, Dim.of(1)) * minimum(N, I + 3)
    top = largest(dim, facts)
    assert "i" not in top.symbols()
    for n, s in itertools.product(range(1, 6), range(1, 4)):
        most = max(dim.evaluate({"N": n, "s": s, "i": i}) for i in range(n))
        assert most <= top.evaluate({"N": n, "s": s}) <= s * (n + 3)


@pytest.mark.parametrize(
    ("text", "cast"),
    [
        ("a*f(x)", "(a*f(x))"),
        ("a[i]*b[j]", "(a[i]*b[j])"),
        ("f(a)[i]", "f(a)[i]"),
        ("(a + b)", "(a + b)"),
        ("n", "n"),
        ("-n", "(-n)"),
    ],
)
def test_a_cast_is_of_all_that_follows(text: str, cast: str) -> None:
    assert _unary(text) == cast


# -- signs of configuration at run time ------------------------------------------------------------------------
LAYERS = """
import numpy as np
from layerc import layer, real


@layer
def gathered(x: real["N"], *, s: int = 1):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        if i * s < x.shape[0]:
            y[i] = x[i * s]
    return y


@layer
def scattered(x: real["N"], y: real["M"], *, s: int = 1):
    for i in range(x.shape[0]):
        y[i * s] += x[i]
    return y


@layer
def windows(x: real["N"], w: real["K"], *, s: int = 1):
    y = np.zeros(x.shape[0])
    for i in range((x.shape[0] - w.shape[0]) // s + 1):
        y[i] = x[i * s : i * s + w.shape[0]] @ w
    return y


@layer
def tiles(x: real["N"], *, t: int = 2):
    y = x.copy()
    for i in range(0, x.shape[0], t):
        y[i : i + t] = np.sum(x[i : i + t])
    return y


@layer
def guarded(x: real["N"]):
    c = np.max(x) if x.size else 0.0
    for i in range(x.shape[0]):
        if i + 1 < x.shape[0] and x[i + 1] > 0:
            c -= x[i]
    return c
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder: Path = tmp_path_factory.mktemp("signs")
    (folder / "signs.py").write_text(LAYERS)
    target = build(folder / "signs.py", folder / "signs_compiled")
    spec = importlib.util.spec_from_file_location(
        "signs_compiled", target / "__init__.py", submodule_search_locations=[str(target)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["signs_compiled"] = module
    spec.loader.exec_module(module)
    return module


X, Y, W = np.arange(1.0, 41.0), np.zeros(90), np.array([1.0, -1.0, 0.5])
CALLS = [("gathered", (X,), "s"), ("scattered", (X, Y), "s"), ("windows", (X, W), "s"), ("tiles", (X,), "t")]


@pytest.mark.parametrize("value", [1, 2, 3, 0, -1, -2, -50])
@pytest.mark.parametrize(("name", "args", "key"), CALLS, ids=[c[0] for c in CALLS])
def test_configuration_of_any_sign(library: ModuleType, name: str, args: Any, key: str, value: int) -> None:
    """What NumPy gives, or an error: never memory of others."""
    fn = getattr(library, name)
    try:
        expected = fn.reference(*args, **{key: value})
    except (IndexError, ValueError, ZeroDivisionError):
        with pytest.raises((IndexError, ValueError, ZeroDivisionError)):
            fn(*args, **{key: value})
        return
    try:
        found = fn(*args, **{key: value})
    except (IndexError, ValueError):  # a stride below zero may be refused, with the line that says so
        assert value < 0
        return
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_what_a_condition_guards_is_not_evaluated(library: ModuleType, n: int) -> None:
    x = np.linspace(-1, 1, n)
    np.testing.assert_allclose(library.guarded(x), library.guarded.reference(x))


def test_a_question_is_asked_once():
    """Nested minima meet the same parts on millions of ways: to go them all took longer than anybody waits."""
    batch, chunk = Dim.of("batch"), Dim.of("chunk")
    groups = batch // 16 + minimum(Dim.of(1), batch % 16 // 4)
    left = batch - groups * 16
    assert not nonnegative((chunk + 1) * left, {"chunk": (Dim.of(0), minimum(Dim.of(64), left) - 1)})
