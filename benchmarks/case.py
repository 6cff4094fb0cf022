"""What a case of the benchmarks is: a layer, its arguments, and the names of its twins in other frameworks.

A row names its twins by function name. Where a peer's user could write the layer in several honest ways, all
are listed; every one must agree with layerc, all are timed, and the peer is credited with its fastest.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from settings import SEED

LAYERS = "examples/layers.py"


@dataclass(frozen=True)
class Draw:
    """An argument of a case: its shape, and how its values come from a generator."""

    shape: tuple[int, ...]
    values: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def normal(*shape: int, scale: float = 1.0) -> Draw:
    return Draw(shape, lambda rng, s: (scale * rng.standard_normal(s)).astype(np.float32))


def uniform(low: float, high: float, *shape: int) -> Draw:
    return Draw(shape, lambda rng, s: rng.uniform(low, high, s).astype(np.float32))


def labels(classes: int, *shape: int) -> Draw:
    """Integer arguments have no gradient, in layerc and in every peer."""
    return Draw(shape, lambda rng, s: rng.integers(0, classes, s).astype(np.int32))


class Bound(NamedTuple):
    """A layer bound to its arguments: what is timed. Results are the peer's own arrays, and finished."""

    forward: Callable[[], object]
    gradient: Callable[..., tuple[tuple, tuple]]  # (*dy) -> (outputs, gradients in the order of arguments)
    kept: Callable[[], dict[str, int]] | None = None  # bytes that one forward leaves for its backward: `left`
    pullback: Callable[[], object] | None = None  # of layerc: what `kept` looks into


def as_tuple(y) -> tuple:
    return y if isinstance(y, tuple) else (y,)


Block = tuple[int, int]  # where a whole allocation lies, its bytes


def left(held: Iterable[Block], callers: Iterable[Block]) -> dict[str, int]:
    """What a backward holds until it runs, each allocation once: all of it, and what is no argument and no output."""
    blocks, known = dict(held), {place for place, _ in callers}
    own = sum(size for place, size in blocks.items() if place not in known)
    return {"in all": sum(blocks.values()), "own": own}


def block(array: np.ndarray) -> Block:
    """A view keeps alive all that it is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.__array_interface__["data"][0], array.nbytes


def _kept(layer, inputs: tuple, callers: Iterable[np.ndarray]) -> Callable[[], dict[str, int]]:
    """Of a layerc layer: what its pullback holds on to. (The stand-in's pullbacks are closures.)"""

    def kept() -> dict[str, int]:
        y, pullback = layer.vjp(*inputs)
        cells = [cell.cell_contents for cell in getattr(pullback, "__closure__", None) or ()]
        held = pullback._kept if hasattr(pullback, "_kept") else [a for a in cells if isinstance(a, np.ndarray)]
        return left(map(block, held), map(block, (*callers, *as_tuple(y))))

    return kept


def function(name: str) -> Callable:
    """The layerc callable of a function layer: `L.name(*args)`, `L.name.vjp(*args)`."""

    def bind(package, arguments: dict[str, np.ndarray]) -> Bound:
        layer, values = getattr(package, name), tuple(arguments.values())

        def gradient(*dy):
            y, pullback = layer.vjp(*values)
            return as_tuple(y), pullback(*dy)

        kept = _kept(layer, values, values)
        return Bound(lambda: layer(*values), gradient, kept, lambda: layer.vjp(*values)[1])

    return bind


def module(name: str, inputs: int = 1, batched: bool = False) -> Callable:
    """The layerc callable of a class layer; arguments after the first `inputs` are its params, by name."""

    def bind(package, arguments: dict[str, np.ndarray]) -> Bound:
        names, values = list(arguments)[inputs:], tuple(arguments.values())[:inputs]
        layer = getattr(package, name)(name="bench")
        layer.initialize(*(v.shape if batched else v.shape[1:] for v in values), dtype=values[0].dtype)
        for parameter in names:
            layer.params[parameter] = arguments[parameter]

        def gradient(*dy):
            y, pullback = layer.vjp(*values)
            g = pullback(*dy)
            return as_tuple(y), (*g.inputs, *(g.params[n] for n in names))

        callers = (*values, *layer.params.values())
        kept = _kept(layer, values, callers)
        return Bound(lambda: layer(*values), gradient, kept, lambda: layer.vjp(*values)[1])

    return bind


class Traffic(NamedTuple):
    """Arrays of the first argument's size that must cross memory at least, each counted once per pass."""

    forward: int
    gradient: int  # forward and backward together


@dataclass(frozen=True)
class Case:
    name: str
    arguments: dict[str, Draw]  # inputs, then params: the order of the gradients
    layerc: Callable  # (package, arguments) -> Bound
    torch: tuple[str, ...] = ()
    jax: tuple[str, ...] = ()
    numba: tuple[str, ...] = ()  # of each the forward; beside it are `name_backward` and, if need be, `name_forward`
    compiled: tuple[str, ...] | None = None  # for torch.compile, where not those of eager torch
    own: str | None = None  # torch's own kernel
    outputs: tuple[tuple[int, ...], ...] | None = None  # shapes, where not one like the first argument
    traffic: Traffic | None = None
    source: str = LAYERS
    suite: str = "bench"  # the run that it belongs to; calls.py has "calls"

    def draw(self) -> dict[str, np.ndarray]:
        """The arguments: the same in every process."""
        rng = np.random.default_rng(SEED)
        return {name: a.values(rng, a.shape) for name, a in self.arguments.items()}

    def cotangents(self) -> list[np.ndarray]:
        """Random gradients of the outputs: the same in every process."""
        rng = np.random.default_rng(SEED + 1)
        shapes = self.outputs or (next(iter(self.arguments.values())).shape,)
        return [np.asarray(rng.standard_normal(shape), np.float32) for shape in shapes]

    @property
    def shape_text(self) -> str:
        return " ".join(f"{n}:{'x'.join(map(str, a.shape)) or 'scalar'}" for n, a in self.arguments.items())

    @property
    def nbytes(self) -> int:
        """Bytes of the first argument, float32."""
        return 4 * prod(next(iter(self.arguments.values())).shape)
