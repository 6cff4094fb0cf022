"""Compiled class layers: `s = L.SReLU(name="s1"); s.initialize((64, 28, 28)); y = s(x)`.

The Net reaches the kernels through `.compiled.run` and `.compiled.pull`; what is here is a layer used on
its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from layerc.runtime import arrays as ar
from layerc.runtime import initializers, seeds, streams
from layerc.runtime.acceleration import AUTO
from layerc.runtime.call import Described, evaluate
from layerc.runtime.characteristics import Characteristic
from layerc.runtime.core import Call, Core
from layerc.runtime.kernel import Case
from layerc.runtime.known import Known
from layerc.runtime.named_arrays import NamedArrays
from layerc.runtime.pullback import Pullback, no_gradient
from layerc.runtime.shapes import bind, shape_given

if TYPE_CHECKING:
    from layerc.runtime.check import Report
    from layerc.runtime.package import Package

_INITIALIZERS: dict[str, Callable[..., Any]] = {
    "uniform": initializers.Uniform,
    "normal": initializers.Gaussian,
    "zeros": lambda: initializers.Constant(0.0),
    "ones": lambda: initializers.Constant(1.0),
    "constant": initializers.Constant,
    "xavier": initializers.Xavier,
    "he": initializers.He,
}


class Gradients(NamedTuple):
    """What a class layer's pullback gives: one gradient for each input, and the params' by name."""

    inputs: tuple[Any, ...]
    params: dict[str, Any]


class ClassPullback(Pullback):
    """`pullback(dy)`: the gradients at one evaluation of a class layer; it may be called again."""

    __slots__ = ()

    def __call__(self, *cotangents: Any, out: "Gradients | tuple[Any, Any] | None" = None, **unknown: Any) -> Gradients:
        """cotangents: one for each output, of its shape and type; None stands for zeros. out: as the
        result, of arrays to write to. ValueError for shapes and counts, TypeError for types."""
        if unknown:
            raise self._no_argument(unknown)
        core = self._case.core
        inputs, params = len(core.input_names), core.gradient_params
        given = None if out is None else (*out[0], *(out[1].get(name) for name in params))
        found = super().__call__(*cotangents, out=given)
        return Gradients(found[:inputs], dict(zip(params, found[inputs:])))


class CompiledClass:
    """Base of the class layers of built packages: configuration, which never changes, and arrays, which do.

    Class attributes: `compiled`, with `run` and `pull` for whole batches; `signature`, `source`,
    `gradient_source`, `c_source`. Attributes: `name`, `bottoms`, `tops`, the layer's own fields; `params`
    and `states`, arrays by name.
    """

    compiled: ClassVar[Described]
    signature: ClassVar[str]
    source: ClassVar[str]
    gradient_source: ClassVar[str]
    c_source: ClassVar[str]

    name: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    config: dict[str, Any]
    net_options: dict[str, Any]
    params: NamedArrays
    states: NamedArrays
    is_source, is_sink, has_param, has_neuron = Characteristic(), Characteristic(), Characteristic(), Characteristic()
    can_do_bp, is_inplace, has_loss, has_stats = Characteristic(), Characteristic(), Characteristic(), Characteristic()
    _where: str
    _ranks: tuple[int, ...] | None
    _initialized: tuple[Sequence[tuple[int, ...]], int, np.dtype] | None  # the shapes, seed and type of `initialize`
    _first_states: dict[str, np.ndarray]
    _seed: int
    _evaluations: int
    _known: Known

    def __init__(
        self, name: str | None = None, bottoms: Iterable[str] = (), tops: Iterable[str] = (), **fields: Any
    ) -> None:
        """fields: the configuration, and what a net reads: `param_key`, `neuron` and, for each param `p`,
        `p_init, p_regu, p_cons, p_lr, p_decay`. TypeError for unknown or missing ones, ValueError for bad values."""
        core = self.compiled.core
        name = core.name.lower() if name is None else name
        where = f"{core.name} {name!r}"
        options = {key: value for key, value in fields.items() if key not in core.settings.names}
        if options:
            self._know(where, options)
        config = core.settings.read(where, {k: v for k, v in fields.items() if k not in options}, "field")
        wires = {"bottoms": _names(bottoms), "tops": _names(tops)}
        self.__dict__.update(config, name=name, **wires, config=config, _where=where, _ranks=None, _initialized=None)
        self.__dict__["_first_states"] = {}
        self.__dict__["params"] = NamedArrays(where, core, "param")
        self.__dict__["states"] = NamedArrays(where, core, "state")
        self.__dict__.update(_seed=seeds.root(0, name), _evaluations=0)
        self.__dict__["_known"] = Known(core, self.params, self.states)
        self.__dict__["net_options"] = options
        if options:  # each in its one form, or refused, as for any layer of a net; None: the default
            from layerc.runtime.compiled_layer import as_layer

            made, given = as_layer(self), [key for key, value in options.items() if value is not None]
            self.__dict__["net_options"] = {key: getattr(made, key) for key in given}

    def _know(self, where: str, options: Mapping[str, Any]) -> None:
        """TypeError for keywords that a net knows nothing of either."""
        from layerc.runtime.compiled_layer import net_keywords  # the nets are loaded where they are used

        known = [*self.compiled.core.settings.names, *net_keywords(type(self))]
        for key in options:
            if key not in known:
                raise TypeError(f"{where}: no field {key!r}; it takes {', '.join(known) or 'none'}")

    def __setattr__(self, key: str, value: Any) -> None:
        hint = '; use .params["..."] and .states["..."] for arrays' if key in self.compiled.core.array_names else ""
        raise AttributeError(f"{self._where}: {key!r} cannot be assigned: a layer is configuration{hint}")

    # -- first values ------------------------------------------------------------------------------------

    def initialize(self, *shapes: Sequence[int] | int, seed: int = 0, dtype: DTypeLike = np.float32) -> None:
        """Make params and states for inputs of these shapes: of one example, or whole ones if the layer is
        batched.

        Every array is drawn from its own stream, a function of seed, layer name and array name: one more
        param does not shift the others. dtype: float32 or float64. ValueError for shapes that do not fit.
        """
        core, where = self.compiled.core, self._where
        element, seed = ar.real_type(f"{where}: initialize", dtype), seeds.whole(f"{where}: initialize", seed)
        if len(shapes) != len(core.input_names):
            wanted = ", ".join(f'{name} "{core.declared[name]}"' for name in core.input_names)
            raise ValueError(f"{where}: initialize takes {len(core.input_names)} shapes ({wanted}), got {len(shapes)}")
        examples = [shape_given(where, name, shape) for name, shape in zip(core.input_names, shapes)]
        declared = [(name, core.declared[name], shape) for name, shape in zip(core.input_names, examples)]
        binding = bind(declared, self.config, where)
        first = self._first(examples, binding, seed, element)
        for arrays in (self.params, self.states):
            arrays.replace({name: first[name] for name in arrays.allowed if name in first})
        states = {name: array.copy() for name, array in self.states.items()}
        ranks = None if core.batched else tuple(map(len, examples))
        self._known.forget()
        self.__dict__.update(_first_states=states, _ranks=ranks, _initialized=(examples, seed, element))
        self.__dict__.update(_seed=seeds.root(seed, self.name), _evaluations=0)

    def reset_state(self) -> None:
        """Give every state its first value again. ValueError before `initialize`, if the layer has a `reset_state`
        of its own: it may need what that was told."""
        if "reset_state" in self.compiled.manifest.get("by_hand", ()):
            if self._initialized is None:
                raise ValueError(f"{self._where}: initialize it first")
            shapes, seed, dtype = self._initialized
            reference = self._new_reference()
            reference.initialize(*shapes, seed=seed, dtype=dtype)
            reference.params.update({name: array.copy() for name, array in self.params.complete().items()})
            reference.states.update({name: array.copy() for name, array in self.states.complete().items()})
            reference.reset_state()
            self.states.replace(reference.states)
        else:
            self.states.replace({name: array.copy() for name, array in self._first_states.items()})

    def _first(
        self, examples: Sequence[tuple[int, ...]], binding: Any, seed: int, element: np.dtype
    ) -> dict[str, np.ndarray]:
        """All arrays by name; without those that nothing in the layer gives a value."""
        compiled, core = self.compiled, self.compiled.core
        if "initialize" in compiled.manifest.get("by_hand", ()):
            reference = self._new_reference()
            reference.initialize(*examples, seed=seed, dtype=element)
            first = {**reference.params, **reference.states}
            for name in first:
                given = self.net_options.get(f"{name}_init")
                if given is not None:
                    rng = streams.generator(seed, self.name, name)
                    first[name] = self._drawn(name, given, rng, first[name].shape, first[name].dtype)
            return first
        first = {}
        for parameter in compiled.manifest["parameters"]:
            name, start = parameter["name"], self._start(parameter)
            if start is None:
                continue
            dtype = element if core.dtypes[name] == "real" else ar.DTYPES[core.dtypes[name]]
            try:
                shape = core.declared[name].evaluate(binding)
            except KeyError as error:
                raise ValueError(f"{self._where}: initialize: nothing gives {error.args[0]} of {name!r}") from None
            rng = streams.generator(seed, self.name, name)
            first[name] = self._drawn(name, start, rng, shape, dtype)
        return first

    def _drawn(self, name: str, start: Any, rng: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        try:
            drawn: np.ndarray = start.draw(rng, shape, dtype)
        except ValueError as error:
            raise ValueError(f"{self._where}: initialize: {name!r}: {error}") from None
        return drawn

    def _start(self, parameter: Mapping[str, Any]) -> Any:
        """The initializer of a param or state: the user's, else the file's; None where neither gives one."""
        role, start = self.compiled.core.roles[parameter["name"]], parameter.get("init")
        given = self.net_options.get(f"{parameter['name']}_init")
        if role not in ("param", "state") or given is not None:
            return given
        if start is None:
            return initializers.Constant(0.0) if role == "state" else None
        return _INITIALIZERS[start["name"]](*start["args"])

    # -- calls -------------------------------------------------------------------------------------------

    def __call__(
        self, /, *inputs: Any, out: Any = None, batch: bool | None = None, acceleration: str = AUTO, **options: Any
    ) -> Any:
        """Inference: `predict` on one example or a batch. States are read, never written.

        After `initialize` the ranks tell a batch from an example. Arguments and errors as for compiled
        functions.
        """
        known = self._known
        last = known.last
        if last is not None and out is None and batch is None and acceleration is AUTO and not options:
            outputs = last.quick_predict(*inputs, *known.now())
            if outputs is not NotImplemented:
                return outputs if last.predict.all_public else last.predict.result(outputs)
        return self._evaluate("predict", inputs, out, batch, options, acceleration)[0]

    def vjp(
        self, /, *inputs: Any, out: Any = None, batch: bool | None = None, acceleration: str = AUTO, **options: Any
    ) -> tuple[Any, ClassPullback]:
        """Training: `forward`, which may update the states, and the pullback at the states before it."""
        core = self.compiled.core
        if "backward" not in core.methods:
            raise no_gradient(self._where)
        known = self._known
        last = known.last
        if last is not None and out is None and batch is None and acceleration is AUTO and not options:
            read = (*inputs, *known.now())
            made = last.quick_forward(*read)
            if made is not NotImplemented:
                launch = last.forward
                outputs = (made,) if launch.single else made
                for at, name in core.new_states:
                    self.states.bind(name, outputs[at])
                result = made if launch.all_public else launch.result(outputs)
                return result, ClassPullback(self._where, last, read, outputs)
        result, case, arrays, outputs, call = self._evaluate("forward", inputs, out, batch, options, acceleration)
        return result, ClassPullback(self._where, case, arrays, outputs, call)

    def _evaluate(
        self,
        method: str,
        inputs: Sequence[Any],
        out: Any,
        batch: bool | None,
        options: Mapping[str, Any],
        acceleration: str,
    ) -> tuple[Any, Case, Sequence[np.ndarray], Sequence[np.ndarray], Call | None]:
        """The result, and what a pullback needs: the case, all arrays and outputs, the call."""
        compiled, known = self.compiled, self._known
        if acceleration is not AUTO and compiled.core.acceleration(self._where, acceleration) == "none":
            compiled = compiled.interpreted
        core = compiled.core
        inputs, options = self._without_generator(core, method, inputs, options)
        found = None if options or compiled is not self.compiled else known.find(inputs, batch)
        call: Call | None = None
        arrays: Sequence[np.ndarray]
        if found is not None:
            (case, addresses), arrays = found, (*inputs, *known.now())
        else:
            call = self._prepare(core, method, inputs, self._batch(inputs, batch), options)
            if compiled is self.compiled:
                known.learn(inputs, batch, call)
            case, arrays, addresses = call.case, call.arrays, core.addresses(call.arrays)
        launch = case.predict if method == "predict" else case.forward
        if out is None and call is None:
            result, outputs = core.start(launch, addresses)
        else:
            result, outputs = evaluate(self._where, launch, arrays, addresses, out, call)
        if method == "forward":
            for at, name in core.new_states:
                self.states.bind(name, outputs[at])
        return result, case, arrays, outputs, call

    def reference(self, *inputs: Any, batch: bool | None = None, **options: Any) -> Any:
        """The NumPy meaning of a call: `predict` of the layer file itself, on these params and states."""
        batch = self._batch(inputs, batch)
        return self._reference()(*inputs, **({} if batch is None else {"batch": batch}), **options)

    def _draws(self, method: str) -> bool:
        """Whether the method takes the random generator."""
        return self.compiled.core.random in self.compiled.core.method(method)["config"]

    def _batch(self, inputs: Sequence[Any], batch: bool | None) -> bool | None:
        """Whether the ranks mean a batch, where `initialize` has told those of an example."""
        if batch is not None or self._ranks is None:
            return batch
        return any(getattr(array, "ndim", 0) == rank + 1 for array, rank in zip(inputs, self._ranks))

    def _prepare(
        self, core: Core, method: str, inputs: Sequence[Any], batch: bool | None, options: Mapping[str, Any]
    ) -> Call:
        """options: only the random generator is taken; it is asked for the seed of this evaluation, or the layer is:
        its seeds follow from its own and from how often it drew before."""
        given, seed = dict(options), None
        if core.random is not None and self._draws(method):
            value = given.pop(core.random, None)
            if value is None:
                self.__dict__["_evaluations"] += 1
                value = seeds.nth(self._seed, self._evaluations)
            seed = seeds.seed_of(self._where, core.random, value)
        values = core.inputs(self._where, inputs, given)
        for arrays in (self.params, self.states):
            values.update(arrays.complete())
        return core.prepare(self._where, values, self.config, batch, self._ranks, seed)

    def _without_generator(
        self, core: Core, method: str, inputs: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The inputs alone: a generator given by position, as the signature has it, goes to the options."""
        at, names = core.generator_at, core.input_names
        if at is None or not self._draws(method) or len(inputs) + sum(n in names for n in options) <= len(names):
            return inputs, options
        if core.random in options:
            raise TypeError(f"{self._where}: argument {core.random!r} is given twice")
        return (*inputs[:at], *inputs[at + 1 :]), {**options, str(core.random): inputs[at]}

    def _new_reference(self) -> Any:
        return getattr(self.compiled.package.source_module(), self.compiled.name)(name=self.name, **self.config)

    def _reference(self) -> Any:
        reference = self._new_reference()
        reference.params.update({name: array.copy() for name, array in self.params.complete().items()})
        reference.states.update({name: array.copy() for name, array in self.states.complete().items()})
        return reference

    def check(self, *shapes: Any, observations: int = 3, **named: Any) -> "Report":
        """The validity suite, on new layers of this configuration: `print(s.check((64, 28, 28)))`.

        shapes: of the inputs of one example, as for `initialize`, or by name; what is left out is chosen.
        """
        from layerc.runtime.check_owner import ClassOwner, check_layer

        return check_layer(ClassOwner(self), shapes, named, self.config, observations)

    # -- the rest ----------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "params": dict(self.params), "states": dict(self.states)}
        del state["_known"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for role in ("param", "state"):
            arrays = NamedArrays(self._where, self.compiled.core, role)
            arrays.replace(state[f"{role}s"])
            self.__dict__[f"{role}s"] = arrays
        self.__dict__["_known"] = Known(self.compiled.core, self.params, self.states)

    def __repr__(self) -> str:
        fields = "".join(f", {name}={value!r}" for name, value in {**self.config, **self.net_options}.items())
        return f"{type(self).__name__}(name={self.name!r}{fields})"


def class_of(package: "Package", core: Core) -> type[CompiledClass]:
    """The class that a package's class layer is derived from."""
    compiled = Described(package, core)
    texts = {name: getattr(compiled, name) for name in ("signature", "source", "gradient_source", "c_source")}
    names = {"compiled": compiled, "__module__": package.name, "__doc__": compiled.__doc__, **texts}
    return type(core.name, (CompiledClass,), names)


def _names(wires: Iterable[str]) -> tuple[str, ...]:
    return (wires,) if isinstance(wires, str) else tuple(wires)
