"""What `Net(...)` and its calls are given besides arrays, checked. All errors name the net or the argument."""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from layerc.runtime.compiled_layer import as_layer
from layerc.runtime.layer import Layer


def checked_seed(name: str, seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise TypeError(f"net {name!r}: seed={seed!r} must be an integer")
    if seed < 0:
        raise ValueError(f"net {name!r}: seed={seed!r} must be 0 or more")
    return int(seed)


def checked_layers(name: str, layers: Any) -> list[Layer]:
    if isinstance(layers, Layer | str | Mapping) or not isinstance(layers, Iterable):
        raise TypeError(f"net {name!r} takes a list of layers, not {type(layers).__name__} {layers!r}")
    return [_checked_layer(layer) for layer in layers]


def _checked_layer(layer: Any) -> Layer:
    layer = as_layer(layer)
    if isinstance(layer, type):
        raise TypeError(f"{layer.__name__} is a class; a net takes layers: {layer.__name__}(...)")
    if not isinstance(layer, Layer):
        raise TypeError(
            f"a net takes layers, not {type(layer).__name__} {layer!r}; CompiledLayer(fn) makes one of a function"
        )
    return layer


def check_coefficient(regu_coef: Any) -> None:
    if isinstance(regu_coef, bool) or not isinstance(regu_coef, Real):
        raise TypeError(f"regu_coef={regu_coef!r} must be a number")
    if not math.isfinite(regu_coef):
        raise ValueError(f"regu_coef={regu_coef!r} must be finite")


def float_type(layers: Sequence[Layer], dtype: Any) -> np.dtype:
    if dtype is not None:
        dtype = np.dtype(dtype)
        if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise TypeError(f"dtype of a net must be float32 or float64, not {dtype}")
        return dtype
    found = [t for layer in layers for t in getattr(layer, "float_types", [])]
    found = [t if t.itemsize >= 4 else np.dtype(np.float32) for t in found]
    return np.result_type(*found) if found else np.dtype(np.float32)
