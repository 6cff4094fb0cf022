"""What the training jobs beside this file share: layers that are built when needed, a progress bar, a result."""

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layerc.runtime import Function, Net, ProgressBar

HERE = Path(__file__).resolve().parent
OUT = HERE / "out"


@dataclass(frozen=True)
class Result:
    """measure: what `value` is, on data the training never saw; seconds, and those of all cores' work: of the training
    alone."""

    measure: str
    value: float
    iterations: int
    seconds: float
    work: float

    def __str__(self) -> str:
        each = 1e3 * self.seconds / max(self.iterations, 1)
        took = f"{self.iterations} iterations in {self.seconds:.1f} s, {each:.2f} ms each"
        return f"{self.measure} {self.value:.4g} after {took}"


@dataclass(frozen=True)
class Target:
    """What a result must come to: `bound` or more, or if not `is_least`, or less."""

    bound: float
    is_least: bool = True

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.is_least else value <= self.bound

    def __str__(self) -> str:
        return f"at {'least' if self.is_least else 'most'} {self.bound}"


class Clock:
    """Adds up what passes inside `with clock:`."""

    def __init__(self) -> None:
        self.seconds = self.work = 0.0

    def __enter__(self) -> None:
        self.seconds -= time.perf_counter()
        self.work -= time.process_time()

    def __exit__(self, *exc: object) -> None:
        self.seconds += time.perf_counter()
        self.work += time.process_time()

    def result(self, measure: str, value: float, iterations: int) -> Result:
        return Result(measure, float(value), iterations, self.seconds, self.work)


def layers(stem: str = "job_layers") -> Any:
    """The package of the layer file `stem`, built if the file is newer. (After changing layerc itself: make clean.)"""
    source, package = HERE / f"{stem}.py", HERE / f"{stem}_compiled"
    stamp = package / "manifest.json"
    if not stamp.exists() or stamp.stat().st_mtime < source.stat().st_mtime:
        print(f"layerc build examples/{stem}.py", flush=True)
        built = subprocess.run([sys.executable, "-m", "layerc.cli", "build", str(source)])
        if built.returncode:
            sys.exit(built.returncode)
        stamp.touch()  # what has not changed is not written again
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    return importlib.import_module(package.name)


def solve(solver: Any, net: Net, total: int, clock: Clock, lines: int = 10) -> None:
    """Train under a bar, or some lines where there is no terminal."""
    if sys.stderr.isatty():
        solver.add(ProgressBar(total))
    elif lines:
        solver.add(Function(_line, every_n_iter=max(1, total // lines)))
    with clock:
        solver.solve(net)


def _line(solver: Any, net: Net) -> None:
    if solver.state.iter:
        print(f"    iteration {solver.state.iter:6d}   objective {solver.state.obj_val:.4f}", flush=True)


def load(name: str, *arguments: Any, **keywords: Any) -> Any:
    """`sklearn.datasets.load_<name>(...)`; scikit-learn bundles its data, nothing is fetched."""
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ImportError:
        sys.exit("this example needs scikit-learn: pip install 'layerc[demo]'")
    return getattr(datasets, f"load_{name}")(*arguments, **keywords)


def figure(rows: int, columns: int, width: float = 8, height: float = 4) -> tuple[Any, Any]:
    """A figure and its axes, always a table of them."""
    made = importlib.import_module("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    return made, made.subplots(rows, columns, squeeze=False)


def save(figure: Any, name: str) -> None:
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / f"{name}.png", dpi=110)
    print(f"    picture: examples/out/{name}.png")


def main(run: Callable[[], Result], target: Target) -> int:
    """Run a job; exit status 0 if it reached what it is meant to reach."""
    result = run()
    good = target.reached(result.value)
    print(f"{'ok ' if good else 'BAD'} {result} (wanted: {target})")
    return 0 if good else 1
