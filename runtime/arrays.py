"""Arrays in and out: NumPy's own, whatever speaks DLPack on the CPU, and Python numbers.

Kernels take C-contiguous, aligned arrays of the machine's byte order. What is not so is copied on the way
in; what the caller hands in is never written to.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

Export = Callable[[np.ndarray], Any]  # turns a result into the kind of array the caller works with
Spec = tuple[str, tuple[int, ...], np.dtype]  # name, shape and type of an array to come

DTYPES: dict[str, np.dtype] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}
MASKED = "a masked array would lose its mask: give x.filled(0), and the mask as an argument of its own"
REALS = {DTYPES["f32"]: "f32", DTYPES["f64"]: "f64"}


def real_type(where: str, dtype: Any) -> np.dtype:
    """float32 or float64, as np.dtype takes it. TypeError for anything else."""
    try:
        element = np.dtype(dtype)
    except TypeError:
        element = None
    if element not in REALS:
        raise TypeError(f"{where}: dtype must be float32 or float64, not {dtype!r}")
    return element


def contiguous(array: Any) -> Any:
    """The array in row-major order: itself where it is so already."""
    return array if array.flags.c_contiguous else array.copy(order="C")


def is_weak(value: object) -> bool:
    """Whether a value takes the type it meets: Python numbers and (nested) lists of them."""
    return type(value) in (float, int, bool, list, tuple)


def take(where: str, name: str, value: object) -> np.ndarray:
    """The value as a NumPy array, without a copy where that can be. TypeError for what is no array."""
    if isinstance(value, np.ndarray | np.generic):
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{where}: argument {name!r}: {MASKED}")
        return np.asarray(value)
    if hasattr(type(value), "__dlpack__"):
        try:
            return np.from_dlpack(value)  # type: ignore[arg-type]
        except Exception as error:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise TypeError(f"{where}: argument {name!r}: cannot read this {kind} as a CPU array: {error}") from None
    raise TypeError(f"{where}: argument {name!r}: expected an array, got {type(value).__name__}")


def exporter(value: object) -> Export | None:
    """How to give an array back as the kind of `value`; None where that is NumPy."""
    if isinstance(value, np.ndarray | np.generic) or not hasattr(type(value), "__dlpack__"):
        return None
    if hasattr(value, "__array_namespace__"):
        return _from_dlpack_of(value.__array_namespace__())
    return _from_dlpack_of(sys.modules.get(type(value).__module__.partition(".")[0]))


def _from_dlpack_of(module: Any) -> Export | None:
    return getattr(module, "from_dlpack", None)


def fit(where: str, name: str, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array as a kernel takes it. TypeError where its type is another."""
    if array.dtype != dtype:
        if array.dtype.newbyteorder("=") != dtype:
            raise TypeError(f"{where}: argument {name!r}: expected {dtype}, got {array.dtype}")
        return array.astype(dtype, order="C")
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy(order="C")


def weak(where: str, name: str, value: object, dtype: np.dtype) -> np.ndarray:
    """A Python number, or a list of them, as an array of the type it meets."""
    try:
        kind = "i" if type(value) is int else np.asarray(value).dtype.kind
        if kind not in {"f": "fi", "i": "i", "b": "b"}[dtype.kind] and value != []:
            given = "a list of others" if isinstance(value, list | tuple) else f"{type(value).__name__} {value!r}"
            raise TypeError(f"{where}: argument {name!r}: expected {dtype}, got {given}")
        return np.asarray(value, dtype=dtype, order="C")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{where}: argument {name!r}: {error}") from None


class Destination:
    """An array given as `out=`: what the caller gets back, and whether a kernel can write to it directly."""

    __slots__ = ("direct", "given", "view")

    def __init__(
        self, where: str, spec: Spec, given: Any, read: Iterable[tuple[str, np.ndarray]], over: Collection[str] = ()
    ) -> None:
        name, shape, dtype = spec
        self.given, self.view = given, take(where, name, given)
        view, flags = self.view, self.view.flags
        if view.shape != shape:
            raise ValueError(f"{where}: out for {name!r}: expected shape {shape}, got {view.shape}")
        if view.dtype != dtype:
            raise TypeError(f"{where}: out for {name!r}: expected {dtype}, got {view.dtype}")
        if not flags.writeable:
            raise ValueError(f"{where}: out for {name!r}: the array is read-only")
        self.direct = flags.carray and not any(
            np.may_share_memory(view, array) and not (argument in over and _is_same(view, array))
            for argument, array in read
        )

    def finish(self, result: np.ndarray) -> Any:
        """Called after the kernel; returns the caller's own array, filled."""
        if result is not self.view:
            self.view[...] = result
        return self.given


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are one memory in one order."""
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and b.flags.c_contiguous


def destinations(
    where: str,
    specs: Sequence[Spec],
    out: Any,
    read: Sequence[tuple[str, np.ndarray]],
    over: Sequence[Collection[str]] | None = None,
) -> list[Destination | None]:
    """Check what was given as `out=`: one array, or a tuple of one for each output (None: make it).

    read: the arrays that the kernel reads, by the names of its arguments. It writes to them only where `over` says for
    the output that it may; where else they share memory, the result is made apart and copied. No two given arrays may
    overlap.
    """
    given = list(out) if isinstance(out, tuple | list) else [out]
    if len(given) != len(specs):
        raise ValueError(f"{where}: out: expected {len(specs)} arrays, got {len(given)}")
    found: list[Destination | None] = []
    for k, (spec, array) in enumerate(zip(specs, given)):
        one = None if array is None else Destination(where, spec, array, read, over[k] if over else ())
        for other_spec, other in zip(specs, found):
            if one is not None and other is not None and np.shares_memory(one.view, other.view):
                raise ValueError(f"{where}: out: the arrays for {other_spec[0]!r} and {spec[0]!r} overlap")
        found.append(one)
    return found
