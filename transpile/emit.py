"""Kernel x float type -> C text, its header, and its declaration for cffi.

    int LC_NAME(mish_f32)(int64_t batch, int64_t S, const float *restrict x, float *restrict y, lc_call *call)

The text is meant to be read: one function a kernel, loops as the IR has them, temporaries where
`emit_storage` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .emit_function import function
from .emit_names import arguments, plain, prototype, symbol
from .emit_text import C_TYPES
from .ir import Kernel, Op
from .operations import ROWS
from .passes.tree import own_exprs, parts, walk

Job = tuple[Kernel, str]  # a kernel and its float type, "f32" or "f64"

CALL = """\
#ifndef LC_CALL
#define LC_CALL
/* threads: how many may be used (0: one). code, info: set when a call fails; code 1: out of memory. */
typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;
#endif
#ifndef LC_NAME
#define LC_NAME(name) name
#endif
"""


def c_file(
    jobs: Sequence[Job], prelude: str | None = None, title: str = "", functions: Sequence[str] | None = None
) -> str:
    """The C text of a library: prelude (default: math.h of this folder), what kernels need, the kernels (`functions`:
    their text, where it is known)."""
    head = f"/* {plain(title)} */\n" if title else ""
    return head + "\n".join(pieces(jobs, prelude, functions))


def pieces(jobs: Sequence[Job], prelude: str | None = None, functions: Sequence[str] | None = None) -> list[str]:
    """The C text of a library, or of some of its functions, in pieces that are found in the text of the whole."""
    here = Path(__file__).parent
    prelude = (here / "math.h").read_text(encoding="utf-8") if prelude is None else prelude
    support = (here / "support.h").read_text(encoding="utf-8")
    if any(_draws(k) for k, _ in jobs):
        support += (here / "random.h").read_text(encoding="utf-8")
    functions = functions or [function(k, d) for k, d in jobs]
    begin = "#include <math.h>\n#include <stdint.h>\n" + CALL
    return [begin, prelude, support, *templates("\n".join(functions)), *functions]


def _draws(kernel: Kernel) -> bool:
    exprs = (e for stmt in walk(kernel.body) for e in own_exprs(stmt))
    return any(isinstance(p, Op) and ROWS[p.op].kind == "draw" for e in exprs for p in parts(e))


OF_ROWS = (
    *("copy", "even", "add", "first"),
    *("largest", "least", "farthest", "largest_number", "least_number"),
    *("largest_in", "least_in", "farthest_in", "largest_number_in", "least_number_in"),  # rectangles
    *("equal_in", "give_in"),
)


def templates(functions: str) -> list[str]:
    """The files of functions for both float types: for each type that the text has names of theirs for."""
    made = []
    for file, names in (
        ("rows.h", tuple(f"lc_{name}_{{}}(" for name in OF_ROWS)),
        ("turn.h", ("lc_columns_{}(",)),
        ("past.h", ("lc_past_{}(",)),
        ("parts.h", ("lc_wide_{}", "lc_part_{}")),
        ("gemm.h", ("lc_product_{}(", "lc_product_between_{}(")),
    ):
        text = (Path(__file__).parent / file).read_text(encoding="utf-8")
        for t in ("f32", "f64"):
            if any(name.format(t) in functions for name in names):
                head = f"#define LC_REAL {C_TYPES[t]}\n#define LC_AS(name) name##_{t}\n"
                made.append(f"{head}{text}#undef LC_REAL\n#undef LC_AS\n")
    return made


def header(jobs: Sequence[Job], guard: str = "LC_LAYERS_H", title: str = "") -> str:
    """A plain C header; C++ may include it too."""
    head = f"/* {plain(title)} */\n" if title else ""
    lines = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stdint.h>",
        CALL,
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
    ]
    lines += [prototype(k, d, restrict="") + ";" for k, d in jobs]
    lines += ["#ifdef __cplusplus", "}", "#endif", "#endif"]
    return head + "\n".join(lines) + "\n"


def cdef(jobs: Sequence[Job]) -> str:
    """What cffi's `cdef` takes: every array a `void *`, so that `ffi.from_buffer` needs no cast."""
    lines = ["typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;"]
    for kernel, dtype in jobs:
        taken = ", ".join(
            f"void *{a.split()[-1].lstrip('*')}" if "*" in a and not a.startswith("lc_call") else a
            for a in arguments(kernel, dtype, "")
        )
        lines.append(f"int {symbol(kernel, dtype)}({taken});")
    return "\n".join(lines) + "\n"


__all__ = ["CALL", "Job", "c_file", "cdef", "function", "header", "pieces", "plain", "prototype", "symbol", "templates"]
