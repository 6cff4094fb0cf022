"""The manifest of a built package, and whether its library is the one that the manifest tells of."""

import json
from pathlib import Path
from typing import Any

FORMAT = 1


def read(directory: Path, keys: tuple[str, ...], again: str) -> dict[str, Any]:
    """The package's manifest, which has these keys. ImportError, which ends in `again`, where it has not."""
    path = directory / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ImportError(f"{path}: cannot be read ({error}); {again}") from None
    if not isinstance(manifest, dict):
        raise ImportError(f"{path}: cannot be read (it is no manifest); {again}")
    if manifest.get("format") != FORMAT:
        made = manifest.get("layerc", "another version")
        raise ImportError(f"{directory}: built by layerc {made}, which this one cannot read; {again}")
    if lost := [key for key in keys if key not in manifest]:
        raise ImportError(f"{path}: cannot be read (it has no {lost[0]!r}); {again}")
    return manifest


def check_size(library: Path, manifest: dict[str, Any], again: str) -> None:
    """ImportError for a library of another size than when it was built: one cut short would kill the process."""
    noted = manifest.get("native", {}).get("size")
    if noted is not None and library.stat().st_size != noted:
        found = library.stat().st_size
        raise ImportError(
            f"{library}: cannot be loaded here (it has {found} bytes and had {noted} when built); {again}"
        )


__all__ = ["FORMAT", "check_size", "read"]
