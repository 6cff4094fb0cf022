"""Compiled forwards and gradients against their NumPy meaning: both types, one example and batches, strided,
empty, at any thread count."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_cases import CASES, Case
from test_gradient_source import HEAD, arguments, call_gradient, layer_source, outputs_of, plain_namespace

import layerc
from layerc.adjoint.gradient import gradient_file
from layerc.build.driver import build
from layerc.transpile.layers import check_file

# Against float64 NumPy: a few roundings of float32 in sums of up to a hundred terms, amplified where the case divides.
TOLERANCE = {"f4": 1e-4, "f8": 1e-11}


# Compiling is what takes the time: every third case runs in `make test`, the others in `make test-all`.
QUICK = [case for position, case in enumerate(CASES) if position % 3 == 0]
ALL = [pytest.param(c, id=c.name, marks=[] if c in QUICK else [pytest.mark.slow]) for c in CASES]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Any]:
    """The compiled function of a case; its group is built when the first one is asked for."""
    built: dict[str, Any] = {}

    def find(case: Case) -> Any:
        group = "quick" if case in QUICK else "rest"
        if group not in built:
            members = [c for c in CASES if (c in QUICK) == (case in QUICK)]
            built[group] = load(build_cases(members, tmp_path_factory.mktemp(group)), f"cases_{group}")
        return getattr(built[group], case.name)

    return find


def build_cases(cases: list[Case], folder: Path) -> Path:
    sources = (c.source.replace(f"def {c.name}(", f"@layer\ndef {c.name}(") for c in cases)
    once = dict.fromkeys(part for source in sources for part in source.strip().split("\n\n\n"))  # helpers are shared
    (folder / "cases.py").write_text(HEAD + "\n\n\n".join(once) + "\n")
    return build(folder / "cases.py")


def load(target: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(
        name, target / "__init__.py", submodule_search_locations=[str(target)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Expected:
    """What NumPy says of a case, in float64."""

    def __init__(self, case: Case, dtype: str, seed: int) -> None:
        self.args = {k: v.astype(dtype) for k, v in arguments(case, seed).items()}
        wide = {k: v.astype("f8") for k, v in self.args.items()}
        f = plain_namespace(layer_source(case))[case.name]
        d = plain_namespace(gradient_file(check_file(Path("case.py"), layer_source(case))))[f"d_{case.name}"]
        self.ys = outputs_of(f(**{k: v.copy() for k, v in wide.items()}))
        rng = np.random.default_rng(seed + 10)
        self.dys = [rng.standard_normal(y.shape).astype(dtype) for y in self.ys]
        self.gradients = call_gradient(d, wide, self.ys, [dy.astype("f8") for dy in self.dys])


def close(got: Any, expected: Any, dtype: str, what: str, factor: float = 1.0) -> None:
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert np.asarray(a).dtype == np.dtype(dtype), f"{what} {k} is {np.asarray(a).dtype}"
        tolerance = TOLERANCE[dtype] * factor
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"{what} {k}")


def tupled(y: Any) -> tuple[Any, ...]:
    return y if isinstance(y, tuple) else (y,)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("case", ALL)
def test_one_example(compiled: Callable[[Case], Any], case: Case, dtype: str) -> None:
    for seed in (0, 1):
        expected = Expected(case, dtype, seed)
        before = {k: v.copy() for k, v in expected.args.items()}
        y, pullback = compiled(case).vjp(*expected.args.values())
        close(tupled(y), expected.ys, dtype, "output")
        close(pullback(*expected.dys), expected.gradients, dtype, "gradient", 20)
        close(pullback(*expected.dys), expected.gradients, dtype, "gradient, second call", 20)
        for name, value in before.items():
            assert np.array_equal(value, expected.args[name]), f"{name} was changed"


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("case", ALL)
def test_batches(compiled: Callable[[Case], Any], case: Case, dtype: str) -> None:
    """Each example of a batch is what it is alone, bit for bit whatever the number of threads; a batch of none is
    empty."""
    first, second = Expected(case, dtype, 0), Expected(case, dtype, 1)
    batch = [np.stack([a, b, a]) for a, b in zip(first.args.values(), second.args.values(), strict=True)]
    dys = [np.stack([a, b, a]) for a, b in zip(first.dys, second.dys, strict=True)]
    function = compiled(case)
    results = []
    for threads in (1, 2):
        layerc.set_num_threads(threads)
        y, pullback = function.vjp(*batch, batch=True)
        results.append((tupled(y), pullback(*dys)))
    (ys, gradients), again = results
    for one, other in zip([*ys, *gradients], [*again[0], *again[1]], strict=True):
        assert np.array_equal(one, other, equal_nan=True)
    for row, expected in ((0, first), (1, second), (2, first)):
        close([y[row] for y in ys], expected.ys, dtype, f"output {row}")
        close([g[row] for g in gradients], expected.gradients, dtype, f"gradient {row}", 20)
    none = [a[:0] for a in batch]
    y, pullback = function.vjp(*none, batch=True)
    assert [v.shape for v in tupled(y)] == [(0, *v.shape) for v in first.ys]
    assert [g.shape for g in pullback(*(d[:0] for d in dys))] == [(0, *v.shape) for v in first.args.values()]


@pytest.mark.parametrize("case", ALL)
def test_strided_arguments(compiled: Callable[[Case], Any], case: Case) -> None:
    expected = Expected(case, "f4", 0)
    strided = [_strided(v) for v in expected.args.values()]
    y, pullback = compiled(case).vjp(*strided)
    close(tupled(y), expected.ys, "f4", "output")
    close(pullback(*[_strided(d) for d in expected.dys]), expected.gradients, "f4", "gradient", 20)


def _strided(array: np.ndarray) -> np.ndarray:
    """The same values, every second element of memory, the last axis reversed."""
    if not array.ndim:
        return array
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
    view = wide[..., ::-2]
    view[...] = array
    return view


def test_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Expected(CASES[0], "f4", 0).ys
