"""`class SReLU(Layer)`: a layer with learnables, states and configuration, under plain NumPy."""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from layerc.annotations import NO_DEFAULT, ArrayType, Param, Signature, State, read_signature, real
from layerc.calls import bind_arguments, call, choose_real, flattened, run_body, take_array
from layerc.init import Initializer, zeros
from layerc.runtime import fields, seeds, streams
from layerc.runtime.arrays import real_type
from layerc.runtime.shapes import Binding, bind, shape_given


def config(default: Any = fields.REQUIRED, *, check: Callable[[Any], object] | None = None) -> Any:
    """A configuration field: `kernel: int = config(3, check=lambda k: k > 0)`. Without default: required."""
    return fields.field(default, check=check)


@dataclass(frozen=True)
class ArrayField:
    """A `Param` or `State` field of a layer class; `init` is None where nothing says how it starts."""

    name: str
    type: ArrayType
    init: Initializer | None


class Layer:
    """Base of class layers.

    Fields are annotations: `Param[T]` with an `init`, `State[T]`, configuration. `predict` is the inference
    form, `forward` the training form; if one is absent the other serves both. With `batched = True`:
    the methods take the whole batch; `backward = None`: no gradient.

        s = SReLU(name="s1")
        s.initialize((64, 28, 28))       # shapes of one example (of a whole batch if batched)
        y = s(x)                         # predict; s.forward(x) trains: it updates the states
        s.params["left_slope"][...] = 0.2
    """

    batched: ClassVar[bool] = False
    backward: ClassVar[Any] = "auto"
    param_fields: ClassVar[dict[str, ArrayField]] = {}
    state_fields: ClassVar[dict[str, ArrayField]] = {}
    config_fields: ClassVar[dict[str, tuple[Any, fields.Field]]] = {}
    _written: ClassVar[dict[str, Callable[..., Any]]] = {}  # predict, forward, ... as the user wrote them

    name: str
    params: dict[str, np.ndarray]
    states: dict[str, np.ndarray]
    _running: bool  # this is the `self` inside a method
    _assignable: set[str]  # the fields that the running method may assign
    _shapes: list[tuple[int, ...]] | None  # of the inputs, as `initialize` got them
    _dtype: np.dtype
    _binding: Binding
    _seed: int
    _evaluations: int  # that drew random numbers without being given a seed

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._written = dict(cls._written)
        for method in ("predict", "forward", "initialize", "reset_state"):
            written = cls.__dict__.get(method)
            if written is not None:
                cls._written[method] = written
                setattr(cls, method, _public(method, written))
        _read_fields(cls)

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        """name: default the class name in lower case. Unknown keyword: TypeError; bad value: ValueError."""
        cls = type(self)
        self.__dict__.update(name=cls.__name__.lower() if name is None else name, params={}, states={})
        self.__dict__.update(
            _running=False,
            _assignable=set(),
            _shapes=None,
            _dtype=np.dtype(np.float32),
            _binding={},
            _seed=0,
            _evaluations=0,
        )
        for key in settings:
            if key not in cls.config_fields:
                raise TypeError(f"{self._where}: no field {key!r}; it has {_listed(cls.config_fields)}")
        for field, (kind, spec) in cls.config_fields.items():
            if field not in settings and fields.is_required(spec):
                raise TypeError(f"{self._where}: field {field!r} is required: {cls.__name__}({field}=...)")
            value = settings[field] if field in settings else fields.default_of(spec)
            self.__dict__[field] = fields.checked(self._where, field, kind, spec, value)

    @property
    def _where(self) -> str:
        return f"{type(self).__name__} {self.name!r}"

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, by field."""
        return {field: self.__dict__[field] for field in self.config_fields}

    def __setattr__(self, key: str, value: Any) -> None:
        """Configuration is fixed; a method may assign states (kept by `forward`), `initialize` params too."""
        if key not in self._assignable:
            kinds: dict[str, Mapping[str, object]] = {
                "a param": self.param_fields,
                "a state": self.state_fields,
                "configuration": self.config_fields,
            }
            kind = next((kind for kind, names in kinds.items() if key in names), "no field of the layer")
            where = "here" if self._running else 'outside; use .params["..."] and .states["..."] for arrays'
            raise AttributeError(f"{self._where}: {key!r} is {kind} and cannot be assigned {where}")
        self.__dict__[key] = value

    # -- initial values ------------------------------------------------------------------------------------

    def initialize(self, *input_shapes: Sequence[int], seed: int = 0, dtype: DTypeLike = np.float32) -> None:
        """Make the params and states for inputs of these shapes: of one example, whole ones if batched.

        Each field draws from its own stream, of `seed`, layer and field: one more does not shift the others.
        dtype: float32 or float64. ValueError for shapes that do not fit.
        """
        signature = self.signature
        if len(input_shapes) != len(signature.inputs):
            wanted = ", ".join(f'{a.name} "{a.type.shape}"' for a in signature.inputs)
            raise ValueError(f"{self._where}: initialize takes one shape for each input ({wanted})")
        shapes = [shape_given(self._where, a.name, shape) for a, shape in zip(signature.inputs, input_shapes)]
        element, seed = real_type(self._where, dtype), seeds.whole(self._where, seed)
        declared = [(a.name, a.type.shape, shape) for a, shape in zip(signature.inputs, shapes)]
        binding = bind(declared, self.config, self._where)
        if self._running:  # super().initialize() in a method: what has an init is drawn before it runs
            return
        every = {**self.param_fields, **self.state_fields}
        drawn = {name: self._draw(field, binding, seed, element) for name, field in every.items()}
        first = self._by_hand("initialize", shapes, element, {n: v for n, v in drawn.items() if v is not None})
        values = {n: self._settle(f, first.get(n), binding, seed, element) for n, f in every.items()}
        self.__dict__.update(
            params={name: values[name] for name in self.param_fields},
            states={name: values[name] for name in self.state_fields},
        )
        self.__dict__.update(_shapes=shapes, _dtype=element, _binding=binding, _seed=seed, _evaluations=0)

    def reset_state(self) -> None:
        """Give every state its first value again, or what the layer's own `reset_state` assigns."""
        if self._shapes is None:
            raise ValueError(f"{self._where}: initialize it first")
        if self._running:
            return
        if "reset_state" in self._written:
            values = self._by_hand("reset_state", (), self._dtype, {**self.params, **self.states})
        else:
            values = {name: field.init for name, field in self.state_fields.items()}
        for name, field in self.state_fields.items():
            known = {**self._binding, **_sizes(field, self.states[name])}
            self.states[name] = self._settle(field, values[name], known, self._seed, self._dtype)

    def _draw(self, field: ArrayField, binding: Binding, seed: int, dtype: np.dtype) -> np.ndarray | None:
        """The first value that a field's init gives; None without one, or if its shape is not known."""
        try:
            return self._settle(field, field.init, binding, seed, dtype)
        except ValueError:
            if "initialize" in self._written:
                return None
            raise

    def _by_hand(
        self, method: str, args: Sequence[Any], dtype: np.dtype, values: Mapping[str, np.ndarray]
    ) -> dict[str, Any]:
        """Run the user's own `initialize` or `reset_state`, if any, on fields of these values."""
        written = self._written.get(method)
        if written is None:
            return dict(values)
        states = set(self.state_fields)
        inner = self._inside(states | self.param_fields.keys() if method == "initialize" else states)
        inner.__dict__.update({name: np.copy(value) for name, value in values.items()})
        run_body(lambda: written(inner, *args), dtype, {})
        every = (*self.param_fields, *self.state_fields)
        return {name: inner.__dict__[name] for name in every if name in inner.__dict__}

    def _settle(self, field: ArrayField, value: Any, binding: Binding, seed: int, dtype: np.dtype) -> np.ndarray:
        """A first value as an array of the field's type and shape; `value` is an init or array-like."""
        element = dtype if field.type.element == real else field.type.element.dtype
        if value is None:
            raise ValueError(f"{self._where}: {field.name!r} has no init, and initialize does not assign it")
        if isinstance(value, Initializer):
            shape = _field_shape(self._where, field, binding)
            return value.draw(streams.generator(seed, self.name, field.name), shape, element)
        array = np.array(value, dtype=element)
        bind([(field.name, field.type.shape, array.shape)], binding, self._where)
        return array

    # -- calls ---------------------------------------------------------------------------------------------

    @functools.cached_property
    def signature(self) -> Signature:
        """Of `predict` (of `forward`, if there is no predict), without the fields."""
        return self._signature("predict")

    def _signature(self, method: str) -> Signature:
        return read_signature(self._body(method), type(self).__name__, method=True)

    def _body(self, method: str) -> Callable[..., Any]:
        other = {"predict": "forward", "forward": "predict"}[method]
        body = self._written.get(method) or self._written.get(other)
        if body is None:
            raise TypeError(f"{self._where}: a layer class defines predict or forward")
        return body

    def __call__(self, *args: Any, batch: bool | None = None, **kwargs: Any) -> Any:
        """Inference; the same as `predict`. States are read, never written."""
        return self._call("predict", args, kwargs, batch)[0]

    def predict(self, *args: Any, batch: bool | None = None, **kwargs: Any) -> Any:
        """Inference on one example or a batch. States are read, never written."""
        return self._call("predict", args, kwargs, batch)[0]

    def forward(self, *args: Any, batch: bool | None = None, **kwargs: Any) -> Any:
        """The training form: as `predict`, and states assigned by the layer are kept."""
        result, states = self._call("forward", args, kwargs, batch)
        self.states.update(states)
        return result

    def _call(
        self, method: str, args: Sequence[Any], kwargs: Mapping[str, Any], batch: bool | None
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Evaluate; returns the outputs and the states after it."""
        self._check_fields()
        signature, written = self._signature(method), self._body(method)
        values = bind_arguments(signature, args, kwargs)
        for generator in (a.name for a in signature.having("random") if values[a.name] is None):
            self.__dict__["_evaluations"] += 1
            values[generator] = seeds.nth(seeds.root(self._seed, self.name), self._evaluations)
        held = [(f.name, f.type, self.params[f.name]) for f in self.param_fields.values()]
        held += [(f.name, f.type, self.states[f.name]) for f in self.state_fields.values()]
        arrays = [(a.name, a.type, values[a.name]) for a in signature.having("input", "param", "state")]
        dtype = choose_real(signature.name, [*arrays, *held])
        shared = [(name, kind, take_array(self._where, name, kind, v, dtype)) for name, kind, v in held]
        after: list[dict[str, np.ndarray]] = []

        def body(**arguments: Any) -> Any:
            inner = self._inside(assignable=set(self.state_fields))
            for name, kind, array in shared:
                inner.__dict__[name] = flattened(array, kind.shape)
            result = written(inner, **arguments)
            after.append({field: inner.__dict__[field] for field in self.state_fields})
            return result

        result = call(
            signature,
            body,
            values,
            batched=type(self).batched,
            batch=batch,
            ranks=None if self._shapes is None else [len(shape) for shape in self._shapes],
            config=self.config,
            shared=shared,
        )
        before = {name: array for name, _, array in shared if name in self.state_fields}
        return result, self._new_states(before, after)

    def as_written(
        self, method: str, fields: Mapping[str, Any], values: Mapping[str, Any], dtype: Any
    ) -> tuple[Any, dict[str, Any]]:
        """What a method returns for the values that it sees, with `real` as dtype; and the fields after it."""
        inner = self._inside(assignable=set(self.state_fields))
        inner.__dict__.update(fields)
        body = type(self).backward if method == "backward" else self._body(method)
        result = run_body(lambda **arguments: body(inner, **arguments), dtype, values)
        return result, {name: inner.__dict__.get(name) for name in self.state_fields}

    def _check_fields(self) -> None:
        for kind, declared, values in (
            ("param", self.param_fields, self.params),
            ("state", self.state_fields, self.states),
        ):
            for name in (n for n in declared if n not in values):
                raise ValueError(f"{self._where}: {kind} {name!r} has no value; call initialize first")
            for name in (n for n in values if n not in declared):
                raise ValueError(f"{self._where}: no {kind} {name!r}; it has {_listed(declared)}")

    def _new_states(
        self, before: Mapping[str, np.ndarray], after: Sequence[Mapping[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """The states a call leaves. Examples run side by side: each sees the old states; all must agree."""
        states = {}
        for name, old in before.items():
            values = [np.asarray(one[name]) for one in after]
            if any(not np.array_equal(v, values[0], equal_nan=v.dtype.kind == "f") for v in values):
                raise ValueError(
                    f"{self._where}: the examples of a batch leave different values of state {name!r}; "
                    "a layer that updates a state from its input is batched = True"
                )
            new = values[0] if values else old
            if new.size != old.size:
                raise ValueError(f"{self._where}: state {name!r} has shape {old.shape}, was assigned {new.shape}")
            states[name] = np.array(new, dtype=old.dtype).reshape(old.shape)
        return states

    def _inside(self, assignable: set[str]) -> "Layer":
        """The `self` that the user's methods see: fields are arrays, and what may be assigned is."""
        inner = copy.copy(self)
        inner.__dict__.update(_running=True, _assignable=assignable)
        return inner

    def __repr__(self) -> str:
        settings = "".join(f", {field}={value!r}" for field, value in self.config.items())
        return f"{type(self).__name__}(name={self.name!r}{settings})"


def _public(method: str, written: Callable[..., Any]) -> Callable[..., Any]:
    """The method as users call it; called from inside a layer, it is the plain function."""
    outer = getattr(Layer, method)

    @functools.wraps(written)
    def call_(self: Layer, *args: Any, **kwargs: Any) -> Any:
        return (written if self._running else outer)(self, *args, **kwargs)

    return call_


def _read_fields(cls: type[Layer]) -> None:
    """Sort the annotated fields of a class into params, states and configuration; inherited ones first."""
    params, states, configs = dict(cls.param_fields), dict(cls.state_fields), dict(cls.config_fields)
    for name, annotation in inspect.get_annotations(cls, eval_str=True).items():
        default = cls.__dict__.get(name, NO_DEFAULT)
        if getattr(annotation, "__origin__", annotation) is ClassVar:
            continue
        if isinstance(annotation, Param | State):
            if default is not NO_DEFAULT and not isinstance(default, Initializer):
                raise TypeError(f"{cls.__name__}: {name} = {default!r} must be an init, as in init.zeros()")
            unsaid = zeros() if isinstance(annotation, State) else None
            first = unsaid if default is NO_DEFAULT else default
            home = params if isinstance(annotation, Param) else states
            home[name] = ArrayField(name, annotation.type, first)
        else:
            configs[name] = annotation, default if fields.is_field(default) else fields.Field(default)
        if default is not NO_DEFAULT:
            delattr(cls, name)
    cls.param_fields, cls.state_fields, cls.config_fields = params, states, configs


def _field_shape(where: str, field: ArrayField, binding: Binding) -> tuple[int, ...]:
    try:
        return field.type.shape.evaluate(binding)
    except KeyError as error:
        raise ValueError(
            f'{where}: the shape "{field.type.shape}" of {field.name!r} needs {error.args[0]}, '
            "which neither the inputs nor the configuration give"
        ) from None


def _sizes(field: ArrayField, array: np.ndarray) -> Binding:
    return bind([(field.name, field.type.shape, array.shape)], {}, field.name)


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"
