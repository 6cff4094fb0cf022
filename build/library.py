"""The extension of a package: which C files it has, and how they become a library while others are still being made.

with Library(compiler) as library:
    library.declare(h_text, cdef)
    library.add(pieces)               functions of one unit, and again for the next
    library.start()                   compiles what is known
    ...
    library.complete("layers", c_text)
    library.build(folder)
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cffi
from cffi.recompiler import make_c_source

from layerc.build import entry, guard
from layerc.build.compiler import Compiler, Unit
from layerc.build.portable import Prototype, any_cpu, dispatcher, has_levels, read_prototypes, variants
from layerc.build.units import with_lines
from layerc.build.workshop import Workshop

LIBRARY = "_native.abi3.so"


class Library:
    """A C file is named by what it says: its object, which holds that name, is the same wherever the functions stand in
    the file that readers have."""

    library = LIBRARY
    digest = ""  # equal where the library would come out the same: texts, flags, compiler and CPU

    def __init__(self, compiler: Compiler, portable: bool = False) -> None:
        """portable: one library for any CPU (see `layerc.build.portable`)."""
        self.compiler = any_cpu(compiler) if portable else compiler
        self._levels = portable and has_levels(self.compiler)
        self._functions: list[Sequence[str]] = []
        self._declared: tuple[str, str, Sequence[Prototype] | None] | None = None
        self._prototypes: Sequence[Prototype] = ()
        self._interface, self._bodies = _Sources({}, []), _Sources({}, [])
        self._shop = Workshop(self.compiler)

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *why: object) -> None:
        self._shop.__exit__(*why)

    def declare(self, h_text: str, cdef: str, prototypes: Sequence[Prototype] | None = None) -> None:
        """What the library exports: header, cffi's `cdef`, and `prototypes`, by default those of the header. What is
        declared last counts."""
        if self._declared == (declared := (h_text, cdef, prototypes)):
            return
        self._declared = declared
        self._prototypes = read_prototypes(h_text) if prototypes is None else prototypes
        texts = [_wrapper(h_text, cdef, guard.guard(self.compiler))]
        if self._levels:
            texts.append(dispatcher(h_text, self._prototypes))
        files = {_name(text): text for text in texts}
        self._interface = _Sources(files, [Unit(source, anywhere=True) for source in files])

    def add(self, pieces: Sequence[str]) -> None:
        """C text of functions that share a unit, and of all that they need."""
        self._functions.append(pieces)
        if not self.compiler.tells_lines:  # else its text waits for the whole file, where the lines are
            self._body("\n".join(pieces))

    def _body(self, text: str) -> None:
        source = _name(text)
        self._bodies.files[source] = text
        if self._levels:
            files, units = variants(source, text, self._prototypes)
            self._bodies.files.update(files)
            self._bodies.units.extend(units)
        else:
            self._bodies.units.append(Unit(source))

    def start(self) -> None:
        """Compile what is known, beside whatever else is done."""
        for sources in (self._interface, self._bodies):
            self._shop.make(sources.files, sources.units)

    def complete(self, stem: str, c_text: str, h_text: str) -> None:
        """All is known. c_text, h_text: the file that readers have, and its header, which it may include."""
        self._interface.files[f"{stem}.h"] = h_text
        if self.compiler.tells_lines or not self._functions:
            for pieces in self._functions or [[c_text]]:
                self._body(with_lines(pieces, c_text, f"{stem}.c"))
        files, units, compiler = self._interface.files | self._bodies.files, self._all(), self.compiler
        what = [sorted(files.items()), [repr(unit) for unit in units], compiler.flags, compiler.native]
        self.digest = hashlib.sha256(json.dumps([*what, compiler.version, compiler.macros]).encode()).hexdigest()

    def build(self, into: Path) -> dict[str, Any]:
        """Leave the library there; the manifest's "native"."""
        self.start()
        self._shop.link(self._all(), into / LIBRARY)
        return native_entry(self.digest, into / LIBRARY, self.compiler, portable=not self.compiler.native)

    def _all(self) -> list[Unit]:
        return [*self._interface.units, *self._bodies.units]


@dataclass(frozen=True)
class _Sources:
    files: dict[str, str]
    units: list[Unit]


def _name(text: str) -> str:
    return f"lc_{hashlib.sha256(text.encode()).hexdigest()[:16]}.c"


def native_entry(inputs: str, library: Path, compiler: Compiler, portable: bool) -> dict[str, Any]:
    """The manifest's "native": what a library was made of, by digest, what it came to, and how."""
    return {
        "inputs": inputs,
        "library": hashlib.sha256(library.read_bytes()).hexdigest(),
        "size": library.stat().st_size,
        "compiler": compiler.version,
        "flags": [*compiler.flags, *compiler.native],
        "openmp": compiler.openmp,
        "portable": portable,
    }


def _wrapper(h_text: str, cdef: str, guard_text: str) -> str:
    """The C text of the extension that lets Python call the functions: cffi's API mode."""
    ffi = cffi.FFI()
    ffi.cdef(f"{cdef}\n{entry.CDEF}{guard.CDEF}")
    text = io.StringIO()
    make_c_source(ffi, "_native", f"{h_text}\n{entry.entry(cdef)}\n{guard_text}", text)
    return text.getvalue()
