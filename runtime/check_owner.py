"""A layer as its users hold it, compiled function or class layer: what the validity suite asks of either."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from layerc.runtime.call import CompiledFunction, Described
    from layerc.runtime.check import Report
    from layerc.runtime.compiled import CompiledClass

Arrays = dict[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]


class FunctionOwner:
    def __init__(self, function: "CompiledFunction") -> None:
        self.compiled: Described = function
        self._function = function

    def first(self, shapes: Shapes, dtype: np.dtype) -> Arrays:
        """Params and states that the layer itself gives a first value: none."""
        return {}

    def call(self, arrays: Arrays, options: Mapping[str, Any], batch: bool | None) -> Any:
        given = {**arrays, **options}
        ordered = [given.pop(n) for n in self.compiled.core.positional]  # a name may be that of an option (`out`)
        return self._function(*ordered, **given, batch=batch)

    def reference(self, arrays: Arrays, options: Mapping[str, Any]) -> Any:
        return self._function.reference(**arrays, **options)


class ClassOwner:
    """Works on new layers of the same configuration: the given one stays as it is."""

    def __init__(self, layer: "CompiledClass") -> None:
        self.compiled: Described = layer.compiled
        self._layer = layer

    def first(self, shapes: Shapes, dtype: np.dtype) -> Arrays:
        """Params and states after `initialize` on inputs of these shapes."""
        fresh = self._initialized(shapes, dtype)
        return {
            **{n: a.copy() for n, a in fresh.params.items()},
            **{n: a.copy() for n, a in fresh.states.items()},
        }

    def call(self, arrays: Arrays, options: Mapping[str, Any], batch: bool | None) -> Any:
        return self._with(arrays)(*self._inputs(arrays), batch=batch, **self._random(options))

    def reference(self, arrays: Arrays, options: Mapping[str, Any]) -> Any:
        return self._with(arrays).reference(*self._inputs(arrays), **self._random(options))

    def _inputs(self, arrays: Arrays) -> list[np.ndarray]:
        return [arrays[n] for n in self.compiled.core.input_names]

    def _random(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The seed, if predict draws."""
        takes = self.compiled.core.methods["predict"]["config"]
        return {n: v for n, v in options.items() if n == self.compiled.core.random and n in takes}

    def states(self, arrays: Arrays, shapes: Shapes, dtype: np.dtype, batch: bool | None) -> str:
        """What is wrong with the states, "" if nothing is: predict leaves them, forward keeps their shapes
        and types, reset_state gives the first values."""
        layer = self._initialized(shapes, dtype)
        first = {n: a.copy() for n, a in layer.states.items()}
        layer.params.update({n: arrays[n] for n in layer.params})
        inputs = [arrays[n] for n in self.compiled.core.input_names]
        layer(*inputs, batch=batch)
        if (changed := _differing(first, layer.states)) is not None:
            return f"predict writes {changed}"
        if "backward" in self.compiled.core.methods:
            for _ in range(2):
                layer.vjp(*inputs, batch=batch)
        for name, a in layer.states.items():
            if (a.shape, a.dtype) != (first[name].shape, first[name].dtype):
                return f"{name} becomes {a.dtype}{list(a.shape)}"
            if a.dtype.kind == "f" and not np.isfinite(a).all():
                return f"{name} becomes NaN or infinite"
        layer.reset_state()
        if (changed := _differing(first, layer.states)) is not None:
            return f"reset_state does not give {changed} its first value"
        return ""

    def _fresh(self) -> "CompiledClass":
        return type(self._layer)(name=self._layer.name, **self._layer.config)

    def _initialized(self, shapes: Shapes, dtype: np.dtype) -> "CompiledClass":
        fresh = self._fresh()
        fresh.initialize(*(shapes[n] for n in self.compiled.core.input_names), dtype=dtype)
        return fresh

    def _with(self, arrays: Arrays) -> "CompiledClass":
        layer, core = self._fresh(), self.compiled.core
        layer.params.update({n: a for n, a in arrays.items() if core.roles[n] == "param"})
        layer.states.update({n: a for n, a in arrays.items() if core.roles[n] == "state"})
        return layer


Owner = FunctionOwner | ClassOwner


def _differing(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> str | None:
    return next((n for n in a if a[n].tobytes() != b[n].tobytes()), None)


def check_layer(
    owner: Owner,
    shapes: Sequence[Any],
    named: Mapping[str, Any],
    config: Mapping[str, Any],
    observations: int,
) -> "Report":
    """The report on a layer. shapes: of the arrays in order, of one example (whole ones if batched); named:
    by name. Sizes that are not given are chosen. TypeError, ValueError for shapes the layer does not take."""
    from layerc.runtime.check import check
    from layerc.runtime.check_subject import Subject

    core = owner.compiled.core
    takes = core.array_names if isinstance(owner, FunctionOwner) else core.input_names
    if len(shapes) > len(takes):
        raise TypeError(f"{core.name}: check takes {len(takes)} shapes ({', '.join(takes)}), got {len(shapes)}")
    given = {**dict(zip(takes, shapes)), **named}
    whole = {n: (int(s),) if hasattr(s, "__index__") else tuple(map(int, s)) for n, s in given.items()}
    return check(Subject(owner, config, whole), observations)
