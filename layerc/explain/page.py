"""The page of `layerc explain`: one HTML file that holds all it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from layerc.adjoint.gradient import gradient
from layerc.build.driver import VERSION, signature
from layerc.explain import colour, links
from layerc.explain.facts import Argument, Facts, KernelFacts, arguments, facts
from layerc.transpile.lines import lines_of
from layerc.transpile.program import Function, Layer, Module

MARK = '<meta name="generator" content="layerc explain">'  # the first bytes of a page say whose it is
_HUES = 9
_METHODS = {
    "predict": "predict",
    "forward": "forward",
    "backward": "backward",
    "backward_params": "backward, params only",
    "backward_inputs": "backward, inputs only",
}


def page(module: Module, name: str | None = None) -> str:
    """The page of a module's layers, or of one. InvalidFile where the file has mistakes."""
    found = facts(module)
    layers = [layer for layer in module.layers if name in (None, layer.name)]
    title = escape(Path(module.path).name)
    jumps = "".join(f'<a href="#{escape(layer.name)}">{escape(layer.name)}</a>' for layer in layers)
    sections = "\n".join(_section(module, layer, found) for layer in layers)
    return "\n".join(
        [
            f'<!DOCTYPE html>\n<html lang="en"><head>{MARK}<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}, explained</title>",
            f"<style>\n{_asset('style.css')}</style></head><body>",
            f'<header class="top"><h1>{title}</h1><p>as layerc {VERSION} reads, differentiates and compiles'
            f" it</p><nav>{jumps}</nav></header><main>",
            sections,
            f"</main><footer>{_HOW}</footer><script>\n{_asset('script.js')}</script></body></html>\n",
        ]
    )


_HOW = """\
<p>Point at a line to see what became of it; click to hold it, Escape to let go. Gradient lines are linked by
the statements they reverse or repeat. C lines are linked by the names they write, which come from the source;
what has no such name goes with the lines that read it, and the rest belongs to its kernel only.</p>"""


def _asset(name: str) -> str:
    return files("layerc.explain").joinpath(name).read_text(encoding="utf-8")


# -- a layer ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Row:
    """A line of code: its number, its HTML, and the forward and gradient lines it belongs to."""

    number: int
    html: str
    forward: links.Lines = links.NONE
    gradient: links.Lines = links.NONE
    faint: bool = False


def _section(module: Module, layer: Layer, found: Facts) -> str:
    grad, of_gradient = _gradient(module, layer, found)
    kernels = found.kernels[layer.name]
    blocks = [_kernel(k, module, layer, found, of_gradient) for k in kernels]
    linked = set().union(*(row.forward for row in grad)) | set().union(*(r.forward for b in blocks for r in b))
    forward = _forward(module, layer, linked)
    hues = {row.number: n % _HUES for n, row in enumerate(r for r in forward if r.forward)}
    doc = layer.doc.strip().splitlines()
    kind = {"class": "class"}.get(layer.kind, "function") + (", whole batches" if layer.predict.batched else "")
    panes = [
        _pane("forward", "Forward", Path(module.path).name, _code(forward, hues)),
        _pane("gradient", "Gradient", _gradient_note(layer), _code(grad, hues) or _nothing(layer)),
        _pane("native", "C", "float32", _kernels(kernels, blocks, hues)),
    ]
    return (
        f'<section id="{escape(layer.name)}"><h2>{escape(layer.name)} <small>{kind}</small></h2>'
        + (f'<p class="doc">{escape(doc[0])}</p>' if doc else "")
        + f'<pre class="signature">{colour.python(signature(layer))[0]}</pre>'
        + f'<div class="facts">{_arguments(arguments(layer, found.stages))}{_loops(kernels)}</div>'
        + f'<div class="panes">{"".join(panes)}</div></section>'
    )


def _gradient_note(layer: Layer) -> str:
    return {"auto": "gradients.py, derived", "custom": "written by hand"}.get(layer.backward, "none")


def _nothing(layer: Layer) -> str:
    return '<p class="none">The author disabled the gradient: <code>backward=None</code>.</p>'


def _forward(module: Module, layer: Layer, linked: Iterable[int]) -> list[_Row]:
    """The layer's own lines, and before or after them those of the functions that it calls."""
    lines, html = lines_of(module.source), colour.python(module.source)
    wanted = set(range(_first(lines, layer.span.line), layer.span.end_line + 1))
    if layer.custom is not None:  # shown as the gradient
        wanted -= set(range(_first(lines, layer.custom.span.line), layer.custom.span.end_line + 1))
    wanted |= _helpers(module.source, wanted)
    marks = set(linked)
    rows = [_Row(n, html[n - 1], frozenset({n} & marks)) for n in sorted(wanted) if 0 < n <= len(lines)]
    while rows and not lines[rows[-1].number - 1].strip():
        rows.pop()
    return rows


def _first(lines: Sequence[str], line: int) -> int:
    """The line of the first decorator."""
    while line > 1 and lines[line - 2].lstrip().startswith("@"):
        line -= 1
    return line


def _helpers(source: str, wanted: Iterable[int]) -> set[int]:
    """The lines of the file's functions that these lines call, and those call."""
    tree = ast.parse(source)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    found, waiting = set[int](), set(wanted)
    while waiting:
        names = {call.func.id for call in calls if call.lineno in waiting and isinstance(call.func, ast.Name)}
        called = [functions[name] for name in names & functions.keys()]
        waiting = {n for f in called for n in range(f.lineno, (f.end_lineno or f.lineno) + 1)} - found
        found |= waiting
    return found


def _gradient(module: Module, layer: Layer, found: Facts) -> tuple[list[_Row], dict[int, links.Lines]]:
    """Its rows, and for every numbered line of it the forward lines."""
    gradients = found.stages.gradients
    if layer.name not in gradients.functions:
        return [], {}
    function, text = gradients.functions[layer.name], gradients.sources[layer.name]
    if layer.custom is not None:
        start, lines = function.span.line, colour.python(module.source)
        shown = range(_first(lines_of(module.source), start), function.span.end_line + 1)
        return [_Row(n, lines[n - 1], gradient=frozenset({n})) for n in shown], {}
    origin = links.gradient_lines(gradient(layer, module.source, module.path), text, module.path)
    begin, start = links.sweep(text), function.span.line - 1
    rows = [
        _Row(start + n, html, origin.get(n, links.NONE), frozenset({start + n}), n in origin and n < begin)
        for n, html in enumerate(colour.python(text.rstrip("\n")), 1)
    ]
    return rows, {row.number: row.forward for row in rows}


def _kernel(
    kernel: KernelFacts, module: Module, layer: Layer, found: Facts, of_gradient: Mapping[int, links.Lines]
) -> list[_Row]:
    """A kernel's rows: a forward one is linked to forward lines, a backward one to gradient lines as well."""
    backward = kernel.method.startswith("backward")
    function = found.stages.gradients.functions[layer.name] if backward else _method(layer, kernel.method)
    origin = links.c_lines(kernel.c, links.definitions(function))
    rows = []
    for n, html in enumerate(colour.c(kernel.c.rstrip("\n")), 1):
        lines = origin.get(n, links.NONE)
        if backward:
            forward = frozenset().union(*(of_gradient.get(line, links.NONE) for line in lines))
            rows.append(_Row(n, html, forward, lines))
        else:
            rows.append(_Row(n, html, lines))
    return rows


def _method(layer: Layer, method: str) -> Function:
    return layer.forward if method == "forward" and layer.forward is not None else layer.predict


# -- code -------------------------------------------------------------------------------------------------
def _pane(kind: str, title: str, note: str, body: str) -> str:
    head = f'<div class="head"><h3>{title}</h3><span>{escape(note)}</span></div>'
    return f'<div class="pane {kind}">{head}{body}</div>'


def _code(rows: Sequence[_Row], hues: Mapping[int, int]) -> str:
    if not rows:
        return ""
    out = []
    last = rows[0].number - 1
    for row in rows:
        if row.number != last + 1:
            out.append('<div class="gap"></div>')
        out.append(_line(row, hues))
        last = row.number
    return f'<div class="code">{"".join(out)}</div>'


def _line(row: _Row, hues: Mapping[int, int]) -> str:
    classes = ["l"]
    if len(row.forward) == 1:
        classes.append(f"h{hues.get(next(iter(row.forward)), 0)}")
    elif row.forward:
        classes.append("many")
    if row.faint:
        classes.append("sweep")
    data = "".join(
        f' data-{key}="{" ".join(map(str, sorted(lines)))}"'
        for key, lines in (("f", row.forward), ("g", row.gradient))
        if lines
    )
    focus = ' tabindex="0"' if row.forward else ""
    return f'<div class="{" ".join(classes)}"{data}{focus}><i>{row.number}</i><code>{row.html}</code></div>'


def _kernels(kernels: Sequence[KernelFacts], blocks: Sequence[list[_Row]], hues: Mapping[int, int]) -> str:
    tabs = "".join(
        f'<button type="button" aria-pressed="{"false" if n else "true"}">{_METHODS[k.method]}</button>'
        for n, k in enumerate(kernels)
    )
    codes = "".join(
        f'<div class="kernel"><h4>{escape(k.name)}</h4>{_code(rows, hues)}</div>' for k, rows in zip(kernels, blocks)
    )
    return f'<div class="tabs">{tabs}</div>{codes}'


# -- facts ------------------------------------------------------------------------------------------------
def _arguments(rows: Sequence[Argument]) -> str:
    body = "".join(
        f'<tr><td class="role">{row.role}</td><td><code>{escape(row.name)}</code></td>'
        f"<td><code>{colour.python(row.type)[0]}</code></td><td>{escape(row.note)}</td>"
        f'<td class="mark">{"●" if row.to_backward else ""}</td></tr>'
        for row in rows
    )
    return (
        "<table><thead><tr><th>role</th><th>name</th><th>type and shape</th><th></th>"
        f'<th class="mark">kept for backward</th></tr></thead><tbody>{body}</tbody></table>'
    )


def _loops(kernels: Sequence[KernelFacts]) -> str:
    most = max((k.nests for k in kernels), default=1) or 1
    body = "".join(
        f"<tr><td><code>{escape(k.name)}</code></td>"
        f'<td class="bar"><span style="width:{100 * k.nests / most:.0f}%">'
        f'<b style="width:{100 * k.fused / (k.nests or 1):.0f}%"></b></span></td>'
        f"<td>{k.nests} → {k.fused}</td><td>{k.loops}</td><td>{k.temps} → {k.kept}</td></tr>"
        for k in kernels
    )
    before, after = sum(k.nests for k in kernels), sum(k.fused for k in kernels)
    share = (
        f"{100 * (before - after) / before:.0f}% of the loop nests were fused away"
        if after < before
        else ("no two loop nests run over one space")
    )
    return (
        f'<table class="loops"><caption>{share}</caption><thead><tr><th>kernel</th><th></th>'
        "<th>nests before → after fusing</th><th>loops in C</th><th>arrays between statements</th></tr>"
        f"</thead><tbody>{body}</tbody></table>"
    )
