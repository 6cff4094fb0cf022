"""What a kernel can raise: numbers for the C side, exception, message and place for the manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..program import Span


@dataclass(frozen=True)
class Fault:
    """`message` may name the integers of a check as {0}, {1}."""

    exception: str
    message: str
    file: str
    line: int
    layer: str


class ErrorTable:
    """The faults of all kernels of a package. Number 1 is out of memory, so these count from 2."""

    def __init__(self) -> None:
        self._numbers: dict[Fault, int] = {}

    def number(self, exception: str, message: str, span: Span, layer: str) -> int:
        fault = Fault(exception, message, span.path, span.line, layer)
        return self._numbers.setdefault(fault, len(self._numbers) + 2)

    def rows(self) -> list[dict[str, Any]]:
        """The manifest's "errors"."""
        return [
            {
                "number": n,
                "exception": f.exception,
                "message": f.message,
                "file": f.file,
                "line": f.line,
                "layer": f.layer,
            }
            for f, n in self._numbers.items()
        ]
