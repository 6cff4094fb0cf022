"""Productions that move, join, index and multiply arrays."""

from __future__ import annotations

from fuzzing.expressions import E, Expressions, produce
from fuzzing.scope import ONE, Dead, Shape, Variable
from layerc.transpile.dims import Dim, product


def _some(shape: Shape) -> bool:
    return 1 <= len(shape) <= 3


def _two_axes(shape: Shape) -> bool:
    return 2 <= len(shape) <= 3


def _axis(g: Expressions, k: int, rank: int) -> int:
    return k if g.chance(0.5) else k - rank


# -- moves -------------------------------------------------------------------------------------------------------
def _permuted(g: Expressions, shape: Shape, depth: int) -> E:
    rank = len(shape)
    order = list(range(rank))
    g.rng.shuffle(order)
    before: list[Dim] = [ONE] * rank
    for here, there in enumerate(order):
        before[there] = shape[here]
    if order == list(range(rank))[::-1] and g.chance(0.7):
        e = g.real(tuple(before), depth)
        return E(f"({e.text}).T", e.mag)
    if g.chance(0.5):
        e = g.real(tuple(before), depth)
        return E(
            g.pick([f"np.transpose({e.text}, {tuple(order)})", f"({e.text}).transpose({', '.join(map(str, order))})"]),
            e.mag,
        )
    i, j = g.rng.sample(range(rank), 2)
    swapped = list(shape)
    if g.chance(0.5):
        swapped[i], swapped[j] = swapped[j], swapped[i]
        e = g.real(tuple(swapped), depth)
        return E(f"np.swapaxes({e.text}, {_axis(g, i, rank)}, {_axis(g, j, rank)})", e.mag)
    swapped.insert(i, swapped.pop(j))
    e = g.real(tuple(swapped), depth)
    return E(f"np.moveaxis({e.text}, {_axis(g, i, rank)}, {_axis(g, j, rank)})", e.mag)


def _reshaped(g: Expressions, shape: Shape, depth: int) -> E:
    """From another order of the axes, from one axis, from one axis more, or from any array of that size."""
    total = product(shape)
    where = g.scope.shape(shape)
    same = [v for v in g.scope.having() if v.shape != shape and product(v.shape) == total]
    if same and g.chance(0.6):
        before = g.rng.choice(same).shape
    elif g.chance(0.3):
        before = (total,)
        g.scope.extent(total)
    else:
        mixed = list(shape)
        g.rng.shuffle(mixed)
        if g.chance(0.4):
            mixed.insert(g.rng.randint(0, len(mixed)), ONE)
        before = tuple(mixed)
    e = g.real(before, depth)
    if len(shape) == 1 and g.chance(0.6):
        return E(
            g.pick(
                [f"np.ravel({e.text})", f"({e.text}).ravel()", f"({e.text}).reshape(-1)"]
                if before
                else [f"np.ravel({e.text})"]
            ),
            e.mag,
        )
    if len(shape) == 2 and g.chance(0.3):
        return E(f"np.reshape({e.text}, ({g.scope.extent(shape[0])}, -1))", e.mag)
    return E(
        g.pick([f"np.reshape({e.text}, {where})", f"({e.text}).reshape({where[1:-1].rstrip(',')})"])
        if shape and before
        else f"np.reshape({e.text}, {where})",
        e.mag,
    )


def _units(g: Expressions, shape: Shape, depth: int) -> E:
    """Axes of one, put in or taken out."""
    ones = [k for k, d in enumerate(shape) if d == ONE]
    if ones and g.chance(0.7):
        k = g.rng.choice(ones)
        e = g.real((*shape[:k], *shape[k + 1 :]), depth)
        at = [":"] * (len(shape) - 1)
        at.insert(k, "None")
        if len(shape) == 1:
            return E(f"np.reshape({e.text}, (1,))", e.mag)
        return E(
            g.pick([f"np.expand_dims({e.text}, {_axis(g, k, len(shape))})", f"({e.text})[{', '.join(at)}]"]), e.mag
        )
    k = g.rng.randint(0, len(shape))
    if len(shape) > 3:
        raise Dead
    e = g.real((*shape[:k], ONE, *shape[k:]), depth)
    return E(f"np.squeeze({e.text}, axis={_axis(g, k, len(shape) + 1)})", e.mag)


def _turned(g: Expressions, shape: Shape, depth: int) -> E:
    e = g.real(shape, depth)
    k, rank = g.rng.randrange(len(shape)), len(shape)
    ints = [v.name for v in g.scope.having("int", ()) if v.below is not None and v.name[0] in "it"]
    shift = g.pick(["1", "-1", "2", "5", *(ints and [g.rng.choice(ints)])])
    cut = [":"] * rank
    cut[k] = "::-1"
    return E(
        g.pick([
            f"np.flip({e.text}, {_axis(g, k, rank)})", f"np.flip({e.text})", f"({e.text})[{', '.join(cut)}]",
            f"np.roll({e.text}, {shift}, axis={_axis(g, k, rank)})", f"np.roll({e.text}, {shift})",
        ]), e.mag,
    )  # fmt: skip


def _along(g: Expressions, shape: Shape, depth: int) -> E:
    """Sorted, accumulated or normalised along an axis."""
    k, rank = g.rng.randrange(len(shape)), len(shape)
    at = _axis(g, k, rank)
    e = g.limited(shape, depth, 8)
    return g.pick([
        E(f"np.cumsum({e.text}, axis={at})", 4 * e.mag), E(f"({e.text}).cumsum(axis={at})", 4 * e.mag),
        E(f"np.cumprod({g.limited(shape, 0, 4).text}, axis={at})", 300), E(f"np.sort({e.text}, axis={at})", e.mag),
        E(f"special.softmax({e.text}, axis={at})", 1), E(f"special.log_softmax({e.text}, axis={at})", 2 * e.mag + 2),
        E(f"np.take_along_axis({e.text}, np.argsort({g.real(shape, 0).text}, axis={at}, kind='stable'), axis={at})", e.mag),
    ])  # fmt: skip


def _triangles(g: Expressions, shape: Shape, depth: int) -> E:
    e = g.real(shape, depth)
    return E(f"np.{g.pick(['tril', 'triu'])}({e.text}{g.pick(['', ', 1', ', -1'])})", e.mag)


# -- joining and cutting -------------------------------------------------------------------------------------------
def _joined(g: Expressions, shape: Shape, depth: int) -> E:
    """Two joined along an axis, of which a part of the wanted extent is cut."""
    k, rank = g.rng.randrange(len(shape)), len(shape)
    extra = g.dim()
    more = (*shape[:k], extra, *shape[k + 1 :])
    a, b = g.real(shape, depth), g.real(more, depth)
    first = g.chance(0.5)
    parts = f"({a.text}, {b.text})" if first else f"[{b.text}, {a.text}]"
    n = g.scope.extent(shape[k] if first else extra)
    cut = [":"] * rank
    cut[k] = f":{n}" if first else f"{n}:"
    if not first and g.chance(0.3):
        cut[k] = f"-{g.scope.extent(shape[k])}:"
        if shape[k].value is None:
            raise Dead  # -0: would be all
    return E(f"np.concatenate({parts}, axis={_axis(g, k, rank)})[{', '.join(cut)}]", max(a.mag, b.mag))


def _split_sum(g: Expressions, shape: Shape, depth: int) -> E:
    """Exactly as long as its parts: an extent of two terms, or a number."""
    k = g.pick([k for k, d in enumerate(shape) if (d.value or 0) >= 2 or len(d.terms) >= 2])
    d = shape[k]
    one = Dim.of(g.rng.randint(1, d.value - 1)) if d.value is not None else Dim((d.terms[0],))
    parts = [(*shape[:k], part, *shape[k + 1 :]) for part in (one, d - one)]
    if any(c < 0 for part in parts for x in part for _, c in x.terms):
        raise Dead
    es = [g.real(p, depth) for p in parts]
    if d.value is not None and g.chance(0.4):
        part = (*shape[:k], *shape[k + 1 :])
        rows = [g.real(part, depth - 1) for _ in range(d.value)]
        text = ", ".join(r.text for r in rows)
        return E(f"np.stack([{text}], axis={_axis(g, k, len(shape))})", max(r.mag for r in rows))
    return E(f"np.concatenate(({es[0].text}, {es[1].text}), axis={k})", max(e.mag for e in es))


def _longer(g: Expressions, shape: Shape, depth: int) -> E:
    """Cut out of what is longer by a number: slices, pad, tile, repeat."""
    k, rank = g.rng.randrange(len(shape)), len(shape)
    d = shape[k]
    cut = [":"] * rank
    style = g.rng.randrange(5)
    if any(c < 0 for _, c in d.terms):
        raise Dead  # it may be less than nothing
    if style == 0:
        e = g.real((*shape[:k], d + 1, *shape[k + 1 :]), depth)
        cut[k] = g.pick(["1:", ":-1"])
        return E(f"({e.text})[{', '.join(cut)}]", e.mag)
    if style == 1:
        e = g.real((*shape[:k], d + 2, *shape[k + 1 :]), depth)
        cut[k] = g.pick(["1:-1", "2:", ":-2"])
        return E(f"({e.text})[{', '.join(cut)}]", e.mag)
    if style == 2:
        e = g.real((*shape[:k], d * 2, *shape[k + 1 :]), depth)
        cut[k] = g.pick(["::2", "1::2", "::-2", f"{g.scope.extent(d)}:", f":{g.scope.extent(d)}"])
        return E(f"({e.text})[{', '.join(cut)}]", e.mag)
    e = g.real(shape, depth)
    if style == 3:
        pads = ["(0, 0)"] * rank
        pads[k] = "(1, 2)"
        cut[k] = g.pick(["1:-2", ":-3", "3:", "2:-1"])
        value = f", constant_values={g.leaf(()).text}" if g.chance(0.4) else ""
        return E(f"np.pad({e.text}, ({', '.join(pads)}{',' if rank == 1 else ''}){value})[{', '.join(cut)}]", e.mag + 4)
    cut[k] = g.pick(["::2", "1::2"])
    n = g.scope.extent(d)
    if g.chance(0.5):
        return E(f"np.repeat({e.text}, 2, axis={_axis(g, k, rank)})[{', '.join(cut)}]", e.mag)
    counts = [1] * rank
    counts[k] = 2
    cut[k] = g.pick([f"{n}:", f":{n}"])
    return E(f"np.tile({e.text}, ({', '.join(map(str, counts))}{',' if rank == 1 else ''}))[{', '.join(cut)}]", e.mag)


def _doubled(g: Expressions, shape: Shape, depth: int) -> E:
    """An extent that is even: repeated."""
    k = g.pick([k for k, d in enumerate(shape) if d.terms and all(c % 2 == 0 for _, c in d.terms)])
    half = Dim(tuple((m, c // 2) for m, c in shape[k].terms))
    e = g.real((*shape[:k], half, *shape[k + 1 :]), depth)
    counts = [1] * len(shape)
    counts[k] = 2
    return E(
        g.pick([f"np.repeat({e.text}, 2, axis={k})", f"np.tile({e.text}, ({', '.join(map(str, counts))},))"]), e.mag
    )


def _parts(g: Expressions, shape: Shape, depth: int) -> E:
    """One of the two halves of what is twice as long."""
    k = g.rng.randrange(len(shape))
    e = g.real((*shape[:k], shape[k] * 2, *shape[k + 1 :]), depth)
    return E(f"np.split({e.text}, 2, axis={k})[{g.pick('01')}]", e.mag)


# -- indexing ------------------------------------------------------------------------------------------------------
def _indexed(g: Expressions, shape: Shape, depth: int) -> E:
    """An element along one more axis."""
    if len(shape) > 3:
        raise Dead
    k, d = g.rng.randint(0, len(shape)), g.dim()
    e = g.real((*shape[:k], d, *shape[k:]), depth)
    at = [":"] * k + [g.place(d)]
    if k == len(shape) and k and g.chance(0.4):
        at = ["...", at[-1]]
    elif g.chance(0.3):
        return E(f"np.take({e.text}, {g.place(d)}, axis={k})", e.mag)
    return E(f"({e.text})[{', '.join(at)}]", e.mag)


def _gathered(g: Expressions, shape: Shape, depth: int) -> E:
    """By an array of integers."""
    k = g.rng.randrange(len(shape))
    indices = g.pick(g.scope.having("int", (shape[k],)))
    d = indices.below if indices.below is not None and g.chance(0.7) else g.dim()
    e = g.real((*shape[:k], d, *shape[k + 1 :]), depth)
    index = indices.name if indices.below == d else f"{indices.name} % {g.scope.extent(d)}"
    if g.chance(0.3):
        return E(f"np.take({e.text}, {index}, axis={k})", e.mag)
    return E(f"({e.text})[{', '.join([':'] * k + [index])}]", e.mag)


def _paired(g: Expressions, shape: Shape, depth: int) -> E:
    """Two index arrays at once, broadcast together."""
    if len(shape) != 1:
        raise Dead
    i = g.pick(g.scope.having("int", shape))
    j = g.pick(g.scope.having("int", shape))
    n, m = (v.below if v.below is not None else g.dim() for v in (i, j))
    e = g.real((n, m), depth)
    texts = [v.name if v.below is not None else f"{v.name} % {g.scope.extent(d)}" for v, d in ((i, n), (j, m))]
    return E(f"({e.text})[{', '.join(texts)}]", e.mag)


def _diagonal(g: Expressions, shape: Shape, depth: int) -> E:
    if not shape:
        d = g.dim()
        e = g.real((d, d), depth)
        return E(f"np.trace({e.text})", 4 * e.mag)
    e = g.real((*shape[:-1], shape[-1], shape[-1]), depth)
    if len(shape) == 1:
        return E(f"np.diagonal({e.text})", e.mag)
    return E(f"np.diagonal({e.text}, axis1={len(shape) - 1}, axis2=-1)", e.mag)


# -- products ------------------------------------------------------------------------------------------------------
def _product(g: Expressions, shape: Shape, depth: int) -> E:
    rank, k = len(shape), g.dim()

    def one(s: Shape) -> E:
        return g.limited(s, depth, 8)

    if rank == 0:
        a, b = one((k,)), one((k,))
        text = g.pick(
            [
                f"({a.text} @ {b.text})",
                f"np.dot({a.text}, {b.text})",
                f"np.vdot({a.text}, {b.text})",
                f'np.einsum("i,i->", {a.text}, {b.text})',
            ]
        )
    elif rank == 1:
        if g.chance(0.5):
            a, b = one((shape[0], k)), one((k,))
            text = g.pick(
                [
                    f"({a.text} @ {b.text})",
                    f"np.dot({a.text}, {b.text})",
                    f'np.einsum("ij,j->i", {a.text}, {b.text})',
                    f"np.inner({a.text}, {b.text})",
                ]
            )
        else:
            a, b = one((k,)), one((k, shape[0]))
            text = g.pick(
                [
                    f"({a.text} @ {b.text})",
                    f"np.tensordot({a.text}, {b.text}, 1)",
                    f'np.einsum("i,ij", {a.text}, {b.text})',
                ]
            )
    elif rank == 2 and g.chance(0.25):
        a, b = one((shape[0],)), one((shape[1],))
        text = g.pick(
            [
                f"np.outer({a.text}, {b.text})",
                f'np.einsum("i,j->ij", {a.text}, {b.text})',
                f"({a.text}[:, None] * {b.text})" if a.text.isidentifier() else f"np.outer({a.text}, {b.text})",
            ]
        )
    elif rank == 2:
        a, b = one((shape[0], k)), one((k, shape[1]))
        text = g.pick(
            [
                f"({a.text} @ {b.text})",
                f"np.matmul({a.text}, {b.text})",
                f'np.einsum("ik,kj->ij", {a.text}, {b.text})',
                f"np.tensordot({a.text}, {b.text}, axes=((1,), (0,)))",
            ]
        )
    elif rank == 3:
        a, b = one((shape[0], shape[1], k)), one((k, shape[2]) if g.chance(0.5) else (shape[0], k, shape[2]))
        text = f"({a.text} @ {b.text})"
    else:
        raise Dead
    return E(text, min(4 * a.mag * b.mag, 300))  # fmt: skip


def _einsum(g: Expressions, shape: Shape, depth: int) -> E:
    """Two or three operands with random letters; a letter may be summed, or stand twice in one operand."""
    letters = dict(zip("abc", shape, strict=False))
    out = "".join(letters)
    for c in "xy"[: g.rng.randint(0, 2)]:
        letters[c] = g.dim()
    if len(letters) > 4 or not letters or len(shape) > 3:
        raise Dead
    specs = [[c for c in letters if g.chance(0.6)] for _ in range(g.rng.randint(1, 3))]
    for c in letters:
        if not any(c in s for s in specs):
            g.rng.choice(specs).append(c)
    for s in specs:
        g.rng.shuffle(s)
        if s and len(s) < 3 and g.chance(0.1):
            s.append(s[0])
    if any(len(s) > 3 for s in specs):
        raise Dead
    es = [g.limited(tuple(letters[c] for c in s), depth, 3) for s in specs]
    spec = ",".join("".join(s) for s in specs) + "->" + out
    mag = 6.0
    for e in es:
        mag *= max(e.mag, 1)
    return E(f'np.einsum("{spec}", {", ".join(e.text for e in es)})', min(mag, 300))


def _solved(g: Expressions, shape: Shape, depth: int) -> E:
    n = shape[0]
    a = g.limited((n, n), min(depth, 1), 1.5)
    m = f"(3 * np.eye({g.scope.extent(n)}) + 0.2 * np.tanh({a.text}))"
    style = g.rng.randrange(4)
    if style == 0 and shape == (n, n):
        return E(f"np.linalg.inv({m})", 2)
    if style == 1 and shape == (n, n):
        return E(f"np.linalg.cholesky({m} @ {m}.T)" if len(m) < 60 else f"np.linalg.inv({m})", 6)
    if style == 2 and len(shape) == 1:
        return E(f"(np.linalg.det({m}) * {g.limited(shape, depth, 2).text} * 0.1)", 30)
    b = g.limited(shape, depth, 8)
    return E(f"np.linalg.solve({m}, {b.text})", b.mag)


def _comprehension(g: Expressions, shape: Shape, depth: int) -> E:
    """A list of rows, stacked."""
    n, rest = shape[0], shape[1:]
    before = g.scope
    where = g.scope.extent(n)
    inner = before.copy()
    rows = [v for v in before.having() if v.rank >= 1 and v.shape[0] == n]
    name = g.fresh("r")
    if rows and g.chance(0.5):
        v = g.rng.choice(rows)
        inner.add(Variable(name, v.shape[1:], mag=v.mag, fixed=True))
        head = f"{name} in {v.name}"
    else:
        inner.add(Variable(name, (), "int", below=n, fixed=True, weak=True))
        head = f"{name} in range({where})"
    g.scope = inner
    try:
        e = g.real(rest, min(depth, 2))
    finally:
        g.scope = before
    maker = "np.array" if not rest or g.chance(0.3) else "np.stack"
    return E(f"{maker}([{e.text} for {head}])", e.mag)


for _weight, _production, _wanted in (
    (3, _permuted, _two_axes), (3, _reshaped, None), (2, _units, None), (3, _turned, _some), (3, _along, _some), (1, _triangles, _two_axes),
    (3, _joined, _some), (2, _split_sum, _some), (4, _longer, _some), (2, _doubled, _some), (1, _parts, _some), (4, _indexed, None),
    (4, _gathered, _some), (1, _paired, _some), (1, _diagonal, lambda s: len(s) <= 2), (5, _product, None), (2, _einsum, None),
    (0.5, _solved, lambda s: 1 <= len(s) <= 2), (1, _comprehension, _some),
):  # fmt: skip
    produce(_weight, _production, _wanted)
