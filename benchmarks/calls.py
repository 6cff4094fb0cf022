"""The cost of a call: tiny layers, where all the time is spent on the way in and out.

    python benchmarks/calls.py [--peers torch,own,compile,jax,numba] [--rounds 30] [--stand-in]

Microseconds: the forward alone, and vjp + pullback; the median over the samples of many rounds, a sample
being the mean of enough calls to fill 50 us. The same workers, guard and rounds as run.py.
"""

import argparse
import sys

from settings import pin_threads

pin_threads()  # before anything below imports numpy

import machine  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import tables  # noqa: E402
from peers import ASKABLE, PEERS  # noqa: E402
from progress import Progress  # noqa: E402
from run import names_of  # noqa: E402

CASES = ("srelu_tiny", "mish_16")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", type=names_of(ASKABLE), default=list(ASKABLE), help=",".join(ASKABLE))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--stand-in", action="store_true", help="NumPy in layerc's place, to try the harness")
    return parser.parse_args()


def table(result: dict) -> tables.Block:
    rows = []
    for case_name, case in result["cases"].items():
        for peer in report.columns(result):
            entry = case["peers"].get(peer, {})
            if "gradient" in entry:
                cells = [f"{1e6 * entry[what]['median']:.2f}" for what in ("forward", "gradient")]
                rows.append([case_name, case["shapes"], PEERS[peer].title, entry["variant"], *cells])
    header = ["case", "shapes", "peer", "twin", "forward us", "vjp + pullback us"]
    return tables.Block("Cost of a call", ["Medians."], header, rows)


def main() -> int:
    args = arguments()
    names = ["stand-in" if args.stand_in else "layerc", *(p for p in ASKABLE if p in args.peers)]
    options = measure.Options(rounds=args.rounds, turn=0.02)
    steps = len(CASES) * (options.rounds + 2 * len(names))
    result = {"machine": machine.describe()} | measure.run(names, CASES, options, Progress(steps))
    print(tables.text([tables.Block("Machine", report.machine_lines(result)), table(result)]))
    for case, why in result["failures"].items():
        print(f"FAILED {case}: {why}")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
