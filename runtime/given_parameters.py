"""Parameters that a layer has because its `params=` names them: those of `CompiledLayer` and `ODE`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from layerc.runtime.fields import field, integer
from layerc.runtime.initializers import Array, Constant
from layerc.runtime.layer import Builtin
from layerc.runtime.parameters import Parameter
from layerc.runtime.ports import Ports
from layerc.runtime.regularizers import NoRegu

_SETTINGS = ("regu", "cons", "lr", "decay")


class GivenParameters(Builtin):
    """Base of those layers. `params` says how a parameter `p` starts; `p_regu, p_cons, p_lr, p_decay` are keywords."""

    has_param = True  # so that `param_key` is taken; the signature decides

    params: Any = field({}, convert=dict)

    ports: Ports

    @classmethod
    def _keywords_of(cls, given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        known = cls._keywords()
        params = given.get("params")
        for p in params if isinstance(params, Mapping) else ():
            specs = cls._param_fields(p)
            specs["regu"] = field(NoRegu(), check=specs["regu"].check)  # whatever its name
            known |= {f"{p}_{key}": (None, specs[key]) for key in _SETTINGS}
        return known

    def given_parameters(self) -> list[Parameter]:
        """In the signature's order."""
        made = []
        for name in self.ports.params:
            shape, start = _shape_and_start(name, self.params[name])
            made.append(Parameter(name, shape, start, *(getattr(self, f"{name}_{key}") for key in _SETTINGS)))
        return made


def _shape_and_start(name: str, given: Any) -> tuple[tuple[int, ...], Any]:
    """Of what `params=` says: an array, or (shape, initializer), a number meaning `Constant`."""
    if isinstance(given, tuple) and len(given) == 2:
        size, start = given
        if isinstance(start, int | float) and isinstance(size, tuple | list):  # (1, 2) is an array
            start = Constant(start)
        if hasattr(start, "draw"):
            shape = (size,) if isinstance(size, int) else tuple(integer(n) for n in size)
            return shape, start
    try:
        values = np.asarray(given)
    except ValueError:
        raise ValueError(f"params[{name!r}]={given!r} must be an array or (shape, initializer)") from None
    return values.shape, Array(values)
