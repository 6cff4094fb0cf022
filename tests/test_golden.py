"""Generated gradients as text, kept for review: `pytest tests/test_golden.py --update` after a wanted change,
then read the diff.

The same text is run and compared with a hand-written backward, and may not have many more statements than it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any

import handwritten
import numpy as np
import pytest
from test_gradient_source import plain_namespace

from layerc.adjoint.gradient import gradient_file
from layerc.transpile.layers import check_file

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden"
FILES = {"examples": ROOT / "examples" / "layers.py", "layers": Path(__file__).with_name("golden_layers.py")}
TEXTS = {name: gradient_file(check_file(path)) for name, path in FILES.items()}
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "d_SReLU": [(3, 7), (3,), (3,), (3,), (3,), (3, 7)],
    "d_mish": [(9,), (9,)],
    "d_rbf": [(5, 3), (4, 3), (4,), (5, 4), (5, 4)],
    "d_ema": [(6, 3), (3,), (6, 3), (6, 3)],
    "d_dense": [(3,), (4, 3), (4,), (4,)],
    "d_layer_norm": [(6,), (6,), (6,)],
    "d_cross_entropy": [(5,), (5,), ()],
    "d_huber": [(7,), (7,), ()],
    "d_attention": [(3, 4), (5, 4), (5, 2), (3, 2), (3, 2)],
    "d_bilinear": [(3,), (4,), (2, 3, 4), (2,)],
    "d_largest_of_pairs": [(8,), (4,)],
    "d_cosine": [(5,), (5,), (), ()],
}


def text_of(name: str) -> str:
    """The generated file that has the function."""
    return next(text for text in TEXTS.values() if f"def {name}(" in text)


@pytest.mark.parametrize("name", FILES)
def test_the_text_is_kept(request: pytest.FixtureRequest, name: str) -> None:
    golden = GOLDEN / f"{name}.py"
    if request.config.getoption("--update"):
        golden.write_text(TEXTS[name])
    assert golden.read_text() == TEXTS[name], "the generated gradient changed: review it, then run with --update"


def test_a_dozen_layers_are_kept() -> None:
    kept = [n for text in TEXTS.values() for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    assert len(kept) >= 12
    assert {n.name for n in kept} >= set(SHAPES)


@pytest.mark.parametrize("name", FILES)
def test_the_same_text_twice(name: str) -> None:
    assert gradient_file(check_file(FILES[name])) == TEXTS[name]


@pytest.mark.parametrize("name", FILES)
def test_every_generated_line_is_quoted_from_the_file(name: str) -> None:
    lines = FILES[name].read_text().splitlines()
    comments = [line.strip()[2:] for line in TEXTS[name].splitlines() if line.strip().startswith("# ")]
    assert comments
    for comment in comments:
        number, _, quoted = comment.partition(": ")
        assert lines[int(number) - 1].strip() == quoted


@pytest.mark.parametrize("name", SHAPES)
def test_equals_the_hand_written_backward(name: str) -> None:
    rng = np.random.default_rng(3)
    args = [rng.standard_normal(shape) for shape in SHAPES[name]]
    generated = plain_namespace(text_of(name))[name](*[a.copy() for a in args])
    written = getattr(handwritten, name)(*[a.copy() for a in args])
    for a, b in zip(_tuple(generated), _tuple(written), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", SHAPES)
def test_is_not_much_longer_than_the_hand_written_one(name: str) -> None:
    mine = statements(ast.parse(text_of(name)), name)
    written = statements(ast.parse(textwrap.dedent(inspect.getsource(handwritten))), name)
    assert mine <= written + 3, f"{mine} statements, a person needs {written}"


def statements(tree: ast.Module, name: str) -> int:
    (function,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    return sum(isinstance(n, ast.stmt) and not _is_doc(n) for n in ast.walk(function)) - 1


def _is_doc(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
