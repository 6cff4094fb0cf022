"""Convolution as products with the patches under the filters, a strip of the output at a time."""

import numpy as np

from layerc import Param, layer, real


@layer
def convolution(
    x: real["G D H W"],
    weight: Param[real["G F D*kernel_h*kernel_w"]],
    bias: Param[real["G F"]],
    strips: int,
    rows: int,
    columns: int,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
) -> real["G F strips rows*columns"]:
    """G groups of F filters over D channels each; correlation, as everybody's convolution layer."""
    groups, depth, height, width = x.shape
    padded = np.zeros((groups, depth, height + 2 * pad_h, width + 2 * pad_w))
    for g in range(groups):
        for d in range(depth):
            for i in range(height):
                for j in range(width):
                    padded[g, d, i + pad_h, j + pad_w] = x[g, d, i, j]
    y = np.empty((groups, weight.shape[1], strips, rows * columns))
    for s in range(strips):
        patches = np.empty((groups, depth, kernel_h, kernel_w, rows, columns))
        for g in range(groups):
            for d in range(depth):
                for a in range(kernel_h):
                    for b in range(kernel_w):
                        for i in range(rows):
                            for j in range(columns):
                                at_i = (s * rows + i) * stride_h + a * dilation_h
                                at_j = j * stride_w + b * dilation_w
                                patches[g, d, a, b, i, j] = padded[g, d, at_i, at_j]
        y[:, :, s] = weight @ patches.reshape(groups, depth * kernel_h * kernel_w, rows * columns) + bias[:, :, None]
    return y
