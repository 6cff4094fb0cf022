"""The short form of `make fuzz`: a few random programs, some compiled; that oracle and shrinker do their work."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fuzzing.compiled import STYLES, check_compiled
from fuzzing.oracle import Failure, agrees, study
from fuzzing.programs import Argument, Program, draw_program
from fuzzing.rounds import check_round
from fuzzing.shrink import shrink

from layerc.transpile.dims import Dim
from layerc.transpile.operations import ROWS

N = Dim.of("N")
SEED = "short"


@pytest.mark.parametrize("first", [0, 40, 80])
def test_random_programs(first: int) -> None:
    tally = check_round(SEED, first, first + 40, None)
    assert not tally.found, [(f.kind, f.program.seed) for f in tally.found]
    assert tally.counts["derivatives"] > 80
    assert tally.counts["ill-typed refused"] > 10


def test_compiled_programs(tmp_path: Path) -> None:
    studied = [one for k in range(10) if (one := study(draw_program(f"{SEED}:{k}", f"p{k}"))) is not None]
    assert len(studied) > 6
    failed = check_compiled(studied, tmp_path, STYLES["f64"])
    assert not failed, [(one.program.seed, failure.kind) for one, failure in failed]


def test_a_seed_says_the_program() -> None:
    assert draw_program("3:1") == draw_program("3:1")
    assert draw_program("3:1") != draw_program("3:2")


# -- the oracle must be able to fail ---------------------------------------------------------------------------------
def of_text(body: str) -> Program:
    text = f'@layer\ndef f(x: real["N"]):\n    {body}\n'
    return Program("f", text, (Argument("x", "real", (N,), "any"),), ({"N": 3, "M": 2, "K": 4},))


def test_a_derivative_that_is_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert study(of_text("return np.tanh(x) * x"))
    monkeypatch.setitem(ROWS, "tanh", replace(ROWS["tanh"], grad=("1.001 * dy * (1 - y * y)",)))
    with pytest.raises(Failure, match="gradient differs"):
        study(of_text("return np.tanh(x) * x"))


def test_compiled_code_that_is_off_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = study(of_text("return np.tanh(x) * x"))
    assert one is not None
    monkeypatch.setitem(ROWS, "tanh", replace(ROWS["tanh"], c="(1.0001 * lc_tanh{f}({0}))"))
    (_, failure), *_ = check_compiled([one], tmp_path, STYLES["plain"])
    assert failure.kind == "compiled output differs, float64"


@pytest.mark.parametrize(
    ("f", "derivative", "verdict"),
    [
        (np.sin, 1.0, True),
        (np.sin, 1.001, False),
        (np.sin, np.nan, False),
        (np.abs, 0.0, None),  # a kink says nothing
        (np.sign, 0.0, None),  # nor does a jump
        (lambda h: np.maximum(h, 1e-9), 0.0, None),  # a kink within the step
        (lambda h: h * 1e4, 1e4, True),
    ],
)
def test_kinks_are_told_from_errors(f, derivative, verdict) -> None:
    found = agrees(f, derivative, bool(np.isfinite(derivative)))
    assert (None if found is None else not found) is verdict


def test_a_failure_is_cut_down() -> None:
    program = draw_program("cut:5")
    *lines, last = program.text.splitlines()
    program = replace(program, text="\n".join([*lines, "    z = np.unique(x)", last]) + "\n")
    small = shrink(program, lambda p: "np.unique(x)" in p.text, 10)
    assert len(small.text.splitlines()) < 6, small.text


def test_programs_use_the_language() -> None:
    """The grammar reaches what it is to reach."""
    texts = [draw_program(f"reach:{k}").text for k in range(800)]
    words = [word if word == "+=" else word.replace("+", " ") for word in WORDS.split()]
    seen = Counter(word for text in texts for word in words if word in text)
    assert not {word for word in words if seen[word] < 2}, seen


WORDS = """
for+ while+ if+ elif+ else: break continue lambda def+f _helper enumerate zip reversed append np.add.at Param[
i64[ bool_[ np.where einsum @ np.sort cumsum np.stack np.concatenate np.pad np.roll np.tile np.repeat np.split
np.take reshape .T keepdims axis=( [::-1] ::-2 None assert += *= np.linalg +if+ [:,+ [... argmax np.trace
batched=True rng.random rng.uniform Random ->+{ ->+tuple bumped( mixed( SHARE np.diagonal np.outer tensordot np.moveaxis np.squeeze logsumexp // %
"""
