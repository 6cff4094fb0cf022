"""What a name can stand for while a function is checked, besides a typed expression."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

from .program import Expr, Item, Type


@dataclass(frozen=True)
class Tuple:
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Static:
    """A Python object known at build time: None, a string, a dtype."""

    value: Any


@dataclass(frozen=True)
class Closure:
    """A function of the file, a nested one or a lambda, with the names it sees."""

    node: Any
    source: Any
    env: dict[str, Value] | None = None
    name: str = "lambda"


@dataclass
class ListValue:
    """A Python list that arrays are appended to: `type` is that of an element, from the first append on."""

    name: str
    type: Type | None = None
    position: tuple[list[Any], int] | None = None  # where its creation stands, to be typed later


@dataclass(frozen=True)
class View:
    """Part of an array that is written into: reads and writes go to the array itself."""

    base: Expr
    items: tuple[Item, ...] | None


@dataclass(frozen=True)
class Broken:
    """A name whose assignment had a mistake (message None), or that may be unassigned (message says how)."""

    message: str | None = None
    help: str = ""


Value = Union[Expr, Tuple, Static, Closure, ListValue, View, Broken]


@dataclass
class Fresh:
    """Unique names, close to what the user wrote."""

    used: set[str] = field(default_factory=set)

    def __call__(self, base: str) -> str:
        name, count = base, 1
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.used.add(name)
        return name
