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
    If,
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
    """Where each name is bound, written into and read."""

    assigns: dict[str, list[Where]] = field(default_factory=dict)
    stores: dict[str, list[Where]] = field(default_factory=dict)
    reads: dict[str, list[Where]] = field(default_factory=dict)
    at: dict[int, Where] = field(default_factory=dict)  # by the id of a statement
    # Integers that are read from memory, their value not being symbolic.
    loaded: set[str] = field(default_factory=set)
    blocks: list[frozenset[tuple[int, int]]] = field(default_factory=list)  # by position: the blocks around
    meets: dict[str, list[int]] = field(default_factory=dict)  # branches that all bind a name

    @staticmethod
    def of(body: tuple[Stmt, ...]) -> Writes:
        found = Writes()
        for position, (stmt, loops, around) in enumerate(_numbered(body, frozenset(), frozenset())):
            here = (position, loops)
            found.blocks.append(around)
            found.at[id(stmt)] = here
            for expr in stmt_exprs(stmt):
                for read in (e for e in walk(expr) if isinstance(e, Name)):
                    found.reads.setdefault(read.id, []).append(here)
                    if read.value is None:
                        found.loaded.add(read.id)
            match stmt:
                case Assign(name=name) | Pop(name=name):
                    found.assigns.setdefault(name, []).append(here)
                case Store(base=base):
                    found.stores.setdefault(base.id, []).append(here)
                case If():
                    for name in _always_bound((stmt,)):
                        found.meets.setdefault(name, []).append(position)
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

    def seen(self, view: Stmt, store: Stmt, written: str, reader: str) -> bool:
        """Whether `reader`, sharing memory with `written` since the view was made, is read after the
        store.
        """
        made, made_in = self.at[id(view)]
        where, loops = self.at[id(store)]
        if where < made and not self._shared_in_the_next_round(made, where, made_in & loops, (written, reader)):
            return False
        if self.renewed(written, made, where):
            return False
        renewed = self._bound(reader)
        for read, around in self.reads.get(reader, ()):
            if read > where and not any(where < a < read and self._sure(a, where, read) for a in renewed):
                return True
            again = around & loops  # in the next round of the innermost of these
            if (
                read <= where
                and again
                and not any(
                    (a > where or a < read) and again <= self._loops(a) and self._sure(a, where, read) for a in renewed
                )
            ):
                return True
        return False

    def renewed(self, name: str, since: int, until: int) -> bool:
        """Whether a name is bound anew in between, whatever happens."""
        return any(since < a < until and self._sure(a, since, until) for a in self._bound(name))

    def _shared_in_the_next_round(self, made: int, where: int, loops: frozenset[int], names: tuple[str, str]) -> bool:
        """Whether names that share memory since `made` still do at `where`, which comes before it in a loop."""
        return bool(loops) and not any(
            (a > made or a < where) and loops <= self._loops(a) and self._sure(a, made, where)
            for name in names
            for a in self._bound(name)
        )

    def _sure(self, position: int, before: int, after: int) -> bool:
        """Whether what runs `before` and `after` runs this in between: it is in no branch or loop of its own."""
        blocks = self.blocks[position]
        return blocks <= self.blocks[before] or blocks <= self.blocks[after]

    def _bound(self, name: str) -> list[int]:
        return [a for a, _ in self.assigns.get(name, ())] + self.meets.get(name, [])

    def _loops(self, position: int) -> frozenset[int]:
        return frozenset(loop for loop, which in self.blocks[position] if which < 0)


def _always_bound(body: tuple[Stmt, ...]) -> set[str]:
    found: set[str] = set()
    for stmt in body:
        match stmt:
            case Assign(name=name) | Pop(name=name):
                found.add(name)
            case If(then=then, orelse=orelse):
                found |= _always_bound(then) & _always_bound(orelse)
    return found


def _numbered(
    body: tuple[Stmt, ...], loops: frozenset[int], around: frozenset[tuple[int, int]]
) -> Iterator[tuple[Stmt, frozenset[int], frozenset[tuple[int, int]]]]:
    """Statements, the loops around each, and the blocks: a statement and which block of it (-1: of a loop)."""
    for stmt in body:
        yield stmt, loops, around
        loop = isinstance(stmt, (For, While))
        inner = loops | {id(stmt)} if loop else loops
        for which, block in enumerate(blocks(stmt)):
            yield from _numbered(block, inner, around | {(id(stmt), -1 if loop else which)})


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
