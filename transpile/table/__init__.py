"""The rows of the table of operations, a file a family."""

from . import elementwise, makers, moves, products, reductions  # noqa: F401
