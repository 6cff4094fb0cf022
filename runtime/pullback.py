"""The gradient at one evaluation: what `vjp` returns besides the outputs."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from layerc.runtime import arrays as ar
from layerc.runtime.core import Call
from layerc.runtime.kernel import Case, receive


class Pullback:
    """`pullback(dy)`: the gradients at one evaluation; it may be called again.

    It holds on to those inputs and outputs that the gradient reads: changing them in place changes the
    gradient.
    """

    __slots__ = ("_case", "_exports", "_kept", "_launch", "_plain", "_shared", "_where")

    def __init__(
        self,
        where: str,
        case: Case,
        arrays: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        call: Call | None = None,
    ) -> None:
        """arrays, outputs: all arrays of the call and all outputs of the forward, contiguous.
        call: as it was checked, where not everything in it was a plain array."""
        launch = case.backward
        if launch is None:
            raise no_gradient(where)
        self._where, self._case, self._plain = where, case, True
        if call is not None:
            launch = launch.seeded(call.seed)
            self._exports, self._shared = call.exports, call.shared
            self._plain = not call.shared and call.export is None
        self._launch = launch
        if launch.keep is None:
            self._kept = arrays
        else:
            known = (*arrays, *outputs)
            self._kept = [known[i] for i in launch.keep]

    def __call__(self, *cotangents: Any, out: Any = None, **unknown: Any) -> tuple[Any, ...]:
        """One gradient for each input and param, in the order of the signature; None where there is none.

        cotangents: one for each output, of its shape and type; None stands for zeros. out: a tuple like the
        result, of arrays to write to, or None for one to be made. ValueError for shapes and counts,
        TypeError for types.
        """
        if unknown:
            raise self._no_argument(unknown)
        if out is None and self._plain:
            case = self._case
            gradients: tuple[Any, ...] = case.quick_backward(*self._kept, *cotangents)
            if gradients is not NotImplemented:
                core = case.core
                if core.only_gradient:
                    return (gradients,)
                if core.all_gradients:
                    return gradients
                found = gradients if isinstance(gradients, tuple) else (gradients,)
                return tuple([None if i is None else found[i] for i in core.gradient_slots])
        return self._carefully(cotangents, out)

    def _no_argument(self, unknown: Mapping[str, Any]) -> TypeError:
        takes = ", ".join(name for name, _, _ in self._case.cotangents)
        return TypeError(f"{self._where}: pullback has no argument {next(iter(unknown))!r}; it takes {takes} and out=")

    def _addresses(self, cotangents: Sequence[np.ndarray]) -> list[Any]:
        """The arguments of the kernel, from what was kept and all cotangents."""
        arguments = list(map(self._launch.library.from_buffer, [*self._kept, *cotangents]))
        order = self._launch.order
        return arguments if order is None else [arguments[i] for i in order]

    def _carefully(self, cotangents: Sequence[Any], out: Any) -> tuple[Any, ...]:
        """With everything checked and converted."""
        launch, slots = self._launch, self._case.core.gradient_slots
        library = launch.library
        shared, exports = self._of_scalars(), self._kinds()
        arrays = self._checked(cotangents)
        into = {} if out is None else self._destinations(out, arrays, shared)
        gradients = receive(launch, {i: one for i, one in into.items() if i not in shared})
        launch(self._addresses(arrays), list(map(library.from_buffer, gradients)))
        for scalar in shared:
            gradients[scalar] = np.asarray(gradients[scalar].sum(axis=0))
        results: list[Any] = []
        for slot, export in zip(slots, exports):
            if slot is None:
                results.append(None)
            elif slot in into:
                results.append(into[slot].finish(gradients[slot]))
            else:
                results.append(gradients[slot] if export is None else export(gradients[slot]))
        return tuple(results)

    def _checked(self, cotangents: Sequence[Any]) -> list[np.ndarray]:
        where, specs = f"{self._where}: pullback", self._case.cotangents
        if len(cotangents) != len(specs):
            names = ", ".join(name for name, _, _ in specs)
            raise ValueError(f"{where}: expected {len(specs)} gradients ({names}), got {len(cotangents)}")
        return [_cotangent(where, spec, value) for spec, value in zip(specs, cotangents)]

    def _destinations(
        self, out: Any, cotangents: Sequence[np.ndarray], shared: Container[int]
    ) -> dict[int, ar.Destination]:
        """The caller's arrays, by the kernel's output that goes there."""
        where, slots, launch = f"{self._where}: pullback", self._case.core.gradient_slots, self._launch
        given = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(slots):
            raise ValueError(f"{where}: out: expected {len(slots)} arrays, got {len(given)}")
        places = [(slot, array) for slot, array in zip(slots, given) if slot is not None]
        specs = []
        for slot, _ in places:
            name, shape, dtype = launch.specs[slot]
            specs.append((name, shape[1:] if slot in shared else shape, dtype))
        read = [("", array) for array in (*self._kept, *cotangents)]
        found = ar.destinations(where, specs, [array for _, array in places], read)
        return {slot: one for (slot, _), one in zip(places, found) if one is not None}

    def _of_scalars(self) -> set[int]:
        """The kernel's outputs that are gradients of a scalar shared by the batch, and have to be summed."""
        if self._plain:
            return set()
        core = self._case.core
        names = {core.array_names[i] for i in self._shared}
        slots = zip(core.gradient_names, core.gradient_slots)
        return {slot for name, slot in slots if name in names and slot is not None}

    def _kinds(self) -> list[ar.Export | None]:
        """For each gradient, how it is given in the kind of what it is of."""
        core = self._case.core
        if self._plain:
            return [None] * len(core.gradient_slots)
        exports = dict(zip(core.array_names, self._exports))
        return [exports[name] for name in core.gradient_names]


def _cotangent(where: str, spec: ar.Spec, value: Any) -> np.ndarray:
    name, shape, dtype = spec
    if value is None:
        return np.zeros(shape, dtype)
    if ar.is_weak(value):
        array = ar.weak(where, name, value, dtype)
    else:
        array = ar.fit(where, name, ar.take(where, name, value), dtype)
    if array.shape != shape:
        raise ValueError(f"{where}: argument {name!r}: expected shape {shape}, got {array.shape}")
    return array


def no_gradient(where: str) -> NotImplementedError:
    return NotImplementedError(f"{where}: it has no gradient: its author disabled it with backward=None")
