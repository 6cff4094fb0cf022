"""The options that all solvers take, and what each option may be."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

COMMON: dict[str, Any] = {
    "max_iter": None,
    "max_epoch": None,
    "max_time": None,
    "target": None,
    "patience": None,
    "regu_coef": 0.0,
    "clip_norm": None,
    "clip_global_norm": None,
    "clip_value": None,
    "lr_factors": (),
    "decay_factors": (),
    "load_from": None,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("max_iter", "max_epoch"), lambda v: isinstance(v, int | np.integer) and v >= 0),
    "max_time": lambda v: _is_number(v) and v >= 0,
    **dict.fromkeys(("clip_norm", "clip_global_norm", "clip_value"), lambda v: _is_number(v) and v > 0),
    **dict.fromkeys(("regu_coef", "weight_decay"), lambda v: _is_number(v) and v >= 0),
    **dict.fromkeys(("beta1", "beta2", "alpha", "rho"), lambda v: _is_number(v) and 0 <= v < 1),
    "history_size": lambda v: isinstance(v, int | np.integer) and not isinstance(v, bool) and v >= 0,
    "tolerance": lambda v: _is_number(v) and v >= 0,
    "epsilon": lambda v: _is_number(v) and v >= 0,
    "target": lambda v: len(v) == 2 and isinstance(v[0], str) and _is_number(v[1]),
    "load_from": lambda v: isinstance(v, str | os.PathLike),
    "patience": lambda v: len(v) == 2 and isinstance(v[0], str) and isinstance(v[1], int) and v[1] > 0,
    **dict.fromkeys(
        ("lr_factors", "decay_factors"),
        lambda v: all(len(pair) == 2 and isinstance(pair[0], str) and pair[1] >= 0 for pair in v),
    ),
}


def check_options(kind: str, options: dict[str, Any]) -> None:
    """ValueError for a value that its option cannot take."""
    for key, check in _CHECKS.items():
        value = options.get(key)
        if value is None:
            continue
        try:
            good = not isinstance(value, bool) and check(value)
        except (TypeError, IndexError):
            good = False
        if not good:
            raise ValueError(f"{kind}: option {key}={value!r} is not allowed")
