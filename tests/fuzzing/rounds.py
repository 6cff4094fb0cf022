"""A round of programs: each under NumPy, one ill-typed program made of each, and all of them as one library."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from fuzzing.compiled import STYLES, check_compiled
from fuzzing.mutations import check_mutated, mutated
from fuzzing.oracle import Failure, Overtime, Studied, at_most, study
from fuzzing.programs import HEAD, Program, draw_program
from fuzzing.second import check_second, is_chosen
from fuzzing.shrink import shrink

SIZE = 40
# Which style a round is compiled in: the C compiler takes a minute for "full".
TURNS = ("f64", "f32", "plain", "fixed", "f32", "f64", "f32", "plain", "fixed", "f32", "f64", "full")


@dataclass(frozen=True)
class Found:
    """A failure. `stage`: study, second, mutated, or the style in which the program was compiled."""

    kind: str
    stage: str
    program: Program
    detail: str


@dataclass
class Tally:
    """`numbers`: first and last of the round, if it is one; `again`: seed and stage of a program that had failed."""

    numbers: tuple[int, int] | None = None
    again: tuple[str, str] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)


def check_round(seed: str, first: int, last: int, style: str | None) -> Tally:
    """The programs of these numbers. style: how they are compiled, if they are."""
    tally = Tally((first, last))
    studied = []
    for number in range(first, last):
        program = draw_program(f"{seed}:{number}", f"p{number}")
        one = _studied(program, tally)
        if one is not None:
            studied.append(one)
            if is_chosen(program.text):
                _second(one, tally)
        other = mutated(program, 0)
        if other is not None:
            _mutated(other, tally)
    if style is not None:
        with tempfile.TemporaryDirectory() as folder:
            for one, failure in check_compiled(studied, Path(folder), STYLES[style]):
                tally.found.append(Found(failure.kind, style, one.program, failure.detail))
        tally.counts["compiled"] += len(studied)
    return tally


def _studied(program: Program, tally: Tally) -> Studied | None:
    tally.counts["programs"] += 1
    try:
        with at_most(20):
            one = study(program)
    except Failure as failure:
        tally.found.append(Found(failure.kind, "study", program, failure.detail))
        return None
    except Overtime:
        tally.found.append(Found("takes more than 20 s", "study", program, ""))
        return None
    if one is None:
        tally.counts["refused on purpose"] += 1
        return None
    tally.counts["derivatives"] += one.compared
    tally.counts["at kinks"] += one.skipped
    tally.counts["raise"] += bool(one.raises)
    tally.counts["without finite values"] += not one.points
    return one


def _second(one: Studied, tally: Tally) -> None:
    try:
        with at_most(20):
            tally.counts["second derivatives"] += check_second(one)
    except Failure as failure:
        tally.found.append(Found(failure.kind, "second", one.program, failure.detail))
    except Overtime:
        tally.found.append(Found("takes more than 20 s", "second", one.program, ""))


def _mutated(program: Program, tally: Tally) -> None:
    try:
        with at_most(20):
            tally.counts[f"ill-typed {check_mutated(program)}"] += 1
    except Failure as failure:
        tally.found.append(Found(failure.kind, "mutated", program, failure.detail))
    except Overtime:
        tally.found.append(Found("takes more than 20 s", "mutated", program, ""))


def check_again(found: Found) -> Tally:
    """A program that failed, once more."""
    failure = again(found.program, found.stage)
    tally = Tally(again=(found.program.seed, found.stage))
    tally.found = [] if failure is None else [replace(found, kind=failure.kind, detail=failure.detail)]
    return tally


def again(program: Program, stage: str) -> Failure | None:
    """The failure of a program at a stage, if there is one."""
    try:
        with at_most(5 if stage in ("study", "mutated") else 120):
            if stage == "mutated":
                check_mutated(program)
                return None
            one = study(program)
            if one is None or stage == "study":
                return None
            if stage == "second":
                check_second(one)
                return None
            with tempfile.TemporaryDirectory() as folder:
                for _, failure in check_compiled([one], Path(folder), STYLES[stage]):
                    return failure
    except Failure as failure:
        return failure
    except (Exception, Overtime):
        return None
    return None


def write_shrunk(found: Found, path: Path, seconds: float = 30.0) -> None:
    """The failure, made as small as that time allows, as a layer file."""

    def fails(program: Program) -> bool:
        failure = again(program, found.stage)
        return failure is not None and failure.kind == found.kind

    small = shrink(found.program, fails, seconds) if fails(found.program) else found.program
    failure = again(small, found.stage)
    notes = [
        f"seed {found.program.seed}, {found.stage}: {found.kind}",
        f"sizes {small.sizes}",
        *(failure.detail if failure else found.detail).splitlines(),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join(
            [
                HEAD + small.text,
                "",
                *_comment(notes),
                "",
                "# Before it was shrunk:",
                *_comment(found.program.text.splitlines()),
            ]
        )
        + "\n"
    )


def _comment(lines: list[str]) -> list[str]:
    return [f"# {line}".rstrip() for line in lines]
