"""From a manifest's METHOD to a C call.

A `Case` is one combination of shapes, element types and config, worked out once; it is kept and found again
by the shapes and types of the arrays. A `Launch` is one kernel in that case: everything but the arrays'
addresses.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from layerc.runtime.arrays import DTYPES, Destination, Spec
from layerc.runtime.shapes import Binding, Size, evaluate, parse

if TYPE_CHECKING:
    from layerc.runtime.core import Core

_BATCHED_ROLES = ("input", "output", "memory")
_AXIS_OF = re.compile(r"(\w+)\[(\d+)\]")


class Launch:
    """A kernel with everything but its arrays: what a call with known shapes comes down to.

    arguments: the names of the arrays it reads, in its own order; specs: of those it writes.
    keep: where those it reads are among the call's arrays followed by the forward's outputs; order: how they,
    followed by all cotangents, are arranged as arguments. None for either: as they come.
    scalars: its leading arguments; public: which of the outputs the caller gets.
    """

    __slots__ = (
        *("_kernel", "arguments", "function", "keep", "library", "made", "order"),
        *("public", "scalars", "seed_at", "single", "specs", "where"),
    )

    def __init__(self, case: "Case", method: Mapping[str, Any], name: str) -> None:
        core, outputs = case.core, method["outputs"]
        self.where, self.library = core.name, core.library
        self._kernel = case.function(method)
        self.scalars, self.seed_at = case.scalars(method)
        self.function = partial(self._kernel, *self.scalars)
        self.arguments: tuple[str, ...] = tuple(method["arguments"])
        self.specs = tuple(case.spec(output) for output in outputs)
        self.made = tuple((shape, dtype) for _, shape, dtype in self.specs)
        self.public = tuple(i for i, output in enumerate(outputs) if output["role"] == "output")
        self.single = len(outputs) == 1 == len(self.public)

        known = [*core.array_names, *(core.kept_names if name == "pullback" else core.output_names)]
        forward = tuple(argument for argument in self.arguments if argument in known)
        given = [*forward, *(core.cotangent_names if name in ("backward", "pullback") else ())]
        self.keep = None if forward == core.array_names else tuple(known.index(argument) for argument in forward)
        order = tuple(given.index(argument) for argument in self.arguments)
        self.order = None if order == tuple(range(len(given))) else order

    def seeded(self, seed: int | None) -> "Launch":
        """The same with this seed for the layer's random numbers."""
        at = self.seed_at
        if at is None:
            return self
        made = Launch.__new__(Launch)
        for name in Launch.__slots__:
            setattr(made, name, getattr(self, name))
        made.scalars = (*self.scalars[:at], 0 if seed is None else seed, *self.scalars[at + 1 :])
        made.function = partial(made._kernel, *made.scalars)
        return made

    def __call__(self, addresses: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run on addresses, of what `arguments` names and of the outputs. Raises what the status means."""
        calls = self.library.calls
        try:
            call = calls.pop()
        except IndexError:
            call = self.library.new_call()
        status = self.function(*addresses, *outputs, call)
        if status:
            self.library.fail(self.where, status, call.info)
        calls.append(call)

    def alone(self, addresses: Sequence[Any]) -> tuple[np.ndarray, Any]:
        """Run a kernel of one output, made here: it and its address. The steps of `__call__`, for speed."""
        ((shape, dtype),) = self.made
        library = self.library
        output = np.empty(shape, dtype)
        written = library.from_buffer(output)
        calls = library.calls
        try:
            call = calls.pop()
        except IndexError:
            call = library.new_call()
        status = self.function(*addresses, written, call)
        if status:
            library.fail(self.where, status, call.info)
        calls.append(call)
        return output, written

    def fresh(self, addresses: Sequence[Any]) -> tuple[list[np.ndarray], list[Any]]:
        """Run with outputs made here; they and their addresses."""
        outputs = [np.empty(shape, dtype) for shape, dtype in self.made]
        written = list(map(self.library.from_buffer, outputs))
        self(addresses, written)
        return outputs, written


class Quick(NamedTuple):
    """A kernel called by name, with nothing left to look up: the positions of what it reads among the arrays given, and
    of its outputs, by the names under which the caller gets them."""

    launch: Launch
    read: tuple[int, ...]
    results: tuple[tuple[str, int], ...]


class Case:
    """One combination of shapes, element types and config of a layer, with its launches."""

    __slots__ = (
        *("_launches", "backward", "batch", "binding", "config", "core", "cotangent_key", "cotangents"),
        *("forward", "predict", "quick", "real", "shapes"),
    )

    def __init__(
        self,
        core: "Core",
        real: str,
        binding: Binding,
        batch: int | None,
        config: Mapping[str, Any],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> None:
        """real: "f32" or "f64"; batch: None for one example; shapes: of the arrays, with the batch axis."""
        self.core, self.real, self.binding, self.batch = core, real, binding, batch
        self.config, self.shapes = dict(config), dict(shapes)
        self._launches: dict[tuple[str, str], Launch] = {}
        self.quick: dict[tuple[str, str], Quick] = {}
        # What every call needs is kept as attributes: that is the quickest way to it.
        self.predict = self.launch("predict")
        self.forward = self.launch("vjp" if "vjp" in core.methods else "forward")
        backward = "pullback" if "pullback" in core.methods else "backward"
        self.backward = self.launch(backward) if backward in core.methods else None
        outputs = [self.forward.specs[i] for i in self.forward.public]
        self.cotangents: tuple[Spec, ...] = tuple(
            (name, shape, dtype) for name, (_, shape, dtype) in zip(core.cotangent_names, outputs, strict=True)
        )
        self.cotangent_key = tuple((np.ndarray, shape, dtype, True) for _, shape, dtype in outputs)

    def launch(self, method: str, want: str = "all") -> Launch:
        """The kernel of that method; want: "params" or "inputs" for only those gradients, if there is one."""
        found = self._launches.get((method, want))
        if found is None:
            found = Launch(self, self.core.method(method, want), method)
            self._launches[method, want] = found
        return found

    def function(self, method: Mapping[str, Any]) -> Callable[..., int]:
        kernels = method["kernels"]
        if self.real not in kernels:
            built = " and ".join(str(DTYPES[kind]) for kind in kernels)
            raise TypeError(f"{self.core.name}: built for {built} only, got {DTYPES[self.real]}")
        name = kernels[self.real]
        function: Callable[..., int] = getattr(self.core.library.functions, name)
        variants = self.core.variants
        return variants.function(self, name, function) if variants else function

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells cases apart: never a value."""
        return tuple(self.shapes.items()), tuple(self.config.items()), self.batch, self.real

    def methods(self) -> list[Mapping[str, Any]]:
        """Every method of the layer, and the variants of its backward."""
        found = [m for m in self.core.methods.values() if self.real in m["kernels"]]
        return found + [v for m in found for v in m.get("variants", {}).values()]

    def scalars(self, method: Mapping[str, Any]) -> tuple[tuple[float, ...], int | None]:
        """What comes before the arrays: batch, dims, config; and which of them is the random seed."""
        values: list[float] = [] if self.core.batched else [1 if self.batch is None else self.batch]
        values += [self._dim(dim) for dim in method["dims"]]
        seed_at = None
        for name in method["config"]:
            if name == self.core.random:
                seed_at = len(values)
                values.append(0)
            else:
                value = self.config[name]
                values.append(float(value) if self.core.settings.types[name] == "float" else int(value))
        return tuple(values), seed_at

    def _dim(self, dim: str) -> int:
        """A name ("C"; a group's product), an axis of an argument ("x[1]", for `_`), or an expression."""
        axis = _AXIS_OF.fullmatch(dim)
        if axis:
            name = axis[1]
            return self.core.declared[name].flatten(self._example(name))[int(axis[2])]
        if dim in self.binding:
            size = self.binding[dim]
            return math.prod(size) if isinstance(size, tuple) else size
        (only,) = parse(dim).dims
        if not isinstance(only, Size):
            raise KeyError(dim)
        return evaluate(only.tree, self.binding)

    def _example(self, name: str) -> tuple[int, ...]:
        """The shape of an argument without the batch axis."""
        shape = self.shapes[name]
        return shape[1:] if self.batch is not None and self.core.roles[name] == "input" else shape

    def spec(self, output: Mapping[str, Any]) -> Spec:
        """Name, shape and type of an output. A gradient is shaped as what it is of."""
        dtype = DTYPES[self.real if output["dtype"] == "real" else output["dtype"]]
        of = output.get("of")
        if of in self.shapes:
            return output["name"], self.shapes[of], dtype
        shape = parse(output["shape"]).evaluate(self.binding)
        lead = (self.batch,) if self.batch is not None and output["role"] in _BATCHED_ROLES else ()
        return output["name"], (*lead, *shape), dtype


def receive(launch: Launch, into: Mapping[int, Destination]) -> list[np.ndarray]:
    """Arrays for a launch's outputs: the caller's own where the kernel can write there, else fresh ones."""
    return [
        into[i].view if i in into and into[i].direct else np.empty(shape, dtype)
        for i, (shape, dtype) in enumerate(launch.made)
    ]
