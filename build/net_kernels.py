"""The layers' kernels in a net's C file: those that are called, once for each set of sizes they are called with.

All sizes of a net but the batch are known, so they are constants inside, as in `specialise`: loops over a row of 12 are
vectors, and no index is multiplied. Only where that changes no bit (`rounding`): a built net gives those of the Net.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from layerc.build.net_maps import c_name
from layerc.build.specialise import KERNEL, constants
from layerc.transpile.rounding import MARK

MOST = 64  # kernels with constants, as each is compiled; the others are general

Node = Sequence[Any]
_Sizes = tuple[float | None, ...]


class OtherVersion(Exception):
    """A layer of the net was built by another layerc; the message says which."""


class Kernels:
    """Of the schedule `net`, all from packages of this version of layerc."""

    def __init__(self, net: Mapping[str, Any], version: str) -> None:
        self.packages = net["packages"]
        self.found: dict[tuple[int, str], re.Match[str]] = {}
        self.names: dict[tuple[int, str, _Sizes], str] = {}
        for function in (net["predict"], net["train"]):
            for op in function["ops"] if function else ():
                if op["op"] == "kernel":
                    self._want(op, version)

    def _want(self, op: Mapping[str, Any], version: str) -> None:
        package = self.packages[op["package"]]
        if package["layerc"] != version:
            raise OtherVersion(
                f"{package['stem']} was built by layerc {package['layerc']}, this is {version}: build it again"
            )
        which = op["package"], op["symbol"]
        if which not in self.found:
            self.found[which] = next(m for m in KERNEL.finditer(package["c"]) if m[1] == op["symbol"])
        key = *which, _sizes(op)
        if key not in self.names and (len(self.names) >= MOST or not self._alike(which)):
            key = *which, (None,) * len(key[2])
        if key not in self.names:
            twins = sum(other[:2] == which for other in self.names)
            self.names[key] = self._base(*which) + (f"_{twins + 1}" if twins else "")

    def _alike(self, which: tuple[int, str]) -> bool:
        match = self.found[which]
        return match.string.endswith(MARK, 0, match.start())

    def _base(self, number: int, symbol: str) -> str:
        """k_standard_softmax_f32; packages of one stem are told apart by a number."""
        stem = c_name(self.packages[number]["stem"])
        twins = [k for k, p in enumerate(self.packages) if c_name(p["stem"]) == stem]
        return f"k_{stem}{twins.index(number) or ''}_{symbol}"

    def call(self, op: Mapping[str, Any]) -> tuple[str, list[Node]]:
        """The name of the kernel that an operation calls, and which of its scalars it is given."""
        package, symbol, sizes = op["package"], op["symbol"], _sizes(op)
        if (name := self.names.get((package, symbol, sizes))) is None:
            return self.names[package, symbol, (None,) * len(sizes)], list(op["scalars"])
        return name, [node for node, size in zip(op["scalars"], sizes) if size is None]

    def text(self) -> str:
        """All of them, each static."""
        parts = []
        for (number, symbol, sizes), name in self.names.items():
            match = self.found[number, symbol]
            parameters = match[2].split(", ")
            left = [p for p, size in zip(parameters, sizes) if size is None] + parameters[len(sizes) :]
            body = match[0].partition("\n{\n")[2]
            parts.append(f"static int {name}({', '.join(left)})\n{{\n{constants(parameters, sizes)}{body}")
        return "\n".join(parts)


def _sizes(op: Mapping[str, Any]) -> _Sizes:
    """What an operation's scalars are, as far as it is the same at every call."""
    return tuple(_constant(node) for node in op["scalars"])


def _constant(node: Node) -> float | None:
    match node:
        case ("const", value) | ("extent", 0, value):
            return int(value) if isinstance(value, bool) else value
    return None
