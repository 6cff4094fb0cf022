"""A net that `layerc build net.py:net` made, seen from Python: its library and its memory as NumPy arrays.

import net_compiled as N
y = N.predict(x);  loss = N.train_step(x, label);  N.params["ip1.weight"];  N.save("new.safetensors")
other = N.open()          # another net of the kind, with arrays of its own
"""

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from layerc.runtime import manifest, threads
from layerc.runtime.quick import empty

_AGAIN = "build the net again"
_ERRORS: dict[str, type[Exception]] = {
    "MEMORY": MemoryError,
    "ARGUMENT": ValueError,
    "FILE": OSError,
    "WEIGHTS": ValueError,
    "VALUE": ValueError,
    "INDEX": IndexError,
    "NAN": FloatingPointError,
}


def load(file: str) -> Callable[[], "BuiltNet"]:
    """What opens nets of the package whose `__init__.py` is `file`. ImportError, saying what to do, if none can be."""
    directory = Path(file).parent
    told = manifest.read(directory, ("net",), _AGAIN)
    net = told["net"]
    ffi = cffi.FFI()
    ffi.cdef(f"{net['cdef']}\nconst char *{net['prefix']}_missing_feature(void);")
    library = directory / f"lib{net['prefix']}.so"
    try:
        manifest.check_size(library, told, _AGAIN)
        functions = ffi.dlopen(str(library))
        missing = getattr(functions, f"{net['prefix']}_missing_feature")()
    except (OSError, AttributeError) as error:
        raise ImportError(f"{library}: cannot be loaded here ({error}); {_AGAIN}") from None
    if missing:
        raise ImportError(f"{library}: built for a CPU with {ffi.string(missing).decode()}, which this one lacks")
    return lambda: BuiltNet(net, ffi, functions, directory / "weights.safetensors")


class BuiltNet:
    """A net with its parameters and states, which are arrays on its own memory: `params["ip1.weight"][...] = w`.

    One thread at a time; the GIL is released during a call.
    """

    def __init__(self, net: Mapping[str, Any], ffi: Any, functions: Any, weights: Path) -> None:
        self.name: str = net["name"]
        self._net, self._ffi = net, ffi
        self._codes = net["codes"]
        prefix = net["prefix"]
        self._call = lambda name: getattr(functions, f"{prefix}_{name}")
        self._handle = self._call("open")()
        if self._handle == ffi.NULL:
            raise MemoryError(f"net {self.name!r}: no memory")
        weakref.finalize(self, self._call("close"), self._handle).atexit = False
        self.params: dict[str, np.ndarray] = {}
        self.states: dict[str, np.ndarray] = {}
        for k, held in enumerate(net["held"]):
            target = self.params if held["buffer"] == "parameters" else self.states
            target[held["name"]] = self._array(self._call("tensor_data")(self._handle, k), held)
        self._predict = _Ports(self, "predict", net["predict"])
        (output,) = net["predict"]["outputs"]
        self._output = tuple(output["shape"]), np.dtype(output["dtype"])
        self._train = None if net["train"] is None else _Ports(self, "train_step", net["train"])
        self._loss = ffi.new("double *")
        self._threads = -1
        self._address = ffi.from_buffer
        self.load(weights)

    def _array(self, address: Any, held: Mapping[str, Any]) -> np.ndarray:
        dtype, size = np.dtype(held["dtype"]), int(np.prod(held["shape"], dtype=np.int64))
        if not size:
            return np.zeros(held["shape"], dtype)
        array = np.frombuffer(self._ffi.buffer(address, size * dtype.itemsize), dtype).reshape(held["shape"])
        return _Kept(array, self)

    def predict(self, *inputs: Any) -> np.ndarray:
        """The output for a batch of each input. ValueError, TypeError, IndexError naming blob or layer."""
        arrays, batch = self._predict.taken(inputs)
        shape, dtype = self._output
        y = empty((batch, *shape), dtype)
        self._run(self._predict.function, *map(self._address, (*arrays, y)), batch)
        return y

    __call__ = predict

    def train_step(self, *inputs: Any) -> float:
        """Forward, backward, one update; the loss of this batch before it, regularizers included."""
        if self._train is None:
            raise NotImplementedError(f"net {self.name!r} was built without a solver, for inference only")
        arrays, batch = self._train.taken(inputs)
        self._run(self._train.function, *map(self._address, arrays), batch, self._loss)
        return float(self._loss[0])

    @property
    def iteration(self) -> int:
        """Steps of training done."""
        return int(self._call("iteration")(self._handle))

    def set_learning_rate(self, rate: float | None) -> None:
        """In place of the solver's own, from the next step on; None: the solver's again."""
        self._set("learning_rate", rate, math.inf)

    def set_momentum(self, momentum: float | None) -> None:
        """The same for the momentum."""
        self._set("momentum", momentum, 1.0)

    def _set(self, what: str, value: float | None, below: float) -> None:
        if value is not None and not (isinstance(value, Real) and 0 <= value < below):
            bound = "" if below == math.inf else f" and below {below:g}"
            raise ValueError(f"net {self.name!r}: {what}={value!r} must be a number, 0 or more{bound}")
        self._call(f"set_{what}")(self._handle, math.nan if value is None else float(value))

    def load(self, path: Any) -> None:
        """Parameters and states from a safetensors file: all, or nothing (OSError, ValueError)."""
        self._run(self._call("load_safetensors"), str(path).encode())

    def save(self, path: Any) -> None:
        self._run(self._call("save_safetensors"), str(path).encode())

    def arena_size(self, batch: int, training: bool = False) -> int:
        """Bytes of all blobs and temporaries."""
        return int(self._call("arena_size")(batch, training))

    def _run(self, function: Any, *arguments: Any) -> None:
        count = threads.get_num_threads()
        if count != self._threads:
            self._call("set_threads")(self._handle, count)
            self._threads = count
        code = function(self._handle, *arguments)
        if code:
            text = self._ffi.string(self._call("message")(self._handle)).decode(errors="replace")
            raise _ERRORS[self._codes[code]](f"net {self.name!r}: {text}")

    def __repr__(self) -> str:
        return f"<built net {self.name!r}: {', '.join(p['name'] for p in self._net['predict']['inputs'])}>"


class _Kept(np.ndarray):
    """An array on the memory of a net, which it keeps alive."""

    _owner: Any

    def __new__(cls, array: np.ndarray, owner: Any) -> "_Kept":
        made = array.view(cls)
        made._owner = owner
        return made

    def __array_finalize__(self, other: Any) -> None:
        self._owner = getattr(other, "_owner", None)


class _Ports:
    """The arrays that a function takes."""

    def __init__(self, net: BuiltNet, name: str, function: Mapping[str, Any]) -> None:
        self.net, self.name = net, name
        self.function = net._call(name)
        self.ports = [(p["name"], tuple(p["shape"]), np.dtype(p["dtype"])) for p in function["inputs"]]

    def taken(self, inputs: Sequence[Any]) -> tuple[list[np.ndarray], int]:
        """The arrays, as the function wants them, and the batch size."""
        if len(inputs) != len(self.ports):
            names = ", ".join(name for name, _, _ in self.ports)
            raise TypeError(f"{self.name}: takes {len(self.ports)} arrays ({names}), got {len(inputs)}")
        arrays, batch = [], -1
        for given, (name, shape, dtype) in zip(inputs, self.ports):
            array = given if type(given) is np.ndarray else np.asarray(given)
            if array.shape[1:] != shape or array.ndim == 0:
                raise ValueError(
                    f"{self.name}: blob {name!r} has shape {shape} without the batch, cannot take {array.shape}"
                )
            if array.dtype != dtype:
                if array.dtype.kind not in ("fiub" if dtype.kind == "f" else "iu"):
                    raise TypeError(f"{self.name}: blob {name!r} is {dtype}, cannot take {array.dtype}")
                array = array.astype(dtype)
            count = len(array)
            if batch >= 0 and count != batch:
                raise ValueError(f"{self.name}: blob {name!r} has {count} examples, {self.ports[0][0]!r} {batch}")
            if not count:
                raise ValueError(f"{self.name}: blob {name!r} has no examples")
            batch = count
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                array = np.require(array, requirements=["C", "A"])
            arrays.append(array)
        return arrays, batch


__all__ = ["BuiltNet", "load"]
