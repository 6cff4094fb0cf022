"""Calls like the one before, in C: see quick.c. Without the extension everything works, some microseconds slower."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

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


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array for a result: a large one lies where an earlier one lay that nobody has any more (kept.c)."""
    return np.empty(shape, dtype) if _quick is None else _quick.empty((shape, dtype))


def release() -> None:
    """Gives back the memory that is kept for the next results."""
    if _quick is not None:
        _quick.release()


def refuse(*_: Any) -> Any:
    """The quick way of what has none."""
    return NotImplemented


class Quick(NamedTuple):
    """Two functions of arrays of just certain shapes and types. NotImplemented for any others.

    run(*arrays): the kernel's output, or a tuple of its outputs. into(*arrays, *outputs): None; it writes the outputs.
    """

    run: Run = refuse
    into: Run = refuse


def quick(launch: "Launch", given: Sequence[Array], order: Sequence[int]) -> Quick:
    """given: (shape, dtype) of each array it will be called with; order: which of them each kernel argument is."""
    library = launch.library
    if _quick is None or launch.seed_at is not None or not isinstance(library, Library) or library.entry is None:
        return Quick()
    number = library.number(launch.kernel)
    try:
        fail = partial(library.fail, launch.where)
        over = tuple(sum(1 << k for k, name in enumerate(launch.arguments) if name in names) for names in launch.over)
        made = _quick.Quick(library.entry, number, launch.scalars, tuple(given), tuple(order), launch.made, over, fail)
    except ValueError:  # very many arrays, or axes
        return Quick()
    return Quick(made.run, made.into)


class _Threads:
    def use(self, count: int) -> None:
        if _quick is not None:
            _quick.set_threads(count)


_threads = _Threads()
threads.follow(_threads.use)
