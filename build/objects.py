"""Object files of earlier builds, by what they were made of: an edit of one layer compiles nothing of the others.

An object is found by its C text, the command, and all that is known of compiler and processor. With it lie digests of
the headers that it was made of, the system's too, and it is taken only where they are what they were. The least
recently used go when there are too many. Whatever is wrong with the folder, the compiler makes the object.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from layerc.build import cache
from layerc.build.compiler import Compiler

MOST = 128 * 2**20  # bytes of all
_FORMAT = "1"  # of the files; another one is never read
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")  # what else compilers go by


class Objects:
    """The objects of one compiler."""

    def __init__(self, compiler: Compiler) -> None:
        self._folder = cache.folder("objects")
        environment = [os.environ.get(name) for name in _ENVIRONMENT]
        self._made_by = [_FORMAT, compiler.version, compiler.macros, cache.processor(), environment]
        self._headers: dict[Path, str | None] = {}
        self._new = False

    def key(self, command: Sequence[str], text: str) -> str:
        """What an object is found by: the command that makes it, with relative names, and the text of the C file."""
        files = [_file(word) for word in command]
        return _digest(json.dumps([self._made_by, command, files, text]).encode())

    def take(self, key: str, place: Path) -> bool:
        """Put the object there; False where there is none, or not of these headers."""
        entry = self._folder / key
        try:
            digest, _, rest = entry.read_bytes().partition(b"\n")
            if digest.decode() != _digest(rest):
                return False
            headers, _, content = rest.partition(b"\n")
            if any(self._header(place.parent / name) != known for name, known in json.loads(headers).items()):
                return False
            place.write_bytes(content)
            with contextlib.suppress(OSError):  # the folder may be somebody else's
                os.utime(entry)
        except (OSError, ValueError):
            return False
        return True

    def keep(self, key: str, place: Path, rules: Path) -> None:
        """Keep the object that is there. rules: what the compiler says that it has read, as a rule for make."""
        try:
            headers = {name: self._header(place.parent / name) for name in _prerequisites(rules.read_text())}
            if None in headers.values():
                return
            rest = json.dumps(headers).encode() + b"\n" + place.read_bytes()
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh = self._folder / f".{key}.{secrets.token_hex(4)}"
            fresh.write_bytes(_digest(rest).encode() + b"\n" + rest)
            os.replace(fresh, self._folder / key)
            self._new = True
        except (OSError, ValueError):
            return

    def forget(self) -> None:
        """Remove what was not used for longest, as far as there is too much of all."""
        if self._new:
            cache.shrink(self._folder, MOST)

    def _header(self, path: Path) -> str | None:
        """Its digest; None where it cannot be read."""
        if path not in self._headers:
            try:
                self._headers[path] = _digest(path.read_bytes())
            except OSError:
                self._headers[path] = None
        return self._headers[path]


def _file(word: str) -> tuple[str, int, int] | None:
    """A file that a word of the command names (gcc, @flags, -specs=own), as it lies on the disk; None for others."""
    path = shutil.which(word) or re.sub(r"^@|^-.*?=", "", word)
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return os.path.realpath(path), found.st_size, found.st_mtime_ns


def _prerequisites(rule: str) -> list[str]:
    r"""The files after the colon of `a.o: a.c /usr/include/a\ b.h \`, but the C file itself, which comes first."""
    _, _, files = rule.replace("\\\n", " ").partition(": ")
    return [re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"(?:\\.|\S)+", files)][1:]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
