"""Many programs as one library, against what NumPy says of each."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import layerc
from fuzzing.oracle import SEED, Failure, Point, Studied, crashed, generalised, run
from fuzzing.programs import HEAD, PATH
from layerc.build import driver
from layerc.build.compiler import Compiler, CompilerFailed, find
from layerc.transpile.backwards import cotangents_of
from layerc.transpile.errors import InvalidFile
from layerc.transpile.layers import check_file

Failed = tuple[Studied, Failure]
_RAISED = (ValueError, IndexError, ZeroDivisionError, AssertionError)
_counter = iter(range(10**9))


@dataclass(frozen=True)
class Style:
    """How a round is compiled. `level`: of the C compiler, which is not what is on trial; without optimising it takes a
    fifth of the time."""

    dtypes: tuple[str, ...] = ("f64",)
    optimiser: bool = True
    level: str = "-O0"
    flags: bool = False  # the flags of a build, and threads
    fixed: bool = False  # every extent a number in the annotations

    @property
    def reals(self) -> list[Any]:
        return [{"f32": np.float32, "f64": np.float64}[d] for d in self.dtypes]

    @property
    def upto(self) -> str | None:
        return None if self.optimiser else "lower"

    def compiler(self) -> Compiler:
        found = find()
        if self.flags:
            return found
        cheap = (f for f in found.flags if f not in ("-fopenmp", "-mprefer-vector-width=512"))
        return replace(found, flags=(*cheap, self.level))  # of several levels the last counts


STYLES = {
    "f64": Style(),
    "f32": Style(("f32",)),
    "plain": Style(optimiser=False, level="-O1"),
    "fixed": Style(fixed=True),
    "full": Style(("f32", "f64"), flags=True),
}


def check_compiled(studied: Sequence[Studied], folder: Path, style: Style) -> list[Failed]:
    """What fails among programs that NumPy agrees about."""
    failed: list[Failed] = []
    if style.fixed:
        studied = [_fixed(one) for one in studied if not (one.program.batched or one.raises)]
    for package, members, error in _built(studied, folder, style):
        if package is None:
            failed.append((members[0], _refused(error)))
            continue
        for one in members:
            try:
                _agrees(one, one.program.compiled(getattr(package, one.program.name)), style)
            except Failure as failure:
                failed.append((one, failure))
    return failed


def _fixed(one: Studied) -> Studied:
    """The program for its first sizes alone, as one writes real["4 3"]."""
    sizes = one.program.sizes[0]

    def numbers(found: re.Match[str]) -> str:
        extents = [e if "*" in e and not e[0].isalnum() else str(eval(e, dict(sizes))) for e in found[2].split()]
        return f"{found[1]}['{' '.join(extents)}']"

    text = re.sub(r"\b(real|f32|f64|i32|i64|bool_)\['([^']*)'\]", numbers, one.program.text)
    points = [p for p in one.points if p.number % len(one.program.sizes) == 0]
    return replace(one, program=replace(one.program, text=text, sizes=(sizes,)), points=points)


def _refused(error: Exception) -> Failure:
    match error:
        case InvalidFile():
            return Failure(f"compiling refused {generalised(error.mistakes[0].kind)}", str(error))
        case CompilerFailed():
            return Failure(f"C: {_first(str(error))}", str(error)[-2000:])
    return crashed("compiling", error.__cause__ or error)


def _first(text: str) -> str:
    return next(
        (generalised(line.split("error:")[1]) for line in text.splitlines() if "error:" in line), generalised(text)
    )


def _built(
    studied: Sequence[Studied], folder: Path, style: Style
) -> Iterator[tuple[Any, Sequence[Studied], Exception | None]]:
    """The package of all; where it cannot be compiled, those of the halves."""
    if not studied:
        return
    try:
        package = _package(studied, folder, style)
    except Exception as error:
        if len(studied) == 1:
            yield None, studied, error
            return
        half = len(studied) // 2
        yield from _built(studied[:half], folder, style)
        yield from _built(studied[half:], folder, style)
        return
    yield package, studied, None


def _package(studied: Sequence[Studied], folder: Path, style: Style) -> Any:
    name = f"round_{next(_counter)}"
    source = HEAD + "\n\n".join(one.program.written for one in studied)
    stages = driver.compile_module(check_file(PATH.with_name(f"{name}.py"), source), upto=style.upto)
    target = folder / f"{name}_compiled"
    try:
        driver._write(stages, style.dtypes, target, False, lambda text: None, style.compiler())
        return _loaded(target)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _loaded(target: Path) -> Any:
    spec = importlib.util.spec_from_file_location(
        target.name, target / "__init__.py", submodule_search_locations=[str(target)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[target.name] = module
    spec.loader.exec_module(module)
    for name in dir(module):
        getattr(module, name)  # while its directory is there
    return module


# -- one program -----------------------------------------------------------------------------------------------------
def _agrees(one: Studied, function: Any, style: Style) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number, error in one.raises:
            _raises(one, function, number, error, style.reals[0])
        for point in one.points:
            for real in style.reals:
                with suppress(Empty):
                    _one_example(one, function, point, real)
        if style.flags and one.points and not (one.program.batched or one.program.random or one.program.fields):
            with suppress(Empty):
                _batch(one, function)


class Empty(Exception):
    """A reduction of nothing: what it is differs from version to version of NumPy and SciPy."""


def _raises(one: Studied, function: Any, number: int, error: Exception, real: Any) -> None:
    if re.search(
        r"need at least one array|zero-size array to reduction|read-only|too many indices|from shape \(0,\)"
        r"|axes don't match array",
        str(error),
    ):
        # Of an empty list NumPy knows no shape; the compiler does. What is broadcast it may write into. SciPy's
        # logsumexp of nothing along two axes indexes one too many.
        return
    if re.search(r"broadcast together with shapes .*\(0,\)", str(error)) and 0 in _sizes(one, number):
        return
    try:
        options = {"rng": SEED} if one.program.random else {}
        function(*(_cast(v, real) for v in one.program.values(number).values()), **options)
    except _RAISED:
        return
    except Exception as other:
        raise crashed("call", other) from other
    where = f"point {number}, sizes {_sizes(one, number)}"
    raise Failure(
        f"compiled code does not raise {type(error).__name__}: {generalised(str(error) or '-')}", f"{where}\n{error!r}"
    )


def _sizes(one: Studied, number: int) -> list[int]:
    return list(one.program.sizes[number % len(one.program.sizes)].values())


def _cast(value: Any, real: Any) -> Any:
    return value.astype(real) if np.asarray(value).dtype.kind == "f" else value


def _call(
    one: Studied, function: Any, arguments: Sequence[Any], dys: Sequence[Any], **options: Any
) -> tuple[list[Any], list[Any]]:
    if one.program.random:
        options["rng"] = SEED
    try:
        y, pullback = function.vjp(*arguments, **options)
        gradients = pullback(*dys)
    except Exception as error:
        if isinstance(error, ZeroDivisionError):
            raise Empty from None  # NumPy's own integers warn, and give 0
        # np.take of nothing does not look at its index; compiled code does.
        if re.search(
            r"zero-size array|out of range for axis \d with size 0|expected shape \(.*\b0\b.*\), got", str(error)
        ):
            raise Empty from None  # newer SciPy says -inf for logsumexp of nothing; of an empty list NumPy knows no shape
        raise Failure(
            f"compiled code raises {type(error).__name__}: {generalised(str(error) or '-')}",
            traceback.format_exc()[-1500:],
        ) from None
    ys = y if isinstance(y, tuple) else (y,)
    return [np.asarray(v) for v in ys], [None if g is None else np.asarray(g) for g in gradients]


def _one_example(one: Studied, function: Any, point: Point, real: Any) -> None:
    values = {k: _cast(v, real) for k, v in point.values.items()}
    seeds = {k: _cast(v, real) for k, v in point.cotangents.items()}
    dys = [seeds.get(c.name) for _, c in cotangents_of(one.function)]
    ys, gradients = _call(one, function, list(values.values()), dys)
    floats = [g for g in gradients if g is not None]
    wide = {k: _cast(v, np.float64) for k, v in values.items()}
    exact = point.outputs, point.gradients
    if real is np.float32:
        exact = _reference(one, wide, {k: _cast(v, np.float64) for k, v in seeds.items()})
    doubts = _doubt(one, wide, seeds, exact, real)
    name = np.dtype(real).name
    where = f"point {point.number}, sizes {one.program.sizes[point.number % len(one.program.sizes)]}, {name}"
    if state := one.program.state:
        run(one.forward, wide)
        _close(function.states[state], one.forward.states[state], 0.0, real, f"compiled state differs, {name}", where)
    chaotic = any(_lost(right, doubt, real) for right, doubt in zip(exact[0], doubts[0], strict=True))
    for k, (y, right, doubt) in enumerate(zip(ys, exact[0], doubts[0], strict=True)):
        if chaotic and right.dtype.kind != "f":
            continue  # that few tries agree about a truth value says nothing where reals beside it differ by themselves
        rounds = real is np.float32 or "linalg" in one.program.text
        if rounds and right.dtype.kind == "i" and re.search(r"np\.arg(max|min|sort)", one.program.text):
            continue  # where roundings make two values one, or two of one as LAPACK's do, the first of them is another
        _close(y, right, doubt, real, f"compiled output differs, {name}", f"output {k}, {where}")
    for k, (g, right, doubt) in enumerate(zip(floats, exact[1], doubts[1], strict=True)):
        _close(
            g, right, doubt, real, f"compiled gradient differs, {name}", f"gradient {k}, {where}\n{one.gradient_text}"
        )


def _reference(
    one: Studied, values: dict[str, Any], seeds: dict[str, Any]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    ys = run(one.forward, values)
    known = {p.name: p.default for p in one.function.params if p.role == "config"} | values | seeds
    for (result, _), y in zip(cotangents_of(one.function), ys, strict=True):
        known.setdefault(result.name, y[()])
    return ys, run(one.backward, known)


def _doubt(
    one: Studied, values: dict[str, Any], seeds: dict[str, Any], exact: Any, real: Any
) -> tuple[list[float], list[float]]:
    """How far results go for a change of the arguments by a few roundings; for float32 also, how far NumPy's are off."""
    eps = float(np.finfo(real).eps)
    rng = np.random.default_rng(3)
    wide_seeds = {k: _cast(v, np.float64) for k, v in seeds.items()}
    tries: list[tuple[dict[str, Any], dict[str, Any], AbstractContextManager[None]]] = []
    for _ in range(2):
        moved = {
            k: v * (1 + 4 * eps * rng.standard_normal(v.shape)) if np.asarray(v).dtype == np.float64 else v
            for k, v in values.items()
        }
        tries.append((moved, wide_seeds, nullcontext()))
    if real is np.float32:
        narrow = {k: _cast(v, real) for k, v in values.items()}
        tries += [(narrow, seeds, nullcontext()), (narrow, seeds, _well_rounded(one))]  # as our functions nearly are
    found: tuple[list[float], list[float]] = [0.0] * len(exact[0]), [0.0] * len(exact[1])
    for moved, given, around in tries:
        try:
            with around:
                results = _reference(one, moved, given)
        except Exception:  # float32 may raise what float64 does not: an index beyond, math.trunc
            return [np.inf] * len(exact[0]), [np.inf] * len(exact[1])
        for worst, right, got in zip(found, exact, results, strict=True):
            for k, (a, b) in enumerate(zip(right, got, strict=True)):
                if a.size:
                    worst[k] = max(worst[k], float(np.max(np.abs(np.asarray(a, float) - b))))
    return found


class _Rounded:
    """NumPy in float32: element functions are computed in float64, as what rounds to 1 there may not here, and what is
    made of numbers alone is float32, as compiled code has it."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if not isinstance(found, np.ufunc) and callable(found) and not isinstance(found, type):
            return lambda *args, **more: _narrow(found(*args, **more)) if "dtype" not in more else found(*args, **more)
        if not isinstance(found, np.ufunc) or found.nin != 1:
            return found

        def wide(x: Any) -> Any:
            if getattr(x, "dtype", None) != np.float32:
                return found(x)
            y = found(np.asarray(x, np.float64))
            return y.astype(np.float32)[()] if y.dtype == np.float64 else y

        return wide


def _narrow(made: Any) -> Any:
    return made.astype(np.float32) if getattr(made, "dtype", None) == np.float64 else made


@contextmanager
def _well_rounded(one: Studied) -> Iterator[None]:
    spaces = [f.__globals__ for f in (one.forward, one.backward) if hasattr(f, "__globals__")]
    for space in spaces:
        space["np"] = _Rounded()
    try:
        yield
    finally:
        for space in spaces:
            space["np"] = np


def _close(got: np.ndarray, right: np.ndarray, doubt: float, real: Any, kind: str, where: str) -> None:
    if got.shape != right.shape:
        raise Failure("shape of " + kind, f"{where}: {got.shape}, NumPy {right.shape}")
    if not right.size or not np.isfinite(doubt):
        return
    if right.dtype.kind != "f":
        if doubt == 0 and not np.array_equal(got, right):
            raise Failure(kind, f"{where}\ngot\n{got}\nNumPy\n{right}")
        return
    if _lost(right, doubt, real):
        return
    allowed, _ = _allowed(right, doubt, real)
    if not np.all(np.abs(got - right) <= allowed):
        raise Failure(kind, f"{where}, allowed {allowed:.1e}\ngot\n{got}\nNumPy\n{right}")


def _allowed(right: np.ndarray, doubt: float, real: Any) -> tuple[float, float]:
    """How far from `right` a result may be, and how large `right` is."""
    scale = 1 + float(np.max(np.abs(right)))
    return 100 * doubt + (3e-5 if real is np.float32 else 1e-11) * scale, scale


def _lost(right: np.ndarray, doubt: float, real: Any) -> bool:
    """Whether roundings alone leave nothing of these reals that could be compared, or they are beyond the type."""
    if right.dtype.kind != "f" or not right.size:
        return False
    allowed, scale = _allowed(right, doubt, real)
    return not (np.isfinite(scale) and allowed <= 0.05 * scale)


def _batch(one: Studied, function: Any) -> None:
    """Eight examples, bit for bit the same by one and by two threads, and as one example alone."""
    first = one.points[0]
    alike = [p for p in one.points if p.number % len(one.program.sizes) == first.number % len(one.program.sizes)]
    roles = {p.name: p.role for p in one.function.params}
    rows = [alike[k % len(alike)] for k in range(8)]
    arguments = [
        first.values[n] if roles[n] == "param" else np.stack([r.values[n] for r in rows]) for n in first.values
    ]
    if not any(roles[n] == "input" for n in first.values):
        return
    dys = [
        np.stack([r.cotangents[c.name] for r in rows]) if c.name in first.cotangents else None
        for _, c in cotangents_of(one.function)
    ]
    results = []
    for threads in (1, 2):
        layerc.set_num_threads(threads)
        try:
            results.append(_call(one, function, arguments, dys, batch=True))
        except Failure as failure:
            if any(p is not first for p in rows) and "param" in roles.values():
                return  # another example's inputs with these params
            raise failure
        finally:
            layerc.set_num_threads(1)
    for a, b in zip([*results[0][0], *results[0][1]], [*results[1][0], *results[1][1]], strict=True):
        if a is not None and not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            raise Failure("results depend on the number of threads", f"{a}\n{b}")
    for k, (y, right) in enumerate(zip(results[0][0], first.outputs, strict=True)):
        doubts = _doubt(one, first.values, first.cotangents, (first.outputs, first.gradients), np.float64)
        _close(
            y[0],
            right,
            doubts[0][k],
            np.float64,
            "compiled output of a batch differs",
            f"output {k}, first of 8 examples",
        )
    for name, g, right in zip((n for n in first.values), results[0][1], _slots(first, one), strict=True):
        if right is not None and roles[name] == "input":
            _close(
                g[0],
                right[0],
                right[1] + doubts[1][right[2]],
                np.float64,
                "compiled gradient of a batch differs",
                f"d_{name}, first of 8 examples\n{one.gradient_text}",
            )


def _slots(point: Point, one: Studied) -> list[tuple[np.ndarray, float, int] | None]:
    """A gradient for every argument, None for those that have none."""
    gradients = iter(enumerate(point.gradients))
    found: list[tuple[np.ndarray, float, int] | None] = []
    for a in one.program.arguments:
        if a.dtype == "real":
            k, g = next(gradients)
            found.append((g, 0.0, k))
        else:
            found.append(None)
    return found


__all__ = ["STYLES", "Style", "check_compiled"]
