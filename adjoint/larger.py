"""What makes a number the largest, or the smallest, of what a loop has seen: `top = max(top, v)`, or a branch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..transpile import construct
from ..transpile.program import (
    FLOATS,
    Assign,
    Call,
    Expr,
    For,
    If,
    Name,
    Span,
    Stmt,
    Type,
    stmt_exprs,
    walk,
    walk_stmts,
)

HINTS = {"maximum": "largest", "minimum": "smallest"}
_SIDES = {"greater": 0, "greater_equal": 0, "less": 1, "less_equal": 1}  # of a comparison: the larger one


@dataclass(frozen=True)
class Update:
    """What makes a number the larger, or the smaller, of itself and of something else."""

    stmt: Assign | If
    name: str
    op: str
    new: Expr
    type: Type
    span: Span
    last: bool | None = None  # of equal ones that a branch asks for, whether the last one is kept; None: they share

    def asking(self, new: Expr) -> Update:
        """The same of what stands somewhere else, and nothing besides."""
        old = Name(self.name, self.type)
        told: Assign | If = Assign(self.name, construct.call(self.op, old, new), self.span)
        if isinstance(self.stmt, If):
            assert isinstance(self.stmt.cond, Call)
            cond = construct.call(self.stmt.cond.op, *(old if a == old else new for a in self.stmt.cond.args))
            told = If(cond, (Assign(self.name, new, self.span),), (), self.span)
        return replace(self, stmt=told, new=new)


def made_by(stmt: Stmt) -> list[Assign]:
    """What may make a number the larger of itself and of something else."""
    match stmt:
        case Assign(value=Call(op="maximum" | "minimum")):
            return [stmt]
        case If(cond=Call(op=op, args=args), then=then) if op in _SIDES:
            return [s for s in then if isinstance(s, Assign) and s.value in args and s.value.type.dtype in FLOATS]
    return []


def update_of(loop: For, name: str) -> Update | None:
    """What makes a number the larger of itself and of something else, where the loop does nothing else with it."""
    stmts = list(walk_stmts(loop.body))
    reads = sum(isinstance(e, Name) and e.id == name for s in stmts for x in stmt_exprs(s) for e in walk(x))
    binds = [s for s in stmts if getattr(s, "name", None) == name]
    match binds:
        case [Assign(value=value, span=span) as bind] if not value.type.rank and value.type.dtype in FLOATS:
            old = Name(name, value.type)
            if reads != 1:
                return None
            if isinstance(value, Call) and value.op in HINTS and old in value.args:
                (new,) = (a for a in value.args if a != old)
                return Update(bind, name, value.op, new, value.type, span)
            asked = next((s for s in stmts if isinstance(s, If) and any(t is bind for t in s.then)), None)
            match asked:
                case If(cond=Call(op=op, args=args)) if op in _SIDES and {*args} == {old, value}:
                    larger = args[_SIDES[op]]
                    kind = "maximum" if larger == value else "minimum"
                    return Update(asked, name, kind, value, value.type, span, last=op.endswith("equal"))
    return None


__all__ = ["HINTS", "Update", "made_by", "update_of"]
