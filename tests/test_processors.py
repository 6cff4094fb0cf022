"""Threads that the system has put on one processor part: `lc_calling` and `lc_join` of transpile/support.h."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.nets import built_from

SOURCE = """
import numpy as np
from layerc import layer, real


@layer
def curve(x: real["N"]) -> real["N"]:
    return np.exp(-x * x) * np.sin(x) + np.tanh(x)
"""

# `stack` has every thread of the process run on one processor and nowhere else, until it has been seen to be there.
CHILD = """
import importlib, os, sys
import numpy as np

sys.path.insert(0, sys.argv[1])
f = importlib.import_module("apart_compiled").curve
first, second = sorted(os.sched_getaffinity(0))[:2]
x = np.ones((64, 8192), np.float32)


def on(tid):
    return int(open(f"/proc/self/task/{tid}/stat").read().rsplit(")", 1)[1].split()[36])


def tids():
    return {int(t) for t in os.listdir("/proc/self/task")}


before = tids()
f(x)
(helper,) = tids() - before  # the thread that libgomp has made
main = os.getpid()


def stack(cpu, where):
    for tid in (main, helper):
        os.sched_setaffinity(tid, {cpu})
    f(x)
    assert on(main) == on(helper) == cpu
    for tid, cpus in where.items():
        os.sched_setaffinity(tid, cpus)


def until(condition, calls=1):
    # Other processes move threads, too: it has to be so after some calls, not after each.
    for _ in range(50):
        for _ in range(calls):
            f(x)
        if condition():
            return
    raise AssertionError("never")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs Linux and two processors")
    folder = tmp_path_factory.mktemp("apart")
    built_from(folder, "apart", SOURCE)
    return folder


def run(folder: Path, code: str) -> None:
    text = textwrap.dedent(CHILD) + textwrap.dedent(code)
    env = {**os.environ, "LAYERC_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", text, folder], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_helper_leaves_a_caller_that_may_not_move(folder):
    run(
        folder,
        """
        stack(first, {helper: {first, second}})
        until(lambda: on(helper) == second)
        assert os.sched_getaffinity(main) == {first}
        until(lambda: os.sched_getaffinity(helper) == {first, second}, 20)  # LC_APART loops later, as before
        """,
    )


def test_a_caller_leaves_a_helper_that_may_not_move(folder):
    run(
        folder,
        """
        stack(first, {main: {first, second}})
        until(lambda: on(main) == second)
        assert os.sched_getaffinity(main) == {first, second}
        assert os.sched_getaffinity(helper) == {first}
        """,
    )


def test_one_processor_is_no_trouble(folder):
    run(
        folder,
        """
        stack(second, {})
        until(lambda: True, 3)
        assert os.sched_getaffinity(main) == os.sched_getaffinity(helper) == {second}
        """,
    )
