"""Which functions of a library share a unit, as the C compiler calls a file that it compiles by itself.

A library is one C file to its readers. Its functions do not call each other, so that any of them may share a unit with
any others. A unit is made of functions of one layer: it can be compiled before the next layers are known, and an edit
of these does not touch it. A large layer has several, for other processors. Small layers share one, as what stands
before the first function of a unit costs the compiler as much as one of them does; where such a unit ends depends on
names, so that behind a layer more or less the units are soon the same again. All this depends on the layers only,
never on the machine.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from layerc.transpile.ir import Kernel

SMALL = 20_000  # characters of a layer
FULL = 40_000  # characters of a unit that no more small layers join
LARGEST = 100_000  # of a unit of several functions
_EACH = 8  # small layers share a unit, about


@dataclass(frozen=True)
class Compiled:
    """One function in C."""

    layer: str
    kernel: Kernel
    dtype: str
    text: str


def shared(layers: Iterable[Sequence[Compiled]]) -> Iterator[list[Compiled]]:
    """The functions of each unit, as soon as it is known. layers: the functions of one after the other."""
    small: list[Compiled] = []
    for functions in layers:
        if _size(functions) > SMALL:
            yield from _cut(functions)
            continue
        small += functions
        if _size(small) > FULL or crc32(functions[0].layer.encode()) % _EACH == 0:
            yield small
            small = []
    if small:
        yield small


def _cut(functions: Sequence[Compiled]) -> Iterator[list[Compiled]]:
    unit: list[Compiled] = []
    for function in functions:
        if unit and _size([*unit, function]) > LARGEST:
            yield unit
            unit = []
        unit.append(function)
    yield unit


def _size(functions: Iterable[Compiled]) -> int:
    return sum(len(f.text) for f in functions)


def with_lines(pieces: Sequence[str], whole: str, name: str) -> str:
    """The pieces of a unit, each with the line where it begins in the file that readers have."""
    name = name.replace("\\", "\\\\").replace('"', '\\"')
    lines = [whole.count("\n", 0, whole.index(piece)) + 1 for piece in pieces]
    return "".join(f'#line {line} "{name}"\n{piece}\n' for line, piece in zip(lines, pieces))
