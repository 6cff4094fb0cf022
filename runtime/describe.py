"""A net in texts: tables, graphs, memory."""

from typing import TYPE_CHECKING, Any

from layerc.runtime.arena import Lifetime, pack
from layerc.runtime.data import DataLayer, Input

if TYPE_CHECKING:
    from layerc.runtime.net import Net

_PROPERTIES = (
    *("arrays_count", "arrays_total_count", "arrays_total_byte_count"),
    *("layers_count", "layers_list", "input_ports", "output_ports"),
)


def info(net: "Net", prop: str | None) -> Any:
    """Wolfram's Information properties; ValueError for an unknown one."""
    graph = net.graph
    arrays = [p.data for p in net.buffer.parameters] + [a for s in net.track.states for a in s.states.values()]
    fed = [w for s in graph.steps if isinstance(s.layer, DataLayer | Input) for w in s.tops]
    values = {
        "arrays_count": len(arrays),
        "arrays_total_count": sum(a.size for a in arrays),
        "arrays_total_byte_count": sum(a.nbytes for a in arrays),
        "layers_count": len(net.layers),
        "layers_list": [layer.name for layer in net.layers],
        "input_ports": {graph.wires[w].name: net.track.blobs[w].shape[1:] for w in fed},
        "output_ports": {
            name: net.track.blobs[w].shape[1:] for name, w in graph.last.items() if not graph.wires[w].readers
        },
    }
    if prop is None:
        return values
    if prop not in values:
        raise ValueError(f"no property {prop!r}; there is {', '.join(_PROPERTIES)}")
    return values[prop]


def table(net: "Net") -> str:
    """One line a layer: name, type, tops and their shapes, parameters, bytes of the blobs."""
    rows = [("layer", "type", "output", "params", "bytes")]
    total = 0
    for step, state in zip(net.graph.steps, net.track.states):
        if step.is_hidden:
            continue
        kind = type(step.layer).__name__
        if state is None:
            rows.append((step.layer.name, kind, "?", "?", "?"))
            continue
        tops = zip(step.tops, state.blobs)
        output = ", ".join(f"{net.graph.wires[w].name} {'x'.join(map(str, b.shape))}" for w, b in tops)
        size = sum(b.data.nbytes for b in state.blobs)
        total += size
        rows.append((step.layer.name, kind, output or "-", str(sum(p.size for p in state.parameters)), str(size)))
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    rows.insert(1, tuple("-" * n for n in widths))  # type: ignore[arg-type]
    lines = [
        "  ".join(c.rjust(n) if k > 2 else c.ljust(n) for k, (c, n) in enumerate(zip(row, widths))) for row in rows
    ]
    count = sum(p.size for p in net.buffer.parameters)
    lines.append(f"{count} parameters ({count * net.dtype.itemsize} bytes), {total} bytes of blobs")
    return "\n".join([f"Net {net.name!r} ({net.dtype})", *(line.rstrip() for line in lines)])


def memory(net: "Net") -> str:
    """Blobs at training, and the arena of inference, where a blob whose last reader has run is reused."""
    graph, blobs = net.graph, net.track.blobs
    end = {w: max(wire.readers, default=len(graph.steps)) for w, wire in enumerate(graph.wires)}
    order = sorted(end, key=lambda w: graph.wires[w].maker)
    found, arena = pack([Lifetime(blobs[w].data.nbytes, graph.wires[w].maker, end[w]) for w in order])
    places = dict(zip(order, found))
    whole = sum(b.data.nbytes for b in blobs)
    diffs = sum(b.data.nbytes for b in net.track.diffs.values())
    lines = [f"memory of net {net.name!r}", f"{'blob':<20} {'shape':<18} {'bytes':>10} {'at':>10}"]
    for w in order:
        shape = "x".join(map(str, blobs[w].shape))
        lines.append(f"{graph.wires[w].name:<20} {shape:<18} {blobs[w].data.nbytes:>10} {places[w]:>10}")
    parameters = net.buffer.data.nbytes
    lines += [
        f"parameters           {parameters} bytes, their gradients {parameters}",
        f"training             {whole} bytes of blobs, {diffs} of their gradients",
        f"inference            {arena} bytes in one arena (without reuse: {whole})",
        *_ahead(net),
    ]
    return "\n".join(lines)


def _ahead(net: "Net") -> list[str]:
    """The arena of `predict` in the net that `layerc build` makes, temporaries of the layers included."""
    from layerc.runtime.rehearse import schedule
    from layerc.runtime.replay import Replay
    from layerc.runtime.symbolic import Unrecordable

    try:
        each, more = Replay(schedule(net).predict).arena
    except (Unrecordable, ValueError, TypeError):
        return []
    return [f"built ahead of time  {each} bytes for each example" + (f", {more} for all" if more else "")]


def edges(net: "Net") -> list[tuple[str, str, str]]:
    """(maker, reader, blob) for each blob that a layer reads."""
    graph = net.graph
    found = []
    for step in graph.steps:
        for w in () if step.is_hidden else dict.fromkeys(step.bottoms):
            found.append((graph.maker(w).name, step.layer.name, graph.wires[w].name))
    return found


def to_dot(net: "Net") -> str:
    """Graphviz' language: a box for each layer, an arrow for each blob."""
    lines = [f"digraph {_quoted(net.name)} {{", "  rankdir=TB; node [shape=box];"]
    for layer in net.layers:
        lines.append(f"  {_quoted(layer.name)} [label={_quoted(f'{layer.name}: {type(layer).__name__}')}];")
    for maker, reader, blob in edges(net):
        lines.append(f"  {_quoted(maker)} -> {_quoted(reader)} [label={_quoted(blob)}];")
    return "\n".join([*lines, "}"])


def to_mermaid(net: "Net") -> str:
    """Mermaid's language."""
    number = {layer.name: f"l{i}" for i, layer in enumerate(net.layers)}
    lines = ["flowchart TD"]
    for layer in net.layers:
        text = f"{layer.name}: {type(layer).__name__}".replace('"', "#quot;")
        lines.append(f'  {number[layer.name]}["{text}"]')
    for maker, reader, blob in edges(net):
        text = blob.replace('"', "#quot;")
        lines.append(f'  {number[maker]} -->|"{text}"| {number[reader]}')
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


__all__ = ["edges", "info", "memory", "table", "to_dot", "to_mermaid"]
