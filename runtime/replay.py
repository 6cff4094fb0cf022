"""Running a schedule in Python: kernels with addresses that are known, element functions by NumPy.

What `layerc build net.py:net` turns into C, a Net uses itself: `predict` on batches for which the layers' Python takes
longer than their kernels. `Replay` is a function of the schedule with its places in the arena; `Bound` is that for one
batch size, with all addresses.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from layerc.runtime import seeds
from layerc.runtime.plan import places, tidied
from layerc.runtime.schedules import Draws, Function
from layerc.runtime.symbolic import parts
from layerc.runtime.tape import Buffer, Hold, Kernel, Let, Map, Range, Sum, Trap, View


class Failed(Exception):
    """A step fails; whoever runs the net the long way gets told why."""


class Replay:
    """A function of a schedule, ready to be bound to batch sizes."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.ops = list(function.ops)
        self.ops = [self.ops[k] for k in tidied(self.ops)]
        self.holds = [op for op in self.ops if isinstance(op, Hold)]
        self.at, self.arena = places([*self.holds, *self.ops])  # what is held stays while the next run begins

    def bytes(self, n: int) -> int:
        return self.arena[0] * n + self.arena[1]


class Bound:
    """For batches of n. inputs, outputs: arrays by name; `kept`: those that live from call to call, by name."""

    def __init__(self, replay: Replay, n: int, kept: Mapping[str, np.ndarray]) -> None:
        self.replay, self.n = replay, n
        self.names: dict[str, Any] = {}  # what Let and the caller give a name
        self._arrays: dict[Buffer, np.ndarray] = {}
        self._kept = kept
        self._arena = np.zeros(replay.bytes(n) + 64, np.uint8)
        self.calls: dict[Any, Any] = {}  # by library
        self.inputs = {p.name: np.zeros((n, *p.shape), p.dtype) for p in replay.function.inputs}
        self.outputs = {p.name: np.zeros((n, *p.shape), p.dtype) for p in replay.function.outputs}
        self.held: list[dict[Any, np.ndarray]] = []  # for each `Hold`, by name
        self._parts: list[list[tuple[Callable[..., Any], tuple[Any, ...]]]] = [[]]
        for op in replay.ops:
            if isinstance(op, Hold):
                self.held.append({name: self._array(view) for name, view in zip(op.names, op.reads)})
                self._parts.append([])
            else:
                self._parts[-1].append(self._step(op))

    def run(self, part: int = 0) -> None:
        """What is done up to the first `Hold`, or between two. Failed where a step does."""
        for library, call in self.calls.items():
            call.threads = library.threads
        for function, arguments in self._parts[part]:
            if function(*arguments):
                raise Failed

    def result(self) -> Any:
        return self.number(self.replay.function.result)

    # -- steps: a function and its arguments; it returns something true where it fails ----------------------------

    def _step(self, op: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        match op:
            case Kernel():
                return self._kernel(op)
            case Map():
                return self._map(op)
            case Sum(arg, write):
                return self._sum, (self._array(arg), self._array(write))
            case Let(name, _, value):
                source = self._array(value) if isinstance(value, View) else value
                return self._let, (name, source)
            case Range():
                return self._outside, (self._array(op.view), self._size(op.low), self._size(op.high), op.skip)
            case Trap():
                return lambda: self.number(op.condition), ()
        raise AssertionError(op)

    def _kernel(self, op: Kernel) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        library = op.package.library
        call = self.calls.setdefault(library, library.new_call())
        function = getattr(library.functions, op.symbol)
        addresses = [library.from_buffer(self._array(v)) for v in (*op.reads, *op.writes)]
        if all(s[0] in ("const", "extent") for s in op.scalars):
            return function, (*map(self.number, op.scalars), *addresses, call)
        return (lambda: function(*map(self.number, op.scalars), *addresses, call)), ()

    def _map(self, op: Map) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        target = self._array(op.write)
        args = [self._argument(a, t) for a, t in zip(op.args, op.types)]

        def values() -> list[Any]:
            pairs = zip(args, op.types)
            return [a.astype(t, copy=False) if isinstance(a, np.ndarray) else t.type(self.number(a)) for a, t in pairs]

        known = all(isinstance(a, np.ndarray) and a.dtype == t for a, t in zip(args, op.types))
        if op.function == "copy":
            if isinstance(args[0], np.ndarray):
                return np.copyto, (target, args[0], "unsafe")
            return (lambda: np.copyto(target, *values())), ()
        if op.function == "where":
            return (lambda: np.copyto(target, np.where(*values()))), ()
        ufunc = getattr(np, op.function)
        if known and target.dtype == op.types[-1]:
            return _ufunc, (ufunc, args, target)
        return (lambda: np.copyto(target, ufunc(*values()), "unsafe")), ()

    def _argument(self, given: Any, dtype: np.dtype) -> Any:
        """An array; a number that is known as an array of none of the axes; or the node of another."""
        if isinstance(given, View):
            return self._array(given)
        return np.array(self.number(given), dtype) if given[0] in ("const", "extent") else given

    @staticmethod
    def _sum(arg: np.ndarray, write: np.ndarray) -> None:
        gone = tuple(k for k, s in enumerate(write.strides) if s == 0 and write.shape[k] != 1)
        place = tuple(slice(0, 1) if k in gone else slice(None) for k in range(write.ndim))
        target = write[place]
        np.copyto(target, np.sum(arg, axis=gone or (), dtype=write.dtype, keepdims=True))

    def _let(self, name: str, value: Any) -> None:
        self.names[name] = value.item() if isinstance(value, np.ndarray) else self.number(value)

    @staticmethod
    def _outside(array: np.ndarray, low: int, high: int, skip: int | None) -> bool:
        bad = (array < low) | (array >= high)
        if skip is not None:
            bad &= array != skip
        return bool(bad.any())

    # -- arrays and numbers ---------------------------------------------------------------------------------------

    def _size(self, size: int) -> int:
        times, plus = parts(size)
        return times * self.n + plus

    def _array(self, view: View) -> np.ndarray:
        base = self._base(view.buffer)
        item = base.dtype.itemsize
        shape = tuple(map(self._size, view.shape))
        strides = tuple(self._size(s) * item for s in view.strides)
        made = np.lib.stride_tricks.as_strided(base[self._size(view.offset) :], shape, strides)
        return made if not view.contiguous else base[self._size(view.offset) :][: math.prod(shape)].reshape(shape)

    def _base(self, buffer: Buffer) -> np.ndarray:
        found = self._arrays.get(buffer)
        if found is None:
            found = self._arrays[buffer] = self._new_base(buffer)
        return found

    def _new_base(self, buffer: Buffer) -> np.ndarray:
        size = self._size(buffer.size)
        if buffer.kind == "const":
            assert buffer.data is not None
            return buffer.data.reshape(-1)
        if buffer.kind != "arena":
            table = {"input": self.inputs, "output": self.outputs}.get(buffer.kind, self._kept)
            return table[buffer.name].reshape(-1)
        grows, place = self.replay.at[buffer]
        at = place * self.n if grows else self.replay.arena[0] * self.n + place
        at += -self._arena.ctypes.data % 64
        return self._arena[at : at + size * buffer.dtype.itemsize].view(buffer.dtype)

    def number(self, node: Any) -> Any:
        """A number of the record, from what was done last."""
        kind, *rest = node
        if kind == "const":
            return rest[0]
        if kind == "extent":
            return rest[0] * self.n + rest[1]
        if kind == "name":
            return self.names[rest[0]]
        if kind == "seed":
            draws: Draws = rest[0]
            return seeds.nth(draws.root, draws.count + rest[1] + draws.each * self.names["iteration"])
        if kind == "choose":
            return self.number(rest[1] if self.number(rest[0]) else rest[2])
        return _NUMBERS[kind](*map(self.number, rest))


def _ufunc(function: Callable[..., Any], args: list[np.ndarray], target: np.ndarray) -> None:
    function(*args, out=target)


_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "floordiv": lambda x, y: x // y,
    "floordiv_int": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "pow": lambda x, y: x**y,
    "neg": lambda x: -x,
    "sqrt": math.sqrt,
    "cos": math.cos,
    "isnan": math.isnan,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
}


__all__ = ["Bound", "Failed", "Replay"]
