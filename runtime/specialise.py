"""Kernels for one shape: a bounded cache of variants beside the general library, chosen by themselves.

Only sizes, types and configuration tell variants apart, never values. Whoever compiles them is a plug-in (entry
point `layerc.specialise`): a built package needs none, and says so when it is asked.
"""

import importlib.machinery
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from layerc.runtime.kernel import Case

MAXSIZE = 16  # variants of one function


class CacheInfo(NamedTuple):
    """size: variants there are, maxsize at most; hits: kernel calls that one of them took, misses: the others,
    since the first was made."""

    size: int
    hits: int
    misses: int
    maxsize: int


class Variants:
    """The variants of one function."""

    def __init__(self) -> None:
        self._functions: dict[Any, Any] = {}  # key of a case -> the functions of its library; oldest first
        self._hits = self._misses = 0

    def __bool__(self) -> bool:
        return bool(self._functions)

    def info(self) -> CacheInfo:
        return CacheInfo(len(self._functions), self._hits, self._misses, MAXSIZE)

    def add(self, case: "Case", c_text: str) -> None:
        """Make the kernels of a case for its very sizes. RuntimeError where nothing can compile them."""
        kernels = {}
        for method in case.methods():
            values, seed_at = case.scalars(method)
            kernels[method["kernels"][case.real]] = [None if i == seed_at else v for i, v in enumerate(values)]
        path = _compile(c_text, kernels)
        self._functions.pop(case.key, None)
        while len(self._functions) >= MAXSIZE:
            self._functions.pop(next(iter(self._functions)))
        self._functions[case.key] = _load(path)

    def function(self, case: "Case", name: str, general: Callable[..., int]) -> Callable[..., int]:
        """The kernel that a case is to call, counted."""
        found = self._functions.get(case.key)
        chosen: Callable[..., int] = general if found is None else getattr(found, name)

        def counted(*arguments: Any) -> int:
            if found is None:
                self._misses += 1
            else:
                self._hits += 1
            return chosen(*arguments)

        return counted


def _compile(c_text: str, kernels: Mapping[str, Any]) -> Path:
    from importlib.metadata import entry_points  # dear to import, and rarely asked for

    plugins = entry_points(group="layerc.specialise")
    if not plugins:
        raise RuntimeError("specialize: layerc's compiler is not installed here (pip install layerc)")
    try:
        path: Path = next(iter(plugins)).load()(c_text, kernels)
    except OSError as error:
        raise RuntimeError(f"specialize: the cache cannot be written: {error}; set LAYERC_CACHE") from error
    return path


def _load(path: Path) -> Any:
    """The functions of a library. Its directory's name tells it from all others."""
    name = f"layerc_variant_{path.parent.name}._native"
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module.lib
