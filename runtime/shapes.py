"""The grammar of shape strings, and how the shapes of real arrays bind their names.

    shape = dim*                          "" is a scalar
    dim   = "_"                           any size
          | "*" NAME                      a group: any number of axes
          | sum                           "C"  "3"  "2*C"  "H-K+1"  "(H+2*pad-k)//stride+1"
    sum   = product (("+" | "-") product)*
    product = power (("*" | "//" | "%") power)*
    power = atom ["**" INT]               "k**2"
    atom  = INT | NAME | "-" atom | "(" sum ")"

This is jaxtyping's grammar as far as shapes can be compiled. Only the standard library is imported: built
packages use this module, with no compiler about.
"""

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn

MOST_FACTORS = 8  # of a power
Sizes = int | tuple[int, ...]
Binding = dict[str, Sizes]


@dataclass(frozen=True)
class Size:
    """One axis; its size is an expression. `Size` of a bare name or number is the common case."""

    text: str
    tree: ast.expr = field(compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))

    @property
    def is_name(self) -> bool:
        return isinstance(self.tree, ast.Name)


@dataclass(frozen=True)
class Anything:
    """One axis of any size: `_`."""

    text: str = "_"


@dataclass(frozen=True)
class Group:
    """Any number of axes, seen by a layer function as one flattened axis: `*S`."""

    name: str

    @property
    def text(self) -> str:
        return f"*{self.name}"


Dim = Size | Anything | Group


@dataclass(frozen=True)
class Shape:
    """A parsed shape string. `rank` counts a group as the one axis that a layer function sees."""

    text: str
    dims: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def group(self) -> int | None:
        """Position of the `*S` group among the dims, or None."""
        return next((i for i, dim in enumerate(self.dims) if isinstance(dim, Group)), None)

    @property
    def names(self) -> frozenset[str]:
        sizes = (dim.names for dim in self.dims if isinstance(dim, Size))
        return frozenset().union(*sizes, (dim.name for dim in self.dims if isinstance(dim, Group)))

    def evaluate(self, binding: Mapping[str, Sizes]) -> tuple[int, ...]:
        """The concrete shape, groups unfolded. KeyError for an unbound name, ValueError for `_`."""
        sizes: list[int] = []
        for dim in self.dims:
            match dim:
                case Anything():
                    raise ValueError(f'shape "{self.text}" has no definite size: it contains "_"')
                case Group(name):
                    sizes += group_axes(binding, name)
                case Size(tree=tree):
                    sizes.append(evaluate(tree, binding))
        if any(size < 0 for size in sizes):
            raise ValueError(f'shape "{self.text}" comes out negative: {tuple(sizes)}')
        return tuple(sizes)

    def flatten(self, actual: Sequence[int]) -> tuple[int, ...]:
        """The shape a layer function sees: the axes of the group as one. `actual` has a fitting rank."""
        at = self.group
        if at is None:
            return tuple(actual)
        end = len(actual) - (self.rank - 1 - at)
        return (*actual[:at], math.prod(actual[at:end]), *actual[end:])

    def __str__(self) -> str:
        return self.text


@cache
def parse(text: str) -> Shape:
    """Read a shape string; ValueError, quoting it, where it is not in the grammar."""
    dims = tuple(_parse_dim(word, text) for word in text.split())
    if sum(isinstance(dim, Group) for dim in dims) > 1:
        raise ValueError(f'shape "{text}" has two groups: where one ends and the other starts is not defined')
    return Shape(" ".join(dim.text for dim in dims), dims)


def _parse_dim(word: str, text: str) -> Dim:
    if word == "_":
        return Anything()
    if word.startswith("*") and word[1:].isidentifier():
        return Group(word[1:])
    try:
        tree = ast.parse(word, mode="eval").body
    except (SyntaxError, ValueError):
        tree = None
    if tree is None or not _in_grammar(tree):
        raise ValueError(
            f'cannot read "{word}" in shape "{text}": a dimension is a name, a number, "_", "*group", '
            "or an expression of names and numbers with + - * // % ( ) and powers by a number, written without blanks"
        )
    return Size(word, tree)


def _in_grammar(tree: ast.expr) -> bool:
    match tree:
        case ast.Name():
            return True
        case ast.Constant(value):
            return type(value) is int
        case ast.UnaryOp(ast.USub(), operand):
            return _in_grammar(operand)
        case ast.Call(ast.Name("min" | "max"), [left, right], []):
            return _in_grammar(left) and _in_grammar(right)
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod(), right):
            return _in_grammar(left) and _in_grammar(right)
        case ast.BinOp(left, ast.Pow(), ast.Constant(int(exponent))):
            return _in_grammar(left) and 0 <= exponent <= MOST_FACTORS
    return False


def evaluate(tree: ast.expr, binding: Mapping[str, Sizes]) -> int:
    """Value of a size expression. KeyError for an unbound name, ValueError for one that is no integer."""
    match tree:
        case ast.Constant(int(value)):
            return value
        case ast.Name(name):
            size = binding[name]  # of a group, that of the one axis that the function sees
            return math.prod(size) if isinstance(size, tuple) else _integer(name, size)
        case ast.Call(ast.Name(name), [left, right]):
            x, y = evaluate(left, binding), evaluate(right, binding)
            return min(x, y) if name == "min" else max(x, y)
        case ast.UnaryOp(operand=operand):
            return -evaluate(operand, binding)
        case ast.BinOp(left, op, right):
            a, b = evaluate(left, binding), evaluate(right, binding)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Pow():
                    return math.prod([a] * b)
            if b == 0:
                raise ValueError(f"division by zero in the dimension {ast.unparse(tree)}")
            return a // b if isinstance(op, ast.FloorDiv) else a % b
    raise AssertionError(f"not in the grammar: {ast.dump(tree)}")


def _integer(name: str, value: object) -> int:
    if isinstance(value, int):
        return int(value) if isinstance(value, bool) else value  # a size of a rehearsal stays what it is
    raise ValueError(f"dimension {name} must be an integer, not {value!r}")


def group_axes(binding: Mapping[str, Sizes], name: str) -> tuple[int, ...]:
    """The axes bound to a group; a plain size counts as one axis."""
    axes = binding[name]
    return axes if isinstance(axes, tuple) else (axes,)


def linear(tree: ast.expr, binding: Mapping[str, Sizes], unknown: str) -> tuple[int, int] | None:
    """(a, b) such that the expression is a + b * unknown; None where it is not linear in it."""
    match tree:
        case ast.Name(name) if name == unknown:
            return 0, 1
        case ast.Constant() | ast.Name():
            return evaluate(tree, binding), 0
        case ast.UnaryOp(operand=operand):
            inner = linear(operand, binding, unknown)
            return inner and (-inner[0], -inner[1])
        case ast.BinOp(left, op, right):
            x, y = linear(left, binding, unknown), linear(right, binding, unknown)
            if x is None or y is None:
                return None
            match op:
                case ast.Add():
                    return x[0] + y[0], x[1] + y[1]
                case ast.Sub():
                    return x[0] - y[0], x[1] - y[1]
                case ast.Mult() if x[1] == 0 or y[1] == 0:
                    return x[0] * y[0], x[0] * y[1] + x[1] * y[0]
            if x[1] == 0 and y[1] == 0:
                return evaluate(tree, binding), 0
    return None


def shape_given(where: str, name: str, value: object) -> tuple[int, ...]:
    """A shape as a caller gives it: some integers, or one. TypeError, and ValueError for negative ones, that name the
    argument."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    sizes: tuple[Any, ...] = tuple(value) if several else (value,)  # type: ignore[arg-type]
    if not all(hasattr(size, "__index__") for size in sizes):
        raise TypeError(f"{where}: argument {name!r}: expected a shape, as (4, 5), not {value!r}")
    shape = tuple(map(int, sizes))
    if any(size < 0 for size in shape):
        raise ValueError(f"{where}: argument {name!r}: the shape {shape} has a negative size")
    return shape


def bind(
    shapes: Iterable[tuple[str, Shape, tuple[int, ...]]],
    config: Mapping[str, object],
    where: str,
) -> Binding:
    """Match actual shapes against declared ones and give every name its size, every group its axes.

    shapes: (argument, declared, actual), in the order of the signature; config: values that expressions may
    use; where: the layer's name, for messages. Returns the names bound, the integers of `config` included.
    An expression with exactly one unknown name, linear in it, is solved; one with more is checked only as far
    as the others bind its names. ValueError names `where` and the argument, and tells expected and actual.
    """
    return _Binder(config, where).bind(list(shapes))


class _Binder:
    def __init__(self, config: Mapping[str, object], where: str) -> None:
        self.where = where
        self.config = config
        self.sizes: Binding = {name: int(v) for name, v in config.items() if isinstance(v, int)}
        self.origin = dict.fromkeys(self.sizes, "the configuration")

    def bind(self, shapes: list[tuple[str, Shape, tuple[int, ...]]]) -> Binding:
        waiting: list[tuple[int, int, Size, int]] = []  # which argument, which of its axes, dim, size
        for which, (name, shape, actual) in enumerate(shapes):
            waiting += [(which, *rest) for rest in self._axes(name, shape, tuple(actual))]
        # Names that stand alone bind first: an expression is then checked against them, not the reverse.
        waiting.sort(key=lambda item: not item[2].is_name)
        while True:
            left = [item for item in waiting if not self._settle(shapes[item[0]], *item[1:])]
            if len(left) == len(waiting):
                return self.sizes
            waiting = left

    def _axes(self, name: str, shape: Shape, actual: tuple[int, ...]) -> Iterable[tuple[int, Size, int]]:
        """Check the rank, bind the group, and list (axis, dim, size) for the others."""
        at, extra = shape.group, len(actual) - shape.rank
        if extra < 0 - (at is not None) or (at is None and extra):
            self._fail(name, shape, actual, f"rank {len(actual)} instead of {_rank(shape)}")
        if at is not None:
            group = shape.dims[at]
            assert isinstance(group, Group)
            self._agree(name, shape, actual, group.name, actual[at : at + extra + 1])
        for i, dim in enumerate(shape.dims):
            if isinstance(dim, Size):
                axis = i if at is None or i < at else i + extra
                yield axis, dim, actual[axis]

    def _settle(self, argument: tuple[str, Shape, tuple[int, ...]], axis: int, dim: Size, size: int) -> bool:
        """Bind or check one dimension; False where it has to wait for other names."""
        name, shape, actual = argument
        for known in dim.names & self.config.keys():
            if known not in self.sizes:
                value = self.config[known]
                self._fail(name, shape, actual, f"{known} must be an integer, not {value!r}")
        unknown = sorted(dim.names - self.sizes.keys())
        if dim.is_name:
            self._agree(name, shape, actual, dim.text, size)
            return True
        if len(unknown) > 1:
            return False
        try:
            if unknown:
                return self._solve(argument, dim, size, unknown[0])
            expected = evaluate(dim.tree, self.sizes)
        except ValueError as error:
            self._fail(name, shape, actual, str(error))
        if expected != size:
            known = ", ".join(f"{n}={self.sizes[n]}" for n in sorted(dim.names))
            reason = f"axis {axis} is {size}, expected {dim.text}"
            self._fail(name, shape, actual, f"{reason} = {expected} (with {known})" if known else reason)
        return True

    def _solve(self, argument: tuple[str, Shape, tuple[int, ...]], dim: Size, size: int, unknown: str) -> bool:
        name, shape, actual = argument
        line = linear(dim.tree, self.sizes, unknown)
        if line is None or line[1] == 0:
            return False
        value, rest = divmod(size - line[0], line[1])
        if rest or value < 0:
            self._fail(name, shape, actual, f"no {unknown} gives {dim.text} = {size}")
        self._agree(name, shape, actual, unknown, value)
        return True

    def _agree(self, name: str, shape: Shape, actual: tuple[int, ...], dim: str, size: Sizes) -> None:
        known = self.sizes.setdefault(dim, size)
        if known != size:
            origin = self.origin[dim]
            other = "" if origin == f"argument {name!r}" else f" in {origin}"
            self._fail(name, shape, actual, f"{dim} is {size} here, but {known}{other}")
        self.origin.setdefault(dim, f"argument {name!r}")

    def _fail(self, name: str, shape: Shape, actual: tuple[int, ...], why: str) -> NoReturn:
        raise ValueError(f'{self.where}: argument {name!r}: expected shape "{shape.text}", got {actual}: {why}')


def _rank(shape: Shape) -> str:
    return str(shape.rank) if shape.group is None else f"at least {shape.rank - 1}"


def batch_size(
    inputs: Iterable[tuple[str, Shape, tuple[int, ...]]],
    where: str,
    batch: bool | None = None,
    ranks: Sequence[int] | None = None,
) -> int | None:
    """How a call of a one-example layer is meant: None for one example, else the N that axis 0 maps over.

    inputs: (argument, declared, actual) of the plain inputs, without params, states and config. An input of
    exactly the declared rank means one example, of one more a batch; all inputs must agree. A `*S` group says
    nothing by its rank: then the inputs without a group decide, and one example is assumed if there are none.
    `batch=True` or `False` says it outright; `ranks`, where the example's ranks are known (after
    `initialize`), count as the declared ones. ValueError names `where` and the argument.
    """
    inputs = list(inputs)
    declared = [None if s.group is not None else s.rank for _, s, _ in inputs] if ranks is None else list(ranks)
    if batch is None:
        batch = any(rank is not None and len(actual) == rank + 1 for rank, (_, _, actual) in zip(declared, inputs))
    if not batch:
        return None
    if not inputs:
        raise ValueError(f"{where}: no input to map a batch over")
    size, first = -1, ""
    for rank, (name, shape, actual) in zip(declared, inputs):
        if not actual or (rank is not None and len(actual) != rank + 1):
            expected = "one axis more" if rank is None else f"rank {rank + 1}"
            raise ValueError(
                f'{where}: argument {name!r}: expected {expected} for a batch of "{shape.text}", got {actual}'
            )
        if size >= 0 and actual[0] != size:
            raise ValueError(f"{where}: argument {name!r}: a batch of {actual[0]}, but {first!r} has {size} examples")
        size, first = actual[0], first or name
    return size
