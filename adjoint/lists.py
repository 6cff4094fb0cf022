"""The reverse of appending to a list and of popping from it: the list of cotangents is popped and appended to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..transpile import construct
from ..transpile.errors import Mistake
from ..transpile.program import (
    Assign,
    Call,
    Expr,
    For,
    If,
    Name,
    Pop,
    Push,
    Stmt,
    Type,
    While,
    blocks,
    stored,
    walk_stmts,
)
from .blocks import rebound
from .cotangents import Cotangents
from .point import Point


class Lists:
    """Mixed into `Reverser`."""

    def _push(self: Any, stmt: Push, cots: Cotangents) -> list[Stmt]:
        """L.append(v): the cotangent of v is the last item of d_L."""
        if stmt.list.id not in self.active:
            return [stmt]
        start = len(cots.out)
        part = self.new(f"d_{stmt.list.id}_part", stmt.list.type)
        cots.emit(Pop(part.id, cots.variable(stmt.list.id), part.type))
        point = Point(self, cots, stmt.span)
        value = point.pull(stmt.value, part, None, quote=False)
        self.quote(stmt.span, cots.out, start)
        return [*point.kept, replace(stmt, value=value)]

    def _pop(self: Any, stmt: Pop, cots: Cotangents) -> list[Stmt]:
        """v = L.pop(): d_L gets the cotangent of v, a zero where v was not used, so that the two lists stay paired."""
        owner = self.replayed.get(stmt.list.id, stmt.list)
        if owner.id not in self.active:
            cots.take(stmt.name) if cots.owns(stmt.name) else None
            return [stmt]
        start = len(cots.out)
        cotangent = cots.take(stmt.name) if cots.owns(stmt.name) else self._taken_variable(stmt.name, cots)
        if cotangent is None:
            cotangent = cots.zeros(stmt.name)
        elif cotangent.type.rank:
            cotangent = construct.call("copy", cotangent)  # the list keeps it; its variable goes on to change
        cots.emit(Push(cots.variable(owner.id), cotangent))
        self.quote(stmt.span, cots.out, start)
        return [stmt]

    def _replaying(self: Any, stmt: For | While | If) -> tuple[list[Stmt], Any, Any]:
        """What a loop or a branch pops is put on a list of the gradient's own, for the list popped from is another when
        the reverse sweep comes. Returns that list's making, the statement that fills it and the one that pops from it.
        """
        made, written = rebound((stmt,)), stored((stmt,)) - self.versioned
        before: list[Stmt] = []
        filling, replay = _split(stmt, made, lambda pop: self._saved_pop(pop, before, pop.name in written))
        return before, filling, replay

    def _saved_pop(self: Any, pop: Pop, before: list[Stmt], written: bool) -> tuple[list[Stmt], list[Stmt]]:
        """A pop that also saves, and the one of what was saved; `written`: into the array that was popped."""
        saved, make = self._list(pop.name, pop.type)
        before.append(make)
        self.replayed[saved.id] = self.replayed.get(pop.list.id, pop.list)
        value: Expr = Name(pop.name, pop.type)
        if written:  # the list holds the array itself
            value = construct.call("copy", value)
        return [pop, Push(saved, value)], [replace(pop, list=saved)]

    def _list(self: Any, name: str, type: Type) -> tuple[Name, Stmt]:
        """A list for the values of a variable, and the statement that makes it."""
        element = Type({"float": "real", "int": "i64"}.get(type.dtype, type.dtype), type.shape)
        saved = self.new(f"{name}_saved", element)
        self.lists.add(saved.id)
        return saved, Assign(saved.id, Call("list", (), (("type", element),), element))


def _split(stmt: Any, made: set[str], save: Callable[[Pop], tuple[list[Stmt], list[Stmt]]]) -> tuple[Any, Any]:
    """A loop or a branch that saves what it pops from lists made outside, and the one that pops that again."""

    def one(inner: Stmt) -> tuple[list[Stmt], list[Stmt]]:
        if isinstance(inner, If):
            filling, replay = _split(inner, made, save)
            return [filling], [replay]
        if isinstance(inner, Pop) and inner.list.id not in made:
            return save(inner)
        _refuse_pops(inner, made)
        return [inner], [inner]

    parts = [[one(s) for s in block] for block in blocks(stmt)]
    filling = [tuple(s for part, _ in block for s in part) for block in parts]
    replay = [tuple(s for _, part in block for s in part) for block in parts]
    return _with_blocks(stmt, filling), _with_blocks(stmt, replay)


def _refuse_pops(stmt: Stmt, made: set[str]) -> None:
    for pop in walk_stmts((stmt,)):
        if isinstance(pop, Pop) and pop.list.id not in made:
            raise Mistake(
                pop.span,
                "derivative",
                f"{pop.list.id} is made outside the loop or branch around this loop: it has no gradient",
                "write into an array: saved[i] = value",
            )


def _with_blocks(stmt: For | While | If, inside: Sequence[tuple[Stmt, ...]]) -> For | While | If:
    """A statement with other blocks, in the order of `blocks`."""
    if isinstance(stmt, If):
        return replace(stmt, then=inside[0], orelse=inside[1])
    return replace(stmt, body=inside[0])


__all__ = ["Lists"]
