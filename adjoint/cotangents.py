"""Where cotangents gather while a block is reversed.

In straight-line code the contributions to a name wait until its definition and are summed there. A name that a
loop, a branch or an index adds to has a variable `d_<name>` from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..transpile import construct
from ..transpile.construct import const
from ..transpile.dims import Facts
from ..transpile.operations import ROWS
from ..transpile.program import (
    Assign,
    Call,
    Const,
    Expr,
    For,
    Index,
    Item,
    Name,
    Push,
    Stmt,
    Store,
    Type,
    assigned,
    children,
    map_children,
    names,
)
from .overlap import are_apart
from .rules import unbroadcast
from .simplify import simplify, total


@dataclass
class Cotangents:
    types: dict[str, Type]
    new: Callable[[str, Type], Name]  # a name that nothing has
    like: set[str]  # names whose shape may be taken from them: the arguments of the function
    lists: set[str]
    left: Mapping[str, Expr]  # list -> how many entries are left over in it, where any may be
    facts: Facts  # the ranges of what may be negative
    out: list[Stmt]
    outer: Cotangents | None = None
    local: set[str] | None = None  # names that belong here; None: all
    pending: dict[str, list[Expr]] = field(default_factory=dict)
    variables: dict[str, Name] = field(default_factory=dict)
    settled: set[Expr] = field(default_factory=set)  # variables of their own that contributions were given
    waiting: dict[str, list[Expr]] = field(default_factory=dict)  # for variables, until the statement is done
    parts: dict[tuple[str, tuple[Item, ...], bool], list[Expr]] = field(
        default_factory=dict
    )  # the same for parts of them

    def owns(self, name: str) -> bool:
        return self.local is None or name in self.local

    def emit(self, stmt: Stmt) -> None:
        """Writes a statement, after the contributions that wait for values it changes."""
        changed = assigned((stmt,))
        for name in [n for n, terms in self.pending.items() if any(names(t) & changed for t in terms)]:
            self.settle(name)
        self.out.append(stmt)

    def settle(self, name: str) -> None:
        """Gives what has come for a name so far a variable of its own."""
        start = self.sum(name)
        assert start is not None
        held = self.new(f"d_{name}", self.types[name])
        if held.type.rank and not _makes_array(start):
            start = construct.call("copy", start)
        self.out.append(Assign(held.id, start))
        self.pending[name] = [held]
        self.settled.add(held)

    # -- adding ------------------------------------------------------------------------------------------------
    def add(self, name: str, cotangent: Expr) -> None:
        """A contribution to a whole name, in its shape or a larger one that it was broadcast to."""
        if self.owns(name) and name not in self.variables:
            self.pending.setdefault(name, []).append(cotangent)
            return
        self.waiting.setdefault(name, []).append(cotangent)

    def flush(self) -> None:
        """Adds what one statement contributes to variables, in one addition each."""
        self._hold_what_changes()
        self._flush_parts()
        waiting, self.waiting = self.waiting, {}
        for name, terms in waiting.items():
            variable = self.variable(name)
            cotangent = _summed(terms, variable.type)
            self.freeze(variable.id)
            if variable.type.rank:
                self.emit(Store(variable, construct.complete(variable, ()), cotangent, "add"))
            else:
                self.emit(Assign(variable.id, construct.call("add", variable, cotangent)))

    def _hold_what_changes(self) -> None:
        """A[i, 1:] += A[i, :-1] * x: the addition to d_A changes d_A[i, 1:], which the one to d_x is to see as it
        was."""
        writes: list[tuple[str, Sequence[Item] | None, list[Expr]]] = []
        writes += [(n, items, terms) for (n, items, _), terms in self.parts.items()]
        writes += [(n, None, terms) for n, terms in self.waiting.items()]
        held: dict[Expr, Name] = {}
        for k, (_, _, terms) in enumerate(writes):
            for earlier, items, _ in writes[:k]:
                variable = self._existing(earlier)
                if variable is not None:
                    held |= dict.fromkeys((r for t in terms for r in self._reads(t, variable, items)), variable)
        for read in held:
            held[read] = name = self.new(f"{held[read].id}_part", read.type)
            self.out.append(Assign(name.id, construct.call("copy", read) if read.type.rank else read))
        for _, _, terms in writes if held else ():
            terms[:] = [_with(t, held) for t in terms]

    def _reads(self, expr: Expr, variable: Name, items: Sequence[Item] | None) -> list[Expr]:
        """Where the variable is read that a write at these items (None: everywhere) may change."""
        if isinstance(expr, Index) and expr.base == variable:
            return [] if items is not None and are_apart(expr.items, items, self.facts) else [expr]
        if expr == variable:
            return [expr]
        return [r for child in children(expr) for r in self._reads(child, variable, items)]

    def _existing(self, name: str) -> Name | None:
        """The variable of a name, if it has one."""
        if name in self.variables or self.owns(name) or self.outer is None:
            return self.variables.get(name)
        return self.outer._existing(name)

    def add_part(self, name: str, items: Sequence[Item], cotangent: Expr, scatter: bool) -> None:
        """A contribution to name[items]."""
        self.parts.setdefault((name, tuple(items), scatter), []).append(cotangent)

    def _flush_parts(self) -> None:
        parts, self.parts = self.parts, {}
        for (name, items, scatter), terms in parts.items():
            variable = self.variable(name)
            place = construct.index(variable, items).type
            cotangent = _summed(terms, place)
            self.freeze(variable.id)
            op = None if not scatter and self._is_zero(variable, self.zeros(name), items) else "add"
            self.out.append(Store(variable, items, cotangent, op, scatter))

    def _is_zero(self, variable: Name, zeros: Expr, items: Sequence[Item]) -> bool:
        """Whether these places of a variable, which began with zeros, have been given nothing yet."""
        for stmt in reversed(self.out):
            if stmt == Assign(variable.id, zeros):
                return True
            if variable.id in assigned((stmt,)):
                if not (isinstance(stmt, Store) and stmt.base == variable):
                    return False
                if not are_apart(stmt.items, items, self.facts):
                    return False
        return False

    def freeze(self, variable: str) -> None:
        """Before a variable is written into: what waits and reads it is computed now."""
        for name, terms in self.pending.items():
            for k, term in enumerate(terms):
                if variable in names(term):
                    held = self.new(f"d_{name}_part", term.type)
                    self.out.append(
                        Assign(
                            held.id, term if _makes_array(term) or not term.type.rank else construct.call("copy", term)
                        )
                    )
                    terms[k] = held

    # -- variables ---------------------------------------------------------------------------------------------
    def variable(self, name: str) -> Name:
        """The variable that holds the cotangent of a name, made here if it is not there yet."""
        if name in self.variables:
            return self.variables[name]
        if not self.owns(name):
            assert self.outer is not None
            return self.outer.variable(name)
        return self.make_variable(name)

    def make_variable(self, name: str, own: bool = True) -> Name:
        """d_name = what has come so far; `own`: in memory of its own, so that it can be written into."""
        start = self.sum(name)
        type = self.types[name]
        if start is None:
            start = self.zeros(name)
        elif own and type.rank and not _makes_array(start):
            start = (
                construct.call("copy", construct.convert(start, type))
                if start.type != type
                else construct.call("copy", start)
            )
        variable = self.new(f"d_{name}", type)
        if name in self.lists:
            self.lists.add(variable.id)
        self.emit(Assign(variable.id, start))
        if name in self.left:
            entry = Push(Name(variable.id, type), construct.zeros(type))
            self.emit(For(self.new("_", Type("int")).id, const(0), self.left[name], 1, (entry,)))
        self.variables[name] = variable
        self.pending.pop(name, None)
        return variable

    def borrow_variable(self, name: str) -> None:
        """A variable that is only read: dy itself will do."""
        start = self.sum(name)
        if isinstance(start, Name):
            self.variables[name] = start
            self.pending.pop(name, None)
        else:
            self.make_variable(name)

    def zeros(self, name: str) -> Expr:
        type = self.types[name]
        if name in self.lists:
            return Call("list", (), (("type", type),), type)
        if type.rank and name in self.like:
            return construct.call("zeros_like", Name(name, type))
        return construct.zeros(type)

    # -- taking ------------------------------------------------------------------------------------------------
    def sum(self, name: str) -> Expr | None:
        """All that has come for a name, in its own shape; None for nothing."""
        if name in self.variables:
            return self.variables[name]
        terms = self.pending.get(name)
        if not terms:
            return None
        result = _summed(terms, self.types[name])
        if result.type.shape != self.types[name].shape:
            result = construct.call("broadcast_to", result, shape=self.types[name].shape)
        return simplify(result)

    def take(self, name: str) -> Expr | None:
        found = self.sum(name)
        self.pending.pop(name, None)
        self.variables.pop(name, None)
        return found


def _summed(terms: Sequence[Expr], type: Type) -> Expr:
    """The terms in this type, or in a shape that broadcasts to it; summed before they are summed over axes, where
    that can be."""
    by_shape: dict[object, list[Expr]] = {}
    for term in terms:
        by_shape.setdefault(term.type.shape, []).append(term)
    result = total([unbroadcast(total(same), type) for same in by_shape.values()])
    if result.type.dtype != type.dtype and not isinstance(result, Const):
        result = construct.cast(result, type.dtype)
    return simplify(result)


def _with(expr: Expr, held: Mapping[Expr, Name]) -> Expr:
    return held[expr] if expr in held else map_children(expr, lambda e: _with(e, held))


def _makes_array(expr: Expr) -> bool:
    """Whether NumPy gives a new, writable array for it."""
    return isinstance(expr, Call) and not ROWS[expr.op].view
