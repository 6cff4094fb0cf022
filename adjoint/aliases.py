"""Values stay values: a name that NumPy would make an alias of an array written into gets a copy.

    before: m = m_saved[k]; ...; m[i] -= f        after: m = np.copy(m_saved[k]); ...; m[i] -= f

The adjoint means values when it assigns; its text means them too only where nothing is written through the
alias, or under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..transpile import construct
from ..transpile.aliasing import shown, shows_a_name
from ..transpile.program import Assign, Call, Expr, If, Index, Name, Stmt, blocks, stored, walk_stmts
from ..transpile.renaming import map_stmt


def unaliased(
    body: Sequence[Stmt],
    written: set[str] | None = None,
    named: set[str] | None = None,
    later: frozenset[str] = frozenset(),
    branch: bool = False,
) -> tuple[Stmt, ...]:
    """`written`: arrays that the function writes into anywhere, `named`: these and their other names; `later`: those
    that the statements after this block may write into; `branch`: on a branch, after which a name cannot be one of
    two arrays."""
    written = stored(tuple(body)) | _updated(body) if written is None else written
    named = _other_names(tuple(body), written) if named is None else named
    done: list[Stmt] = []
    for stmt in reversed(body):
        if blocks(stmt):
            around = later | stored((stmt,))
            inside = branch or isinstance(stmt, If)
            stmt = map_stmt(
                stmt,
                lambda e: e,
                lambda b, around=around, inside=inside: unaliased(b, written, named, around, inside),
                lambda n: n,
            )
        elif (
            isinstance(stmt, Assign)
            and (shows_a_name(stmt.value) or _is_element(stmt.value))
            and (stmt.name in written or _root(stmt.value) in (named if branch else later))
        ):
            stmt = Assign(stmt.name, construct.call("copy", stmt.value), stmt.span)
        later = later | stored((stmt,))
        done.append(stmt)
    return tuple(reversed(done))


def _updated(body: Sequence[Stmt]) -> set[str]:
    """Names of an element that are given another value: `d_w += v` would write it into the array."""
    first = {s.name for s in walk_stmts(tuple(body)) if isinstance(s, Assign) and _is_element(s.value)}
    counts = Counter(s.name for s in walk_stmts(tuple(body)) if isinstance(s, Assign))
    return {name for name in first if counts[name] > 1}


def _is_element(value: Expr) -> bool:
    inner = shown(value) if isinstance(value, Call) and not value.type.rank else None
    return inner is not None and shows_a_name(inner)


def _other_names(body: tuple[Stmt, ...], written: set[str]) -> set[str]:
    found = set(written)
    views = [s for s in walk_stmts(body) if isinstance(s, Assign) and shows_a_name(s.value)]
    while more := {s.name for s in views if _root(s.value) in found} - found:
        found |= more
    return found


def _root(expr: Expr) -> str | None:
    while (inner := expr.base if isinstance(expr, Index) else shown(expr)) is not None:
        expr = inner
    return expr.id if isinstance(expr, Name) else None
