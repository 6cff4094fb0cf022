"""Every layer of `layers/`: its gradient source under NumPy, and the library against both.

The text takes no compiler and is checked for all (of the long files by `make test-heavy`, where all but the longest go
through the passes, too); one file is compiled by `make test`, the others where `slow` tests run.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from spec import harness
from spec.harness import Built, Case

from layerc.build.driver import compile_module, read_module

FILES = (
    "functions",
    "indexing",
    "shapes",
    "statements",
    "linear_programs",
    "stencils",
    "dynamic_programs",
    "model_programs",
    "windows",
    "constructs",
    "seldom",
    "npb_programs",
    "order",
    "in_place",
    "choices",
    "model_programs_more",
)
LONG = ("npb_programs", "model_programs_more")  # whose texts take long, too
HEAVY = ("choices", "constructs", "dynamic_programs", "model_programs", "stencils")  # ... long for `make test`
QUICK = ("functions",)
CASES = [case for file in FILES for case in harness.cases(file)]


def marked(case: Case, check: str) -> object:
    slow = () if case.file in QUICK else (pytest.mark.slow,)
    return pytest.param(case, check, id=f"{case.file}-{case.name}-{check}", marks=slow)


COMPILED = [marked(case, check) for case in CASES for check in harness.checks(case) if check != "text"]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Overflow and division by zero are what some of the layers are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    class Libraries(dict[str, Built]):
        def __missing__(self, file: str) -> Built:
            self[file] = harness.built(file, tmp_path_factory.mktemp(file))
            return self[file]

    return Libraries()


@pytest.fixture(scope="module")
def texts() -> dict[str, Built]:
    class Texts(dict[str, Built]):
        def __missing__(self, file: str) -> Built:
            self[file] = harness.plain(file)
            return self[file]

    return Texts()


MARKS = dict.fromkeys(LONG, (pytest.mark.slow,)) | dict.fromkeys(HEAVY, (pytest.mark.heavy,))
TEXTS = [
    pytest.param(c, id=f"{c.file}-{c.name}", marks=MARKS.get(c.file, ())) for c in CASES if "text" in harness.checks(c)
]


@pytest.mark.parametrize("case", TEXTS)
def test_the_gradient_source_is_the_derivative(texts: dict[str, Built], case: Case) -> None:
    harness.check_text(case, texts[case.file])


@pytest.mark.heavy
@pytest.mark.parametrize("file", [f for f in FILES if f not in (*QUICK, *LONG)])
def test_the_passes_take_every_layer(file: str) -> None:
    module = read_module(harness.LAYERS / f"{file}.py")
    assert {p.layer.name for p in compile_module(module).parts} == {layer.name for layer in module.layers}


@pytest.mark.parametrize(("case", "check"), COMPILED)
def test_the_library(libraries: dict[str, Built], case: Case, check: str) -> None:
    harness.CHECKS[check](case, libraries[case.file])


def test_every_file_is_here() -> None:
    named = {p.stem for p in Path(harness.LAYERS).glob("*.py")}
    assert named == {*FILES, "contract"}
    assert len(CASES) > 390
