"""Sums of what comes back for a factor times that factor are sums of what came back for the product.

    y = p @ v                                         y = p @ v
    d_p = dy @ v.T                              ->    d_p = dy @ v.T
    total = np.sum(d_p * p, axis=1)                   total = np.sum(dy * y, axis=1)

Each row of y is a sum of products with a row of p, and so is what it is worth. A softmax asks for such sums, one for
each row, before it comes to the elements: those of an attention are fewer numbers in y than in p.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..transpile import construct
from ..transpile.operations import ROWS, letters
from ..transpile.program import (
    Assign,
    Call,
    Expr,
    Name,
    Stmt,
    assigned,
    blocks,
    map_children,
    names,
    stored,
    walk_stmts,
)
from ..transpile.renaming import map_stmt

Product = tuple[list[tuple[Expr, str]], str]  # operands, with the letter of each axis, and the letters of the result


def by_contractions(body: Sequence[Stmt], given: Mapping[Expr, Name]) -> list[Stmt]:
    """`given`: returned values, by the output that holds them."""
    times = Counter(n for s in walk_stmts(tuple(body)) if not blocks(s) for n in assigned((s,)))
    changed = stored(tuple(body)) | {n for n, count in times.items() if count > 1}
    settled = {value: name for value, name in given.items() if not names(value) & changed}
    outputs = [(p, name) for value, name in settled.items() if (p := _product(value)) is not None]
    if not outputs:
        return list(body)
    made = {s.name: s.value for s in body if isinstance(s, Assign) and not ({s.name} | names(s.value)) & changed}

    def shorter(expr: Expr) -> Expr:
        expr = map_children(expr, shorter)
        match expr:
            case Call(op="sum", args=[Call(op="multiply", args=[a, b])]):
                for one, other in ((a, b), (b, a)):
                    back = _product(made.get(one.id, one) if isinstance(one, Name) else one)
                    for product, y in outputs if back is not None else ():
                        if (found := _contracted(expr, back, other, product, y)) is not None:
                            return found
        return expr

    def block(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(map_stmt(s, shorter, block, lambda n: n) for s in stmts)

    return list(block(body))


def _contracted(total: Call, back: Product | None, factor: Expr, product: Product, y: Name) -> Expr | None:
    """sum(back * factor) as a sum of the product's elements, if `back` is what came back for it times the rest."""
    assert back is not None
    (operands, out), (parts, result) = product, back
    places = [k for k, (operand, _) in enumerate(operands) if operand == factor]
    if len(operands) != 2 or len(parts) != 2 or len(places) != 1:
        return None
    mine, (rest, across) = operands[places[0]][1], operands[1 - places[0]]
    known = dict(zip(result, mine, strict=True))  # letters of the one -> of the other
    for (one, spec), (dy, along) in ((parts[0], parts[1]), (parts[1], parts[0])):
        if one != rest or any(known.get(a, b) != b for a, b in zip(spec, across, strict=True)):
            continue
        named = known | dict(zip(spec, across, strict=True))
        if "".join(named.get(a, "?") for a in along) != out or dy.type.shape != y.type.shape:
            continue
        axes = total.get("axis")
        added = set(range(len(mine))) if axes is None else {axes} if isinstance(axes, int) else set(axes)
        gone = {mine[k % len(mine)] for k in added}
        if gone != set(mine) - set(out):
            return None
        shorter = tuple(k for k, letter in enumerate(out) if letter not in mine)
        static = {**dict(total.static), "axis": shorter[0] if len(shorter) == 1 else shorter}
        made = construct.call("sum", construct.call("multiply", dy, y), **static)
        return made if made.type == total.type and shorter else None
    return None


def _product(expr: Expr) -> Product | None:
    """A product of two, of whatever their axes are turned from."""
    if not isinstance(expr, Call) or ROWS[expr.op].kind != "product" or len(expr.args) != 2:
        return None
    specs, out = letters(expr)
    operands = [_unturned(operand, spec) for operand, spec in zip(expr.args, specs, strict=True)]
    distinct = all(len(set(spec)) == len(spec) for _, spec in operands)
    return (operands, out) if distinct and len(set(out)) == len(out) else None


def _unturned(operand: Expr, spec: str) -> tuple[Expr, str]:
    while isinstance(operand, Call) and operand.op in ("transpose", "swapaxes"):
        rank = operand.type.rank
        if operand.op == "transpose":
            order = operand.get("axes") or tuple(reversed(range(rank)))
        else:
            one, other = operand.get("axis1") % rank, operand.get("axis2") % rank
            order = tuple(other if k == one else one if k == other else k for k in range(rank))
        turned = [""] * rank
        for letter, axis in zip(spec, order, strict=True):
            turned[axis % rank] = letter
        operand, spec = operand.args[0], "".join(turned)
    return operand, spec
