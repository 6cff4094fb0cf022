"""What fusion must achieve on the example layers, counted in the loop nests that become C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from layerc.build.driver import Part, compile_module, read_module
from layerc.transpile.ir import For, If, Stmt, Store, While

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
    for stmt in part.kernel.body:
        if isinstance(stmt, If) and stmt.orelse:
            return stmt.then
    return part.kernel.body


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
