"""Random programs, a long run: NumPy, gradient source and compiled code must agree. What is checked: see fuzzing/.

    make fuzz N=20000 SEED=1
    python tests/fuzz.py -n 20000 --seed 1 --jobs 2 --compiled 3      every third round is compiled
    python tests/fuzz.py --seed 1 --only 4711                         one program, in all styles

Failures are shrunk and written to .build/fuzz/, one of each kind. Exit status 1 if there are any.

What was done is noted in .build/fuzz/SEED.done. The same command again goes on from there: programs that failed are run
again, so that a fault that was fixed costs no second run, then those that were not run yet. Where the generator has
changed since, or with --afresh, it begins anew.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fuzzing.compiled import STYLES
from fuzzing.programs import draw_program
from fuzzing.rounds import SIZE, TURNS, Found, again, check_again, check_round, write_shrunk
from tqdm import tqdm

OUT = Path(__file__).parents[1] / ".build" / "fuzz"
GENERATOR = (
    "aliases",
    "arrays",
    "classes",
    "elementwise",
    "expressions",
    "programs",
    "scope",
    "statements",
    "mutations",
    "windowed",
)


def main() -> int:
    options = _options()
    if options.only is not None:
        return _only(options.seed, options.only)
    began = time.monotonic()
    print(f"seed {options.seed}", flush=True)
    notes = Notes.of(options)
    counts, kinds, written = _run(options, notes)
    seconds = time.monotonic() - began
    told = ", ".join(f"{count} {what}" for what, count in notes.counts.items())
    print(f"{told}; {seconds:.0f} s, {counts['programs'] / seconds:.1f} programs a second")
    for kind, count in kinds.most_common():
        print(f"{count:6}  {kind}  {written.get(kind, '')}")
    return 1 if kinds else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=1000, help="programs")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--compiled", type=int, default=3, help="compile every so manyth round; 0: none")
    parser.add_argument("--style", choices=STYLES, help="compile in this style only")
    parser.add_argument("--only", type=int, help="the number of one program, shown")
    parser.add_argument("--afresh", action="store_true", help="forget what was done with this seed")
    parser.add_argument("--most", type=int, default=20, help="kinds of failures to shrink")
    return parser.parse_args()


@dataclass
class Notes:
    """What was done with a seed, so that it need not be done again. `failed`: with the programs as they were drawn."""

    path: Path
    generator: str  # programs of the same numbers are the same as long as this is
    counts: Counter[str] = field(default_factory=Counter)
    rounds: set[tuple[int, int]] = field(default_factory=set)
    failed: dict[tuple[str, str], Found] = field(default_factory=dict)  # by seed and stage

    @staticmethod
    def of(options: argparse.Namespace) -> Notes:
        path = OUT / f"{options.seed}.done"
        texts = [p.read_bytes() for p in sorted(Path(__file__).parent.glob("fuzzing/*.py")) if p.stem in GENERATOR]
        generator = hashlib.sha256(b"".join(texts)).hexdigest()
        if path.is_file() and not options.afresh:
            found: Notes = pickle.loads(path.read_bytes())
            if found.generator == generator:
                print(f"{len(found.rounds)} rounds are done, {len(found.failed)} programs failed: they are run again")
                return found
        return Notes(path, generator)

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_bytes(pickle.dumps(self))
        fresh.replace(self.path)


def _run(options: argparse.Namespace, notes: Notes) -> tuple[Counter[str], Counter[str], dict[str, Path]]:
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    written: dict[str, Path] = {}
    jobs = iter(
        [*((check_again, one) for one in notes.failed.values()), *((check_round, *r) for r in _rounds(options, notes))]
    )
    with (
        ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool,
        tqdm(total=options.n, initial=notes.counts["programs"], unit=" programs", disable=None) as bar,
    ):
        # Few wait at a time, so that a failure is shrunk soon.
        waiting = {pool.submit(*job) for job in islice(jobs, options.jobs + 1)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for tally in filter(None, (job.result() for job in done)):
                counts += tally.counts
                notes.counts += tally.counts
                notes.rounds |= {tally.numbers} if tally.numbers else set()
                notes.failed.pop(tally.again or ("", ""), None)
                bar.update(tally.counts["programs"])
                waiting |= {pool.submit(*job) for job in islice(jobs, 1)}
                for found in tally.found:
                    notes.failed[found.program.seed, found.stage] = found
                    kinds[found.kind] += 1
                    if found.kind not in written and len(written) < options.most:
                        written[found.kind] = OUT / f"{options.seed}_{len(written)}.py"
                        waiting.add(pool.submit(write_shrunk, found, written[found.kind]))
                        _tell(bar, found, written[found.kind])
                notes.write()
    return counts, kinds, written


def _rounds(options: argparse.Namespace, notes: Notes) -> Iterator[tuple[str, int, int, str | None]]:
    """Seed, first and last number, style, of what is not done."""
    end = options.start + options.n
    for turn, first in enumerate(range(options.start, end, SIZE)):
        compiled = options.compiled and turn % options.compiled == 0
        style = (options.style or TURNS[turn // options.compiled % len(TURNS)]) if compiled else None
        last = min(first + SIZE, end)
        if (first, last) not in notes.rounds:
            yield options.seed, first, last, style


def _tell(bar: tqdm, found: Found, path: Path) -> None:
    bar.write(f"{path.name}  seed {found.program.seed}, {found.stage}: {found.kind}", file=sys.stderr)


def _only(seed: str, number: int) -> int:
    program = draw_program(f"{seed}:{number}", f"p{number}")
    print(program.source)
    failed = False
    for stage in ("study", *STYLES):
        failure = again(program, stage)
        print(f"{stage}: {'agrees' if failure is None else failure}")
        failed = failed or failure is not None
        if failure is not None and stage == "study":
            break
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
