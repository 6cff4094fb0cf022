"""A kernel for one shape: the C text of a package with its sizes turned into constants, compiled again.

No part of layerc's compiler runs: sizes and configuration are the leading arguments of every kernel, so it is
enough to give their names a constant value inside. The C compiler folds them, also in the bodies that OpenMP takes
out of a function, as they are static objects and not variables of it.

    before:  int LC_NAME(mish_f32)(int64_t batch, int64_t S, const float *restrict x, ...) {
    after:   int LC_NAME(mish_f32)(int64_t lc_0, int64_t lc_1, const float *restrict x, ...) {
                 static const int64_t batch = 32, S = 50176; ...
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import cffi
from cffi.recompiler import make_c_source

from layerc.build import cache
from layerc.build.compiler import Unit, find

LIBRARY = "_native.abi3.so"
_MOST_FILES = 256  # in the cache on disk; the ones unused for longest go

KERNEL = re.compile(r"^int LC_NAME\((\w+)\)\((.*)\)\n\{\n(?:.*\n)*?\}\n", flags=re.M)  # its name, its parameters

Constants = Mapping[str, Sequence[float | None]]  # kernel -> its leading arguments; None: stays one


def compile_variant(c_text: str, kernels: Constants) -> Path:
    """The library that holds these kernels with these constants; from the cache, if it is there.

    NoCompiler where there is no C compiler; OSError where the cache cannot be written (LAYERC_CACHE names another
    directory than ~/.cache/layerc).
    """
    text, cdef = _specialised(c_text, kernels)
    compiler = find()
    key = "\0".join([text, cdef, compiler.version, compiler.macros, *compiler.flags, *compiler.native])
    directory = cache.folder("variants") / hashlib.sha256(key.encode()).hexdigest()[:32]
    library = directory / LIBRARY
    if library.is_file():
        os.utime(directory)
        return library
    directory.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(dir=directory.parent, prefix=".making-"))
    try:
        workshop.joinpath("variant.c").write_text(text, encoding="utf-8")
        workshop.joinpath("_native.c").write_text(_wrapper(cdef), encoding="utf-8")
        compiler.build([Unit("_native.c", anywhere=True), Unit("variant.c")], LIBRARY, workshop)
        for path in workshop.iterdir():
            if path.name != LIBRARY:
                path.unlink()
        if not directory.exists():
            os.replace(workshop, directory)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    _forget_the_oldest(directory.parent)
    return library


def _forget_the_oldest(cache: Path) -> None:
    found = sorted((p for p in cache.iterdir() if not p.name.startswith(".")), key=lambda p: p.stat().st_mtime)
    for path in found[:-_MOST_FILES]:
        shutil.rmtree(path, ignore_errors=True)


def _specialised(c_text: str, kernels: Constants) -> tuple[str, str]:
    """The C text with these kernels alone, and what cffi has to know of them."""
    functions = list(KERNEL.finditer(c_text))
    parts, at = [], 0
    declared = []  # every pointer a `void *`: the arrays and the call are made by the package's own ffi
    for function in functions:
        parts.append(c_text[at : function.start()])
        at = function.end()
        name, parameters = function[1], function[2].split(", ")
        if name in kernels:
            body = function[0].partition("\n{\n")[2]
            parts.append(_with_constants(name, parameters, kernels[name], body))
            kinds = ["void *" if "*" in p else p.rpartition(" ")[0] for p in parameters[:-1]]
            declared.append(f"int {name}({', '.join(kinds)}, void *);")
    return "".join([*parts, c_text[at:]]), "\n".join(declared)


def _with_constants(name: str, parameters: list[str], values: Sequence[float | None], body: str) -> str:
    renamed = list(parameters)
    for position, value in enumerate(values):
        if value is not None:
            kind, _, _ = parameters[position].rpartition(" ")
            renamed[position] = f"{kind} lc_{position} __attribute__((unused))"
    return f"int LC_NAME({name})({', '.join(renamed)})\n{{\n{constants(parameters, values)}{body}"


def constants(parameters: Sequence[str], values: Sequence[float | None]) -> str:
    """Lines that give leading parameters a constant value; None: it stays one."""
    lines = []
    for parameter, value in zip(parameters, values):
        if value is not None:
            kind, _, own = parameter.rpartition(" ")
            lines.append(f"    static const {kind} {own} __attribute__((unused)) = {_literal(value)};\n")
    return "".join(lines)


def _literal(value: float) -> str:
    if isinstance(value, int):
        return f"INT64_C({value})" if value >= 0 else f"-INT64_C({-value})"
    if value != value:
        return "NAN"
    return value.hex() if abs(value) != float("inf") else "INFINITY" if value > 0 else "-INFINITY"


def _wrapper(cdef: str) -> str:
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    text = io.StringIO()
    make_c_source(ffi, "_native", f"#include <stdint.h>\n{cdef}\n", text)
    return text.getvalue()
