"""Writes a built package: all of it, or nothing.

Everything is made in a directory beside the target, which then takes the target's place in one step. What
has not changed is carried over as it is, bytes and time of modification; where nothing has changed, nothing
is written. The library may be one that is being compiled already (see `layerc.build.library`).
"""

import contextlib
import ctypes
import hashlib
import importlib
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from layerc.build import stubs
from layerc.build.compiler import Compiler, find
from layerc.build.library import Library
from layerc.build.portable import Prototype


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
    library: Library | None = None,
) -> bool:
    """Compile the C text and write the package `directory`. False where it was up to date already.

    manifest: as the contract says; "native", what the library was made of, is added to it. cdef: the
    functions of the header with every array as `void *`, and `lc_call`. portable: one library for any CPU
    (see `layerc.build.portable`); `prototypes`, by default read from the header, are then the exported
    functions. library: one that has all units of the C text, and may be compiling them; its owner closes it.

    Raises NoCompiler, CompilerFailed, UnusableOutput; the package that was there is then as it was.
    """
    target = target_of(directory)
    stem = Path(manifest["source"]).stem
    texts = {
        "__init__.py": stubs.init_text(manifest),
        "__init__.pyi": stubs.stub_text(manifest),
        "gradients.py": gradients_text,
        "_source.py": source_text,
        **dict(imported),
        f"{stem}.c": c_text,
        f"{stem}.h": h_text,
    }
    with contextlib.ExitStack() as stack:
        if library is None:
            library = stack.enter_context(Library(compiler or find(portable), portable))
        library.declare(h_text, cdef, prototypes)
        library.complete(stem, c_text, h_text)
        return put(target, manifest, texts, library)


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
