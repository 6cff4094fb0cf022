"""The rows of the table of operations, a file a family."""

from . import draws, elementwise, linear, makers, moves, products, rearrange, reductions, scans  # noqa: F401
