"""Random programs: NumPy, gradient source, compiled code must agree. See fuzzing/.

python tests/fuzz.py -n 20000 [--seed 0] [--jobs 2] [--compiled 1] [--only K]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fuzzing.oracle import Failure, Overtime, Studied, at_most, study
from fuzzing.programs import HEAD, Program, draw_program
from fuzzing.shrink import shrink
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
OUT = ROOT / ".build" / "fuzz"


@dataclass
class Tally:
    """What came of a round of programs."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, Program, str]] = field(default_factory=list)  # kind, program, detail


def check_round(seed: int, first: int, last: int) -> Tally:
    tally = Tally()
    for k in range(first, last):
        program = draw_program(f"{seed}:{k}", f"p{k}")
        try:
            with at_most(20):
                studied = study(program)
        except Failure as failure:
            tally.failures.append((failure.kind, program, failure.detail))
            continue
        except Overtime:
            tally.failures.append(("takes more than 20 s", program, ""))
            continue
        _count(tally, studied)
    return tally


def _count(tally: Tally, studied: Studied | None) -> None:
    if studied is None:
        tally.counts["refused"] += 1
        return
    tally.counts["studied"] += 1
    tally.counts["directions"] += studied.compared
    tally.counts["kinks"] += studied.skipped
    tally.counts["raising"] += bool(studied.raises)
    tally.counts["idle"] += not studied.points


def fails_alike(kind: str):  # type: ignore[no-untyped-def]
    def fails(program: Program) -> bool:
        try:
            with at_most(3):
                study(program)
        except Failure as failure:
            return failure.kind == kind
        except (Exception, Overtime):
            return False
        return False

    return fails


def report(kind: str, program: Program, detail: str, number: int) -> Path:
    """The shrunk failure as a layer file."""
    OUT.mkdir(parents=True, exist_ok=True)
    small = shrink(program, fails_alike(kind), 25)
    if small.text != program.text:
        try:
            study(small)
        except Failure as failure:
            detail = failure.detail
    path = OUT / f"failure_{number}.py"
    note = "\n".join(
        f"# {line}".rstrip() for line in [f"seed {program.seed}: {kind}", f"sizes {small.sizes}", *detail.splitlines()]
    )
    path.write_text(
        f"{HEAD}{small.text}\n\n{note}\n\n# before it was shrunk:\n"
        + "\n".join(f"# {line}" for line in program.text.splitlines())
        + "\n"
    )
    return path


def rounds(count: int, size: int, start: int) -> Iterator[tuple[int, int]]:
    for first in range(start, start + count, size):
        yield first, min(first + size, start + count)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--most", type=int, default=12, help="kinds of failures to shrink")
    options = parser.parse_args()
    if options.only is not None:
        program = draw_program(f"{options.seed}:{options.only}", f"p{options.only}")
        print(program.source)
        print(study(program))
        return 0
    began = time.monotonic()
    total: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    paths: dict[str, str] = {}
    with ProcessPoolExecutor(options.jobs) as pool, tqdm(total=options.n, unit=" programs", disable=None) as bar:
        pending = []
        plan = rounds(options.n, 50, options.start)
        for first, last in plan:
            pending.append((last - first, pool.submit(check_round, options.seed, first, last)))
        for size, future in pending:
            tally = future.result()
            total += tally.counts
            bar.update(size)
            for kind, program, detail in tally.failures:
                kinds[kind] += 1
                if kind not in paths and len(paths) < options.most:
                    paths[kind] = ""
                    paths[kind] = str(report(kind, program, detail, len(paths)))
                    tqdm.write(f"{paths[kind]}: {kind}")
    seconds = time.monotonic() - began
    print(f"{options.n} programs in {seconds:.0f} s, {options.n / seconds:.1f} a second: {dict(total)}")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}   {paths.get(kind, '')}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
