"""Layer files as cases: the compiled library and the gradient source against what NumPy makes of the same file.

A case is a layer of a file in `layers/`; the comment at the head of its function gives the extents of its named
dimensions and what its arguments are drawn from:

    def f(x: real["N M"], i: i64["K"]):  # N=4 M=3 K=2 low=0.5 high=2 ints=0:4

Words of the comment: `low`, `high` of floats (-2, 2), `ints=first:end` (0:3); `S=2x3` for a group; `kink` if central differences
do not hold; `edge=...` the only extents that all dimensions take beside the given ones (`1,0` if left out, `-` for none).
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from layerc.build.driver import build
from layerc.build.gradients import gradients_of
from layerc.transpile.layers import check_file
from layerc.transpile.program import Layer, Parameter, Result

LAYERS = Path(__file__).parent / "layers"
SEEDS = (0, 1, 2)
STEP = 1e-6  # of central differences
DTYPES = {"i32": np.int32, "i64": np.int64, "bool": np.bool_, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Case:
    file: str
    name: str
    options: tuple[tuple[str, str], ...]

    def get(self, key: str, default: str = "") -> str:
        return dict(self.options).get(key, default)

    @property
    def sizes(self) -> dict[str, Any]:
        return {
            k: tuple(int(n) for n in v.split("x")) if "x" in v or k == "S" else int(v)
            for k, v in self.options
            if k[0].isupper()
        }

    @property
    def edges(self) -> list[dict[str, Any]]:
        """All extents one, and all none."""
        found = [e for e in self.get("edge", "1,0").split(",") if e not in ("", "-")]
        return [{k: (int(e),) if isinstance(v, tuple) else int(e) for k, v in self.sizes.items()} for e in found]


def cases(file: str) -> list[Case]:
    text = (LAYERS / f"{file}.py").read_text()
    found = []
    for name, comment in re.findall(r"^@layer(?:\(.*\))?\ndef (\w+)\(.*:  # ?(.*)$", text, flags=re.MULTILINE):
        options = tuple(tuple(o.partition("=")[::2]) for o in comment.split())
        found.append(Case(file, name, options))
    count = len(re.findall(r"^@layer", text, flags=re.MULTILINE))
    assert len(found) == count, (
        f"{file}: {count} layers, {len(found)} with the comment of a case: {[c.name for c in found]}"
    )
    return found


@cache
def checked(file: str) -> dict[str, Layer]:
    return {layer.name: layer for layer in check_file(LAYERS / f"{file}.py").layers}


def load(path: Path, name: str, folder: Path | None = None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[str(folder)] if folder else None
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Built:
    """The package of a layer file, and its gradient source as a module of its own."""

    package: ModuleType
    gradients: ModuleType


def built(file: str, folder: Path) -> Built:
    target = build(LAYERS / f"{file}.py", folder / f"{file}_compiled")
    package = load(target / "__init__.py", target.name, target)
    return Built(package, load(target / "gradients.py", f"{file}_gradients"))


def plain(file: str) -> Built:
    """Without a compiler: the layer file itself, and its gradient source."""
    package = load(LAYERS / f"{file}.py", f"{file}_plain")
    source = ModuleType(f"{file}_source")
    source.__dict__["__name__"] = source.__name__
    text = gradients_of(check_file(LAYERS / f"{file}.py")).text
    exec(compile(text, f"{file}_gradients.py", "exec"), source.__dict__)
    return Built(package, source)


# -- arguments ---------------------------------------------------------------------------------------------------
def extents(text: str, sizes: dict[str, Any]) -> tuple[int, ...]:
    found: list[int] = []
    for word in text.split():
        if word.startswith("*"):
            found += sizes[word[1:]]
        else:
            found.append(3 if word == "_" else eval(word, {}, sizes))
    return tuple(found)


def arguments(case: Case, seed: int, dtype: str, sizes: dict[str, Any] | None = None) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = sizes or case.sizes
    low, high = float(case.get("low", "-2")), float(case.get("high", "2"))
    first, end = (int(n) for n in case.get("ints", "0:3").split(":"))
    found = {}
    for p in slots(case):
        shape = extents(p.shape_text, sizes)
        if p.type.dtype == "bool":
            found[p.name] = rng.uniform(size=shape) < 0.5
        elif p.type.is_integer:
            found[p.name] = rng.integers(first, end, shape).astype(DTYPES[p.type.dtype])
        else:
            kind = dtype if p.type.dtype == "real" else DTYPES[p.type.dtype]
            found[p.name] = rng.uniform(low, high, shape).astype(kind)
    return {k: np.asarray(v) for k, v in found.items()}


def slots(case: Case) -> list[Parameter]:
    return [p for p in checked(case.file)[case.name].params if p.role in ("input", "param")]


def wide(case: Case, args: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same values in float64, where the type is a choice of the call."""
    real = {p.name for p in slots(case) if p.type.dtype == "real"}
    return {k: v.astype("f8") if k in real else v for k, v in args.items()}


def outputs(case: Case) -> list[Result]:
    return [r for r in checked(case.file)[case.name].predict.results if r.role == "output"]


def types_of(case: Case, dtype: str) -> list[np.dtype]:
    """The element types of the outputs, where that of the call is dtype; float64, if no argument says it."""
    if not any(p.type.dtype == "real" for p in slots(case)):
        dtype = "f8"
    return [np.dtype(DTYPES.get(r.type.dtype, dtype)) for r in outputs(case)]


def strided(array: np.ndarray) -> np.ndarray:
    """The same values, every second element of memory, the last axis reversed."""
    if not array.ndim:
        return array
    spaced = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
    view = spaced[..., ::-2][..., : array.shape[-1]]
    view[...] = array
    return view


def tupled(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


# -- comparing ---------------------------------------------------------------------------------------------------
def close(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Relative to the largest element; NaN only where NumPy has one."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{what}: {found.shape}, expected {expected.shape}"
    finite = np.abs(expected[np.isfinite(expected)]) if expected.dtype.kind == "f" else np.abs(expected.astype(float))
    scale = 1 + float(np.max(finite, initial=0))
    np.testing.assert_allclose(
        found.astype(float), expected.astype(float), rtol=0, atol=tolerance * scale, err_msg=what
    )


def cotangents(case: Case, ys: tuple[Any, ...], seed: int, dtype: str) -> list[np.ndarray | None]:
    rng = np.random.default_rng(seed + 10)
    made = [(t, rng.standard_normal(np.shape(y)).astype(t)) for y, t in zip(ys, types_of(case, dtype), strict=True)]
    return [dy if t.kind == "f" else None for t, dy in made]


def flat(array: Any, text: str) -> Any:
    """With a group of axes as one axis, as a function sees it."""
    words = text.split()
    at = next((k for k, w in enumerate(words) if w.startswith("*")), None)
    if at is None or array is None:
        return array
    shape = np.shape(array)
    end = at + 1 + len(shape) - len(words)
    return np.reshape(array, (*shape[:at], math.prod(shape[at:end]), *shape[end:]))


def text_gradients(
    case: Case, module: ModuleType, args: dict[str, Any], ys: tuple[Any, ...], dys: list[Any]
) -> list[Any]:
    """What the gradient source says under NumPy, for the floating arguments."""
    function = getattr(module, f"d_{case.name}")
    function = getattr(function, "__wrapped__", function)
    layer = checked(case.file)[case.name]
    texts = {p.name: p.shape_text for p in layer.params}
    known = {k: flat(v, texts[k]) for k, v in args.items()}
    for result, y, dy in zip(outputs(case), ys, dys, strict=True):
        y, dy = flat(y, result.shape_text), flat(dy, result.shape_text)
        known.setdefault("dy" if result.name == "y" else f"d{result.name}", dy)
        known.setdefault(result.name, y)
    known |= {p.name: p.default for p in layer.params if p.role == "config"}
    wanted = inspect.signature(function).parameters
    given = {k: known[k].copy() if isinstance(known[k], np.ndarray) else known[k] for k in wanted}
    floats = [v for v in args.values() if v.dtype.kind == "f"]
    found = tupled(function(**given))
    assert len(found) == len(floats)
    return [np.reshape(g, np.shape(v)) for g, v in zip(found, floats, strict=True)]


def differences(
    function: Any, args: dict[str, np.ndarray], dys: list[Any], name: str, step: float = STEP
) -> np.ndarray:
    """d <function(args), dys> / d args[name]."""
    found = np.zeros_like(args[name])
    for index in np.ndindex(found.shape):
        values = []
        for sign in (1, -1):
            moved = {k: v.copy() for k, v in args.items()}
            moved[name][index] += sign * step
            ys = tupled(function(**moved))
            values.append(sum(float(np.sum(y * dy)) for y, dy in zip(ys, dys, strict=True) if dy is not None))
        found[index] = (values[0] - values[1]) / (2 * step)
    return found


# -- what is held of every case ----------------------------------------------------------------------------------
def check_values(case: Case, here: Built) -> None:
    """The compiled forward is the file's under NumPy: both types, strided, arguments unchanged."""
    fn = getattr(here.package, case.name)
    for dtype, tolerance in (("f8", 1e-10), ("f4", float(case.get("loose", "1e-3")))):
        for seed in SEEDS:
            args = arguments(case, seed, dtype)
            given = {k: strided(v) for k, v in args.items()} if seed == 1 else {k: v.copy() for k, v in args.items()}
            expected = tupled(fn.reference(**wide(case, args)))
            found = tupled(fn(**given))
            assert len(found) == len(expected)
            for k, (y, e, t) in enumerate(zip(found, expected, types_of(case, dtype), strict=True)):
                assert np.asarray(y).dtype == t, f"output {k} is {np.asarray(y).dtype}, declared {t}"
                close(y, e, tolerance, f"output {k}, {dtype}, seed {seed}")
            for k in args:
                assert np.array_equal(given[k], args[k], equal_nan=args[k].dtype.kind == "f"), f"{k} was changed"


def check_text(case: Case, here: Built) -> None:
    """The gradient source under NumPy is the derivative, for every floating argument."""
    fn = getattr(here.package, case.name)
    fn = getattr(fn, "reference", fn)
    for seed in SEEDS:
        args = arguments(case, seed, "f8")
        ys = tupled(fn(**args))
        dys = cotangents(case, ys, seed, "f8")
        gradients = text_gradients(case, here.gradients, args, ys, dys)
        floats = [k for k, v in args.items() if v.dtype.kind == "f"]
        assert len(gradients) == len(floats)
        for name, gradient in zip(floats, gradients, strict=True):
            close(gradient, differences(fn, args, dys, name), 3e-6, f"d_{name}, seed {seed}")


def check_gradients(case: Case, here: Built) -> None:
    """The compiled gradient is the source's: both types, one example and batches."""
    fn = getattr(here.package, case.name)
    layer = checked(case.file)[case.name]
    for dtype, tolerance in (("f8", 1e-10), ("f4", float(case.get("loose", "3e-3")))):
        runs = []
        for seed in SEEDS:
            args = arguments(case, seed, dtype)
            ys = tupled(fn.reference(**wide(case, args)))
            dys = cotangents(case, ys, seed, dtype)
            wide_dys = [d if d is None else d.astype("f8") for d in dys]
            expected = text_gradients(case, here.gradients, wide(case, args), ys, wide_dys)
            found_y, pullback = fn.vjp(**args)
            gradients = pullback(*dys)
            check_slots(args, gradients, expected, tolerance, f"{dtype}, seed {seed}")
            for y, e in zip(tupled(found_y), ys, strict=True):
                close(y, e, max(tolerance, 1e-10), f"output of vjp, {dtype}")
            runs.append((args, ys, dys, expected))
        if layer.predict.batched or not any(p.role == "input" for p in slots(case)):
            continue
        stack_of = {p.name: p.role == "input" for p in slots(case)}
        first = runs[0][0]
        batch = {k: np.stack([r[0][k] for r in runs]) if stack_of[k] else first[k] for k in first}
        shared = [k for k in first if not stack_of[k]]
        if shared:
            continue
        y, pullback = fn.vjp(**batch, batch=True)
        for k, found in enumerate(tupled(y)):
            close(found, np.stack([r[1][k] for r in runs]), tolerance, f"output {k} of the batch, {dtype}")
        dys = [None if runs[0][2][k] is None else np.stack([r[2][k] for r in runs]) for k in range(len(runs[0][2]))]
        expected = [np.stack([r[3][k] for r in runs]) for k in range(len(runs[0][3]))]
        check_slots(first, pullback(*dys), expected, tolerance, f"batch, {dtype}")


def check_slots(args: dict[str, Any], gradients: Any, expected: list[Any], tolerance: float, what: str) -> None:
    """A gradient for each floating argument, of its type; None for the others."""
    assert [g is not None for g in gradients] == [v.dtype.kind == "f" for v in args.values()]
    floats = [k for k, v in args.items() if v.dtype.kind == "f"]
    for name, g, e in zip(floats, [g for g in gradients if g is not None], expected, strict=True):
        assert np.asarray(g).dtype == args[name].dtype
        close(g, e, tolerance, f"d_{name}, {what}")


def check_edges(case: Case, here: Built) -> None:
    """All extents one, and all none: the same values, the same shapes of gradients, or the same exception."""
    fn = getattr(here.package, case.name)
    differentiable = checked(case.file)[case.name].backward != "none"
    for sizes in case.edges:
        try:
            args = arguments(case, 0, "f8", sizes)
        except ValueError:  # an extent below zero
            continue
        try:
            with np.errstate(all="ignore"):
                expected = tupled(fn.reference(**args))
        except Exception as error:
            try:
                found = fn(**args)
            except type(error):
                continue
            raise AssertionError(f"{sizes}: NumPy raises {error!r}, compiled gives {found!r}") from error
        found = tupled(fn(**args))
        for k, (y, e) in enumerate(zip(found, expected, strict=True)):
            close(y, e, 1e-10, f"output {k}, {sizes}")
        if not differentiable:
            continue
        dys = cotangents(case, expected, 0, "f8")
        _, pullback = fn.vjp(**args)
        gradients = pullback(*dys)
        with np.errstate(all="ignore"):
            texts = text_gradients(case, here.gradients, args, expected, dys)
        check_slots(args, gradients, texts, 1e-10, f"{sizes}")


CHECKS = {"values": check_values, "text": check_text, "gradients": check_gradients, "edges": check_edges}


def checks(case: Case) -> Iterator[str]:
    """The names of the checks that a case has."""
    differentiable = checked(case.file)[case.name].backward != "none"
    yield "values"
    if differentiable and "kink" not in dict(case.options):
        yield "text"
    if differentiable:
        yield "gradients"
    yield "edges"
