"""Compiled forwards against their NumPy meaning.

Each case of forward_cases.py runs in both float types, at odd sizes and batches.
"""

from __future__ import annotations

import importlib
import sys
import warnings

import numpy as np
import pytest
import random_layers
from forward_cases import ALL_SIZES, HEAD, Case, cases

from layerc.build.driver import build, read_module
from layerc.transpile.operations import ROWS
from layerc.transpile.program import Call, stmt_exprs, walk, walk_stmts

CASES = cases()
CHUNK = 24  # functions a file: many in one keep gcc's start-up rare
FILES = [CASES[k : k + CHUNK] for k in range(0, len(CASES), CHUNK)]
BATCHES = (None, 0, 1, 3)
TOLERANCE = {np.float32: 3e-5, np.float64: 3e-13}
# What has no case: it is not written by a user, or stands only inside other operations.
_INTERNAL = {"argleast", "list", "dim", "extent", "top", "share"}
# Integers only, in ranges of their own: tests/spec/layers/constructs.py has them.
_INTERNAL |= {"left_shift", "right_shift", "bitwise_not"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The packages of the files of cases, each built when it is first needed."""
    folder = tmp_path_factory.mktemp("forward")
    made = {}
    sys.path.insert(0, str(folder))

    def package(case: Case):
        number = next(k for k, file in enumerate(FILES) if case in file)
        if number not in made:
            source = folder / f"forward_{number}.py"
            source.write_text(HEAD + "\n\n".join(c.source for c in FILES[number]))
            made[number] = importlib.import_module(build(source).name)
        return made[number]

    yield package
    sys.path.remove(str(folder))


def draw(rng, dtype, dims, domain, sizes, real, batch):
    shape = tuple(sizes[d] if d in sizes else int(d) for d in dims.split())
    if batch is not None:
        shape = (batch, *shape)
    if dtype == "bool":
        return rng.random(shape) > 0.5
    if dtype in ("i32", "i64"):
        n = (sizes[domain.split()[1]] or 1) if domain.startswith("in") else 4
        return np.asarray(rng.integers(-n, n, shape), {"i32": np.int32, "i64": np.int64}[dtype])
    kind = {"real": real, "f32": np.float32, "f64": np.float64}[dtype]
    match domain:
        case "pos":
            values = rng.uniform(0.1, 3, shape)
        case "unit":
            values = rng.uniform(-0.95, 0.95, shape)
        case "open":
            values = rng.uniform(0.05, 0.95, shape)
        case "above":
            values = rng.uniform(1.1, 3, shape)
        case "some":
            values = rng.integers(-2, 3, shape).astype(float)
        case _:
            values = rng.normal(size=shape)
    return np.asarray(values, kind)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_as_numpy(case, packages):
    compiled = getattr(packages(case), case.name)
    rng = np.random.default_rng(7)
    for real in (np.float32, np.float64):
        for sizes in ALL_SIZES:
            for batch in BATCHES:
                arrays = [draw(rng, d, dims, domain, sizes, real, batch) for _, d, dims, domain in case.arguments]
                agree(compiled, arrays, batch, real)


def agree(compiled, arrays, batch, real):
    before = [a.copy() for a in arrays]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = compiled.reference(*arrays, batch=batch is not None)
        except (ValueError, IndexError, AssertionError, ZeroDivisionError) as error:
            if batch == 0:  # the reference asks an example of zeros for its shape; no kernel runs
                return
            with pytest.raises(type(error)):
                compiled(*arrays, batch=batch is not None)
            return
    found = compiled(*arrays, batch=batch is not None)
    for a, b in zip(arrays, before):
        np.testing.assert_array_equal(a, b, err_msg="an argument was changed")
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(expected)
    for y, right in zip(found, expected):
        y, right = np.asarray(y), np.asarray(right)
        assert y.shape == right.shape
        assert y.dtype.kind == right.dtype.kind
        if y.dtype.kind != "f":
            np.testing.assert_array_equal(y, right)
        elif right.size:
            finite = right[np.isfinite(right)]
            scale = 1 + float(np.max(np.abs(finite))) if finite.size else 1
            np.testing.assert_allclose(y, right, rtol=TOLERANCE[real], atol=TOLERANCE[real] * scale)


def test_names_are_unique():
    names = [c.name for c in CASES]
    assert len(set(names)) == len(names), sorted({n for n in names if names.count(n) > 1})


def test_every_operation_has_a_case(tmp_path):
    used = set()
    texts = {"all": HEAD + "\n\n".join(c.source for c in CASES), "random": random_layers.TEXT}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    for layer in (layer for name in texts for layer in read_module(tmp_path / f"{name}.py").layers):
        for stmt in walk_stmts(layer.predict.body):
            for expr in stmt_exprs(stmt):
                used |= {e.op for e in walk(expr) if isinstance(e, Call)}
    missing = {name for name, row in ROWS.items() if row.kind not in ("derivative", "inner")} - used - _INTERNAL
    assert not missing, f"give these rows a line in forward_cases.py: {sorted(missing)}"
