"""Writes that NumPy shows under another name: two names for one memory here would be two values.

Views made by slicing are written through; a transposed or reshaped view is a value of its own here, and so is what a
loop carries, a branch leaves, or a list holds. That differs only if one of the two is written into while the other is
still read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .errors import Mistake
from .lowering.aliases import Writes
from .operations import ROWS
from .program import Assign, Call, Expr, Function, Gather, Index, Mask, Name, Stmt, Store, walk, walk_stmts


def hidden_writes(function: Function) -> Iterator[Mistake]:
    """A mistake for each write that compiled code would not show where NumPy does."""
    own = {s.name for s in walk_stmts(function.body) if isinstance(s, Assign)} | {p.name for p in function.params}

    def plain(name: str) -> str:
        """x, of the x_2 that a function which writes into its x works on."""
        versioned = re.fullmatch(r"(.+)_\d+", name)
        return versioned[1] if versioned and versioned[1] in own else name

    for store, name, written in _found(function.body):
        name, written = plain(name), plain(written)
        yield Mistake(
            store.span,
            "aliasing",
            f"this writes into {written}; {name}, which shares its memory, is read afterwards",
            "write to the array itself, or take a copy: .T.copy(), ys.append(y.copy())",
        )


def _found(body: tuple[Stmt, ...]) -> Iterator[tuple[Store, str, str]]:
    """(the store, the other name, the one written into)"""
    writes = Writes.of(body)
    stores = [s for s in walk_stmts(body) if isinstance(s, Store) and not s.binds]
    roots: dict[str, dict[str, int]] = {}  # by name: the names that it shares memory with, and since when
    for stmt, bound, value in _bindings(body):
        near = {e.id for e in walk(value) if isinstance(e, Name) and e.type.rank}
        made, _ = writes.at[id(stmt)]
        shared = roots.setdefault(bound, {})
        for name in near:
            shared |= {r: made for r, since in roots.get(name, {}).items() if not writes.renewed(r, since, made)}
            shared[name] = made
        for root in shared:
            for store in stores:
                if store.base.id == root and writes.seen(stmt, store, root, bound):
                    yield store, bound, root
                if store.base.id == bound and writes.seen(stmt, store, bound, root):
                    yield store, root, bound


def _bindings(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, str, Expr]]:
    """Statements after which a name, or an item of a list, is memory that has a name already."""
    for stmt in walk_stmts(body):
        match stmt:
            case Assign(name=name, value=value) | Store(base=Name(id=name), value=value, binds=True):
                if shows_a_name(value):
                    yield stmt, name, value


def shows_a_name(expr: Expr) -> bool:
    """Whether NumPy gives an array that exists, or a part of one, or one of these seen in another way."""
    while expr.type.rank and (inner := shown(expr)) is not None:
        expr = inner
    return isinstance(expr, Name) and bool(expr.type.rank)


def shown(expr: Expr) -> Expr | None:
    """What an expression is a view of."""
    match expr:
        case Index(base=base, items=items) if not any(isinstance(i, (Gather, Mask)) for i in items):
            return base
        case Call(op=op, args=(base,)) if ROWS[op].view:
            return base
    return None


__all__ = ["hidden_writes", "shown", "shows_a_name"]
