"""What a name can stand for while a function is checked, besides a typed expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Union

from .program import Expr, Item, Name, Type

DRAWS = {  # the methods of a random generator, and what they take
    "random": "shape",
    "uniform": "low high shape",
    "standard_normal": "shape",
    "integers": "low high shape",
    "bernoulli": "p shape",
}
# Under these names an environment holds what the function returns, and what a loop (of this counter) runs over.
RETURN = "<return>"
VALUE = "<value>"  # of an expression with branches
LOOPED = "<loop>"


@dataclass(frozen=True)
class Tuple:
    items: tuple[Value, ...]
    is_list: bool = False  # written in brackets: NumPy makes one array of it where a layer returns it


@dataclass(frozen=True)
class Static:
    """A Python object known at build time: None, a string, a dtype."""

    value: Any


@dataclass(frozen=True, eq=False)
class Closure:
    """A function of a file, a nested one or a lambda. `frame`: the running function that it was defined in, whose
    variables it sees as they are when it is called; `env`: these variables, should that function have returned."""

    node: Any
    source: Any
    env: dict[str, Value] | None = None
    name: str = "lambda"
    frame: object = None
    method: bool = False  # of the class of the function being typed: it sees self
    defaults: dict[str, Value] | None = None  # of a nested function: what they were where it is defined


@dataclass(frozen=True)
class Generator:
    """A parameter `rng: Random`: it is only drawn from."""

    name: Name


@dataclass(eq=False)
class ListValue:
    """A stack that a while loop fills and another empties: `type` is that of an element, from the first append on."""

    name: str
    type: Type | None = None
    position: tuple[list[Any], int] | None = None  # where its creation stands, to be typed later


@dataclass(frozen=True)
class Collected:
    """A list whose length follows from shapes. `key`: where it was made; the checker knows its length so far."""

    key: tuple[int, ...]


@dataclass(frozen=True)
class View:
    """Part of an array that is written into: reads and writes go to the array itself."""

    base: Expr
    items: tuple[Item, ...] | None


@dataclass(frozen=True)
class Choice:
    """One of several arrays: `which` is its number. `own`: memory for what is made on a branch or in an iteration.
    `places`: of each option, the variables that say where it is in its array."""

    which: Name
    options: tuple[View, ...]
    own: Name | None
    places: tuple[tuple[Name, ...], ...]

    @property
    def variables(self) -> set[str]:
        """What is assigned where the name is bound."""
        own = {self.own.id} if self.own is not None else set()
        return own | {self.which.id} | {place.id for places in self.places for place in places}


@dataclass(frozen=True)
class Later:
    """A variable that is assigned before every use, but not here: its type is found where it is."""


@dataclass(frozen=True)
class Broken:
    """A name whose assignment had a mistake (message None), or that may be unassigned (message says how)."""

    message: str | None = None
    help: str = ""


Value = Union[Expr, Tuple, Static, Closure, Generator, ListValue, Collected, View, Choice, Later, Broken]


def plain(id: str) -> str:
    """The name that a variable gets: `self.mean` is mean, and <going 2>, made by the checker, is going."""
    return id.strip("<>").split()[0] if id.startswith("<") else id.removeprefix("self.")


def shown(id: str) -> str:
    return "the result" if id == RETURN or id.startswith("<result") else plain(id)


def leaves(value: Value, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Value]]:
    """The values in nested tuples, each with its place."""
    if not isinstance(value, Tuple):
        yield path, value
        return
    for position, item in enumerate(value.items):
        yield from leaves(item, (*path, position))


def map_leaves(value: Value, f: Any, path: tuple[int, ...] = ()) -> Value:
    """The same nested tuples over f(place, value)."""
    if not isinstance(value, Tuple):
        return f(path, value)
    return Tuple(tuple(map_leaves(v, f, (*path, k)) for k, v in enumerate(value.items)))


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
