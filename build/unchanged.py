"""A build that would change nothing is known by what goes into it, before the compiler is even imported.

What a build was made of (the file and those it imports, options, environment, C compiler, CPU, layerc itself) and
what it left is noted in the user's cache, by the package's path. Where nothing of that has changed since, there is
nothing to do. Without the note, or with any doubt, the build runs; it writes what has changed only.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from layerc.build import cache

_ENVIRONMENT = ("CC", "PATH", "LAYERC_CFLAGS")
_NEEDS = ("numpy", "cffi", "gast", "astor")
_PARTS = ("adjoint", "build", "transpile")
_MOST = 256  # notes


def default_output(source: Path) -> Path:
    """Where the package goes if nobody says: a name that can be imported, beside the file."""
    return source.with_name(re.sub(r"\W", "_", source.stem) + "_compiled")


def is_unchanged(source: Path, target: Path, options: Mapping[str, Any]) -> bool:
    """Whether the package there is what a build of the file with these options would make."""
    try:
        note = json.loads(_note(target).read_bytes())
        made = {name: _digest((target / name).read_bytes()) for name in note["made"]}
        return bool(note["of"] == _inputs(source, options, note["imported"]) and made == note["made"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def remember(source: Path, target: Path, options: Mapping[str, Any], imported: Iterable[str]) -> None:
    """Note what was built. imported: other layer files, from the file's folder."""
    try:
        of = _inputs(source, options, imported := sorted(imported))
        files = (p for p in target.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        made = {p.relative_to(target).as_posix(): _digest(p.read_bytes()) for p in files}
        note = _note(target)
        note.parent.mkdir(parents=True, exist_ok=True)
        fresh = note.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"of": of, "imported": imported, "made": made}))
        fresh.replace(note)
        for old in sorted(note.parent.glob("*.json"), key=lambda p: p.stat().st_mtime_ns)[:-_MOST]:
            old.unlink(missing_ok=True)
    except OSError:  # no cache: the next build takes its time
        return


def _note(target: Path) -> Path:
    return cache.folder("built") / f"{_digest(os.fsencode(target.resolve()))}.json"


def _inputs(source: Path, options: Mapping[str, Any], imported: Iterable[str]) -> str:
    folder = source.resolve().parent
    told = [
        [source.name, _digest(source.read_bytes()), sorted(options.items())],
        [(name, _digest((folder / name).read_bytes())) for name in imported],
        # A file that appears beside it may be what it imports.
        sorted(p.name for p in folder.glob("*.py")),
        [os.environ.get(name) for name in _ENVIRONMENT],
        [_stat(shutil.which(name)) for name in (*os.environ.get("CC", "").split()[:1], "cc", "gcc", "clang")],
        [sys.version, platform.machine(), cache.processor()],
        [_origin(name) for name in _NEEDS],
        own_files(),
    ]
    return _digest(json.dumps(told).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _stat(path: str | None) -> tuple[int, int]:
    if path is None:
        return (0, 0)
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _origin(name: str) -> tuple[Any, ...]:
    spec = importlib.util.find_spec(name)
    return (spec.origin, *_stat(spec.origin)) if spec is not None else ()


def own_files() -> list[tuple[str, int, int]]:
    """The compiler's own files, their sizes and times: who works on it is not to be told that nothing has changed."""
    specs = [importlib.util.find_spec(f"layerc.{part}") for part in _PARTS]
    folders = [place for spec in specs if spec is not None for place in spec.submodule_search_locations or ()]
    files = sorted(p for folder in folders for p in Path(folder).rglob("*") if p.suffix in (".py", ".h"))
    return [(str(p), *_stat(str(p))) for p in files]


__all__ = ["default_output", "is_unchanged", "own_files", "remember"]
