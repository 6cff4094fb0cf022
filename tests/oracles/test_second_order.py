"""The vjp of the vjp against JAX: of every case as gradient source under NumPy, of every twelfth compiled."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

oracle = importlib.util.spec_from_file_location("jax_oracle", Path(__file__).with_name("test_gradients.py"))
pytest.importorskip("jax")
assert oracle is not None and oracle.loader is not None
by_jax = importlib.util.module_from_spec(oracle)
sys.modules["jax_oracle"] = by_jax
oracle.loader.exec_module(by_jax)

from gradient_cases import Case  # noqa: E402
from test_gradient_source import (  # noqa: E402
    NOT_TWICE,
    arguments,
    call_gradient,
    layer_source,
    outputs_of,
    plain_namespace,
)

from layerc.adjoint.gradient import gradient_file  # noqa: E402
from layerc.build.driver import build  # noqa: E402
from layerc.transpile.backwards import cotangents_of  # noqa: E402
from layerc.transpile.layers import check_file  # noqa: E402

jax, jnp = by_jax.jax, by_jax.jnp
WITHOUT_ORACLE = {"logsumexp_of_none": "JAX's second derivative where all are -inf is NaN; ours is 0 there"}
TWICE = [c for c in by_jax.COVERED if c.name not in NOT_TWICE and c.name not in WITHOUT_ORACLE]
COMPILED = TWICE[::12]

Arrays = dict[str, np.ndarray]


def points(case: Case) -> tuple[Arrays, list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Arguments, outputs, their cotangents, and cotangents of the gradients."""
    rng = np.random.default_rng(31)
    args = arguments(case, 1)
    ys = outputs_of(plain_namespace(layer_source(case))[case.name](**{k: v.copy() for k, v in args.items()}))
    return args, ys, [rng.standard_normal(y.shape) for y in ys], [rng.standard_normal(a.shape) for a in args.values()]


def expected_by_jax(case: Case, args: Arrays, dys: list[np.ndarray], seeds: list[np.ndarray]) -> list[np.ndarray]:
    """Gradients of <seeds, vjp(args)(dys)>, of the arguments and of the cotangents."""
    function, n = by_jax.function_of(case), len(args)

    def gradient(*given: Any) -> Any:
        ys, pullback = jax.vjp(function, *given[:n])
        return pullback(tuple(dy.astype(y.dtype) for dy, y in zip(given[n:], ys, strict=True)))

    with jax.enable_x64(True):
        given = [jnp.asarray(v) for v in (*args.values(), *dys)]
        _, pullback = jax.vjp(gradient, *given)
        return [np.asarray(g) for g in pullback(tuple(map(jnp.asarray, seeds)))]


def check(case: Case, second: Any) -> None:
    """`second(args, ys, dys, seeds)`: gradients by the name of what the gradient function takes, outputs among them."""
    args, ys, dys, seeds = points(case)
    expected = expected_by_jax(case, args, dys, seeds)
    found = second(args, ys, dys, seeds)
    one = len(ys) == 1
    names = ["y"] if one else [f"y{k + 1}" for k in range(len(ys))]
    outputs = {n: found[n] for n in names if n in found and n not in args}  # an argument may be called y
    through = [outputs.get(n, np.zeros(y.shape)) for n, y in zip(names, ys, strict=True)]
    more = _first_order(case, args, ys, through)  # the gradient function takes outputs as they are
    for k, (name, value) in enumerate(args.items()):
        total = found.get(name, np.zeros(value.shape)) + more[k]
        by_jax.close(total, expected[k], "f8", f"second gradient of {name}")
    for k, dy in enumerate(dys):
        total = found.get("dy" if one else f"dy{k + 1}", np.zeros(dy.shape))
        by_jax.close(total, expected[len(args) + k], "f8", f"second gradient of dy{k + 1}")


def _first_order(case: Case, args: Arrays, ys: list[np.ndarray], dys: list[np.ndarray]) -> list[np.ndarray]:
    text = gradient_file(check_file(Path("case.py"), layer_source(case)))
    return call_gradient(plain_namespace(text)[f"d_{case.name}"], args, ys, dys)


def named(ys: list[np.ndarray], dys: list[np.ndarray]) -> Arrays:
    suffixes = [""] if len(ys) == 1 else [str(k + 1) for k in range(len(ys))]
    return {f"y{s}": y for s, y in zip(suffixes, ys, strict=True)} | {
        f"dy{s}": dy for s, dy in zip(suffixes, dys, strict=True)
    }


@pytest.mark.parametrize("case", TWICE, ids=lambda c: c.name)
def test_the_source_is_jaxs(case: Case) -> None:
    first = gradient_file(check_file(Path("case.py"), layer_source(case)))
    module = check_file(Path("gradients.py"), first)
    layer = module.layers[0].predict
    d = plain_namespace(first)[f"d_{case.name}"]
    dd = plain_namespace(gradient_file(module))[f"d_d_{case.name}"]

    def second(args: Arrays, ys: list[np.ndarray], dys: list[np.ndarray], seeds: list[np.ndarray]) -> Arrays:
        known = named(ys, dys) | args
        taken = {k: known[k] for k in inspect.signature(d).parameters}
        gs = outputs_of(d(**{k: v.copy() for k, v in taken.items()}))
        given = taken | dict(zip([c.name for _, c in cotangents_of(layer)], seeds, strict=True))
        for result, value in zip(layer.results, gs, strict=True):
            given.setdefault(result.name, value)
        found = outputs_of(dd(**{k: given[k].copy() for k in inspect.signature(dd).parameters}))
        return dict(zip(taken, found, strict=True))

    check(case, second)


@pytest.fixture(scope="module")
def gradients(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The compiled gradient file of the cases, whose layers have gradients in turn."""
    folder = tmp_path_factory.mktemp("second")
    source = layer_source(COMPILED[0]) + "\n\n".join(
        ["", *(layer_source(c).partition("Param\n\n\n")[2] for c in COMPILED[1:])]
    )
    path = folder / "firsts.py"
    path.write_text(gradient_file(check_file(Path("cases.py"), source)))
    build(path)
    package = by_jax.load(path)
    return {
        layer.name: (getattr(package, layer.name), [p.name for p in layer.predict.params])
        for layer in check_file(path).layers
    }


@pytest.mark.parametrize("case", COMPILED, ids=lambda c: c.name)
def test_compiled_is_jaxs(gradients: Any, case: Case) -> None:
    layer, taken = gradients[f"d_{case.name}"]

    def second(args: Arrays, ys: list[np.ndarray], dys: list[np.ndarray], seeds: list[np.ndarray]) -> Arrays:
        known = named(ys, dys) | args
        _, pullback = layer.vjp(*(known[k] for k in taken))
        return dict(zip(taken, pullback(*seeds), strict=True))

    check(case, second)
