"""layerc: neural-network layers written in typed NumPy, compiled to C with readable gradients.

The names of a layer file live here; each is imported at its first use (PEP 562), so that a built package,
which needs `layerc.runtime` only, never pays for the compiler nor for its dependencies.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "layerc.language": ("layer",),
    "layerc.classes": ("Layer", "config"),
    "layerc.init": ("init",),
    "layerc.runtime.generator": ("Random",),
    "layerc.runtime.derivatives": ("stop_gradient",),
    "layerc.runtime.ode45": ("ode45",),
    "layerc.annotations": (
        *("Param", "State", "Memory", "real", "f32", "f64", "i32", "i64", "bool_"),
        *("Array", "Float", "Float32", "Float64", "Int32", "Int64", "Bool"),
    ),
    "layerc.runtime.threads": ("set_num_threads", "get_num_threads"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from layerc import init
    from layerc.annotations import (
        Array,
        Bool,
        Float,
        Float32,
        Float64,
        Int32,
        Int64,
        Memory,
        Param,
        State,
        bool_,
        f32,
        f64,
        i32,
        i64,
        real,
    )
    from layerc.classes import Layer, config
    from layerc.language import layer
    from layerc.runtime.derivatives import stop_gradient
    from layerc.runtime.generator import Random
    from layerc.runtime.ode45 import ode45
    from layerc.runtime.threads import get_num_threads, set_num_threads

# fmt: off
__all__ = [  # noqa: RUF022 (in the order of the manual)
    "Layer", "Param", "State", "Memory", "Random", "config", "init", "layer",
    "real", "f32", "f64", "i32", "i64", "bool_",
    "Array", "Float", "Float32", "Float64", "Int32", "Int64", "Bool",
    "ode45", "stop_gradient", "set_num_threads", "get_num_threads", "__version__",
]
# fmt: on


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'layerc' has no attribute {name!r}")
    module = import_module(home)
    value = module if name == "init" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
