"""What `layerc build` says when it is done; said too where there was nothing to do, without loading the compiler."""

import json
from pathlib import Path


def built(made: Path) -> None:
    """The package, its layers, and how to begin."""
    manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    names = [layer["name"] for layer in manifest["layers"]]
    first = next((layer for layer in manifest["layers"]), None)
    print(f"built {made}: {', '.join(names)}")
    if first is not None and made.name.isidentifier():
        arguments = ", ".join(p["name"] for p in first["parameters"] if p["role"] != "config")
        use = f"L.{first['name']}({arguments})" if first["kind"] == "function" else f"L.{first['name']}()"
        print(f"next: import {made.name} as L; {use}" + (f"  (in {made.parent})" if str(made.parent) != "." else ""))
