"""What is multiplied by e over what e was divided by is multiplied by the quotient, which has a name already.

    e = np.exp(x - largest)                         e = np.exp(x - largest)
    p = e / total                             ->    p = e / total
    d_x = (d_p - np.sum(d_p * p)) / total * e       d_x = (d_p - np.sum(d_p * p)) * p

A softmax's gradient needs no e then, and nothing that e is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ..transpile import construct
from ..transpile.program import Assign, Call, Expr, Name, Stmt, assigned, blocks, map_children, names
from ..transpile.renaming import map_stmt
from .simplify import simplify

Known = Mapping[Expr, Name]  # a quotient -> its name


def by_quotients(body: Sequence[Stmt], given: Known) -> list[Stmt]:
    """`given`: returned quotients, by the output that holds them."""
    return _block(body, {}, {e: n for e, n in given.items() if _is_quotient(e)})


def _block(body: Sequence[Stmt], known: Known, given: Known) -> list[Stmt]:
    done: list[Stmt] = []
    for stmt in body:
        changed = assigned((stmt,))
        left = {e: n for e, n in known.items() if not (names(e) | {n.id}) & changed}
        here = left if blocks(stmt) else known
        stmt = map_stmt(stmt, partial(_by_quotient, known={**here, **given}), partial(_inner, left, given), lambda n: n)
        known = left
        if isinstance(stmt, Assign) and _is_quotient(stmt.value) and stmt.name not in names(stmt.value):
            known = {**left, stmt.value: Name(stmt.name, stmt.value.type)}
        done.append(stmt)
    return done


def _inner(known: Known, given: Known, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    return tuple(_block(body, known, given))


def _is_quotient(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "divide" and bool(expr.type.rank)


def _by_quotient(expr: Expr, known: Known) -> Expr:
    expr = map_children(expr, lambda e: _by_quotient(e, known))
    match expr:
        case Call(op="multiply", args=[a, b]):
            for over, e in ((a, b), (b, a)):
                if isinstance(over, Call) and over.op == "divide":
                    quotient = known.get(construct.call("divide", e, over.args[1]))
                    changed = None if quotient is None else construct.call("multiply", over.args[0], quotient)
                    if changed is not None and changed.type == expr.type:
                        return simplify(changed)
    return expr


__all__ = ["by_quotients"]
