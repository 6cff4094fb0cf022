"""How the parts of the IR are spelled in C: names, types, numbers, index arithmetic, expressions."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable
from functools import lru_cache

from .dims import ANY, Atom, Dim, Symbol, nonnegative
from .ir import THREADS, Buffer, Cast, Const, Expr, Int, Kernel, Load, Op, Scalar
from .operations import ROWS, scalar_c

C_TYPES = {"f32": "float", "f64": "double", "i32": "int32_t", "i64": "int64_t", "bool": "uint8_t"}
C_OPS = {"add": "+=", "mul": "*=", "or": "|=", "and": "&="}

# Keywords, names the emitted code uses itself, and functions of math.h, stdlib.h and string.h: hiding one of
# those by a local name draws a warning, or a wrong call.
_RESERVED = set(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int
    long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while asm typeof call done main I NAN INFINITY NULL EOF complex bool true false linux unix
    errno stdin stdout stderr abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh div
    erf erfc exp exp2 expm1 fabs floor fma fmax fmin fmod free frexp gamma hypot j0 j1 jn labs ldexp
    lgamma llabs log log10 log1p log2 logb malloc memcpy memset modf nan pow remainder rint round sin
    sinh sqrt strlen tan tanh tgamma trunc y0 y1 yn
    alloca assert fpclassify isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan
    isnormal isunordered math_errhandling offsetof sched_priority signbit signgam st_atime st_ctime st_mtime
    static_assert va_arg va_copy va_end va_start L_ctermid L_cuserid L_tmpnam P_tmpdir
    alignas alignof and bitand bitor catch class compl constexpr decltype delete explicit export friend mutable
    namespace new noexcept not nullptr operator or private protected public template this throw try typeid
    typename using virtual wchar_t xor
    """.split()
)
# What headers define as macros and types: BUFSIZ, M_PI, PRId64, Py_None, int64_t. Names of one or two letters, and
# those that begin with a capital and go on small, are nobody's.
_HEADERS = re.compile(r"[A-Z][A-Z0-9_]{2,}|([A-Z]_[A-Z0-9]|Py|PRI|SCN)\w*|\w+_t")


class CNames:
    """IR name -> C name, one to one: reserved words and letters beyond ASCII are spelled round."""

    def __init__(self, names: Iterable[str]):
        self.table: dict[str, str] = {}
        self.taken: set[str] = set()
        for name in names:
            self.add(name)

    def add(self, name: str) -> str:
        if name not in self.table:
            text = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"_u{ord(c):x}" for c in name)
            if (
                text in _RESERVED
                or _HEADERS.fullmatch(text)
                or text.lower().startswith("lc_")
                or text[0].isdigit()
                or text.startswith("_")
            ):
                text = "v_" + text.lstrip("_")
            while text in self.taken:
                text += "_"
            self.taken.add(text)
            self.table[name] = text
        return self.table[name]

    def __getitem__(self, name: str) -> str:
        return self.table[name]


def extreme(op: str, ctype: str) -> str:
    """The function that accumulates "max" or "min"."""
    if ctype in ("float", "double"):
        return f"lc_{op}{'f' if ctype == 'float' else ''}"
    return "lc_larger" if op == "max" else "lc_smaller"


def bare(text: str) -> str:
    """Without the parentheses around the whole, if there are."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 else text
    return text


def literal(value: bool | int | float, dtype: str) -> str:
    if dtype in ("f32", "f64"):
        number = float(value)
        if math.isnan(number):
            return "NAN"
        if math.isinf(number):
            return "INFINITY" if number > 0 else "(-INFINITY)"
        text = _shortest_f32(number) if dtype == "f32" else repr(number)
        return f"({text})" if text.startswith("-") else text
    number = int(value)
    if number == -(2**63):
        return "INT64_MIN"
    text = str(number) if abs(number) < 2**31 else f"INT64_C({number})"
    return f"({text})" if number < 0 else text


_DIVIDED = ("floordiv", "mod")
MANY, SHARE = 8, 1 << 10  # terms of a sum of counters, and their factors: below 2**51
_BEYOND_F32 = 2.0**128 - 2.0**103  # rounds to infinity


def _shortest_f32(number: float) -> str:
    """The float32 nearest to the number, in the fewest digits that name it."""
    rounded = struct.unpack("=f", struct.pack("=f", number))[0] if abs(number) < _BEYOND_F32 else math.inf
    if math.isinf(rounded):
        return "INFINITY" if number > 0 else "(-INFINITY)"
    for digits in range(1, 10):
        text = f"{rounded:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == rounded:
            break
    return (text if any(c in text for c in ".e") else text + ".0") + "f"


@lru_cache(10_000)
def _are_natural(dims: tuple[Dim, ...], facts: tuple[tuple[str, tuple[Dim, Dim]], ...]) -> bool:
    return all(nonnegative(d, dict(facts)) for d in dims)


class Speller:
    """Spells expressions of one kernel at one float type. `facts` (loop variable -> its range) follows the
    emitter."""

    def __init__(self, kernel: Kernel, dtype: str):
        self.real = dtype
        self.table = {b.name: b for b in kernel.buffers}
        self.scalars = {s.name: s for s in kernel.scalars}
        self.names = CNames([*kernel.dims, *self.scalars, *self.table])
        self.names.table[THREADS] = "lc_threads"
        self.bound: dict[Dim, str] = {}  # integers that have a variable at this place
        self.local: set[str] = set()  # rank-0 buffers that are C variables
        self.lent: dict[str, str] = {}  # what stands for a place of an array
        self.in_vectors = False  # what is spelled stands in a loop that gcc vectorises
        # A configuration integer may be negative; an extent may not.
        self.facts: dict[str, tuple[Dim, Dim]] = dict.fromkeys(self.scalars, ANY)

    def kind(self, dtype: str) -> str:
        return self.real if dtype == "real" else dtype

    def ctype(self, dtype: str) -> str:
        return C_TYPES[self.kind(dtype)]

    def variable(self, dtype: str) -> str:
        """The type of a C variable: gcc keeps `_Bool` in mask registers, bytes it would widen."""
        return "_Bool" if dtype == "bool" else self.ctype(dtype)

    # -- integers --------------------------------------------------------------------------------------------
    def dim(self, dim: Dim) -> str:
        return self.bound.get(dim) or dim.render(self.atom)

    def tight(self, dim: Dim) -> str:
        """Fit to stand beside * and /."""
        text = self.dim(dim)
        return text if (len(dim.terms) <= 1 or dim in self.bound) and not text.startswith("-") else f"({text})"

    def atom(self, atom: Symbol) -> str:
        if isinstance(atom, str):
            return self.names[atom]
        if (name := self.bound.get(Dim.of(atom))) is not None:
            return name
        match atom:
            case Atom("load", (Load() as load,)):
                text = self.expr(load)
                return text if load.dtype == "i64" else f"(int64_t){text}"
            case Atom("floordiv" | "mod" as kind, (a, b)):
                if self.are_natural(a, b - 1):  # else a function divides, which stops at no zero
                    if kind == "floordiv" or b.value is not None or (around := self.around(a, b)) is None:
                        return f"({self.tight(a)} {'/' if kind == 'floordiv' else '%'} {self.divisor(b)})"
                    return around
                if kind == "mod" and (around := self.around(a, b)) is not None:
                    return around
                return f"lc_{'floor_div' if kind == 'floordiv' else 'mod'}_i64({self.dim(a)}, {self.dim(b)})"
            case Atom("min" | "max" as kind, (a, b)):
                return f"lc_{'smaller' if kind == 'min' else 'larger'}({self.dim(a)}, {self.dim(b)})"
        raise TypeError(f"no C for {atom}")

    def around(self, a: Dim, b: Dim) -> str | None:
        """a % b without a division, where a is less than b before the axis or behind it, or one step more; a counter
        that has a value here has a range that is not empty."""
        ranges = (self.facts[s] for s in sorted(a.symbols() & self.facts.keys()))
        known = (Dim.of(0), *(high - low for low, high in ranges if (low, high) != ANY))

        def is_near(place: Dim) -> bool:
            sides = (place + b, b * 2 - 1 - place)
            return all(any(self.are_natural(side - k) for k in known) for side in sides)

        if is_near(a):
            return f"lc_around({self.dim(a)}, {self.dim(b)})"
        for step in (1, -1):
            if is_near(a - step):
                nearer = f"lc_around({self.dim(a - step)}, {self.dim(b)})"
                return f"lc_around({nearer} {'+' if step > 0 else '-'} 1, {self.dim(b)})"
        return None

    def are_natural(self, *dims: Dim) -> bool:
        """Whether none is negative."""
        known: dict[str, tuple[Dim, Dim]] = {}
        asked = set().union(*(d.symbols() for d in dims))
        while asked:  # only what it hangs on: so the same is asked again and again
            known |= {s: self.facts[s] for s in asked & self.facts.keys()}
            asked = {s for name in asked & known.keys() for end in known[name] for s in end.symbols()} - known.keys()
        return _are_natural(dims, tuple(sorted(known.items(), key=lambda fact: fact[0])))

    def divisor(self, dim: Dim) -> str:
        symbol = dim.symbol
        if dim in self.bound:
            return self.bound[dim]
        return self.tight(dim) if dim.value is not None or isinstance(symbol, str) else f"({self.dim(dim)})"

    # -- memory ----------------------------------------------------------------------------------------------
    def root(self, name: str) -> Buffer:
        buffer = self.table[name]
        while buffer.alias:
            buffer = self.table[buffer.alias]
        return buffer

    def place(self, name: str, index: tuple[Dim, ...]) -> str:
        root = self.root(name)
        text = self.names[root.name]
        if root.name in self.local:
            return self.lent.get(text, text)
        text = f"{text}[{self.offset(index, self.table[name].shape)}]"
        return self.lent.get(text, text)

    def offset(self, index: tuple[Dim, ...], shape: tuple[Dim, ...]) -> str:
        """Row-major position in Horner's form; axes that are the digits of one flat number are that
        number."""
        text = ""
        axis = 0
        while axis < len(index):
            digit, last = index[axis], axis
            while last + 1 < len(index) and (whole := _undivided(digit, index[last + 1], shape[last + 1])) is not None:
                digit, last = whole, last + 1
            if text in ("", "0"):
                text = self.dim(digit)
            else:
                for k in range(axis, last + 1):
                    if shape[k].value != 1:
                        text = f"{_group(text)}*{self.tight(shape[k])}"
                number = self.dim(digit)
                if number != "0":
                    text += f" - {number[1:]}" if number.startswith("-") and len(digit.terms) == 1 else f" + {number}"
            axis = last + 1
        return text or "0"

    def argument(self, arg: Expr, template: str, k: int) -> str:
        """Bare where the template has parentheses, or commas, of its own."""
        text = self.expr(arg)
        return bare(text) if re.search(rf"[(] *\{{{k}\}} *[),]|, *\{{{k}\}} *[),]", template) else text

    # -- expressions -----------------------------------------------------------------------------------------
    def expr(self, expr: Expr) -> str:
        match expr:
            case Const(value, dtype):
                return literal(value, self.kind(dtype))
            case Int(dim):
                return self.tight(dim)
            case Scalar(name, dtype):
                return f"({self.ctype(dtype)}){self.names[name]}"
            case Load(buffer, index, _):
                return self.place(buffer, index)
            case Op(op, args, dtype):
                operand = self.kind(dtype_of(args[-1]) if args and ROWS[op].kind != "draw" else dtype)
                template = scalar_c(op, operand)
                return template.format(*(self.argument(a, template, k) for k, a in enumerate(args)))
            case Cast(value, dtype):
                text = self.expr(value)
                if self.kind(dtype) == self.kind(dtype_of(value)):
                    return text
                converter = self.converter(value, dtype) if self.in_vectors else None
                if converter is not None:
                    return f"{converter}({bare(text)})"
                return f"({text} != 0)" if dtype == "bool" else f"({self.ctype(dtype)}){_unary(text)}"
        raise TypeError(f"no C for {expr}")

    def converter(self, value: Expr, dtype: str) -> str | None:
        """What converts between numbers and integers of 64 bits in vectors, where a cast would not."""
        kinds = (self.kind(dtype_of(value)), self.kind(dtype))
        real = next((k for k in kinds if k in ("f32", "f64")), None)
        divided = isinstance(value, Int) and any(isinstance(a, Atom) and a.kind in _DIVIDED for a in value.dim.atoms())
        if real is None or "i64" not in kinds or divided:  # quotients know no vectors, either
            return None
        name = "lc_integer" if kinds[1] == "i64" else "lc_counter" if self.counts(value) else "lc_number"
        return name + "f" * (real == "f32")

    def counts(self, value: Expr) -> bool:
        """Whether it is a few counters and extents, as of elements in memory."""
        terms = value.dim.terms if isinstance(value, Int) else ()
        few = all(abs(c) <= SHARE and all(isinstance(s, str) for s in monomial) for monomial, c in terms)
        single = all(len(monomial) <= 1 and not set(monomial) & self.scalars.keys() for monomial, _ in terms)
        return isinstance(value, Int) and len(terms) < MANY and few and single


def dtype_of(expr: Expr) -> str:
    return "i64" if isinstance(expr, Int) else expr.dtype


def _undivided(high: Dim, low: Dim, extent: Dim) -> Dim | None:
    """x where high = x // extent and low = x % extent."""
    match high.symbol, low.symbol:
        case Atom("floordiv", (a, n)), Atom("mod", (b, m)) if a == b and n == m == extent:
            return a
    return None


def _group(text: str) -> str:
    return text if text.replace("_", "a").isalnum() or _closed(text) else f"({text})"


def _closed(text: str) -> bool:
    return bare(text) != text


def _unary(text: str) -> str:
    """Fit to stand behind a cast: a name or number, with what is in brackets behind it; a[i]*b[j] is not."""
    rest = re.sub(r"^\w+", "", text)
    while rest.startswith(("(", "[")):
        rest = rest[_bracketed(rest) :]
    return text if not rest else f"({text})"


def _bracketed(text: str) -> int:
    """The length of the bracket that the text begins with."""
    depth = 0
    for position, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0:
            return position + 1
    return len(text)
