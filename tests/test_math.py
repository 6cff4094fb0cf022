"""transpile/math.h against NumPy and SciPy in higher precision: errors in ulp over all exponents, special
values, and gcc's own word that the loops are vectorised.

float kernels are compared with float64, double kernels with long double (64-bit mantissa on x86).
"""

import ctypes
import functools
import math
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.special as sp

from layerc.build.compiler import find

PROBE = Path(__file__).with_name("math_probe.c")
CC = shutil.which("gcc") or shutil.which("cc")
FAST, NATIVE = (" ".join(flags) for flags in (find().flags, find().native)) if CC else ("", "")
BUILDS = {
    "native": f"{FAST} {NATIVE}",  # with FMA where the machine has it
    "x86-64": FAST,  # without FMA, on the oldest vectors
    "O2": "-O2",  # scalar, contraction as the compiler likes
}

pytestmark = [
    pytest.mark.skipif(CC is None, reason="no C compiler"),
    pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider than double here"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


# ---- the compiled loops --------------------------------------------------------------------------------


class Probe:
    """The loops of math_probe.c compiled with `flags`; `report` is what gcc says it vectorised."""

    def __init__(self, flags: str, folder: Path):
        out = folder / "probe.so"
        command = [
            CC,
            *flags.split(),
            "-Wall",
            "-Wextra",
            "-shared",
            "-fPIC",
            str(PROBE),
            "-o",
            str(out),
            "-lm",
        ]
        self.is_gcc = (
            "Free Software Foundation" in subprocess.run([CC, "--version"], capture_output=True, text=True).stdout
        )
        done = subprocess.run(
            # Two functions that are the same in every instruction are one for gcc, which tells of one loop only.
            command + (["-fopt-info-vec-optimized", "-fno-ipa-icf"] if self.is_gcc else []),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        self.report, self.library = done.stderr, ctypes.CDLL(str(out))

    def __call__(self, name: str, *args: np.ndarray) -> np.ndarray:
        return self.into(args[0].dtype, name + {"f4": "_f32", "f8": "_f64", "i8": ""}[args[0].dtype.str[1:]], *args)

    def into(self, dtype: np.dtype, name: str, *args: np.ndarray) -> np.ndarray:
        args = [np.ascontiguousarray(a) for a in args]
        y = np.empty(args[0].shape, dtype)
        getattr(self.library, name)(ctypes.c_long(y.size), *(ctypes.c_void_p(a.ctypes.data) for a in [*args, y]))
        return y

    def vectorised(self) -> set[str]:
        lines = {int(n) for n in re.findall(r"math_probe\.c:(\d+):\d+: optimized: .*loop vectorized", self.report)}
        return {name for number, name in probe_lines() if number in lines}


def probe_lines():
    """(line, loop) of every loop of the probe: `exp_f32`, `exp_f64`, `mod_i64`."""
    suffix = {"F": "_f32", "D": "_f64", "I": ""}
    for number, line in enumerate(PROBE.read_text().splitlines(), 1):
        if found := re.fullmatch(r"([FDI]+)[12]\((\w+)\)", line):
            yield number, found[2] + suffix[found[1].strip("I") or "I"]


@pytest.fixture(scope="session")
def probes(tmp_path_factory):
    return functools.cache(lambda build: Probe(BUILDS[build], tmp_path_factory.mktemp(build)))


@pytest.fixture(params=BUILDS)
def probe(request, probes):
    return probes(request.param)


# ---- references ----------------------------------------------------------------------------------------


def expit(x):
    return 1 / (1 + np.exp(-x))


def log_expit(x):
    return np.where(x > 0, -0.0, x) - np.log1p(np.exp(-np.abs(x)))


def logit(p):
    return np.where((p > 0.25) & (p < 0.75), 2 * np.arctanh(2 * p - 1), np.log(p / (1 - p)))


# name: reference, greatest error in ulp allowed to float, to double (None: libm or SciPy, tested below)
POWERS = {
    "power4": (4.0, 1.01),
    "power5": (5.0, 1.01),
    "power6": (6.0, 1.25),
    "root4": (0.25, 0.85),
    "power34": (0.75, 1.2),
    "power32": (1.5, 1.3),
    "over_root2": (-0.5, 1.5),
    "over_root4": (-0.25, 2.0),
    "over_power34": (-0.75, 2.2),
    "over_power32": (-1.5, 2.0),
}
UNARY = {
    "exp": (np.exp, 1.0, 1.0),
    "expm1": (np.expm1, 1.4, 1.4),
    "exp2": (np.exp2, 1.3, 1.3),
    "log": (np.log, 1.0, 1.0),
    "log1p": (np.log1p, 1.7, 1.6),
    "log2": (np.log2, 2.0, 1.9),
    "log10": (np.log10, 1.9, 1.9),
    "tanh": (np.tanh, 1.6, 2.3),
    "sigmoid": (expit, 2.0, 1.9),
    "sin": (np.sin, 1.7, 0.85),
    "cos": (np.cos, 1.7, 0.85),
    "tan": (np.tan, 0.51, 1.0),
    "erf": (sp.erf, 1.6, None),
    "erfc": (sp.erfc, 0.51, None),
    "sqrt": (np.sqrt, 0.5, 0.5),
    "cbrt": (np.cbrt, 0.501, 1.0),
    "sinh": (np.sinh, 1.7, 1.8),
    "cosh": (np.cosh, 1.5, 1.6),
    "arcsinh": (np.arcsinh, 0.501, 2.2),
    "arccosh": (np.arccosh, 0.501, 2.2),
    "arctanh": (np.arctanh, 0.501, 2.2),
    "arctan": (np.arctan, 1.5, 1.6),
    "arcsin": (np.arcsin, 1.2, 1.2),
    "arccos": (np.arccos, 1.2, 1.2),
    "gammaln": (sp.gammaln, 0.51, None),
    "digamma": (sp.digamma, 0.51, None),
    "trigamma": (lambda x: sp.polygamma(1, x), 0.51, None),
    "logit": (logit, 0.51, 2.0),
    "log_expit": (log_expit, 2.0, 2.0),
    "abs": (np.abs, 0, 0),
    "sign": (np.sign, 0, 0),
    "floor": (np.floor, 0, 0),
    "ceil": (np.ceil, 0, 0),
    "rint": (np.rint, 0, 0),
    "trunc": (np.trunc, 0, 0),
    **{name: (functools.partial(lambda y, x: np.power(x, y), y), ulp, ulp) for name, (y, ulp) in POWERS.items()},
}
BINARY = {
    "arctan2": (np.arctan2, 1.6, 1.7),
    "pow": (np.power, 0.51, 1.0),
    "over": (np.divide, 1, 1),  # 0.5, but for what is as good as denormal: test_quotients tells which
    "hypot": (np.hypot, 0.51, 1.3),
    "xlogy": (sp.xlogy, 1.9, None),
    "max": (np.maximum, 0, 0),
    "min": (np.minimum, 0, 0),
    "fmax": (np.fmax, 0, 0),
    "fmin": (np.fmin, 0, 0),
    "heaviside": (np.heaviside, 0, 0),
    "copysign": (np.copysign, 0, 0),
}
WIDER = {np.float32: np.float64, np.float64: np.longdouble}
RANGES = [(-746, 712), (-110, 110), (-12, 12), (-1.2, 1.2), (0.4, 2.2)]


@functools.cache
def samples(dtype) -> np.ndarray:
    """Evenly through all bit patterns (every exponent, denormals, NaN), and densely where functions live."""
    bits = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    rng = np.random.default_rng(7)
    patterns = rng.integers(0, np.iinfo(bits).max, 60_000, dtype=bits, endpoint=True).view(dtype)
    scales = 2.0 ** rng.uniform(-40, 40, 20_000) * rng.choice([-1, 1], 20_000)
    return np.concatenate([patterns, scales, *(rng.uniform(a, b, 20_000) for a, b in RANGES)]).astype(dtype)


@functools.cache
def pairs(dtype) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    x, n = samples(dtype), 20_000
    a = [rng.permutation(x)[:n], rng.normal(0, 3, n), rng.normal(0, 3, n), 2.0 ** rng.uniform(-9, 9, n)]
    b = [rng.permutation(x)[:n], rng.normal(0, 3, n), rng.integers(-9, 9, n), rng.uniform(-99, 99, n)]
    return np.concatenate(a).astype(dtype), np.concatenate(b).astype(dtype)


@functools.cache
def wanted(name, dtype):
    if name in UNARY:
        return UNARY[name][0](samples(dtype).astype(WIDER[dtype]))
    return BINARY[name][0](*(a.astype(WIDER[dtype]) for a in pairs(dtype)))


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """|got - want| in units in the last place of `want` in got's type; inf for a wrong NaN or infinity."""
    info, want = np.finfo(got.dtype), want.astype(np.longdouble)
    exponent = np.maximum(np.frexp(want)[1] - info.nmant - 1, info.minexp - info.nmant)
    error = np.abs(got.astype(np.longdouble) - want) / np.ldexp(np.longdouble(1), exponent)
    same = (got == want.astype(got.dtype)) & ~np.isfinite(got) | np.isnan(got) & np.isnan(want)
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error)).astype(np.float64)


def check(name, got, want, limit, *args):
    error = ulps(got, want)
    worst = np.argmax(error)
    where = ", ".join(repr(a[worst]) for a in args)
    assert error[worst] <= limit, f"{name}({where}) = {got[worst]!r}, not {want[worst]!r}: {error[worst]:.3g} ulp"
    signs = (np.signbit(got) != np.signbit(want)) & ~np.isnan(want)
    assert not signs.any(), f"{name}: sign at {[a[signs][0] for a in args]}"


SLOW = {"trigamma"}  # SciPy takes a minute for as many values


def rows(table, column):
    return [
        pytest.param(name, row[column], id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, row in table.items()
        if row[column] is not None
    ]


# ---- accuracy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "limit"), rows(UNARY, 1))
def test_float_error(probe, name, limit):
    x = samples(np.float32)
    check(name, probe(name, x), wanted(name, np.float32), limit, x)


@pytest.mark.parametrize(("name", "limit"), rows(UNARY, 2))
def test_double_error(probe, name, limit):
    x = samples(np.float64)
    check(name, probe(name, x), wanted(name, np.float64), limit, x)


@pytest.mark.parametrize(("name", "limit"), rows(BINARY, 1))
def test_float_error_of_two(probe, name, limit):
    a, b = pairs(np.float32)
    check(name, probe(name, a, b), wanted(name, np.float32), limit, a, b)


@pytest.mark.parametrize(("name", "limit"), rows(BINARY, 2))
def test_double_error_of_two(probe, name, limit):
    a, b = pairs(np.float64)
    check(name, probe(name, a, b), wanted(name, np.float64), limit, a, b)


@pytest.mark.parametrize("name", ["erf", "erfc", "gammaln"])
def test_double_error_of_special(probe, name):
    reference, rtol, atol = {
        "erf": (np.vectorize(math.erf), 5e-16, 0),
        "erfc": (np.vectorize(math.erfc), 1.2e-15, 1e-322),
        "gammaln": (sp.gammaln, 1e-13, 1e-15),  # absolute at the zeros
    }[name]
    x = np.concatenate([np.linspace(-3, 27, 15_000), 2.0 ** np.random.default_rng(1).uniform(-60, 4, 5_000)])
    x = x[x > 0] if name == "gammaln" else x
    np.testing.assert_allclose(probe(name, x), reference(x), rtol, atol)


def test_double_digamma(probe):
    """Absolute near the zeros; below 0 by psi(x+1) = psi(x) + 1/x (SciPy is off near poles)."""
    x = np.random.default_rng(1).uniform(0, 60, 50_000)
    got = probe("digamma", x)
    np.testing.assert_allclose(got, sp.digamma(x), rtol=3e-15, atol=3e-15)
    x = -x[np.abs(x - np.rint(x)) > 0.01]
    np.testing.assert_allclose(probe("digamma", x), probe("digamma", x + 1) - 1 / x, rtol=2e-14, atol=2e-14)


def test_double_trigamma(probe):
    """Below 0 by psi'(x+1) = psi'(x) - 1/x^2 (SciPy is off near poles)."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(0, 60, 50_000), 2.0 ** rng.uniform(-500, 60, 5_000)])
    np.testing.assert_allclose(probe("trigamma", x), sp.polygamma(1, x), rtol=2e-15)
    x = -rng.uniform(0, 60, 50_000)
    np.testing.assert_allclose(probe("trigamma", x), probe("trigamma", x + 1) + 1 / (x * x), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logaddexp(probe, dtype):
    """In NumPy's class: absolute where the sum cancels near 0, with NumPy's own infinities, NaN and largest error."""
    rng = np.random.default_rng(1)
    a, b = (np.concatenate([rng.normal(0, 20, 50_000), rng.normal(0, 1, 50_000)]).astype(dtype) for _ in range(2))
    b[::7] = a[::7]
    want = np.logaddexp(a.astype(np.longdouble), b.astype(np.longdouble))
    largest = [
        np.max(np.abs(y - want) / np.maximum(1, np.abs(want))) for y in (probe("logaddexp", a, b), np.logaddexp(a, b))
    ]
    assert largest[0] < min(np.finfo(dtype).eps, 1.25 * largest[1]), largest
    edges = np.array([0, -0.0, 1, -1, 1e-40, 88, 104, -104, 700, np.inf, -np.inf, np.nan, -np.nan], dtype)
    a, b = (np.ravel(g) for g in np.meshgrid(edges, [*edges, np.finfo(dtype).max, np.finfo(dtype).min]))
    np.testing.assert_allclose(probe("logaddexp", a, b), np.logaddexp(a, b), 2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_float_trigonometry_far_out(probe, name):
    """Floats nearest to multiples of pi/2, where the reduced argument has lost the most digits."""
    quarters = np.concatenate([np.arange(1, 20_000), 2.0 ** np.arange(15, 127)]).astype(np.longdouble)
    near = (quarters * np.longdouble(np.pi) / 2).astype(np.float32)
    x = np.concatenate(
        [near, np.nextafter(near, np.float32(0)), np.float32([16367173 * 2.0**72, 2.0**127, 3.4028235e38])]
    )
    check(name, probe(name, x), UNARY[name][0](x.astype(np.float64)), UNARY[name][1], x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_near_angles(probe, name, dtype):
    """Up to 2**20, those nearest to multiples of pi/2 among them: bit for bit what the function of all angles gives."""
    rng = np.random.default_rng(3)
    quarters = (np.arange(1, 600_000, 7).astype(np.longdouble) * np.longdouble(np.pi) / 2).astype(dtype)
    drawn = [rng.uniform(-w, w, 30_000) for w in (1e-3, 1, 4, 100, 2.0**20)] + [
        [0.0, -0.0, 2.0**20, -(2.0**20), np.nan]
    ]
    x = np.concatenate([quarters, np.nextafter(quarters, dtype(0)), *drawn, np.ldexp(1.0, np.arange(-149, 20))])
    x = x.astype(dtype)
    found = probe(f"{name}_near", x)
    same = probe(name, x)
    assert np.array_equal(found.view(np.uint8), same.view(np.uint8))
    check(name, found, UNARY[name][0](x.astype(WIDER[dtype])), 1.7 if dtype is np.float32 else 0.85, x)


EXACT = {  # function: arguments, results without any rounding error
    "exp": ([0], [1]),
    "exp2": (range(-149, 128), [2.0**k for k in range(-149, 128)]),
    "log": ([1], [0]),
    "log2": ([2.0**k for k in range(-149, 128)], range(-149, 128)),
    "log10": ([10**k for k in range(11)], range(11)),
    "sigmoid": ([0, 200], [0.5, 1]),
    "tanh": ([20, -20], [1, -1]),
    "erf": ([7, -7], [1, -1]),
    "cosh": ([0], [1]),
    "cbrt": ([8, -27, 1000], [2, -3, 10]),
    "arccos": ([1], [0]),
    "logit": ([0.5], [0]),
}


@pytest.mark.parametrize("dtype", WIDER, ids=["float", "double"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_results(probe, name, dtype):
    x, y = (np.array(list(v), dtype) for v in EXACT[name])
    assert probe(name, x).tolist() == y.tolist()


@pytest.mark.parametrize("dtype", WIDER, ids=["float", "double"])
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("tanh", -1, 1), ("erf", -1, 1), ("sigmoid", 0, 1), ("sin", -1, 1), ("cos", -1, 1), ("erfc", 0, 2)],
)
def test_bounds_are_never_crossed(probe, name, low, high, dtype):
    y = probe(name, samples(dtype))
    assert np.nanmin(y) >= low
    assert np.nanmax(y) <= high


def test_ulps_sees_small_errors():
    x = np.linspace(0.1, 9, 1000)
    off = np.nextafter(np.nextafter(x.astype(np.float32), np.float32(99)), np.float32(99))
    assert ulps(off, x).max() > 1.9
    assert ulps(np.float32([np.nan]), np.array([1.0]))[0] == np.inf
    assert ulps(np.float32([1.0]), np.array([np.nan]))[0] == np.inf
    assert ulps(np.float32([np.finfo(np.float32).max]), np.array([np.inf]))[0] == np.inf
    assert ulps(np.float32([np.inf]), np.array([np.inf]))[0] == 0


# ---- special values ------------------------------------------------------------------------------------


def edges(dtype):
    info = np.finfo(dtype)
    positive = [
        0,
        info.smallest_subnormal,
        info.tiny,
        info.eps,
        0.25,
        0.5,
        1,
        1.5,
        2,
        3,
        4,
        1e4,
        1e5,
        info.max,
        np.inf,
    ]
    positive += [1 - info.epsneg, 1 + info.eps, 2.0**24, 2.0**24 - 1, 2.0**31, 2.0**53]
    return np.array([*positive, *(-v for v in positive), np.nan], dtype)


def exactly(name, got, want, *args):
    """NaN, infinities and signed zeros must be the reference's, and nothing else may be one of them."""
    want = want.astype(got.dtype)
    plain = np.isfinite(want) & (want != 0)
    good = (
        np.isnan(got) & np.isnan(want)
        | (got == want) & (np.signbit(got) == np.signbit(want))
        | plain & np.isfinite(got)
    )
    bad = [(*(a[i] for a in args), got[i], want[i]) for i in np.flatnonzero(~good)]
    assert not bad, f"{name}: (arguments, got, want) {bad[:5]}"


@pytest.mark.parametrize("dtype", WIDER, ids=["float", "double"])
@pytest.mark.parametrize("name", UNARY)
def test_edges(probe, name, dtype):
    x = edges(dtype)
    if name == "gammaln":
        x = x[np.abs(x) != np.finfo(np.float64).smallest_subnormal]  # SciPy has inf, not 744.44
    scipy = name in ("erf", "erfc", "gammaln", "digamma", "trigamma")
    exactly(name, probe(name, x), UNARY[name][0](x.astype(np.float64 if scipy else WIDER[dtype])), x)


@pytest.mark.parametrize("dtype", WIDER, ids=["float", "double"])
@pytest.mark.parametrize("name", [n for n in BINARY if n not in ("max", "min", "fmax", "fmin")])
def test_edges_of_two(probe, name, dtype):
    a, b = (v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype)))
    wide = np.float64 if name == "xlogy" else WIDER[dtype]
    exactly(name, probe(name, a, b), BINARY[name][0](a.astype(wide), b.astype(wide)), a, b)


@pytest.mark.parametrize("dtype", WIDER, ids=["float", "double"])
@pytest.mark.parametrize("name", ["max", "min", "fmax", "fmin"])
def test_maximum_and_minimum(probe, name, dtype):
    a, b = (v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype)))
    np.testing.assert_array_equal(probe(name, a, b), BINARY[name][0](a, b))


@pytest.mark.parametrize("dtype", WIDER, ids=["float", "double"])
@pytest.mark.parametrize(("name", "numpy"), [("mod", np.remainder), ("floor_div", np.floor_divide)])
def test_division_is_numpys(probe, name, numpy, dtype):
    a, b = (v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype)))
    x, z = pairs(dtype)
    for p, q in [(a, b), (x, z), (np.rint(x), np.rint(z))]:
        got, want = probe(name, p, q), numpy(p, q)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


def test_integer_division_is_pythons(probe):
    values = [*range(-9, 10), 2**31, -(2**31), 2**63 - 1, -(2**63), 10**18, -(10**18) - 1]
    pairs = [(a, b) for a in values for b in values if b and (a, b) != (-(2**63), -1)]
    a, b = (np.array(v, np.int64) for v in zip(*pairs))
    assert probe("floor_div_i64", a, b).tolist() == [p // q for p, q in pairs]
    assert probe("mod_i64", a, b).tolist() == [p % q for p, q in pairs]
    worst = np.array([-(2**63)], np.int64), np.array([-1], np.int64)  # no trap: wraps, as NumPy
    assert probe("floor_div_i64", *worst)[0] == -(2**63)
    assert probe("mod_i64", *worst)[0] == 0


def _integers() -> np.ndarray:
    """Of all sizes, and where a double, or a float, is rounded up, down, or to even."""
    rng = np.random.default_rng(3)
    some = rng.integers(-(2**62), 2**62, 40_000) >> rng.integers(0, 63, 40_000)
    half = (1 << rng.integers(24, 63, 40_000)) + rng.integers(-3, 4, 40_000) + (1 << rng.integers(0, 40, 40_000))
    edges = [s * (2**p + d) for p in (0, 24, 31, 32, 51, 52, 53, 54, 62) for d in (-1, 0, 1) for s in (1, -1)]
    return np.array([*some, *half, *-half, *edges, 2**63 - 1, -(2**63), 2**63 - 2**38 - 1], np.int64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_integers_are_rounded_once(probe, dtype):
    x, name = _integers(), np.dtype(dtype).name.replace("float", "f")
    assert np.array_equal(probe.into(dtype, f"number_{name}", x), x.astype(dtype))
    x = x[(x < 2**51) & (x > -(2**51))]
    assert np.array_equal(probe.into(dtype, f"counter_{name}", x), x.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_integers_of_numbers_are_casts(probe, dtype):
    rng = np.random.default_rng(4)
    wide = rng.standard_normal(50_000) * 10.0 ** rng.uniform(-5, 25, 50_000)
    edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 2.0**63, -(2.0**63), 2.0**62, -(2.0**63) * 1.001]
    x = np.concatenate([_integers().astype(dtype), wide.astype(dtype), np.array(edges, dtype)])
    y = probe.into(np.int64, f"integer_{np.dtype(dtype).name.replace('float', 'f')}", x)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(y, x.astype(np.int64))


# ---- what gcc makes of it ------------------------------------------------------------------------------

LIBM = {"gammaln_f32", "gammaln_f64", "sin_f64", "cos_f64", "tan_f64", "pow_f64"}
LIBM |= {
    "mod_f32",
    "mod_f64",
    "floor_div_f32",
    "floor_div_f64",
    "mod_i64",
    "floor_div_i64",
}  # fmod; no vector division
ROUNDING = {f"{n}_f{w}" for n in ("floor", "ceil", "rint", "trunc") for w in (32, 64)} | {
    "digamma_f32",
    "digamma_f64",
    "trigamma_f32",
    "trigamma_f64",
}
CONVERSIONS = {f"{n}_f{w}" for n in ("number", "counter", "integer") for w in (32, 64)}


def needs_gcc(probe):
    if not probe.is_gcc:
        pytest.skip("the vectoriser's report is gcc's")
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("what vectorises is known for x86-64 only")


def test_every_loop_is_vectorised(probes):
    needs_gcc(probes("native"))
    assert {name for _, name in probe_lines()} - probes("native").vectorised() == LIBM


@pytest.mark.parametrize("inner", ["lc_expf(x[i])", "1.f + lc_expf(x[i])", "lc_maxf(x[i], 0.f)", "lc_tanhf(x[i])"])
def test_functions_of_functions_are_vectorised(probes, tmp_path, inner):
    """With a number that is the same in all of the loop: gcc must not make jumps of what it asks, nor of what it knows
    of a number that is bounded before. heaviside and powers of quarters have a constant there."""
    needs_gcc(probes("native"))
    header = PROBE.parent.parent / "transpile" / "math.h"
    found = re.findall(r"LC_FN float (lc_\w+f)\(float [xa], float [ybh]\)", header.read_text())
    two = sorted({*found} - {"lc_modf", "lc_floor_divf", "lc_heavisidef", "lc_power_quartersf", "lc_power_wholef"})
    assert {"lc_powf", "lc_hypotf", "lc_xlogyf", "lc_logaddexpf"} <= {*two}
    calls = [call for name in two for call in (f"{name}({inner}, a)", f"{name}(a, {inner})")]
    loop = "void k{}(long n, const float *restrict x, float *restrict y, float a) "
    loop += "{{ for (long i = 0; i < n; i++) y[i] = {}; }}"
    lines = [f'#include "{header}"', *(loop.format(k, call) for k, call in enumerate(calls))]
    (tmp_path / "two.c").write_text("\n".join(lines) + "\n")
    command = [CC, *BUILDS["native"].split(), "-fopt-info-vec-optimized", "-S", "two.c", "-o", "two.s"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = {int(n) for n in re.findall(r"two\.c:(\d+):\d+: optimized: .*loop vectorized", done.stderr)}
    assert [call for k, call in enumerate(calls, 2) if k not in whole] == []


def test_loops_are_vectorised_on_the_oldest_machine(probes):
    """SSE2 has no rounding instruction, and converts integers of 64 bits one by one;
    double kernels with 64-bit integers are left to gcc's judgement."""
    needs_gcc(probes("x86-64"))
    floats = {name for _, name in probe_lines() if name.endswith("_f32")} - LIBM - ROUNDING - CONVERSIONS
    assert floats - probes("x86-64").vectorised() == set()


def test_vectors_are_as_wide_as_the_machine(probes):
    needs_gcc(probes("native"))
    macros = subprocess.run(
        [CC, "-march=native", "-dM", "-E", "-x", "c", "/dev/null"], capture_output=True, text=True
    ).stdout
    width = 64 if "__AVX512F__" in macros else 32 if "__AVX2__" in macros else 16
    line = {name: number for number, name in probe_lines()}
    for name in ("exp_f32", "tanh_f32", "log1p_f32", "sin_f32", "erf_f32", "exp_f64"):
        assert (
            f"math_probe.c:{line[name]}:1: optimized: loop vectorized using {width} byte" in probes("native").report
        ), name
