"""Lanes that loop until all are done: what counts their turns is one number for all that go on, and lists that were
filled turn by turn are emptied at one place for all."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.ir import Check, Load, Store
from layerc.transpile.passes.tree import dim_loads, own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def newton(x: real["D"]) -> real["D"]:
    """Its gradient empties a list that the loop has filled."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        w = 1.0 + x[i] * x[i]
        trips = 0
        while abs(w * w - 1 - x[i] * x[i]) > 1e-3 and trips < 9:
            w = 0.5 * (w + (1 + x[i] * x[i]) / w)
            trips += 1
        y[i] = w
    return y


@layer
def counted(x: real["D"]) -> real["D"]:
    """From three on, by two a turn, in a branch, and read before and after it is made larger."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, n, by_two, sometimes, twice = x[i] * x[i], 3, 0, 1, 0
        while a < 20.0 and n < 12:
            a = a + 0.7 + 0.1 * n + 0.01 * twice
            n += 1
            twice += 1
            a = a * (1 + 0.01 * n)
            by_two += 2
            twice += 1
            if a > 5.0:
                sometimes += 1
        y[i] = a * n + by_two * x[i] + sometimes - twice
    return y


@layer
def emptied(x: real["D"]) -> real["D"]:
    """All entries, from the last on."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, n, seen = abs(x[i]), 0, []
        while a < 4.0:
            seen.append(a)
            a = a * 1.5 + 0.2
            n += 1
        for k in range(n):
            a = np.sin(a) + seen.pop()
        y[i] = a
    return y


@layer
def some_left(x: real["D"]) -> real["D"]:
    """One entry fewer than there are, and then that one."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, n, seen = abs(x[i]), 0, []
        while a < 4.0:
            seen.append(a)
            a = a * 1.5 + 0.2
            n += 1
        m = n - 1
        for k in range(m):
            a = np.sin(a) + seen.pop()
        if n > 0:
            a = a * 2 + seen.pop()
        y[i] = a
    return y


@layer
def one_less(x: real["D"]) -> real["D"]:
    """The number is changed between the loops."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, n, seen = 0.1 * abs(x[i]), 0, []
        while a < 4.0:
            seen.append(a)
            a = a * 1.5 + 0.2
            n += 1
        n -= 1
        for k in range(n):
            a = np.sin(a) + seen.pop()
        y[i] = a + 2 * seen.pop()
    return y


@layer
def by_number(x: real["D"]) -> real["D"]:
    """Each turn asks for its number."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, n, seen = abs(x[i]), 0, []
        while a < 4.0:
            seen.append(a)
            a = a * 1.5 + 0.2
            n += 1
        for k in range(n):
            a = np.sin(a) + seen.pop() * (k + 1)
        y[i] = a
    return y


@layer
def filled_twice(x: real["D"]) -> real["D"]:
    """The list is longer than what was counted last."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, m, n, seen = abs(x[i]), 0, 0, []
        while a < 2.0:
            seen.append(a)
            a = a * 1.5 + 0.2
            m += 1
        while a < 6.0:
            seen.append(-a)
            a = a * 1.3 + 0.1
            n += 1
        for k in range(n):
            a = np.sin(a) + seen.pop()
        for k in range(m):
            a = np.cos(a) + seen.pop()
        while a > -3.0:
            a = a - 1.1
            n += 1
        y[i] = a * n
    return y


@layer
def other_count(x: real["D"]) -> real["D"]:
    """What another loop has counted is taken from the list, and then the rest."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, b, m, n, seen = abs(x[i]), 0.5 * abs(x[i]), 0, 0, []
        while a < 6.0:
            seen.append(a)
            a = a * 1.5 + 0.2
            m += 1
        while b < 2.0 and n < m:
            b = b * 1.4 + 0.3
            n += 1
        for k in range(n):
            a = np.sin(a) + seen.pop() * b
        left = m - n
        for k in range(left):
            a = np.cos(a) + seen.pop()
        y[i] = a
    return y


@layer
def put_back(x: real["D"]) -> real["D"]:
    """Every turn takes an entry, and leaves one."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, n, seen = abs(x[i]), 0, []
        while a < 4.0:
            seen.append(a)
            a = a * 1.5 + 0.2
            n += 1
        for k in range(n):
            a = 0.5 * a + seen.pop()
            seen.append(a)
        for k in range(n):
            a = a + seen.pop()
        y[i] = a
    return y


@layer
def in_a_branch(x: real["D"]) -> real["D"]:
    """Some have no loop at all; the count of the others goes on from what it was."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, n = x[i], 0
        while a < -1.0:
            a = a * 0.5
            n += 1
        if x[i] > 0:
            n = 2
            while a < 5.0 and n < 7:
                a = a * 1.7 + 0.1
                n += 1
        y[i] = a * n
    return y


@layer
def over_examples(x: real["T"]) -> real[""]:
    """A loop for each example, no elements: lanes are examples."""
    a, n = 1.0 + x[0] * x[0], 0
    while a < 30.0 and n < 8:
        a = a * (1.2 + 0.1 * abs(x[n % x.shape[0]]))
        n += 1
    return a * n
'''

NAMES = (
    "newton counted emptied some_left one_less by_number filled_twice other_count put_back in_a_branch over_examples"
).split()


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("turns"), "turns_of", TEXT)


def draw(examples: int, size: int, dtype: type) -> np.ndarray:
    return (2 * np.random.default_rng(examples * 31 + size).standard_normal((examples, size))).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("examples", "size"), [(1, 5), (2, 40), (37, 3), (1, 16), (2, 100)])
def test_values_and_gradients(package, name, examples, size):
    agrees(getattr(package, name), [draw(examples, size, np.float64)], np.random.default_rng(size), 1e-9, 3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), [draw(9, 50, np.float32)])


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "turns_of.py"
    path.write_text(TEXT)
    return {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(path), upto="lanes").parts}


def gathered(body) -> bool:
    """Whether some list of lanes is read where a lane's own number says."""
    loads = (p for s in walk(body) for e in own_exprs(s) for p in parts(e) if isinstance(p, Load) and len(p.index) == 2)
    return any(x.index and "length" in x.buffer for load in loads for x in dim_loads(load.index[0]))


@pytest.mark.parametrize(("name", "method"), [("newton", "backward"), ("emptied", "predict")])
def test_a_list_is_emptied_at_one_place(kernels, name, method):
    assert not gathered(kernels[name, method].body)


@pytest.mark.parametrize("name", ["some_left", "one_less", "by_number", "filled_twice", "other_count", "put_back"])
def test_a_list_of_which_less_is_known_is_not(kernels, name):
    body = kernels[name, "predict"].body
    assert gathered(body) or any(isinstance(s, Check) for s in walk(body))


def test_turns_are_counted_once(kernels):
    """A number for each lane that says how often it went around; what a turn asks for is the same for all."""
    body = kernels["newton", "predict"].body
    wide = {s.buffer for s in walk(body) if isinstance(s, Store) and s.op == "add" and s.index}
    assert not any(n.startswith("trips") for n in wide), wide
