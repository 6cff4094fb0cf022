"""Configuration: a layer's scalars that are given by keyword, with their types, defaults and checks."""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

_ACCEPTED: dict[str, tuple[type[Any], ...]] = {
    "float": (float, int),
    "int": (int,),
    "bool": (bool,),
    "str": (str,),
}


class Settings:
    """The configuration that a layer takes, from the manifest's PARAMETERs of role config."""

    def __init__(self, parameters: Sequence[Mapping[str, Any]]) -> None:
        self._parameters = {p["name"]: p for p in parameters}
        self.names = self._parameters.keys()
        self.types: dict[str, str] = {name: p["dtype"] for name, p in self._parameters.items()}
        self._checks = {n: _compiled(p["check"]) for n, p in self._parameters.items() if p.get("check")}

    def read(self, where: str, given: Mapping[str, Any], word: str = "argument") -> dict[str, Any]:
        """All settings, defaults included. word: what to call one, "argument" or "field".

        TypeError for unknown or missing ones, ValueError for values that fail their check; a wrong type is a
        TypeError of an argument and a ValueError of a field.
        """
        for name in given:
            if name not in self.names:
                raise TypeError(f"{where}: no {word} {name!r}; it takes {', '.join(self.names) or 'none'}")
        return {name: self._one(f"{where}: {word} {name!r}", name, given, word) for name in self.names}

    def _one(self, what: str, name: str, given: Mapping[str, Any], word: str) -> Any:
        parameter = self._parameters[name]
        if name not in given:
            if parameter.get("required"):
                raise TypeError(f"{what} is required")
            value = parameter["default"]
        else:
            try:
                value = _converted(parameter["dtype"], given[name])
            except TypeError as error:
                raise (TypeError if word == "argument" else ValueError)(f"{what}: {error}") from None
            except OverflowError as error:
                raise ValueError(f"{what}: {error}") from None
        if not self._allowed(name, value):
            raise ValueError(f"{what} = {value!r} fails its check: {parameter['check']}")
        return value

    def _allowed(self, name: str, value: Any) -> bool:
        """Whether it passes its check; one that cannot even be asked refuses the value."""
        check = self._checks.get(name)
        try:
            return check is None or bool(check(value))
        except Exception:
            return False


def _converted(kind: str, value: Any) -> Any:
    """A value in its declared type; integers count as floats, NumPy's scalars as Python's. TypeError;
    OverflowError for what C cannot hold."""
    if isinstance(value, np.generic):
        value = value.item()
    accepted = _ACCEPTED.get(kind)
    if accepted is None:
        return value
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind != "bool"):
        raise TypeError(f"expected {kind}, got {type(value).__name__} {value!r}")
    if kind == "int" and not -(2**63) <= value < 2**63:
        raise OverflowError("an integer of more than 64 bits")
    try:
        return value if kind != "float" else float(value)
    except OverflowError:
        raise OverflowError("a number beyond what a float holds") from None


def _compiled(text: str) -> Callable[[Any], Any]:
    """The author's own `lambda k: k > 0`, from the manifest."""
    tree = ast.parse(text, mode="eval")
    if not isinstance(tree.body, ast.Lambda):
        raise ValueError(f"not a lambda in the manifest: {text}")
    made: Callable[[Any], Any] = eval(compile(tree, "<check>", "eval"), {"math": math, "np": np})
    return made
