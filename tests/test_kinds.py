"""Every function and operator on arguments of every kind: accepted where NumPy takes them, with results of its kind."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

from layerc.transpile.errors import InvalidFile
from layerc.transpile.layers import check_file
from layerc.transpile.operations import ROWS, Row

ARRAYS = {
    "a": ('real["N"]', np.array([0.5, 0.25, 2.0])),
    "b": ('bool_["N"]', np.array([True, False, True])),
    "i": ('i64["N"]', np.array([1, 2, 0])),
    "j": ('i32["N"]', np.array([1, 2, 0], np.int32)),
    "s": ("real", np.float64(0.5)),
    "t": ("bool_", np.bool_(True)),
    "n": ("i64", np.int64(2)),
    "m": ('real["N N"]', np.eye(3) * 2),
    "l": ('bool_["N N"]', np.eye(3) > 0),
    "h": ('i64["N N"]', np.eye(3, dtype=np.int64)),
}
CONFIG = {"f": True, "k": 2, "w": 0.5}
PYTHONS = ("True", "2", "0.5", "None", "(a, a)", "[1, 2]")
NAMES = (*ARRAYS, *CONFIG, *PYTHONS)
STATIC = (
    "0",
    "1",
    "-1",
    "-4",
    "2.5",
    "True",
    "None",
    "()",
    "(0,)",
    "(1, 0)",
    "[3]",
    "(3, 3)",
    "(-1, 9)",
    "k",
    "n",
    "w",
    "f",
    "a",
    "i",
    "'x'",
)
_GIVEN = {
    "array": ("a", "i", "b", "m", "s", "2"),
    "arrays": ("(a, a)", "[m, m]", "(a, i)", "(a, b)", "(a, m)", "(s, s)", "a", "m", "()", "2"),
}
OF_AXES = [
    *("axis=0", "axis=-1", "axis=1", "axis=None", "axis=(0,)", "axis=True", "axis=0.0", "axis=(0, 0)", "axis=()"),
    *("keepdims=True", "keepdims=1", "keepdims=1.0", "keepdims=None", "dtype=np.float64", "ddof=1", "where=b", "out=a"),
]
HEAD = "import numpy as np\nfrom scipy import special\nfrom layerc import bool_, i32, i64, layer, real\n\n\n@layer\n"
PARAMS = ", ".join([*(f"{k}: {v[0]}" for k, v in ARRAYS.items()), "f: bool = True, k: int = 2, w: float = 0.5"])
UNARY, BINARY = ["-", "+", "~", "not "], "+ - * / // % ** & | ^ << >> < <= == != @ and or in".split()


def rows() -> Iterable[tuple[str, Row]]:
    for row in ROWS.values():
        for spelling in row.spellings:
            if spelling.startswith(("np.", "special.")) and row.kind != "draw":
                yield spelling, row


def expressions(spelling: str, row: Row) -> list[str]:
    """Calls with every kind of argument for each that it needs, and one more by name."""
    needed = [a for a in row.signature if a.required]
    some = [_GIVEN.get(a.kind, STATIC) if len(needed) > 1 or a.kind != "array" else NAMES for a in needed]
    if len(needed) == 2 and all(a.kind == "array" for a in needed):
        some = [NAMES, NAMES]
    found = [", ".join(given) for given in itertools.product(*some)] if len(needed) < 4 else []
    more = [a for a in row.signature if not a.required and a.name != "dtype"]
    plain = [{"array": "m", "arrays": "(m, m)", "shape": "(3, 3)"}.get(a.kind, "1") for a in needed]
    found += [f"{', '.join(plain)}, {a.name}={v}" for a in more for v in STATIC]
    found += [", ".join(f"{a.name}={v}" for a, v in zip(needed, plain, strict=True))] if needed else []
    if row.kind == "reduce" and len(needed) == 1:
        found += [f"{x}, {extra}" for x in ("a", "b", "m", "l", "s", "f") for extra in OF_AXES]
    return [f"{spelling}({given})" for given in found]


def methods() -> Iterable[tuple[str, list[str]]]:
    """The same calls of arrays: x.sum(axis=0)."""
    for spelling, row in rows():
        name = spelling.removeprefix("np.")
        if hasattr(np.ndarray, name) and row.signature[0].kind == "array":
            calls = [re.fullmatch(r"[^(]*\((\w+)(?:, (.*))?\)", e) for e in expressions(spelling, row)]
            yield name, [f"{c[1]}.{name}({c[2] or ''})" for c in calls if c is not None and c[1] in (*ARRAYS, *CONFIG)]


def accepted(lines: list[str]) -> list[str]:
    """Those of the expressions that layerc takes."""
    body = "".join(f"    u{k} = {e}\n" for k, e in enumerate(lines))
    try:
        check_file(Path("p.py"), f"{HEAD}def p({PARAMS}):\n{body}    return a * 1.0\n")
    except InvalidFile as error:
        first = HEAD.count("\n") + 2
        refused = {m.span.line - first for m in error.mistakes}
        return [e for k, e in enumerate(lines) if k not in refused]
    return lines


def by_numpy(expression: str) -> Any:
    space = {k: v[1] for k, v in ARRAYS.items()} | CONFIG | {"np": np, "special": special}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return eval(expression, space)
        except Exception as error:
            return error


def at_the_call(error: Exception) -> bool:
    """What the sizes or values of the arrays decide, for layerc too."""
    return isinstance(error, IndexError) or "cannot reshape array" in str(error)


def kinds(lines: list[str]) -> list[tuple[str, int]]:
    """The kind of elements and the number of axes of each result."""
    if not lines:
        return []
    body = "".join(f"    u{k} = {e}\n" for k, e in enumerate(lines))
    given = ", ".join(f"u{k}" for k in range(len(lines)))
    module = check_file(Path("p.py"), f"{HEAD}def p({PARAMS}):\n{body}    return {given}, a * 1.0\n")
    types = [r.type for r in module.layers[0].predict.results[:-1]]
    return [("b" if t.dtype == "bool" else "i" if t.is_integer else "f", t.rank) for t in types]


def compare(lines: list[str]) -> None:
    taken = accepted(lines)
    values = {e: by_numpy(e) for e in taken}
    wrong = [f"{e}: {v}" for e, v in values.items() if isinstance(v, Exception) and not at_the_call(v)]
    assert not wrong, "NumPy raises"
    single = {e: np.asarray(v) for e, v in values.items() if not isinstance(v, (tuple, list, Exception))}
    theirs = [(v.dtype.kind, v.ndim) for v in single.values()]
    different = [
        f"{e}: {a}, NumPy has {b}" for e, a, b in zip(single, kinds(list(single)), theirs, strict=True) if a != b
    ]
    assert not different


def marked(found: Iterable[tuple[str, Any]]) -> list[Any]:
    """What takes two axes takes too many pairs of values for `make test`."""
    heavy = ("swapaxes", "moveaxis")
    return [
        pytest.param(*pair, marks=(pytest.mark.heavy,) if pair[0].removeprefix("np.") in heavy else ())
        for pair in found
    ]


@pytest.mark.parametrize(("spelling", "row"), marked(rows()), ids=lambda v: v if isinstance(v, str) else "")
def test_functions(spelling: str, row: Row) -> None:
    if found := expressions(spelling, row):
        compare(found)


@pytest.mark.parametrize(("name", "calls"), marked(methods()), ids=lambda v: v if isinstance(v, str) else "")
def test_methods(name: str, calls: list[str]) -> None:
    compare(calls)


@pytest.mark.parametrize("operator", BINARY)
def test_operators_of_two(operator: str) -> None:
    joins = operator in ("+", "*")  # lists and tuples, which have no kind
    compare([f"{a} {operator} {b}" for a, b in itertools.product(NAMES[: -2 if joins else None], repeat=2)])


@pytest.mark.parametrize("operator", UNARY)
def test_operators_of_one(operator: str) -> None:
    compare([f"{operator}{a}" for a in NAMES])
