"""Elementwise operations: a broadcast of scalar C."""

from __future__ import annotations

from typing import Any

from ..operations import MISSING, ZERO, Row, add
from ..program import Type
from ..typing import TypingError, as_float, broadcast, promote


def _promoted(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(promote(args), broadcast([a.shape for a in args]))


# Why an operation is none of truth values, and what to write.
_MINUS = ("NumPy has no - for booleans", "~ for not, ^ for differs")
_NONE = ("NumPy has no such function of booleans", "b.astype(int) makes numbers of them")
_SHORT = ("of booleans, NumPy makes integers of 8 bits here", "b.astype(int) makes numbers of them")


def _reciprocal(args: list[Type], static: dict[str, Any]) -> Type:
    if not args[0].is_float:
        raise TypingError("type", "NumPy rounds the reciprocal of integers to an integer", "1 / x")
    return _floating(args, static)


def _floating(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(as_float(promote(args)), broadcast([a.shape for a in args]))


def _boolean(args: list[Type], static: dict[str, Any]) -> Type:
    return Type("bool", broadcast([a.shape for a in args]))


def _select(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(promote(args[1:]), broadcast([a.shape for a in args]))


def _of_order_1(args: list[Type], static: dict[str, Any]) -> Type:
    if static["n"] != 1:
        raise TypingError("unsupported", f"special.polygamma has the order 1 here, not {static['n']}", "digamma is that of 0")
    return _floating(args, static)


def _rounded(args: list[Type], static: dict[str, Any]) -> Type:
    if args[0].is_integer and static["decimals"] < 0:
        raise TypingError("unsupported", "np.round of integers rounds no digits before the point", "np.round(i / 10) * 10")
    return args[0] if args[0].is_integer else _floating(args, static)


def _round(args: list[Type], static: dict[str, Any]) -> str:
    """As NumPy computes it: a scaled, rounded and scaled back."""
    if args[0].is_integer:
        return "np.positive(a)"
    scale = 10.0 ** abs(static["decimals"])
    if static["decimals"] == 0:
        return "np.rint(a)"
    return f"np.rint(a * {scale!r}) / {scale!r}" if static["decimals"] > 0 else f"np.rint(a / {scale!r}) * {scale!r}"


def _unary(name: str, grad: str | None, c: str, *, spell: str = "", type: Any = _floating, flops: int = 10, truths: Any = None) -> None:
    rule: Any = grad if grad in (ZERO, MISSING) else (grad,)
    add(Row(name, spell or f"np.{name}", "a", "elementwise", type, rule, c, flops=flops, truths=truths))


def _binary(name: str, spell: str, grad: Any, c: str, *, type: Any = _promoted, flops: int = 1, truths: Any = None) -> None:
    add(Row(name, spell, "a, b", "elementwise", type, grad, c, flops=flops, truths=truths))


# -- arithmetic ------------------------------------------------------------------------------------------------
_binary("add", "np.add Add", ("dy", "dy"), "({0} + {1})")
_binary("subtract", "np.subtract Sub", ("dy", "-dy"), "({0} - {1})", truths=_MINUS)
_binary("multiply", "np.multiply Mult", ("dy * b", "dy * a"), "({0} * {1})")
_binary("divide", "np.divide np.true_divide Div", ("dy / b", "-dy * y / b"), "({0} / {1})", type=_floating, flops=8)
# A quotient whose divisor a loop does not change, and the power of two it takes (see passes/quotient.py).
add(Row("scale", "", "a", "inner", _floating, MISSING, "lc_scale{f}({0})"))
add(Row("inverse", "", "a", "inner", _floating, MISSING, "lc_inverse{f}({0})", flops=10))
add(Row("inverse_rest", "", "a, r", "inner", _floating, MISSING, "lc_inverse_rest{f}({0}, {1})", flops=4))
add(Row("quotient", "", "a, r, l, f", "inner", _floating, MISSING, "lc_quotient{f}({0}, {1}, {2}, {3})", flops=2))
add(Row("rough_quotient", "", "a, r, f", "inner", _floating, MISSING, "({0} * {2} * {1})", flops=2))
# Of angles that a loop knows to be near, or not to be (see passes/near.py).
for _name in ("sin", "cos"):
    add(Row(f"{_name}_near", "", "a", "inner", _floating, MISSING, f"lc_{_name}_near{{f}}({{0}})", flops=10))
    add(Row(f"{_name}_far", "", "a", "inner", _floating, MISSING, f"lc_{_name}_far{{f}}({{0}})", flops=40))
add(Row("power_quarters", "", "a, b", "inner", _floating, MISSING, "lc_power_quarters{f}({0}, {1})", flops=18))
add(Row("power_whole", "", "a, b", "inner", _floating, MISSING, "lc_power_whole{f}({0}, {1})", flops=10))
# The larger or the lesser of a number that the program names and a value (see passes/ease.py).
add(Row("held", "", "a", "inner", _floating, MISSING, "lc_held{f}({0})", flops=5))  # more than a variable: before all loops
add(Row("at_least", "", "c, a", "inner", _floating, MISSING, "lc_at_least{f}({0}, {1})"))
add(Row("at_most", "", "c, a", "inner", _floating, MISSING, "lc_at_most{f}({0}, {1})"))
# A value, or the least that is none: of what branches keep the largest of, which leave out NaN (see passes/free.py).
add(Row("above", "", "a, c", "inner", _floating, MISSING, "lc_above{f}({0}, {1})"))
add(Row("below", "", "a, c", "inner", _floating, MISSING, "lc_below{f}({0}, {1})"))
# A value or 0, in a loop that is vectorised (see passes/bits.py).
add(Row("or_zero", "", "c, a", "inner", _floating, MISSING, "lc_or_zero{f}({0}, {1})"))
# A value or what is there.
add(Row("either", "", "c, a, b", "inner", _select, MISSING, "lc_either{f}({0}, {1}, {2}){i}lc_either_int({0}, {1}, {2})"))
_binary("floor_divide", "np.floor_divide FloorDiv", ZERO, "lc_floor_div{f}({0}, {1}){i}lc_floor_div_i64({0}, {1})", truths=_SHORT, flops=8)
_binary("mod", "np.mod np.remainder Mod", ("dy", "-dy * (a // b)"), "lc_mod{f}({0}, {1}){i}lc_mod_i64({0}, {1})", truths=_SHORT, flops=8)
_binary(
    "power",
    "np.power pow Pow",
    ("dy * np.where(b == 0, 0, b * a ** np.where(b == 0, 1, b - 1))", "dy * y * np.log(np.where(a == 0, 1, a))"),
    "lc_pow{f}({0}, {1}){i}lc_pow_i64({0}, {1})",
    truths=_SHORT,
    flops=40,
)
_unary("negative", "-dy", "(-{0})", spell="np.negative USub", type=_promoted, truths=_MINUS, flops=1)
_unary("positive", "dy", "({0})", spell="np.positive UAdd", type=_promoted, truths=_NONE, flops=0)
_unary("abs", "dy * np.sign(a)", "lc_abs{f}({0}){i}llabs({0})", spell="np.abs np.absolute np.fabs math.fabs abs", type=_promoted, flops=1)
_unary("sign", ZERO, "lc_sign{f}({0}){i}(({0} > 0) - ({0} < 0))", type=_promoted, truths=_NONE, flops=2)
_unary("square", "2 * dy * a", "({0} * {0})", type=_promoted, truths=_SHORT, flops=1)
_unary("reciprocal", "-dy * y * y", "(1 / {0})", type=_reciprocal, flops=8)
_unary("sqrt", "0.5 * dy / y", "sqrt{f}({0})", spell="np.sqrt math.sqrt", flops=9)
_unary("cbrt", "dy / (3 * y * y)", "lc_cbrt{f}({0})", spell="np.cbrt math.cbrt", flops=20)

# -- exponentials and logarithms -------------------------------------------------------------------------------
_unary("exp", "dy * y", "lc_exp{f}({0})", spell="np.exp math.exp")
_unary("exp2", "0.6931471805599453 * dy * y", "lc_exp2{f}({0})", spell="np.exp2 math.exp2")
_unary("expm1", "dy * (y + 1)", "lc_expm1{f}({0})", spell="np.expm1 math.expm1")
_unary("log", "dy / a", "lc_log{f}({0})", spell="np.log math.log")
_unary("log2", "1.4426950408889634 * dy / a", "lc_log2{f}({0})", spell="np.log2 math.log2")
_unary("log10", "0.4342944819032518 * dy / a", "lc_log10{f}({0})", spell="np.log10 math.log10")
_unary("log1p", "dy / (1 + a)", "lc_log1p{f}({0})", spell="np.log1p math.log1p")
_binary(
    "logaddexp", "np.logaddexp",  # the logarithm of 0 adds nothing, to another one either
    ("dy * np.where(a == -np.inf, 0, np.exp(a - y))", "dy * np.where(b == -np.inf, 0, np.exp(b - y))"), "lc_logaddexp{f}({0}, {1})",
    type=_floating, flops=25,
)

# -- trigonometry ----------------------------------------------------------------------------------------------
_unary("sin", "dy * np.cos(a)", "lc_sin{f}({0})", spell="np.sin math.sin", flops=15)
_unary("cos", "-dy * np.sin(a)", "lc_cos{f}({0})", spell="np.cos math.cos", flops=15)
_unary("tan", "dy * (1 + y * y)", "lc_tan{f}({0})", spell="np.tan math.tan", flops=20)
_unary("arcsin", "dy / np.sqrt(1 - a * a)", "lc_arcsin{f}({0})", spell="np.arcsin np.asin math.asin", flops=20)
_unary("arccos", "-dy / np.sqrt(1 - a * a)", "lc_arccos{f}({0})", spell="np.arccos np.acos math.acos", flops=20)
_unary("arctan", "dy / (1 + a * a)", "lc_arctan{f}({0})", spell="np.arctan np.atan math.atan", flops=20)
_NORM = "np.where((a == 0) & (b == 0), 1, a * a + b * b)"
_binary(
    "arctan2", "np.arctan2 np.atan2 math.atan2",
    (f"dy * b / {_NORM}", f"-dy * a / {_NORM}"), "lc_arctan2{f}({0}, {1})", type=_floating, flops=25,
)
_unary("sinh", "dy * np.cosh(a)", "lc_sinh{f}({0})", spell="np.sinh math.sinh", flops=15)
_unary("cosh", "dy * np.sinh(a)", "lc_cosh{f}({0})", spell="np.cosh math.cosh", flops=15)
_unary("tanh", "dy * (1 - y * y)", "lc_tanh{f}({0})", spell="np.tanh math.tanh", flops=12)
_unary("arcsinh", "dy / np.sqrt(a * a + 1)", "lc_arcsinh{f}({0})", spell="np.arcsinh np.asinh math.asinh", flops=20)
_unary("arccosh", "dy / np.sqrt(a * a - 1)", "lc_arccosh{f}({0})", spell="np.arccosh np.acosh math.acosh", flops=20)
_unary("arctanh", "dy / (1 - a * a)", "lc_arctanh{f}({0})", spell="np.arctanh np.atanh math.atanh", flops=20)
_binary(
    "hypot", "np.hypot math.hypot",
    ("dy * a / np.where(y == 0, 1, y)", "dy * b / np.where(y == 0, 1, y)"), "lc_hypot{f}({0}, {1})", type=_floating, flops=12,
)

# -- choosing: ties share evenly, clip passes the gradient at its bounds ---------------------------------------
_TIES = "np.where({0} {2} {1}, dy, np.where({0} == {1}, 0.5 * dy, 0))"
_binary("maximum", "np.maximum", (_TIES.format("a", "b", ">"), _TIES.format("b", "a", ">")), "lc_max{f}({0}, {1}){i}(({0} > {1}) ? {0} : {1})")
_binary("minimum", "np.minimum", (_TIES.format("a", "b", "<"), _TIES.format("b", "a", "<")), "lc_min{f}({0}, {1}){i}(({0} < {1}) ? {0} : {1})")
_LONE = "np.where(({0} {2} {1}) | np.isnan({1}), dy, np.where({0} == {1}, 0.5 * dy, 0))"
_binary("fmax", "np.fmax", (_LONE.format("a", "b", ">"), _LONE.format("b", "a", ">")), "lc_fmax{f}({0}, {1}){i}(({0} > {1}) ? {0} : {1})")
_binary("fmin", "np.fmin", (_LONE.format("a", "b", "<"), _LONE.format("b", "a", "<")), "lc_fmin{f}({0}, {1}){i}(({0} < {1}) ? {0} : {1})")
add(
    Row(
        "clip", "np.clip", "a, a_min = None, a_max = None", "elementwise", _promoted,
        ("np.where((a >= a_min) & (a <= a_max), dy, 0)", "np.where((a < a_min) & (a_min <= a_max), dy, 0)", "np.where((a > a_max) | (a_min > a_max), dy, 0)"),
        "lc_min{f}(lc_max{f}({0}, {1}), {2}){i}lc_smaller(lc_larger({0}, {1}), {2})", flops=2,
    ),
    # What a running largest leaves to the one that it was (adjoint/extremes.py): the others are not passed by.
    Row("share", "share", "c, a", "elementwise", lambda args, static: args[1], (None, "np.where(c, dy, 0)"), "(({0}) ? ({1}) : 0)"),
    Row("where", "np.where", "c, a, b", "elementwise", _select, (None, "np.where(c, dy, 0)", "np.where(c, 0, dy)"), "(({0}) ? ({1}) : ({2}))"),
)

# -- rounding and signs ----------------------------------------------------------------------------------------
for _name, _spell in (("floor", ""), ("ceil", ""), ("trunc", " np.fix")):  # integers stay as they are
    _unary(_name, ZERO, f"__builtin_{_name}{{f}}({{0}}){{i}}({{0}})", spell=f"np.{_name}{_spell} math.{_name}", type=_promoted, flops=1)
_unary("rint", ZERO, "__builtin_rint{f}({0})", spell="np.rint", type=_floating, flops=1)
add(Row("round", "np.round np.around round", "a, decimals: int = 0", "alias", _rounded, ZERO, define=_round))
_binary("copysign", "np.copysign math.copysign", ("dy * np.copysign(1, a) * np.copysign(1, b)", None), "__builtin_copysign{f}({0}, {1})", type=_floating)
_binary("heaviside", "np.heaviside", (None, "np.where(a == 0, dy, 0)"), "lc_heaviside{f}({0}, {1})", type=_floating, flops=2)

# -- tests and comparisons: no derivative ----------------------------------------------------------------------
_unary("isnan", ZERO, "({0} != {0})", spell="np.isnan math.isnan", type=_boolean, flops=1)
_unary("isinf", ZERO, "(__builtin_fabs{f}({0}) == INFINITY)", spell="np.isinf math.isinf", type=_boolean, flops=1)
_unary("isfinite", ZERO, "(__builtin_fabs{f}({0}) < INFINITY)", spell="np.isfinite math.isfinite", type=_boolean, flops=1)
for _name, _spell, _c in (
    ("less", "Lt", "<"), ("less_equal", "LtE", "<="), ("greater", "Gt", ">"),
    ("greater_equal", "GtE", ">="), ("equal", "Eq", "=="), ("not_equal", "NotEq", "!="),
):
    _binary(_name, f"np.{_name} {_spell}", ZERO, f"({{0}} {_c} {{1}})", type=_boolean)
_binary("bitwise_and", "np.bitwise_and BitAnd", ZERO, "({0} & {1})")
_binary("bitwise_or", "np.bitwise_or BitOr", ZERO, "({0} | {1})")
_binary("bitwise_xor", "np.bitwise_xor BitXor", ZERO, "({0} ^ {1})")
_binary("left_shift", "np.left_shift LShift", ZERO, "lc_left_shift({0}, {1})", flops=2)
_binary("right_shift", "np.right_shift RShift", ZERO, "lc_right_shift({0}, {1})", flops=2)
_unary("bitwise_not", ZERO, "(~({0}))", spell="np.invert np.bitwise_not Invert", type=_promoted, flops=1)
_binary("logical_and", "np.logical_and And", ZERO, "(({0} != 0) & ({1} != 0))", type=_boolean)
_binary("logical_or", "np.logical_or Or", ZERO, "(({0} != 0) | ({1} != 0))", type=_boolean)
_binary("logical_xor", "np.logical_xor", ZERO, "(({0} != 0) ^ ({1} != 0))", type=_boolean)
_unary("logical_not", ZERO, "({0} == 0)", spell="np.logical_not Not", type=_boolean, flops=1)

# -- scipy.special ---------------------------------------------------------------------------------------------
_unary("erf", "1.1283791670955126 * dy * np.exp(-a * a)", "lc_erf{f}({0})", spell="special.erf math.erf", flops=25)
_unary("erfc", "-1.1283791670955126 * dy * np.exp(-a * a)", "lc_erfc{f}({0})", spell="special.erfc math.erfc", flops=30)
_unary("expit", "dy * y * (1 - y)", "lc_sigmoid{f}({0})", spell="special.expit", flops=14)
_unary("logit", "dy / (a * (1 - a))", "lc_logit{f}({0})", spell="special.logit", flops=20)
_unary("log_expit", "dy * special.expit(-a)", "lc_log_expit{f}({0})", spell="special.log_expit", flops=25)
_binary(
    "xlogy", "special.xlogy",
    ("np.where((a == 0) & (b <= 0), 0, dy * np.log(b))", "np.where(a == 0, 0, dy * a / b)"), "lc_xlogy{f}({0}, {1})", type=_floating, flops=12,
)
_unary("gammaln", "dy * special.digamma(a)", "lc_gammaln{f}({0})", spell="special.gammaln math.lgamma", flops=60)
_unary("digamma", "dy * special.polygamma(1, a)", "lc_digamma{f}({0})", spell="special.digamma special.psi", flops=60)
add(Row("trigamma", "special.polygamma", "n: int, a", "elementwise", _of_order_1, MISSING, "lc_trigamma{f}({0})", flops=60))
