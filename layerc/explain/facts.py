"""What a compiled layer is, in facts: its arguments, what backward is given, what became of the loops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from layerc.build.driver import Part, Stages, compile_module
from layerc.transpile import emit, ir, passes
from layerc.transpile.dims import Dim
from layerc.transpile.lines import lines_of
from layerc.transpile.program import Layer, Module, Parameter


@dataclass(frozen=True)
class KernelFacts:
    """One kernel. Loops are counted as nests: a loop over independent elements with all that is inside."""

    method: str
    name: str
    c: str
    nests: int  # as the source says it: one or more for every statement
    fused: int  # after the pass that makes one nest of those over one space
    loops: int  # `for` in the C
    temps: int  # arrays that statements hand to one another
    kept: int  # those of them that are still arrays in the C


@dataclass(frozen=True)
class Facts:
    stages: Stages
    kernels: dict[str, list[KernelFacts]]  # by the layer's name


def facts(module: Module) -> Facts:
    stages = compile_module(module, keep=False, upto="lower")
    kernels: dict[str, list[KernelFacts]] = {layer.name: [] for layer in module.layers}
    for part in stages.parts:
        kernels[part.layer.name].append(_kernel(part))
    return Facts(stages, kernels)


def _kernel(part: Part) -> KernelFacts:
    seen: dict[str, ir.Kernel] = {}
    final = passes.run(part.kernel, trace=lambda name, kernel: seen.__setitem__(name, kernel))
    text = emit.function(final, "f32")
    return KernelFacts(
        method=part.method,
        name=emit.symbol(final, "f32"),
        c=text,
        nests=_nests(part.kernel.body, final.batch),
        fused=_nests(seen["fuse"].body, final.batch),
        loops=sum(line.lstrip().startswith("for (") for line in lines_of(text)),
        temps=len(temps := _temps(part.kernel)),
        kept=sum(any(_root(t) == _root(left) for left in _temps(final)) for t in temps),
    )


def _inside(stmt: ir.Stmt) -> Iterator[tuple[ir.Stmt, ...]]:
    match stmt:
        case ir.For(body=body):
            yield body
        case ir.While(before=before, body=body):
            yield before
            yield body
        case ir.If(then=then, orelse=orelse):
            yield then
            yield orelse


def _nests(body: tuple[ir.Stmt, ...], batch: str | None) -> int:
    """Outermost loops over independent elements; the loop over the batch, loops in order and branches are
    looked into."""
    return sum(1 if _is_nest(stmt, batch) else sum(_nests(inner, batch) for inner in _inside(stmt)) for stmt in body)


def _is_nest(stmt: ir.Stmt, batch: str | None) -> bool:
    return isinstance(stmt, ir.For) and stmt.kind == "map" and (batch is None or stmt.hi != Dim.of(batch))


def _temps(kernel: ir.Kernel) -> list[str]:
    return [b.name for b in kernel.buffers if b.kind in ("temp", "list") and b.shape and b.alias is None]


def _root(name: str) -> str:
    """The name that passes made copies of: a loop over four rows has sum, sum_2, sum_3 and sum_4."""
    return re.sub(r"(_\d+|_part)+$", "", name)


# -- arguments --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Argument:
    name: str
    role: str
    type: str
    note: str  # default, or first value
    to_backward: bool


def arguments(layer: Layer, stages: Stages) -> list[Argument]:
    """What goes in, and what comes out."""
    backward = stages.gradients.functions.get(layer.name)
    taken = {p.name for p in backward.params} if backward else set()
    forward = layer.forward or layer.predict
    rows = [
        Argument(p.name, p.role, _type(p.type.dtype, p.shape_text, p.role), _note(p), p.name in taken)
        for p in layer.params
    ]
    return rows + [
        Argument(r.name, "output", _type(r.type.dtype, r.shape_text), "", r.name in taken)
        for r in forward.results
        if r.role in ("output", "memory")
    ]


def _type(dtype: str, shape: str, role: str = "") -> str:
    if role == "random":
        return "Random"
    return f'{dtype}["{shape}"]' if shape else dtype


def _note(param: Parameter) -> str:
    if param.init is not None:
        name, args = param.init
        return f"init.{name}({', '.join(f'{a:g}' if isinstance(a, float) else str(a) for a in args)})"
    return f"= {param.default!r}" if param.role == "config" and not param.required else ""
