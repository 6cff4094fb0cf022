"""What NumPy and math have, asked of them: a name that they know is not misspelt, one that they lack cannot run."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from typing import Any

import numpy

_MODULES = {"np": "numpy", "math": "math"}


def module_of(dotted: str | None) -> Any:
    """NumPy, one of its modules, or math, by the name that a file's text resolves to; None of any other name."""
    first, _, rest = (dotted or "").partition(".")
    if first not in _MODULES:
        return None
    module: Any = importlib.import_module(_MODULES[first])
    for attr in filter(None, rest.split(".")):
        module = getattr(module, attr, None)
    return module if hasattr(module, "__spec__") else None


def has(module: Any, attr: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inside = hasattr(module, "__path__") and importlib.util.find_spec(f"{module.__name__}.{attr}") is not None
        return hasattr(module, attr) or inside


def exists(dotted: str) -> bool:
    """Whether np.linalg.svd, or a method np.ndarray.view, is a name of NumPy's."""
    scope, _, attr = dotted.rpartition(".")
    owner = numpy.ndarray if scope == "np.ndarray" else module_of(scope)
    return owner is not None and has(owner, attr)


__all__ = ["exists", "has", "module_of"]
