"""A part of an array that a statement reads again and again gets a name.

before: d_x[i:i + k] += np.where(x[i:i + k] == largest, dy[i] / np.sum(x[i:i + k] == largest), 0)
after:  x_part = x[i:i + k]
        d_x[i:i + k] += np.where(x_part == largest, dy[i] / np.sum(x_part == largest), 0)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..transpile.program import Assign, Const, Expr, Index, Name, Slice, Stmt, Store, blocks, map_children, walk
from ..transpile.renaming import map_stmt

_OFTEN = 2  # slices of one place in a statement


def named_parts(body: Sequence[Stmt], fresh: Callable[[str], str]) -> tuple[Stmt, ...]:
    done: list[Stmt] = []
    for stmt in body:
        if blocks(stmt):
            stmt = map_stmt(stmt, lambda e: e, lambda b: named_parts(b, fresh), lambda n: n)
        elif isinstance(stmt, (Assign, Store)):
            written = stmt.base.id if isinstance(stmt, Store) else ""
            counts = Counter(e for e in walk(stmt.value) if _is_window(e, written))
            for part, count in counts.items():
                if count >= _OFTEN:
                    assert isinstance(part, Index)
                    assert isinstance(part.base, Name)
                    name = Name(fresh(f"{part.base.id}_part"), part.type)
                    done.append(Assign(name.id, part, stmt.span))
                    stmt = replace(stmt, value=by_name(stmt.value, part, name))
        done.append(stmt)
    return tuple(done)


def by_names(body: Sequence[Stmt], named: Mapping[Expr, Name]) -> list[Stmt]:
    """With names in place of these parts, but where they get them."""

    def one(expr: Expr) -> Expr:
        return named[expr] if expr in named else map_children(expr, one)

    def stmt(inner: Stmt) -> Stmt:
        if isinstance(inner, Assign) and named.get(inner.value) == Name(inner.name, inner.value.type):
            return inner
        return map_stmt(inner, one, lambda b: tuple(map(stmt, b)), lambda n: n)

    return list(map(stmt, body)) if named else list(body)


def _is_window(expr: Expr, written: str) -> bool:
    """A slice from a computed place on, of an array that the statement does not write into."""
    if not isinstance(expr, Index) or not isinstance(expr.base, Name) or expr.base.id == written:
        return False
    return any(isinstance(i, Slice) and i.start is not None and not isinstance(i.start, Const) for i in expr.items)


def by_name(expr: Expr, part: Expr, name: Name) -> Expr:
    """With the name in place of the part."""
    return name if expr == part else map_children(expr, lambda e: by_name(e, part, name))
