"""Writes that NumPy shows under another name: two names for one memory here would be two values.

Views made by slicing are written through; a transposed or reshaped view is a value of its own here, and so is what a
loop carries, a branch leaves, or a list holds. That differs only if one of the two is written into while the other is
still read. Which names share memory flows forward through the statements, which are still read flows backward; both
to the fixpoint around loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .errors import Mistake
from .operations import ROWS
from .program import (
    Assign,
    Call,
    Expr,
    For,
    Function,
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
    names,
    stmt_exprs,
    walk_stmts,
)

Pairs = frozenset[tuple[str, str]]  # names that may stand for one memory, both ways round


@dataclass(frozen=True)
class HiddenWrite:
    """A store, and the names that share its memory in NumPy, are read after it, and would not show it here."""

    store: Store
    readers: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        return self.readers | {self.store.base.id}


def hidden_writes(function: Function) -> list[HiddenWrite]:
    """The writes that compiled code would not show where NumPy does."""
    flow = _Flow()
    given = {result.name for result in function.results if result.role == "state"}
    left = {p.name for p in function.params if p.role == "state"} - given  # what is in their memory at the end
    flow.backward(function.body, left)
    flow.forward(function.body, frozenset())
    return [HiddenWrite(store, frozenset(readers)) for store, readers in flow.found.values()]


def mistakes_of(function: Function, writes: list[HiddenWrite]) -> Iterator[Mistake]:
    """A mistake for each name that does not show a write."""
    own = {s.name for s in walk_stmts(function.body) if isinstance(s, Assign)} | {p.name for p in function.params}

    def plain(name: str) -> str:
        """x, of the x_2 that a function which writes into its x works on."""
        versioned = re.fullmatch(r"(.+)_\d+", name)
        return versioned[1] if versioned and versioned[1] in own else name

    for write in writes:
        written = plain(write.store.base.id)
        for reader in dict.fromkeys(map(plain, sorted(write.readers))):
            yield Mistake(
                write.store.span,
                "aliasing",
                f"this writes into {written}; {reader}, which shares its memory, is read afterwards",
                "write to the array itself, or take a copy: .T.copy(), ys.append(y.copy())",
            )


@dataclass
class _Flow:
    live: dict[int, set[str]] = field(default_factory=dict)  # by the id of a store: what is read after it
    found: dict[int, tuple[Store, set[str]]] = field(default_factory=dict)  # stores, and who would not see them

    def backward(self, body: tuple[Stmt, ...], live: set[str]) -> set[str]:
        """What is read at or after the beginning of a block, before it is bound anew."""
        for stmt in reversed(body):
            read = set().union(*map(names, stmt_exprs(stmt)))
            match stmt:
                case Assign(name=name):
                    live = live - {name} | read
                case Pop(name=name, list=list_):
                    live = live - {name} | {list_.id}
                case If(then=then, orelse=orelse):
                    live = self.backward(then, live) | self.backward(orelse, live) | read
                case For() | While():
                    live = live | read
                    while not (before := self.backward(stmt.body, live)) <= live:
                        live |= before
                case _:
                    if isinstance(stmt, Store):
                        self.live.setdefault(id(stmt), set()).update(live)
                    live = live | read
        return live

    def forward(self, body: tuple[Stmt, ...], pairs: Pairs) -> Pairs:
        """Who shares memory with whom after a block."""
        for stmt in body:
            match stmt:
                case Assign(name=name, value=value):
                    pairs = _shared(pairs, name, root_shown(value), anew=True)
                case Store(base=Name(id=name), value=value, binds=True):
                    pairs = _shared(pairs, name, root_shown(value), anew=False)
                case Push(list=Name(id=name), value=value):
                    pairs = _shared(pairs, name, root_shown(value), anew=False)
                case Pop(name=name):
                    pairs = _shared(pairs, name, None, anew=True)
                case If(then=then, orelse=orelse):
                    pairs = self.forward(then, pairs) | self.forward(orelse, pairs)
                case For() | While():
                    while not (after := self.forward(stmt.body, pairs)) <= pairs:
                        pairs |= after
                case Store(base=Name(id=name)):
                    if readers := {b for a, b in pairs if a == name} & self.live[id(stmt)]:
                        self.found.setdefault(id(stmt), (stmt, set()))[1].update(readers)
        return pairs


def _shared(pairs: Pairs, name: str, root: str | None, anew: bool) -> Pairs:
    """After `name` shows the memory of `root`, and no longer what it did if it is bound `anew`."""
    if root == name:
        return pairs
    partners = set() if root is None else {root, *(b for a, b in pairs if a == root)} - {name}
    if anew:
        pairs = frozenset((a, b) for a, b in pairs if name not in (a, b))
    return pairs | {(name, p) for p in partners} | {(p, name) for p in partners}


def root_shown(expr: Expr) -> str | None:
    """The name of the array that NumPy gives, or a part of it, or it seen in another way; None: a new one."""
    while expr.type.rank and (inner := shown(expr)) is not None:
        expr = inner
    return expr.id if isinstance(expr, Name) and expr.type.rank else None


def shows_a_name(expr: Expr) -> bool:
    """Whether NumPy gives an array that exists, or a part of one, or one of these seen in another way."""
    return root_shown(expr) is not None


def shown(expr: Expr) -> Expr | None:
    """What an expression is a view of."""
    match expr:
        case Index(base=base, items=items) if not any(isinstance(i, (Gather, Mask)) for i in items):
            return base
        case Call(op=op, args=(base,)) if ROWS[op].view:
            return base
    return None


__all__ = ["HiddenWrite", "hidden_writes", "mistakes_of", "shown", "shows_a_name"]
