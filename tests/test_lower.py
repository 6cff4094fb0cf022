# ruff: noqa: E501 (one line a case)
"""Lowering: the loop nests of small functions, as text a person can read. What they compute is tested by test_forward.py."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from layerc.transpile.dump import dump
from layerc.transpile.layers import check_file
from layerc.transpile.lower import ErrorTable, lower
from layerc.transpile.passes.verify import verify

HEAD = (
    "import numpy as np\nfrom scipy import special\nfrom layerc import Layer, Param, State, i64, init, layer, real\n\n"
)


def lowered(text, method="predict"):
    """The kernel of the one layer of a file, as text, and the messages of its errors."""
    text = textwrap.dedent(text)
    if "batched=True" in text:  # without a loop over a batch, and so also where axis 0 is none
        text += '\n__batched__ = ("f",)\n'
    (found,) = check_file(Path("f.py"), HEAD + text).layers
    errors = ErrorTable()
    kernel = verify(lower(getattr(found, method) or found.predict, found.name, errors))
    return dump(kernel), [f"{row['exception']}: {row['message']}" for row in errors.rows()]


def body(text):
    """Its loops, without the line of its name."""
    lines = lowered(text)[0].splitlines()
    return "\n".join(line[2:] for line in lines[1:] if not line.startswith("  in "))


# A batched function has no loop over the batch around it. source | loops
GOLDEN = {
    "a reduction runs over its operand row by row": (
        """
        @layer(batched=True)
        def f(x: real["N M"]):
            return np.sum(x, axis=0)
        """,
        """
        out  y: real[M]
        for i in 0..M map:
            y[i] = 0.0
        for i_2 in 0..N map:
            for j in 0..M map:
                y[j] += x[i_2, j]
        """,
    ),
    "a product accumulates over its inner axis": (
        """
        @layer(batched=True)
        def f(x: real["N K"], y: real["K M"]):
            return x @ y
        """,
        """
        out  y_2: real[N, M]
        for i in 0..N map:
            for j in 0..M map:
                y_2[i, j] = 0.0
        for i_2 in 0..N map:
            for j_2 in 0..M map:
                for k in 0..K map:
                    y_2[i_2, j_2] += (x[i_2, k] * y[k, j_2])
        """,
    ),
    "an example stands in a loop over the batch, and what is returned is computed where it is returned": (
        """
        @layer
        def f(x: real["N"], w: Param[real["N"]]):
            h = x * w
            h[0] = 1
            return h
        """,
        """
        out  y: real[batch, N]
        for b in 0..batch map:
            for i in 0..N map:
                y[b, i] = (x[b, i] * w[i])
            check (0 < int(N)) else 2(0, N)
            y[b, 0] = 1.0
        """,
    ),
    "a value that reads itself elsewhere goes by way of a temporary": (
        """
        @layer(batched=True)
        def f(x: real["N"]):
            v = x * 2
            for k in range(3):
                v = v[::-1] + 1
            return v
        """,
        """
        out   y: real[N]
        temp  new: real[N]
        for i in 0..N map:
            y[i] = (x[i] * 2.0)
        for k in 0..3 seq:
            for i_2 in 0..N map:
                new[i_2] = (y[N - i_2 - 1] + 1.0)
            for i_3 in 0..N map:
                y[i_3] = new[i_3]
        """,
    ),
    "a loop's other steps are folded into the indices": (
        """
        @layer(batched=True)
        def f(x: real["N"]):
            y = np.zeros_like(x)
            for i in range(x.shape[0] - 1, 0, -2):
                y[i] = x[i - 1]
            return y
        """,
        """
        out  y: real[N]
        for i_2 in 0..N map:
            y[i_2] = 0
        for i_step in 0..(N//2) seq:
            y[N - 2*i_step - 1] = x[N - 2*i_step - 2]
        """,
    ),
    "a gather is checked and counted from the start before it is used": (
        """
        @layer(batched=True)
        def f(x: real["N"], k: i64["K"]):
            return x[k]
        """,
        """
        out   y: real[K]
        temp  at: i64[K]
        for i in 0..K map:
            check ((k[i] >= int(-N)) & (k[i] < int(N))) else 2(k[i], N)
            at[i] = where((k[i] < 0), (k[i] + int(N)), k[i])
        for i_2 in 0..K map:
            y[i_2] = x[at[i_2]]
        """,
    ),
    "what a condition needs is computed in each round": (
        """
        @layer(batched=True)
        def f(x: real["N"]):
            while np.sum(x) > 1:
                x = x / 2
            return x
        """,
        """
        out   y: real[N]
        temp  sum: real[]
        for i in 0..N map:
            y[i] = x[i]
        loop:
            sum = 0.0
            for i_2 in 0..N map:
                sum += y[i_2]
            leave unless (sum > 1.0)
            for i_3 in 0..N map:
                y[i_3] = (y[i_3] / 2.0)
        """,
    ),
    "a reshape is the same memory": (
        """
        @layer(batched=True)
        def f(x: real["N M"]):
            return x.reshape(x.shape[0] * x.shape[1]) * 2
        """,
        """
        out   y: real[M*N]
        temp  x_flat: real[M*N]  same memory as x
        for i in 0..M*N map:
            y[i] = (x_flat[i] * 2.0)
        """,
    ),
    "what broadcasting would repeat is computed once": (
        """
        @layer(batched=True)
        def f(x: real["N M"], s: real):
            return x * np.exp(s)
        """,
        """
        out   y: real[N, M]
        temp  exp: real[]
        exp = exp(s)
        for i in 0..N map:
            for j in 0..M map:
                y[i, j] = (x[i, j] * exp)
        """,
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    source, expected = GOLDEN[name]
    assert body(source) == textwrap.dedent(expected).strip("\n")


# body of f(x: real["N M"]) | the messages of the checks that are left
# fmt: off
PROOFS = [
    ('y = x * 1\n    for i in range(x.shape[0]):\n        y[i] = x[i]', []),
    ('y = x * 1\n    for i in range(1, x.shape[0]):\n        y[i] = x[i - 1] + y[-i - 1]', []),
    ('y = x * 1\n    for i in range(x.shape[0]):\n        if i > 0:\n            y[i] = x[i - 1]', []),
    ('y = x * 1\n    for i in range(x.shape[0]):\n        if i != 0 and i < x.shape[0] - 1:\n            y[i] = x[i - 1] + x[i + 1]', []),
    ('y = x * 1\n    for i in range(x.shape[0] - 1, -1, -1):\n        y[i] = x[x.shape[0] - 1 - i]', []),
    ('y = x * 1\n    for i in range(0, x.shape[0], 3):\n        y[i] = x[i]', []),
    ('y = x * 1\n    for i in range(x.shape[0]):\n        for j in range(i):\n            y[i] += x[j]', []),
    ('y = x[np.arange(x.shape[0])]', []),
    ('y = x * 1\n    for i in range(x.shape[0]):\n        y[i] = x[i - 1]', ['IndexError: index {0} is out of range for axis 0 with size {1}']),
    ('y = x[0] + x[0]', ['IndexError: index {0} is out of range for axis 0 with size {1}']),
    ('y = np.max(x)', ['ValueError: zero-size array to reduction operation maximum which has no identity']),
    ('t = np.ones(5)\n    y = x * 1\n    for i in range(x.shape[0]):\n        y[i] = t[int(np.sum(x[i])) % 5]', []),
    ('t = np.ones(5)\n    y = x * 1\n    for i in range(x.shape[0]):\n        y[i] = t[int(np.sum(x[i])) % 6]', ['IndexError: index {0} is out of range for axis 0 with size {1}']),
    ('t = np.ones(5)\n    y = x * 1\n    for i in range(x.shape[0]):\n        y[i] = t[int(np.sum(x[i])) % -5]', ['IndexError: index {0} is out of range for axis 0 with size {1}']),
    ('y = x * (7 // x.shape[0])', ['ZeroDivisionError: integer division or modulo by zero']),
]
# fmt: on


@pytest.mark.parametrize(("text", "messages"), PROOFS, ids=range(len(PROOFS)))
def test_what_can_be_proven_is_not_checked(text, messages):
    _, errors = lowered(f'@layer(batched=True)\ndef f(x: real["N M"]):\n    {text}\n    return y\n')
    assert errors == messages


def test_a_check_stands_once_a_statement():
    text, _ = lowered('@layer(batched=True)\ndef f(x: real["N"]):\n    return x[0] + x[0] * x[0]\n')
    assert text.count("check") == 1


def test_a_state_is_assigned_by_the_first_example():
    text, _ = lowered(
        """
        class A(Layer):
            seen: State[real["C"]] = init.zeros()

            def forward(self, x: real["C"]) -> real["C"]:
                self.seen = self.seen + 1
                return x
        """
    )
    assert "out   seen_" in text
    assert "if (int(b) == 0):" in text


def test_configuration_is_passed_as_numbers():
    text, _ = lowered(
        '@layer\ndef f(x: real["N"], *, k: int = 2, a: float = 0.5, on: bool = True):\n    return x * a + k if on else x\n'
    )
    assert text.startswith("kernel f(batch, N, k: i64, a: f64, on: bool)")


def test_names_of_sizes_arguments_and_loops_do_not_meet():
    text, _ = lowered(
        '@layer\ndef f(b: real["b"], batch: real["batch"], i: real["i"]):\n    y = b * 1\n    return y * np.sum(i) * np.sum(batch)\n'
    )
    names = [line.split()[1].rstrip(":") for line in text.splitlines() if line.startswith(("  in", "  out", "  temp"))]
    assert len(set(names)) == len(names)
