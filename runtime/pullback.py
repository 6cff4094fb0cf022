"""The gradient at one evaluation: what `vjp` returns besides the outputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from layerc.runtime import arrays as ar
from layerc.runtime.core import Call, key_of
from layerc.runtime.kernel import Case, receive


class Pullback:
    """`pullback(dy)`: the gradients at one evaluation; it may be called again.

    It holds on to those inputs and outputs that the gradient reads: changing them in place changes the gradient.
    """

    __slots__ = ("_call", "_case", "_kept", "_launch", "_where")

    def __init__(
        self, where: str, case: Case, arrays: Sequence[Any], outputs: Sequence[Any], call: Call | None = None
    ) -> None:
        """arrays, outputs: the addresses of all arrays of the call and of all outputs of the forward.
        call: None where every gradient is given as it comes out of the kernel."""
        launch = case.backward
        if launch is None:
            raise no_gradient(where)
        self._where, self._case, self._call = where, case, call
        self._launch = launch if call is None else launch.seeded(call.seed)
        known = (*arrays, *outputs)
        self._kept = arrays if launch.keep is None else [known[i] for i in launch.keep]

    def __call__(self, *cotangents: Any, out: Any = None) -> tuple[Any, ...]:
        """One gradient for each input and param, in the order of the signature; None where there is none.

        cotangents: one for each output, of its shape and type; None stands for zeros. out: a tuple like the
        result, of arrays to write to, or None for one to be made. ValueError for shapes and counts, TypeError for
        types.
        """
        case, launch = self._case, self._launch
        library = launch.library
        if out is None and self._call is None:
            try:
                known = tuple(map(key_of, cotangents)) == case.cotangent_key
                given = list(map(library.from_buffer, cotangents)) if known else None
            except (AttributeError, TypeError, ValueError):
                given = None
            if given is not None:
                arguments = self._ordered(given)
                if case.core.only_gradient:
                    return (launch.alone(arguments)[0],)
                gradients, _ = launch.fresh(arguments)
                if case.core.all_gradients:
                    return tuple(gradients)
                return tuple([None if i is None else gradients[i] for i in case.core.gradient_slots])
        return self._carefully(cotangents, out)

    def _ordered(self, cotangents: list[Any]) -> list[Any]:
        """The arguments of the kernel, from what was kept and all cotangents."""
        arguments = [*self._kept, *cotangents]
        order = self._launch.order
        return arguments if order is None else [arguments[i] for i in order]

    def _carefully(self, cotangents: Sequence[Any], out: Any) -> tuple[Any, ...]:
        launch, slots = self._launch, self._case.core.gradient_slots
        library = launch.library
        arrays = self._checked(cotangents)
        into = {} if out is None else self._destinations(out, arrays)
        shared = self._shared()
        direct = {i: d for i, d in into.items() if i not in shared}
        gradients = receive(launch, direct)
        given = list(map(library.from_buffer, arrays))
        launch(self._ordered(given), list(map(library.from_buffer, gradients)))
        results: list[Any] = []
        for slot, export in zip(slots, self._exports()):
            if slot is None:
                results.append(None)
                continue
            gradient = np.asarray(gradients[slot].sum(axis=0)) if slot in shared else gradients[slot]
            if slot in into:
                results.append(into[slot].finish(gradient))
            else:
                results.append(gradient if export is None else export(gradient))
        return tuple(results)

    def _checked(self, cotangents: Sequence[Any]) -> list[np.ndarray]:
        where, specs = f"{self._where}: pullback", self._case.cotangents
        if len(cotangents) != len(specs):
            names = ", ".join(name for name, _, _ in specs)
            raise ValueError(f"{where}: expected {len(specs)} gradients ({names}), got {len(cotangents)}")
        arrays = []
        for (name, shape, dtype), value in zip(specs, cotangents):
            if value is None:
                arrays.append(np.zeros(shape, dtype))
                continue
            if ar.is_weak(value):
                array = ar.weak(where, name, value, dtype)
            else:
                array = ar.fit(where, name, ar.take(where, name, value), dtype)
            if array.shape != shape:
                raise ValueError(f"{where}: argument {name!r}: expected shape {shape}, got {array.shape}")
            arrays.append(array)
        return arrays

    def _destinations(self, out: Any, cotangents: Sequence[np.ndarray]) -> dict[int, ar.Destination]:
        """The caller's arrays by the kernel's output that goes there."""
        slots, launch, shared = self._case.core.gradient_slots, self._launch, self._shared()
        given = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(slots):
            raise ValueError(f"{self._where}: pullback: out: expected {len(slots)} arrays, got {len(given)}")
        places = [(slot, array) for slot, array in zip(slots, given) if slot is not None]
        specs = [launch.specs[slot] for slot, _ in places]
        specs = [(n, s[1:] if slot in shared else s, t) for (slot, _), (n, s, t) in zip(places, specs)]
        read = [launch.library.memory(address) for address in self._kept]
        where = f"{self._where}: pullback"
        found = ar.destinations(where, specs, [array for _, array in places], [*read, *cotangents])
        return {slot: one for (slot, _), one in zip(places, found) if one is not None}

    def _shared(self) -> set[int]:
        """The kernel's outputs that are gradients of a scalar shared by the batch, and have to be summed."""
        if self._call is None or not self._call.shared:
            return set()
        core = self._case.core
        names = {core.array_names[i] for i in self._call.shared}
        slots = zip(core.gradient_names, core.gradient_slots)
        return {slot for name, slot in slots if name in names and slot is not None}

    def _exports(self) -> list[ar.Export | None]:
        core = self._case.core
        if self._call is None:
            return [None] * len(core.gradient_slots)
        exports = dict(zip(core.array_names, self._call.exports))
        return [exports[name] for name in core.gradient_names]


def no_gradient(where: str) -> NotImplementedError:
    return NotImplementedError(f"{where}: it has no gradient: its author disabled it with backward=None")
