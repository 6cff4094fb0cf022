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
from layerc.runtime.quick import Quick, Run, empty, quick, refuse
from layerc.runtime.shapes import Binding, Size, evaluate, parse

if TYPE_CHECKING:
    from layerc.runtime.core import Core

_BATCHED_ROLES = ("input", "output", "memory")
_AXIS_OF = re.compile(r"(\w+)\[(\d+)\]")


def is_public(output: Mapping[str, Any]) -> bool:
    """Whether an OUTPUT is what a caller gets; one with the role of a param, but no gradient of one, is a sum over the
    batch (a gradient file's functions have them)."""
    return output["role"] == "output" or (output["role"] == "param" and "of" not in output)


class Launch:
    """A kernel with everything but its arrays: what a call with known shapes comes down to.

    arguments: the names of the arrays it reads, in its own order; specs: of those it writes.
    keep: where those it reads are among the call's arrays followed by the forward's outputs; order: how they,
    followed by all cotangents, are arranged as arguments. None for either: as they come. A pullback keeps nothing for
    an argument of which only the extents are taken.
    all_arguments: of the call; over: for each output, the arguments in whose memory it may lie.
    scalars: its leading arguments; public: which of the outputs the caller gets.
    """

    __slots__ = (
        *("_kernel", "all_public", "arguments", "function", "keep", "kernel", "library", "made"),
        *("all_arguments", "over"),
        *("order", "public", "scalars", "seed_at", "single", "specs", "where"),
    )

    def __init__(self, case: "Case", method: Mapping[str, Any], name: str) -> None:
        core, outputs = case.core, method["outputs"]
        self.where, self.library = core.name, core.library
        self._kernel = case.function(method, name)
        self.kernel: str = method["kernels"][case.real]
        self.scalars, self.seed_at = case.scalars(method)
        self.function = partial(self._kernel, *self.scalars)
        self.arguments: tuple[str, ...] = tuple(method["arguments"])
        self.specs = tuple(case.spec(output) for output in outputs)
        self.made = tuple((shape, dtype) for _, shape, dtype in self.specs)
        self.public = tuple(i for i, output in enumerate(outputs) if is_public(output))
        self.single = len(outputs) == 1
        # What a pullback will read may not be written over.
        kept = name in ("vjp", "forward")
        self.over = tuple(() if kept else tuple(output.get("over", ())) for output in outputs)
        self.all_arguments = core.array_names
        self.all_public = len(outputs) == len(self.public)

        known = [*core.array_names, *(core.kept_names if name == "pullback" else core.output_names)]
        pulls = name in ("backward", "pullback")
        unread = method.get("unread", ()) if pulls else ()
        forward = tuple(argument for argument in self.arguments if argument in known and argument not in unread)
        given = [*forward, *(core.cotangent_names if pulls else ())]
        self.keep = None if forward == core.array_names else tuple(known.index(argument) for argument in forward)
        # Some array must stand for what is not read, and the last is a cotangent, which the pullback always has.
        order = tuple(given.index(one) if one in given else len(given) - 1 for one in self.arguments)
        self.order = None if order == tuple(range(len(given))) else order

    def seeded(self, seed: int | None) -> "Launch":
        """The same with this seed for the layer's random numbers."""
        at = self.seed_at
        if at is None:
            return self
        return self.told((*self.scalars[:at], 0 if seed is None else seed, *self.scalars[at + 1 :]))

    def told(self, scalars: tuple[float, ...]) -> "Launch":
        """The same with other scalars before the arrays."""
        made = _copied(self)
        made.scalars = scalars
        made.function = partial(made._kernel, *scalars)
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

    def fresh(self, addresses: Sequence[Any]) -> list[np.ndarray]:
        """Run with outputs made here."""
        outputs = [empty(shape, dtype) for shape, dtype in self.made]
        self(addresses, list(map(self.library.from_buffer, outputs)))
        return outputs

    def result(self, outputs: Sequence[np.ndarray]) -> Any:
        """What the caller gets of all outputs."""
        results = [outputs[i] for i in self.public]
        return results[0] if len(results) == 1 else tuple(results)


class Named(NamedTuple):
    """A kernel called by name, with nothing left to look up: how it is run, the names of its outputs, and where among
    them those are that the caller gets."""

    quick: Quick
    single: bool
    outputs: tuple[str, ...]
    results: tuple[tuple[str, int], ...]


class Case:
    """One combination of shapes, element types and config of a layer, with its launches."""

    __slots__ = (
        *("_launches", "_like", "backward", "batch", "binding", "config", "core", "cotangents"),
        *("forward", "named", "predict", "quick_backward", "quick_forward", "quick_predict", "real", "shapes"),
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
        self._like: Case | None = None
        self.named: dict[tuple[str, str], Named] = {}
        # What every call needs is kept as attributes: that is the quickest way to it.
        self.predict = self.launch("predict")
        self.forward = self.launch("vjp" if "vjp" in core.methods else "forward")
        backward = "pullback" if "pullback" in core.methods else "backward"
        self.backward = self.launch(backward) if backward in core.methods else None
        outputs = [self.forward.specs[i] for i in self.forward.public]
        self.cotangents: tuple[Spec, ...] = tuple(
            (name, shape, dtype) for name, (_, shape, dtype) in zip(core.cotangent_names, outputs, strict=True)
        )
        self.quick_predict, self.quick_forward = self._quick(self.predict), self._quick(self.forward)
        self.quick_backward = self._quick(self.backward, pulls=True)

    def launch(self, method: str, want: str = "all") -> Launch:
        """The kernel of that method; want: "params" or "inputs" for only those gradients, if there is one."""
        found = self._launches.get((method, want))
        if found is None:
            spec = self.core.method(method, want)
            if self._like is None:
                found = Launch(self, spec, method)
            else:
                found = self._like.launch(method, want).told(self.scalars(spec)[0])
            self._launches[method, want] = found
        return found

    def _quick(self, launch: Launch | None, pulls: bool = False) -> Run:
        """A launch on arrays as NumPy gives them: those of a call; to pull, those kept and all cotangents."""
        core = self.core
        if launch is None or core.variants or any(n not in self.shapes for n in core.array_names):
            return refuse
        arrays = [(self.shapes[n], self._dtype(core.dtypes[n])) for n in core.array_names]
        if not pulls:
            keep = range(len(arrays)) if launch.keep is None else launch.keep
            return quick(launch, arrays, tuple(keep)).run
        known = [*arrays, *self.forward.made]
        given = arrays if launch.keep is None else [known[i] for i in launch.keep]
        given = [*given, *((shape, dtype) for _, shape, dtype in self.cotangents)]
        order = range(len(given)) if launch.order is None else launch.order
        return quick(launch, given, tuple(order)).run

    def _dtype(self, declared: str) -> np.dtype:
        return DTYPES[self.real if declared == "real" else declared]

    def told(self, config: Mapping[str, Any]) -> "Case":
        """The same with other values of its configuration, none of which a shape depends on."""
        made = _copied(self)
        made.config, made._launches, made._like = dict(config), {}, self
        made.named = {}
        made.quick_predict = made.quick_forward = made.quick_backward = refuse
        return made

    def function(self, method: Mapping[str, Any], name: str) -> Callable[..., int]:
        """The kernel of a method of that name."""
        kernels = method["kernels"]
        if self.real not in kernels:
            built = " and ".join(str(DTYPES[kind]) for kind in kernels)
            raise TypeError(f"{self.core.name}: built for {built} only, got {DTYPES[self.real]}")
        function: Callable[..., int] = self.core.library.kernel(self, method, name)
        variants = self.core.variants
        return variants.function(self, kernels[self.real], function) if variants else function

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
        dtype = self._dtype(output["dtype"])
        of = output.get("of")
        if of in self.shapes:
            return output["name"], self.shapes[of], dtype
        shape = parse(output["shape"]).evaluate(self.binding)
        lead = (self.batch,) if self.batch is not None and output["role"] in _BATCHED_ROLES else ()
        return output["name"], (*lead, *shape), dtype


def _copied(one: Any) -> Any:
    """A shallow copy of an object with slots; copy.copy takes five times as long."""
    made = object.__new__(type(one))
    for name in type(one).__slots__:
        setattr(made, name, getattr(one, name))
    return made


def receive(launch: Launch, into: Mapping[int, Destination]) -> list[np.ndarray]:
    """Arrays for a launch's outputs: the caller's own where the kernel can write there, else fresh ones."""
    return [
        into[i].view if i in into and into[i].direct else empty(shape, dtype)
        for i, (shape, dtype) in enumerate(launch.made)
    ]
