"""Calls like the one before, in C: see quick.c. Without the extension everything works, some microseconds slower."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime import threads
from layerc.runtime.library import Library

if TYPE_CHECKING:
    from layerc.runtime.kernel import Launch

try:
    _quick: Any = import_module("layerc.runtime._quick")
except ImportError:
    _quick = None

Run = Callable[..., Any]
Array = tuple[tuple[int, ...], np.dtype]


def refuse(*_: Any) -> Any:
    """The quick way of what has none."""
    return NotImplemented


def quick(launch: "Launch", given: Sequence[Array], order: Sequence[int]) -> Run:
    """A function of arrays of just these shapes and types: the kernel's output, or a tuple of its outputs.

    given: (shape, dtype) of each array it will be called with; order: which of them each argument of the kernel is.
    It returns NotImplemented for any other arrays.
    """
    library = launch.library
    if _quick is None or launch.seed_at is not None or not isinstance(library, Library) or library.entry is None:
        return refuse
    number = library.number(launch.kernel)
    try:
        fail = partial(library.fail, launch.where)
        made = _quick.Quick(library.entry, number, launch.scalars, tuple(given), tuple(order), launch.made, fail)
    except ValueError:  # very many arrays, or axes
        return refuse
    run: Run = made.run
    return run


class _Threads:
    def use(self, count: int) -> None:
        if _quick is not None:
            _quick.set_threads(count)


_threads = _Threads()
threads.follow(_threads.use)
