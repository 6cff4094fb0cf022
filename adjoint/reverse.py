"""Reverses a block of statements: the forward sweep that it needs, and the sweep that carries cotangents back.

Values that a rule needs are read from names that still hold them. A loop saves, at the start of each iteration,
the variables it carries; its reverse restores them, runs the body again and then backward, so whatever the body
computes is at hand. What turns out not to be needed - a save, a recomputation, a whole forward loop - is
removed afterwards by `clean`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.dims import Facts
from ..transpile.program import (
    Assert,
    Assign,
    Comment,
    Expr,
    For,
    If,
    Name,
    Pop,
    Push,
    Span,
    Stmt,
    Store,
    Type,
    While,
    stored,
)
from .activity import flows
from .blocks import rebound, without_stores
from .cotangents import Cotangents
from .lists import Lists
from .loops import Loops
from .own_backward import Derive
from .point import Point
from .stores import Stores
from .undo import CannotUndo, Nest, Undo
from .versions import with_versions


@dataclass
class Reverser(Loops, Stores, Undo, Lists):
    """Shared by all blocks of one function."""

    active: set[str]
    types: dict[str, Type]
    used: set[str]
    like: set[str]
    lines: dict[str, list[str]]  # path -> source lines, for the comments
    facts: Facts  # the ranges of configuration and loop counters
    versioned: set[str] = field(default_factory=set)
    undone: set[str] = field(default_factory=set)  # arrays whose writes the reverse takes back
    written: set[str] = field(default_factory=set)  # all arrays that are written into
    nest: Nest | None = None
    origins: dict[str, str] = field(default_factory=dict)  # the name in the function -> by its versions
    chosen: set[str] = field(default_factory=set)  # names that a `where` may pass by
    only_written: set[str] = field(default_factory=set)  # those of them that only the return reads
    outputs: dict[Expr, Name] = field(
        default_factory=dict
    )  # a returned expression -> the parameter that holds its value
    written_once: set[str] = field(default_factory=set)  # arrays each place of which is written once, over a constant
    settled: frozenset[tuple[str, Span]] = frozenset()  # writes whose places are not written to any more
    lists: set[str] = field(default_factory=set)
    left: Mapping[str, Expr] = field(default_factory=dict)  # list -> how many entries are left over, where any may be
    derive: Derive = lambda function: ()  # the body of the gradient of a function inside a rule
    replayed: dict[str, Name] = field(default_factory=dict)  # a list of popped values -> the list they were popped from

    def fresh(self, base: str) -> str:
        name, count = base, 1
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.used.add(name)
        return name

    def new(self, hint: str, type: Type) -> Name:
        name = Name(self.fresh(hint), type)
        self.types[name.id] = type
        return name

    # -- blocks ------------------------------------------------------------------------------------------------
    def block(self, body: Sequence[Stmt], cotangents: Cotangents, entering: set[str]) -> list[Stmt]:
        """Fills cotangents.out with the reverse of the block; returns its forward sweep. `entering`: names
        defined before it."""
        before = [set(entering)]
        for stmt in body:
            before.append(before[-1] | rebound((stmt,)))
        forward = [self.stmt(stmt, cotangents, before[k]) for k, stmt in reversed(list(enumerate(body)))]
        return [s for part in reversed(forward) for s in part]

    def stmt(self, stmt: Stmt, cots: Cotangents, before: set[str]) -> list[Stmt]:
        match stmt:
            case Assign(name=name, value=value):
                return self._assign(stmt, name, value, cots)
            case Store():
                return self._store(stmt, cots)
            case For() | While():
                return self._loop(stmt, cots, before)
            case If():
                return self._if(stmt, cots, before)
            case Assert():
                return [stmt]
            case Comment():
                return []
            case Push():
                return self._push(stmt, cots)
            case Pop():
                return self._pop(stmt, cots)
        raise AssertionError(stmt)

    def _assign(self, stmt: Assign, name: str, value: Expr, cots: Cotangents) -> list[Stmt]:
        if name not in self.active or not flows(value) & self.active:
            cots.take(name) if cots.owns(name) else None
            return [stmt]
        cotangent = cots.take(name) if cots.owns(name) else self._taken_variable(name, cots)
        if cotangent is None:
            return [stmt]
        point = Point(self, cots, stmt.span)
        value = point.pull(value, cotangent, Name(name, value.type, value_of(value)), guarded=name in self.chosen)
        return [*point.kept, replace(stmt, value=value), *point.behind]

    def _taken_variable(self, name: str, cots: Cotangents) -> Expr:
        """The cotangent of a variable of an outer block; it has none left before this assignment."""
        variable = cots.variable(name)
        held = Name(self.fresh(f"d_{name}"), variable.type)
        cots.emit(Assign(held.id, construct.call("copy", variable) if variable.type.rank else variable))
        if variable.type.rank:
            cots.emit(Store(variable, construct.complete(variable, ()), const(0)))
        else:
            cots.emit(Assign(variable.id, const(0.0)))
        return held

    def _named(self, expr: Expr, hint: str, cots: Cotangents, copy: bool = False) -> Name:
        name = self.new(hint, expr.type)
        cots.emit(Assign(name.id, construct.call("copy", expr) if copy else expr))
        return name

    # -- branches ----------------------------------------------------------------------------------------------
    def _if(self, stmt: If, cots: Cotangents, before: set[str]) -> list[Stmt]:
        changed = rebound((stmt,))
        entering = stored((stmt,)) & self.undone & before
        if entering & changed or (self.nest is None and entering):
            raise CannotUndo
        results = {
            n for n in changed if n in self.active and (n in cots.variables or cots.pending.get(n) or not cots.owns(n))
        }
        touched = sorted(self._touched((*stmt.then, *stmt.orelse)))
        if not any(n in self.active for n in [*touched, *results]):
            if stored((stmt,)) & self.undone:
                raise CannotUndo
            return [stmt]
        for name in [*touched, *sorted(results)]:
            if cots.owns(name) and name not in cots.variables:
                cots.make_variable(name, own=name not in results)
            cots.freeze(cots.variable(name).id)
        self.quote(stmt.span, cots.out, len(cots.out), always=True)
        made, filling, stmt = self._replaying(stmt)
        branches = [self._branch(b, cots, results, before) for b in (stmt.then, stmt.orelse)]
        forward: list[Stmt] = [*made, filling]
        if self.nest is not None:
            forward = self._undone_branch(stmt, branches, cots)
        else:
            (then_again, then_out), (else_again, else_out) = branches
            cots.emit(If(stmt.cond, (*then_again, *then_out), (*else_again, *else_out), stmt.span))
        for name in results:
            if name not in before and cots.owns(name):
                cots.take(name)
        return forward

    def _branch(
        self, body: Sequence[Stmt], cots: Cotangents, results: set[str], before: set[str]
    ) -> tuple[list[Stmt], list[Stmt]]:
        own = rebound(body)
        entering = own & before
        inside, leaving = with_versions(body, entering, self.versioned, self.types, self.version)
        local = rebound(inside) | entering
        inner = Cotangents(self.types, self.new, self.like, self.lists, self.left, self.facts, [], cots, local)
        mine = sorted(results & own)
        for name in mine:
            inner.pending[leaving.get(name, name)] = [cots.variable(name)]
        again = self.block(inside, inner, before)
        if self.nest is None:
            again = without_stores(again, rebound([*inside, *again]))
        else:
            again += [Assign(n, Name(leaving[n], self.types[n])) for n in sorted(own) if leaving.get(n, n) != n]
        self._leave({n for n in mine if n in entering}, cots, inner)
        return again, inner.out

    # -- comments ----------------------------------------------------------------------------------------------
    def quote(self, span: Span, out: list[Stmt], start: int, always: bool = False) -> None:
        """Puts the user's line before what was written for it since `start`, if anything was."""
        lines = self.lines.get(span.path, [])
        written = out[start:]
        if not 0 < span.line <= len(lines) or not (written or always):
            return
        if written and isinstance(written[0], Comment) and written[0].span == span:
            return
        last = next((s for s in reversed(out[:start]) if isinstance(s, Comment)), None)
        if last is None or last.span.line != span.line or last.span.path != span.path:
            out.insert(start, Comment(f"{span.line}: {lines[span.line - 1].strip()}", span))


__all__ = ["Reverser"]
