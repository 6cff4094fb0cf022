"""Of quotients by one divisor, those that have a part of another are products with it; where nothing has changed."""

from __future__ import annotations

from dataclasses import replace

import ir_kernels as zoo
import pytest
from ir_kernels import Builder

from layerc.transpile.ir import Op, Store
from layerc.transpile.passes.divisors import divisors
from layerc.transpile.passes.tree import parts, walk


def quotients(kernel) -> list[int]:
    """How many each of its statements has."""
    values = [s.value for s in walk(kernel.body) if isinstance(s, Store)]
    return [sum(isinstance(p, Op) and p.op == "divide" for p in parts(v)) for v in values]


def made(between=None, above=None):
    """y[i] = a / d; (between); z[i] = (a * b) / d"""
    k = Builder("k", "N")
    a, b, d, y, z = k.arg("a", "N"), k.arg("b", "N"), k.temp(name="d"), k.out("y", "N"), k.out("z", "N")

    def body(i):
        d.store((), b[i] + 2.0)
        y.store(i, a[i] / d[()])
        if between:
            between(i, d, y)
        z.store(i, (above(i, a, b, y) if above else a[i] * b[i]) / d[()])

    k.loop("i", "N", body)
    return replace(k.kernel(), flush=True)


def test_a_product_has_the_quotient_of_its_part():
    kernel = made()
    after = divisors(kernel)
    [*_, last] = [s for s in walk(after.body) if isinstance(s, Store)]
    assert last.value.op == "multiply", last
    assert last.value.args[0].op == "divide"
    assert after.buffers == kernel.buffers
    assert divisors(replace(kernel, flush=False)) == replace(kernel, flush=False), "a forward divides as NumPy does"


@pytest.mark.parametrize(
    ("between", "above"),
    [
        (lambda i, d, y: d.store((), d[()] * 3.0), None),  # another divisor
        (None, lambda i, a, b, y: b[i] * 2.0),  # nothing that is alike
        (None, lambda i, a, b, y: a[i] + b[i]),  # no product
        (None, lambda i, a, b, y: a[i]),  # the same: `share` knows
    ],
)
def test_others_stay(between, above):
    kernel = made(between, above)
    assert divisors(kernel) == kernel


def test_what_is_decided_by_stays():
    def compared(i, a, b, y):
        return zoo.op("where", (a[i] * b[i]) / (b[i] + 2.0) > 0.5, 1.0, 0.0)

    k = Builder("k", "N")
    a, b, y, z = k.arg("a", "N"), k.arg("b", "N"), k.out("y", "N"), k.out("z", "N")

    def body(i):
        y.store(i, a[i] / (b[i] + 2.0))
        z.store(i, compared(i, a, b, y))

    k.loop("i", "N", body)
    kernel = replace(k.kernel(), flush=True)
    assert divisors(kernel) == kernel
    assert quotients(kernel) == [1, 1]


def test_parts_of_parts():
    """Of a, a b and a b c over d there is one quotient, when `share` has done."""
    k = Builder("k", "N")
    a, b, c, y = k.arg("a", "N"), k.arg("b", "N"), k.arg("c", "N"), [k.out(n, "N") for n in "xyz"]

    def body(i):
        d = b[i] + 2.0
        y[0].store(i, a[i] / d)
        y[1].store(i, (a[i] * b[i]) / d)
        y[2].store(i, (a[i] * b[i] * c[i]) / d)

    k.loop("i", "N", body)
    kernel = replace(k.kernel(), flush=True)
    whole = {p for s in walk(divisors(kernel).body) if isinstance(s, Store) for p in parts(s.value)}
    assert sum(isinstance(p, Op) and p.op == "divide" for p in whole) == 1
