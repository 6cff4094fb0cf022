"""docs/language.md is what its script writes now, and says all that SPEC 1 promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from layerc import __all__ as face
from layerc import runtime
from layerc.transpile.source import FACE

DOCS = Path(__file__).resolve().parent.parent / "docs"
TEXT = (DOCS / "language.md").read_text()

# The functions of SPEC 1, in its order.
PROMISED = {
    "np": """
        abs sign sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh
        arcsinh arccosh arctanh hypot logaddexp maximum minimum fmax fmin clip where floor ceil rint trunc isnan isinf isfinite power
        copysign heaviside sum mean prod max min var std any all argmax argmin cumsum cumprod linalg.norm dot inner outer matmul tensordot
        einsum trace reshape ravel transpose swapaxes moveaxis expand_dims squeeze broadcast_to concatenate stack split tile repeat pad
        flip roll take take_along_axis diagonal tril triu zeros ones full empty zeros_like ones_like full_like empty_like eye arange
        linspace sort argsort linalg.solve linalg.inv linalg.cholesky linalg.det add.at
    """,
    "special": "erf erfc expit logit log_expit xlogy gammaln digamma logsumexp softmax log_softmax",
}
OPERATORS = "+ - * / // % ** @ == != < <= > >= & ~ ^".split()


@pytest.mark.parametrize("name", [f"{home}.{n}" for home, names in PROMISED.items() for n in names.split()])
def test_every_function_is_there(name: str) -> None:
    assert f"`{name}`" in TEXT


@pytest.mark.parametrize("operator", [*OPERATORS, "len", "abs", "min", "max", "sum", "round"])
def test_every_operator_and_builtin_is_there(operator: str) -> None:
    assert f"`{operator}`" in TEXT


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(DOCS / "language.py"), "--check"], timeout=120)
    assert done.returncode == 0, "run `make docs`"


def test_what_a_layer_file_may_import_is_known_to_the_checker() -> None:
    assert set(FACE) - {"runtime"} == set(face)


def test_what_is_compiled_is_counted_anew() -> None:
    """The list at the end of docs/runtime.md is that of the layer files."""
    done = subprocess.run([sys.executable, str(DOCS / "runtime.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


GUIDE = (DOCS / "runtime.md").read_text()
UNSAID = {"get_num_threads", "set_num_threads", "setup_layer", "Parameter"}  # for those who write layers by hand


@pytest.mark.parametrize("name", sorted({*runtime.__all__} - UNSAID))
def test_every_name_of_the_runtime_is_in_its_guide(name: str) -> None:
    assert re.search(rf"\b{name}\b", GUIDE)


@pytest.mark.parametrize("name", sorted({*runtime.__all__}))
def test_every_option_of_a_layer_is_in_its_row(name: str) -> None:
    """The tables name each field that the class takes."""
    kind = getattr(runtime, name)
    if not (isinstance(kind, type) and issubclass(kind, runtime.Layer)) or kind is runtime.Layer:
        return
    rows = [row for row in GUIDE.splitlines() if re.match(rf"\| [^|]*`{name}[`(]", row)]
    assert len(rows) == 1
    said_once = {"weight", "normalize"} if kind.has_loss else set()  # above the table of losses
    absent = [field for field in kind._fields if not re.search(rf"\b{field}\b", rows[0]) and field not in said_once]
    assert not absent


def _runnable() -> list[str]:
    return re.findall(r"<!-- run -->\n```python\n(.*?)```\n", GUIDE, re.DOTALL)


@pytest.mark.parametrize("code", _runnable())
def test_blocks_of_the_guide_run(code: str) -> None:
    exec(compile(code, "docs/runtime.md", "exec"), {})
