"""What a compiled layer has to stand: NumPy's values, finite differences in float64, the same bits on any threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from layerc import get_num_threads, set_num_threads

STEP = 1e-6


def agrees(
    layer: Any,
    values: Sequence[Any],
    rng: np.random.Generator,
    tight: float,
    close: float,
    exact: bool = True,
    **options: Any,
) -> None:
    """Values within `tight` of the reference in float64, gradients within `close` of its central differences, each
    along a random direction. `exact`: predict and the forward of vjp agree in every bit; where one of them adds up in a
    loop of its own and the other beside a product they need not. `options`: of the layer."""
    wide = [v.astype(float) if np.issubdtype(v.dtype, np.floating) else v for v in map(np.asarray, values)]
    want = layer.reference(*wide, **options)
    y, pullback = layer.vjp(*values, **options)
    np.testing.assert_allclose(y, want, tight, tight)
    assert not exact or np.array_equal(y, layer(*values, **options), equal_nan=True), "predict and vjp differ"
    dy = rng.standard_normal(np.shape(want))
    gradients = pullback(dy.astype(np.asarray(y).dtype))
    gradients = list(gradients) if isinstance(gradients, (tuple, list)) else [gradients]
    for position, gradient in enumerate(gradients):
        if gradient is None:  # of integers
            continue
        way = rng.standard_normal(wide[position].shape)
        moved = [[v + s * way if k == position else v for k, v in enumerate(wide)] for s in (STEP, -STEP)]
        ends = [layer.reference(*there, **options) for there in moved]
        np.testing.assert_allclose(np.sum(gradient * way), np.sum(dy * (ends[0] - ends[1])) / (2 * STEP), close, close)


def same_bits(layer: Any, values: Sequence[Any], counts: Sequence[int] = (1, 2, 3, 5)) -> None:
    """Values and gradients do not hang on how many threads there are."""
    dy = np.ones_like(layer(*values))
    before, found = get_num_threads(), []
    try:
        for count in counts:
            set_num_threads(count)
            gradients = layer.vjp(*values)[1](dy)
            found.append([layer(*values), *(gradients if isinstance(gradients, (tuple, list)) else [gradients])])
    finally:
        set_num_threads(before)
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def sized(texts: Sequence[str], sizes: Mapping[str, int], examples: int, dtype: type) -> list[np.ndarray]:
    """Values of such shapes ("2 n m"), the first one of so many examples."""
    rng = np.random.default_rng(sum(31**k * size for k, size in enumerate(sizes.values())))
    found = []
    for position, text in enumerate(texts):
        shape = tuple(sizes[axis] if axis in sizes else int(axis) for axis in text.split())
        found.append(rng.standard_normal(shape if position else (examples, *shape)).astype(dtype))
    return found
