"""A typed function becomes a kernel: loop nests over named buffers (see ir.py).

    y = np.exp(x - np.max(x))      for i: y_max = max(y_max, x[i])
                                   for i: y[i] = exp(x[i] - y_max)

One perfect nest an array statement, row-major, over its iteration space. Views, moves and elementwise
operations are index
arithmetic inside it; reductions and products are nests that stand before. Nothing is optimised here: that is
the passes' work.

A function of one example stands inside a loop over the batch. Inputs, outputs and cotangents have the batch
as their first
axis, params and states do not; the gradients of params are summed over it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from . import ir
from .construct import any_config
from .dims import Dim
from .lowering.aliases import Writes
from .lowering.context import Place
from .lowering.faults import ErrorTable
from .lowering.scalars import cast, ir_dtype, neutral
from .lowering.statements import Statements
from .merge import merged
from .primal import primal
from .program import Assign, Call, Expr, For, Function, Name, Parameter, Pop, Result, Return, walk_stmts

BATCHED = ("input", "output", "cotangent", "memory")  # roles with a batch axis in functions of one example
_SCALARS = {"float": "f64", "int": "i64", "bool": "bool"}


def lower(
    function: Function, layer: str, errors: ErrorTable, name: str | None = None, checked: bool = False
) -> ir.Kernel:
    """The kernel of a function; `layer` is what errors name, `name` the kernel's (default: the function's).
    `checked`: every
    array that a statement computes must be finite."""
    made = _Function(merged(primal(function)), layer, errors)
    made.trapping = checked
    return made.kernel(name or function.name)


def sizes(function: Function) -> tuple[str, ...]:
    """The dims that a kernel takes: the symbols of its arrays' shapes, in order, without configuration."""
    found: dict[str, None] = {}
    for param in function.params:
        if not is_scalar(param):
            for dim in param.type.shape:
                found |= dict.fromkeys(sorted(dim.symbols()))
    return tuple(d for d in found if d not in {p.name for p in function.params if is_scalar(p)})


def is_scalar(param: Parameter) -> bool:
    """Whether a parameter is a C scalar: configuration, or the seed of a random generator."""
    return param.role in ("config", "random")


class _Function(Statements):
    def __init__(self, function: Function, layer: str, errors: ErrorTable) -> None:
        self.function = function
        self.sizes = sizes(function)
        self.taken = frozenset([*self.sizes, *(p.name for p in function.params)])
        bound = {s.name for s in walk_stmts(function.body) if isinstance(s, (Assign, Pop))}
        variables = {s.var for s in walk_stmts(function.body) if isinstance(s, For)}
        super().__init__(layer, errors, [*self.taken, *bound, *variables, *(r.name for r in function.results)])
        self.span = function.span
        self.writes = Writes.of(function.body)
        self.lists, self.destined = {}, {}
        self.batch = None if function.batched else self.fresh("batch")
        self.row = Dim.of(self.fresh("b")) if self.batch else None
        self.before: list[ir.Stmt] = []  # what stands before the loop over the batch
        for param in function.params:
            self._parameter(param)
        for name in (n for n in tuple(self.env) if n in self.writes.stores):
            self._own_copy(name)
        self.outputs = [
            self._output(replace(r, type=v.type), variables)
            for r, v in zip(function.results, self._values(), strict=True)
        ]
        self._destine()

    # -- arguments -----------------------------------------------------------------------------------------
    def _parameter(self, param: Parameter) -> None:
        if is_scalar(param):
            dtype = "i64" if param.role == "random" else _SCALARS[param.type.dtype]
            self.env[param.name] = ir.Scalar(param.name, dtype, _usual(param))
            if param.type.dtype == "int":
                self.facts[param.name] = any_config(param.name)
            return
        name = param.name if param.name not in self.sizes else self.fresh(param.name)
        self.env[param.name] = self._argument(name, param, "in")

    def _own_copy(self, name: str) -> None:
        """An argument that is written into: the function has a copy, the caller's array never changes."""
        given = self.env[name]
        assert isinstance(given, Place)
        buffer = self.buffer(self.fresh(name), given.dtype, given.shape)
        self.env[name] = place = Place(buffer, given.shape, given.dtype)
        self.nest(
            place.shape,
            lambda i: (ir.Store(buffer, i, ir.Load(given.buffer, given.at(i), given.dtype)),),
        )

    def _argument(self, name: str, what: Parameter | Result, kind: str) -> Place:
        shape, dtype = self.dims(what.type.shape), ir_dtype(what.type)
        lead = (Dim.of(self.batch),) if self.batch and what.role in BATCHED else ()
        self.buffer(name, dtype, (*lead, *shape), kind)
        return Place(name, shape, dtype, (self.row,) if lead and self.row else ())

    def _output(self, result: Result, variables: set[str]) -> Place:
        free = result.name not in {*self.buffers, *self.env, *self.sizes, *variables}
        return self._argument(result.name if free else self.fresh(result.name), result, "out")

    # -- results -------------------------------------------------------------------------------------------
    def _values(self) -> tuple[Expr, ...]:
        final = self.function.body[-1]
        assert isinstance(final, Return)
        return final.values

    def _direct(self, result: Result, value: Expr) -> bool:
        """Whether a returned variable can live in the output: then nothing is left to copy."""
        if (
            not isinstance(value, Name)
            or not value.type.rank
            or value.id not in self.writes.assigns
            or self._summed(result)
        ):
            return False
        if self.batch and result.role == "state":
            return False
        alone = sum(isinstance(v, Name) and v.id == value.id for v in self._values()) == 1
        lists = any(
            isinstance(s, Assign) and s.name == value.id and isinstance(s.value, Call) and s.value.op == "list"
            for s in walk_stmts(self.function.body)
        )
        return alone and not lists and value.type == result.type

    def _destine(self) -> None:
        for result, value, place in zip(self.function.results, self._values(), self.outputs, strict=True):
            if isinstance(value, Name) and self._direct(result, value):
                self.destined[value.id] = place

    def _summed(self, result: Result) -> bool:
        """Whether a result is summed over the batch: the gradient of what all examples share."""
        return self.batch is not None and result.role == "param"

    def results(self, values: tuple[Expr, ...]) -> None:
        """What is returned goes to the outputs. All of it is there before the first is written."""
        for result, value, place in zip(self.function.results, values, self.outputs, strict=True):
            if isinstance(value, Name) and value.id in self.destined:
                continue
            if self._summed(result):
                self._zeroed(place)
                self.accumulate(place, value, "add")
            elif self.batch and result.role == "state":
                self._state(result, place, value)
            else:
                self.compute(place, value)
                self.trap(place, result.name)

    def _zeroed(self, place: Place) -> None:
        with self.block(self.before):
            self.nest(place.shape, lambda i: (ir.Store(place.buffer, i, neutral(0, place.dtype)),))

    def _state(self, result: Result, place: Place, value: Expr) -> None:
        """A state that a function of one example assigns: examples run side by side and must agree, so the
        first says.
        """
        old = self.env.get(result.name)
        if isinstance(old, Place):
            with self.block(self.before):
                self.nest(
                    place.shape,
                    lambda i: (ir.Store(place.buffer, i, cast(ir.Load(old.buffer, i, old.dtype), place.dtype)),),
                )
        inside: list[ir.Stmt] = []
        with self.block(inside):
            self.compute(place, value)
        assert self.row is not None
        first = ir.Op("equal", (ir.Int(self.row), ir.Const(0, "i64")), "bool")
        self.emit(ir.If(first, tuple(inside)))

    # -- the whole -----------------------------------------------------------------------------------------
    def kernel(self, name: str) -> ir.Kernel:
        self.body(self.function.body)
        body = tuple(self.out)
        if self.batch and self.row:
            variable = self.row.symbol
            assert isinstance(variable, str)
            body = (*self.before, ir.For(variable, Dim.of(0), Dim.of(self.batch), body, "map"))
        scalars = tuple(s for p in self.function.params if isinstance(s := self.env[p.name], ir.Scalar))
        order = {"in": 0, "out": 1}
        buffers = tuple(sorted(self.buffers.values(), key=lambda b: 2 if b.alias else order.get(b.kind, 2)))
        dims = ((self.batch,) if self.batch else ()) + self.sizes
        gradient = any(r.role in ("input", "param") for r in self.function.results)
        return ir.Kernel(name, dims, scalars, buffers, body, self.batch, flush=gradient)


def _usual(param: Parameter) -> float | None:
    number = param.role == "config" and param.type.dtype in ("int", "float") and param.default is not None
    return param.default if number and math.isfinite(param.default) else None


__all__ = ["BATCHED", "ErrorTable", "is_scalar", "lower", "sizes"]
