"""`make bench-spellings`: layers that are each written in several ways. How much does it matter how one writes them?

    python benchmarks/spellings.py [--only filter,softmax] [--rounds 15]

All ways of a layer (spelled.py) must agree, values and gradients, and are timed in turns: medians of a call. Writes
benchmarks/results/spellings.json, .md and .txt.

Exit status: 0 measured; 1 two ways disagree; 2 usage.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from settings import RESULTS, pin_threads

pin_threads()  # before anything below imports numpy

import machine  # noqa: E402
import numpy as np  # noqa: E402
import report  # noqa: E402
import tables  # noqa: E402
from layerc_peers import Layerc  # noqa: E402

TURN = 0.03  # seconds
BATCH = 32


def arguments(rng: np.random.Generator) -> dict[str, list[np.ndarray]]:
    """What each layer is called with."""

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    length = rng.integers(1, 128, BATCH).astype(np.int32)
    return {
        "filter": [floats(BATCH, 64, 64), floats(3, 3)],
        "largest": [floats(BATCH, 64, 64)],
        "softmax": [floats(BATCH, 128, 128), length],
        "mean": [floats(BATCH, 128, 64), length],
        "norm": [floats(BATCH, 128, 256)],
        "attention": [floats(BATCH, 64, 32), floats(BATCH, 64, 32), floats(BATCH, 64, 32)],
        "distance": [floats(512, 64) / 8, floats(128, 64) / 8],
        "root": [np.abs(floats(BATCH, 64, 64)) * 2],
    }


def built():
    """The package of spelled.py."""
    (peer := Layerc()).start()
    return peer.package("benchmarks/spelled.py")


def cotangent(y: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)


def results(layer, values) -> list[np.ndarray]:
    y, pullback = layer.vjp(*values)
    gradients = pullback(cotangent(y))
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return [y, *(g for g in gradients if g is not None)]


def disagreement(ways: dict, values) -> float:
    """The largest difference from the first way, of what the largest number is."""
    first, *others = (results(layer, values) for layer in ways.values())
    return max(
        (float(np.abs(a - b).max() / np.abs(a).max()) for other in others for a, b in zip(first, other, strict=True)),
        default=0.0,
    )


def turn(call: Callable[[], object]) -> float:
    call()
    found, begin = [], time.perf_counter()
    while time.perf_counter() - begin < TURN or len(found) < 3:
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def measured(ways: dict, values, rounds: int) -> dict[str, dict[str, float]]:
    dy = cotangent(next(iter(ways.values()))(*values))
    times: dict[str, dict[str, list[float]]] = {how: {"forward": [], "gradient": []} for how in ways}
    for _ in range(rounds):
        for how, layer in ways.items():
            times[how]["forward"].append(turn(lambda: layer(*values)))  # noqa: B023
            times[how]["gradient"].append(turn(lambda: layer.vjp(*values)[1](dy)))  # noqa: B023
    return {how: {what: statistics.median(found) for what, found in both.items()} for how, both in times.items()}


def blocks(run: dict) -> list[tables.Block]:
    rows = []
    for what, ways in run["layers"].items():
        least = {which: min(way[which] for way in ways.values()) for which in ("forward", "gradient")}
        for how, way in ways.items():
            shown = [report.duration(way["forward"]), report.duration(way["gradient"])]
            rows.append([what, how, *shown, *(f"{way[k] / least[k]:.2f}" for k in ("forward", "gradient"))])
    worst = max(float(row[-1]) for row in rows)
    header = ["layer", "written with", "forward", "forward and all gradients", "times the fastest", "with gradients"]
    return [tables.Block("Ways to write a layer", [f"Medians of a call. Farthest apart: {worst:.2f}."], header, rows)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), help="comma-separated layers")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    known, package = arguments(np.random.default_rng(0)), built()
    if missing := set(options.only or ()) - known.keys():
        parser.error(f"no layer {', '.join(sorted(missing))}; there are: {', '.join(known)}")
    run: dict = {"machine": machine.describe(), "layers": {}}
    for what in options.only or known:
        ways = {n.split("__")[1]: getattr(package, n) for n in package.__all__ if n.startswith(f"{what}__")}
        if (apart := disagreement(ways, known[what])) > 1e-4:
            print(f"{what}: the ways to write it are {apart:.1e} apart", file=sys.stderr)
            return 1
        run["layers"][what] = measured(ways, known[what], options.rounds)
        print(f"{what}: {len(ways)} ways measured", file=sys.stderr)
    print(tables.text(blocks(run)))
    if not options.only:
        tables.write(blocks(run), run, RESULTS, "spellings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
