"""One call of a layer function under plain NumPy: bind, check, flatten, map over the batch, restore.

This is the reference meaning of the compiled call, written to be read; speed is not its aim.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from layerc.annotations import (
    NO_DEFAULT,
    ArrayType,
    Signature,
    current_real,
    real,
)
from layerc.runtime.arrays import MASKED
from layerc.runtime.fields import boolean, integer, number
from layerc.runtime.generator import Random
from layerc.runtime.inferred import inferred
from layerc.runtime.seeds import seed_of
from layerc.runtime.shapes import Binding, Group, Shape, batch_size, bind

# True while the body of a layer function runs: a layer called from there is a plain helper call.
running: ContextVar[bool] = ContextVar("running", default=False)

Body = Callable[..., Any]
_REALS = (np.dtype(np.float32), np.dtype(np.float64))


def bind_arguments(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Name the arguments of a call and fill in defaults. TypeError for too many, missing or unknown ones."""
    name, slots = signature.name, signature.slots
    if len(args) > len(slots):
        config = ", ".join(a.name for a in signature.having("config"))
        hint = f"; configuration ({config}) is passed by keyword" if config else ""
        raise TypeError(f"{name} takes {len(slots)} arrays by position, got {len(args)}{hint}")
    values = dict(zip((a.name for a in slots), args))
    known = {a.name for a in signature.arguments}
    for key, value in kwargs.items():
        if key not in known:
            raise TypeError(f"{name} has no argument {key!r}; it takes {', '.join(sorted(known)) or 'none'}")
        if key in values:
            raise TypeError(f"{name}: argument {key!r} is given twice")
        values[key] = value
    values = {key: _as_numpy(value) for key, value in values.items()}
    for argument in signature.arguments:
        if argument.name in values:
            continue
        if argument.role == "random":
            values[argument.name] = None  # a fresh one
        elif argument.default is NO_DEFAULT:
            raise TypeError(f"{name}: argument {argument.name!r} is missing")
        else:
            values[argument.name] = argument.default
    return values


def _as_numpy(value: Any) -> Any:
    """Arrays of other libraries as NumPy's, sharing memory; all else as it is."""
    foreign = hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray | np.generic)
    return np.from_dlpack(value) if foreign else value


def check_config(where: str, name: str, kind: Any, value: Any) -> Any:
    """A configuration scalar as its annotated type; TypeError naming layer, argument and value."""
    try:
        return {int: integer, float: number, bool: boolean}[kind](value)
    except TypeError as error:
        raise TypeError(f"{where}: argument {name!r} {error}, not {value!r}") from None
    except ValueError as error:
        raise ValueError(f"{where}: argument {name!r} {error}") from None


def choose_real(where: str, arrays: Sequence[tuple[str, ArrayType, Any]]) -> np.dtype:
    """float32 or float64, as the `real` arrays of a call say; TypeError if they mix.

    Python numbers and lists have no say, as in NumPy; float64 if nothing else says so.
    """
    said: dict[np.dtype, str] = {}
    for name, kind, value in arrays:
        if kind.element == real and isinstance(value, np.ndarray | np.generic) and value.dtype in _REALS:
            said.setdefault(value.dtype, name)
    if len(said) > 1:
        both = " and ".join(f"{name!r} is {dtype}" for dtype, name in said.items())
        raise TypeError(f"{where}: {both}; all real arrays of a call must have one type")
    return next(iter(said), np.dtype(np.float64))


def take_array(where: str, name: str, kind: ArrayType, value: Any, chosen: np.dtype) -> np.ndarray:
    """A fresh C-contiguous array for an argument: the caller's is never written. TypeError by type."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{where}: argument {name!r}: {MASKED}")
    wanted = chosen if kind.element == real else kind.element.dtype
    typed = isinstance(value, np.ndarray | np.generic)
    array = np.asarray(value)
    weak = not typed and np.can_cast(array.dtype, wanted, "same_kind") and array.dtype != object
    if array.dtype != wanted and not weak:
        expected = "float32 or float64" if kind.element == real else str(wanted)
        got = str(array.dtype) if typed else repr(value)
        raise TypeError(f"{where}: argument {name!r}: expected {expected}, got {got}")
    return np.array(array, dtype=wanted, order="C", copy=True)


def call(
    signature: Signature,
    body: Body,
    values: Mapping[str, Any],
    *,
    batched: bool = False,
    batch: bool | None = None,
    ranks: Sequence[int] | None = None,
    config: Mapping[str, Any] | None = None,
    shared: Sequence[tuple[str, ArrayType, np.ndarray]] = (),
) -> Any:
    """Run a layer function on arrays, as one example or mapped over a batch.

    values: one per argument, by name; batched: the function itself takes the whole batch; batch, ranks: see
    `batch_size`; config and shared: the fields of a class layer (values; name, type, array of params and
    states), which take part in types and shapes but are no arguments.
    """
    where = signature.name
    arrays = [(a.name, a.type, values[a.name]) for a in signature.having("input", "param", "state")]
    dtype = choose_real(where, [*arrays, *shared])
    ready = {name: take_array(where, name, kind, value, dtype) for name, kind, value in arrays}
    settings = {a.name: check_config(where, a.name, a.type, values[a.name]) for a in signature.having("config")}
    seeds = {a.name: seed_of(where, a.name, values[a.name]) for a in signature.having("random")}
    inputs = [(a.name, a.type.shape, ready[a.name].shape) for a in signature.inputs]
    size = None if batched else batch_size(inputs, where, batch, ranks)

    example = _Example(signature, body, dtype, seeds, settings, {**(config or {}), **settings}, shared)
    if size is None:
        results = example.run(ready)
    elif size == 0:
        zeros = {a.name: np.zeros(ready[a.name].shape[1:], ready[a.name].dtype) for a in signature.inputs}
        results = [np.empty((0, *y.shape), y.dtype) for y in example.run({**ready, **zeros})]
    else:
        names = [a.name for a in signature.inputs]
        rows = [example.run({**ready, **{name: ready[name][i] for name in names}}, i) for i in range(size)]
        results = [np.stack(column) for column in zip(*rows)]
    outputs = tuple(y[()] for y in results)
    return outputs[0] if example.single else outputs


class _Example:
    """A layer function with its settings: `run` evaluates it on the arrays of one example.

    seeds: of its random generators, for this evaluation; each example draws numbers of its own.
    """

    def __init__(
        self,
        signature: Signature,
        body: Body,
        dtype: np.dtype,
        seeds: Mapping[str, int],
        settings: Mapping[str, Any],
        config: Mapping[str, Any],
        shared: Sequence[tuple[str, ArrayType, np.ndarray]],
    ) -> None:
        self.signature, self.body, self.dtype = signature, body, dtype
        self.seeds, self.settings, self.config, self.shared = seeds, settings, config, shared
        self.single = signature.single

    def run(self, arrays: Mapping[str, np.ndarray], number: int = 0) -> list[np.ndarray]:
        """number: of the example in its batch."""
        signature = self.signature
        declared = [(name, kind.shape, np.shape(value)) for name, kind, value in self.shared]
        declared += [(a.name, a.type.shape, arrays[a.name].shape) for a in signature.arguments if a.name in arrays]
        binding = bind(declared, self.config, signature.name)
        flat = {name: flattened(arrays[name], shape) for name, shape, _ in declared if name in arrays}
        generators = {n: Random(seed, example=number, dtype=self.dtype) for n, seed in self.seeds.items()}
        result = run_body(self.body, self.dtype, {**flat, **generators, **self.settings})
        return self._outputs(result, binding, declared)

    def _outputs(
        self, result: Any, binding: Binding, declared: Sequence[tuple[str, Shape, tuple[int, ...]]]
    ) -> list[np.ndarray]:
        signature = self.signature
        if signature.outputs is None:
            self.single = not isinstance(result, tuple)
            values = (result,) if self.single else tuple(result)
            kinds = inferred.get() if len(inferred.get()) == len(values) else ("real",) * len(values)
            return [self._inferred(y, kind, declared) for y, kind in zip(values, kinds)]
        expected = len(signature.outputs) + signature.memory
        if isinstance(result, dict):
            names = [name for name, _ in signature.outputs]
            if sorted(map(str, result)) != sorted(names):
                got = ", ".join(map(str, result))
                raise ValueError(f"{signature.name}: returned {got}, its return annotation names {', '.join(names)}")
            result = tuple(result[name] for name in names)
        elif signature.single and not signature.memory:
            result = (result,)
        if not isinstance(result, tuple) or len(result) not in (expected, expected - signature.memory):
            got = f"{len(result)} values" if isinstance(result, tuple) else "one value"
            raise ValueError(f"{signature.name}: returned {got}, its return annotation says {expected}")
        return [
            restore(signature.name, name, kind, np.asarray(y), binding, self.dtype)
            for (name, kind), y in zip(signature.outputs, result)
        ]

    def _inferred(self, value: Any, kind: str, declared: Sequence[tuple[str, Shape, tuple[int, ...]]]) -> np.ndarray:
        """An output without annotation: floats become `real`, unless they are known to be of another `kind`; an axis
        as long as a flat group unfolds."""
        y = np.asarray(value)
        if y.dtype.kind == "f" and kind not in ("f32", "f64"):
            y = y.astype(self.dtype, copy=False)
        for _, shape, actual in declared:
            at = shape.group
            if at is None or len(actual) == shape.rank:
                continue
            flat = shape.flatten(actual)
            places = [at] if y.shape == flat else [i for i, n in enumerate(y.shape) if n == flat[at]]
            if len(places) == 1:
                axes = actual[at : at + 1 + len(actual) - shape.rank]
                return y.reshape(*y.shape[: places[0]], *axes, *y.shape[places[0] + 1 :])
        return y


def run_body(body: Body, dtype: np.dtype, values: Mapping[str, Any]) -> Any:
    """Call the user's function with layers inside it as plain helpers and `real` as the chosen type."""
    tokens = running.set(True), current_real.set(dtype)
    try:
        return body(**values)
    finally:
        running.reset(tokens[0])
        current_real.reset(tokens[1])


def flattened(array: np.ndarray, shape: Shape) -> Any:
    """What the function sees: groups as one axis, a private copy, a NumPy scalar for rank 0."""
    flat = array.reshape(shape.flatten(array.shape)).copy()
    return flat if shape.rank else flat[()]


def restore(where: str, name: str, kind: ArrayType, value: np.ndarray, binding: Binding, dtype: np.dtype) -> np.ndarray:
    """An output as declared: checked against the binding, groups unfolded, cast to its element type."""
    shape, wanted = kind.shape, dtype if kind.element == real else kind.element.dtype
    if value.ndim != shape.rank:
        raise ValueError(f'{where}: output {name!r}: declared "{shape}", but the function returned {value.shape}')
    unfolded: list[int] = []
    for dim, size in zip(shape.dims, value.shape):
        axes = binding.get(dim.name) if isinstance(dim, Group) else None
        unfolded += axes if isinstance(axes, tuple) else (size,)
    try:
        result = value.reshape(unfolded)
        # Names that only outputs have are bound here; all others are checked.
        binding.update(bind([(name, shape, result.shape)], binding, where))
    except ValueError:
        sizes = {n: binding[n] for n in sorted(shape.names & binding.keys())}
        raise ValueError(
            f'{where}: output {name!r}: declared "{shape}" with {sizes}, but the function returned {value.shape}'
        ) from None
    return result.astype(wanted, copy=False)
