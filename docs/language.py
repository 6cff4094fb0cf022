"""Writes docs/language.md: the subset in two pages, and every function of the table of operations (`make docs`).

python docs/language.py           write it
python docs/language.py --check   exit status 1 if it is not up to date
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from layerc.transpile import table
from layerc.transpile.functions import FunctionChecker
from layerc.transpile.operations import DEFINED, MISSING, ROWS, ZERO, Row

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "language.md"
LAYERS = ROOT / "tests" / "spec" / "layers"

# Family -> its file in transpile/table.
FAMILIES = {
    "Elementwise": "elementwise",
    "Reductions": "reductions",
    "Running, sorting, taking": "scans",
    "Products": "products",
    "Linear algebra": "linear",
    "Shapes": "moves",
    "Repetitions, diagonals, padding": "rearrange",
    "Makers": "makers",
}

# What stands before a family's table.
NOTES = {
    "Linear algebra": (
        "Of the last two axes. Where the matrix of `solve` is seen to be triangular, as made by `cholesky`, `np.tril(a)` or `np.triu(a)`, "
        "turned (`.T`), or with a multiple of `np.eye(n)` added, the system is solved by substitution, and the other triangle is not read.",
        "",
    ),
}

# What Python calls an operator, by the class of its syntax tree.
OPERATORS = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "MatMult": "@",
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtE": "<=",
    "Gt": ">",
    "GtE": ">=",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "Invert": "~",
    "Not": "not",
    "And": "and",
    "Or": "or",
    "USub": "-x",
    "UAdd": "+x",
}

# Calls whose arguments do not follow the table's pattern: call -> arguments, derivative.
SPECIAL = {
    "len": ("a", "an integer"),
    "max": ("a, or a, b, ...", "as np.max, np.maximum"),
    "min": ("a, or a, b, ...", "as np.min, np.minimum"),
    "sum": ("a, or a generator", "as np.sum"),
    "round": ("a scalar", "an integer"),
    "math.floor": ("a scalar", "an integer"),
    "math.ceil": ("a scalar", "an integer"),
    "math.trunc": ("a scalar", "an integer"),
    "math.log": ("x, base", "as np.log"),
    "math.pow": ("x, y", "as np.power of floats"),
    "np.float_power": ("x1, x2", "as np.power of floats"),
    "callable": ("f", "true or false, at build"),
    "np.shape": ("a", "integers"),
    "np.add.at": ("a, index, values", "adds up; the values get what was at their places"),
    "np.maximum.at": ("a, index, values", "as a loop: a[i[e]] = np.maximum(a[i[e]], v[e])"),
    "np.minimum.at": ("a, index, values", "as a loop: a[i[e]] = np.minimum(a[i[e]], v[e])"),
    "np.array": ("values, dtype", "of each value"),
    "np.asarray": ("values, dtype", "of each value"),
    "np.concatenate": ("arrays, axis=0", "the part of each"),
    "np.stack": ("arrays, axis=0", "the part of each"),
    "np.hstack": ("arrays", "the part of each"),
    "np.vstack": ("arrays", "the part of each"),
    "np.split": ("a, sections or places, axis=0", "put together again"),
    "np.roll": ("a, shift, axis=None", "rolled back"),
    "np.moveaxis": ("a, source, destination", "moved back"),
    "np.pad": ("a, widths, mode (constant edge wrap reflect symmetric), constant_values", "the part inside"),
    "np.tensordot": ("a, b, axes=2", "as einsum"),
    "np.einsum": ("subscripts, a, b, ...", "einsum of dy and the others"),
    "np.vdot": ("a, b", "as np.dot"),
    "np.diff": ("a, n=1, axis=-1", "of the elements on either side"),
    "np.diag": ("a vector or a matrix", "the diagonal"),
    "np.linalg.matrix_power": ("a, n: a number", "of each product"),
    "np.count_nonzero": ("a, axis=None", "an integer"),
}

# Construct | as it is written | a layer of tests/spec/layers that has it.
CONSTRUCTS = [
    ("inputs", '`x: real["N D"]`, `f32 f64 i32 i64 bool_`, jaxtyping\'s `Float[Array, "N D"]`', "jaxtyping_spelling"),
    (
        "groups",
        '`x: real["C *S"]`: any number of axes, seen as one',
        "test_any_leading_axis_of_a_group_is_data_or_batch",
    ),
    ("learnables", '`w: Param[real["D"]]`, shared by the batch', "test_params_are_shared_by_the_batch"),
    (
        "configuration",
        "`*, steps: int = 2`, `kernel: int = config(3, check=...)`",
        "test_configuration_is_passed_by_keyword",
    ),
    ("whole batches", "`@layer(batched=True)`, `batched = True`", "test_a_batched_function_takes_the_batch"),
    ("outputs", '`-> tuple[...]`, `-> {"y": ..., "z": ...}`', "test_named_outputs"),
    ("class layers", "`class SReLU(Layer):` with fields, `predict`, `forward`, `initialize`", "test_a_class_layer"),
    ("states", '`mean: State[real["C"]]`, assigned in `forward`; `reset_state`', "test_states_change_in_place"),
    ("own gradients", "`@f.backward`, a method `backward`, `backward=None`", "test_a_backward_by_hand_is_used"),
    (
        "memory",
        '`-> tuple[real["N"], Memory[real["N"]]]`, then `memory` in `backward`',
        "test_memory_reaches_the_backward",
    ),
    ("random numbers", "`rng: Random`, `rng.random(shape)`, ...: replayed by the gradient", "test_gradients_replay"),
    ("other layer files", "`from blocks import gate`", "test_imported_layer_files"),
    ("differential equations", "`ode45(f, t0, t1, y0, *theta)`", "test_compiled_takes_the_steps_of_numpy"),
    ("assignment", "`a = b = x`, `a, b = b, a`, `n, *rest = x.shape`, `y[0], y[1] = u, v`", "unpacking"),
    ("in place", "`y += x`, `y[i] *= 2`, `x[...] = v`", "in_place_operators"),
    (
        "`for`",
        "over `range(a, b, step)`, an array's first axis, `enumerate`, `zip`, `reversed`, tuples",
        "loops_over_rows",
    ),
    ("`while`", "`while np.sum(r * r) > eps:`", "while_and_conditions"),
    ("`if`", "`if`, `elif`, `else`, on values too; `n in (1, 2)`, `a < b <= c`", "elif_ladder"),
    ("leaving", "`break`, `continue`, `return` anywhere", "return_in_loops"),
    (
        "after a loop",
        "its counter, and what each iteration assigns: `for i in range(n): ...` then `x[i]`",
        "left_by_break",
    ),
    ("ternary", "`a if c else b`: only the one taken is evaluated", "ternaries"),
    ("`assert`", '`assert np.all(x > 0), "why"`', "asserts"),
    ("`assert` of sizes", "`assert k <= x.shape[0]`: from there on, `x[:k]` has `k` elements", "assert_of_sizes"),
    (
        "lists",
        "`rows.append(h)`, `[f(v) for v in x]`, then `np.stack`, `np.array`, `np.concatenate`; an array of no items keeps "
        "the items' shape: (0, M)",
        "appended",
    ),
    (
        "functions",
        "others of the file or of an imported layer file, nested `def`, `lambda`; they may write into arrays, and take"
        " `*rest`; `f(t, *rest)`",
        "helpers_write",
    ),
    ("constants", "of the file: numbers, tuples, `np.array([...])`", "constants"),
    (
        "views",
        "`t = y.T; t[0] = 1` writes into y, as do slices, `reshape`, `ravel`, `swapaxes`, ...",
        "writes_through_transpose",
    ),
    (
        "one array or another",
        "`v = a if c else b.T; v[0] = 1` writes into the one that it is; so after `if`, in loops, from helpers",
        "one_of_two",
    ),
    (
        "a row of an earlier iteration",
        "`if x[i, 0] > best[0]: best = x[i]`, and after the loop `best *= 2`",
        "best_row",
    ),
    ("indexing", "ints, slices with any step, `...`, `None`", "slices"),
    ("loop bounds in slices", "`a[i, :j] @ b[:j]`, empty too", "slices_loop_bounds"),
    ("gather", "`x[i]`, `x[i, j]`, `x[:, i]` with integer arrays", "gathers"),
    ("scatter", "`y[i] = v` (the last counts), `np.add.at(y, i, v)` (all count)", "scatters"),
    ("masks", "`x[x > 0] = v`, `x[m] += v` for a scalar v", "masked_stores"),
    ("attributes", "`shape ndim size dtype T`", "facts"),
    (
        "methods",
        "`x.sum(axis=0)`, `x.reshape(-1)`, `x.astype(x.dtype)`, `x.copy()`: as the function of the name",
        "casts",
    ),
]

HEAD = """# The language

<!-- Written by docs/language.py from the table of operations: `make docs`. -->

A layer file is ordinary Python: it imports and runs under NumPy, and that run is what the compiled code means. layerc reads it and never
executes it. This page is what it may say. Anything else is an error at its line that says what to write instead.

## A layer

```python
import numpy as np
from layerc import Layer, Param, State, config, i64, init, layer, real


@layer
def smooth(x: real["T D"], w: Param[real["D"]], *, steps: int = 2) -> real["T D"]:
    for _ in range(steps):
        x[1:] = x[1:] * w + x[:-1] * (1 - w)
    return x


class Centred(Layer):
    batched = True
    mean: State[real["C"]] = init.zeros()
    rate: float = config(0.1, check=lambda r: 0 < r <= 1)

    def predict(self, x: real["N C"]) -> real["N C"]:
        return x - self.mean

    def forward(self, x: real["N C"]) -> real["N C"]:
        self.mean = self.mean + self.rate * (np.mean(x, axis=0) - self.mean)
        return x - self.mean
```

A function describes ONE example. The compiled layer maps it over a leading batch axis of its inputs, while params are shared and their
gradients summed. With `batched=True` it takes the whole batch, axis 0.

| written | is |
| --- | --- |
| `x: real["T D"]` | an input, float32 or float64 as the arrays of the call are; `f32 f64 i32 i64 bool_` fix the type |
| `Float[Array, "T D"]` | the same in jaxtyping's words |
| `x: real` or `real[""]` | a scalar with a gradient |
| `Param[...]`, `State[...]` | learnable; a state, which `forward` assigns (`self.mean = ...`) |
| `steps: int = 2` | configuration (`float`, `int`, `bool`), passed by keyword, no gradient |
| `-> real["T"]`, `-> tuple[...]`, `-> {"y": ..., "z": ...}` | the outputs; left out, they are inferred |

**Shapes.** `"N C H W"` are names: two that are the same must agree, two that differ do not combine. `3` is fixed, `2*C` and
`(H+2*pad-k)//s+1` are computed from names and configuration, `_` is anything, `""` a scalar, `*S` any number of axes, which the function
sees as one. A shape may depend on shapes and configuration, and never on values: `np.zeros(n)` for an input n, `x[x > 0]` and `np.unique`
are errors. What can only be known at the call is checked there, a `ValueError` with file and line: a slice bound that turns out negative,
a step of a slice that is not positive, a division with a remainder in `x.reshape(T, heads, D // heads)` (`-1` for T is T there, too), extents that are equal for some sizes only, as those of the halves
`x[:, : D // 2]` and `x[:, D // 2 :]`, of `x[0::2]` and `x[1::2]`, or of `x[:n]` and n. A loop of at most eight iterations whose count makes
sizes (`for n in (1, 2, 4):` of pools n wide, `2**level`) is written out, one iteration after the other.

**Types.** Python's numbers are weak, as in NumPy 2: `2 * x` has the type of x. In a function with `real` arrays, `np.zeros(n)` without
`dtype` and mixtures with integers are `real`. A variable has one type: that of both branches of an `if`, that before a loop
and after its body (an integer may become a float, a scalar an array).

**Arrays.** Writing in place has NumPy's meaning, also through views: a transposed, sliced or reshaped name shows the array itself. A name
may be one array or another, as a branch or an iteration decided, and a row `x[i]` of an earlier iteration. A write that NumPy would show
under a name that is a value here (an item of a list, a slice `x[i:]` or a reversed view of an earlier iteration) is an error. The caller's arrays never change. An index is proven in range at build, or checked at the call: `IndexError` with file and line.

## Gradients

Every layer has one, as source in this language: `layerc grad layers.py`. It follows the path that values took. Where a function has
a kink, the derivative is: ties of `maximum`, `minimum`, `max`, `min` share evenly; `clip` passes the gradient at its bounds;
`abs'(0) = 0`, `norm'(0) = 0`, `hypot'(0, 0) = 0`, `std' = 0` at zero variance; `where` and `if` never let the branch not taken
make a NaN. Integer and boolean inputs have none (`None`).

```python
@smooth.backward
def smooth_gradient(x, w, dy): ...  # or a method `backward`; @layer(backward=None): no gradient
```

The names of its arguments say what it needs: arguments of the forward, `y` (`y1`, `y2`, or their names), `dy` (`dy1`, `dz`), and `memory`,
what `forward` returns beside its outputs as `Memory[real["T"]]`. It returns the gradients of inputs, then params, then states.

`stop_gradient(x)`, imported from layerc, is x as a constant: no derivative passes, in the gradient's own gradient neither. With it,
`x + stop_gradient(np.rint(x) - x)` rounds and passes the gradient straight through.

## Differential equations

`ode45(f, t0, t1, y0, *theta)`, imported from layerc, is y(t1) for dy/dt = f(t, y, *theta), y(t0) = y0: adaptive steps of Dormand and Prince
4(5). f is any function of the file, nested function or lambda; y0 an array or a number. t1 may lie before t0. Each example of a batch has
steps of its own.

```python
@layer
def spring(y0: real["2"], t1: real, k: Param[real]) -> real["2"]:
    return ode45(lambda t, y, k: np.stack([y[1], -k * y[0]]), 0.0, t1, y0, k, rtol=1e-8)
```

| option | is |
| --- | --- |
| `rtol=1e-6`, `atol=1e-9` | the error of a step, in the root mean square over y, stays within `atol + rtol * abs(y)` |
| `gradient="direct"` | the derivative of the steps that were taken, exactly; one y is saved for each |
| `gradient="adjoint"` | integrates y and its cotangent back from t1; nothing is saved, right to the tolerances |
| `max_steps=10000` | that many trials at most, then `AssertionError` at the call's line |

Gradients go to y0, t0, t1, theta, and to arrays around f that it reads (`self.w` in a class). `examples/ode.py` has a neural ODE.

## Constructs
"""

FUNCTIONS = """
## Functions

Arguments are NumPy's. The derivative is what the cotangent `dy` of the result `y` is multiplied or moved by, as written in the table
of operations, where `like`, `unbroadcast`, `unreduce` and others give it the argument's shape, and `solve_upper(u, b)` is `np.linalg.solve(np.triu(u), b)`. The last column
names a layer of `tests/spec/layers/` that has it, or else a file of `tests/`; what has neither is an error of `make docs`.
"""


def families() -> dict[str, list[Row]]:
    """The rows that a layer can spell, by family. A file adds its rows one after the other."""
    owner: dict[str, str] = {}
    for family, stem in FAMILIES.items():
        source = (Path(table.__file__).parent / f"{stem}.py").read_text()
        for name in re.findall(r'(?:\b(?:Row|_\w+)\(\s*"(\w+)"|^    \("(\w+)", "np\.)', source, re.MULTILINE):
            owner.setdefault("".join(name), family)
    found: dict[str, list[Row]] = {family: [] for family in FAMILIES}
    current = next(iter(FAMILIES))
    for row in ROWS.values():
        current = owner.get(row.name, current)
        if row.spellings and row.python not in SPECIAL and any(map(spelled, row.spellings)):
            found[current].append(row)
    return found


def spelled(spelling: str) -> str:
    """A spelling as one writes it; nothing for what only the compiler says."""
    if spelling in OPERATORS:
        return f"`{OPERATORS[spelling]}`"
    if spelling.startswith("derivative."):
        return f"`{spelling.partition('.')[2]}`" if spelling == "derivative.stop_gradient" else ""
    if "." in spelling or spelling in ("abs", "pow", "round"):
        return f"`{spelling}`"
    return ""


def derivative(row: Row) -> str:
    match row.grad:
        case str() as kind if kind == ZERO:
            return "zero"
        case str() as kind if kind == MISSING:
            return "none: an error that names the line"
        case str() as kind if kind == DEFINED:
            return "that of its definition"
        case str():
            return "the part of each" if row.grad == "pieces" else "einsum of dy and the others"
        case rules:
            names = row.arrays
            shown = [f"{n}: `{r}`" if len(rules) > 1 else f"`{r}`" for n, r in zip(names, rules) if r is not None]
            return "; ".join(shown).replace("|", "\\|")


@cache
def uses() -> dict[str, str]:
    """Spelling, or `.method` -> a layer of the tests that has it."""
    found: dict[str, str] = {}
    for path in sorted(LAYERS.glob("*.py")):
        for function in ast.parse(path.read_text()).body:
            if isinstance(function, ast.FunctionDef):
                for name in _spellings(function):
                    found.setdefault(name, f"{path.stem}: {function.name}")
    return found


def _spellings(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Call(func=func):
                text = ast.unparse(func).replace("scipy.special.", "special.")
                yield text
                if isinstance(func, ast.Name):
                    yield f"special.{text}"
                if isinstance(func, ast.Attribute):
                    yield f".{func.attr}"
            case ast.Attribute(attr="T"):
                yield ".transpose"
            case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op):
                yield type(op).__name__
            case ast.Compare(ops=ops):
                yield from (type(op).__name__ for op in ops)


def seen(spellings: tuple[str, ...]) -> str:
    """A layer of the tests that has it, or else one of the tests' files. AssertionError where there is none."""
    known = uses()
    names = [*spellings, *(f".{s.rsplit('.', 1)[-1]}" for s in spellings if s.startswith("np."))]
    found = next((known[n] for n in names if n in known), None) or _elsewhere(spellings)
    assert found, f"no test has {spellings}"
    return found


def _elsewhere(spellings: tuple[str, ...]) -> str | None:
    """rng.random(...) for Random.random, and what has no layer of its own."""
    words = [rf"\b{re.escape(s.replace('Random.', 'rng.').rpartition('derivative.')[2])}\(" for s in spellings]
    tests = LAYERS.parents[1]
    for path in (tests / "random_layers.py", *sorted(tests.glob("*.py"))):
        if any(re.search(word, path.read_text()) for word in words):
            return f"`{path.name}`"
    return None


def _file_of(test: str) -> str:
    """The file that has a test. StopIteration where none has."""
    paths = [p for folder in (LAYERS.parents[1], LAYERS.parent) for p in sorted(folder.glob("test_*.py"))]
    return next(path.name for path in paths if f"def {test}(" in path.read_text())


def arguments(row: Row) -> str:
    shown = [a.name if a.required else f"{a.name}={a.default}" for a in row.signature]
    return ", ".join(shown)


def special() -> list[str]:
    """The calls that the checker knows by name."""
    dotted = {name: name.replace(".", "_") for name in SPECIAL}
    known = {n[5:] for n in dir(FunctionChecker) if n.startswith("call_") and "_derivative_" not in n} - {"row"}
    rows = {spelling.replace(".", "_") for row in ROWS.values() for spelling in row.spellings}
    assert known - rows == set(dotted.values()) - rows, known ^ set(dotted.values())
    return list(SPECIAL)


def text() -> str:
    lines = [HEAD, "| construct | as in | seen in |", "| --- | --- | --- |"]
    layers = {
        f.name: p.stem
        for p in sorted(LAYERS.glob("*.py"))
        for f in ast.parse(p.read_text()).body
        if isinstance(f, ast.FunctionDef)
    }
    lines += [f"| {what} | {how} | {layers.get(name) or _file_of(name)}: {name} |" for what, how, name in CONSTRUCTS]
    lines.append(FUNCTIONS)
    for family, rows in families().items():
        lines += [f"### {family}", "", *NOTES.get(family, ())]
        lines += ["| function | arguments | derivative | seen in |", "| --- | --- | --- | --- |"]
        for row in rows:
            names = " ".join(filter(None, map(spelled, row.spellings))).replace("`|`", "`\\|`")
            lines.append(f"| {names} | {arguments(row)} | {derivative(row)} | {seen(row.spellings)} |")
        lines.append("")
    lines += ["### Calls with arguments of their own", ""]
    lines += ["| function | arguments | derivative | seen in |", "| --- | --- | --- | --- |"]
    lines += [f"| `{name}` | {SPECIAL[name][0]} | {SPECIAL[name][1]} | {seen((name,))} |" for name in special()]
    return "\n".join(lines) + "\n"


def main() -> int:
    made = text()
    if "--check" in sys.argv:
        return 0 if TARGET.exists() and TARGET.read_text() == made else 1
    TARGET.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
