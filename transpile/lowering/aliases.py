"""Which assigned names need no memory: views of memory that is not written while they are in use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..operations import ROWS
from ..program import (
    Assign,
    Call,
    Expr,
    For,
    Gather,
    Index,
    Mask,
    Name,
    Pop,
    Push,
    Stmt,
    Store,
    While,
    blocks,
    stmt_exprs,
    walk,
)

# The position of a statement, and the loops around it.
Where = tuple[int, frozenset[int]]


@dataclass
class Writes:
    """Where each name is bound and written into."""

    assigns: dict[str, list[Where]] = field(default_factory=dict)
    stores: dict[str, list[Where]] = field(default_factory=dict)
    at: dict[int, Where] = field(default_factory=dict)  # by the id of a statement
    # Integers that are read from memory, their value not being symbolic.
    loaded: set[str] = field(default_factory=set)

    @staticmethod
    def of(body: tuple[Stmt, ...]) -> Writes:
        found = Writes()
        for position, (stmt, loops) in enumerate(_numbered(body, frozenset())):
            here = (position, loops)
            found.at[id(stmt)] = here
            for expr in stmt_exprs(stmt):
                found.loaded |= {e.id for e in walk(expr) if isinstance(e, Name) and e.value is None}
            match stmt:
                case Assign(name=name) | Pop(name=name):
                    found.assigns.setdefault(name, []).append(here)
                case Store(base=base):
                    found.stores.setdefault(base.id, []).append(here)
            if isinstance(stmt, (Push, Pop)):
                found.stores.setdefault(stmt.list.id, []).append(here)
        return found

    def once(self, name: str) -> bool:
        """Assigned by one statement and never written into."""
        return len(self.assigns.get(name, ())) == 1 and name not in self.stores

    def settled(self, root: str, stmt: Stmt) -> bool:
        """Whether nothing is written to `root` between this statement and the last use of a view that it
        makes.
        """
        position, loops = self.at[id(stmt)]
        assigns = self.assigns.get(root, [])
        inside = assigns[0][1] if len(assigns) == 1 else frozenset()
        for where, around in [*assigns, *self.stores.get(root, [])]:
            if where > position:
                return False
            # An earlier write is done again before the view is made again, if the loop begins with a fresh
            # root.
            if not (around & loops <= inside) and not (len(assigns) == 1 and where == assigns[0][0]):
                return False
        return True


def _numbered(body: tuple[Stmt, ...], loops: frozenset[int]) -> Iterator[tuple[Stmt, frozenset[int]]]:
    """Statements, and the loops around each."""
    for stmt in body:
        yield stmt, loops
        inner = loops | {id(stmt)} if isinstance(stmt, (For, While)) else loops
        for block in blocks(stmt):
            yield from _numbered(block, inner)


def is_view(expr: Expr) -> bool:
    """Whether the expression only shows memory that a name stands for."""
    match expr:
        case Name():
            return True
        case Index(base, items):
            return is_view(base) and not any(isinstance(i, (Gather, Mask)) for i in items)
        case Call(op, args):
            moves = ROWS[op].kind == "move" and ROWS[op].flops == 1  # others are better computed once
            return (moves or op in ("reshape", "ravel")) and is_view(args[0])
    return False
