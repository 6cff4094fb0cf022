"""Gives every value of a block a name of its own, so that the reverse sweep can mean the one it needs.

    before: h = a * h; y = h * h            (inside a loop that carries h)
    after:  h_2 = a * h; y = h_2 * h_2      and {h: h_2}: h enters the block, h_2 leaves it

A name that a nested loop or branch changes is copied first, so its old value stays readable. Arrays written in
place keep their name, except those in `versioned`: each write to them makes a new array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..transpile import construct
from ..transpile.program import (
    Assign,
    Expr,
    For,
    If,
    Name,
    Pop,
    Push,
    Stmt,
    Store,
    Type,
    assigned,
    blocks,
    map_children,
    read,
    stmt_exprs,
    stored,
    walk_stmts,
)
from ..transpile.renaming import rename_block, rename_stmt
from .blocks import rebound

Fresh = Callable[[str], str]


def with_versions(
    body: Sequence[Stmt], entering: set[str], versioned: set[str], types: dict[str, Type], fresh: Fresh
) -> tuple[list[Stmt], dict[str, str]]:
    """The block with unique names, and for each name it changes: the name that holds its value at the end."""
    current: dict[str, str] = {}
    defined = set(entering)
    done: list[Stmt] = []
    for position, stmt in enumerate(body):
        joined: dict[str, str] = {}
        if isinstance(stmt, If):
            joined = {n: fresh(n) for n in sorted(stored((stmt,)) & versioned)}
            stmt = replace(
                stmt, then=_on_copies(stmt.then, joined, types), orelse=_on_copies(stmt.orelse, joined, types)
            )
        changes = _changes(stmt, versioned)
        compound = bool(blocks(stmt))
        renamed = rename_stmt(stmt, current) if not compound else _rename_reads(stmt, current, changes)
        for name in sorted(changes):
            new = name
            if name in defined and (not compound or _needs_copy(name, body, position, entering, current)):
                new = fresh(name)
                if compound or isinstance(stmt, Store):
                    old = Name(current.get(name, name), types[name])
                    copied: Expr = construct.call("copy", old) if name in stored((stmt,)) else old
                    done.append(Assign(new, copied, stmt.span))
            elif compound and name in current:
                new = current[name]
            defined.add(name)
            if new != name or name in current:
                current[name] = new
        done.append(_retarget(stmt, renamed, current, changes))
        current |= joined
    return done, {n: current.get(n, n) for s in body for n in _changes(s, versioned)}


def _on_copies(branch: Sequence[Stmt], joined: dict[str, str], types: dict[str, Type]) -> tuple[Stmt, ...]:
    """A branch that writes into copies of arrays: their content before the `if` stays."""
    copies = [Assign(new, construct.call("copy", Name(n, types[n]))) for n, new in joined.items()]
    return (*copies, *rename_block(branch, joined))


def _changes(stmt: Stmt, versioned: set[str]) -> set[str]:
    """Names that a statement rebinds; with writes to versioned arrays."""
    match stmt:
        case Assign(name=name) | Pop(name=name):
            return {name}
        case Store(base=base):
            return {base.id} & versioned
    if blocks(stmt):
        inner = set().union(*(assigned(b) for b in blocks(stmt)))
        kept = set().union(*(stored(b) for b in blocks(stmt))) - versioned
        counters = {s.var for s in walk_stmts((stmt,)) if isinstance(s, For)}
        counters |= {s.list.id for s in walk_stmts((stmt,)) if isinstance(s, (Push, Pop))}
        return (inner - kept - counters).union(*(rebound(b) for b in blocks(stmt)))
    return set()


def _needs_copy(name: str, body: Sequence[Stmt], position: int, entering: set[str], current: dict[str, str]) -> bool:
    """Whether the value before a compound statement is read by anything else in the block."""
    if name in entering:
        return True
    others = [s for k, s in enumerate(body) if k != position]
    before = read(tuple(others[:position]))
    return name in before


def _rename_reads(stmt: Stmt, current: dict[str, str], changes: set[str]) -> Stmt:
    """Renames what a compound statement only reads; what it changes is renamed when its new name is known."""
    return rename_stmt(stmt, {k: v for k, v in current.items() if k not in changes})


def _retarget(original: Stmt, renamed: Stmt, current: dict[str, str], changes: set[str]) -> Stmt:
    match renamed:
        case Assign():
            assert isinstance(original, Assign)
            return replace(renamed, name=current.get(original.name, original.name))
        case Pop():
            assert isinstance(original, Pop)
            return replace(renamed, name=current.get(original.name, original.name))
        case Store():
            assert isinstance(original, Store)
            name = current.get(original.base.id, original.base.id)
            return replace(renamed, base=replace(renamed.base, id=name))
    if blocks(renamed):
        return rename_stmt(renamed, {n: current[n] for n in changes if n in current})
    return renamed


def name_types(body: Sequence[Stmt], params: dict[str, Type]) -> dict[str, Type]:
    """The type of every name of a function."""
    types = dict(params)

    def note(expr: Expr) -> Expr:
        if isinstance(expr, Name):
            types.setdefault(expr.id, expr.type)
        map_children(expr, note)
        return expr

    for stmt in walk_stmts(tuple(body)):
        match stmt:
            case Assign(name=name, value=value):
                types.setdefault(name, value.type)
            case Pop(name=name, type=type):
                types.setdefault(name, type)
            case For(var=var):
                types.setdefault(var, Type("int"))
        for expr in stmt_exprs(stmt):
            note(expr)
    return types
