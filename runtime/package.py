"""Loads a built package: its manifest, its library, its layers."""

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from layerc.runtime import manifest
from layerc.runtime.call import CompiledFunction
from layerc.runtime.compiled import CompiledClass, class_of
from layerc.runtime.core import Core
from layerc.runtime.interpreted import Interpreted, entry_of
from layerc.runtime.library import Library

_AGAIN = "build the package again"
_SUFFIXES = (".abi3.so", ".pyd")
_seen: dict[Path, list[str]] = {}  # digests of the libraries loaded from each path


class Package:
    """A built package. Attributes: `name`, `directory`, `manifest`, `library`."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name, self.directory = name, directory
        self.manifest = manifest.read(directory, ("module", "errors", "layers"), _AGAIN)
        self.library = Library(_native(name, directory, self.manifest), self.manifest["errors"])
        self._layers = {layer["name"]: layer for layer in self.manifest["layers"]}
        self._source: ModuleType | None = None
        self._gradients: ModuleType | None = None

    def function(self, name: str) -> CompiledFunction:
        """The compiled function of that name."""
        return CompiledFunction(self, self._core(name, "function"))

    def layer(self, name: str) -> type[CompiledClass]:
        """The class that the class layer of that name is derived from."""
        return class_of(self, self._core(name, "class"))

    def c_text(self) -> str:
        """The C of all kernels."""
        return (self.directory / f"{Path(self.manifest['source']).stem}.c").read_text(encoding="utf-8")

    def source_module(self) -> ModuleType:
        """The user's layer file as a module, run when it is first asked for."""
        if self._source is None:
            self._source = _run(f"{self.name}._source", self.directory / "_source.py")
        return self._source

    def gradient_module(self) -> ModuleType:
        """The gradient source as a module."""
        if self._gradients is None:
            self._gradients = _run(f"{self.name}.gradients", self.directory / "gradients.py")
        return self._gradients

    def interpreted(self, name: str) -> Core:
        """A layer whose kernels are NumPy."""
        return Core(Interpreted(self), entry_of(self._layers[name]))

    def _core(self, name: str, kind: str) -> Core:
        layer = self._layers.get(name)
        if layer is None or layer["kind"] != kind:
            raise ImportError(f"{self.directory}: the manifest has no {kind} {name!r}; build the package again")
        return Core(self.library, layer)

    def __repr__(self) -> str:
        return f"<package {self.name} of layerc: {', '.join(self._layers)}>"


def load(module_name: str, file: str) -> Package:
    """The package whose `__init__.py` is `file`. ImportError, saying what to do, if it cannot be."""
    return Package(module_name, Path(file).parent)


def _native(name: str, directory: Path, told: dict[str, Any]) -> Any:
    """The library's module. Its name holds the library's digest: built again, it is loaded again."""
    module = told["module"]
    path = next((p for p in (directory / f"{module}{suffix}" for suffix in _SUFFIXES) if p.is_file()), None)
    if path is None:
        raise ImportError(f"{directory}: the compiled library is missing; {_AGAIN}")
    manifest.check_size(path, told, _AGAIN)
    digest = told.get("native", {}).get("library", "")[:16]
    full = f"{name}.{digest}.{module}" if digest else f"{name}.{module}"
    if full in sys.modules and sys.modules[full].__spec__.loader.path == _spelling(path, digest):  # type: ignore[union-attr]
        return sys.modules[full]
    loader = importlib.machinery.ExtensionFileLoader(full, _spelling(path, digest))
    spec = importlib.util.spec_from_file_location(full, loader.path, loader=loader)
    assert spec is not None
    try:
        native = importlib.util.module_from_spec(spec)
        loader.exec_module(native)
    except ImportError as error:
        raise ImportError(f"{path}: cannot be loaded here ({error}); {_AGAIN}") from None
    if lost := _kernels(told) - {*dir(native.lib)}:
        raise ImportError(f"{path}: is of another package (it has no {min(lost)}); {_AGAIN}")
    missing = native.lib.lc_missing_feature()
    if missing:
        feature = native.ffi.string(missing).decode()
        raise ImportError(
            f"{path}: built for a CPU with {feature}, which this one lacks; build it here, or with --portable"
        )
    sys.modules[full] = native
    return native


def _kernels(told: dict[str, Any]) -> set[str]:
    """What a library must have."""
    methods = (method for layer in told["layers"] for method in layer["methods"].values())
    return {"lc_missing_feature", *(kernel for method in methods for kernel in method["kernels"].values())}


def _spelling(path: Path, digest: str) -> str:
    """The path, spelled otherwise for every other library that was there in the life of this process: the
    dynamic linker takes two libraries of the same path for one."""
    digests = _seen.setdefault(path, [])
    if digest not in digests:
        digests.append(digest)
    return os.path.join(path.parent, *["."] * digests.index(digest), path.name)


def _run(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _beside(path.parent):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _beside(directory: Path) -> Iterator[None]:
    """Imports find the layer files that were built in; they are no one else's modules."""
    stems = {p.stem for p in directory.glob("*.py")} - {"__init__", "_source"}
    others = {name: sys.modules.pop(name) for name in stems & sys.modules.keys()}
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        sys.path.remove(str(directory))
        for name in stems:
            sys.modules.pop(name, None)
        sys.modules.update(others)
