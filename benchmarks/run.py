"""`make bench`, `make bench-kinds`: layerc beside PyTorch, JAX and Numba, forward and every gradient, in one run.

    python benchmarks/run.py [--suite kinds] [--cases srelu,mish] [--peers torch,own,compile,jax,numba] [--quick]

Exit status: 0 measured; 1 a peer and layerc disagree, or layerc is absent or failed; 2 usage.
"""

import argparse
import sys
from pathlib import Path

from settings import RESULTS, pin_threads

pin_threads()  # before anything below imports numpy

import machine  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import tables  # noqa: E402
from cases import CASES, SUITES  # noqa: E402
from peers import ASKABLE, PEERS  # noqa: E402
from progress import Progress  # noqa: E402

QUICK = {"rounds": 5, "turn": 0.02, "limit": 30.0}


def names_of(allowed) -> callable:
    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return names

    return parse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", choices=SUITES, default=SUITES[0], help="which cases, and what the report is called")
    parser.add_argument("--cases", type=names_of(CASES), help="comma-separated (default: all of the suite)")
    parser.add_argument("--peers", type=names_of(ASKABLE), default=list(ASKABLE), help=",".join(ASKABLE))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter turns")
    parser.add_argument("--limit", type=float, help="seconds for a peer's first call (default 60)")
    parser.add_argument("--patience", type=float, help="seconds to wait for other processes (default 120)")
    parser.add_argument("--stand-in", action="store_true", help="NumPy in layerc's place, to try the harness")
    parser.add_argument("--out", type=Path, default=RESULTS, help="directory of the report")
    args = parser.parse_args()
    args.cases = args.cases or of_suite(args.suite)
    return args


def of_suite(suite: str) -> list[str]:
    return [name for name, case in CASES.items() if case.suite == suite]


def options(args: argparse.Namespace) -> measure.Options:
    given = {"limit": args.limit, "patience": args.patience}
    chosen = QUICK if args.quick else {}
    return measure.Options(**chosen | {key: value for key, value in given.items() if value is not None})


def run(args: argparse.Namespace, cases: list[str]) -> dict:
    first = "stand-in" if args.stand_in else "layerc"
    return measured([first, *(p for p in ASKABLE if p in args.peers), "stream"], cases, options(args))


def measured(names: list[str], cases: list[str], opts: measure.Options) -> dict:
    """Peers, the reference first, in turns."""
    steps = sum(len(PEERS[n]().variants(CASES[c])) for n in names for c in cases) + opts.rounds * len(cases)
    facts = {"machine": machine.describe(), "options": vars(opts)}
    return facts | measure.run(names, cases, opts, Progress(steps))


def file_name(args: argparse.Namespace, result: dict) -> str:
    """Only a whole run is called as its suite: what is quoted is not overwritten by less."""
    if result["failures"] or not report.reference(result):
        return "failed"
    if args.stand_in:
        return "stand_in"
    whole = set(args.cases) >= set(of_suite(args.suite)) and set(args.peers) == set(ASKABLE) and not args.quick
    return args.suite if whole else "partial"


def main() -> int:
    args = arguments()
    result = run(args, args.cases)
    print(tables.text(report.sections(result)))
    name = file_name(args, result)
    for path in report.write(result, args.out, name):
        print(f"wrote {path}")
    built = "layerc" in result["peers"]
    broken = [c for c, entry in result["cases"].items() if built and "ratios" not in entry]
    return 0 if report.reference(result) and not result["failures"] and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
