"""Where layerc keeps what may be thrown away: notes of builds, object files, specialised libraries."""

import os
import platform
from itertools import takewhile
from pathlib import Path


def folder(name: str) -> Path:
    """LAYERC_CACHE/name, else that of the user's caches."""
    own, shared = os.environ.get("LAYERC_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return (Path(own) if own else Path(shared or "~/.cache").expanduser() / "layerc") / name


def shrink(folder: Path, most: int) -> None:
    """Remove the files of a folder that were not used for longest, until they are `most` bytes. Others may do the same
    at the same time."""
    found = []
    for path in folder.iterdir():
        try:
            about = path.stat()
        except OSError:
            continue
        found.append((about.st_mtime_ns, about.st_size, path))
    room = most
    for _, size, path in sorted(found, reverse=True):
        room -= size
        if room < 0:
            path.unlink(missing_ok=True)


_TELLS = ("flags", "Features", "model name", "cache size", "CPU implementer", "CPU part")


def processor() -> str:
    """What code for this very CPU depends on."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = takewhile(str.strip, file)  # the others are alike
            return "".join(line for line in first if line.startswith(_TELLS))
    except OSError:
        return platform.processor()
