"""What comes of a check: a table of tests."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Row:
    """One test: result is "passed", "FAILED" or "skipped"."""

    test: str
    result: str
    figure: str = ""
    note: str = ""


@dataclass
class Report:
    """What came of a check. str(report) is the table, report.passed whether nothing failed."""

    title: str
    rows: list[Row] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if row.result == "FAILED"]

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        table = [(row.test, row.result, row.figure, row.note) for row in self.rows]
        wide = [max(len(cells[i]) for cells in table) for i in range(3)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(cells, wide)) + "  " + cells[3] for cells in table]
        bad = len(self.failures)
        skipped = sum(row.result == "skipped" for row in self.rows)
        ran = len(table) - skipped
        end = f"{bad} of {ran} tests failed" if bad else f"all {ran} tests passed"
        end += f", {skipped} skipped" if skipped else ""
        return "\n".join([self.title, *(f"  {line.rstrip()}" for line in lines), f"  {end} ({self.seconds:.2f} s)"])


def relative_error(a: np.ndarray, b: np.ndarray, scale: np.ndarray | None = None) -> float:
    """The largest difference, relative to the largest value; infinity where one is NaN and the other not."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return np.inf
    with np.errstate(invalid="ignore"):
        off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, abs(a - b))
    if not off.size or not off.any():
        return 0.0
    size = abs(b if scale is None else np.asarray(scale, np.float64))
    largest = float(np.max(size[np.isfinite(size)], initial=0.0))
    worst = float(np.max(off)) / (largest or 1.0)
    return np.inf if np.isnan(worst) else worst
