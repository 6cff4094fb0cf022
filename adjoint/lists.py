"""The reverse of appending to a list and of popping from it: the list of cotangents is popped and appended to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..transpile import construct
from ..transpile.errors import Mistake
from ..transpile.program import (
    Assign,
    Call,
    Expr,
    For,
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
        part = Name(self.fresh(f"d_{stmt.list.id}_part"), stmt.list.type)
        self.types[part.id] = part.type
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

    def _replaying(self: Any, stmt: For | While) -> tuple[list[Stmt], list[Stmt], tuple[Stmt, ...]]:
        """What a loop pops is put on a list of the gradient's own. Returns that list's making, the body that fills
        it and the body that pops from it: the list popped from is empty when the reverse sweep comes."""
        made = rebound(stmt.body)
        for inner in (b for s in stmt.body for b in blocks(s)):
            for pop in walk_stmts(inner):
                if isinstance(pop, Pop) and pop.list.id not in made:
                    raise Mistake(
                        pop.span,
                        "derivative",
                        f"{pop.list.id} is made outside the loop or branch around this one: it has no gradient",
                        "write into an array: saved[i] = value",
                    )
        written = stored(stmt.body) - self.versioned
        before: list[Stmt] = []
        filling: list[Stmt] = []
        replay: list[Stmt] = []
        for inner_stmt in stmt.body:
            filling.append(inner_stmt)
            if isinstance(inner_stmt, Pop):
                saved, make = self._list(inner_stmt.name, inner_stmt.type)
                before.append(make)
                value: Expr = Name(inner_stmt.name, inner_stmt.type)
                if inner_stmt.name in written:  # the list holds the array itself
                    value = construct.call("copy", value)
                filling.append(Push(saved, value))
                self.replayed[saved.id] = inner_stmt.list
                inner_stmt = replace(inner_stmt, list=saved)
            replay.append(inner_stmt)
        return before, filling, tuple(replay)

    def _list(self: Any, name: str, type: Type) -> tuple[Name, Stmt]:
        """A list for the values of a variable, and the statement that makes it."""
        element = Type({"float": "real", "int": "i64"}.get(type.dtype, type.dtype), type.shape)
        saved = Name(self.fresh(f"{name}_saved"), element)
        self.types[saved.id] = element
        self.lists.add(saved.id)
        return saved, Assign(saved.id, Call("list", (), (("type", element),), element))


__all__ = ["Lists"]
