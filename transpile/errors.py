"""Mistakes in a layer file: collected over the whole file, then drawn with a caret and a way out.

layers.py:12:9: error[shape]: np.unique has a result whose shape depends on values
   12 |     u = np.unique(x)
      |         ^^^^^^^^^^^^
   help: what the subset offers instead
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .program import NOWHERE, Span
from .typing import TypingError


class Mistake(TypingError):
    """A TypingError at a place."""

    def __init__(self, span: Span, kind: str, message: str, help: str = "") -> None:
        super().__init__(kind, message, help)
        self.span = span


class Suppressed(Exception):
    """A consequence of a mistake already reported."""


class InvalidFile(Exception):
    """The file has mistakes: `str()` is the drawing of all of them."""

    def __init__(self, mistakes: list[Mistake], drawn: str) -> None:
        super().__init__(drawn)
        self.mistakes = mistakes


class InternalError(Exception):
    """A fault of the compiler, not of the file: says the pass and the place, and how to report it."""

    def __init__(self, stage: str, message: str, span: Span = NOWHERE) -> None:
        where = f" at line {span.line}" if span.line else ""
        super().__init__(
            f"internal error in {stage}{where}: {message}\n  This is a fault of layerc, not of your file: "
            "please report it with the layer that shows it."
        )


@dataclass
class Reporter:
    sources: dict[str, list[str]] = field(default_factory=dict)  # path -> lines
    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, mistake: Mistake) -> None:
        same = [m for m in self.mistakes if m.span == mistake.span and m.span.path == mistake.span.path]
        if not any(m.message == mistake.message for m in same):
            self.mistakes.append(mistake)

    def raise_if_any(self) -> None:
        if self.mistakes:
            ordered = sorted(self.mistakes, key=lambda m: (m.span.path, m.span.line, m.span.column))
            raise InvalidFile(ordered, "\n".join(self.draw(m) for m in ordered))

    def draw(self, mistake: Mistake) -> str:
        span = mistake.span
        lines = self.sources.get(span.path, [])
        known = 1 <= span.line <= len(lines)
        text = lines[span.line - 1] if known else ""
        # Columns are counted in UTF-8 bytes by the parser, in characters by editors and terminals.
        start = len(text.encode()[: span.column].decode(errors="replace")) if known else span.column
        head = f"{span.path}:{span.line}:{start + 1}: error[{mistake.kind}]: {mistake.message}"
        if known:
            end = span.end_column if span.end_line == span.line else len(text.encode())
            width = max(len(text.encode()[:end].decode(errors="replace")) - start, 1)
            lead = "".join("\t" if c == "\t" else " " for c in text[:start])
            head += f"\n{span.line:>5} | {text}\n      | {lead}{'^' * width}"
        if mistake.help:
            head += f"\n   help: {mistake.help}"
        return head


def span_of(node: Any, path: str) -> Span:
    line = getattr(node, "lineno", 0) or 0
    column = getattr(node, "col_offset", 0) or 0
    end_line = getattr(node, "end_lineno", None) or line
    return Span(line, column, end_line, getattr(node, "end_col_offset", None) or column + 1, path)
