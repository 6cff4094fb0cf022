"""Random numbers: the methods of a parameter `rng: Random`, numbered in the order in which they run.

    z = rng.standard_normal(x.shape)            z = rng.at(0).standard_normal(x.shape)
    for t in range(T):                   ->     for t in range(T):
        h = h + rng.random()                        h = h + rng.at(t + 1).random()

A draw becomes a pure call of its generator and its number. The number follows from shapes and loop counters where
that is so; else it is a variable that branches join and loops carry, like one the user might count with. Until it is
needed as a value it stands in the environment, under a name no user has.
"""

from __future__ import annotations

from typing import Any

import gast

from . import construct
from .construct import const, value_of
from .dims import Dim, nonnegative
from .operations import BY_SPELLING
from .program import Assign, Const, Expr, Name
from .strides import DRAWN, Strides, advanced
from .suggestions import nearest
from .typing import TypingError, broadcast
from .values import DRAWS, Generator, Static, Value

_DEFAULTS: dict[str, dict[str, float]] = {"uniform": {"low": 0.0, "high": 1.0}, "bernoulli": {"p": 0.5}}
_ALSO = {"size": "shape"}  # what NumPy calls it
_HELP = "rng." + ", rng.".join(f"{name}({', '.join(names.split())})" for name, names in DRAWS.items())


class Draws(Strides):
    """Mixed into the checker of functions."""

    # -- how many draws there were -----------------------------------------------------------------------------
    def new_generator(self: Any, name: Name) -> Generator:
        self.env[f"{DRAWN}{name.id}>"] = const(0)
        return Generator(name)

    # -- draws -------------------------------------------------------------------------------------------------
    def replayed(self: Any, target: Any) -> tuple[Generator, Any] | None:
        """rng and k, where the target of a method is rng.at(k)."""
        match target:
            case gast.Call(func=gast.Attribute(value=value, attr="at"), args=args, keywords=keywords):
                generator = self.value(value) if isinstance(value, gast.Name) and value.id in self.env else None
                if isinstance(generator, Generator):
                    if len(args) != 1 or keywords:
                        raise self.fail(target, "type", "rng.at takes the number of a draw")
                    return generator, args[0]
        return None

    def draw(self: Any, generator: Generator, node: Any, number: Any = None) -> Value:
        """A method of a generator; number: the node of k, in rng.at(k)."""
        attr = node.func.attr
        if attr == "at":
            help = f"{generator.name.id}.at(k).random(shape)"
            raise self.fail(node, "unsupported", "rng.at(k) is drawn from where it is written", help)
        if attr not in DRAWS:
            raise self.fail(
                node, "name", f"random generators have no method {attr} here", nearest(attr, DRAWS) or _HELP
            )
        which = None if number is None else self._number(number)
        given = self._drawing(attr, node)
        args = [given[n] for n in DRAWS[attr].split() if n != "shape"]
        shape = given["shape"] if "shape" in given else broadcast([a.type.shape for a in args])
        if which is None:
            which = self.env[id := f"{DRAWN}{generator.name.id}>"]
            self.env[id] = advanced(which, Dim.of(1))
        name = construct.replace(generator.name, span=self.span(node.func.value))
        if attr == "uniform":
            return self._uniform(name, which, *args, shape, node)
        if attr == "integers":
            self._not_empty(*args, node)
        return construct.call(BY_SPELLING[f"Random.{attr}"].name, name, which, *args, shape=shape, span=self.span(node))

    def _number(self: Any, node: Any) -> Expr:
        number = self.typed(node)
        known = value_of(number)
        if not number.type.is_integer or number.type.rank or (known is not None and (known.value or 0) < 0):
            raise self.fail(node, "type", "the number of a draw is an integer, from 0")
        return number

    def _drawing(self: Any, attr: str, node: Any) -> dict[str, Any]:
        """The arguments by name, evaluated in the order in which they are written."""
        names = DRAWS[attr].split()
        takes = f"it takes: {', '.join(names)}"
        if len(node.args) > len(names):
            raise self.fail(node, "type", f"rng.{attr} takes at most {len(names)} arguments", takes)
        written = list(zip(names, node.args, strict=False))
        written += [(_ALSO.get(k.arg, k.arg), k.value) for k in node.keywords]
        given: dict[str, Any] = {}
        for name, argument in written:
            if name not in names or name in given:
                raise self.fail(node, "type", f"rng.{attr} has no argument {name} left to give", takes)
            value = self.value(argument)
            if value == Static(None):
                continue
            given[name] = (
                self._extents(value, argument) if name == "shape" else self._scale(attr, name, value, argument)
            )
        if attr == "integers" and "high" not in given and "low" in given:
            given = {**given, "low": const(0), "high": given["low"]}
        for name, default in _DEFAULTS.get(attr, {}).items():
            given.setdefault(name, const(default))
        missing = [n for n in names if n not in given and n != "shape"]
        if missing:
            raise self.fail(node, "type", f"rng.{attr} needs {missing[0]}", takes)
        return given

    def _extents(self: Any, value: Value, node: Any) -> tuple[Dim, ...]:
        shape = self.shape(value, node)
        if any(nonnegative(-d - 1, self.facts) for d in shape):
            raise self.fail(node, "shape", "negative dimensions are not allowed")
        return shape

    def _scale(self: Any, attr: str, name: str, value: Value, node: Any) -> Expr:
        expr = self.as_expr(value, node)
        if attr == "integers" and not expr.type.is_integer:
            help = "convert it: int(...), .astype(np.int64); or draw with rng.uniform"
            raise self.fail(node, "type", f"{name} of rng.integers is an integer, got {expr.type}", help)
        if expr.type.dtype == "bool":
            raise self.fail(node, "type", f"{name} of rng.{attr} is a number, got {expr.type}")
        return expr

    def _uniform(self: Any, rng: Name, which: Expr, low: Expr, high: Expr, shape: tuple[Dim, ...], node: Any) -> Expr:
        """low + (high - low) * random: by other operations, so it has their derivatives."""
        if broadcast([shape, low.type.shape, high.type.shape]) != shape:
            raise TypingError("shape", "the limits of rng.uniform do not fit the shape that is drawn")
        number = construct.call("draw_random", rng, which, shape=shape, span=self.span(node))
        if low == const(0) or low == const(0.0):
            return number if high in (const(1), const(1.0)) else self._plain("multiply", high, number, node)
        if not isinstance(low, (Name, Const)):
            name = self.fresh("low")
            self.emit(Assign(name, low, self.span(node)))
            low = Name(name, low.type, value_of(low))
        width = self._plain("subtract", high, low, node)
        return self._plain("add", low, self._plain("multiply", width, number, node), node)

    def _plain(self: Any, op: str, a: Expr, b: Expr, node: Any) -> Expr:
        return self.apply(construct.ROWS[op], [a, b], {}, node)

    def _not_empty(self: Any, low: Expr, high: Expr, node: Any) -> None:
        """Nothing can be drawn from low >= high: an error now where that is known, else when it is run."""
        message = "rng.integers: low >= high"
        some = self.apply(construct.ROWS["less"], [low, high], {}, node)
        if isinstance(some, Const):
            if not some.value:
                raise self.fail(node, "type", message, "it draws from low to high - 1")
            return
        a, b = value_of(low), value_of(high)
        if a is not None and b is not None and nonnegative(b - a - 1, self.facts):
            return
        if some.type.rank:
            some = construct.call("all", some)
        self.require(some, message, node)


__all__ = ["Draws"]
