"""From a layer file to a package on disk: check, differentiate, lower, optimise, emit, compile, write.

build(Path("layers.py"))    ->    Path("layers_compiled")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from layerc.adjoint.keep import Kept
from layerc.adjoint.rescaled import by_final_largest
from layerc.build.answers import Answers
from layerc.build.compiler import Compiler, find
from layerc.build.gradients import Gradients, gradient_source, gradients_of
from layerc.build.library import Library
from layerc.build.manifest import layer_entry, manifest, method_entry, signature
from layerc.build.unchanged import default_output, is_unchanged, remember
from layerc.build.units import Compiled, shared
from layerc.build.variants import spares_work, variants
from layerc.build.writer import target_of, write_package
from layerc.transpile import emit, passes
from layerc.transpile.depth import deep
from layerc.transpile.dump import dump as ir_text
from layerc.transpile.errors import InternalError, Reporter
from layerc.transpile.ir import Kernel
from layerc.transpile.layers import check_file
from layerc.transpile.lower import ErrorTable, lower
from layerc.transpile.primal import primal
from layerc.transpile.printer import print_function
from layerc.transpile.program import Function, Layer, Module
from layerc.transpile.source import report_no_utf8

Progress = Callable[[str], None]
InC = Callable[[Kernel, str], str]
VERSION = "0.1.0"


@dataclass(frozen=True)
class Part:
    """One method of a layer: its function, and its kernel after the passes."""

    layer: Layer
    method: str  # predict forward backward, maybe its variants backward_params backward_inputs, and vjp pullback (Kept)
    function: Function
    kernel: Kernel


@dataclass(frozen=True)
class Stages:
    """All stages of a module short of C text."""

    module: Module
    gradients: Gradients
    parts: tuple[Part, ...]
    errors: ErrorTable

    def of(self, layer: Layer) -> list[Part]:
        return [p for p in self.parts if p.layer.name == layer.name]


@deep()
def build(
    source: Path,
    output: Path | None = None,
    *,
    f32_only: bool = False,
    checked: bool = False,
    portable: bool = False,
    keep: bool = True,
    dump: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Builds the package of a layer file and returns its directory (by default `<stem>_compiled` beside the
    file). `keep`: whether `vjp` has a forward of its own that leaves values for the pullback, where that saves work.

    InvalidFile: the file has mistakes; OSError: it cannot be read; UnusableOutput: the package cannot be
    written;
    NoCompiler. An older package is then as it was.
    """
    source = Path(source)
    target = Path(output) if output is not None else default_output(source)
    options = {"f32_only": f32_only, "checked": checked, "portable": portable, "keep": keep}
    if dump is None and is_unchanged(source, target, options):
        return target
    tell = progress or (lambda text: None)
    tell(f"reading {source.name}")
    module = read_module(source)
    dtypes = ("f32",) if f32_only else ("f32", "f64")
    lowered = lower_module(module, checked=checked, keep=keep)  # now all mistakes are known
    if dump is not None:
        print(show(module, dump))
    answers = Answers()
    layers = _optimised(lowered, tell, run=answers.kept(passes.run))
    _write(lowered, dtypes, target, portable, tell, layers=layers, in_c=answers.kept(emit.function))
    answers.forget()
    remember(source, target, options, [name for name, _ in module.imported])
    return target


def read_module(source: Path) -> Module:
    """The typed module of a file. InvalidFile if it has mistakes, or is not UTF-8; OSError if it cannot be
    read.
    """
    try:
        module = check_file(source)
    except UnicodeDecodeError as error:
        reporter = Reporter()
        report_no_utf8(error, source.name, reporter)
        reporter.raise_if_any()
        raise
    return replace(module, layers=tuple(map(_prepared, module.layers)))


def _prepared(layer: Layer) -> Layer:
    """A layer whose functions say what is computed in the order that is best for both passes."""
    forward = layer.forward and by_final_largest(layer.forward)
    return replace(layer, predict=by_final_largest(layer.predict), forward=forward)


@deep()
def compile_module(
    module: Module,
    *,
    checked: bool = False,
    keep: bool = True,
    tell: Progress = lambda text: None,
    upto: str | None = None,
) -> Stages:
    """Gradients, loop nests, and all passes (or those up to one)."""
    lowered = lower_module(module, checked=checked, keep=keep)
    run = partial(passes.run, upto=upto)
    return replace(lowered, parts=tuple(part for parts in _optimised(lowered, tell, run) for part in parts))


@deep()
def lower_module(module: Module, *, checked: bool = False, keep: bool = True) -> Stages:
    """Gradients and loop nests. InvalidFile if the file has mistakes: later stages find none."""
    gradients = gradients_of(module, keep)
    errors = ErrorTable()
    parts = []
    names: set[str] = set()
    for layer in module.layers:
        lowered: dict[str, Kernel] = {}
        for method, function in _methods(layer, gradients):
            kernel = lower(function, layer.name, errors, _kernel_name(layer, method, names), checked=checked)
            lowered[method] = kernel
            if "_" not in method or spares_work(kernel, lowered["backward"]):
                parts.append(Part(layer, method, function, kernel))
    return Stages(module, gradients, tuple(parts), errors)


def _optimised(lowered: Stages, tell: Progress, run: Callable[[Kernel], Kernel]) -> Iterator[list[Part]]:
    """The parts of one layer after the other, after the passes."""
    for layer in lowered.module.layers:
        tell(f"compiling {layer.name}")
        yield [replace(part, kernel=_passed(part, run)) for part in lowered.of(layer)]


def _passed(part: Part, run: Callable[[Kernel], Kernel]) -> Kernel:
    try:
        return run(part.kernel)
    except passes.IRError as fault:
        raise InternalError("passes", f"{part.layer.name}.{part.method}: {fault}", part.function.span) from fault


def _methods(layer: Layer, gradients: Gradients) -> Iterator[tuple[str, Function]]:
    yield "predict", layer.predict
    if layer.forward is not None:
        yield "forward", layer.forward
    if layer.name in gradients.functions:
        yield "backward", gradients.functions[layer.name]
        for want, function in variants(gradients.functions[layer.name]).items():
            yield f"backward_{want}", function
    if layer.name in gradients.kept:
        yield "vjp", gradients.kept[layer.name].forward
        yield "pullback", gradients.kept[layer.name].pullback


def _kernel_name(layer: Layer, method: str, taken: set[str]) -> str:
    """A C name that no other kernel has."""
    plain = "".join(c if c.isascii() else f"u{ord(c):x}" for c in layer.name)
    name = plain if layer.kind == "function" and method == "predict" else f"{plain}_{method}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


# -- writing ----------------------------------------------------------------------------------------------
def _write(
    stages: Stages,
    dtypes: tuple[str, ...],
    target: Path,
    portable: bool,
    tell: Progress,
    compiler: Compiler | None = None,
    layers: Iterable[list[Part]] | None = None,
    in_c: InC = emit.function,
) -> Path:
    """Writes the package. `compiler`: another than the one that is found. `layers`: the parts of one layer after the
    other, where those of `stages` have yet to be optimised; the C compiler works on what there is meanwhile. `in_c`:
    the text of a kernel for a type.
    """
    module = stages.module
    title = f"Made by layerc {VERSION} from {module.path}."
    guard = re.sub(r"\W", "_", f"LC_{Path(module.path).stem}_H", flags=re.ASCII).upper()
    target_of(target)  # before time is spent
    with Library(compiler or find(portable), portable) as library:
        jobs = [(part.kernel, dtype) for part in stages.parts for dtype in dtypes]
        library.declare(emit.header(jobs, guard, title), emit.cdef(jobs))
        done = _started(library, layers or map(stages.of, module.layers), dtypes, in_c)
        stages = replace(stages, parts=tuple(part for part, _ in done))
        functions = [function for _, of_part in done for function in of_part]
        jobs = [(function.kernel, function.dtype) for function in functions]
        tell("compiling the C code")
        write_package(
            target,
            manifest(module, VERSION, _entries(stages, dtypes, functions), stages.errors.rows()),
            c_text=emit.c_file(jobs, title=title, functions=[function.text for function in functions]),
            h_text=emit.header(jobs, guard, title),
            cdef=emit.cdef(jobs),
            gradients_text=stages.gradients.text,
            source_text=module.source,
            imported=module.imported,
            library=library,
        )
    return target


def _started(
    library: Library, layers: Iterable[list[Part]], dtypes: tuple[str, ...], in_c: InC
) -> list[tuple[Part, list[Compiled]]]:
    """The functions of all parts; the C compiler is at work on them."""
    done: list[tuple[Part, list[Compiled]]] = []

    def functions() -> Iterator[list[Compiled]]:
        for parts in layers:
            own = [(part, [_compiled(part, dtype, in_c) for dtype in dtypes]) for part in parts]
            done.extend(own)
            yield [function for _, of_part in own for function in of_part]

    library.start()
    for unit in shared(functions()):
        texts = [function.text for function in unit]
        library.add(emit.pieces([(function.kernel, function.dtype) for function in unit], functions=texts))
        library.start()
    return done


def _compiled(part: Part, dtype: str, in_c: InC) -> Compiled:
    return Compiled(part.layer.name, part.kernel, dtype, in_c(part.kernel, dtype))


def _entries(stages: Stages, dtypes: tuple[str, ...], functions: Sequence[Compiled]) -> list[dict[str, Any]]:
    texts = {layer.name: [f.text for f in functions if f.layer == layer.name] for layer in stages.module.layers}
    return [_entry(stages, layer, dtypes, "\n".join(texts[layer.name])) for layer in stages.module.layers]


def _entry(stages: Stages, layer: Layer, dtypes: tuple[str, ...], text: str) -> dict[str, Any]:
    """`text`: the C functions of the layer."""
    parts = stages.of(layer)
    entries = {p.method: method_entry(p.function, p.kernel, dtypes) for p in parts}
    methods = {name: entry for name, entry in entries.items() if "_" not in name}
    wanted = {name.partition("_")[2]: entry for name, entry in entries.items() if "_" in name}
    if wanted:
        methods["backward"]["variants"] = wanted
    sources = {"source": layer.source, "gradient": stages.gradients.sources.get(layer.name, ""), "c": text}
    backward = layer.backward if "backward" in methods else "none"
    return layer_entry(layer, backward, methods, sources)


# -- showing ----------------------------------------------------------------------------------------------
STAGES = ("typed", "kept", "ir", *(f"ir:{name}" for name in ("lower", *passes.NAMES)), "c")


@deep()
def show(module: Module, stage: str, name: str | None = None) -> str:
    """The text of a stage, of all layers or of one: typed source, what a training forward keeps for its pullback, loop
    nests after a pass (ir: after all), C for float32.
    """
    assert stage in STAGES, stage
    if name is not None:
        module = replace(module, layers=tuple(layer for layer in module.layers if layer.name == name))
    if stage == "typed":
        functions = [f for layer in module.layers for f in (layer.predict, layer.forward) if f is not None]
        return "\n\n".join(print_function(primal(f)) for f in functions)
    if stage == "kept":
        return "\n\n".join(_kept_text(layer, pair) for layer, pair in _pairs(module))
    _, _, upto = stage.partition(":")
    parts = compile_module(module, upto=upto or None).parts
    texts = [emit.function(p.kernel, "f32") if stage == "c" else ir_text(p.kernel) for p in parts]
    return "\n".join(texts)


def _pairs(module: Module) -> list[tuple[Layer, Kept | None]]:
    kept = gradients_of(module, keep=True).kept
    return [(layer, kept.get(layer.name)) for layer in module.layers if layer.backward == "auto"]


def _kept_text(layer: Layer, pair: Kept | None) -> str:
    if pair is None:
        return f"# {layer.name} keeps its arguments and outputs only: what else the pullback reads, it computes again"
    kept = f"{', '.join(pair.names)}: costly to compute again" if pair.names else "its arguments and outputs only"
    costs = f"# {layer.name} keeps {kept}"
    return "\n\n".join([costs, print_function(pair.forward), print_function(pair.pullback)])


__all__ = ["STAGES", "build", "compile_module", "gradient_source", "read_module", "show", "signature"]
