"""What fusion must achieve on the example layers, counted in the loop nests that become C."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import in_caches

from layerc.build.driver import Part, build, compile_module, read_module
from layerc.transpile.dump import dump
from layerc.transpile.ir import For, If, Stmt, Store, While
from layerc.transpile.passes.tree import own_accesses

pytestmark = pytest.mark.optimised

EXAMPLES = Path(__file__).parent.parent / "examples" / "layers.py"


@pytest.fixture(scope="module")
def parts() -> dict[tuple[str, str], Part]:
    return {(p.layer.name, p.method): p for p in compile_module(read_module(EXAMPLES)).parts}


def inner(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case For(body=body):
            return body
        case While(before=before, body=body):
            return (*before, *body)
        case If(then=then, orelse=orelse):
            return (*then, *orelse)
    return ()


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for stmt in body:
        yield stmt
        yield from walk(inner(stmt))


def innermost(body: tuple[Stmt, ...]) -> list[For]:
    return [s for s in walk(body) if isinstance(s, For) and not any(isinstance(t, (For, While)) for t in walk(s.body))]


def batch_version(part: Part) -> tuple[Stmt, ...]:
    """The body that serves batches; the one for few examples repeats it."""
    for stmt in in_caches(part.kernel.body):
        if isinstance(stmt, If) and stmt.orelse:
            return stmt.then
    return in_caches(part.kernel.body)


def test_srelu_backward_is_one_sweep(parts: dict[tuple[str, str], Part]) -> None:
    """dx and all four parameter gradients in one loop over the elements."""
    body = batch_version(parts["SReLU", "backward"])
    sweeps = [loop for loop in innermost(body) if any(isinstance(s, Store) and s.buffer == "d_x" for s in loop.body)]
    assert len(sweeps) == 1
    sums = [s for s in sweeps[0].body if isinstance(s, Store) and s.op == "add"]
    assert len(sums) == 4
    over_elements = [
        loop
        for loop in innermost(body)
        if any("x" in str(s) and isinstance(s, Store) for s in loop.body) and "S" in str(loop.hi)
    ]
    assert len(over_elements) == 1, "the elements are read more than once"


def test_srelu_forward_is_one_sweep(parts: dict[tuple[str, str], Part]) -> None:
    assert len(innermost(batch_version(parts["SReLU", "predict"]))) == 1


def test_no_array_between_forward_and_backward_of_elementwise_layers(parts: dict[tuple[str, str], Part]) -> None:
    """Elementwise values live in registers: no temporary array of the size of the data."""
    for name in ("SReLU", "mish"):
        for method in ("predict", "backward"):
            big = [
                b
                for b in parts[name, method].kernel.buffers
                if b.kind == "temp" and not b.alias and "S" in {s for d in b.shape for s in d.symbols()}
            ]
            assert not big, f"{name}.{method}: {big}"


def test_rbf_backward_makes_no_array_over_rows_and_centers(parts: dict[tuple[str, str], Part]) -> None:
    """d is (N, K, D): never in memory."""
    for buffer in parts["rbf", "backward"].kernel.buffers:
        assert buffer.kind != "temp" or not {"N", "K", "D"} <= {s for d in buffer.shape for s in d.symbols()}, buffer


NORMALISED = """
import numpy as np
from layerc import layer, real


@layer(backward=None)
def projected(x: real["N M"], y: real["N M"]):
    c = np.sum(x * y) / np.sum(y * y)
    return np.sum(x - c * y)


@layer(backward=None)
def spread(x: real["N M"]):
    return np.sum((x - np.sum(x) / x.size) * 2)


@layer(batched=True)
def normalised(x: real["N C S"]) -> real["N C S"]:
    centred = x - np.mean(x, axis=(0, 2), keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=(0, 2), keepdims=True) + 1e-5)
"""


@pytest.fixture(scope="module")
def normalised(tmp_path_factory: pytest.TempPathFactory) -> Any:
    source = tmp_path_factory.mktemp("sums") / "sums.py"
    source.write_text(NORMALISED)
    kernels = {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(source), upto="contract").parts}
    spec = importlib.util.spec_from_file_location("sums_compiled", build(source) / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["sums_compiled"] = module
    spec.loader.exec_module(module)
    return kernels, module


@pytest.mark.parametrize(
    ("name", "method", "sweeps"),
    [
        ("projected", "predict", 1),  # four sums side by side
        ("spread", "predict", 2),  # the mean first: what is spread around it would cancel
        ("normalised", "pullback", 2),  # the sums, then dx
    ],
)
def test_what_is_linear_in_a_sum_is_summed_beside_it(name: str, method: str, sweeps: int, normalised: Any) -> None:
    kernel = normalised[0][name, method]
    body = kernel.body[0].orelse if isinstance(kernel.body[0], If) else kernel.body  # along memory
    read = [loop for loop in innermost(body) if any(a[0] == "x" for s in loop.body for a in own_accesses(s))]
    assert len(read) == sweeps, dump(kernel)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_sums_taken_apart_are_as_exact(offset: float, normalised: Any) -> None:
    module = normalised[1]
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 40, 30)) + offset
    for dtype, tolerance in ((np.float32, 3e-7), (np.float64, 1e-15)):
        args = x.astype(dtype), y.astype(dtype)
        wide, other = (a.astype(np.longdouble) for a in args)
        allowed = tolerance * np.sum(np.abs(wide))
        factor = np.sum(wide * other) / np.sum(other * other)
        assert abs(module.projected(*args) - np.sum(wide - factor * other)) <= allowed
        assert abs(module.spread(args[0]) - np.sum((wide - np.mean(wide)) * 2)) <= allowed


def test_a_gradient_reads_again_what_all_rows_share(tmp_path: Path) -> None:
    """Mean, deviation and weight of each channel lie in the first cache: no quotient by them is kept, nor any array of
    all elements."""
    path = tmp_path / "last.py"
    path.write_text(
        "import numpy as np\nfrom layerc import Param, layer, real\n\n\n@layer(batched=True)\n"
        'def normalised(x: real["N S C"], weight: Param[real["C"]]) -> real["N S C"]:\n'
        "    centred = x - np.mean(x, axis=(0, 1))\n"
        "    return centred / np.sqrt(np.mean(centred**2, axis=(0, 1)) + 1e-5) * weight\n"
    )
    made = {p.method: p.kernel for p in compile_module(read_module(path)).parts}
    for method in ("backward", "pullback"):
        assert not [b.name for b in made[method].buffers if b.kind == "temp" and len(b.shape) > 2], method
        assert len([b for b in made[method].buffers if b.name.startswith("inverse") and b.shape]) == 1, method
