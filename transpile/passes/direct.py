"""A product is computed where its values go, and what is done to them is done there.

    t[i,j] = product ...; for j: for i: d_w[j,i] += t[i,j]    ->    d_w[j,i] += product ...
    t[i,j] = product ...; for i: for j: y[i,j] = t[i,j] + b[j]  ->  y[i,j] = product ...; for i: for j: y[i,j] += b[j]

Legal if nothing touches the result from the product to the nest that uses the temporary, and nothing else does
use it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..dims import Dim
from ..ir import Comment, Expr, For, Kernel, Load, Product, Stmt, Store
from .order import perfect, rebuild
from .tree import Body, accesses, buffers, loads, map_bodies, map_expr, roots, walk


def direct(kernel: Kernel) -> Kernel:
    if not any(isinstance(s, Product) for s in walk(kernel.body)):
        return kernel
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    table = buffers(kernel)
    uses = Counter(a.buffer for a in accesses(kernel.body))
    temps = {n for n, b in table.items() if b.kind == "temp" and n not in aliased}
    shapes = {n: (b.dtype, b.shape) for n, b in table.items()}
    return replace(kernel, body=_body(kernel.body, temps, shapes, uses, roots(kernel)))


Shapes = dict[str, tuple[str, tuple[Dim, ...]]]


def _body(body: Body, temps: set[str], shapes: Shapes, uses: Counter[str], root: dict[str, str]) -> Body:
    found = list(body)
    for k in range(len(found)):
        if (made := _made(found[k])) is None or made[1].buffer not in temps or made[1].op is not None:
            continue
        loops, product = made
        users = [n for n, s in enumerate(found) if n != k and _uses(s, product.buffer)]
        if (
            len(users) != 1
            or users[0] < k
            or sum(_uses(found[n], product.buffer) for n in (k, *users)) != uses[product.buffer]
        ):
            continue
        after = _after(loops, product, found[users[0]], shapes)
        if after is None:
            continue
        result, rest = after[0].buffer, found[k + 1 : users[0]]
        read = {root[product.left.buffer], root[product.right.buffer]}
        read |= {root[a.buffer] for a in accesses((found[users[0]],)) if a.mode == "r"}
        if root[result] in read or any(root[a.buffer] == root[result] for s in rest for a in accesses((s,))):
            continue
        found[k] = rebuild(loops, (after[0],))
        found[users[0]] = after[1] or Comment("")
    found = [s for s in found if s != Comment("")]
    return tuple(map_bodies(s, lambda inner: _body(inner, temps, shapes, uses, root)) for s in found)


def _uses(stmt: Stmt, name: str) -> int:
    return sum(a.buffer == name for a in accesses((stmt,)))


def _made(stmt: Stmt) -> tuple[list[For], Product] | None:
    """The loops around a product, where there is nothing else in them."""
    if isinstance(stmt, Product):
        return [], stmt
    if isinstance(stmt, For) and stmt.kind == "map":
        loops, inside = perfect(stmt)
        if len(inside) == 1 and isinstance(inside[0], Product):
            return loops, inside[0]
    return None


def _after(loops: list[For], product: Product, user: Stmt, shapes: Shapes) -> tuple[Product, Stmt | None] | None:
    """The product into the result of the nest that uses its temporary, and what of the nest is left."""
    if not isinstance(user, For):
        return None
    nest, inside = perfect(user)
    stored = [s for s in inside if not isinstance(s, Comment)]
    if len(stored) != 1 or not isinstance(store := stored[0], Store) or any(x.kind != "map" for x in nest):
        return None
    dtype = shapes[product.buffer][0]
    places = {x.index for x in loads(store.value) if x.buffer == product.buffer}
    if shapes[store.buffer][0] != dtype or len(places) != 1:
        return None
    (place,) = places
    made = {**{x.var: (x.lo, x.hi) for x in loops}, **{n: (Dim.of(0), e) for n, e in (product.rows, product.columns)}}
    # A strip has fewer rows than there is room for.
    made_of = tuple(made.get(str(d.symbol), (d, d))[1] for d in product.index)
    if not is_whole(place, made_of, {x.var: (x.lo, x.hi) for x in nest}) or not is_whole(product.index, made_of, made):
        return None
    moved = {str(old.symbol): new for old, new in zip(place, product.index)}
    target = tuple(d.subs(moved) for d in store.index)  # perhaps transposed, or a part of a larger array
    if any(d.split(v) is None for d in target for v, _ in (product.rows, product.columns)):
        return None
    if isinstance(store.value, Load) and store.op in (None, "add"):
        return replace(product, buffer=store.buffer, index=target, op=store.op), None
    if store.op is None:

        def change(e: Expr) -> Expr:
            return Load(store.buffer, store.index, e.dtype) if isinstance(e, Load) and e.buffer == product.buffer else e

        left = replace(store, value=map_expr(store.value, change))
        return replace(product, buffer=store.buffer, index=target), rebuild(nest, (left,))
    return None


def is_whole(index: tuple[Dim, ...], shape: tuple[Dim, ...], ranges: dict[str, tuple[Dim, Dim]]) -> bool:
    """Whether the loops go once over all of a buffer of this shape."""
    names = [d.symbol for d in index]
    return (
        len(set(names)) == len(names) == len(ranges)
        and all(isinstance(v, str) and v in ranges for v in names)
        and all(ranges[str(v)] == (Dim.of(0), n) for v, n in zip(names, shape))
    )
