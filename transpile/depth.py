"""How deep expressions nest. The stages recurse over them, as reads best; Python's own limit, made for runaway
recursion, stops them at sums of a few hundred terms, and would stop them anywhere."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager

DEEPEST = 1000  # levels of one expression
_FRAMES = 20  # of Python at most, for a level


@contextmanager
def deep() -> Iterator[None]:
    """Room for expressions of DEEPEST levels."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEPEST * _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def too_deep(text: str) -> tuple[int, int] | None:
    """Line and column of the first statement with an expression that nests deeper; SyntaxError where it is no
    Python."""
    waiting: list[tuple[ast.AST, int, ast.stmt | None]] = [(ast.parse(text), 0, None)]
    found: list[tuple[int, int]] = []
    while waiting:
        node, level, stmt = waiting.pop()
        if isinstance(node, ast.stmt):
            level, stmt = 0, node
        if level > DEEPEST and stmt is not None:
            found.append((stmt.lineno, stmt.col_offset))
        else:
            waiting += [(child, level + 1, stmt) for child in ast.iter_child_nodes(node)]
    return min(found, default=None)
