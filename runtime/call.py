"""Compiled functions: `L.mish(x)`, `L.mish.vjp(x)`; and whole batches by name, for the Net."""

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime import arrays as ar
from layerc.runtime.core import Call, Core
from layerc.runtime.generator import Random
from layerc.runtime.kernel import Launch, receive
from layerc.runtime.outputs import inferred
from layerc.runtime.pullback import Pullback, no_gradient
from layerc.runtime.seeds import seed_of
from layerc.runtime.specialise import CacheInfo

if TYPE_CHECKING:
    from layerc.runtime.check import Report
    from layerc.runtime.package import Package

__all__ = ["CompiledFunction", "Described", "Pullback"]


class Described:
    """What a compiled layer tells of itself, and its kernels on whole batches, by name."""

    core: Core
    package: "Package"

    def __init__(self, package: "Package", core: Core) -> None:
        self.package, self.core = package, core
        self.__doc__ = "\n\n".join(filter(None, [self.signature, self.manifest.get("doc")]))

    @property
    def name(self) -> str:
        return self.core.name

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The layer's entry in the package's manifest."""
        return self.core.manifest

    @property
    def signature(self) -> str:
        return str(self.manifest["signature"])

    @property
    def source(self) -> str:
        """The layer as its author wrote it."""
        return str(self.manifest["sources"]["source"])

    @property
    def gradient_source(self) -> str:
        """Its gradient, in the language of layer files."""
        return str(self.manifest["sources"]["gradient"])

    @property
    def c_source(self) -> str:
        """The C of its kernels."""
        return str(self.manifest["sources"]["c"])

    def run(
        self,
        method: str,
        arrays: Mapping[str, np.ndarray],
        config: Mapping[str, Any],
        batched: bool = True,
        *,
        out: Mapping[str, np.ndarray] | None = None,
        seed: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Run "predict" or "forward" on inputs, params and states; all outputs by name.

        batched: axis 0 of the inputs is the batch (in a layer of whole batches it always is). out: arrays to
        write outputs to, by name. seed: of the layer's random numbers.
        """
        names = self.core.array_names
        case = self.core.by_name(names, self._all(names, arrays), config, batched)
        return self._launch(case.launch(method).seeded(seed), arrays, out)

    def pull(
        self,
        arrays: Mapping[str, np.ndarray],
        config: Mapping[str, Any],
        want: str = "all",
        batched: bool = True,
        *,
        out: Mapping[str, np.ndarray] | None = None,
        seed: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Run backward; the gradients by the names of what they are of.

        arrays: inputs, params, states, outputs of the forward ("y") and cotangents ("dy"): those that give
        the shapes, and those that backward reads. want: "params" or "inputs" leaves the others out, and
        their work where there is a kernel for that. out: arrays to write gradients to, by the names of what
        they are of.
        """
        core = self.core
        if "backward" not in core.methods:
            raise no_gradient(core.name)
        names = tuple(name for name in core.all_names if name in arrays)
        case = core.by_name(names, self._all(names, arrays), config, batched)
        of = {output["name"]: output["of"] for output in core.method("backward", want)["outputs"]}
        given = None if out is None else {name: out[of[name]] for name in of if of[name] in out}
        found = self._launch(case.launch("backward", want).seeded(seed), arrays, given)
        role = {"params": "param", "inputs": "input"}.get(want)
        return {of[n]: array for n, array in found.items() if role is None or core.roles[of[n]] == role}

    def _all(self, names: Sequence[str], arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        try:
            return [arrays[name] for name in names]
        except KeyError as error:
            raise TypeError(f"{self.name}: argument {error.args[0]!r} is missing") from None

    def _launch(
        self, launch: Launch, arrays: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray] | None
    ) -> dict[str, np.ndarray]:
        library = self.core.library
        read = self._all(launch.arguments, arrays)
        into = {}
        if out:
            given = [out.get(name) for name, _, _ in launch.specs]
            found = ar.destinations(self.name, launch.specs, given, read)
            into = {i: one for i, one in enumerate(found) if one is not None}
        outputs = receive(launch, into)
        launch(list(map(library.address, read)), list(map(library.from_buffer, outputs)))
        for i, one in into.items():
            outputs[i] = one.finish(outputs[i])
        return {name: array for (name, _, _), array in zip(launch.specs, outputs)}


class CompiledFunction(Described):
    """A layer function of a built package."""

    def __call__(self, *arrays: Any, out: Any = None, batch: bool | None = None, **options: Any) -> Any:
        """Evaluate: on one example where the ranks are the declared ones, on a batch where they are one more.

        arrays: inputs, params and states in the order of the signature, of any kind with `__dlpack__`; the
        same kind comes out. batch: True maps axis 0, False does not, whatever the ranks say. out: an array,
        or a tuple of them, to write to. options: the configuration; arrays by name too.

        ValueError for shapes, TypeError for types; IndexError, AssertionError, ZeroDivisionError from
        inside the layer. All name the layer, and the argument or the line.
        """
        core = self.core
        found = core.find(arrays, batch, options)
        if found is not None:
            case, addresses = found
            if out is None:
                return core.start(case.predict, addresses)[0]
            return evaluate(core.name, case.predict, arrays, addresses, out)[0]
        call = self._prepare(arrays, batch, options)
        addresses = core.addresses(call.arrays)
        return evaluate(core.name, call.case.predict, call.arrays, addresses, out, call)[0]

    def vjp(self, *arrays: Any, out: Any = None, batch: bool | None = None, **options: Any) -> tuple[Any, Pullback]:
        """Evaluate, and return the result with its pullback. Arguments and errors as in a call.

        NotImplementedError if the author disabled the gradient.
        """
        core = self.core
        if "backward" not in core.methods:
            raise no_gradient(core.name)
        found, call = core.find(arrays, batch, options), None
        if found is not None:
            case, addresses = found
            if out is None:
                result, written, _ = core.start(case.forward, addresses)
            else:
                result, written, _ = evaluate(core.name, case.forward, arrays, addresses, out)
        else:
            call = self._prepare(arrays, batch, options)
            case, addresses = call.case, core.addresses(call.arrays)
            result, written, _ = evaluate(core.name, case.forward, call.arrays, addresses, out, call)
        return result, Pullback(core.name, case, addresses, written, call)

    def specialize(self, dtype: Any = np.float32, **shapes: Any) -> None:
        """Compile this function once more, for arrays of these very shapes: `L.mish.specialize(x=(32, 64, 28, 28))`.

        Calls of these shapes take it from now on; every other shape is served as before, and nothing is traced.
        shapes: of every array by name, as in a call; configuration that differs from its defaults, too. Variants
        are kept in a cache on disk (LAYERC_CACHE, ~/.cache/layerc) under what they are made of; of one function,
        the latest 16. ValueError, TypeError as for a call; RuntimeError where there is no C compiler.
        """
        core = self.core
        config = {name: shapes.pop(name) for name in list(shapes) if name in core.settings.names}
        blank = {n: np.zeros(shape, _blank(core.dtypes.get(n, "real"), dtype)) for n, shape in shapes.items()}
        values, rest = core.sort(core.name, (), {**blank, **config})
        values.pop(core.random or "", None)
        case = core.prepare(core.name, values, core.settings.read(core.name, rest)).case
        core.specialize(case, self.package.c_text())

    def cache_info(self) -> CacheInfo:
        """size, hits, misses and maxsize of the variants made by `specialize`."""
        return self.core.variants.info()

    def reference(self, *arrays: Any, **options: Any) -> Any:
        """The NumPy meaning: the layer file itself, run. Arguments as in a call, but for `out`."""
        core = self.core
        if core.random is not None:  # a gradient file's functions are plain ones: they take the generator itself
            values, options = core.sort(core.name, arrays, options)
            seed, arrays = seed_of(core.name, core.random, values.pop(core.random, None)), ()
            narrow = any(getattr(a, "dtype", None) == np.float32 for a in values.values())
            options = {**values, **options, core.random: Random(seed, dtype=np.float32 if narrow else np.float64)}
        token = inferred.set(tuple(o["dtype"] for o in core.methods["predict"]["outputs"] if o["role"] == "output"))
        try:
            return getattr(self.package.source_module(), self.name)(*arrays, **options)
        finally:
            inferred.reset(token)

    def check(self, *shapes: Any, observations: int = 3, **named: Any) -> "Report":
        """The validity suite: `report = L.mish.check((4, 5))`, `assert report.passed`, `print(report)`.

        shapes: of the arrays, in order or by name, for one example; what is left out is chosen. Configuration
        by name. observations: examples in a batch.
        """
        from layerc.runtime.check_owner import FunctionOwner, check_layer

        config = {name: named.pop(name) for name in list(named) if name in self.core.settings.names}
        return check_layer(FunctionOwner(self), shapes, named, config, observations)

    def _prepare(self, args: Sequence[Any], batch: bool | None, options: Mapping[str, Any]) -> Call:
        core = self.core
        values, rest = core.sort(core.name, args, options)
        seed = None
        if core.random is not None:
            seed = seed_of(core.name, core.random, values.pop(core.random, None))
        call = core.prepare(core.name, values, core.settings.read(core.name, rest), batch, seed=seed)
        core.learn(args, batch, options, call)
        return call

    def __reduce__(self) -> Any:
        return _of_package, (self.package.name, self.name)

    def __repr__(self) -> str:
        return f"<compiled {self.signature}>"


def _of_package(package: str, name: str) -> Any:
    return getattr(importlib.import_module(package), name)


def evaluate(
    where: str,
    launch: Launch,
    arrays: Sequence[np.ndarray],
    addresses: Sequence[Any],
    out: Any = None,
    call: Call | None = None,
) -> tuple[Any, Sequence[Any], Sequence[np.ndarray]]:
    """Run a forward kernel: the result for the caller, the addresses of all outputs, and all outputs.

    arrays, addresses: what it reads; out: the caller's arrays for the result, or None; call: as it was
    checked, where not everything in it was a plain array.
    """
    export = None
    if call is not None:
        launch, export = launch.seeded(call.seed), call.export
    library, into = launch.library, {}
    if out is not None:
        found = ar.destinations(where, [launch.specs[i] for i in launch.public], out, arrays)
        into = {i: one for i, one in zip(launch.public, found) if one is not None}
    outputs = receive(launch, into)
    written = list(map(library.from_buffer, outputs))
    launch(addresses if launch.keep is None else [addresses[i] for i in launch.keep], written)
    results = []
    for i in launch.public:
        if i in into:
            results.append(into[i].finish(outputs[i]))
        else:
            results.append(outputs[i] if export is None else export(outputs[i]))
    return (results[0] if len(results) == 1 else tuple(results)), written, outputs


def _blank(declared: str, real: Any) -> np.dtype:
    return np.dtype(real) if declared == "real" else ar.DTYPES[declared]
