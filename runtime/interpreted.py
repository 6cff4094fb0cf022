"""`acceleration="none"`: kernels that are Python. They run the layer file and the gradient source under NumPy.

An `Interpreted` stands where the C library does, so all that surrounds a kernel is the same with both: checks, the
batch, states, random seeds, `out=`, pullbacks, nets. Its addresses are the arrays themselves.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from layerc.runtime.arrays import DTYPES
from layerc.runtime.generator import Random

if TYPE_CHECKING:
    from layerc.runtime.core import Core
    from layerc.runtime.kernel import Case
    from layerc.runtime.package import Package

Arrays = Mapping[str, Any]


def entry_of(layer: Mapping[str, Any]) -> dict[str, Any]:
    """A layer's entry in the manifest without what serves speed and memory only: the kernels that keep, the partial
    ones, and what those in C do not read."""
    methods = {name: method for name, method in layer["methods"].items() if name not in ("vjp", "pullback")}
    left = ("variants", "unread")
    return {**layer, "methods": {n: {k: v for k, v in m.items() if k not in left} for n, m in methods.items()}}


class Interpreted:
    """The library of one layer of a package, by NumPy."""

    def __init__(self, package: "Package") -> None:
        self._package = package
        self.calls: list[Any] = []

    def new_call(self) -> None:
        return None

    @staticmethod
    def from_buffer(array: np.ndarray) -> np.ndarray:
        """ValueError for arrays that C could not take as they lie: they are copied, here as there."""
        if not array.flags.c_contiguous:
            raise ValueError("the array is not contiguous")
        return array

    @staticmethod
    def address(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array) if array.ndim else array

    def fail(self, where: str, status: int, info: Any) -> NoReturn:
        raise RuntimeError(f"{where}: NumPy has no status {status}")

    def kernel(self, case: "Case", method: Mapping[str, Any], name: str) -> Callable[..., int]:
        """A function of a kernel's arguments: scalars, arrays read, arrays written, and the call."""
        scalars, seed_at = case.scalars(method)
        read = len(scalars) + len(method["arguments"])
        run = _Run(self._package, case, method, name)

        def kernel(*given: Any) -> int:
            arrays = dict(zip(method["arguments"], given[len(scalars) : read]))
            run(arrays, given[read:-1], None if seed_at is None else given[seed_at])
            return 0

        return kernel


class _Run:
    """One method of a layer in one case."""

    def __init__(self, package: "Package", case: "Case", method: Mapping[str, Any], name: str) -> None:
        self.package, self.case, self.method, self.name = package, case, method, name
        self.core: Core = case.core
        self.dtype = DTYPES[case.real]

    def __call__(self, arrays: Arrays, outputs: Sequence[np.ndarray], seed: int | None) -> None:
        """Fills the outputs: those of one example in their place, gradients of params summed."""
        results, batch = self.method["outputs"], self.case.batch
        for result, output in zip(results, outputs):
            if self._is_summed(result):
                output[...] = 0
            elif result["role"] == "state":
                output[...] = arrays[result.get("of", result["name"])]
        for b in range(1 if batch is None else batch):
            for result, output, value in zip(results, outputs, self._values(arrays, b, seed), strict=True):
                if self._is_summed(result):
                    output += np.reshape(value, output.shape)
                elif batch is None or result["role"] == "state":
                    output[...] = np.reshape(value, output.shape)
                else:
                    output[b] = np.reshape(value, output.shape[1:])

    def _is_summed(self, result: Mapping[str, Any]) -> bool:
        return result["role"] == "param" and self.case.batch is not None

    def _values(self, arrays: Arrays, b: int, seed: int | None) -> Sequence[Any]:
        """All outputs of one example."""
        core, case = self.core, self.case
        seen = {name: self._seen(name, array, b) for name, array in arrays.items()}
        if core.random is not None:
            seen[core.random] = Random(seed, example=b, dtype=self.dtype)
        if self.name == "backward":
            return _as_tuple(self._pulled({**case.config, **seen}))
        return self._forward(seen)

    def _seen(self, name: str, array: np.ndarray, b: int) -> Any:
        """What the function sees of an array: a copy of one example, groups as one axis, a scalar for rank 0."""
        mapped = self.case.batch is not None and self._is_mapped(name)
        one = array[b] if mapped else array
        return np.array(one).reshape(self.core.shape_of(name).flatten(np.shape(one)))[()]

    def _is_mapped(self, name: str) -> bool:
        """Whether axis 0 of an array is the batch. The cotangent of what is shared is shared."""
        role = self.core.roles.get(name) or self.core.output_of(name)["role"]
        return role in ("input", "output", "memory")

    def _forward(self, seen: dict[str, Any]) -> Sequence[Any]:
        core, written = self.core, getattr(self.package.source_module(), self.core.name)
        if core.manifest["kind"] == "class":
            fields = {n: seen.pop(n) for n in list(seen) if core.roles.get(n) in ("param", "state")}
            found, states = written(**self.case.config).as_written(self.name, fields, seen, self.dtype)
            new = [states[o.get("of", o["name"])] for o in self.method["outputs"] if o["role"] == "state"]
            return [*_as_tuple(found, core.public), *new]
        given = _taken(written, {**self.case.config, **seen})
        found = written.as_written(given, self.dtype) if hasattr(written, "as_written") else written(**given)
        return _as_tuple(found, core.public)

    def _pulled(self, known: dict[str, Any]) -> Any:
        core = self.core
        if core.manifest["backward"] != "custom":
            gradient = getattr(self.package.gradient_module(), f"d_{core.name}")
            return gradient(**_taken(gradient, known))
        written = getattr(self.package.source_module(), core.name)
        if core.manifest["kind"] == "class":
            fields = {n: known[n] for n in known if core.roles.get(n) in ("param", "state")}
            rest = _taken(written.backward, known)
            return written(**self.case.config).as_written("backward", fields, rest, self.dtype)[0]
        return written.as_written(_taken(written.custom_backward, known), self.dtype, backward=True)


def _taken(function: Callable[..., Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function among the known values."""
    return {name: known[name] for name in inspect.signature(function).parameters if name in known}


def _as_tuple(found: Any, names: Sequence[str] = ()) -> Sequence[Any]:
    """`names`: of the outputs, which a dictionary gives by name."""
    if isinstance(found, dict):
        return tuple(found[name] for name in names)
    return found if isinstance(found, tuple) else (found,)
