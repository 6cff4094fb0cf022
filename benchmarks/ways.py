"""`make bench-ways`: the same layers in several ways, side by side in one run.

    python benchmarks/ways.py [--cases srelu,mish] [--quick]

One thread beside several; a library for every CPU beside one for this; a kernel for all shapes beside one for these
very shapes; and products of matrices beside NumPy's. What is the same again, in a process of its own, says how much of
a difference is chance. The same workers, guard and rounds as run.py; no peer is needed.
Writes benchmarks/results/ways.json, .md and .txt.

Exit status: 0 measured; 1 two ways disagree, or one failed that should not; 2 usage.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from settings import HERE, RESULTS, THREADS, pin_threads

pin_threads()  # before anything below imports numpy

import products  # noqa: E402
import report  # noqa: E402
import tables  # noqa: E402
from cases import CASES  # noqa: E402
from layerc_peers import BUILT  # noqa: E402
from peers import WAYS  # noqa: E402
from run import measured, names_of, options  # noqa: E402

SUITES = ("bench", "calls", "ways")
SMALL = 50e-6  # seconds of forward and gradients on one thread, below which a case is small
TITLES = {"gradient": "Ways: forward and all gradients", "forward": "Ways: forward"}
KINDS = ("compute", "memory", "small")


def kind(case: dict) -> str:
    """What bounds a case: the call itself, memory (those whose traffic is known), or the arithmetic."""
    if case["peers"].get("one thread", {}).get("gradient", {}).get("median", 1.0) < SMALL:
        return "small"
    return "memory" if "traffic" in case else "compute"


def ratios(case: dict, what: str) -> dict[str, float]:
    """Of the comparisons those that there are: good are large ones of threads, small ones of portable and generic, and
    the same again is off 1 by as much as others are by chance."""
    found = {way: ratio["median"] for way, ratio in case.get("ratios", {}).get(what, {}).items()}
    made = {"threads": found.get("one thread"), "portable": found.get("portable"), "again": found.get("again")}
    made["generic"] = 1 / found["specialised"] if "specialised" in found else None
    return {name: ratio for name, ratio in made.items() if ratio is not None}


def block(run: dict, what: str) -> tables.Block:
    taken: dict[str, dict[str, dict[str, float]]] = {}  # comparison -> kind -> case -> ratio
    rows = []
    for name, case in run["cases"].items():
        found = ratios(case, what)
        for comparison, ratio in found.items():
            taken.setdefault(comparison, {}).setdefault(kind(case), {})[name] = ratio
        cells = [f"{found[c]:.2f}" if c in found else "" for c in ("threads", "portable", "generic", "again")]
        rows.append([name, kind(case), *cells])
    lines = ["Median over rounds of the ratio within a round."]
    lines += _lines(f"1 thread / {THREADS} threads", taken.get("threads", {}), min)
    lines += _lines("portable / native", taken.get("portable", {}), max)
    lines += _lines("generic / specialised", taken.get("generic", {}), max)
    lines += _lines("the same again / native", taken.get("again", {}), max)
    compared = [f"1 thread / {THREADS} threads", "portable / native", "generic / specialised", "again / native"]
    return tables.Block(TITLES[what], lines, ["case", "bound by", *compared], rows)


def _lines(title: str, kinds: dict[str, dict[str, float]], worst_of: Callable) -> list[str]:
    """A line for each kind of case."""
    lines = []
    for name, found in ((k, kinds[k]) for k in KINDS if k in kinds):
        worst = worst_of(found, key=found.get)
        mean = report.geometric_mean(found)
        lines.append(f"{title}, {name} ({len(found)}): geometric mean {mean:.2f}, worst {worst}, {found[worst]:.2f}.")
    return lines


def blocks(run: dict) -> list[tables.Block]:
    times = {"gradient": "Ways: times of forward and all gradients", "forward": "Ways: times of the forward"}
    made = [block(run, what) for what in TITLES]
    made += [report.time_block(run, what, title) for what, title in times.items()]
    return made + ([products.block(run["products"])] if "products" in run else [])


def of_products(quick: bool) -> dict:
    """In a process of its own: how many threads NumPy's library takes is said before it is loaded."""
    with tempfile.TemporaryDirectory(prefix="layerc-products-") as folder:
        path = Path(folder) / "run.json"
        chosen = ["f32", "--seconds", "0.02"] if quick else []
        command = [sys.executable, str(HERE / "products.py"), *chosen, "--json", str(path)]
        subprocess.run(command, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL, check=True)
        return json.loads(path.read_text())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=names_of(CASES), help="comma-separated (default: all but the kinds)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter turns")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a way's first call (default 120)")
    parser.add_argument("--patience", type=float, help="seconds to wait for other processes (default 120)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="directory of the report")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    every = [name for name, case in CASES.items() if case.suite in SUITES]
    whole = not args.cases and not args.quick
    with tempfile.TemporaryDirectory(prefix="layerc-ways-") as folder:
        # What is specialised is compiled in this run, too.
        os.environ |= {BUILT: folder, "LAYERC_CACHE": str(Path(folder) / "cache")}
        run = measured(list(WAYS), args.cases or every, options(args))
    run["products"] = of_products(args.quick)
    failed = [f"{case}: {why}" for case, why in run["failures"].items()]
    shown = [tables.Block("Machine", report.machine_lines(run)), *blocks(run)]
    shown += [tables.Block("FAILED", failed)] if failed else []
    print(tables.text(shown))
    for path in tables.write(shown, run, args.out, "failed" if failed else "ways" if whole else "partial"):
        print(f"wrote {path}")
    return 1 if failed or run["absent"] else 0


if __name__ == "__main__":
    sys.exit(main())
