"""ONE table of operations. A row says all there is to know of an operation; every stage reads it here.

    name     how the typed program and the IR call it
    spell    the Python names it answers to; `binary`/`unary`/`compare` operators are spelled by their gast class name
    args     its arguments: arrays first, then what must be known at build time, as name: kind = default
    type     its type rule: (argument types, static values) -> Type
    grad     the derivative, one per array argument, as subset source over the argument names, the result `y` and the
             cotangent `dy`; ZERO: zero almost everywhere; MISSING: an error that names the operation; DEFINED: that of
             `define`; BACKWARD: a function that the call holds
    c        scalar C for an elementwise operation or a draw; {f} is "f" for float32 and "" for float64
             (a draw's arguments there: seed, number of the draw, number of the example, index of the element, the rest)
    pull     for an operation that only moves elements: (index into the result) -> (index into the argument)
    reduce   for a reduction: (neutral element, combining operation)
    spec     for a product: its operands' and its result's axes as letters, as einsum
    make     for an array made from nothing: index -> element
    define   for a composed operation: its meaning as subset source, or what makes it from (array types, static values)
    body     for an operation with loops of its own: a function of `table/bodies.py`, its meaning in statements of the
             subset. Its parameters are arguments of the row and `y`, which it fills
    each     what of its arguments a body sees at a time, for every index of the axes before: a "vector" along `axis`,
             the "rest" from `axis` on, a "matrix" of the last two axes
    view     whether NumPy's result is its argument's memory, wherever strides can say so
    shared   `name = text`: a value that derivatives read by that name, computed once

The rows themselves are in `transpile/table/`, a file a family. Adding an operation is adding a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import ir
from .dims import Dim
from .program import Call, Type

ZERO = "zero"
MISSING = "missing"
DEFINED = "defined"
BACKWARD = "backward"
Pull = Callable[[tuple[Dim, ...], Type, dict[str, Any]], tuple[Dim, ...]]


@dataclass(frozen=True)
class Row:
    name: str
    spell: str
    args: str
    # elementwise move reduce product make compose (defined by others) alias (its definition stands in its
    # place) body draw (a random number for each element) special (lowered by name) derivative (its first argument,
    # for all but the adjoint: see primal.py) inner (made by passes only)
    kind: str
    type: Callable[[list[Type], dict[str, Any]], Type]
    grad: tuple[str | None, ...] | str = MISSING
    c: str = ""
    pull: Pull | None = None
    reduce: tuple[Any, str] | None = None
    spec: Callable[[list[Type]], tuple[list[str], str]] | None = None
    make: Callable[[tuple[Dim, ...], list[ir.Expr], dict[str, Any]], ir.Expr] | None = None
    define: str | Callable[[list[Type], dict[str, Any]], str] = ""
    body: Callable[..., None] | None = None
    each: str = ""
    view: bool = False
    shared: str = ""
    few: tuple[str, ...] = ()  # of a reduction, in place of `grad` where it is known to be of one element, of two
    flops: int = 1
    truths: tuple[str, str] | None = None  # of truth values alone NumPy has no such thing: why, and what to write
    doc: str = ""

    @property
    def spellings(self) -> tuple[str, ...]:
        return tuple(self.spell.split())

    @property
    def python(self) -> str:
        """The name it is printed with."""
        return self.spellings[0]

    @property
    def signature(self) -> tuple[Argument, ...]:
        return _signature(self.args)

    @property
    def takes(self) -> str:
        """Its arguments as Python writes them."""
        return ", ".join(a.name if a.required else f"{a.name}={a.default}" for a in self.signature)

    @property
    def arrays(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.signature if a.kind in ("array", "arrays"))


@dataclass(frozen=True)
class Argument:
    name: str
    kind: str  # array arrays(list of them) axis axes flag shape extent dtype int offset text value
    default: Any = None
    required: bool = True


_DEFAULTS = {"None": None, "True": True, "False": False}


@cache
def _signature(text: str) -> tuple[Argument, ...]:
    found = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        head, _, default = part.partition("=")
        name, _, kind = head.partition(":")
        value: bool | int | str | None = _DEFAULTS.get(default.strip(), default.strip())
        if isinstance(value, str) and value.lstrip("-").isdigit():
            value = int(value)
        found.append(Argument(name.strip(), kind.strip() or "array", value, required=not default))
    return tuple(found)


ROWS: dict[str, Row] = {}
BY_SPELLING: dict[str, Row] = {}


def add(*rows: Row) -> None:
    for row in rows:
        assert row.name not in ROWS, f"operation {row.name} stands twice in the table"
        ROWS[row.name] = row
        for spelling in row.spellings:
            assert spelling not in BY_SPELLING, f"{spelling} is spelled by two rows"
            BY_SPELLING[spelling] = row


def scalar_c(op: str, dtype: str) -> str:
    """The C template of an elementwise operation, for "f32" or "f64" or an integer type."""
    text = ROWS[op].c
    if dtype in ("i32", "i64", "bool") and "{i}" in text:
        return text.split("{i}")[1]
    text = text.split("{i}")[0]
    return text.replace("{f}", "f" if dtype == "f32" else "")


def jumps(op: str) -> bool:
    """Whether its result may jump where its arguments hardly move: what has no derivative, and a rest."""
    return ROWS[op].grad == ZERO or op == "mod"


def letters(call: Call) -> tuple[list[str], str]:
    """Of a product: the axes of its operands, and of its result, as in einsum."""
    spec = ROWS[call.op].spec
    specs, out = spec([a.type for a in call.args]) if spec else call.get("spec")
    return list(specs), out


def flops(op: str) -> int:
    """A rough cost of one scalar evaluation, 1 for an addition."""
    return ROWS[op].flops


from . import table  # noqa: E402,F401  fills ROWS; the rows need the names above
