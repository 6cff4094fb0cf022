"""C text that means what the IR means: compiled, run and compared with NumPy, plain and after all passes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import ir_kernels as zoo
import numpy as np
import pytest

from layerc.transpile import emit, passes
from layerc.transpile.emit_text import CNames, literal

KERNELS = zoo.all_kernels()
GOLDEN = Path(__file__).with_name("golden_layers.py")
CHOICES = Path(__file__).parent / "spec" / "layers" / "choices.py"


@pytest.fixture(scope="module", params=["lower", "contract", None], ids=["plain", "fused", "all"])
def library(request):
    done = [passes.run(k, upto=request.param) for k in KERNELS.values()]
    return zoo.Library(zoo.both(*done))


def _expected(kernel, values):
    if kernel.name.startswith("matmul"):
        a = values["a"].T if kernel.name[-2] == "t" else values["a"]
        b = values["b"].T if kernel.name[-1] == "t" else values["b"]
        return {"c": a @ b}
    return zoo.reference(kernel.name, values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.filterwarnings("ignore")
def test_against_numpy(library, name, dtype):
    kernel = KERNELS[name]
    for dims in zoo.cases(kernel):
        values = zoo.random_inputs(kernel, dims, dtype)
        expected = _expected(kernel, values)
        for threads in (1, 2):
            got = zoo.run_kernel(library, kernel, dims, values, dtype, threads)
            for out, array in expected.items():
                tolerance = 2e-4 if dtype == np.float32 else 1e-11
                np.testing.assert_allclose(got[out], array, tolerance, tolerance, err_msg=f"{name} {out} {dims}")
            if threads == 1:
                first = got
        for out in first:
            assert np.array_equal(first[out], got[out], equal_nan=True), "the result depends on the number of threads"


def test_check_reports_the_first_failing_iteration(library):
    kernel = KERNELS["gather"]
    for threads in (1, 2):
        dims = {"batch": 50, "N": 4, "M": 6}
        values = zoo.random_inputs(kernel, dims, np.float32)
        values["idx"][11, 3], values["idx"][11, 5], values["idx"][40, 0] = -2, 9, 4
        outs = zoo.outputs(kernel, dims, np.float32)
        call = library("gather", *values.values(), *outs.values(), threads=threads, **dims)
        assert (call.code, list(call.info)[:2]) == (7, [-2, 4])
        call = library(
            "gather",
            *[v[:11].copy() for v in values.values()],
            *outs.values(),
            threads=threads,
            **{**dims, "batch": 11},
        )
        assert call.code == 0


@pytest.mark.slow  # half a minute of gcc; `make sanitize` runs it too
def test_runs_clean_under_the_sanitizers(tmp_path):
    """Out of bounds, undefined shifts, overflow; with and without OpenMP."""
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    env = {
        **os.environ,
        "LD_PRELOAD": found.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, zoo.__file__, str(tmp_path)], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "clean\n", done.stdout[-2000:] + done.stderr[-6000:]


def test_header_and_cdef():
    jobs = zoo.both(KERNELS["srelu"])
    assert "int LC_NAME(srelu_f32)(int64_t batch, int64_t C, int64_t S, const float *x" in emit.header(jobs)
    assert "int srelu_f64(int64_t batch, int64_t C, int64_t S, void *x" in emit.cdef(jobs)
    assert "lc_call *call);" in emit.cdef(jobs)


def _reduction(op, init):
    k = zoo.Builder(f"total_{op}", "N M")
    x, y = k.arg("x", "N M"), k.out("y")
    k.reduce("N M", (), lambda i, j: x[i, j], op, into=y, init=init)
    return passes.run(k.kernel())


@pytest.fixture(scope="module")
def reductions():
    return zoo.Library(zoo.both(_reduction("add", 0.0), _reduction("max", -np.inf), _reduction("min", np.inf)))


def test_float32_sums_are_as_good_as_numpys(reductions):
    x = np.random.default_rng(0).random((1000, 2003), np.float32)
    y = np.empty((), np.float32)
    reductions("total_add", x, y, N=1000, M=2003, threads=2)
    exact = x.sum(dtype=np.float64)
    assert abs(y - exact) <= max(2 * abs(x.sum() - exact), 2e-7 * exact)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_wins_a_maximum(reductions, op, dtype):
    x = np.random.default_rng(0).standard_normal((7, 1500)).astype(dtype)
    y = np.empty((), dtype)
    reductions(f"total_{op}", x, y, N=7, M=1500)
    assert y == getattr(x, op)()
    x[3, 701] = np.nan
    reductions(f"total_{op}", x, y, N=7, M=1500, threads=2)
    assert np.isnan(y)


def test_out_of_memory_is_code_1():
    """A temporary of 2**61 elements: its size does not fit, and says so instead of wrapping round."""
    k = zoo.Builder("huge", "N")
    x, y = k.arg("x", "1"), k.out("y", "1")
    t = k.temp("N N N")
    t.store((0, 0, 0), x[0])
    k.emit(
        zoo.ir.If(
            zoo.ir.Op("greater", (x[0].ir, zoo.ir.Const(1e9, "real")), "bool"),
            (zoo.ir.Store("y", (zoo.Dim.of(0),), t[1, 1, 1].ir),),
        )
    )
    library = zoo.Library(zoo.both(k.kernel()))
    x, y = np.ones(1, np.float32), np.ones(1, np.float32)
    assert library("huge", x, y, N=1 << 21).code == 1
    assert library("huge", x, y, N=1 << 40).code == 1
    assert library("huge", x, y, N=4).code == 0


def test_names_of_c_are_spelled_round():
    k = zoo.Builder("names", "double")
    x, y = k.arg("int", "double"), k.out("größe", "double")
    k.set(y, lambda i: x[i] * 2.0)
    library = zoo.Library(zoo.both(passes.run(k.kernel())))
    x, y = np.arange(5.0), np.empty(5)
    library("names", x, y, double=5)
    assert np.array_equal(y, 2 * x)


HEADERS = "math.h stdint.h stdlib.h string.h stdio.h stddef.h float.h limits.h inttypes.h time.h errno.h".split()


def test_no_name_is_a_macro_of_the_headers():
    """Nor one of Python's, which the package's own C includes."""
    text = "#include <Python.h>\n" + "".join(f"#include <{h}>\n" for h in HEADERS)
    command = [
        *shlex.split(os.environ.get("CC", "cc")),
        "-E",
        "-dM",
        f"-I{sysconfig.get_path('include')}",
        "-x",
        "c",
        "-",
    ]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("no headers of Python here")
    # What takes arguments is none where no ( follows.
    macros = {m for m in (line.split()[1] for line in done.stdout.splitlines()) if "(" not in m}
    names = CNames(macros | {"int64_t", "size_t", "offsetof"})
    left = set(names.table.values()) & (macros | names.table.keys())
    assert not left, left


@pytest.mark.parametrize("value", [1e39, 1e300, 2.0**128 - 2.0**103])
def test_numbers_beyond_float32_are_infinite(value):
    assert [literal(v, "f32") for v in (value, -value)] == ["INFINITY", "(-INFINITY)"]
    assert "INF" not in literal(value, "f64")


def test_the_largest_float32_is_a_number():
    largest = float(np.finfo(np.float32).max)
    assert np.float32(literal(largest, "f32").rstrip("f")) == np.float32(largest)
    assert np.float32(literal(largest * (1 + 2.0**-26), "f32").rstrip("f")) == np.float32(largest)


@pytest.mark.parametrize(("file", "name", "stage"), [(GOLDEN, "bilinear", "c"), (CHOICES, "three_turning", "ir:lower")])
def test_the_text_is_the_same_in_every_process(file, name, stage):
    """In whatever order a process goes through its sets: two numbers of chunks of one length are told by their text,
    what a loop leaves unknown is so in its own order."""
    script = (
        "from pathlib import Path; from layerc.build.driver import read_module, show;"
        f"print(show(read_module(Path({str(file)!r})), {stage!r}, {name!r}))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(1, 5)
    }
    assert len(texts) == 1
