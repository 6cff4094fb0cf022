"""The params or states of a class layer: a dict of arrays that checks what is put into it."""

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from layerc.runtime import arrays as ar
from layerc.runtime.core import Core
from layerc.runtime.shapes import bind


class NamedArrays(dict[str, np.ndarray]):
    """Arrays by name, in the order of the signature.

    Setting an item copies the array. KeyError for a name the layer does not have, TypeError for another type,
    ValueError for another shape. Items cannot be taken out.
    """

    __slots__ = ("_core", "_role", "_where", "allowed", "version")

    def __init__(self, where: str, core: Core, role: str) -> None:
        super().__init__()
        self._where, self._core, self._role = where, core, role
        self.version = 0  # grows when an array takes the place of another
        self.allowed = tuple(name for name in core.array_names if core.roles[name] == role)

    def __missing__(self, name: str) -> NoReturn:
        if name in self.allowed:
            raise KeyError(f"{self._where}: {self._role} {name!r} has no value: call initialize, or set it")
        raise self._no(name)

    def _no(self, name: str) -> KeyError:
        return KeyError(f"{self._where}: no {self._role} {name!r}; it has {', '.join(self.allowed) or 'none'}")

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self and value is self[name]:  # params["w"] += 1 ends here
            return
        self.bind(name, np.array(self._checked(name, value), order="C"))

    def _checked(self, name: str, value: Any) -> np.ndarray:
        where = f"{self._where}: {self._role} {name!r}"
        if name not in self.allowed:
            raise self._no(name)
        old, kind = self.get(name), self._core.dtypes[name]
        if ar.is_weak(value):
            dtype = old.dtype if old is not None else ar.DTYPES["f32" if kind == "real" else kind]
            array = ar.weak(self._where, name, value, dtype)
        else:
            array = ar.take(self._where, name, value)
        allowed = [old.dtype] if old is not None else list(ar.REALS) if kind == "real" else [ar.DTYPES[kind]]
        if array.dtype not in allowed:
            raise TypeError(f"{where}: expected {' or '.join(map(str, allowed))}, got {array.dtype}")
        if old is not None and array.shape != old.shape:
            raise ValueError(f"{where}: expected shape {old.shape}, got {array.shape}")
        bind([(name, self._core.declared[name], array.shape)], {}, self._where)
        return array

    def bind(self, name: str, array: np.ndarray) -> None:
        """Put in this very array, unchecked: the layer then shares it with others."""
        self.version += 1
        fresh = name not in self
        super().__setitem__(name, array)
        if fresh and tuple(self) != self.allowed:
            ordered = {known: self[known] for known in self.allowed if known in self}
            super().clear()
            super().update(ordered)

    def replace(self, arrays: Mapping[str, np.ndarray]) -> None:
        """These arrays instead of those that are there."""
        self.version += 1
        super().clear()
        for name in self.allowed:
            if name in arrays:
                super().__setitem__(name, arrays[name])

    def complete(self) -> "NamedArrays":
        """Itself, if nothing is missing; RuntimeError."""
        for name in self.allowed:
            if name not in self:
                missing = f"{self._where}: {self._role} {name!r} has no value"
                raise RuntimeError(f"{missing}: call initialize, or set .{self._role}s[{name!r}]")
        return self

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(f"{self._where}: a {self._role} cannot be taken out")

    __delitem__ = pop = popitem = clear = _refuse

    def setdefault(self, name: str, default: Any = None) -> np.ndarray:
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, other: Any) -> "NamedArrays":  # type: ignore[override, misc]
        self.update(other)
        return self

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
