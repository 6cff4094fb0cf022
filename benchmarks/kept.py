"""What crosses from a forward to its backward, array by array, beside what PyTorch keeps. Nothing is timed.

    python benchmarks/kept.py [--suite kinds] [--cases ctc,biquad]

The sums are those of run.py's report; this says what they are made of.
"""

import argparse
import sys

from settings import pin_threads

pin_threads()  # before anything below imports numpy

import tables  # noqa: E402
from case import Case, block  # noqa: E402
from cases import CASES, SUITES  # noqa: E402
from peers import PEERS, Absent  # noqa: E402
from report import size  # noqa: E402
from run import names_of  # noqa: E402

TORCH = ("torch", "own")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", choices=SUITES, help="only the cases of this one")
    parser.add_argument("--cases", type=names_of(CASES), help="comma-separated (default: all of the suites)")
    return parser.parse_args()


def parts(pullback) -> list[tuple[str, str, int]]:
    """Role, name and bytes of each array that a pullback of layerc holds; a view counts as what it is a view of."""
    core, launch = pullback._case.core, pullback._launch
    made = core.methods["vjp" if "vjp" in core.methods else "forward"]["outputs"]
    roles = core.roles | {o["name"]: o["role"] for o in made}
    known = [*core.array_names, *core.kept_names]
    names = core.array_names if launch.keep is None else [known[i] for i in launch.keep]
    return [(roles[n], n, block(a)[1]) for n, a in zip(names, pullback._kept, strict=True)]


def row(case: Case, layerc, torch: dict) -> list[str]:
    bound = layerc.bind(case, "layerc")
    counts, what = bound.kept(), parts(bound.pullback())
    theirs = {}
    for peer in torch.values():
        theirs |= {variant: peer.bind(case, variant).kept() for variant in peer.variants(case)}
    least = min(theirs, key=lambda name: (theirs[name]["in all"], theirs[name]["own"]), default=None)
    more = counts["in all"] - theirs[least]["in all"] if least else 0
    return [
        case.name,
        size(counts["in all"]),
        size(theirs[least]["in all"]) if least else "",
        f"+{size(more)}" if more > 0 else "",
        ", ".join(f"{role} {name} {size(count)}" for role, name, count in what),
        ", ".join(f"{name} {size(count['in all'])}" for name, count in theirs.items()),
    ]


def main() -> int:
    args = arguments()
    suites = SUITES if args.suite is None else (args.suite,)
    names = args.cases or [name for name, case in CASES.items() if case.suite in suites]
    layerc, torch = PEERS["layerc"](), {}
    layerc.start()
    for name in TORCH:
        try:
            (peer := PEERS[name]()).start()
            torch[name] = peer
        except Absent as why:
            print(why, file=sys.stderr)
    rows = [row(CASES[name], layerc, torch) for name in names]
    header = ["case", "layerc", "torch", "more", "layerc's arrays", "torch's twins"]
    print(
        tables.text(
            [tables.Block("Kept for the backward", ["Of torch's twins the one that keeps least."], header, rows)]
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
