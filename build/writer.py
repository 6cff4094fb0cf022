"""Writes a built package: all of it, or nothing.

Everything is made in a directory beside the target, which then takes the target's place in one step. What
has not changed is carried over as it is, bytes and time of modification; where nothing has changed, nothing
is written, and the C compiler is not even run.
"""

import contextlib
import ctypes
import hashlib
import importlib
import io
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import cffi
from cffi.recompiler import make_c_source

from layerc.build import entry, guard, stubs
from layerc.build.compiler import Compiler, Unit, find
from layerc.build.parts import parts
from layerc.build.portable import Prototype, any_cpu, files, has_levels, read_prototypes, units

LIBRARY = "_native.abi3.so"


class UnusableOutput(Exception):
    """The package cannot be written there; the message says where and why."""


def write_package(
    directory: Path | str,
    manifest: Mapping[str, Any],
    *,
    c_text: str,
    h_text: str,
    cdef: str,
    gradients_text: str,
    source_text: str,
    imported: Sequence[tuple[str, str]] = (),
    compiler: Compiler | None = None,
    portable: bool = False,
    prototypes: Sequence[Prototype] | None = None,
) -> bool:
    """Compile the C text and write the package `directory`. False where it was up to date already.

    manifest: as the contract says; "native", what the library was made of, is added to it. cdef: the
    functions of the header with every array as `void *`, and `lc_call`. portable: one library for any CPU
    (see `layerc.build.portable`); `prototypes`, by default read from the header, are then the exported
    functions.

    Raises NoCompiler, CompilerFailed, UnusableOutput; the package that was there is then as it was.
    """
    target = target_of(directory)
    stem = Path(manifest["source"]).stem
    compiler = compiler or find(portable)
    inputs = _Native(stem, c_text, h_text, cdef, compiler, portable, prototypes)
    texts = {
        "__init__.py": stubs.init_text(manifest),
        "__init__.pyi": stubs.stub_text(manifest),
        "gradients.py": gradients_text,
        "_source.py": source_text,
        **dict(imported),
        f"{stem}.c": c_text,
        f"{stem}.h": h_text,
    }
    return put(target, manifest, texts, inputs)


class Native(Protocol):
    """A library to be: its file's name, a digest of all it is made of, and how it is made."""

    library: str
    digest: str

    def build(self, into: Path) -> dict[str, Any]:
        """Leave the library in a directory; the manifest's "native"."""
        ...


def put(target: Path, manifest: Mapping[str, Any], texts: Mapping[str, str | bytes], inputs: Native) -> bool:
    """Make a directory of these files and the library, where it is not so already (False)."""
    library = inputs.library
    native = _still_good(target, inputs)
    if native is not None and _same(target, {**texts, "manifest.json": _json(manifest, native)}):
        return False
    with _beside(target) as fresh:
        if native is None:
            native = inputs.build(fresh)
        else:
            _carry(target / library, fresh / library)
        for name, text in {**texts, "manifest.json": _json(manifest, native)}.items():
            _write(fresh / name, _encoded(text), target / name)
        if (fresh / library).read_bytes() == _bytes(target / library):
            _carry(target / library, fresh / library)
        _swap(fresh, target)
    importlib.invalidate_caches()  # so that this process can import what was not there before
    return True


class _Native:
    """What goes into the library, and how it is made."""

    library = LIBRARY

    def __init__(
        self,
        stem: str,
        c_text: str,
        h_text: str,
        cdef: str,
        compiler: Compiler,
        for_any_cpu: bool,
        prototypes: Sequence[Prototype] | None,
    ) -> None:
        self.compiler = any_cpu(compiler) if for_any_cpu else compiler
        self.units = [Unit("_native.c", anywhere=True)]
        sources = parts(f"{stem}.c", c_text)
        self.files = {**sources, f"{stem}.h": h_text}
        if for_any_cpu and has_levels(self.compiler):
            functions = read_prototypes(h_text) if prototypes is None else prototypes
            self.files |= files(f"{stem}.h", list(sources), functions)
            self.units += units(list(sources))
        else:
            self.units += [Unit(source) for source in sources]
        self.files["_native.c"] = _wrapper(f"{stem}.h", cdef, guard.guard(self.compiler))
        self.digest = self._digest()

    def _digest(self) -> str:
        """Equal where the library would come out the same: texts, flags, compiler and CPU."""
        what = [sorted(self.files.items()), [repr(unit) for unit in self.units], self.compiler.flags]
        text = json.dumps([*what, self.compiler.native, self.compiler.version, self.compiler.macros])
        return hashlib.sha256(text.encode()).hexdigest()

    def build(self, into: Path) -> dict[str, Any]:
        """Compile in a directory inside `into`, leave the library there; the manifest's "native"."""
        workshop = into / ".c"
        workshop.mkdir()
        for name, text in self.files.items():
            workshop.joinpath(name).write_text(text, encoding="utf-8")
        self.compiler.build(self.units, LIBRARY, workshop)
        os.replace(workshop / LIBRARY, into / LIBRARY)
        shutil.rmtree(workshop)
        return native_entry(self.digest, into / LIBRARY, self.compiler, portable=not self.compiler.native)


def native_entry(inputs: str, library: Path, compiler: Compiler, portable: bool) -> dict[str, Any]:
    """The manifest's "native": what a library was made of, by digest, what it came to, and how."""
    return {
        "inputs": inputs,
        "library": hashlib.sha256(library.read_bytes()).hexdigest(),
        "size": library.stat().st_size,
        "compiler": compiler.version,
        "flags": [*compiler.flags, *compiler.native],
        "openmp": compiler.openmp,
        "portable": portable,
    }


def _wrapper(header: str, cdef: str, guard_text: str) -> str:
    """The C text of the extension that lets Python call the functions: cffi's API mode."""
    ffi = cffi.FFI()
    ffi.cdef(f"{cdef}\n{entry.CDEF}{guard.CDEF}")
    text = io.StringIO()
    make_c_source(ffi, "_native", f'#include "{header}"\n\n{entry.entry(cdef)}\n{guard_text}', text)
    return text.getvalue()


def target_of(path: Path | str) -> Path:
    """The real path of the package, if it can be written; what is no built package is never replaced."""
    directory = Path(path)
    try:
        target = directory.resolve()
        if target.exists() and not target.is_dir():
            raise UnusableOutput(f"{directory}: there is a file of this name")
        if target.is_dir() and any(target.iterdir()) and not _is_package(target):
            raise UnusableOutput(f"{directory}: the directory holds other files and is no package built by layerc")
    except OSError as error:
        raise UnusableOutput(f"{directory}: {error.strerror or error}") from None
    return target


def _is_package(directory: Path) -> bool:
    """By the manifest or, where that is lost or corrupt, by an `__init__.py` that loads a package, among nothing
    but files that packages have."""
    if "layers" in _manifest_of(directory):
        return True
    loads = _LOADS.search(_bytes(directory / "__init__.py") or b"")
    return loads is not None and all(_USUAL.fullmatch(entry.name) for entry in directory.iterdir())


_LOADS = re.compile(rb"^from layerc\.runtime\.\w+ import load as _load$", re.MULTILINE)
_USUAL = re.compile(r"__pycache__|manifest\.json|weights\.safetensors|_\w+\.abi3\.so|lib\w+\.so|.*\.(py|pyi|c|h)")


def _manifest_of(directory: Path) -> dict[str, Any]:
    """The manifest; empty where there is none that can be read."""
    try:
        manifest = json.loads(directory.joinpath("manifest.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _still_good(target: Path, inputs: Native) -> dict[str, Any] | None:
    """The "native" of the package that is there, if its library is what a build would make again."""
    try:
        native = json.loads((target / "manifest.json").read_bytes())["native"]
        library = hashlib.sha256((target / inputs.library).read_bytes()).hexdigest()
        good = native["inputs"] == inputs.digest and native["library"] == library
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return native if good else None


def _json(manifest: Mapping[str, Any], native: Mapping[str, Any]) -> str:
    return json.dumps({**manifest, "native": native}, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def _same(target: Path, texts: Mapping[str, str | bytes]) -> bool:
    return all(_bytes(target / name) == _encoded(text) for name, text in texts.items())


def _encoded(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _write(path: Path, text: bytes, old: Path) -> None:
    if _bytes(old) == text:
        _carry(old, path)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def _carry(old: Path, new: Path) -> None:
    """The same file in a new place: its bytes, its time and, where the file system can, itself."""
    new.unlink(missing_ok=True)
    try:
        os.link(old, new)
    except OSError:
        shutil.copy2(old, new)


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A fresh directory on the target's file system. It is gone afterwards, whatever happens."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        fresh.mkdir()
    except OSError as error:
        raise UnusableOutput(f"{target}: {error.strerror or error}") from None
    try:
        yield fresh
    except OSError as error:  # the disk is full, say
        raise UnusableOutput(f"{target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(fresh: Path, target: Path) -> None:
    """Put `fresh` where `target` is, in one step where the system has one; files of others move along."""
    if not target.exists():
        os.rename(fresh, target)
        return
    ours = _files_of(target)
    for other in target.iterdir():
        if other.name not in ours and not (fresh / other.name).exists():
            _carry_tree(other, fresh / other.name)
    if _exchange(fresh, target):
        return
    old = fresh.with_suffix(".old")
    os.rename(target, old)
    try:
        os.rename(fresh, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _files_of(package: Path) -> set[str]:
    """What layerc itself may have put into a package besides the files that every package has."""
    stem = Path(_manifest_of(package).get("source", "")).stem
    return {"__pycache__", f"{stem}.c", f"{stem}.h"}


def _carry_tree(old: Path, new: Path) -> None:
    if old.is_dir() and not old.is_symlink():
        shutil.copytree(old, new, symlinks=True)
    elif old.is_symlink():
        new.symlink_to(os.readlink(old))
    else:
        _carry(old, new)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two directories atomically (Linux's renameat2); False where that does not exist."""
    if sys.platform != "linux":
        return False
    at_cwd, exchange = -100, 2
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return rename(at_cwd, os.fsencode(a), at_cwd, os.fsencode(b), exchange) == 0
