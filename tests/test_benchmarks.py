"""What the benchmarks print comes from their runs: blocks of reports, from runs that are made up."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nets import built_from

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def b() -> Iterator[Any]:
    """The modules of the benchmarks, which are scripts that import each other by their bare names."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        names = ("case", "cases", "peers", "products", "report", "spellings", "tables", "ways", "worker")
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCHMARKS)):
            del sys.modules[name]


def timed(*rounds: float) -> dict[str, Any]:
    middle = float(np.median(rounds))
    return {"median": middle, "q1": middle, "q3": middle, "samples": len(rounds), "round medians": list(rounds)}


def twin(kept: tuple[int, int] | None = None) -> dict[str, Any]:
    facts = {"first call": 0.5, "probe": 1e-3, "distance": 0.0}
    return facts | ({} if kept is None else {"kept": {"in all": kept[0], "own": kept[1]}})


def peer(forward: tuple[float, ...], gradient: tuple[float, ...], *kept: tuple[int, int] | None) -> dict[str, Any]:
    tried = {f"twin{k}": twin(one) for k, one in enumerate(kept)}
    return {"tried": tried, "variant": "twin0", "forward": timed(*forward), "gradient": timed(*gradient)}


def made_up(cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A run of these cases: {case: {peer: entry}}."""
    every = {case: {"shapes": "x:2", "first argument bytes": 8, "peers": entries} for case, entries in cases.items()}
    facts: dict[str, Any] = {name: {} for entries in cases.values() for name in entries}
    machine = {"cpu": "one", "threads": 2, "commit": "0", "date": "2026-01-01"}
    return {"machine": machine, "peers": facts, "absent": {}, "cases": every, "failures": {}, "turns": {"kept": 1}}


def block(b: Any, run: dict[str, Any], title: str) -> Any:
    """As the report has it: it must be among its sections."""
    return next(found for found in b.report.sections(run) if found.title == title)


def test_what_a_gradient_costs_in_forwards(b: Any) -> None:
    """The ratio is formed round by round: a slow round has both of its passes."""
    one = {"layerc": peer((1.0, 2.0, 1.0), (2.0, 4.0, 2.5)), "torch": peer((1.0,), (9.0,))}
    run = made_up({"one": one, "two": {"layerc": peer((1.0,), (5.0,))}, "three": {"layerc": peer((1.0,), (3.0,))}})
    found = block(b, run, b.report.PASSES)
    assert "layerc: median 3.00, worst two, 5.00." in found.lines
    assert found.header == ["case", "layerc", "torch eager"]
    rows = {name: cells for name, *cells in found.rows}
    assert rows["one"] == ["2.00", "9.00"]
    assert rows["two"] == ["5.00", ""]
    assert rows["median"] == ["3.00", "9.00"]
    assert rows["worst case"] == ["5.00", "9.00"]


def test_what_is_kept_for_the_backward(b: Any) -> None:
    """Of a peer's twins the least; what layerc keeps beyond the least peer is named."""
    times = (1.0,), (2.0,)
    run = made_up(
        {
            "less": {"layerc": peer(*times, (2000, 0)), "torch": peer(*times, (9000, 7000), (4000, 2000))},
            "more": {
                "layerc": peer(*times, (4000, 0)),
                "torch": peer(*times, (5000, 9)),
                "own": peer(*times, (1500, 0)),
            },
            "unseen": {"layerc": peer(*times, (10, 0)), "compile": peer(*times, None)},
        }
    )
    found = block(b, run, b.report.KEPT)
    assert "layerc keeps more than a peer, in all: more (+2.50 kB)." in found.lines
    assert "layerc keeps more than a peer, own: in no case." in found.lines
    assert found.header[1:] == [
        f"{name}, {what}" for name in ("layerc", "torch eager", "torch's own") for what in ("in all", "own")
    ]
    assert found.rows[0] == ["less", "2.00 kB", "0 B", "4.00 kB", "2.00 kB", "", ""]
    assert found.rows[2] == ["unseen", "10 B", "0 B", "", "", "", ""]


def test_a_run_that_saw_nothing_kept_has_no_block_of_it(b: Any) -> None:
    run = made_up({"one": {"layerc": peer((1.0,), (2.0,))}})
    assert b.report.KEPT not in [found.title for found in b.report.sections(run)]


def test_an_allocation_counts_once(b: Any) -> None:
    """Views are of one allocation, which is held as a whole."""
    x, own = np.ones(100, np.float32), np.ones((5, 5))
    held = [b.case.block(a) for a in (x[:10], x[50:].reshape(5, 10), own, own.T)]
    assert b.case.left(held, [b.case.block(x)]) == {"in all": 600, "own": 200}


LAYER = """
import numpy as np
from layerc import Layer, Param, i32, layer, real


@layer
def cube(x: real["N"], unread: real["N"]) -> real["N"]:
    return x ** 3 + unread


@layer
def share(x: real["N"]) -> real["N"]:
    return x / np.sum(np.exp(x))


@layer
def total(index: i32["L"], table: Param[real["V D"]]) -> real["D"]:
    return np.sum(table[index], axis=0)


@layer
def half(x: real["N"], w: real["N"]) -> real["N-1"]:
    return w[1:] * np.sum(x)


class Scaled(Layer):
    factor: Param[real["N"]]

    def predict(self, x: real["N"]) -> real["N"]:
        return self.factor * x
"""


def test_what_pullbacks_hold(b: Any, tmp_path: Path) -> None:
    """What the gradient does not read, or only for its shape, is let go; what it reads and nobody has, is its own."""
    package = built_from(tmp_path, "holding", LAYER)
    x = np.ones((3, 4), np.float32)
    assert b.case.function("cube")(package, {"x": x, "unread": x.copy()}).kept() == {"in all": 48, "own": 0}
    assert b.case.function("share")(package, {"x": x}).kept()["own"] == 3 * 4  # a sum of each example
    looked_up = {"index": np.ones((3, 4), np.int32), "table": np.ones((9, 5), np.float32)}
    assert b.case.function("total")(package, looked_up).kept() == {"in all": 3 * 4 * 4, "own": 0}
    assert b.case.function("half")(package, {"x": x, "w": x.copy()}).kept()["in all"] == 48 + 3 * 4  # w, and a sum
    scaled = b.case.module("Scaled")(package, {"x": x, "factor": np.ones(4, np.float32)})
    assert scaled.kept() == {"in all": 48 + 16, "own": 0}


def test_a_worker_says_what_is_kept(b: Any) -> None:
    server = b.worker.Server(b.peers.StandIn())
    server.prepare("srelu_tiny", "layerc")
    assert server.kept("layerc")["in all"] >= b.cases.CASES["srelu_tiny"].nbytes


def test_ways_beside_each_other(b: Any) -> None:
    """What is small is told by its time on one thread, what is bound by memory by its case; the worst is named."""

    def ratio(threads: float, portable: float, specialised: float | None) -> dict[str, Any]:
        found = {"one thread": {"median": threads}, "portable": {"median": portable}, "again": {"median": 1.01}}
        return {"gradient": found | ({} if specialised is None else {"specialised": {"median": specialised}})}

    slow, quick = {"one thread": peer((1.0,), (2.0,))}, {"one thread": peer((1e-6,), (2e-6,))}
    run = made_up({"sum": slow, "copy": slow, "tiny": quick})
    run["cases"]["sum"]["ratios"] = ratio(1.9, 1.02, 0.8)
    run["cases"]["copy"] |= {"ratios": ratio(1.2, 0.99, None), "traffic": {}}
    run["cases"]["tiny"]["ratios"] = ratio(0.7, 1.5, 1.0)
    found = b.ways.block(run, "gradient")
    assert found.rows == [
        ["sum", "compute", "1.90", "1.02", "1.25", "1.01"],
        ["copy", "memory", "1.20", "0.99", "", "1.01"],
        ["tiny", "small", "0.70", "1.50", "1.00", "1.01"],
    ]
    assert "1 thread / 2 threads, small (1): geometric mean 0.70, worst tiny, 0.70." in found.lines
    assert "portable / native, small (1): geometric mean 1.50, worst tiny, 1.50." in found.lines


def test_ways_to_write_a_layer(b: Any) -> None:
    slow, quick = {"forward": 3e-5, "gradient": 8e-5}, {"forward": 2e-5, "gradient": 4e-5}
    (found,) = b.spellings.blocks({"layers": {"pool": {"loops": slow, "slices": quick}}})
    assert [row[-2:] for row in found.rows] == [["1.50", "2.00"], ["1.00", "1.00"]]
    assert "Farthest apart: 2.00" in found.lines[0]


def test_ways_that_are_one_layer(b: Any) -> None:
    """A gradient that is a thousandth off is another layer."""

    def way(factor: float) -> Any:
        def vjp(x: np.ndarray) -> Any:
            return np.exp(x), lambda dy: factor * np.exp(x) * dy

        return SimpleNamespace(vjp=vjp)

    values = [np.linspace(-1, 1, 30)]
    assert b.spellings.disagreement({"a": way(1.0), "b": way(1.0)}, values) == 0
    assert 9e-4 < b.spellings.disagreement({"a": way(1.0), "b": way(1.001)}, values) < 2e-3


def test_products_beside_another_library(b: Any) -> None:
    sizes = [[(4, 4, 4), {"nn": [2.0, 1.0]}], [(64, 64, 64), {"nn": [8.0, 10.0]}]]
    found = b.products.block({"blas": "some", "rates": {"float32": sizes}})
    assert found.rows[1] == ["float32", "64 x 64 x 64", "8.0 (10.0)", "0.80"]
    assert any("up to 32" in line and "geometric mean 2.00" in line for line in found.lines)
    assert any("larger" in line and "below 0.9 in 1 of 1" in line for line in found.lines)


def test_every_numba_twin_has_a_forward_and_a_backward(b: Any) -> None:
    """Where Numba is not installed, too: by their names in the modules that the peer loads."""
    modules = [ast.parse((BENCHMARKS / f"{name}.py").read_text()) for name in b.peers.Numba.MODULES]
    found = {n.name for tree in modules for n in tree.body if isinstance(n, ast.FunctionDef)}
    stored = [n for tree in modules for top in tree.body if isinstance(top, ast.Assign) for n in ast.walk(top)]
    found |= {n.id for n in stored if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    twins = {name for case in b.cases.CASES.values() for name in case.numba}
    assert twins | {f"{name}_backward" for name in twins} <= found
    assert {name.removesuffix("_forward") for name in found if name.endswith("_forward")} <= twins  # one that is called
    assert all(case.numba for case in b.cases.CASES.values() if case.suite == "bench")


def test_every_results_file_has_a_place_in_the_docs() -> None:
    text = (BENCHMARKS.parent / "docs" / "performance.md").read_text()
    for name in ("bench", "kinds", "nets", "convolutions", "ways", "spellings", "compile"):
        assert f"<!-- {name} -->" in text
        assert f"<!-- /{name} -->" in text
