"""Configuration fields of a layer class: defaults, checks, and errors that name layer, field and value.

    class Power(Layer):
        scale: float = field(1.0)
        kernel: int = field(3, check=lambda k: k % 2 == 1)

A layer by hand writes `layerc.config(...)` instead of `field(...)`; both are known by `default` and `check`.
"""

import copy
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Field:
    """What a field may be. `convert` brings a value to its one form and raises for what it cannot take."""

    default: Any = REQUIRED
    check: Callable[[Any], bool] | None = None
    convert: Callable[[Any], Any] | None = None


def field(
    default: Any = REQUIRED,
    *,
    check: Callable[[Any], Any] | None = None,
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """A configuration field; without a default it must be given."""
    return Field(default, check, convert)


def is_field(value: object) -> bool:
    return not isinstance(value, type) and hasattr(value, "default") and hasattr(value, "check")


def own_fields(namespace: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """(annotation, field) of the fields written in a class body, in its order."""
    annotations = namespace.get("__annotations__", {})
    return {name: (annotations.get(name), value) for name, value in namespace.items() if is_field(value)}


def checked(owner: str, name: str, annotation: Any, spec: Any, value: Any) -> Any:
    """The value in its one form; ValueError naming owner, field and value where it is refused."""
    convert = getattr(spec, "convert", None) or _CONVERTERS.get(annotation)
    try:
        if convert is not None:
            value = convert(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner}: field {name}={value!r}: {error}") from None
    try:
        good = spec.check is None or bool(spec.check(value))
    except Exception:  # a check that cannot even be asked refuses the value
        good = False
    if not good:
        raise ValueError(f"{owner}: field {name}={value!r} is not allowed")
    return value


def default_of(spec: Any) -> Any:
    """A default, copied so that no two layers share a list."""
    return copy.copy(spec.default)


def is_required(spec: Any) -> bool:
    return spec.default is REQUIRED or spec.default is ...


def integer(value: Any) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError("must be an integer")
    return int(value)


def number(value: Any) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError("must be a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("is beyond what a float holds") from None


def check_numbers(part: Any, *names: str) -> None:
    """ValueError, naming the part's class and the attribute, unless these attributes are finite numbers."""
    for name in names:
        value = getattr(part, name)
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(f"{type(part).__name__}: {name}={value!r} must be a finite number")


def boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("must be True or False")
    return bool(value)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("must be a string")
    return value


def one_of(*choices: Any) -> Callable[[Any], Any]:
    """A converter that takes these values only."""

    def convert(value: Any) -> Any:
        if not any(value is c or (type(value) is type(c) and value == c) for c in choices):
            raise ValueError(f"must be {' or '.join(map(repr, choices))}")
        return value

    return convert


def names(value: Any) -> tuple[str, ...]:
    """Blob names; one name alone is a list of one."""
    value = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) and name for name in value):
        raise TypeError("must be names")
    return value


_CONVERTERS: dict[Any, Callable[[Any], Any]] = {
    float: number,
    int: integer,
    bool: boolean,
    str: text,
    "float": number,
    "int": integer,
    "bool": boolean,
    "str": text,
}
