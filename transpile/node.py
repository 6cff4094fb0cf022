"""Nodes of the trees that the compiler works on: frozen dataclasses that remember what is asked of them often.

Passes ask the same of the same nodes again and again, and nodes never change: so an answer is kept with its node. What
`replace` makes is a new node, of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Concatenate, ParamSpec, TypeVar, dataclass_transform

Node = TypeVar("Node")
Answer = TypeVar("Answer")
More = ParamSpec("More")


@dataclass_transform(frozen_default=True)
def node(cls: type[Node]) -> type[Node]:
    """A frozen dataclass whose hash is worked out once."""
    cls = dataclass(frozen=True)(cls)
    names = [f.name for f in fields(cls)]  # type: ignore[arg-type]

    def state(self: Node) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in names}  # a hash is not the same in another process

    cls.__hash__ = remembered(cls.__hash__)  # type: ignore[method-assign, assignment]
    cls.__getstate__ = state  # type: ignore[method-assign, assignment]
    return cls


def remembered(ask: Callable[Concatenate[Node, More], Answer]) -> Callable[Concatenate[Node, More], Answer]:
    """A function of one node that does its work once for each. Its answer must not be changed; further arguments only
    say where the node is from, so that they are the same whenever it is asked."""
    key = f"_{ask.__name__}"

    def answer(node: Node, /, *more: More.args, **named: More.kwargs) -> Answer:
        try:
            return node.__dict__[key]
        except KeyError:
            node.__dict__[key] = found = ask(node, *more, **named)
            return found

    answer.__doc__ = ask.__doc__
    return answer
