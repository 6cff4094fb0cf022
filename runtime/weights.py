"""Arrays of a net in files: `layer.param` in safetensors, `layer/param` in HDF5."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime.whole_files import written_whole

if TYPE_CHECKING:
    from layerc.runtime.net import Net

Tensors = dict[str, np.ndarray]
_META = "layerc"
HISTORY = "solver:"  # so begin the names of a solver's arrays in a snapshot
_H5 = (".h5", ".hdf5")
_SAFE_TYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "int32": "I32", "bool": "BOOL"}


def collect(net: "Net") -> Tensors:
    """Copies of every parameter and state of the net by name."""
    found = {name: p.data.copy() for name, p in net.named_parameters().items()}
    for layer, states in net.states.items():
        found |= {f"{layer}.{name}": np.array(value) for name, value in states.items()}
    return found


def put(net: "Net", tensors: Mapping[str, np.ndarray], strict: bool = True) -> None:
    """Set parameters and states by name. ValueError naming all that is wrong, before anything is changed."""
    have = {name: np.asarray(value) for name, value in tensors.items()}
    held = collect(net)
    want = {name: a.shape for name, a in held.items()}
    of_examples = {
        f"{state.layer.name}.{name}"
        for state in net.track.states
        if state is not None
        for name in state.layer.states_of_examples(state)
    }

    def fits(name: str) -> bool:
        """Whether it has the shape; what the last batch left has any number of examples."""
        free = name in of_examples and have[name].ndim > 0
        return have[name].shape[free:] == want[name][free:]

    missing = [name for name in want if name not in have]
    unexpected = [name for name in have if name not in want]
    shapes = [f"{n} {have[n].shape} instead of {want[n]}" for n in want if n in have and not fits(n)]
    kinds = [f"{n} {have[n].dtype}" for n in want if n in have and have[n].dtype.kind != held[n].dtype.kind]
    if strict and (missing or unexpected or shapes or kinds):
        parts = [("missing", missing), ("unexpected", unexpected), ("of another shape", shapes)]
        parts += [("of another type", kinds)]
        text = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)
        raise ValueError(f"the weights do not fit net {net.name!r}: {text}")
    fitting = {n: a for n, a in have.items() if n in want and fits(n) and a.dtype.kind == held[n].dtype.kind}
    for name, p in net.named_parameters().items():
        if name in fitting:
            p.data[...] = fitting[name]
    for state in [s for s in net.track.states if s is not None]:
        new = {s: fitting.get(f"{state.layer.name}.{s}") for s in state.states}
        if any(value is not None for value in new.values()):
            state.states = {
                s: old if new[s] is None else np.array(new[s], dtype=old.dtype) for s, old in state.states.items()
            }


def write(path: Any, tensors: Mapping[str, np.ndarray], meta: Mapping[str, Any] | None = None) -> None:
    """Write a file whole or not at all: beside it first, then renamed. ValueError for an unknown suffix."""
    path = Path(path)
    kind = _suffix(path)
    with written_whole(path) as scratch:
        if kind in _H5:
            _write_h5(scratch, tensors, meta)
        else:
            _write_safetensors(scratch, tensors, meta)


def read(path: Any) -> Tensors:
    """The arrays of a file, of a snapshot without the solver's. FileNotFoundError, ValueError for a file that is
    none."""
    tensors, meta = read_with_meta(path)
    return tensors if meta is None else {name: a for name, a in tensors.items() if not name.startswith(HISTORY)}


def read_with_meta(path: Any) -> tuple[Tensors, dict[str, Any] | None]:
    """The arrays, and what was written with them."""
    path = Path(path)
    kind = _suffix(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        return _read_h5(path) if kind in _H5 else _read_safetensors(path)
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _write_safetensors(path: str, tensors: Mapping[str, np.ndarray], meta: Mapping[str, Any] | None) -> None:
    numpy = _need("safetensors.numpy", "safetensors", "all")
    contiguous = {name: np.ascontiguousarray(a).reshape(np.shape(a)) for name, a in tensors.items()}
    numpy.save_file(contiguous, path, metadata=None if meta is None else {_META: json.dumps(meta)})


def packed(tensors: Mapping[str, np.ndarray]) -> bytes:
    """A safetensors file of these arrays, in their order."""
    header, parts, at = {}, [], 0
    for name, array in tensors.items():
        data = np.ascontiguousarray(array).tobytes()
        shape, end = list(np.shape(array)), at + len(data)
        header[name] = {"dtype": _SAFE_TYPES[array.dtype.name], "shape": shape, "data_offsets": [at, end]}
        parts.append(data)
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def _read_safetensors(path: Path) -> tuple[Tensors, dict[str, Any] | None]:
    safetensors = _need("safetensors", "safetensors", "all")
    with safetensors.safe_open(path, framework="numpy") as file:
        meta = (file.metadata() or {}).get(_META)
        return {name: file.get_tensor(name) for name in file.keys()}, meta and json.loads(meta)  # noqa: SIM118


def _write_h5(path: str, tensors: Mapping[str, np.ndarray], meta: Mapping[str, Any] | None) -> None:
    h5py = _need("h5py", "h5py", "all")
    with h5py.File(path, "w") as file:
        for name, array in tensors.items():
            layer, _, own = name.rpartition(".")
            file[f"{layer}/{own}" if layer else own] = array
        if meta is not None:
            file.attrs[_META] = json.dumps(meta)


def _read_h5(path: Path) -> tuple[Tensors, dict[str, Any] | None]:
    h5py = _need("h5py", "h5py", "all")
    tensors: Tensors = {}
    with h5py.File(path, "r") as file:

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                layer, _, own = name.rpartition("/")
                tensors[f"{layer}.{own}" if layer else own] = item[()]

        file.visititems(visit)
        meta = file.attrs.get(_META)
    return tensors, meta and json.loads(meta)


def _suffix(path: Path) -> str:
    if path.suffix not in (".safetensors", *_H5):
        raise ValueError(f"{path}: weights go to .safetensors, .h5 or .hdf5 files")
    return path.suffix


def _need(module: str, package: str, extra: str) -> Any:
    """An optional module; ImportError saying how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"this needs {package}: pip install {package}, or pip install 'layerc[{extra}]'") from None


need = _need
