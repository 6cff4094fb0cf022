"""Threads that the system has put on one processor part: `lc_calling` and `lc_join` of transpile/support.h.

Where a real system puts its threads is not ours to say, and it may part them by itself: so the C text runs against a
system of our own, in which a thread stays where it is until it may not be there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from nets import built_from

from layerc.build.compiler import find
from layerc.transpile import emit

NAMES = "int here(void);\nlong request(long number, ...);\n#define sched_getcpu here\n#define syscall request\n"
SYSTEM = """
#include <assert.h>
#include <stdarg.h>

/* Of each thread: where it is, where it may be, how often it has asked and said so. */
static __thread unsigned long mask = 3;
static __thread int at LC_USED, asked LC_USED, said LC_USED;

int here(void) { return at; }
long request(long number, ...)
{
    va_list given;
    va_start(given, number);
    (void)va_arg(given, int);
    (void)va_arg(given, long);
    unsigned long *bits = va_arg(given, unsigned long *);
    va_end(given);
    if (number == SYS_sched_getaffinity) {
        *bits = mask;
        return asked++, (long)sizeof(long);
    }
    assert(number == SYS_sched_setaffinity);
    mask = *bits;
    if (!(mask >> at & 1)) at = __builtin_ctzl(mask);
    return said++, 0;
}
"""

# What thread 1 of two does, beside a caller on processor 0 whose helpers nobody has seen.
HELPER = {
    "apart from its caller it asks nobody": """
        at = 1; lc_join(caller);
        assert(!asked && !said && helpers[1] == 2);
    """,
    "beside its caller it goes, and keeps off for a while": """
        lc_join(caller);
        assert(at == 1 && mask == 2 && helpers[1] == 2);
        for (int k = 1; k < LC_APART; k++) { lc_join(caller); assert(mask == 2); }
        lc_join(caller);
        assert(mask == 3 && at == 1);
        const int before = asked + said;
        for (int k = 0; k < 3 * LC_APART; k++) lc_join(caller);
        assert(asked + said == before);
    """,
    "it goes again, back to where it was, if its caller comes after it": """
        lc_join(caller);
        caller.cpu = 1; lc_join(caller);
        assert(at == 0 && mask == 1);
        for (int k = 0; k < LC_APART; k++) lc_join(caller);
        assert(mask == 3);
    """,
    "what somebody else has said meanwhile stays": """
        lc_join(caller);
        mask = 6;
        for (int k = 0; k < LC_APART; k++) lc_join(caller);
        assert(mask == 6);
    """,
    "where there is one processor it stays": """
        mask = 1;
        for (int k = 0; k < 3; k++) lc_join(caller);
        assert(at == 0 && mask == 1 && !said);
    """,
    "it goes to none that it may not use": """
        mask = 9; lc_join(caller);
        assert(at == 3 && mask == 8);
    """,
}
CALLER = {
    "one thread asks nobody": """
        lc_helpers[1] = 1;
        caller = lc_calling(1);
        assert(!asked && !said && at == 0 && !caller.helpers);
    """,
    "where no helper is known to be it stays": """
        lc_helpers[1] = 2;
        caller = lc_calling(2);
        assert(!asked && !said && caller.cpu == 0);
    """,
    "where a helper ran last it goes, and may run where it might": """
        lc_helpers[1] = 1;
        caller = lc_calling(2);
        assert(caller.cpu == 1 && at == 1 && mask == 3);
    """,
    "it goes where no helper is": """
        mask = 15; lc_helpers[1] = 1; lc_helpers[2] = 2; lc_helpers[3] = 4;
        caller = lc_calling(4);
        assert(caller.cpu == 2 && mask == 15);
    """,
    "where all are taken it stays": """
        lc_helpers[1] = 1; lc_helpers[2] = 2;
        caller = lc_calling(3);
        assert(caller.cpu == 0 && mask == 3 && !said);
    """,
}

pytestmark = pytest.mark.optimised  # it waits for what is computed
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these calls")


def passes(tmp_path: Path, body: str) -> None:
    compiler = find()
    if not compiler.openmp:
        pytest.skip("the compiler has no OpenMP, and so no helpers")
    folder = Path(emit.__file__).parent
    text = f"""{NAMES}#include <math.h>
#include "{folder / "math.h"}"
{emit.CALL}
#include "{folder / "support.h"}"
{SYSTEM}
int main(void)
{{
    static int helpers[LC_HELPERS];
    lc_caller caller LC_USED = {{lc_rounding(), 0, helpers}};
    {body}
    return 0;
}}
"""
    (tmp_path / "apart.c").write_text(text)
    command = [*compiler.command, "-std=gnu11", "-O1", "-Wall", "-Werror", "-fopenmp", "apart.c", "-o", "apart", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([tmp_path / "apart"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_linux
@pytest.mark.parametrize("what", HELPER)
def test_a_helper(what, tmp_path):
    passes(tmp_path, f"#pragma omp parallel num_threads(2)\n    if (lc_thread() == 1) {{{HELPER[what]}}}")


@needs_linux
@pytest.mark.parametrize("what", CALLER)
def test_a_caller(what, tmp_path):
    passes(tmp_path, CALLER[what])


CHILD = """
import importlib, os, sys
import numpy as np

sys.path.insert(0, sys.argv[1])
f = importlib.import_module("apart_compiled").curve
x = np.ones((64, 8192), np.float32)
masks = lambda: [os.sched_getaffinity(int(t)) for t in os.listdir("/proc/self/task")]
both = set(sorted(os.sched_getaffinity(0))[:2])
only = {min(both)}
os.sched_setaffinity(0, only)  # as under taskset: the threads to come may not leave, either
for _ in range(10):
    want = f(x)
    assert all(mask == only for mask in masks()), masks()
for tid in os.listdir("/proc/self/task"):
    os.sched_setaffinity(int(tid), both)
for _ in range(1000):
    assert np.array_equal(f(x), want)
assert os.sched_getaffinity(0) == both
assert all(mask <= both for mask in masks()), masks()
"""


@needs_linux
def test_on_this_system(tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    source = "import numpy as np\nfrom layerc import layer, real\n\n\n@layer\n"
    source += 'def curve(x: real["N"]) -> real["N"]:\n    return np.exp(-x * x) * np.sin(x) + np.tanh(x)\n'
    built_from(tmp_path, "apart", source)
    env = {**os.environ, "LAYERC_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", CHILD, tmp_path], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
