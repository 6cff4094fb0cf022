"""A built C library seen from Python: its functions, and its errors as exceptions."""

import builtins
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from layerc.runtime import threads

OUT_OF_MEMORY = 1

# What a kernel may raise: nothing in a manifest can name another class.
_EXCEPTIONS = frozenset(
    "ArithmeticError AssertionError FloatingPointError IndexError MemoryError OverflowError RuntimeError "
    "TypeError UnboundLocalError ValueError ZeroDivisionError".split()
)


class Library:
    """The cffi module of a package, with the table of its errors.

    `calls` holds `lc_call` structs between calls: making one costs as much as a small kernel. Taking one
    out of a list is atomic, so that threads never share one; when the number of threads changes there is a
    new list.
    """

    def __init__(self, native: Any, errors: Sequence[Mapping[str, Any]]) -> None:
        self.functions = native.lib
        self.from_buffer = native.ffi.from_buffer
        self._new = partial(native.ffi.new, native.ffi.typeof("lc_call *"))
        self.entry = self._entry(native)
        self.errors = {error["number"]: error for error in errors}
        threads.follow(self._use_threads)

    @staticmethod
    def _entry(native: Any) -> int | None:
        """The address of lc_run; None in a package of an earlier time."""
        if not hasattr(native.lib, "lc_run"):
            return None
        return int(native.ffi.cast("uintptr_t", native.ffi.addressof(native.lib, "lc_run")))

    def number(self, kernel: str) -> int:
        """Of a kernel, for lc_run."""
        number: int = self.functions.lc_number(kernel.encode())
        return number

    def _use_threads(self, count: int) -> None:
        self.threads = count
        self.calls: list[Any] = []

    def kernel(self, case: Any, method: Mapping[str, Any], name: str) -> Any:
        """The C function of a method in a case."""
        return getattr(self.functions, method["kernels"][case.real])

    def new_call(self) -> Any:
        """A struct for one call at a time."""
        call = self._new()
        call.threads = self.threads
        return call

    def address(self, array: np.ndarray) -> Any:
        """The array's address, or that of a copy where kernels cannot take it as it lies."""
        flags = array.flags
        return self.from_buffer(array if flags.c_contiguous and flags.aligned else array.copy(order="C"))

    def fail(self, where: str, status: int, info: Sequence[int]) -> NoReturn:
        """Raise what a kernel's status means, with the file and line of the user's source."""
        if status == OUT_OF_MEMORY:
            raise MemoryError(f"{where}: out of memory")
        error = self.errors.get(status)
        if error is None:
            raise RuntimeError(f"{where}: unknown error {status} from the compiled code; please report it")
        name = error["exception"]
        kind = getattr(builtins, name) if name in _EXCEPTIONS else RuntimeError
        if name == "LinAlgError":
            kind = np.linalg.LinAlgError
        try:
            message = error["message"].format(*info)
        except (IndexError, KeyError, ValueError):
            message = error["message"]
        raise kind(f"{error['file']}:{error['line']}: {where}: {message}")
