"""The gradient of a gradient: a gradient file is a layer file, so it has gradients, and these agree with differences."""

from __future__ import annotations

import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.oracle import Failure, Point, Studied, agrees, crashed, generalised, namespace, run, taken_by_backward
from layerc.adjoint.gradient import gradient_file
from layerc.transpile.backwards import cotangents_of
from layerc.transpile.errors import InvalidFile, Mistake
from layerc.transpile.layers import check_file
from layerc.transpile.program import Function, Module

EVERY = 4  # of so many programs, one


def is_chosen(text: str) -> bool:
    return zlib.crc32(text.encode()) % EVERY == 0


def check_second(studied: Studied) -> int:
    """How many derivatives were compared. Failure."""
    first = check_file(Path("gradients.py"), studied.gradient_text)
    text = _text(first)
    if not text or not studied.points:
        return 0
    layer = first.layers[0]
    backward = namespace(text)[f"d_{layer.name}"]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _point(studied, studied.points[0], layer.predict, backward, text)


def _text(first: Module) -> str:
    """Empty where the gradient has no gradient: nothing that it takes is a float."""
    try:
        text = gradient_file(first)
        check_file(Path("gradients.py"), text)
    except (Mistake, InvalidFile) as error:
        if any(
            w in str(error)
            for w in ("has no derivative", "digamma", "depend on values", "at most one group", "no layer in this file")
        ):
            return ""
        kind = "refused" if isinstance(error, Mistake) else "source refused"
        raise Failure(f"second gradient {kind} {generalised(str(error))}", str(error)) from None
    except Exception as error:
        raise crashed("second gradient", error) from error
    return text


def _point(studied: Studied, point: Point, function: Function, backward: Any, text: str) -> int:
    rng = np.random.default_rng(2000 + point.number)
    known = taken_by_backward(studied.function, point.values | point.cotangents, point.outputs)
    taken = {p.name for p in function.params}
    known = {name: value for name, value in known.items() if name in taken}  # y2 may be what it returns, as well
    pairs = [(c, y) for (r, c), y in zip(cotangents_of(function), point.gradients, strict=True) if r.type.is_float]
    weights = {c.name: np.asarray(rng.standard_normal(y.shape))[()] for c, y in pairs}
    try:
        found = run(backward, taken_by_backward(function, known | weights, point.gradients))
    except Exception as error:
        raise Failure(
            f"second gradient raises {type(error).__name__}: {generalised(str(error) or '-')}", text
        ) from None
    floats = [p.name for p in function.params if p.role in ("input", "param") and p.type.is_float]
    compared = 0
    for name, gradient in zip(floats, found, strict=True):
        value = np.asarray(known[name])
        if gradient.shape != value.shape:
            raise Failure("shape of a second gradient", f"{name}: {gradient.shape} for {value.shape}\n{text}")
        if not value.size:
            continue
        direction = rng.standard_normal(value.shape)

        def along(step: float, name: str = name, value: Any = value, direction: Any = direction) -> float:
            ys = run(studied.backward, {**known, name: (value + step * direction)[()]})
            return sum(float(np.sum(y * w)) for (c, _), y in zip(pairs, ys, strict=True) for w in [weights[c.name]])

        verdict = agrees(along, float(np.sum(gradient * direction)), bool(np.all(np.isfinite(gradient))))
        if verdict:
            raise Failure("second gradient differs", f"{name} at point {point.number}: {verdict}\n{text}")
        compared += verdict is not None
    return compared
