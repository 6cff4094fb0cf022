"""`StandIn`: an array of a rehearsal, with a shape and a type but without values. What NumPy is asked to do with it
goes to its `Tape`; what the tape has no word for is Unrecordable, by name.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.symbolic import Scalar, Unrecordable, as_scalar
from layerc.runtime.tape import Map, Range, Shape, Sum, Tape, View, broadcast, row_major

# NumPy's functions of elements that C is taught (`layerc.build.net_maps`).
KNOWN = frozenset(
    "absolute add divide equal exp greater greater_equal less less_equal log logical_and logical_not logical_or "
    "maximum minimum multiply negative not_equal sign sqrt square subtract tanh bitwise_and bitwise_or invert".split()
)
_PYTHON = {"float": float, "int": int, "bool": bool}


class _Flags(NamedTuple):
    c_contiguous: bool
    aligned: bool = True
    writeable: bool = True


class StandIn(np.lib.mixins.NDArrayOperatorsMixin):
    """A view on a tape, with NumPy's manners."""

    def __init__(self, tape: Tape, view: View) -> None:
        self.tape, self.view = tape, view

    # -- what it is ----------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.view.shape

    @property
    def dtype(self) -> np.dtype:
        return self.view.buffer.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def flags(self) -> _Flags:
        return _Flags(self.view.contiguous)

    @property
    def T(self) -> "StandIn":
        return self.transpose()

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Unrecordable("Python reads values of an array, which are known only when the net runs")

    __bool__ = __float__ = __int__ = __index__ = __array__ = tolist = _refuse

    def item(self) -> Scalar:
        """Its one element, as a number."""
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a number")
        kind = {"f": "float", "b": "bool"}.get(self.dtype.kind, "int")
        return self.tape.let(kind, self.view)

    # -- other views of it -----------------------------------------------------------------------------------

    def _seen(self, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> "StandIn":
        at = self.view.offset if offset is None else offset
        return StandIn(self.tape, View(self.view.buffer, at, tuple(shape), tuple(strides)))

    def reshape(self, *shape: Any) -> "StandIn":
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        if -1 in wanted:
            rest = math.prod(n for n in wanted if n != -1)
            wanted = tuple(self.size // rest if n == -1 else n for n in wanted)
        if math.prod(wanted) != self.size:
            raise ValueError(f"cannot reshape array of shape {self.shape} into shape {wanted}")
        if wanted == self.shape:
            return self
        packed = StandIn(self.tape, self.tape.packed(self.view))
        return packed._seen(wanted, row_major(wanted))

    def ravel(self) -> "StandIn":
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> "StandIn":
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
        order = [a % self.ndim for a in order] or list(reversed(range(self.ndim)))
        return self._seen([self.shape[a] for a in order], [self.view.strides[a] for a in order])

    def swapaxes(self, a: int, b: int) -> "StandIn":
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.transpose(order)

    def __getitem__(self, key: Any) -> "StandIn":
        keys = list(key) if isinstance(key, tuple) else [key]
        used = sum(k is not None and k is not Ellipsis for k in keys)
        if Ellipsis in [k if k is Ellipsis else None for k in keys]:
            at = next(i for i, k in enumerate(keys) if k is Ellipsis)
            keys[at : at + 1] = [slice(None)] * (self.ndim - used)
        keys += [slice(None)] * (self.ndim - sum(k is not None for k in keys))
        shape, strides, offset, axis = [], [], self.view.offset, 0
        for k in keys:
            if k is None:
                shape.append(1)
                strides.append(0)
                continue
            n, step = self.shape[axis], self.view.strides[axis]
            axis += 1
            if isinstance(k, slice):
                start, count, by = _slice(k, n)
                shape.append(count)
                strides.append(by * step)
                offset = offset + start * step
            elif hasattr(k, "__index__") and not isinstance(k, np.ndarray | StandIn):
                if not -n <= k < n:
                    raise IndexError(f"index {k} is out of bounds for axis {axis - 1} with size {n}")
                offset = offset + (k + n if k < 0 else k) * step
            else:
                raise Unrecordable("an array is indexed by another")
        return self._seen(shape, strides, offset)

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key].view
        if isinstance(value, StandIn) and _same(value.view, target):
            return  # the end of `a[key] += b`
        self.tape.put(Map("copy", *_taken(self.tape, [value], target, (None,)), target))

    # -- new arrays -------------------------------------------------------------------------------------------

    def fresh(self, shape: Sequence[int] | None = None, dtype: Any = None) -> "StandIn":
        made = self.tape.fresh(self.shape if shape is None else shape, dtype or self.dtype)
        return StandIn(self.tape, made)

    def copy(self, order: str = "C") -> "StandIn":
        made = self.fresh()
        made[...] = self
        return made

    def astype(self, dtype: Any, copy: bool = True, **_: Any) -> "StandIn":
        if not copy and self.dtype == dtype:
            return self
        made = self.fresh(dtype=np.dtype(dtype))
        made[...] = self
        return made

    def fill(self, value: Any) -> None:
        self[...] = value

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> "StandIn":
        return _sum(self, axis, dtype, keepdims=keepdims)

    def require_range(self, low: int, high: int, skip: int | None, message: str) -> None:
        """The net fails where an element lies outside low..high-1, and is not `skip`."""
        self.tape.put(Range(self.view, low, high, skip, f"{self.tape.where}: {message}"))

    # -- NumPy ------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out, dtype = options.pop("out", (None,))[0], options.pop("dtype", None)
        if method != "__call__" or options or ufunc.__name__ not in KNOWN:
            raise Unrecordable(f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method} is called")
        given = tuple(_kind(x) for x in inputs)
        signature: Any = {} if dtype is None else {"signature": (*[None] * len(given), np.dtype(dtype))}
        types = ufunc.resolve_dtypes((*given, None), **signature)
        shape = np.broadcast_shapes(*(() if np.isscalar(x) or isinstance(x, Scalar) else x.shape for x in inputs))
        shape = _with_extents(shape, inputs)
        made = self.fresh(shape, types[-1]) if out is None else out
        args, loop = _taken(self.tape, inputs, made.view, types[:-1])
        self.tape.put(Map(ufunc.__name__, args, (*loop[:-1], types[-1]), made.view))
        return made

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            raise Unrecordable(f"np.{function.__name__} is called")
        return known(*args, **options)

    def __repr__(self) -> str:
        return f"StandIn({self.shape}, {self.dtype})"


class StandInBlob(Blob):
    """A blob of a rehearsal; `data` is None until something is put in."""

    __slots__ = ("_kind", "tape")

    def __init__(self, tape: Tape, dtype: Any, data: Any = None) -> None:
        self.tape, self._kind = tape, np.dtype(dtype)
        self._diff = NullBlob()
        self._data = data

    @property
    def dtype(self) -> np.dtype:
        return self._kind

    @property
    def data(self) -> Any:
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        if value is not self._data:
            made = StandIn(self.tape, self.tape.fresh(value.shape, self._kind))
            made[...] = value
            self._data = made

    def fresh(self, shape: Shape) -> "StandInBlob":
        return StandInBlob(self.tape, self._kind, StandIn(self.tape, self.tape.fresh(shape, self._kind)))

    def zeros(self, shape: Shape) -> Any:
        made = self.fresh(shape)._data
        made.fill(0)
        return made

    def resize(self, shape: Any) -> None:
        if self._data is None or tuple(shape) != self.shape:
            self._data = self.fresh(tuple(shape))._data

    def adopt(self, array: Any) -> None:
        self._data = as_stand_in(self.tape, array)
        self._data = StandIn(self.tape, self.tape.packed(self._data.view))
        self._kind = self._data.dtype

    def copy_in(self, array: Any) -> None:
        if array.dtype == self._kind:
            self.data = array
        else:
            self.adopt(array.copy())

    def to_array(self) -> Any:
        return self._data.copy()


def as_stand_in(tape: Tape, array: Any) -> StandIn:
    return array if isinstance(array, StandIn) else StandIn(tape, tape.constant(np.asarray(array)))


def first_of(arrays: Any) -> StandIn | None:
    """The first stand-in among arrays."""
    if StandIn not in set(map(type, arrays)):
        return None
    return next(a for a in arrays if isinstance(a, StandIn))


# -- arguments of element functions -----------------------------------------------------------------------------


def _kind(x: Any) -> Any:
    """A type, or Python's for numbers, which take the type they meet."""
    if isinstance(x, Scalar):
        return _PYTHON[x.kind]
    return type(x) if type(x) in (int, float, bool) else float if isinstance(x, float) else _int_or_type(x)


def _int_or_type(x: Any) -> Any:
    return int if isinstance(x, int) else np.asarray(x).dtype if np.isscalar(x) else x.dtype


def _taken(tape: Tape, inputs: Sequence[Any], target: View, types: Sequence[Any]) -> tuple[tuple, tuple]:
    """Arguments of a `Map`: views broadcast to the target, nodes for numbers; and types, the target's last."""
    args: list[Any] = []
    kinds: list[Any] = []
    for x, dtype in zip(inputs, types):
        if isinstance(x, Scalar) or np.isscalar(x):
            args.append(as_scalar(x).node)
            kinds.append(target.buffer.dtype if dtype is None else dtype)
        else:
            view = as_stand_in(tape, x).view
            args.append(broadcast(view, target.shape))
            kinds.append(view.buffer.dtype if dtype is None else dtype)
    return tuple(args), (*kinds, target.buffer.dtype)


def _with_extents(shape: Sequence[int], inputs: Sequence[Any]) -> Shape:
    """The shape, each size as one of the inputs says it (NumPy has made plain integers of them)."""
    made: list[int] = list(shape)
    for x in inputs:
        for k, n in enumerate(reversed(getattr(x, "shape", ()))):
            if n != 1:
                made[-1 - k] = n
    return tuple(made)


def _same(a: View, b: View) -> bool:
    return (a.buffer, a.offset, a.shape, a.strides) == (b.buffer, b.offset, b.shape, b.strides)


def _slice(k: slice, n: int) -> tuple[int, int, int]:
    """First element, number of elements, step; sizes stay what they are."""
    step = 1 if k.step is None else k.step
    if step == 1:
        start = _within(k.start, 0, n)
        stop = _within(k.stop, n, n)
        return start, (stop - start if stop > start else 0), 1
    start, stop, step = k.indices(n)
    return start, len(range(start, stop, step)), step


def _within(at: Any, default: int, n: int) -> int:
    if at is None:
        return default
    at = at + n if at < 0 else at
    return 0 if at < 0 else n if at > n else at


# -- NumPy's functions ------------------------------------------------------------------------------------------


def _sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, **options: Any) -> StandIn:
    if options:
        raise Unrecordable("np.sum is called with more than axis, dtype and keepdims")
    kind = np.dtype(dtype) if dtype is not None else np.zeros(1, a.dtype).sum().dtype
    axes = range(a.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {k % a.ndim for k in axes}
    kept = tuple(1 if k in gone else n for k, n in enumerate(a.shape))
    made = a.fresh(kept, kind)
    view = made.view
    steps = tuple(0 if k in gone else s for k, s in enumerate(view.strides))
    a.tape.put(Sum(a.view, View(view.buffer, view.offset, a.shape, steps)))
    return made if keepdims else made.reshape(tuple(n for k, n in enumerate(a.shape) if k not in gone))


def _where(condition: Any, x: Any, y: Any) -> StandIn:
    first = first_of((condition, x, y))
    assert first is not None
    dtype = np.result_type(*(0.0 if isinstance(v, float) else 0 if isinstance(v, int) else v.dtype for v in (x, y)))
    shapes = [getattr(v, "shape", ()) for v in (condition, x, y)]
    made = first.fresh(_with_extents(np.broadcast_shapes(*shapes), (condition, x, y)), dtype)
    args, types = _taken(first.tape, (condition, x, y), made.view, (np.dtype(bool), dtype, dtype))
    first.tape.put(Map("where", args, types, made.view))
    return made


def _concatenate(arrays: Sequence[Any], axis: int = 0) -> StandIn:
    first = first_of(arrays)
    assert first is not None
    axis = axis % first.ndim
    total: Any = sum(a.shape[axis] for a in arrays)
    dtype = np.result_type(*(a.dtype for a in arrays))
    made = first.fresh((*first.shape[:axis], total, *first.shape[axis + 1 :]), dtype)
    start: int = 0
    for a in arrays:
        made[(*[slice(None)] * axis, slice(start, start + a.shape[axis]))] = a
        start = start + a.shape[axis]
    return made


def _split(a: StandIn, ends: Any, axis: int = 0) -> list[StandIn]:
    places = [0, *(int(e) for e in ends), a.shape[axis]]
    lead = [slice(None)] * (axis % a.ndim)
    return [a[(*lead, slice(low, high))] for low, high in pairwise(places)]


def _moveaxis(a: StandIn, source: int, destination: int) -> StandIn:
    order = [k for k in range(a.ndim) if k != source % a.ndim]
    order.insert(destination % a.ndim, source % a.ndim)
    return a.transpose(order)


def _like(value: Any) -> Callable[..., StandIn]:
    def make(a: StandIn, dtype: Any = None, **_: Any) -> StandIn:
        made = a.fresh(dtype=dtype)
        if value is not None:
            made.fill(value)
        return made

    return make


def _full_like(a: StandIn, value: Any, dtype: Any = None) -> StandIn:
    made = a.fresh(dtype=dtype)
    made.fill(value)
    return made


def _copyto(target: StandIn, source: Any, **_: Any) -> None:
    target[...] = source


def _clip(a: StandIn, low: Any, high: Any, out: Any = None) -> Any:
    return np.minimum(np.maximum(a, low), high, out=out)


def _shares(a: Any, b: Any, *_: Any) -> bool:
    return isinstance(a, StandIn) and isinstance(b, StandIn) and a.view.buffer is b.view.buffer


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.broadcast_to: lambda a, shape, **_: StandIn(a.tape, broadcast(a.view, shape)),
    np.clip: _clip,
    np.concatenate: _concatenate,
    np.copyto: _copyto,
    np.empty_like: _like(None),
    np.expand_dims: lambda a, axis: a.reshape(*a.shape[: axis % (a.ndim + 1)], 1, *a.shape[axis % (a.ndim + 1) :]),
    np.full_like: _full_like,
    np.may_share_memory: _shares,
    np.moveaxis: _moveaxis,
    np.ones_like: _like(1),
    np.ravel: StandIn.ravel,
    np.reshape: StandIn.reshape,
    np.shape: lambda a: a.shape,
    np.shares_memory: _shares,
    np.split: _split,
    np.sum: _sum,
    np.swapaxes: StandIn.swapaxes,
    np.transpose: lambda a, axes=(): a.transpose(axes) if axes else a.transpose(),
    np.where: _where,
    np.zeros_like: _like(0),
}
