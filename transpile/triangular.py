"""Triangular matrices, seen in how they are made: such a system is solved by substitution, without elimination.

    l = np.linalg.cholesky(c)
    z = np.linalg.solve(l, x)               ->      z = solve_lower(l, x)
    w = np.linalg.solve(np.triu(r), x)      ->      w = solve_upper(r, x)

np.tril and np.triu say it of any matrix; what they leave out is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TypeGuard

from . import construct
from .dims import Dim, nonnegative
from .lowering.aliases import Writes, is_view
from .program import Assign, Call, Const, Expr, Index, Name, Stmt, map_children, stmt_exprs, walk, walk_stmts
from .renaming import map_stmt

Form = frozenset[str]  # of "lower" and "upper": both, of a diagonal matrix

NONE: Form = frozenset()
LOWER, UPPER = frozenset(["lower"]), frozenset(["upper"])
_TURNED = {NONE: NONE, LOWER: UPPER, UPPER: LOWER, LOWER | UPPER: LOWER | UPPER}
_SAME = ("copy", "negative", "cast")  # of a triangular matrix they make one


def triangular(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with substitution where the matrix of np.linalg.solve is known to be triangular."""
    if not any(_is_solve(e) for s in walk_stmts(body) for top in stmt_exprs(s) for e in walk(top)):
        return body
    forms = _forms(body)

    def substituted(expr: Expr) -> Expr:
        expr = map_children(expr, substituted)
        if not _is_solve(expr):
            return expr
        matrix, right = expr.args
        form = sorted(form_of(matrix, forms))
        return construct.call(f"solve_{form[0]}", _whole(matrix), right, span=expr.span) if form else expr

    def block(inner: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(map_stmt(s, substituted, block, lambda n: n) for s in inner)

    return block(body)


def form_of(expr: Expr, forms: Mapping[str, Form]) -> Form:
    """What is known of a matrix, or of the last two axes of a stack of them."""
    match expr:
        case Name(id=id):
            return forms.get(id, NONE)
        case Call("cholesky"):
            return LOWER
        case Call("tril"):
            return LOWER if nonnegative(-Dim.of(expr.get("k"))) else NONE
        case Call("triu"):
            return UPPER if nonnegative(Dim.of(expr.get("k"))) else NONE
        case Call("eye"):
            k = Dim.of(expr.get("k"))
            return (LOWER if nonnegative(-k) else NONE) | (UPPER if nonnegative(k) else NONE)
        case Call("transpose" | "swapaxes", args=(of,)):
            return _TURNED[form_of(of, forms)] if _turns(expr) else NONE
        case Call(op, args=(of,)) if op in _SAME:
            return form_of(of, forms)
        case Call("add" | "subtract", args=(left, right)) if left.type.shape[-2:] == right.type.shape[-2:]:
            return form_of(left, forms) & form_of(right, forms)
        case Call("multiply", args=(Const(value), of) | (of, Const(value))) if isfinite(value):
            return form_of(of, forms)
    return NONE


def _forms(body: tuple[Stmt, ...]) -> dict[str, Form]:
    """Of the names that are bound once, in whose memory nothing is written."""
    writes = Writes.of(body)
    forms: dict[str, Form] = {}
    bound = [s for s in walk_stmts(body) if isinstance(s, Assign)]
    shown = {s.name: root for s in bound if (root := _shown(s.value)) is not None}
    written = set(writes.stores)
    while more := {shown[n] for n in written if n in shown} - written:
        written |= more
    for stmt in bound:
        if writes.once(stmt.name) and stmt.name not in written:
            forms[stmt.name] = form_of(stmt.value, forms)
    return forms


def _shown(expr: Expr) -> str | None:
    """The name whose memory an expression may show."""
    if isinstance(expr, Name):
        return expr.id
    inner = expr.base if isinstance(expr, Index) else expr.args[0] if isinstance(expr, Call) and expr.args else None
    return _shown(inner) if inner is not None and is_view(expr) else None


def _whole(matrix: Expr) -> Expr:
    """Without what cuts off a triangle that nobody reads."""
    match matrix:
        case Call("tril" | "triu", args=(whole,)) if Dim.of(matrix.get("k")) == Dim.of(0) and whole.type == matrix.type:
            return whole
    return matrix


def _turns(call: Call) -> bool:
    """Whether it swaps the last two axes, and no others."""
    rank, static = call.type.rank, dict(call.static)
    if call.op == "swapaxes":
        return {static["axis1"] % rank, static["axis2"] % rank} == {rank - 2, rank - 1}
    axes = static["axes"] or tuple(reversed(range(rank)))
    return tuple(axes) == (*range(rank - 2), rank - 1, rank - 2)


def _is_solve(expr: Expr) -> TypeGuard[Call]:
    return isinstance(expr, Call) and expr.op == "solve"
