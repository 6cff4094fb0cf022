"""Where layerc keeps what may be thrown away: notes of builds, specialised libraries."""

import os
from pathlib import Path


def folder(name: str) -> Path:
    """LAYERC_CACHE/name, else that of the user's caches."""
    own, shared = os.environ.get("LAYERC_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return (Path(own) if own else Path(shared or "~/.cache").expanduser() / "layerc") / name
