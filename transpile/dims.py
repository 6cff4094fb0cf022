"""Symbolic integers: extents, indices and loop bounds as polynomials in canonical form.

A `Dim` is a sum of integer multiples of products of atoms. An atom is a symbol (a named dimension, a configuration
integer, a loop variable) or an opaque operation on dims (`floordiv`, `mod`, `min`, `max`) or on anything hashable
(`load`: an integer read from memory). Two dims are equal exactly if their canonical forms are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache, lru_cache
from typing import Any, Union

from .node import node, remembered
from .samples import refuted


@node
class Atom:
    """An operation that polynomials cannot express; `kind` floordiv, mod, min, max or load."""

    kind: str
    args: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.args))})"


Symbol = Union[str, Atom]
Monomial = tuple[Symbol, ...]  # sorted, repeated for powers; () is the constant term


@cache
def _key(monomial: Monomial) -> tuple[int, str]:
    return (-len(monomial), " ".join(map(str, monomial)))


@cache
def _product(a: Monomial, b: Monomial) -> Monomial:
    return tuple(sorted(a + b, key=str))


@node
class Dim:
    terms: tuple[tuple[Monomial, int], ...]

    # -- making ------------------------------------------------------------------------------------------------
    @staticmethod
    def of(value: int | str | Atom | Dim) -> Dim:
        if isinstance(value, Dim):
            return value
        if isinstance(value, int):
            return Dim((((), value),) if value else ())
        return Dim((((value,), 1),))

    @staticmethod
    def _from(terms: Mapping[Monomial, int]) -> Dim:
        found = [(m, c) for m, c in terms.items() if c]
        if len(found) > 1:
            found.sort(key=lambda t: _key(t[0]))
        return Dim(tuple(found))

    # -- asking ------------------------------------------------------------------------------------------------
    @property
    def value(self) -> int | None:
        """The integer, if it is known at build time."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def symbol(self) -> Symbol | None:
        """The single atom this is, if it is just that."""
        if len(self.terms) == 1 and len(self.terms[0][0]) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0][0]
        return None

    @remembered
    def atoms(self) -> frozenset[Symbol]:
        """All symbols in it, those inside opaque atoms too, and the opaque atoms."""
        found: set[Symbol] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                found.add(atom)
                if isinstance(atom, Atom):
                    for arg in atom.args:
                        if isinstance(arg, Dim):
                            found |= arg.atoms()
        return frozenset(found)

    @remembered
    def symbols(self) -> frozenset[str]:
        found = {a for a in self.atoms() if isinstance(a, str)}
        for atom in self.atoms() - found:
            found |= _inside(atom)
        return frozenset(found)

    def split(self, symbol: str) -> tuple[Dim, Dim] | None:
        """(coefficient, rest) with self = coefficient * symbol + rest, or None where not linear in it."""
        coefficient: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, c in self.terms:
            count = monomial.count(symbol)
            if any(isinstance(a, Atom) and symbol in _inside(a) for a in monomial) or count > 1:
                return None
            if count:
                lowered = list(monomial)
                lowered.remove(symbol)
                coefficient[tuple(lowered)] = c
            else:
                rest[monomial] = c
        return Dim._from(coefficient), Dim._from(rest)

    # -- arithmetic --------------------------------------------------------------------------------------------
    def __add__(self, other: int | Dim) -> Dim:
        if not (more := Dim.of(other).terms):
            return self
        terms = dict(self.terms)
        for monomial, c in more:
            terms[monomial] = terms.get(monomial, 0) + c
        return Dim._from(terms)

    def __mul__(self, other: int | Dim) -> Dim:
        if isinstance(other, int):
            return Dim(tuple((m, c * other) for m, c in self.terms)) if other else Dim(())
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                monomial = _product(m1, m2)
                terms[monomial] = terms.get(monomial, 0) + c1 * c2
        return Dim._from(terms)

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: int | Dim) -> Dim:
        return self + -Dim.of(other)

    def __radd__(self, other: int) -> Dim:
        return self + other

    def __rmul__(self, other: int) -> Dim:
        return self * other

    def __rsub__(self, other: int) -> Dim:
        return -self + other

    def __floordiv__(self, other: int | Dim) -> Dim:
        other = Dim.of(other)
        if other.value == 1 or not self.terms:
            return self
        if other.value and all(c % other.value == 0 for _, c in self.terms):
            return Dim._from({m: c // other.value for m, c in self.terms})
        if self.value is not None and other.value:
            return Dim.of(self.value // other.value)
        if other.value and (whole := {m: c for m, c in self.terms if c % other.value == 0}):
            return Dim._from(whole) // other + (self - Dim._from(whole)) // other
        if self == other and other.terms:
            return Dim.of(1)
        if other.value and other.value > 0 and isinstance(atom := self.symbol, Atom) and atom.kind in ("max", "min"):
            a, b = (arg // other for arg in atom.args)  # rounding down keeps the order
            return (maximum if atom.kind == "max" else minimum)(a, b)
        if exact := exact_quotient(self, other):
            return exact
        if other.terms and (common := _common_factor([m for m, _ in (*self.terms, *other.terms)])):
            return exact_quotient(self, common) // exact_quotient(other, common)  # type: ignore[operator]
        return Dim.of(Atom("floordiv", (self, other)))

    def __mod__(self, other: int | Dim) -> Dim:
        other = Dim.of(other)
        if other.value:
            rest = Dim._from({m: c for m, c in self.terms if not m or c % other.value})
            if rest.value is not None:
                return Dim.of(rest.value % other.value)
            if rest != self:
                return rest % other
        if self == other or not self.terms or (other.value and all(c % other.value == 0 for _, c in self.terms)):
            return Dim.of(0)
        return Dim.of(Atom("mod", (self, other)))

    def subs(self, values: Mapping[str, Dim]) -> Dim:
        """Replaces symbols, inside opaque atoms too."""
        if not values or not (self.symbols() & values.keys()):
            return self
        return self.rebuilt(lambda atom: _subs_atom(atom, values))

    def rebuilt(self, f: Callable[[Symbol], Dim]) -> Dim:
        """With f of each symbol or atom in its place."""
        total = Dim.of(0)
        for monomial, c in self.terms:
            product = Dim.of(c)
            for atom in monomial:
                product = product * f(atom)
            total = total + product
        return total

    def evaluate(self, values: Mapping[str, int]) -> int:
        done = self.subs({k: Dim.of(v) for k, v in values.items()}).value
        if done is None:
            raise KeyError(f"{self} needs more than {sorted(values)}")
        return done

    # -- text --------------------------------------------------------------------------------------------------
    def render(self, atom: Callable[[Symbol], str]) -> str:
        """As an expression in Python's (and C's) syntax, with atoms spelled by `atom`."""
        if not self.terms:
            return "0"
        text = ""
        for monomial, c in sorted(self.terms, key=lambda t: t[1] < 0):
            factors = [atom(a) for a in monomial]
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            product = "*".join(factors)
            if text:
                text += (" - " if c < 0 else " + ") + product
            else:
                text = ("-" if c < 0 else "") + product
        return text

    @remembered
    def __str__(self) -> str:
        return self.render(_atom_text)

    __repr__ = __str__


ZERO, ONE = Dim.of(0), Dim.of(1)


def _atom_text(atom: Symbol) -> str:
    if isinstance(atom, str):
        return atom
    if atom.kind in ("floordiv", "mod"):
        a, b = atom.args
        left = f"({a})" if len(a.terms) > 1 else str(a)
        right = str(b) if b.value is not None or b.symbol is not None else f"({b})"  # N//(3*h), not N//3*h
        return f"({left}{'//' if atom.kind == 'floordiv' else '%'}{right})"
    return repr(atom)


def _inside(atom: Symbol) -> Set[Any]:
    if isinstance(atom, str):
        return {atom}
    found: set[Any] = set()
    for arg in atom.args:
        found |= arg.symbols() if isinstance(arg, Dim) else getattr(arg, "free", lambda: set())()
    return found


def _subs_atom(atom: Symbol, values: Mapping[str, Dim]) -> Dim:
    if isinstance(atom, str):
        return values.get(atom, Dim.of(atom))
    return _of_kind(atom.kind, [a.subs(values) if hasattr(a, "subs") else a for a in atom.args])


def _of_kind(kind: str, args: Sequence[Any], facts: Facts | None = None) -> Dim:
    match kind:
        case "floordiv":
            return args[0] // args[1]
        case "mod":
            return _modulo(args[0], args[1], facts)
        case "min":
            return minimum(args[0], args[1], facts)
        case "max":
            return maximum(args[0], args[1], facts)
    return Dim.of(Atom(kind, tuple(args)))


def _modulo(a: Dim, b: Dim, facts: Facts | None) -> Dim:
    """a % b, where facts tell that a is less than one time b beside it."""
    for times in (0, 1, -1) if facts is not None else ():
        rest = a - b * times
        if nonnegative(rest, facts) and nonnegative(b - 1 - rest, facts):
            return rest
    return a % b


def exact_quotient(a: Dim, b: Dim) -> Dim | None:
    """a / b where it is a polynomial: (K*D)//D is K, (K*M + K)//(M + 1) is K."""
    if not a.terms or not b.terms:
        return None
    if len(b.terms) > 1:
        return _long_division(a, b)
    divisor, coefficient = b.terms[0]
    quotient: dict[Monomial, int] = {}
    for monomial, c in a.terms:
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if c % coefficient:
            return None
        quotient[tuple(left)] = c // coefficient
    return Dim._from(quotient)


def _long_division(a: Dim, b: Dim) -> Dim | None:
    """By the first terms, which are of the highest degree."""
    quotient, first = Dim.of(0), Dim((b.terms[0],))
    for _ in range(8):
        if not a.terms:
            return quotient
        step = exact_quotient(Dim((a.terms[0],)), first)
        if step is None:
            return None
        quotient, a = quotient + step, a - step * b
    return None


def _common_factor(monomials: list[Monomial]) -> Dim | None:
    """The symbols that are in each of them."""
    first = monomials[0]
    common: list[Symbol] = []
    for atom in dict.fromkeys(first):
        common += [atom] * min(m.count(atom) for m in monomials)
    return Dim((((tuple(common)), 1),)) if common else None


def without_remainder(dim: Dim) -> Dim:
    """The same where every division in it leaves none, but of a number: 2*(D//2) is D, (D + 1)//2 is D//2."""
    times: dict[tuple[Atom, ...], Dim] = {}  # what goes with the same quotients: k*q + q is (k + 1)*q
    for monomial, c in dim.terms:
        quotients = tuple(a for a in monomial if isinstance(a, Atom) and a.kind == "floordiv")
        others = tuple(a for a in monomial if a not in quotients)
        times[quotients] = times.get(quotients, ZERO) + Dim(((others, c),))
    total = ZERO
    for quotients, term in times.items():
        for atom in quotients:
            term = _quotient_of(term, *atom.args)
        total = total + term
    return total


def _quotient_of(term: Dim, a: Dim, b: Dim) -> Dim:
    """term * (a // b), where that leaves no remainder but of a number, less than b is if that is a name."""
    if len(term.terms) > 1 and exact_quotient(term * a, b) is None:
        return sum((_quotient_of(Dim((t,)), a, b) for t in term.terms), ZERO)
    whole, rest = (ZERO, a) if b.value else _multiples(a, b)
    number = next((c for monomial, c in rest.terms if not monomial), 0)
    whole, rest = whole + number // (b.value or max(abs(number), 1)), rest - number
    exact = exact_quotient(term * rest, b)
    return (exact if exact is not None else term * (rest // b)) + term * whole


def quotient_without_remainder(a: Dim, b: Dim) -> Dim | None:
    """a / b where divisions in b leave no remainder, if it is a polynomial then: T*D by h*(D//h) is T."""
    if len(b.terms) != 1:
        return None
    ((monomial, c),) = b.terms
    below = Dim.of(c)
    for atom in monomial:
        if isinstance(atom, Atom) and atom.kind == "floordiv":
            a, below = a * atom.args[1], below * atom.args[0]
        else:
            below = below * Dim.of(atom)
    return exact_quotient(a, below) or exact_quotient(without_remainder(a), without_remainder(below))


def _multiples(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """(w, r) with a = w * b + r, of which b is a name: (T + s - k)//s is (T - k)//s + 1."""
    whole, rest = ZERO, ZERO
    for monomial, c in a.terms:
        part = Dim(((monomial, c),))
        if (times := exact_quotient(part, b)) is not None:
            whole = whole + times
        else:
            rest = rest + part
    return whole, rest


def may_be_one(a: Dim, b: Dim) -> bool:
    """Whether two extents differ, but not for all sizes: N//2 and (N + 1)//2 are one where N is even, min(N, k) and k
    where there are so many. One element, or none, is repeated instead."""
    return a != b and not is_thin(a) and not is_thin(b) and coincide(a, b) and not same_extent(a, b)


def coincide(a: Dim, b: Dim) -> bool:
    """Whether two sizes of the same names are one for some of them, as far as choices and divisions go."""
    if not a.symbols() & b.symbols():
        return a == b
    return any(not without_remainder(p - q).terms for p in _cases(a) for q in _cases(b))


def _cases(dim: Dim) -> set[Dim]:
    """What it may be, with one of two for each choice."""
    found = {ZERO}
    for monomial, c in dim.terms:
        products = {Dim.of(c)}
        for atom in monomial:
            products = {p * case for p in products for case in _cases_of(atom)}
        found = {f + p for f in found for p in products}
        if len(found) > MOST_CASES:
            return {dim}
    return found


def _cases_of(atom: Symbol) -> set[Dim]:
    match atom:
        case Atom("max" | "min" as kind, args):
            numbers = [a for a in args if a.value is not None] if kind == "min" else []  # x[:2] has so many elements
            return set().union(*(_cases(a) for a in numbers or args if a != ZERO))
        case Atom("floordiv" as kind, (a, b)):
            return {_of_kind(kind, (case, b)) for case in _cases(a)}
    return {Dim.of(atom)}


def product(dims: Iterable[Dim]) -> Dim:
    total = ONE
    for dim in dims:
        total = total * dim
    return total


Facts = Mapping[str, tuple[Dim, Dim]]  # symbol -> (lowest, highest) value; a symbol without a fact is an extent, >= 0
ANY = (Dim.of(-(2**62)), Dim.of(2**62))  # what is known of a configuration integer
MOST_CASES = 8  # of an extent that depends on choices
SOON = 20  # questions after which it is tried by numbers whether there is a proof at all
MOST_ASKED = 1000  # questions of a proof: those that are found ask some hundred, and others may go on for ever


def nonnegative(dim: Dim, facts: Facts | None = None) -> bool:
    """Whether dim >= 0 can be proven. False means only: not proven."""
    return _proven(dim, tuple((facts or {}).items()))


@lru_cache(maxsize=2**16)  # a helper that is called often asks the same of each call
def _proven(dim: Dim, facts: tuple[tuple[str, tuple[Dim, Dim]], ...]) -> bool:
    return _Proof(dict(facts)).of(dim)


class _Proof:
    """An attempt to prove that sizes are nonnegative. Nested minima lead to one question on very many ways, so that
    each is asked once; one that led to itself would be no proof of itself."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.inwards = list(reversed(list(facts)))  # inner loops first: their ranges may name outer variables
        self.asked: dict[Dim, bool] = {}

    def of(self, dim: Dim) -> bool:
        self.most = SOON
        return self.holds(dim) or (len(self.asked) >= SOON and not refuted(dim, self.facts) and self.at_length(dim))

    def at_length(self, dim: Dim) -> bool:
        self.most, self.asked = MOST_ASKED, {}
        return self.holds(dim)

    def holds(self, dim: Dim) -> bool:
        if dim not in self.asked:
            if len(self.asked) == self.most:
                return False
            self.asked[dim] = False
            self.asked[dim] = self._tried(dim)
        return self.asked[dim]

    def _tried(self, dim: Dim) -> bool:
        for symbol in self.inwards:
            if symbol not in dim.symbols():
                continue
            parts = dim.split(symbol)
            if parts is None:
                return self._relaxed(dim)
            coefficient, rest = parts
            lowest, highest = self.facts[symbol]
            if self.holds(coefficient):
                dim = coefficient * lowest + rest
            elif self.holds(-coefficient):
                dim = coefficient * highest + rest
            else:
                return self._relaxed(dim)
        return _plain(dim) or self._relaxed(dim)

    def _relaxed(self, dim: Dim) -> bool:
        """Whether dim >= 0 follows with one of its atoms replaced by a bound of it."""
        for monomial, c in dim.terms:
            rest = dim - Dim(((monomial, c),))
            for position, atom in enumerate(monomial):
                if not isinstance(atom, Atom):
                    continue
                if monomial == (atom,) and atom.kind == "floordiv" and (n := atom.args[1].value or 0) > 0:
                    # a // n <= k if, and only if, a <= n*k + n - 1; and a // n >= k, if a >= n*k
                    if abs(c) == 1 and self.holds(rest * n + (atom.args[0] if c > 0 else n - 1 - atom.args[0])):
                        return True
                others = Dim(((monomial[:position] + monomial[position + 1 :], abs(c)),))
                if not self.holds(others):
                    continue
                enough, bounds = self._bounds(atom, others, above=c < 0)
                if bounds and enough(self.holds(rest + bound * (1 if c > 0 else -1)) for bound in bounds):
                    return True
        return False

    def _bounds(self, atom: Atom, times: Dim, above: bool) -> tuple[Any, list[Dim]]:
        """Bounds of atom * times, times >= 0, from above or below, and whether `any` of them serves or only `all`."""
        match atom:
            case Atom("min" | "max" as kind, args):
                return any if above == (kind == "min") else all, [a * times for a in args]
            case Atom("floordiv", (a, n)) if self.holds(n):  # where it has a value, n is not zero
                found = []
                whole = exact_quotient(times, n)
                if whole is not None:
                    found.append(a * whole if above else (a - n + 1) * whole)  # a - n < n * (a // n) <= a
                if self.holds(a):
                    if above and n.value:  # c * (a // n) <= (c * a) // n
                        found.append(a * -(-times.value // n.value) if times.value else a * times)
                    elif not above:
                        found.append(ZERO)
                return any, found
            case Atom("mod", (a, n)) if self.holds(n):
                return any, ([(n - 1) * times, *([a * times] if self.holds(a) else [])] if above else [ZERO])
        return any, []


def nonnegative_beside(extent: Dim, dim: Dim, facts: Facts | None = None) -> bool:
    """Whether dim >= 0 follows from extent >= 0, as that of an array that exists: K - 1 from 2*K - 1. An integer that
    is more than -1 is at least 0."""
    return any(nonnegative(dim * n - extent + (n - 1), facts) for n in (1, 2, 3))


def _plain(dim: Dim) -> bool:
    """All coefficients and all atoms are nonnegative."""
    return all(c >= 0 and all(_nonnegative_atom(a) for a in m) for m, c in dim.terms)


def _nonnegative_atom(atom: Symbol) -> bool:
    if isinstance(atom, str):
        return True
    if atom.kind in ("floordiv", "min"):
        return all(_plain(a) for a in atom.args)
    if atom.kind == "max":
        return any(_plain(a) for a in atom.args)
    return atom.kind == "mod" and _plain(atom.args[1])


def is_thin(extent: Dim) -> bool:
    """Whether an axis has one element at most, so that 0 is its only index: x[:, :1] has min(1, M) columns."""
    symbol = extent.symbol
    return extent == ONE or (isinstance(symbol, Atom) and symbol.kind == "min" and ONE in symbol.args)


def repeats_to(thin: Dim, extent: Dim) -> bool:
    """Whether an axis that is `thin` is repeated along one of this extent: 1, or min(1, M) along M, empty with it."""
    if thin == ONE:
        return True
    return is_thin(thin) and any(same_extent(a, extent) for a in thin.symbol.args if a != ONE)  # type: ignore[union-attr]


def same_extent(a: Dim, b: Dim) -> bool:
    """Whether two extents agree wherever both are possible: max(0, N - 2) is N - 2."""
    if a == b:
        return True
    if not a.symbols() & b.symbols():
        return unclamped(a) == unclamped(b)
    return any(unclamped(form(a)) == unclamped(form(b)) for form in (Dim.of, _reduced, _by_minima))


def _by_minima(dim: Dim) -> Dim:
    """With max(a, b) as a + b - min(a, b), and min(a, b) as a + min(0, b - a): max(0, N - 1) + min(1, N) is N."""

    def of(atom: Symbol) -> Dim:
        if not isinstance(atom, Atom) or atom.kind not in ("max", "min"):
            return Dim.of(atom)
        a, b = map(_by_minima, atom.args)
        if (b - a).terms and (b - a).terms[0][1] < 0:  # of two ways to write it, one
            a, b = b, a
        least = a + minimum(ZERO, b - a)
        return a + b - least if atom.kind == "max" else least

    return dim.rebuilt(of)


def _reduced(dim: Dim) -> Dim:
    """With quotients of numerators that differ by less than what they are divided by: (N + 3)//4 is (N - 1)//4 + 1, the
    greater half, (N + 1)//2, is N - N//2, and (min(a, b) + 1)//2 the lesser of two."""

    def of(atom: Symbol) -> Dim:
        if not isinstance(atom, Atom) or atom.kind not in ("floordiv", "max", "min"):
            return Dim.of(atom)
        a, b = map(_reduced, atom.args)
        if atom.kind != "floordiv":
            return (maximum if atom.kind == "max" else minimum)(a, b)
        if b.value is None:
            whole, rest = _multiples(a, b)
            return whole + rest // b
        if b.value <= 0:
            return a // b
        number = next((c for monomial, c in a.terms if not monomial), 0)
        inner = (a - number).symbol
        if isinstance(inner, Atom) and inner.kind in ("max", "min"):  # rounding down keeps the order
            p, q = (_reduced((arg + number) // b) for arg in inner.args)
            return (maximum if inner.kind == "max" else minimum)(p, q)
        count = number // b.value
        rest = a - count * b.value
        if b.value == 2 and number % 2:
            return rest - 1 - (rest - 1) // 2 + count
        return rest // b + count

    return dim.rebuilt(of)


def of_either(shape: Sequence[Dim], other: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """The shape of what has one of two shapes that agree: max(0, N - 2) is right wherever N - 2 is."""
    if len(shape) != len(other) or not all(map(same_extent, shape, other)):
        return None
    return tuple(b if unclamped(a) == a else a for a, b in zip(shape, other, strict=True))


def unclamped(dim: Dim) -> Dim:
    """a, of max(0, a), and a - 1, of max(0, a) - 1: no extent is negative."""
    for monomial, c in dim.terms:
        match monomial:
            case (Atom("max", args),) if c == 1 and ZERO in args:
                rest = dim - Dim(((monomial, 1),))
                if nonnegative(-rest):
                    return next((a for a in args if a != ZERO), ZERO) + rest
    return dim


def minimum(a: Dim, b: Dim, facts: Facts | None = None) -> Dim:
    """Without facts nothing is known of symbols: a loop counter and a configuration may be negative."""
    if _at_least(b - a, facts):
        return a
    if _at_least(a - b, facts):
        return b
    for this, other in ((a, b), (b, a)):
        if (left := _without("min", this, lambda one: _at_least(one - other, facts))) is not None:  # noqa: B023
            return minimum(left, other, facts)
    return Dim.of(Atom("min", tuple(sorted((a, b), key=str))))


def maximum(a: Dim, b: Dim, facts: Facts | None = None) -> Dim:
    """As `minimum`."""
    if _at_least(a - b, facts):
        return a
    if _at_least(b - a, facts):
        return b
    for this, other in ((a, b), (b, a)):
        if (left := _without("max", this, lambda one: _at_least(other - one, facts))) is not None:  # noqa: B023
            return maximum(left, other, facts)
    return Dim.of(Atom("max", tuple(sorted((a, b), key=str))))


def settled(dim: Dim, facts: Facts) -> Dim:
    """The same, with what facts tell of it in the place of the larger or lesser of two, or of a rest."""

    def of(atom: Symbol) -> Dim:
        if isinstance(atom, str):
            return Dim.of(atom)
        return _of_kind(atom.kind, [settled(a, facts) if isinstance(a, Dim) else a for a in atom.args], facts)

    return dim.rebuilt(of)


def _without(kind: str, dim: Dim, outdone: Callable[[Dim], bool]) -> Dim | None:
    """max(0, max(0, N - 2) - 1) is max(0, N - 3): max(p, q) + rest without what is outdone."""
    for monomial, c in dim.terms:
        match monomial:
            case (Atom(atom_kind, (p, q)),) if atom_kind == kind and c == 1:
                rest = dim - Dim(((monomial, 1),))
                for gone, left in ((p, q), (q, p)):
                    if outdone(gone + rest):
                        return left + rest
    return None


def _at_least(dim: Dim, facts: Facts | None) -> bool:
    return nonnegative(dim, facts) if facts is not None else dim.value is not None and dim.value >= 0


def largest(dim: Dim, facts: Facts) -> Dim:
    """An upper bound of dim that names no loop variable of facts."""
    return _extreme(dim, facts, 1)


def _extreme(dim: Dim, facts: Facts, sign: int) -> Dim:
    """A bound above (sign 1) or below (-1): what is linear in a variable is extreme at an end of its range."""
    for var in reversed(list(facts)):
        if var not in dim.symbols() or facts[var] == ANY:
            continue
        low, high = facts[var]
        parts = dim.split(var)
        if parts is None:
            return _extreme_choice(dim, var, facts, sign)
        slope, rest = parts
        if nonnegative(slope * sign, facts):
            dim = slope * high + rest
        elif nonnegative(-slope * sign, facts):
            dim = slope * low + rest
        else:
            dim = (maximum if sign > 0 else minimum)(slope * high + rest, slope * low + rest, facts)
    return dim


def _extreme_choice(dim: Dim, var: str, facts: Facts, sign: int) -> Dim:
    """min(N, k*t + t) - k*t is min(N - k*t, t), which is extreme where both are; other terms one by one."""
    for monomial, c in dim.terms:
        match monomial:
            case (Atom("min" | "max" as kind, args),) if var in _inside(monomial[0]):
                rest = dim - Dim(((monomial, c),))
                a, b = (_extreme(rest + arg * c, facts, sign) for arg in args)
                return (minimum if (kind == "min") == (c > 0) else maximum)(a, b, facts)
    total = Dim.of(0)
    for monomial, c in dim.terms:
        total = total + _extreme_term(monomial, c, facts, sign)
    return total


def _extreme_term(monomial: Monomial, c: int, facts: Facts, sign: int) -> Dim:
    """c times an atom that grows with its arguments, times what is not negative."""
    term = Dim(((monomial, c),))
    variables = {s for s in facts if facts[s] != ANY}
    if not term.symbols() & variables:
        return term
    for position, atom in enumerate(monomial):
        others = Dim(((monomial[:position] + monomial[position + 1 :], abs(c)),))
        if isinstance(atom, str):
            if len({a for a in monomial if isinstance(a, Atom)}) == 0:
                return _extreme_power(monomial, c, facts, sign)
            continue
        if not Dim.of(atom).symbols() & variables:  # it is what it is
            continue
        if nonnegative(others, facts):
            upwards = sign if c > 0 else -sign
            bound = _extreme_atom(atom, facts, upwards)
            return _extreme(others * bound * (1 if c > 0 else -1), facts, sign)
        if not others.symbols() & variables:  # of either sign, as a configuration: at one end of the atom or the other
            ends = [others * _extreme_atom(atom, facts, way) * (1 if c > 0 else -1) for way in (-1, 1)]
            return (maximum if sign > 0 else minimum)(ends[0], ends[1], facts)
    raise ValueError(f"no bound for the extent {term} of a temporary")


def _extreme_power(monomial: Monomial, c: int, facts: Facts, sign: int) -> Dim:
    """c times symbols, of which a counter may be one more than once: i * i is largest where i is, if that counts up
    from 0."""
    term = Dim(((monomial, c),))
    var = next((s for s in monomial if monomial.count(s) > 1 and facts.get(str(s), ANY) != ANY), None)
    if var is None:
        return _extreme(term, facts, sign)
    low, high = facts[str(var)]
    others = Dim(((tuple(s for s in monomial if s != var), abs(c)),))
    if not nonnegative(low, facts) or not nonnegative(others, facts):
        raise ValueError(f"no bound for the extent {term} of a temporary")
    bound = others
    for _ in range(monomial.count(var)):
        bound = bound * (high if (c > 0) == (sign > 0) else low)
    return _extreme(bound if c > 0 else -bound, facts, sign)


def _extreme_atom(atom: Atom, facts: Facts, sign: int) -> Dim:
    a, b = atom.args[0], atom.args[-1]
    if atom.kind == "floordiv" and nonnegative(b, facts):
        return _extreme_quotient(a, b, facts, sign)
    if atom.kind == "floordiv" and facts.get(str(b)) == ANY:  # of either sign, and what is divided at an end of it
        low, high = (_extreme(a, facts, way) // b for way in (-1, 1))
        return (maximum if sign > 0 else minimum)(low, high, facts)
    if atom.kind == "mod" and nonnegative(b, facts):
        return b - 1 if sign > 0 else ZERO
    if atom.kind in ("min", "max"):
        return Dim.of(Atom(atom.kind, (_extreme(a, facts, sign), _extreme(b, facts, sign))))
    raise ValueError(f"no bound for the extent {atom} of a temporary")


def _extreme_quotient(a: Dim, b: Dim, facts: Facts, sign: int) -> Dim:
    """a // b with b > 0: what is not negative is largest where it is divided by the least. Of either sign, it is no
    larger than that of what is larger, and 0."""
    a = _extreme(a, facts, sign)
    if _extreme(b, facts, 1) == b:
        return a // b
    least, most = (maximum(_extreme(b, facts, way), ONE, facts) for way in (-1, 1))
    if nonnegative(a, facts):
        return a // (least if sign > 0 else most)
    if nonnegative(-a, facts):
        return a // (most if sign > 0 else least)
    return maximum(a, ZERO, facts) // least if sign > 0 else minimum(a, ZERO, facts) // least
