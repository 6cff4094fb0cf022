"""The variables that a program has at a place, and how extents are written there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from layerc.transpile.dims import Dim

Shape = tuple[Dim, ...]
ONE = Dim.of(1)


class Dead(Exception):
    """No expression of the wanted kind is found here; another production has to be tried."""


@dataclass(frozen=True)
class Variable:
    """`kind`: real, int or bool. `mag`: about the largest magnitude. `owns`: may be written into. `below`: an
    integer in 0 .. below - 1, or (if `wraps`) in -below .. below - 1. `domain` "pos": at least 0.3, never written."""

    name: str
    shape: Shape
    kind: str = "real"
    mag: float = 4.0
    owns: bool = False
    fixed: bool = False  # cannot be assigned: Param, configuration, loop counters, what a closure reads
    below: Dim | None = None
    wraps: bool = False
    domain: str = ""
    weak: bool = False  # a Python number: it has no `.shape`

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass
class Scope:
    """`extents`: names of integers that say an extent."""

    variables: dict[str, Variable] = field(default_factory=dict)
    extents: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Scope:
        return Scope(dict(self.variables), dict(self.extents))

    def add(self, variable: Variable) -> None:
        self.variables[variable.name] = variable

    def fix(self) -> Scope:
        """The same, of which nothing can be written."""
        return Scope({n: replace(v, owns=False, fixed=True) for n, v in self.variables.items()}, dict(self.extents))

    def having(self, kind: str = "real", shape: Shape | None = None, rank: int | None = None) -> list[Variable]:
        return [
            v
            for v in self.variables.values()
            if v.kind == kind and (shape is None or v.shape == shape) and (rank is None or v.rank == rank)
        ]

    def pool(self) -> list[Dim]:
        """Extents that are near at hand, the frequent ones more often."""
        return [d for v in self.variables.values() for d in v.shape if v.kind != "bool"]

    # -- text ------------------------------------------------------------------------------------------------
    def extent(self, dim: Dim) -> str:
        """An extent as source; Dead where its names cannot be reached."""
        if dim.value is not None:
            return str(dim.value)
        for v in self.variables.values():
            if v.weak:
                continue
            for axis, d in enumerate(v.shape):
                if d == dim:
                    return f"{v.name}.shape[{axis}]"
        symbol = dim.symbol
        if isinstance(symbol, str):
            if symbol in self.extents:
                return self.extents[symbol]
            raise Dead(symbol)
        return f"({dim.render(lambda atom: self.extent(Dim.of(atom)))})"

    def shape(self, shape: Shape) -> str:
        return "(" + ", ".join(self.extent(d) for d in shape) + ("," if len(shape) == 1 else "") + ")"


def broadcasts(small: Shape, large: Shape) -> bool:
    """Whether an array of the first shape takes part in the second without making it larger."""
    if len(small) > len(large):
        return False
    return all(a in (b, ONE) for a, b in zip(small[::-1], large[::-1], strict=False))
