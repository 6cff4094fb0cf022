"""Productions of elementwise expressions, reductions, choices; of conditions and integers."""

from __future__ import annotations

from fuzzing.expressions import BOOLEAN, INTEGER, E, Expressions, produce
from fuzzing.scope import ONE, Dead, Shape, Variable
from layerc.transpile.operations import ROWS

# Domain of the argument, largest magnitude of the result there. A row that is not here gets "unit" and 10.
_UNARY: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("sin", "cos", "tanh", "erf", "expit", "sign"), ("any", 1.0)),
    **dict.fromkeys(("arctan", "erfc"), ("any", 2.0)),
    **dict.fromkeys(("abs", "negative", "positive", "floor", "ceil", "trunc", "rint", "arcsinh"), ("any", 0.0)),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh"), ("small", 20.0)),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt", "reciprocal", "cbrt"), ("pos", 4.0)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh", "tan"), ("unit", 2.0)),
    "square": ("any", -2.0),
    "arccosh": ("above", 3.0),
    "logit": ("open", 3.0),
    "gammaln": ("pos", 6.0),
    "digamma": ("pos", 6.0),
    "log_expit": ("any", 5.0),
}
_NOT_MATH = {"isnan", "isinf", "isfinite", "logical_not", "bitwise_not", "digamma"}
UNARY = [
    row for row in ROWS.values() if row.kind == "elementwise" and len(row.signature) == 1 and row.name not in _NOT_MATH
]


# -- productions: real -------------------------------------------------------------------------------------------
def _unary(g: Expressions, shape: Shape, depth: int) -> E:
    row = g.rng.choice(UNARY)
    domain, mag = _UNARY.get(row.name, ("unit", 10.0))
    e = g.argument(shape, depth, domain)
    spelled = [s for s in row.spellings if s.startswith(("np.", "special.")) or (not shape and s.startswith("math."))]
    mag = mag if mag > 0 else (e.mag**2 if mag < 0 else e.mag)
    if row.name == "negative" and g.chance(0.7):
        return E(f"(-{e.text})", mag)
    if row.name == "abs" and g.chance(0.3):
        return E(f"abs({e.text})", mag)
    name = g.pick(spelled)
    if name.startswith("math.") and any(w in e.text for w in ("[", "@", "broadcast_to")):
        name = spelled[0]
    return E(f"{name}({e.text})", mag)


def _two(g: Expressions, shape: Shape, depth: int) -> tuple[E, E]:
    """Two operands that broadcast to the shape, the smaller one on either side."""
    if not shape or g.chance(0.35):
        pair = [g.real(shape, depth), g.real(shape, depth)]
    elif g.chance(0.2):
        pair = [g.real(shape, depth), E(g.constant(), 3)]
    else:
        small = g.smaller(shape)
        pair = [g.real(shape, depth), g.real(small, depth)]
        if ONE in small and len(small) == len(shape) and g.chance(0.5):
            swapped = tuple(d if s == ONE else (ONE if g.chance(0.5) else d) for s, d in zip(small, shape, strict=True))
            pair[0] = g.real(swapped, depth)
    g.rng.shuffle(pair)
    return pair[0], pair[1]


def _binary(g: Expressions, shape: Shape, depth: int) -> E:
    a, b = _two(g, shape, depth)
    op = g.pick("+++---***")
    mag = a.mag * b.mag if op == "*" else a.mag + b.mag
    return E(f"({a.text} {op} {b.text})", mag)


def _divide(g: Expressions, shape: Shape, depth: int) -> E:
    a, b = g.real(shape, depth), g.argument(g.smaller(shape), depth, "pos")
    if g.chance(0.15):
        return E(f"(1 / {g.argument(shape, depth, 'pos').text})", 4)
    return E(f"({a.text} / {b.text})", 3 * a.mag)


def _power(g: Expressions, shape: Shape, depth: int) -> E:
    if g.chance(0.6):
        k = g.pick(["2", "3", "2", "1", "0"])
        e = g.limited(shape, depth, 3)
        return E(f"({e.text}) ** {k}", max(e.mag, 1) ** int(k))
    a = g.argument(shape, depth, "pos")
    if g.chance(0.4):
        return E(f"{a.text} ** {g.pick(['0.5', '-1', '-2', '1.5', '-0.5'])}", max(a.mag, 3) ** 2)
    b = g.squashed(g.real(g.smaller(shape), depth))
    return E(f"({a.text} ** {b.text})" if g.chance(0.7) else f"np.power({a.text}, {b.text})", max(a.mag, 3) ** 2)


def _binary_call(g: Expressions, shape: Shape, depth: int) -> E:
    name = g.pick(
        [
            "maximum",
            "minimum",
            "fmax",
            "fmin",
            "arctan2",
            "hypot",
            "logaddexp",
            "copysign",
            "add",
            "subtract",
            "multiply",
            "heaviside",
        ]
    )
    a, b = _two(g, shape, depth)
    if name in ("arctan2", "hypot"):
        b = g.argument(g.smaller(shape), depth, "pos")  # away from the origin
        a = g.real(shape, depth)
    if not shape and name in ("maximum", "minimum") and g.chance(0.4):
        return E(f"{name[:3]}({a.text}, {b.text})", max(a.mag, b.mag))
    mag = a.mag * b.mag if name == "multiply" else a.mag + b.mag + 1
    return E(f"np.{name}({a.text}, {b.text})", mag)


def _modulo(g: Expressions, shape: Shape, depth: int) -> E:
    a, b = g.real(shape, depth), g.argument(g.smaller(shape), depth, "pos")
    op = g.pick(["%", "//"])
    if g.chance(0.5):
        b = E(g.pick(["0.7", "1.3", "-0.9"]), 1.3)
    return E(f"({a.text} {op} {b.text})", b.mag if op == "%" else 3 * a.mag)


def _xlogy(g: Expressions, shape: Shape, depth: int) -> E:
    a, b = g.real(shape, depth), g.argument(g.smaller(shape), depth, "pos")
    return E(f"special.xlogy({a.text}, {b.text})", 4 * a.mag)


def _where(g: Expressions, shape: Shape, depth: int) -> E:
    c = g.boolean(g.smaller(shape), depth)
    a, b = _two(g, shape, depth)
    return E(f"np.where({c}, {a.text}, {b.text})", max(a.mag, b.mag))


def _clip(g: Expressions, shape: Shape, depth: int) -> E:
    e = g.real(shape, depth)
    low, high = g.pick([("-0.5", "1.0"), ("None", "0.75"), ("-0.3", "None"), (g.leaf(g.smaller(shape)).text, "2.0")])
    return E(
        f"np.clip({e.text}, {low}, {high})"
        if not shape or g.chance(0.7) or "None" in (low, high)
        else f"({e.text}).clip({low}, {high})",
        e.mag + 2,
    )


def _ternary(g: Expressions, shape: Shape, depth: int) -> E:
    c = g.boolean((), depth)
    a, b = g.real(shape, depth), g.real(shape, depth)
    return E(f"({a.text} if {c} else {b.text})", max(a.mag, b.mag))


def _masked(g: Expressions, shape: Shape, depth: int) -> E:
    e = g.real(shape, depth)
    return E(f"({g.boolean(g.smaller(shape), depth)} * {e.text})", e.mag)


def _mixed(g: Expressions, shape: Shape, depth: int) -> E:
    e = g.real(shape, depth)
    i = g.integer(g.smaller(shape), depth)
    return E(f"({i} {g.pick('+*-')} {e.text})", e.mag * 4 + 4)


def _reduce(g: Expressions, shape: Shape, depth: int) -> E:
    """Over one or two axes put into the shape, or over all."""
    name = g.pick(["sum", "sum", "sum", "mean", "mean", "max", "min", "prod", "var", "norm", "logsumexp"])
    axes, kept, wide = _widened(g, shape)
    e = g.limited(wide, depth, 3 if name in ("prod", "logsumexp") else 20)
    if name == "norm" and len(wide) != 1 and (axes is None or "," in axes):
        name = "sum"
    if name == "norm":
        e = g.argument(wide, 0, "pos") if g.chance(0.6) else e
    rest = "" if axes is None else f", axis={axes}" + (", keepdims=True" if kept else "")
    where = {"norm": "np.linalg.norm", "logsumexp": "special.logsumexp"}.get(name, f"np.{name}")
    mag = {"max": 1, "min": 1, "mean": 1, "sum": 4, "norm": 3, "var": e.mag, "logsumexp": 2}.get(name, 9) * e.mag + 1
    if wide and name in ("sum", "mean", "max", "min", "prod", "var") and g.chance(0.3):
        return E(f"({e.text}).{name}({rest[2:]})", mag)
    return E(f"{where}({e.text}{rest})", mag)


def _widened(g: Expressions, shape: Shape) -> tuple[str | None, bool, Shape]:
    """Axes to reduce over as text, whether they are kept, and the shape before. None: over all axes."""
    ones = [k for k, d in enumerate(shape) if d == ONE]
    if ones and g.chance(0.6):
        k = g.rng.choice(ones)
        return str(k if g.chance(0.5) else k - len(shape)), True, (*shape[:k], g.dim(), *shape[k + 1 :])
    if not shape and g.chance(0.6):
        return None, False, tuple(g.dim() for _ in range(g.rng.randint(1, 2)))
    if len(shape) < 2 and g.chance(0.25):
        wide = list(shape)
        first = g.rng.randint(0, len(wide))
        wide.insert(first, g.dim())
        second = g.rng.randint(0, len(wide))
        wide.insert(second, g.dim())
        first += second <= first
        rank = len(wide)
        a, b = (n if g.chance(0.5) else n - rank for n in g.rng.sample([first, second], 2))
        return f"({a}, {b})", False, tuple(wide)
    if len(shape) > 3:
        raise Dead
    k = g.rng.randint(0, len(shape))
    return str(k if g.chance(0.5) else k - len(shape) - 1), False, (*shape[:k], g.dim(), *shape[k:])


def _partial(g: Expressions, shape: Shape, depth: int) -> E:
    """A sum over a slice with bounds that depend on a loop counter."""
    counters = [v for v in g.scope.having("int", ()) if v.below is not None and not v.wraps and v.fixed]
    i = g.pick(counters)
    v = g.pick([v for v in g.scope.having() if v.shape == (i.below, *shape)])
    other = g.rng.choice([v, *g.scope.having("real", v.shape)])
    cut = g.pick([f":{i.name}", f"{i.name}:", f": {i.name} + 1", f"{i.name} + 1 :", f"{i.name}::-1", f"{i.name}::2"])
    body = f"{v.name}[{cut}]" if g.chance(0.5) else f"{v.name}[{cut}] * {other.name}[{cut}]"
    return E(f"np.sum({body}, axis=0)" if shape or g.chance(0.5) else f"np.sum({body})", 40)


def _generated(g: Expressions, shape: Shape, depth: int) -> E:
    """The sum of a generator."""
    if shape:
        raise Dead
    i, n = g.fresh("i"), g.dim()
    before = g.scope
    where = g.scope.extent(n)
    g.scope = before.copy()
    g.scope.add(Variable(i, (), "int", below=n, fixed=True, weak=True))
    try:
        e = g.limited((), min(depth, 2), 4)
    finally:
        g.scope = before
    return E(f"sum({e.text} for {i} in range({where}))", 5 * e.mag)


def _call(g: Expressions, shape: Shape, depth: int) -> E:
    name, args, _, mag = g.pick([h for h in g.helpers if h[2] == shape])
    return E(f"{name}({', '.join(g.limited(s, min(depth, 1), 5).text for s in args)})", mag)


def _of_same_rank(shape: Shape) -> bool:
    return len(shape) >= 1


# -- productions: bool and int -----------------------------------------------------------------------------------
def _compared(g: Expressions, shape: Shape, depth: int) -> str:
    a = g.real(shape, depth).text
    b = g.constant() if g.chance(0.5) else g.real(g.smaller(shape), depth).text
    return f"({a} {g.pick(['<', '>', '<=', '>='])} {b})"


def _compared_ints(g: Expressions, shape: Shape, depth: int) -> str:
    return f"({g.integer(shape, depth)} {g.pick(['<', '>', '==', '!=', '<='])} {g.pick(['0', '1', '2'])})"


def _joined(g: Expressions, shape: Shape, depth: int) -> str:
    a, b = g.boolean(shape, depth), g.boolean(shape, depth)
    if not shape and g.chance(0.7):
        return g.pick([f"({a} and {b})", f"({a} or {b})", f"(not {a})"])
    return (
        g.pick([f"({a} & {b})", f"({a} | {b})", f"(~{a})", f"np.logical_xor({a}, {b})"]) if shape else f"({a} or {b})"
    )


def _between(g: Expressions, shape: Shape, depth: int) -> str:
    if shape:
        raise Dead
    return f"(-1.0 < {g.real((), depth).text} <= 1.25)"


def _tested(g: Expressions, shape: Shape, depth: int) -> str:
    return f"np.{g.pick(['isnan', 'isfinite', 'isinf'])}({g.real(shape, depth).text})"


def _named_bool(g: Expressions, shape: Shape, depth: int) -> str:
    return g.pick(g.scope.having("bool", shape)).name


def _every(g: Expressions, shape: Shape, depth: int) -> str:
    if len(shape) > 2:
        raise Dead
    k = g.rng.randint(0, len(shape))
    e = g.boolean((*shape[:k], g.dim(), *shape[k:]), depth)
    return f"np.{g.pick(['any', 'all'])}({e}, axis={k})"


def _named_int(g: Expressions, shape: Shape, depth: int) -> str:
    return g.pick(g.scope.having("int", shape)).name


def _int_arithmetic(g: Expressions, shape: Shape, depth: int) -> str:
    a = g.pick(g.scope.having("int", shape)).name
    return g.pick(
        [f"({a} % 3)", f"({a} // 2)", f"({a} * 2 - 1)", f"({a} + 1)", f"abs({a})", f"(-{a})", f"np.minimum({a}, 2)"]
    )


def _counted(g: Expressions, shape: Shape, depth: int) -> str:
    if len(shape) > 2:
        raise Dead
    k = g.rng.randint(0, len(shape))
    return f"np.sum({g.boolean((*shape[:k], g.dim(), *shape[k:]), depth)}, axis={k})"


def _largest(g: Expressions, shape: Shape, depth: int) -> str:
    if len(shape) > 2:
        raise Dead
    k = g.rng.randint(0, len(shape))
    return f"np.{g.pick(['argmax', 'argmin'])}({g.real((*shape[:k], g.dim(), *shape[k:]), depth).text}, axis={k})"


def _extent(g: Expressions, shape: Shape, depth: int) -> str:
    if shape:
        return f"np.arange({g.scope.extent(shape[0])})" if len(shape) == 1 else g.pick([])
    return g.scope.extent(g.dim())


BOOLEAN += [
    _compared, _compared, _compared, _compared_ints, _joined, _between, _tested, _named_bool, _every,
]  # fmt: skip
INTEGER += [
    _named_int, _named_int, _named_int, _int_arithmetic, _int_arithmetic, _counted, _largest, _extent,
]  # fmt: skip


def _leaf(g: Expressions, shape: Shape, depth: int) -> E:
    return g.leaf(shape)


for _weight, _production in (
    (4, _leaf), (9, _unary), (14, _binary), (2, _divide), (3, _power), (4, _binary_call), (1, _modulo), (0.5, _xlogy), (3, _where),
    (1.5, _clip), (1, _ternary), (1, _masked), (2, _mixed), (6, _reduce), (3, _partial), (0.7, _generated), (2, _call),
):  # fmt: skip
    produce(_weight, _production)
