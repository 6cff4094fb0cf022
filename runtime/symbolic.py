"""Numbers that a net has only when it runs: its batch size, its losses, the rates of its solver.

`rehearse` runs a net on stand-ins for its arrays and writes down what it does. What Python computes on the side is
then one of these: an `Extent`, an integer a N + b that knows how it depends on the batch, or a `Scalar`, an
expression to be evaluated in C. Everywhere else the functions below are those of `math`.
"""

import math
from collections.abc import Callable
from numbers import Number
from typing import Any

Node = tuple[Any, ...]  # ("const", 2.0)  ("extent", a, b)  ("name", "loss")  ("add", Node, Node) ...


class Unrecordable(TypeError):
    """What is done cannot be written down: it depends on values in a way that C has not been taught."""


class Extent(int):
    """times * N + plus, with the value that it has for the batch size of the rehearsal.

    What leads out of this form (the square of N, say) gives a plain integer; that the result then holds for one
    batch size only is found out by rehearsing with another.
    """

    times: int
    plus: int
    batch: int

    def __new__(cls, times: int, plus: int, batch: int) -> Any:
        value = times * batch + plus
        if times == 0:
            return value
        made = super().__new__(cls, value)
        made.times, made.plus, made.batch = times, plus, batch
        return made

    def _with(self, times: int, plus: int) -> Any:
        return Extent(times, plus, self.batch)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            times, plus = parts(other)
            return self._with(self.times + times, self.plus + plus)
        return as_scalar(self) + other

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self._with(-self.times, -self.plus)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Extent):
            return int(self) * int(other)
        if isinstance(other, int):
            return self._with(self.times * other, self.plus * other)
        return as_scalar(self) * other

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, Extent):
            quotient, rest = divmod(self.times, other.times)
            return quotient if not rest and self.plus == quotient * other.plus else int(self) // int(other)
        if isinstance(other, int) and other and not self.times % other and not self.plus % other:
            return self._with(self.times // other, self.plus // other)
        return int(self) // other

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int) and not isinstance(other, Extent) and other and not self.times % other:
            return self.plus % other
        return self - (self // other) * other

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __truediv__(self, other: Any) -> Any:
        return as_scalar(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return as_scalar(other) / self

    def __repr__(self) -> str:
        return f"{self.times} N + {self.plus}"


def parts(n: int) -> tuple[int, int]:
    """(a, b) of an integer a N + b."""
    return (n.times, n.plus) if isinstance(n, Extent) else (0, int(n))


class Scalar(Number):
    """An expression of type "float", "int" or "bool", with the operators that Python's own have.

    What Python would decide by its value (`if x > 0`) cannot be written down: Unrecordable.
    """

    __slots__ = ("kind", "node")

    def __init__(self, kind: str, node: Node) -> None:
        self.kind, self.node = kind, node

    def _joined(self, name: str, other: Any, swapped: bool = False, kind: str | None = None) -> "Scalar":
        if not isinstance(other, Number):
            return NotImplemented
        one, two = (as_scalar(other), self) if swapped else (self, as_scalar(other))
        wide = "float" if "float" in (one.kind, two.kind) else "int"
        return Scalar(
            kind or wide, (f"{name}_int" if name == "floordiv" and wide == "int" else name, one.node, two.node)
        )

    def __add__(self, other: Any) -> "Scalar":
        return self._joined("add", other)

    def __radd__(self, other: Any) -> "Scalar":
        return self._joined("add", other, True)

    def __sub__(self, other: Any) -> "Scalar":
        return self._joined("sub", other)

    def __rsub__(self, other: Any) -> "Scalar":
        return self._joined("sub", other, True)

    def __mul__(self, other: Any) -> "Scalar":
        return self._joined("mul", other)

    def __rmul__(self, other: Any) -> "Scalar":
        return self._joined("mul", other, True)

    def __truediv__(self, other: Any) -> "Scalar":
        return self._joined("div", other, kind="float")

    def __rtruediv__(self, other: Any) -> "Scalar":
        return self._joined("div", other, True, kind="float")

    def __floordiv__(self, other: Any) -> "Scalar":
        return self._joined("floordiv", other)

    def __mod__(self, other: Any) -> "Scalar":
        return self._joined("mod", other)

    def __pow__(self, other: Any) -> "Scalar":
        return self._joined("pow", other, kind="float")

    def __rpow__(self, other: Any) -> "Scalar":
        return self._joined("pow", other, True, kind="float")

    def __neg__(self) -> "Scalar":
        return Scalar(self.kind, ("neg", self.node))

    def __lt__(self, other: Any) -> "Scalar":
        return self._joined("lt", other, kind="bool")

    def __le__(self, other: Any) -> "Scalar":
        return self._joined("le", other, kind="bool")

    def __gt__(self, other: Any) -> "Scalar":
        return self._joined("gt", other, kind="bool")

    def __ge__(self, other: Any) -> "Scalar":
        return self._joined("ge", other, kind="bool")

    def __eq__(self, other: object) -> Any:
        return self._joined("eq", other, kind="bool")

    def __ne__(self, other: object) -> Any:
        return self._joined("ne", other, kind="bool")

    def _refuse(self) -> Any:
        raise Unrecordable("Python decides something by a value that is known only when the net runs")

    __bool__ = __float__ = __int__ = __index__ = _refuse
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Scalar{self.node}"


def as_scalar(value: Any) -> Scalar:
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Extent):
        return Scalar("int", ("extent", value.times, value.plus))
    if isinstance(value, bool):
        return Scalar("bool", ("const", value))
    if hasattr(value, "__index__"):
        return Scalar("int", ("const", int(value)))
    return Scalar("float", ("const", float(value)))


def number(value: Any) -> Any:
    """`float(value)`, of an array of one element too."""
    if isinstance(value, Scalar):
        return value
    return value.item() if hasattr(value, "tape") else float(value)


def choose(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`then() if condition else otherwise()`."""
    if not isinstance(condition, Scalar):
        return then() if condition else otherwise()
    one, two = as_scalar(then()), as_scalar(otherwise())
    kind = one.kind if one.kind == two.kind else "float"
    return Scalar(kind, ("choose", condition.node, one.node, two.node))


def ratio(a: Any, b: Any) -> Any:
    """a / b (a float would take an `Extent` for a plain integer)."""
    return as_scalar(a) / b if isinstance(b, Extent) else a / b


def sqrt(x: Any) -> Any:
    return Scalar("float", ("sqrt", x.node)) if isinstance(x, Scalar) else math.sqrt(x)


def cos(x: Any) -> Any:
    return Scalar("float", ("cos", x.node)) if isinstance(x, Scalar) else math.cos(x)


__all__ = ["Extent", "Node", "Scalar", "Unrecordable", "as_scalar", "choose", "cos", "number", "parts", "ratio", "sqrt"]
