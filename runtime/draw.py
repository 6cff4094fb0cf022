"""A net as a picture: a box for each layer in running order, an arrow for each blob. Plain SVG, nothing needed."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerc.runtime.describe import edges

if TYPE_CHECKING:
    from layerc.runtime.net import Net

_WIDTH, _HEIGHT, _GAP, _MARGIN = 260, 34, 26, 20


def draw(net: "Net", path: Any) -> None:
    """Write an .svg file; ValueError for another suffix."""
    path = Path(path)
    if path.suffix != ".svg":
        raise ValueError(f"{path}: a net is drawn as .svg")
    path.write_text(svg(net), encoding="utf-8")


def svg(net: "Net") -> str:
    top = {layer.name: _MARGIN + k * (_HEIGHT + _GAP) for k, layer in enumerate(net.layers)}
    order = {name: k for k, name in enumerate(top)}
    found = edges(net)
    widest = max((order[b] - order[a] for a, b, _ in found), default=1)
    width = 2 * _MARGIN + _WIDTH + 24 * widest + 80
    height = 2 * _MARGIN + len(top) * (_HEIGHT + _GAP) - _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        f"<title>{escape(net.name)}</title>",
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z"/></marker></defs>',
    ]
    for layer in net.layers:
        y = top[layer.name]
        lines.append(
            f'<rect x="{_MARGIN}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="#eef3f8" stroke="#456"/>'
            f'<text x="{_MARGIN + 10}" y="{y + 21}"><tspan font-weight="bold">{escape(layer.name)}</tspan> '
            f"{escape(type(layer).__name__)}</text>"
        )
    for maker, reader, blob in found:
        lines += _arrow(top[maker], top[reader], order[reader] - order[maker], escape(blob))
    return "\n".join([*lines, "</svg>", ""])


def _arrow(start: int, end: int, steps: int, blob: str) -> list[str]:
    """To the next box straight down, to others around the boxes between."""
    style = 'fill="none" stroke="#456" marker-end="url(#head)"'
    if steps == 1:
        x = _MARGIN + _WIDTH // 2
        place = f'x="{x + 6}" y="{start + _HEIGHT + 17}"'
        return [f'<path d="M{x},{start + _HEIGHT} L{x},{end}" {style}/>', f'<text {place} fill="#456">{blob}</text>']
    x, y, to = _MARGIN + _WIDTH, start + _HEIGHT // 2, end + _HEIGHT // 2
    out = x + 24 * abs(steps)
    place = f'x="{x + 18 * abs(steps) + 4}" y="{(y + to) // 2}"'
    return [f'<path d="M{x},{y} C{out},{y} {out},{to} {x},{to}" {style}/>', f'<text {place} fill="#456">{blob}</text>']
