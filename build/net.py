"""From a net's schedule to a package: one C file and its header, a shared library, a module, the weights."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from layerc.build import guard, net_c
from layerc.build.compiler import Compiler, Unit, find
from layerc.build.library import native_entry
from layerc.build.workshop import Workshop
from layerc.build.writer import UnusableOutput, put, target_of

WEIGHTS = "weights.safetensors"


def write_net(
    directory: Path | str, net: Mapping[str, Any], prefix: str, weights: bytes, source: str, version: str
) -> bool:
    """Write the package of a schedule (`layerc.runtime.plan.data`). False where it was up to date already.

    prefix: what the C functions start with; weights: a safetensors file; source: the script that made the net.
    NoCompiler, CompilerFailed, UnusableOutput, OtherVersion; an older package is then as it was.
    """
    target = target_of(directory)
    title = f"Made by layerc {version} from net {net['name']!r} of {source}."
    c_text, h_text = net_c.c_file(net, prefix, title, version), net_c.header(net, prefix, title)
    manifest = {
        "format": 1,
        "layerc": version,
        "source": f"{prefix}.py",
        "layers": [],
        "errors": [],
        "net": {
            **{key: net[key] for key in ("name", "dtype", "solver", "left_out", "held")},
            "script": source,
            "prefix": prefix,
            "cdef": "\n".join(net_c.prototypes(net, prefix, for_cffi=True)),
            "codes": list(net_c.CODES),
            **{name: net[name] and _brief(net[name]) for name in ("predict", "train")},
        },
    }
    texts: dict[str, str | bytes] = {
        f"{prefix}.c": c_text,
        f"{prefix}.h": h_text,
        "__init__.py": _module_text(net, title),
        WEIGHTS: weights,
    }
    return put(target, manifest, texts, _Library(prefix, c_text, h_text, find()))


def _brief(function: Mapping[str, Any]) -> dict[str, Any]:
    """What a caller, and whoever looks at the memory, has to know of a function."""
    return {key: function[key] for key in ("inputs", "outputs", "arena", "least")}


class _Library:
    """The shared library, which needs no Python."""

    def __init__(self, prefix: str, c_text: str, h_text: str, compiler: Compiler) -> None:
        self.compiler = compiler
        self.library = f"lib{prefix}.so"
        probe = guard.guard(compiler).replace("static const char *lc_", f"const char *{prefix}_", 1)
        self.files = {f"{prefix}.c": c_text, f"{prefix}.h": h_text, "guard.c": probe}
        self.units = [Unit(f"{prefix}.c"), Unit("guard.c", anywhere=True, python=False)]
        what = [sorted(self.files.items()), compiler.flags, compiler.native, compiler.version, compiler.macros]
        self.digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def build(self, into: Path) -> dict[str, Any]:
        with Workshop(self.compiler) as shop:
            shop.make(self.files, self.units)
            shop.link(self.units, into / self.library)
        return native_entry(self.digest, into / self.library, self.compiler, portable=False)


_TRAINING = ("train_step", "set_learning_rate", "set_momentum")


def _module_text(net: Mapping[str, Any], title: str) -> str:
    """The package's `__init__.py`."""
    names = ["predict", *(_TRAINING if net["train"] else []), "params", "states", "load", "save", "arena_size", "open"]
    lines = [f'"""{title} Do not edit."""'.replace("\\", "\\\\"), ""]
    lines += ["from layerc.runtime.built_net import load as _load", "", "open = _load(__file__)", "_net = open()", ""]
    lines += [f"{name} = _net.{name}" for name in names if name != "open"]
    return "\n".join([*lines, "", f"__all__ = {json.dumps(names)}", ""])


__all__ = ["WEIGHTS", "UnusableOutput", "write_net"]
