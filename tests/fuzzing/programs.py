"""A layer file of random programs, and arguments for each."""

from __future__ import annotations
import __future__

import random
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.aliases import Aliased
from fuzzing.classes import FIELDS, Called, Compiled, as_class
from fuzzing.lines import indented
from fuzzing.scope import ONE, Dead, Shape, Variable
from fuzzing.statements import Place, Statements
from fuzzing.swept import Swept
from fuzzing.walked import Walked
from fuzzing.windowed import Windowed
from layerc.transpile.dims import Dim

# The layer file that is imported lies beside this one.
PATH = Path(__file__).with_name("program.py")
HEAD = "import math\n\nimport numpy as np\nfrom scipy import special\n\nfrom layerc import Layer, Param, Random, State, bool_, config, i32, i64, init, layer, real\nfrom shared import SHARE, bumped, first_positive, mixed, one_of, squeezed\n\n\n"
NAMES = ("N", "M", "K")


@dataclass(frozen=True)
class Argument:
    """`domain`: any, pos (0.3 .. 2), small (0 .. 3) or, for integers, the extent that they index, "wraps N" if from both ends."""

    name: str
    dtype: str  # real i64 i32 bool_
    shape: Shape
    domain: str
    below: Dim | None = None
    role: str = "input"  # or param, state

    def draw(self, rng: np.random.Generator, sizes: dict[str, int]) -> Any:
        """A value in float64; of rank 0, a NumPy scalar, as layers get it."""
        shape = tuple(d.evaluate(sizes) for d in self.shape)
        if self.dtype == "bool_":
            value: Any = rng.random(shape) < 0.5
        elif self.dtype in ("i64", "i32"):
            high = self.below.evaluate(sizes) if self.below is not None else 4
            low = 0 if self.domain == "place" else -high if self.domain == "wraps" else -3
            value = rng.integers(low, max(high, low + 1), shape)
            value = np.asarray(value, np.int64 if self.dtype == "i64" else np.int32)
        else:
            value = rng.uniform(0.3, 2.0, shape) if self.domain == "pos" else rng.uniform(-2.0, 2.0, shape)
        return np.asarray(value)[()]


@dataclass(frozen=True)
class Program:
    """`text`: the functions of the program, the layer last; `sizes`: of its named dimensions. A program with `fields`
    is a class layer, which `written` has."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    sizes: tuple[dict[str, int], ...]
    seed: str = ""
    batched: bool = False  # the function takes the whole batch
    random: bool = False  # it takes a generator as well
    fields: bool = False  # Params are fields of a class
    points: int = 3  # at which it is asked

    @property
    def source(self) -> str:
        return HEAD + self.written

    @property
    def written(self) -> str:
        return as_class(self.text, self.name, self.state, self.batched) if self.fields else self.text

    @property
    def state(self) -> str:
        return next((a.name for a in self.arguments if a.role == "state"), "")

    @property
    def differentiated(self) -> tuple[Argument, ...]:
        """What has a gradient, in the order of the gradients: those of fields come last."""
        real = [a for a in self.arguments if a.dtype == "real" and a.role != "state"]
        return tuple(sorted(real, key=lambda a: a.role == "param") if self.fields else real)

    def function(self, module: dict[str, Any]) -> Any:
        """The program under NumPy, as a function of its arguments, whatever it is."""
        found = module[self.name]
        return Called(found, [a.name for a in self.arguments], self.state) if self.fields else found

    def compiled(self, found: Any) -> Any:
        return Compiled(found, self.arguments, self.state) if self.fields else found

    def values(self, point: int) -> dict[str, Any]:
        """Arguments in float64: the same for the same point."""
        rng = np.random.default_rng(point)
        sizes = self.sizes[point % len(self.sizes)]
        return {a.name: a.draw(rng, sizes) for a in self.arguments}


def draw_program(seed: str, name: str = "program") -> Program:
    """The program of a seed."""
    for trial in count():
        with suppress(Dead):  # an extent of a result that nothing says
            return _drawn(seed, random.Random(f"{seed}/{trial}" if trial else seed), name)
    raise AssertionError("unreachable")


def _drawn(seed: str, rng: random.Random, name: str) -> Program:
    kind = rng.random()
    if kind < 0.4:
        return (_aliased, _windowed, _walked, _swept)[int(kind * 10)](seed, rng, name)
    results: list[tuple[Shape, str]] = []
    g = Statements(rng, results)
    batched = rng.random() < 0.08
    generator = g.generator = "rng" if rng.random() < 0.1 else ""
    arguments, signature = _arguments(g, batched)
    g.generator = ""  # helpers have none
    helpers = [line for _ in range(rng.choice([0, 0, 0, 1, 2])) for line in [*_helper(g), "", ""]]
    g.generator = generator
    for k in range(rng.choice([1, 1, 1, 2, 3])):
        kind = "real" if k == 0 or rng.random() < 0.8 else rng.choice(["bool", "int"])
        shape = _reachable(g)
        results.append(((Dim.of("N"), *shape[:2]) if batched else shape, kind))
    body = g.block(rng.choice([0, 1, 2, 2, 3, 3, 4, 5, 6]), Place())
    body += g.finish()
    decorator = "@layer(batched=True)" if batched else "@layer"
    plain, fields = signature, False
    if rng.random() < 0.1 and not batched:
        signature = _grouped(rng, signature)
    elif rng.random() < 0.6 and not g.generator:
        fields, arguments = _fielded(rng, arguments)
    returned = _returned(rng, results) if signature == plain else ""
    lines = [*helpers, decorator, f"def {name}({signature}){returned}:", *indented(body)]
    text = "\n".join(lines).replace("helper", f"{name}_helper") + "\n"
    return Program(name, text, tuple(arguments), _sizes(rng), seed, batched, bool(g.generator), fields)


def _aliased(seed: str, rng: random.Random, name: str) -> Program:
    """One whose branches decide which array a name is: it is asked at more points."""
    drawn = Aliased(rng, name)
    arguments = [Argument(n, "real", (Dim.of("N"),) * drawn.rank, "any") for n in drawn.inputs]
    sizes = tuple({"N": n} for n in (rng.choice([4, 5]), rng.choice([1, 2, 3]), rng.choice([0, 2, 3])))
    return Program(name, drawn.text, (*arguments, Argument("s", "real", (), "any")), sizes, seed, points=9)


def _windowed(seed: str, rng: random.Random, name: str) -> Program:
    """One of windows: with few channels, and with so many that sums are products of matrices."""
    drawn = Windowed(rng, name)
    role = rng.choice(["input", "param"])
    arguments = [
        Argument(n, "real", tuple(map(Dim.of, dims)), "any", role="input" if n == "x" else role)
        for n, dims in drawn.shapes.items()
    ]
    text = drawn.text
    if role == "param":
        text = re.sub(r'\b([wm]): (real\[".*?"\])', r"\1: Param[\2]", text)
    channels = rng.choice([2, 4, 5])
    usual = {"N": rng.choice([4, 5]), "M": rng.choice([3, 6]), "C": channels, "D": rng.choice([3, 4]), "K": 3}
    other = {**usual, "N": rng.choice([1, 2]), "M": rng.choice([1, 2]), "C": 1, "K": rng.choice([1, 2, 4])}
    empty = {**usual, rng.choice(["N", "M", "C", "D"]): 0}
    return Program(name, text, tuple(arguments), (usual, other, empty), seed, points=4)


def _walked(seed: str, rng: random.Random, name: str) -> Program:
    """One of loops over elements: of an extent that is a multiple of a vector, of one, and of none."""
    drawn = Walked(rng, name)
    arguments = [Argument(n, "real", tuple(map(Dim.of, dims)), "any") for n, dims in drawn.shapes.items()]
    usual = {"N": rng.choice([4, 5]), "M": rng.choice([3, 7]), "K": rng.choice([2, 3, 17])}
    other = {"N": rng.choice([1, 2, 16]), "M": rng.choice([1, 2]), "K": rng.choice([1, 2, 4])}
    empty = {**usual, rng.choice(["N", "M", "K"]): 0}
    return Program(name, drawn.text, tuple(arguments), (usual, other, empty), seed, points=4)


def _swept(seed: str, rng: random.Random, name: str) -> Program:
    """One of sweeps: longer than strips and vectors are, as small as a window, and of nothing."""
    drawn = Swept(rng, name)
    arguments = [
        Argument(n, "real", tuple(map(Dim.of, d if n == "x" else map(int, d))), "any") for n, d in drawn.shapes.items()
    ]
    usual = {"N": rng.choice([4, 5, 18]), "M": rng.choice([3, 7, 19])}
    other = {"N": rng.choice([1, 2, 3]), "M": rng.choice([1, 2, 3, 35])}
    empty = {**usual, rng.choice(["N", "M"]): 0}
    return Program(name, drawn.text, tuple(arguments), (usual, other, empty), seed, points=4)


def _fielded(rng: random.Random, arguments: list[Argument]) -> tuple[bool, list[Argument]]:
    """Whether the layer can be a class: its inputs say the shapes of its Params. Perhaps one of those is a State."""
    said = {s for a in arguments if a.role == "input" for d in a.shape for s in d.symbols() if d == Dim.of(s)}
    params = [a for a in arguments if a.role == "param"]
    needed = {s for a in params for d in a.shape for s in d.symbols()}
    if not params or not needed <= said or not any(a.dtype == "real" and a.role == "input" for a in arguments):
        return False, arguments
    state = rng.choice(params) if rng.random() < 0.4 else None
    return True, [replace(a, role="state") if a is state else a for a in arguments]


def _grouped(rng: random.Random, signature: str) -> str:
    """One of the extents as a group of axes, `*N`, where no other extent is made of it."""
    shapes = [words.split() for words in re.findall(r'"(.*?)"', signature)]
    good = [n for n in NAMES if all(w.count(n) == (n in w) and sum(n in x for x in w) == (n in w) for w in shapes)]
    name = rng.choice(good) if good else ""
    return re.sub(rf'\b{name}\b(?=[^"]*"[^"]*(?:"[^"]*"[^"]*)*$)', f"*{name}", signature) if name else signature


def _returned(rng: random.Random, results: list[tuple[Shape, str]]) -> str:
    """The annotation of what it returns, now and then; named outputs too."""
    if rng.random() < 0.75 or any(kind != "real" for _, kind in results):
        return ""
    types = [f'real["{_spaced(shape)}"]' for shape, _ in results]
    if rng.random() < 0.5:
        return " -> {" + ", ".join(f'"out{k}": {t}' for k, t in enumerate(types)) + "}"
    return f" -> {types[0]}" if len(types) == 1 else f" -> tuple[{', '.join(types)}]"


def _spaced(shape: Shape) -> str:
    return " ".join(str(d).replace(" ", "") for d in shape)


def _helper(g: Statements) -> list[str]:
    try:
        return g.helper()
    except Dead:
        return []


def _reachable(g: Statements) -> Shape:
    """The shape of an output, which can be said from the arguments."""
    for _ in range(9):
        shape = g.any_shape(3)
        try:
            g.scope.shape(shape)
        except Dead:
            continue
        return shape
    return ()


def _sizes(rng: random.Random) -> tuple[dict[str, int], ...]:
    """Ordinary sizes that differ; ones; now and then an empty axis."""
    usual = dict(zip(NAMES, rng.sample([2, 3, 4, 5], 3), strict=True))
    other = {n: rng.choice([1, 1, 2, 3, 6]) for n in NAMES}
    empty = {n: rng.choice([0, 2, 3]) for n in NAMES}
    return (usual, other, empty) if rng.random() < 0.3 else (usual, other)


def _arguments(g: Statements, batched: bool) -> tuple[list[Argument], str]:
    """The arguments, in the scope of `g` too, and their text."""
    rng = g.rng
    names = iter(rng.sample(["x", "w", "a", "b", "z", "y", "g", "q"], 8))
    arguments: list[Argument] = []
    texts, configured = [], []
    known: list[Dim] = [Dim.of(n) for n in NAMES]
    for k in range(rng.choice([1, 2, 2, 3, 3, 4])):
        rank = rng.choice([0, 1, 1, 2, 2, 2, 3])
        shape = tuple(_extent(rng, known, arguments) for _ in range(rank))
        parameter = rng.random() < 0.25 and not (batched and k == 0)
        if batched and not parameter:
            shape = (Dim.of("N"), *shape[:2])
        kind = "real" if k == 0 or parameter or rng.random() < 0.75 else rng.choice(["i64", "i64", "i32", "bool_"])
        arguments.append(replace(_argument(g, next(names), kind, shape), role="param" if parameter else "input"))
        texts.append(_annotated(rng, arguments[-1]))
        a = arguments[-1]
        weak = rank == 0
        if kind == "real":
            # What is positive is never written, so that it stays so; a Param cannot be.
            g.scope.add(Variable(a.name, shape, mag=2, owns=bool(shape) and not parameter and a.domain != "pos",
                                 fixed=parameter or a.domain == "pos", domain=a.domain if a.domain == "pos" else "", weak=weak))  # fmt: skip
        elif kind == "bool_":
            g.scope.add(Variable(a.name, shape, "bool", fixed=True, weak=weak))
        else:
            g.scope.add(Variable(a.name, shape, "int", fixed=True, below=a.below, wraps=a.domain == "wraps", weak=weak))
    if rng.random() < 0.2:
        name = next(names)
        configured.append(f"{name}: float = {rng.choice(['0.5', '1.25', '-0.3'])}")
        g.scope.add(Variable(name, (), mag=2, fixed=True, weak=True))
    if rng.random() < 0.15:
        configured.append("k: int = 2")
        g.scope.add(Variable("k", (), "int", fixed=True, weak=True))
        g.scope.extents["k"] = "k"
    return arguments, ", ".join([*texts, *([f"{g.generator}: Random"] if g.generator else []), *configured])


def _extent(rng: random.Random, known: list[Dim], arguments: list[Argument]) -> Dim:
    if rng.random() < 0.12:
        return Dim.of(rng.choice([1, 1, 2, 3]))
    d = rng.choice(known)
    said = {x for a in arguments for x in a.shape}
    if d in said and rng.random() < 0.1:
        return rng.choice([d + 1, d * 2])
    return d


def _argument(g: Statements, name: str, kind: str, shape: Shape) -> Argument:
    rng = g.rng
    if kind in ("i64", "i32"):
        reach = [v.shape[0] for v in g.scope.having() if v.rank]
        if reach and rng.random() < 0.75:
            return Argument(name, kind, shape, rng.choice(["place", "wraps"]), rng.choice(reach))
        return Argument(name, kind, shape, "any")
    return Argument(name, kind, shape, "pos" if kind == "real" and rng.random() < 0.2 else "any")


def _annotated(rng: random.Random, a: Argument) -> str:
    dims = _spaced(a.shape)
    text = f'{a.dtype}["{dims}"]' if a.shape or rng.random() < 0.3 else a.dtype
    if a.role == "param":
        text = f"Param[{text}]"
    return f"{a.name}: {text}"


def namespace(text: str) -> dict[str, Any]:
    """Runs a layer file in which annotations and decorators mean nothing."""
    found: dict[str, Any] = {"layer": lambda f=None, **_: f or (lambda g: g), **FIELDS}
    lines = [line if not line.startswith("from layerc") else "" for line in text.splitlines()]
    lines = [line.replace("from shared import", "from fuzzing.shared import") for line in lines]
    code = compile("\n".join(lines), "program", "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, found)
    return found


__all__ = ["HEAD", "ONE", "PATH", "Argument", "Program", "draw_program", "namespace"]
