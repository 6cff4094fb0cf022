"""What must hold for a program under NumPy: it is accepted, and its gradient source agrees with differences.

A derivative is compared along random directions. The differences of two step sizes tell how good they are; where a kink
or a jump is near, they do not agree with each other, or forward and backward differ: such a direction says nothing.
"""

from __future__ import annotations

import inspect
import re
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.programs import PATH, Program, namespace
from layerc import Random
from layerc.adjoint.gradient import gradient_file
from layerc.transpile.backwards import cotangents_of
from layerc.transpile.errors import InvalidFile, Mistake
from layerc.transpile.layers import check_file
from layerc.transpile.program import Function, Module

STEP = 2e-6
SEED = 5  # of the random numbers that programs draw
Values = dict[str, Any]

# Programs that NumPy runs and layerc refuses on purpose, by the beginning of the mistake's text.
REFUSALS = (
    r"name: .* is (a part|another name) of (one|an) array",
    r"name: .* is one thing before the loop and another after its body",
    r"unsupported: what np.(broadcast_to|diagonal) gives is not written into",
    r"unsupported: writing through (a reversed view|this view|a view with new axes)",
    r"name: .* is assigned in the loop only, which may not run",
    r"index: cannot tell whether the slice bound",
    r"derivative: the bounds of this loop depend on values",
    r"aliasing: ",
    r"type: this shows a scalar",
    r"role: this writes into .* a Param of the layer",
    r"shape: the result .* has two groups of axes",
    r"type: the result has shape .* on one branch and",
    r"type: .* has shape .* on one branch and",
    r"type: .* is real.*max\(0.* before the loop and",
    r"unsupported: this array is written into in place, and the list would hold it",
    r"unsupported: what this loop appends to a list is written into in the next iteration",
    r"shape: the bound of a slice depends on values",
    r"type: .* is i(64|32|nt)\S* on one path and ",  # math.ceil(x) here, x there
    r"type: .* on one path and i(64|32|nt)",
    r"type: .* before the loop and i(64|32|nt)",
    r"type: .* is i(64|32|nt)\S* before the loop and ",
)


class Failure(Exception):
    """`kind` names what went wrong in words that are the same for the same fault; `detail` says all."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}\n{detail}")
        self.kind, self.detail = kind, detail


@dataclass
class Studied:
    """A program, its module and its gradient; what it gives at each point, in float64."""

    program: Program
    module: Module
    gradient_text: str
    forward: Any
    backward: Any
    function: Function
    points: list[Point] = field(default_factory=list)
    raises: list[tuple[int, Exception]] = field(default_factory=list)  # points at which NumPy raises
    compared: int = 0
    skipped: int = 0


@dataclass
class Point:
    number: int
    values: Values
    outputs: list[np.ndarray]
    cotangents: dict[str, np.ndarray]
    gradients: list[np.ndarray]


def study(program: Program) -> Studied | None:
    """The program with all that NumPy says of it. None where layerc refuses it on purpose, or no value is finite. Failure."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        module = _accepted(program)
        if module is None:
            return None
        text, gradient_module = _gradient(module)
        if gradient_module is None:
            return None
        function = module.layers[0].predict
        studied = Studied(
            program,
            module,
            text,
            program.function(namespace(program.source)),
            namespace(text)[f"d_{program.name}"],
            function,
        )
        for number in range(program.points):
            _point(studied, number)
        return studied


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TimeoutError after that time: a program that was cut down may run for ever. For the main thread of a process."""

    def stop(*_: Any) -> None:
        raise Overtime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Overtime(BaseException):
    """Not an Exception, so that nothing on the way takes it for a fault of the program."""


def generalised(text: str) -> str:
    """A message without the names and numbers of one program."""
    text = re.sub(r"\([^()]*\)", "()", re.sub(r"\([^()]*\)", "()", text.splitlines()[0]))
    return re.sub(r"\b([a-z]|[A-Za-z_]*\d+|[NMK])\b", "#", text)[:110]


def crashed(stage: str, error: BaseException) -> Failure:
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.name}"
    return Failure(f"{stage}: {type(error).__name__} in {where}", "".join(traceback.format_exception(error)[-6:]))


def _accepted(program: Program) -> Module | None:
    try:
        module = check_file(PATH, program.source)
    except InvalidFile as error:
        said = [f"{one.kind}: {one.message}" for one in error.mistakes]
        if any(re.search(pattern, one) for pattern in REFUSALS for one in said):
            return None
        if not _runs(program):
            return None
        raise Failure(f"refused {generalised(said[0])}", str(error)) from None
    except Exception as error:
        raise crashed("check", error) from error
    return module


def _runs(program: Program) -> bool:
    """Whether NumPy runs it."""
    try:
        function = program.function(namespace(program.source))
        for number in range(program.points):
            run(function, program.values(number))
    except Exception:
        return False
    return True


def _gradient(module: Module) -> tuple[str, Module | None]:
    try:
        text = gradient_file(module)
    except (Mistake, InvalidFile) as error:
        if re.search("has no derivative|digamma|the bounds of this loop depend on values", str(error)):
            return "", None
        raise Failure(f"gradient refused {generalised(str(error))}", str(error)) from None
    except Exception as error:
        raise crashed("gradient", error) from error
    try:
        return text, check_file(Path("gradients.py"), text)
    except InvalidFile as error:
        if "at most one group" in str(error):
            return "", None  # an output with the group twice
        raise Failure(
            f"gradient source refused {generalised(str(error.mistakes[0].kind))}", f"{error}\n{text}"
        ) from None
    except Exception as error:
        raise crashed("check of the gradient", error) from error


def run(function: Any, values: Values) -> list[np.ndarray]:
    """The outputs for copies of the values, as arrays."""
    given = inspect.signature(function).parameters
    arguments = {k: v.copy() if hasattr(v, "copy") else v for k, v in values.items() if k in given}
    if "rng" in given:
        narrow = any(getattr(v, "dtype", None) == np.float32 for v in values.values())
        arguments["rng"] = Random(SEED, dtype=np.float32 if narrow else np.float64)
    result = function(**arguments)
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]


def taken_by_backward(function: Function, values: Values, outputs: list[np.ndarray]) -> Values:
    """What the gradient of a function may take: configuration, arguments and cotangents, and what it made."""
    known = {p.name: p.default for p in function.params if p.role == "config"} | values
    for (result, _), y in zip(cotangents_of(function), outputs, strict=True):
        known.setdefault(result.name, y[()])
    return known


def _point(studied: Studied, number: int) -> None:
    program = studied.program
    values = program.values(number)
    try:
        outputs = run(studied.forward, values)
    except (ValueError, IndexError, ZeroDivisionError, AssertionError, np.linalg.LinAlgError) as error:
        studied.raises.append((number, error))
        return
    except TypeError as error:
        if "__trunc__" in str(error):  # math.trunc of an array without axes
            return
        raise Failure(f"NumPy raises TypeError: {generalised(str(error))}", traceback.format_exc()[-600:]) from None
    except Exception as error:
        raise Failure(
            f"NumPy raises {type(error).__name__}: {generalised(str(error) or '-')}", traceback.format_exc()[-600:]
        ) from None
    if not all(np.all(np.isfinite(y)) and np.all(np.abs(y) < 1e6) for y in outputs):
        return
    if any(y.ndim != result.type.rank for (result, _), y in zip(cotangents_of(studied.function), outputs, strict=True)):
        if all(y.size for y in outputs):
            raise Failure("axes of an output", f"{[y.shape for y in outputs]}\n{studied.gradient_text}")
        return  # np.array of no items has one axis; ours has those of the items
    rng = np.random.default_rng(1000 + number)
    cotangents = {}
    for (result, cotangent), y in zip(cotangents_of(studied.function), outputs, strict=True):
        if result.type.is_float:
            cotangents[cotangent.name] = np.asarray(rng.standard_normal(y.shape))[()]
    known = taken_by_backward(studied.function, values | cotangents, outputs)
    try:
        gradients = run(studied.backward, known)
    except Exception as error:
        if "with size 0" in str(error):
            return  # np.take of nothing does not look at its index; the gradient does
        raise Failure(
            f"gradient source raises {type(error).__name__}: {generalised(str(error) or '-')}",
            f"point {number}, {program.sizes}\n{studied.gradient_text}\n{traceback.format_exc()[-900:]}",
        ) from None
    point = Point(number, values, outputs, cotangents, gradients)
    floats = program.differentiated
    if len(floats) != len(gradients):
        raise Failure("number of gradients", f"{len(gradients)} for {len(floats)} arguments\n{studied.gradient_text}")
    for a, gradient in zip(floats, gradients, strict=True):
        _compare(studied, point, a.name, gradient, rng)
    studied.points.append(point)


def _compare(studied: Studied, point: Point, name: str, gradient: np.ndarray, rng: np.random.Generator) -> None:
    value = np.asarray(point.values[name])
    where = (
        f"d_{name} at point {point.number}, sizes {studied.program.sizes[point.number % len(studied.program.sizes)]}"
    )
    if gradient.shape != value.shape:
        raise Failure("shape of a gradient", f"{where}: {gradient.shape} for {value.shape}\n{studied.gradient_text}")
    if not value.size:
        return
    direction = rng.standard_normal(value.shape)
    found = float(np.sum(gradient * direction))
    weights = [point.cotangents.get(c.name) for _, c in cotangents_of(studied.function)]

    def along(step: float) -> float:
        moved = {**point.values, name: (value + step * direction)[()]}
        return sum(
            float(np.sum(y * w)) for y, w in zip(run(studied.forward, moved), weights, strict=True) if w is not None
        )

    finite = bool(np.all(np.isfinite(gradient)))
    verdict = None if not finite and _overflows(studied, point) else agrees(along, found, finite)
    if verdict is None:
        studied.skipped += 1
        return
    studied.compared += 1
    if verdict:
        kind = "gradient differs" if finite else "gradient not finite"
        raise Failure(kind, f"{where}: {verdict}\n{studied.gradient_text}")


def _overflows(studied: Studied, point: Point) -> bool:
    """Whether a value on the way is beyond the type, though no result is: its derivative is, and times 0 it is NaN, as
    everywhere. Not where a choice leaves it out: that must not leak."""
    if "where(" in studied.program.text:
        return False
    try:
        with np.errstate(over="raise"):
            run(studied.forward, point.values)
    except FloatingPointError:
        return True
    return False


def agrees(along: Any, found: float, finite: bool = True) -> str | None:
    """ "" if a derivative agrees with the differences of `along`, what is wrong if not, None if they say nothing."""
    try:
        middle = along(0.0)
        rows = []
        for step in (STEP, STEP / 4):
            up, down = along(step), along(-step)
            rows.append(((up - down) / (2 * step), (up - middle) / step, (middle - down) / step))
    except (ValueError, IndexError, ZeroDivisionError, AssertionError, np.linalg.LinAlgError):
        return None
    (wide, forward, backward), (narrow, forward2, backward2) = rows
    everything = np.array([wide, forward, backward, narrow, forward2, backward2])
    if not np.all(np.isfinite(everything)):
        return None
    noise = 4e-16 * (1 + abs(middle)) / STEP * 60
    scale = 1 + abs(wide)
    # Of a smooth function, the one-sided differences come together in proportion to the step.
    bend, bend2 = abs(forward - backward), abs(forward2 - backward2)
    smooth = bend <= 1e-3 * scale + noise and bend2 <= 0.6 * bend + 1e-6 * scale + 4 * noise
    if not smooth or abs(wide - narrow) > 1e-4 * scale + 4 * noise:
        return None
    allowed = 2e-6 * scale + 20 * abs(wide - narrow) + 4 * noise
    if finite and abs(found - wide) <= allowed:
        return ""
    return f"{found!r}, by differences {wide!r} (allowed {allowed:.1e}; one-sided {forward!r}, {backward!r})"
