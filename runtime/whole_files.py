"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[str]:
    """The name of a file beside it, to be written in its place; at the end it takes the place.

    FileNotFoundError, naming `path`, where its folder is missing.
    """
    check_folder(path)
    # The name must not look like the file's own: whoever lists `snapshot-*` never meets half a file.
    handle, scratch = tempfile.mkstemp(prefix=".writing-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
        yield scratch
        with open(scratch, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(scratch, 0o666 & ~_umask())
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def check_folder(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.absolute().parent}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
