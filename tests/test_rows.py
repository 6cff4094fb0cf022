"""Rows of a few elements are copied and added through masks: all lengths, both types, and not one element more."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from

SOURCE = '''
import numpy as np
from layerc import layer, real


@layer
def windows(x: real["H W"], size: int):
    """Each row's neighbours: what a convolution multiplies with."""
    rows, columns = x.shape[0], x.shape[1] - size + 1
    y = np.empty((size, rows, columns))
    for a in range(size):
        for i in range(rows):
            for j in range(columns):
                y[a, i, j] = x[i, j + a]
    return y


@layer
def middle(x: real["H W"], y: real["H V"]):
    """y with x in it, one element from its left."""
    z = y.copy()
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j + 1] = x[i, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j + 1] += x[i, j]
    return z
'''


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    return built_from(folder, "rows_of", SOURCE), (folder / "rows_of_compiled" / "rows_of.c").read_text()


def test_the_loops_are_rows(built):
    _, text = built
    for verb in ("lc_copy_f32(", "lc_copy_f64(", "lc_add_f32(", "lc_add_f64("):
        assert verb in text, verb  # a call: the definition is that of a template


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_every_length(built, real):
    layers, _ = built
    rng = np.random.default_rng(0)
    for columns in range(41):
        x = rng.standard_normal((3, columns + 2)).astype(real)
        want = np.stack([x[:, a : a + columns] for a in range(3)])
        y, pullback = layers.windows.vjp(x, size=3)
        np.testing.assert_array_equal(y, want)
        dy = rng.standard_normal(y.shape).astype(real)
        dx = np.zeros_like(x)
        for a in range(3):
            dx[:, a : a + columns] += dy[a]
        np.testing.assert_allclose(pullback(dy)[0], dx, rtol=1e-6)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_nothing_else_is_touched(built, real):
    layers, _ = built
    for columns in range(41):
        x, y = np.full((4, columns), 2, real), np.full((4, columns + 2), 7, real)
        z = layers.middle(x, y)
        np.testing.assert_array_equal(z[:, 1:-1], 4)
        np.testing.assert_array_equal(z[:, [0, -1]], 7)
