"""The values that rules read: what costs much to compute again has a name, and is computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..transpile.operations import ROWS
from ..transpile.program import Assign, Call, Const, Expr, Name, Span, Stmt, Type, map_children, walk
from .rules import mentions

# A subexpression whose value a rule reads is computed again if it is at most this costly, else kept under a name.
CHEAP = 8


@dataclass
class Values:
    """Those of one statement."""

    new: Callable[[str, Type], Name]  # a name that nothing has
    span: Span
    renamed: Mapping[str, str] = field(default_factory=dict)  # what names of the statement are called here
    known: dict[Expr, Name] = field(default_factory=dict)

    def named(self, expr: Expr) -> Expr:
        """An expression over the values that have names."""
        if expr in self.known:
            return self.known[expr]
        if isinstance(expr, Name):
            return replace(expr, id=self.renamed.get(expr.id, expr.id))
        return map_children(expr, self.named)

    def value(self, expr: Expr) -> Expr:
        """What a rule reads: under a name, where it is costly."""
        if expr not in self.known and cost(expr) > CHEAP and not isinstance(expr, (Name, Const)):
            self.known[expr] = self.new(hint(expr), expr.type)
        return self.named(expr)

    def argument(self, call: Call, k: int, wanted: list[bool]) -> Expr:
        """The value of an argument, as the rules of the wanted ones read it."""
        row = ROWS[call.op]
        name = row.arrays[min(k, len(row.arrays) - 1)]
        is_read = isinstance(row.grad, str) or any(w and mentions(call, j, name) for j, w in enumerate(wanted))
        return self.value(call.args[k]) if is_read else self.named(call.args[k])

    def kept(self) -> list[Stmt]:
        """The statements that give them names: inner ones first, for those around them."""
        order = sorted(self.known, key=lambda e: sum(1 for _ in walk(e)))
        known, self.known = self.known, {}
        kept: list[Stmt] = []
        for expr in order:
            kept.append(Assign(known[expr].id, map_children(expr, self.named), self.span))
            self.known[expr] = known[expr]
        return kept


def cost(expr: Expr) -> int:
    """Flops an element; a reduction or product costs as many as make it worth keeping."""
    total = 0
    for e in walk(expr):
        if isinstance(e, Call):
            row = ROWS[e.op]
            total += (
                row.flops
                if row.kind in ("elementwise", "draw")
                else 100
                if row.kind in ("reduce", "product", "compose", "body", "derivative")
                else 0
            )
    return total


_NOUNS = {
    "add": "sum",
    "subtract": "diff",
    "multiply": "prod",
    "divide": "ratio",
    "where": "choice",
    "sum": "total",
    "abs": "size",
    "max": "largest",
    "min": "smallest",
    "all": "every",
    "any": "some",
    "matmul": "product",
    "negative": "minus",
    "stop_gradient": "stopped",
    "with_backward": "found",
    "with_derivative": "found",
    "draw_random": "draw",
    "draw_normal": "draw",
    "draw_integers": "draw",
    "draw_bernoulli": "draw",
}


def hint(expr: Expr) -> str:
    """A name for a value: exp_x for np.exp(x), ratio for a / b."""
    if isinstance(expr, Call):
        noun = _NOUNS.get(expr.op, expr.op)
        arg = expr.args[0] if len(expr.args) == 1 else None
        return f"{noun}_{arg.id}" if isinstance(arg, Name) else noun
    return "part"


__all__ = ["CHEAP", "Values", "cost", "hint"]
