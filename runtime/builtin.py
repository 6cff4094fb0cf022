"""The compiled functions that the built-in layers are made of, by address: `function("standard.softmax")`.

`runtime/layers/*.py` are layer files, compiled by layerc to the packages `layerc.runtime.<stem>_compiled`
when
layerc is installed. This is the one place that knows so.
"""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


@cache
def function(address: str) -> Any:
    """The compiled function; RuntimeError, saying what to do, where the package has not been built."""
    stem, _, name = address.partition(".")
    package = f"layerc.runtime.{stem}_compiled"
    try:
        return getattr(import_module(package), name)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise RuntimeError(
            f"the built-in layers are not compiled ({package} is missing): reinstall layerc, or run "
            f"`layerc build` on layerc/runtime/layers/{stem}.py with -o naming that package's folder"
        ) from None


def run(address: str, arrays: Arrays, out: Arrays | None = None, **config: Any) -> Arrays:
    """The outputs, by name, for whole batches; written to the arrays of `out` where they are given."""
    return function(address).run("predict", arrays, config, out=out)


def pull(address: str, arrays: Arrays, want: str = "all", out: Arrays | None = None, **config: Any) -> Arrays:
    """The gradients, by argument; `arrays` holds inputs, outputs `y` and their gradients `dy`."""
    return function(address).pull(arrays, config, want, out=out)
