"""What the C function of a kernel is called, and what it takes."""

from __future__ import annotations

from .emit_text import Speller
from .ir import Kernel
from .passes.overwrite import overwrites


def symbol(kernel: Kernel, dtype: str) -> str:
    return f"{kernel.name}_{dtype}"


def prototype(kernel: Kernel, dtype: str, restrict: str = "restrict ") -> str:
    return f"int LC_NAME({symbol(kernel, dtype)})({', '.join(arguments(kernel, dtype, restrict))})"


def arguments(kernel: Kernel, dtype: str, restrict: str) -> list[str]:
    spell = Speller(kernel, dtype)
    sizes = (kernel.batch, *kernel.dims) if kernel.batch and kernel.batch not in kernel.dims else kernel.dims
    found = [f"int64_t {spell.names.add(d)}" for d in sizes]
    for s in kernel.scalars:
        found.append(f"{'double' if s.dtype in ('real', 'f32', 'f64') else 'int64_t'} {spell.names[s.name]}")
    shared = {name for pair in overwrites(kernel) for name in pair} if restrict else ()
    for b in kernel.buffers:
        if b.kind in ("in", "out") and not b.alias:
            const = "const " if b.kind == "in" else ""
            found.append(f"{const}{spell.ctype(b.dtype)} *{'' if b.name in shared else restrict}{spell.names[b.name]}")
    return [*found, "lc_call *call"]


def plain(text: str) -> str:
    """What may stand in a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")
