"""Compiled functions: `L.mish(x)`, `L.mish.vjp(x)`; and whole batches by name, for the Net."""

import importlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime import arrays as ar
from layerc.runtime.acceleration import AUTO, is_none
from layerc.runtime.core import Call, Core, key_of, settings_key
from layerc.runtime.generator import Random
from layerc.runtime.inferred import inferred
from layerc.runtime.kernel import Case, Launch, Named, is_public, receive
from layerc.runtime.pullback import Pullback, no_gradient
from layerc.runtime.quick import quick
from layerc.runtime.recording import rehearsed
from layerc.runtime.seeds import seed_of
from layerc.runtime.shapes import shape_given
from layerc.runtime.specialise import CacheInfo

if TYPE_CHECKING:
    from typing import Self

    from layerc.runtime.check import Report
    from layerc.runtime.package import Package
    from layerc.runtime.tape import Tape

__all__ = ["CompiledFunction", "Described", "Pullback"]


class Described:
    """What a compiled layer tells of itself, and its kernels on whole batches, by name."""

    core: Core
    package: "Package"

    def __init__(self, package: "Package", core: Core) -> None:
        self.package, self.core = package, core
        self.__doc__ = "\n\n".join(filter(None, [self.signature, self.manifest.get("doc")]))

    @cached_property
    def interpreted(self) -> "Self":
        """The same with kernels that are NumPy: what runs for acceleration="none"."""
        other = type(self)(self.package, self.package.interpreted(self.name))
        other.__dict__["interpreted"] = other
        return other

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
        if is_none() and self.interpreted is not self:
            return self.interpreted.run(method, arrays, config, batched, out=out, seed=seed)
        names = self.core.array_names
        if seed is None:
            found = self._quick((method, "all"), names, arrays, config, batched, out)
            if found is not None:
                return found
        stand_in = rehearsed(arrays.values())
        if stand_in is not None:
            return self._write_down(stand_in.tape, (method, "all"), names, arrays, config, batched, out or {}, seed)
        case = self.core.by_name(names, self._all(names, arrays), config, batched)
        launch = case.launch(method)
        made = [name for name, _, _ in launch.specs]
        self._learn(case, (method, "all"), launch, names, arrays, made, [(name, i) for i, name in enumerate(made)])
        return self._launch(launch.seeded(seed), arrays, out)

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
        if is_none() and self.interpreted is not self:
            return self.interpreted.pull(arrays, config, want, batched, out=out, seed=seed)
        core = self.core
        if "backward" not in core.methods:
            raise no_gradient(core.name)
        names = tuple([name for name in core.all_names if name in arrays])
        if seed is None:
            ready = self._quick(("backward", want), names, arrays, config, batched, out)
            if ready is not None:
                return ready
        of = {output["name"]: output["of"] for output in core.method("backward", want)["outputs"]}
        given = None if out is None else {name: out[of[name]] for name in of if of[name] in out}
        stand_in = rehearsed(arrays.values())
        if stand_in is None:
            case = core.by_name(names, self._all(names, arrays), config, batched)
            launch = case.launch("backward", want)
            made = [of[name] for name, _, _ in launch.specs]
            wanted = [(name, i) for i, name in enumerate(made) if self._is_wanted(name, want)]
            self._learn(case, ("backward", want), launch, names, arrays, made, wanted)
            found = self._launch(launch.seeded(seed), arrays, given)
        else:
            method = ("backward", want)
            found = self._write_down(stand_in.tape, method, names, arrays, config, batched, given or {}, seed)
        return {of[n]: array for n, array in found.items() if self._is_wanted(of[n], want)}

    def _is_wanted(self, name: str, want: str) -> bool:
        """Whether `pull` gives the gradient of that argument."""
        role = {"params": "param", "inputs": "input"}.get(want)
        return role is None or self.core.roles[name] == role

    def _quick(
        self,
        method: tuple[str, str],
        names: tuple[str, ...],
        arrays: Mapping[str, np.ndarray],
        config: Mapping[str, Any],
        batched: bool,
        out: Mapping[str, np.ndarray] | None,
    ) -> dict[str, np.ndarray] | None:
        """A call like one before, by shapes and types: nothing is checked twice. None for any other."""
        try:
            given = [arrays[name] for name in names]
            case = self.core.known((names, tuple(map(key_of, given)), settings_key(config), batched))
            (run, into), single, made, results = case.named[method]
            if out is None:
                outputs = run(*given)
            else:
                outputs = [out[name] for name in made]
                if into(*given, *outputs) is NotImplemented:
                    return None
                return {name: outputs[i] for name, i in results}
        except (KeyError, AttributeError, TypeError):
            return None
        if outputs is NotImplemented:
            return None
        if single:
            return {results[0][0]: outputs} if results else {}
        return {name: outputs[i] for name, i in results}

    @staticmethod
    def _learn(
        case: Case,
        method: tuple[str, str],
        launch: Launch,
        names: tuple[str, ...],
        arrays: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        results: Sequence[tuple[str, int]],
    ) -> None:
        """Let `_quick` find calls like this one. names: of the arrays that tell the case; outputs: the kernel's, as the
        caller calls them."""
        if set(launch.arguments) <= set(names):
            read = tuple(names.index(name) for name in launch.arguments)
            found = quick(launch, [(arrays[n].shape, arrays[n].dtype) for n in names], read)
            case.named[method] = Named(found, launch.single, tuple(outputs), tuple(results))

    def _all(self, names: Sequence[str], arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        try:
            return [arrays[name] for name in names]
        except KeyError as error:
            raise TypeError(f"{self.name}: argument {error.args[0]!r} is missing") from None

    def _launch(
        self,
        launch: Launch,
        arrays: Mapping[str, np.ndarray],
        out: Mapping[str, np.ndarray] | None,
    ) -> dict[str, np.ndarray]:
        library = self.core.library
        read = self._all(launch.arguments, arrays)
        into = {}
        if out:
            given = [out.get(name) for name, _, _ in launch.specs]
            found = ar.destinations(self.name, launch.specs, given, tuple(zip(launch.arguments, read)), launch.over)
            into = {i: one for i, one in enumerate(found) if one is not None}
        outputs = receive(launch, into)
        launch(list(map(library.address, read)), list(map(library.from_buffer, outputs)))
        for i, one in into.items():
            outputs[i] = one.finish(outputs[i])
        return {name: array for (name, _, _), array in zip(launch.specs, outputs)}

    def _write_down(
        self,
        tape: "Tape",
        method: tuple[str, str],
        names: Sequence[str],
        arrays: Mapping[str, Any],
        config: Mapping[str, Any],
        batched: bool,
        out: Mapping[str, Any],
        seed: Any,
    ) -> dict[str, Any]:
        """In a rehearsal (`layerc.runtime.rehearse`): the call goes to the tape. method: its name, and what of it."""
        from layerc.runtime.stand_in import StandIn, as_stand_in
        from layerc.runtime.symbolic import Scalar

        core = self.core
        plain = {key: 1 if isinstance(value, Scalar) else value for key, value in config.items()}
        case = core.by_name(names, self._all(names, arrays), plain, batched)
        spec, launch = core.method(*method), case.launch(*method).seeded(seed)
        scalars = list(launch.scalars)
        for at, key in enumerate(spec["config"], len(scalars) - len(spec["config"])):
            scalars[at] = config[key] if isinstance(config.get(key), Scalar) else scalars[at]
        read = [as_stand_in(tape, array).view for array in self._all(launch.arguments, arrays)]
        into = {i: out[name].view for i, (name, _, _) in enumerate(launch.specs) if name in out}
        over = [{launch.arguments.index(name) for name in names} for names in launch.over]
        made = tape.kernel(self.package, spec["kernels"][case.real], scalars, read, launch.made, into, over)
        return {name: StandIn(tape, view) for (name, _, _), view in zip(launch.specs, made)}


class CompiledFunction(Described):
    """A layer function of a built package."""

    def __call__(
        self, /, *arrays: Any, out: Any = None, batch: bool | None = None, acceleration: str = AUTO, **options: Any
    ) -> Any:
        """Evaluate: on one example where the ranks are the declared ones, on a batch where they are one more.

        arrays: inputs, params and states in the order of the signature, of any kind with `__dlpack__`; the
        same kind comes out. batch: True maps axis 0, False does not, whatever the ranks say. out: an array,
        or a tuple of them, to write to. acceleration: "none" runs the layer file under NumPy instead of C, for
        debugging. options: the configuration; arrays by name too.

        ValueError for shapes, TypeError for types; IndexError, AssertionError, ZeroDivisionError from
        inside the layer. All name the layer, and the argument or the line.
        """
        if acceleration is not AUTO:
            return self._under(acceleration)(*arrays, out=out, batch=batch, **options)
        core = self.core
        last = core.last
        if last is not None and out is None and batch is None and not options:
            outputs = last.quick_predict(*arrays)
            if outputs is not NotImplemented:
                return outputs if last.predict.all_public else last.predict.result(outputs)
        found = core.find(arrays, batch, options)
        if found is not None:
            case, addresses = found
            if out is None:
                return core.start(case.predict, addresses)[0]
            return evaluate(core.name, case.predict, arrays, addresses, out)[0]
        stand_in = rehearsed(arrays)
        if stand_in is not None:
            return self._rehearse(stand_in.tape, "predict", arrays)[0]
        call = self._prepare(arrays, batch, options)
        addresses = core.addresses(call.arrays)
        return evaluate(core.name, call.case.predict, call.arrays, addresses, out, call)[0]

    def vjp(
        self, /, *arrays: Any, out: Any = None, batch: bool | None = None, acceleration: str = AUTO, **options: Any
    ) -> tuple[Any, Pullback]:
        """Evaluate, and return the result with its pullback. Arguments and errors as in a call.

        NotImplementedError if the author disabled the gradient.
        """
        if acceleration is not AUTO:
            return self._under(acceleration).vjp(*arrays, out=out, batch=batch, **options)
        core = self.core
        if "backward" not in core.methods:
            raise no_gradient(core.name)
        last = core.last
        if last is not None and out is None and batch is None and not options:
            made = last.quick_forward(*arrays)
            if made is not NotImplemented:
                launch = last.forward
                result = made if launch.all_public else launch.result(made)
                return result, Pullback(core.name, last, arrays, (made,) if launch.single else made)
        found, call = core.find(arrays, batch, options), None
        if found is not None:
            case, addresses = found
            if out is None:
                result, outputs = core.start(case.forward, addresses)
            else:
                result, outputs = evaluate(core.name, case.forward, arrays, addresses, out)
        elif (stand_in := rehearsed(arrays)) is not None:
            return self._rehearse(stand_in.tape, "vjp" if "vjp" in core.methods else "forward", arrays)
        else:
            call = self._prepare(arrays, batch, options)
            case, arrays = call.case, tuple(call.arrays)
            result, outputs = evaluate(core.name, case.forward, arrays, core.addresses(arrays), out, call)
        return result, Pullback(core.name, case, arrays, outputs, call)

    def _under(self, acceleration: str) -> "CompiledFunction":
        return self.interpreted if self.core.acceleration(self.core.name, acceleration) == "none" else self

    def _rehearse(self, tape: "Tape", method: str, arrays: Sequence[Any]) -> tuple[Any, Any]:
        """In a rehearsal: the result and the pullback, both on the tape."""
        core = self.core
        names, given = core.array_names, dict(zip(core.array_names, arrays))
        made = self._write_down(tape, (method, "all"), names, given, {}, True, {}, None)
        results = [made[name] for name in core.public]

        def pullback(*cotangents: Any) -> tuple[Any, ...]:
            back = "pullback" if "pullback" in core.methods else "backward"
            every = {**given, **made, **dict(zip(core.cotangent_names, cotangents))}
            found = self._write_down(tape, (back, "all"), names, every, {}, True, {}, None)
            gradients = {o["of"]: found[o["name"]] for o in core.method(back)["outputs"]}
            return tuple(gradients.get(name) for name in core.gradient_names)

        return (results[0] if len(results) == 1 else tuple(results)), pullback

    def specialize(self, dtype: Any = np.float32, **shapes: Any) -> None:
        """Compile this function once more, for arrays of these very shapes: `L.mish.specialize(x=(32, 64, 28, 28))`.

        Calls of these shapes take it from now on; every other shape is served as before, and nothing is traced.
        shapes: of every array by name, as in a call; configuration that differs from its defaults, too. Variants
        are kept in a cache on disk (LAYERC_CACHE, ~/.cache/layerc) under what they are made of; of one function,
        the latest 16. ValueError, TypeError as for a call; RuntimeError where there is no C compiler.
        """
        core = self.core
        config = {name: shapes.pop(name) for name in list(shapes) if name in core.settings.names}
        real = ar.real_type(f"{core.name}: specialize", dtype)
        made = {n: shape_given(core.name, n, shape) for n, shape in shapes.items()}
        blank = {n: np.zeros(shape, _blank(core.dtypes.get(n, "real"), real)) for n, shape in made.items()}
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
        token = inferred.set(tuple(o["dtype"] for o in core.methods["predict"]["outputs"] if is_public(o)))
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
) -> tuple[Any, Sequence[np.ndarray]]:
    """Run a forward kernel: the result for the caller, and all outputs.

    arrays, addresses: what it reads; out: the caller's arrays for the result, or None; call: as it was
    checked, where not everything in it was a plain array.
    """
    export = None
    if call is not None:
        launch, export = launch.seeded(call.seed), call.export
    library, into = launch.library, {}
    if out is not None:
        named = tuple(zip(launch.all_arguments, arrays))
        over = [launch.over[i] for i in launch.public]
        found = ar.destinations(where, [launch.specs[i] for i in launch.public], out, named, over)
        into = {i: one for i, one in zip(launch.public, found) if one is not None}
    outputs = receive(launch, into)
    addresses = addresses if launch.keep is None else [addresses[i] for i in launch.keep]
    launch(addresses, list(map(library.from_buffer, outputs)))
    results = []
    for i in launch.public:
        if i in into:
            results.append(into[i].finish(outputs[i]))
        else:
            results.append(outputs[i] if export is None else export(outputs[i]))
    return (results[0] if len(results) == 1 else tuple(results)), outputs


def _blank(declared: str, real: Any) -> np.dtype:
    return np.dtype(real) if declared == "real" else ar.DTYPES[declared]
