"""Pooling: maxima and means over windows, of one plane or along one axis.

The planes are padded by `pad` in front and `end` behind, so that every window lies inside. Offsets within a window
are the outer loops: the inner one then runs over neighbours in memory.
"""

import numpy as np

from layerc import State, layer, real


@layer
def max_plane(
    x: real["H W"],
    rows: int,
    columns: int,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    end_h: int,
    end_w: int,
) -> real["rows columns"]:
    """The largest of each window."""
    padded = np.pad(x, ((pad_h, end_h), (pad_w, end_w)), constant_values=-np.inf)
    y = np.full((rows, columns), -np.inf)
    for i in range(rows):
        for a in range(kernel_h):
            for b in range(kernel_w):
                for j in range(columns):
                    y[i, j] = np.maximum(y[i, j], padded[i * stride_h + a, j * stride_w + b])
    return y


@max_plane.backward
def d_max_plane(
    x: real["H W"],
    y: real["rows columns"],
    dy: real["rows columns"],
    rows: int,
    columns: int,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    end_h: int,
    end_w: int,
) -> real["H W"]:
    """Equal maxima share evenly: among all of a window, which a chain of two-argument maxima would not know."""
    padded = np.pad(x, ((pad_h, end_h), (pad_w, end_w)), constant_values=-np.inf)
    d_padded = np.zeros_like(padded)
    for i in range(rows):
        count = np.zeros(columns)
        for a in range(kernel_h):
            for b in range(kernel_w):
                for j in range(columns):
                    count[j] += np.where(padded[i * stride_h + a, j * stride_w + b] == y[i, j], 1.0, 0.0)
        share = dy[i] / count
        for a in range(kernel_h):
            for b in range(kernel_w):
                for j in range(columns):
                    is_largest = padded[i * stride_h + a, j * stride_w + b] == y[i, j]
                    d_padded[i * stride_h + a, j * stride_w + b] += np.where(is_largest, share[j], 0.0)
    return d_padded[pad_h : pad_h + x.shape[0], pad_w : pad_w + x.shape[1]]


@layer
def max_pairs(x: real["H W"]) -> real["H//2 W//2"]:
    """Windows of two by two, side by side: as `max_plane`, and what is constant there a compiler can vectorise."""
    y = np.empty((x.shape[0] // 2, x.shape[1] // 2))
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1] // 2):
            upper = np.maximum(x[2 * i, 2 * j], x[2 * i, 2 * j + 1])
            y[i, j] = np.maximum(upper, np.maximum(x[2 * i + 1, 2 * j], x[2 * i + 1, 2 * j + 1]))
    return y


@max_pairs.backward
def d_max_pairs(x: real["H W"], y: real["H//2 W//2"], dy: real["H//2 W//2"]) -> real["H W"]:
    """Equal maxima share evenly."""
    d_x = np.zeros_like(x)
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1] // 2):
            a = np.where(x[2 * i, 2 * j] == y[i, j], 1.0, 0.0)
            b = np.where(x[2 * i, 2 * j + 1] == y[i, j], 1.0, 0.0)
            c = np.where(x[2 * i + 1, 2 * j] == y[i, j], 1.0, 0.0)
            d = np.where(x[2 * i + 1, 2 * j + 1] == y[i, j], 1.0, 0.0)
            share = dy[i, j] / (a + b + c + d)
            d_x[2 * i, 2 * j] = np.where(a > 0, share, 0.0)
            d_x[2 * i, 2 * j + 1] = np.where(b > 0, share, 0.0)
            d_x[2 * i + 1, 2 * j] = np.where(c > 0, share, 0.0)
            d_x[2 * i + 1, 2 * j + 1] = np.where(d > 0, share, 0.0)
    return d_x


@layer
def mean_plane(
    x: real["H W"],
    share_h: State[real["rows"]],
    share_w: State[real["columns"]],
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    end_h: int,
    end_w: int,
) -> real["rows columns"]:
    """The sum of each window times share_h share_w, one over the number of elements that count."""
    rows, columns = share_h.shape[0], share_w.shape[0]
    padded = np.pad(x, ((pad_h, end_h), (pad_w, end_w)))
    total = np.zeros((rows, columns))
    for i in range(rows):
        for a in range(kernel_h):
            for b in range(kernel_w):
                for j in range(columns):
                    total[i, j] += padded[i * stride_h + a, j * stride_w + b]
    return total * share_h[:, None] * share_w


@layer
def max_channels(x: real["C S"], count: int, kernel: int, stride: int, pad: int) -> real["count S"]:
    """The largest of each window of channels; equal ones share the gradient."""
    y = np.empty((count, x.shape[1]))
    for i in range(count):
        y[i] = np.max(x[max(i * stride - pad, 0) : max(i * stride - pad + kernel, 0)], axis=0)
    return y


@layer
def mean_channels(x: real["C S"], count: int, kernel: int, stride: int, pad: int) -> real["count S"]:
    """The sum of each window of channels, cut at the ends, over its whole length."""
    y = np.empty((count, x.shape[1]))
    for i in range(count):
        y[i] = np.sum(x[max(i * stride - pad, 0) : max(i * stride - pad + kernel, 0)], axis=0) / kernel
    return y


def _sums(values, kernel, pad):
    """Sums over the `kernel` rows around each row."""
    near = np.zeros_like(values)
    for c in range(values.shape[0]):
        near[c] = np.sum(values[max(c - pad, 0) : max(c - pad + kernel, 0)], axis=0)
    return near


@layer
def normalise_channels(x: real["C S"], kernel: int, pad: int, scale: float, shift: float, power: float) -> real["C S"]:
    """x / (shift + scale * sum of x² over the `kernel` channels around)^power (Krizhevsky et al. 2012)."""
    return x / (shift + scale * _sums(x * x, kernel, pad)) ** power


@normalise_channels.backward
def d_normalise_channels(
    x: real["C S"], dy: real["C S"], kernel: int, pad: int, scale: float, shift: float, power: float
) -> real["C S"]:
    """The windows are symmetric: who is near to whom goes both ways."""
    base = shift + scale * _sums(x * x, kernel, pad)
    through = _sums(dy * x * base ** (-power - 1), kernel, pad)
    return dy * base**-power - 2 * scale * power * x * through


def _plane_sums(values, kernel, pad):
    """Sums over the `kernel` x `kernel` places around each place."""
    height, width = values.shape
    across = np.zeros_like(values)
    for b in range(kernel):
        for i in range(height):
            for j in range(max(pad - b, 0), min(width + pad - b, width)):
                across[i, j] += values[i, j + b - pad]
    return _sums(across, kernel, pad)


@layer
def normalise_plane(x: real["H W"], kernel: int, pad: int, scale: float, shift: float, power: float) -> real["H W"]:
    """The same over the `kernel` x `kernel` places around."""
    return x / (shift + scale * _plane_sums(x * x, kernel, pad)) ** power


@normalise_plane.backward
def d_normalise_plane(
    x: real["H W"], dy: real["H W"], kernel: int, pad: int, scale: float, shift: float, power: float
) -> real["H W"]:
    base = shift + scale * _plane_sums(x * x, kernel, pad)
    through = _plane_sums(dy * x * base ** (-power - 1), kernel, pad)
    return dy * base**-power - 2 * scale * power * x * through
