"""Compiled layers against JAX: the forward and all gradients of each case of gradient_cases.py.

JAX runs the case's own source. Its arrays cannot be written into, so `Box` stands between: a NumPy-like array,
views and all, whose writes make new JAX arrays. Conditions and `while` read values, as `jax.vjp` outside of
`jit` allows.
"""

from __future__ import annotations
import __future__

import importlib.util
import itertools
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_cases import CASES, Case
from test_gradient_source import HEAD, arguments

jax = pytest.importorskip("jax")
jnp = jax.numpy

# name: why JAX says nothing about it. (test_gradient_source.py compares these with finite differences.)
WITHOUT_ORACLE = {"arctan2_at_0": "JAX's derivative of arctan2 at the origin is 0 / 0; ours is 0 there"}

FILES = 4
TOLERANCE = {"f4": 2e-3, "f8": 1e-9}  # relative to the largest element
SEEDS = (0, 1)


# -- NumPy's arrays over JAX's -----------------------------------------------------------------------------------
class Box:
    """A JAX array that can be written into; an indexed one with `base` is a view of it."""

    __array_priority__ = 100

    def __init__(self, value: Any, base: Box | None = None, where: Any = None) -> None:
        self.value, self.base, self.where = value, base, where

    @property
    def array(self) -> Any:
        return self.value if self.base is None else self.base.array[self.where]

    def set(self, value: Any) -> None:
        if self.base is None:
            self.value = value
        else:
            self.base.set(self.base.array.at[self.where].set(value))

    def __getitem__(self, index: Any) -> Any:
        index = bare(index)
        parts = index if isinstance(index, tuple) else (index,)
        view = all(isinstance(p, (int, slice, type(None), type(Ellipsis))) for p in parts)
        found = self.array[index]
        return Box(None, self, index) if view and found.ndim else Box(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.set(self.array.at[bare(index)].set(bare(value)))

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.array.shape[0]))

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def __bool__(self) -> bool:
        return bool(self.array)

    def __float__(self) -> float:
        return self.array  # type: ignore[no-any-return]  # a derivative flows through float(x)

    def __int__(self) -> int:
        return int(self.array)

    __index__ = __int__

    @property
    def T(self) -> Box:
        return Box(self.array.T)

    def astype(self, dtype: Any) -> Box:
        return Box(self.array.astype({bool: bool, int: int, float: "f8"}.get(dtype, dtype)))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.array, name)
        return boxed(found) if callable(found) else found


def bare(value: Any) -> Any:
    """Without boxes; a scalar integer as Python's."""
    if isinstance(value, Box):
        value = value.array
        return int(value) if value.ndim == 0 and jnp.issubdtype(value.dtype, jnp.integer) else value
    if isinstance(value, (tuple, list)):
        return type(value)(bare(v) for v in value)
    if isinstance(value, slice):
        return slice(bare(value.start), bare(value.stop), bare(value.step))
    return value


def box(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(box(v) for v in value)
    return Box(value) if isinstance(value, jax.Array) else value


def boxed(function: Any) -> Any:
    return lambda *args, **kwargs: box(function(*bare(args), **{k: bare(v) for k, v in kwargs.items()}))


def _operators() -> None:
    for name in "add sub mul truediv floordiv mod pow matmul and or xor".split():
        for dunder in (f"__{name}__", f"__r{name}__"):
            setattr(Box, dunder, lambda self, other, d=dunder: box(getattr(jnp.asarray(self.array), d)(bare(other))))

        def inplace(self: Box, other: Any, d: str = f"__{name}__") -> Box:
            if self.array.ndim:
                self.set(getattr(self.array, d)(bare(other)))
                return self
            return box(getattr(self.array, d)(bare(other)))  # type: ignore[no-any-return]

        setattr(Box, f"__i{name}__", inplace)
    for name in "lt le gt ge eq ne".split():
        setattr(Box, f"__{name}__", lambda self, other, d=f"__{name}__": box(getattr(self.array, d)(bare(other))))
    for name in "neg pos abs invert".split():
        setattr(Box, f"__{name}__", lambda self, d=f"__{name}__": box(getattr(self.array, d)()))


_operators()


class Namespace:
    """`np`, `np.linalg` or `special` over boxes."""

    def __init__(self, module: Any, **own: Any) -> None:
        self.module = module
        self.__dict__ |= own

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        return boxed(found) if callable(found) and not isinstance(found, type) else found


def _add_at(array: Box, index: Any, value: Any) -> None:
    array.set(array.array.at[bare(index)].add(bare(value)))


def _split(array: Any, sections: Any, axis: int = 0) -> Any:
    return [box(part) for part in jnp.split(bare(array), bare(sections), axis=axis)]


NUMPY = Namespace(
    jnp,
    linalg=Namespace(jnp.linalg),
    add=type("add", (), {"at": staticmethod(_add_at), "__call__": lambda self, a, b: boxed(jnp.add)(a, b)})(),
    split=_split,
    array=boxed(lambda v, dtype=None: jnp.asarray(v, dtype)),
    take=boxed(lambda a, indices, axis=None: jnp.take(a, jnp.asarray(indices), axis)),
)
SPECIAL = Namespace(
    jax.scipy.special,
    log_expit=boxed(jax.nn.log_sigmoid),
    softmax=boxed(jax.nn.softmax),
    log_softmax=boxed(jax.nn.log_softmax),
)


def function_of(case: Case) -> Any:
    """The function of a case's source over JAX arrays: a tuple of arrays from a tuple of arrays."""
    namespace = {"np": NUMPY, "special": SPECIAL, "math": math, "real": None}
    exec(compile(case.source, case.name, "exec", flags=__future__.annotations.compiler_flag), namespace)

    def function(*args: Any) -> Any:
        result = namespace[case.name](*(Box(a) for a in args))
        return tuple(jnp.asarray(bare(r)) for r in (result if isinstance(result, tuple) else (result,)))

    return function


# -- comparing ---------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The compiled layer of each case: a few files, two compilers at a time."""
    folder = tmp_path_factory.mktemp("oracles")
    files = []
    for k in range(FILES):
        cases = CASES[k::FILES]
        source = HEAD + "\n\n".join(c.source.replace(f"def {c.name}(", f"@layer\ndef {c.name}(") for c in cases)
        files.append((folder / f"cases_{k}.py", cases))
        files[-1][0].write_text(source)
    build = [sys.executable, "-m", "layerc.cli", "build"]
    for pair in (files[k : k + 2] for k in range(0, len(files), 2)):
        running = [
            subprocess.Popen([*build, str(f)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for f, _ in pair
        ]
        for process in running:
            output, _ = process.communicate()
            assert process.returncode == 0, output
    found = {}
    for path, cases in files:
        package = load(path)
        found |= {c.name: getattr(package, c.name) for c in cases}
    return found


def load(path: Path) -> Any:
    target = path.with_name(f"{path.stem}_compiled")
    spec = importlib.util.spec_from_file_location(
        target.name, target / "__init__.py", submodule_search_locations=[str(target)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[target.name] = module
    spec.loader.exec_module(module)
    return module


def by_jax(case: Case, dtype: str, seed: int) -> tuple[list[np.ndarray], ...]:
    """Arguments and cotangents in `dtype`, and what float64 JAX makes of them: outputs and gradients."""
    args = [v.astype(dtype) for v in arguments(case, seed).values()]
    with jax.enable_x64(True):
        ys, pullback = jax.vjp(function_of(case), *(jnp.asarray(a.astype("f8")) for a in args))
        rng = np.random.default_rng(seed + 20)
        dys = [rng.standard_normal(y.shape).astype(dtype) for y in ys]
        gradients = pullback(tuple(jnp.asarray(dy.astype("f8")).astype(y.dtype) for dy, y in zip(dys, ys, strict=True)))
    return args, dys, [np.asarray(y) for y in ys], [np.asarray(g) for g in gradients]


def close(found: Any, expected: np.ndarray, dtype: str, what: str) -> None:
    """Elementwise, relative to the largest element; NaN and infinity never pass, on neither side."""
    found = np.asarray(found)
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    assert found.dtype == np.dtype(dtype), f"{what} is {found.dtype}"
    assert np.all(np.isfinite(expected)), f"{what}: JAX gives {expected}"
    assert np.all(np.isfinite(found)), f"{what} is {found}"
    scale = TOLERANCE[dtype] * (1 + float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=scale, err_msg=what)


COVERED = [c for c in CASES if c.name not in WITHOUT_ORACLE]


@pytest.mark.parametrize("case", COVERED, ids=lambda c: c.name)
def test_forward_and_gradients_are_jaxs(layers: dict[str, Any], case: Case) -> None:
    for dtype, seed in itertools.product(TOLERANCE, SEEDS):
        args, dys, ys, gradients = by_jax(case, dtype, seed)
        found, pullback = layers[case.name].vjp(*args)
        found = found if isinstance(found, tuple) else (found,)
        assert len(found) == len(ys)
        for k, (y, expected) in enumerate(zip(found, ys, strict=True)):
            close(y, expected, dtype, f"output {k}, seed {seed}")
        back = pullback(*dys)
        assert len(back) == len(args) == len(gradients)
        for name, gradient, expected in zip(case.shapes, back, gradients, strict=True):
            close(gradient, expected, dtype, f"d_{name}, seed {seed}")


def test_every_case_is_compared_or_says_why_not() -> None:
    names = [c.name for c in CASES]
    assert len(names) == len(set(names))
    assert set(WITHOUT_ORACLE) <= set(names), "these are no cases any more"
    assert all(len(reason) > 10 for reason in WITHOUT_ORACLE.values())
    assert {c.name for c in COVERED} | set(WITHOUT_ORACLE) == set(names)


# -- the comparison itself must be able to fail ------------------------------------------------------------------
def test_a_gradient_that_is_off_is_caught(layers: dict[str, Any]) -> None:
    case = next(c for c in CASES if c.name == "row")
    args, dys, _, gradients = by_jax(case, "f8", 0)
    _, pullback = layers["row"].vjp(*args)
    for k, gradient in enumerate(pullback(*dys)):
        close(gradient, gradients[k], "f8", "as it is")
        for wrong in (
            gradient * 1.001,
            np.where(gradient == np.max(gradient), np.nan, gradient),
            gradient[..., None],
            gradient.astype("f4"),
        ):
            with pytest.raises(AssertionError):
                close(wrong, gradients[k], "f8", "wrong")


def test_boxes_are_written_into_as_arrays_are() -> None:
    def program(a: Any) -> Any:
        v = a[1]
        v *= 3
        v[0] = a[0, 1]
        a[:, 1][::2] += 10.0
        a[::-1][0] -= 1.0
        w = a[0] * 1.0
        w += v
        return w

    array = np.arange(12.0).reshape(3, 4)
    with jax.enable_x64(True):
        boxed_array = Box(jnp.asarray(array))
        w = program(boxed_array)
        expected = program(array)
        np.testing.assert_array_equal(np.asarray(w.array), expected)
        np.testing.assert_array_equal(np.asarray(boxed_array.array), array)
