"""Schedules: what `predict` and a step of training do, as operations with the arrays that go in and out."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from layerc.runtime.tape import Op


@dataclass
class Port:
    """An array that the caller hands over, or gets: its shape without the batch."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass
class Held:
    """A parameter or state: where it lies in its buffer."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    buffer: str
    offset: int


@dataclass
class Draws:
    """A layer's random stream: its evaluation k has seed `nth(root, k)`; count: those before, each: those of a step."""

    root: int
    count: int
    each: int = 0


@dataclass
class Function:
    """inputs, outputs: in the order of the arguments; least: the smallest batch; result: the number it gives."""

    inputs: list[Port]
    outputs: list[Port]
    ops: list[Op]
    makers: list[str]
    least: int = 1
    is_per_example: bool = False  # an example of the outputs depends on that of the inputs alone
    why: str = ""  # what a smaller batch is an error for
    result: Any = None
    draws: list[Draws] = field(default_factory=list)


@dataclass
class Schedule:
    """A net ahead of time. buffers: elements of what lives from call to call, by name."""

    name: str
    dtype: np.dtype
    held: list[Held]
    buffers: dict[str, tuple[int, np.dtype]]
    predict: Function
    train: Function | None
    solver: str
    left_out: list[str]


__all__ = ["Draws", "Function", "Held", "Port", "Schedule"]
