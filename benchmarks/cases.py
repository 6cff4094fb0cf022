"""The cases, one row each. A new case is one row here, one twin in twins_torch.py and one in twins_jax.py.

A row names its twins by function name. Where a peer's user could write the layer in several honest ways, all
are listed; every one must agree with layerc, all are timed, and the peer is credited with its fastest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from settings import SEED

# A peer computes what the layer computes. Another way to the same numbers (distances through a product of matrices,
# a derivative by the implicit function theorem) is a case of its own, in which layerc's layer goes that way too.
LAYERS = "examples/layers.py"
OTHER_WAYS = "benchmarks/other_ways.py"
FAMILIAR = "benchmarks/familiar.py"
# torch twins whose loop stays in Python: they compile what is inside it
COMPILES_ITSELF = {"kepler_compiled_step", "kepler_implicit_compiled_step"}


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


def as_tuple(y) -> tuple:
    return y if isinstance(y, tuple) else (y,)


def function(name: str) -> Callable:
    """The layerc callable of a function layer: `L.name(*args)`, `L.name.vjp(*args)`."""

    def bind(package, arguments: dict[str, np.ndarray]) -> Bound:
        layer, values = getattr(package, name), tuple(arguments.values())

        def gradient(*dy):
            y, pullback = layer.vjp(*values)
            return as_tuple(y), pullback(*dy)

        return Bound(lambda: layer(*values), gradient)

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

        return Bound(lambda: layer(*values), gradient)

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
    compiled: tuple[str, ...] | None = None  # for torch.compile, where not those of eager torch
    own: str | None = None  # torch's own kernel
    outputs: tuple[tuple[int, ...], ...] | None = None  # shapes, where not one like the first argument
    traffic: Traffic | None = None
    source: str = LAYERS
    call: bool = False  # measured by calls.py only

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


def srelu(*shape: int) -> dict[str, Draw]:
    c = shape[1]
    return {
        "x": normal(*shape),
        "left_threshold": uniform(-1, 0, c),
        "left_slope": uniform(0, 1, c),
        "right_threshold": uniform(0, 1, c),
        "right_slope": uniform(0, 1, c),
    }


SRELU = {
    "layerc": module("SReLU"),
    "torch": ("srelu_where", "srelu_clamp"),
    "jax": ("srelu_where", "srelu_clamp"),
}
MISH = {
    "layerc": function("mish"),
    "torch": ("mish_formula", "mish_softplus"),
    "own": "mish_own",
    "jax": ("mish_formula", "mish_softplus", "mish_own"),
}

CASES = {
    case.name: case
    for case in (
        # Forward reads x and writes y; backward reads x and dy and writes dx: 5 arrays of x's size in all.
        Case("srelu", srelu(32, 64, 28, 28), **SRELU, traffic=Traffic(2, 5)),
        Case("srelu_tiny", srelu(1, 16, 4, 4), **SRELU),
        Case("mish", {"x": normal(32, 64, 28, 28)}, **MISH, traffic=Traffic(2, 5)),
        Case(
            "rbf",
            {"x": normal(512, 64), "centers": normal(128, 64), "gamma": uniform(0.005, 0.02, 128)},
            function("rbf"),
            torch=("rbf_broadcast",),
            jax=("rbf_broadcast",),
            outputs=((512, 128),),
        ),
        Case(
            "rbf_matmul",
            {"x": normal(512, 64), "centers": normal(128, 64), "gamma": uniform(0.005, 0.02, 128)},
            function("rbf_matmul"),
            torch=("rbf_matmul",),
            jax=("rbf_matmul",),
            outputs=((512, 128),),
            source=OTHER_WAYS,
        ),
        Case(
            "ema",
            {"x": normal(64, 512, 64), "decay": uniform(0.8, 0.99, 64)},
            function("ema"),
            torch=("ema_loop", "ema_doubling", "ema_chunks"),
            jax=("ema_scan", "ema_scan_unrolled", "ema_associative", "ema_doubling", "ema_chunks"),
        ),
        Case(
            "kepler",
            {"mean": uniform(-3.14, 3.14, 256, 256), "e": uniform(0, 0.9, 256, 256)},
            function("kepler"),
            torch=("kepler_while",),
            compiled=("kepler_compiled_step", "kepler_fixed"),
            jax=("kepler_fixed", "kepler_scan"),
        ),
        Case(
            "kepler_implicit",
            {"mean": uniform(-3.14, 3.14, 256, 256), "e": uniform(0, 0.9, 256, 256)},
            function("kepler_implicit"),
            torch=("kepler_implicit",),
            compiled=("kepler_implicit_compiled_step", "kepler_implicit_fixed"),
            jax=("kepler_implicit", "kepler_implicit_fixed"),
            source=OTHER_WAYS,
        ),
        Case(
            "layer_norm",
            {"x": normal(4096, 768), "weight": normal(768), "bias": normal(768)},
            function("layer_norm"),
            torch=("layer_norm",),
            jax=("layer_norm",),
            own="layer_norm_own",
            source=FAMILIAR,
            traffic=Traffic(2, 5),
        ),
        Case(
            "batch_norm",
            {"x": normal(32, 64, 28, 28), "weight": normal(64), "bias": normal(64)},
            function("batch_norm"),
            torch=("batch_norm",),
            jax=("batch_norm",),
            own="batch_norm_own",
            source=FAMILIAR,
            traffic=Traffic(2, 5),
        ),
        Case(
            "cross_entropy",
            {"x": normal(4096, 1000), "label": labels(1000, 4096)},
            function("cross_entropy"),
            torch=("cross_entropy",),
            jax=("cross_entropy",),
            own="cross_entropy_own",
            outputs=((4096,),),
            source=FAMILIAR,
            traffic=Traffic(1, 3),
        ),
        Case(
            "gru",
            {
                "x": normal(32, 64, 64),
                "w_input": normal(64, 192, scale=0.1),
                "w_hidden": normal(64, 192, scale=0.1),
                "bias": normal(192),
            },
            function("gru"),
            torch=("gru",),
            jax=("gru",),
            own="gru_own",
            source=FAMILIAR,
        ),
        Case(
            "soft_dtw",
            {"a": normal(32, 64, 8), "b": normal(32, 64, 8)},
            function("soft_dtw"),
            torch=("soft_dtw_diagonals",),
            jax=("soft_dtw_diagonals",),
            outputs=((32,),),
            source=FAMILIAR,
        ),
        Case(
            "crf",
            {"score": normal(32, 64, 16), "transition": normal(16, 16)},
            function("crf"),
            torch=("crf",),
            jax=("crf",),
            outputs=((32,),),
            source=FAMILIAR,
        ),
        Case(
            "warp",
            {"image": normal(8, 16, 64, 64), "flow": normal(8, 2, 64, 64, scale=2.0)},
            function("warp"),
            torch=("warp_gather",),
            jax=("warp_gather",),
            own="warp_own",
            source=FAMILIAR,
        ),
        Case("mish_16", {"x": normal(16)}, **MISH, call=True),
    )
}
