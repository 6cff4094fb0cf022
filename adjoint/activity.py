"""Activity, both ways: which names depend on the inputs (varied) and which the results depend on (useful)."""

from __future__ import annotations

from collections.abc import Sequence, Set

from ..transpile.program import (
    Assign,
    Call,
    Const,
    Expr,
    Function,
    Index,
    Name,
    Pop,
    Push,
    Return,
    Stmt,
    Store,
    blocks,
    stmt_exprs,
    walk,
    walk_stmts,
)
from .rules import differentiable


def flows(expr: Expr) -> set[str]:
    """The names through which a derivative can reach an expression."""
    match expr:
        case Name(id=id):
            return {id} if expr.type.is_float else set()
        case Const():
            return set()
        case Index(base=base):
            return flows(base)
        case Call(args=args):
            wanted = differentiable(expr)
            return set().union(*(flows(a) for a, w in zip(args, wanted, strict=True) if w)) if any(wanted) else set()
    raise AssertionError(expr)


def active_names(function: Function, body: Sequence[Stmt], idle: Set[str] = frozenset()) -> set[str]:
    """Names that are both varied and useful. `idle`: those that cancel (see shifts.py)."""
    varied = {
        p.name for p in function.params if p.role in ("input", "param", "output", "cotangent") and p.type.is_float
    }
    stmts = list(walk_stmts(tuple(body)))
    _fixpoint(varied, stmts, _forward)
    useful: set[str] = set()
    for stmt in stmts:
        if isinstance(stmt, Return):
            for value in stmt.values:
                useful |= flows(value)
    _fixpoint(useful, [s for s in stmts if _target(s) not in idle], _backward)
    return varied & useful - idle


def _target(stmt: Stmt) -> str:
    match stmt:
        case Assign(name=name) | Store(base=Name(id=name)):
            return name
    return ""


def chosen_names(body: Sequence[Stmt]) -> set[str]:
    """Names whose value reaches a branch of a `where`, which may pass it by."""
    stmts = list(walk_stmts(tuple(body)))
    found: set[str] = set()
    for stmt in stmts:
        for expr in stmt_exprs(stmt):
            for e in walk(expr):
                if isinstance(e, Call) and e.op == "where":
                    found |= flows(e)
    _fixpoint(found, stmts, _backward)
    return found


def varied_names(inputs: set[str], body: Sequence[Stmt]) -> set[str]:
    varied = set(inputs)
    _fixpoint(varied, list(walk_stmts(tuple(body))), _forward)
    return varied


def _fixpoint(found: set[str], stmts: list[Stmt], step: object) -> None:
    while True:
        size = len(found)
        for stmt in stmts:
            found |= step(stmt, found)  # type: ignore[operator]
        if len(found) == size:
            return


def _forward(stmt: Stmt, varied: set[str]) -> set[str]:
    match stmt:
        case Assign(name=name, value=value) if flows(value) & varied:
            return {name}
        case Store(base=base, value=value) if flows(value) & varied:
            return {base.id}
        case Push(list=list_, value=value) if flows(value) & varied:
            return {list_.id}
        case Pop(name=name, list=list_) if list_.id in varied:
            return {name}
    return set()


def _backward(stmt: Stmt, useful: set[str]) -> set[str]:
    match stmt:
        case Assign(name=name, value=value) if name in useful:
            return flows(value)
        case Store(base=base, value=value) if base.id in useful:
            return flows(value)
        case Push(list=list_, value=value) if list_.id in useful:
            return flows(value)
        case Pop(name=name, list=list_) if name in useful:
            return {list_.id}
    return set()


__all__ = ["active_names", "blocks", "chosen_names", "flows", "varied_names"]
