"""Gradient source run under plain NumPy, against central differences in float64, for every argument of every case."""

from __future__ import annotations
import __future__

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_cases import CASES, Case

from layerc.adjoint.extremes import by_ties
from layerc.adjoint.gradient import gradient_file
from layerc.adjoint.rules import differentiable
from layerc.transpile.backwards import cotangents_of
from layerc.transpile.layers import check_file
from layerc.transpile.operations import ROWS
from layerc.transpile.program import Call, stmt_exprs, walk, walk_stmts

HEAD = "import numpy as np\nfrom scipy import special\nfrom layerc import layer, real, Param\n\n\n"


def layer_source(case: Case) -> str:
    return HEAD + case.source.replace(f"def {case.name}(", f"@layer\ndef {case.name}(")


def plain_namespace(text: str) -> dict[str, Any]:
    """Runs source with the annotations and decorators meaning nothing."""
    namespace: dict[str, Any] = {}
    code = compile(
        text.replace("from layerc import layer, real, Param", "layer = lambda f: f"),
        "case",
        "exec",
        flags=__future__.annotations.compiler_flag,
    )
    exec(code, namespace)
    return namespace


def arguments(case: Case, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(case.low, case.high, shape) for name, shape in case.shapes.items()}


def outputs_of(result: Any) -> list[np.ndarray]:
    return [np.asarray(r, dtype=float) for r in (result if isinstance(result, tuple) else (result,))]


def differences(f: Any, args: dict[str, np.ndarray], dys: list[np.ndarray], name: str, h: float = 1e-6) -> np.ndarray:
    """d <f(args), dys> / d args[name], by central differences."""
    gradient = np.zeros_like(args[name])
    for index in np.ndindex(args[name].shape):
        values = []
        for sign in (1, -1):
            moved = {k: v.copy() for k, v in args.items()}
            moved[name][index] += sign * h
            values.append(sum(float(np.sum(y * dy)) for y, dy in zip(outputs_of(f(**moved)), dys, strict=True)))
        gradient[index] = (values[0] - values[1]) / (2 * h)
    return gradient


def call_gradient(d: Any, args: dict[str, np.ndarray], ys: list[np.ndarray], dys: list[np.ndarray]) -> list[np.ndarray]:
    single = len(ys) == 1
    known = dict(args)
    for k, (y, dy) in enumerate(zip(ys, dys, strict=True)):
        known.setdefault("y" if single else f"y{k + 1}", y)
        known.setdefault("dy" if single else f"dy{k + 1}", dy)
    wanted = inspect.signature(d).parameters
    return outputs_of(d(**{k: known[k].copy() for k in wanted}))


def check_source(case: Case, seed: int) -> None:
    """The gradient source of a case under NumPy equals central differences, for every argument."""
    text = gradient_file(check_file(Path("case.py"), layer_source(case)))
    check_file(Path("gradients.py"), text)  # it is a layer file again
    f = plain_namespace(layer_source(case))[case.name]
    d = plain_namespace(text)[f"d_{case.name}"]
    args = arguments(case, seed)
    ys = outputs_of(f(**{k: v.copy() for k, v in args.items()}))
    rng = np.random.default_rng(seed + 10)
    dys = [rng.standard_normal(y.shape) for y in ys]
    gradients = call_gradient(d, args, ys, dys)
    assert len(gradients) == len(args)
    for (name, value), gradient in zip(args.items(), gradients, strict=True):
        expected = differences(f, args, dys, name)
        assert gradient.shape == value.shape, name
        np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=2e-7, err_msg=f"{name}\n{text}")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("seed", [0, 1])
def test_gradient_source(case: Case, seed: int) -> None:
    check_source(case, seed)


# -- gradients of gradients --------------------------------------------------------------------------------------
# The derivative of polygamma(1, x) is not in the table.
NOT_TWICE = {"digamma", "digamma_below"}


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in NOT_TWICE], ids=lambda c: c.name)
def test_gradient_of_gradient(case: Case) -> None:
    """The gradient file is a layer file: its gradients are right too, for every argument of it, the cotangent
    included."""
    first = gradient_file(check_file(Path("case.py"), layer_source(case)))
    second = gradient_file(check_file(Path("gradients.py"), first))
    check_file(Path("gradients2.py"), second)
    d = plain_namespace(first)[f"d_{case.name}"]
    dd = plain_namespace(second)[f"d_d_{case.name}"]
    rng = np.random.default_rng(5)
    known = dict(arguments(case, 0))
    ys = outputs_of(plain_namespace(layer_source(case))[case.name](**{k: v.copy() for k, v in known.items()}))
    for k, y in enumerate(ys):
        suffix = "" if len(ys) == 1 else str(k + 1)
        known.setdefault(f"y{suffix}", y)
        known.setdefault(f"dy{suffix}", rng.standard_normal(y.shape))
    args = {k: known[k] for k in inspect.signature(d).parameters}
    gs = outputs_of(d(**{k: v.copy() for k, v in args.items()}))
    seeds = [rng.standard_normal(g.shape) for g in gs]
    layer = check_file(Path("gradients.py"), first).layers[0].predict
    names = [c.name for _, c in cotangents_of(layer)]
    given = {**args, **dict(zip(names, seeds, strict=True))}
    for result, value in zip(layer.results, gs, strict=True):
        given.setdefault(result.name, value)
    wanted = inspect.signature(dd).parameters
    found = outputs_of(dd(**{k: given[k].copy() for k in wanted}))
    for name, gradient in zip(args, found, strict=True):
        expected = differences(d, args, seeds, name)
        np.testing.assert_allclose(gradient, expected, rtol=5e-6, atol=5e-6, err_msg=f"{name}\n{second}")


# -- the checker itself must be able to fail -------------------------------------------------------------------
def operations_in(case: Case) -> set[str]:
    """Rows through which a derivative flows in a case."""
    found: set[str] = set()
    for layer in check_file(Path("case.py"), layer_source(case)).layers:
        shared, _ = by_ties(layer.predict, frozenset())
        for stmt in (*walk_stmts(layer.predict.body), *walk_stmts(shared.body)):
            for top in stmt_exprs(stmt):
                found |= {e.op for e in walk(top) if isinstance(e, Call) and any(differentiable(e))}
    return found


USED_BY: dict[str, list[Case]] = {}
for _case in CASES:
    for _op in operations_in(_case):
        USED_BY.setdefault(_op, []).append(_case)
RULES = [
    (op, k)
    for op, row in ROWS.items()
    if isinstance(row.grad, tuple) and row.kind != "derivative"
    for k, rule in enumerate(row.grad)
    if rule is not None
]


@pytest.mark.parametrize(("op", "argument"), RULES, ids=lambda v: str(v))
def test_a_derivative_that_is_off_by_a_thousandth_is_caught(
    op: str, argument: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert op in USED_BY, f"no case differentiates {op}"
    row = ROWS[op]
    assert isinstance(row.grad, tuple)
    rules = list(row.grad)
    rules[argument] = f"1.001 * ({rules[argument]})"
    monkeypatch.setitem(ROWS, op, replace(row, grad=tuple(rules)))
    for case in USED_BY[op]:
        for seed in (0, 1):
            try:
                check_source(case, seed)
            except AssertionError:
                return
    pytest.fail(f"1.001 times the derivative of {op} went unnoticed")


def test_configuration_that_only_a_shape_reads():
    """`end` is nowhere in the gradient but in the size of d_longer."""
    source = (
        HEAD
        + "@layer\ndef f(x: real['N'], end: int) -> real['N']:\n"
        + "    longer = np.zeros(x.shape[0] + end)\n"
        + "    y = np.zeros_like(x)\n"
        + "    for i in range(x.shape[0]):\n"
        + "        longer[i] = 3 * x[i]\n"
        + "    for i in range(x.shape[0]):\n"
        + "        y[i] += longer[i]\n"
        + "    return y\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(gradient_file(check_file(Path("f.py"), source)), "gradients", "exec"), namespace)
    parameters = inspect.signature(namespace["d_f"]).parameters
    given = {"x": np.ones(3), "dy": np.array([1.0, 2.0, 4.0]), "end": 2}
    found = namespace["d_f"](**{name: given[name] for name in parameters})
    np.testing.assert_array_equal(found, [3.0, 6.0, 12.0])


@pytest.mark.parametrize(("value", "taken"), [("x", True), ("x[::2]", True), ("np.tanh(x)", False), ("x * x", False)])
def test_an_output_is_compared_with_what_it_was_chosen_from(value: str, taken: bool) -> None:
    """What the gradient computes again need not be, to the last bit, what the forward chose the largest of."""
    head = "import numpy as np\nfrom layerc import layer, real\n\n\n@layer\n"
    source = f'{head}def f(x: real["N"]):\n    return np.max({value})\n'
    text = gradient_file(check_file(Path("f.py"), source))
    assert (" y: real" in text) is taken
    assert ("largest" in text) is not taken


def test_a_number_in_place_has_a_gradient(tmp_path: Path) -> None:
    """Its cotangent is an array without axes that a loop adds to, and that has a second name afterwards."""
    path = tmp_path / "stepped.py"
    path.write_text(
        "import numpy as np\nfrom layerc import layer, real\n\n@layer\ndef stepped(b: real):\n"
        "    for _ in range(2):\n        b += np.clip(b, 0, 2.0)\n    return b if b < 100.0 else 0.0\n"
    )
    text = gradient_file(check_file(path))
    (tmp_path / "gradients.py").write_text(text)
    check_file(tmp_path / "gradients.py")  # it is a layer file itself
    assert float(plain_namespace(text)["d_stepped"](np.array(0.3), np.array(1.0))) == 4.0


@pytest.mark.parametrize(
    ("file", "name"), [("linear_programs", "lu"), ("linear_programs", "cholesky_vectors"), ("in_place", "filtered")]
)
def test_what_places_are_left_with_is_not_saved(file: str, name: str) -> None:
    """Each place is read when it holds what it is left with: the loops are not copied, iteration by iteration."""
    module = check_file(Path(__file__).parent / "spec" / "layers" / f"{file}.py")
    text = gradient_file(replace(module, layers=tuple(one for one in module.layers if one.name == name)))
    assert "_saved" not in text
    assert "np.copy(d_" not in text
