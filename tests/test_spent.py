"""What nothing reads any more is not stored."""

from __future__ import annotations

import pytest
from nets import kernels_in

from layerc.transpile.dims import Dim
from layerc.transpile.ir import Buffer, Const, For, If, Kernel, Load, Op, Stmt, Store
from layerc.transpile.passes.spent import spent
from layerc.transpile.passes.tree import walk

N, T = Dim.of("N"), Dim.of("T")
I, J, S = Dim.of("i"), Dim.of("j"), Dim.of("t")


def over(var, extent, *body, kind="map"):
    return For(var, Dim.of(0), extent, body, kind)


def put(buffer, *index, value=None, op=None):
    return Store(buffer, index, Const(0.0, "real") if value is None else value, op)


def get(buffer, *index):
    return Load(buffer, index, "real")


FILL = over("i", N, put("h", I))
COPY = over("j", N, put("h", J, value=get("x", J)))
READ = over("k", N, put("y", Dim.of("k"), value=get("h", Dim.of("k"))))
READ_2 = over("l", N, put("y", Dim.of("l"), value=get("h", Dim.of("l")), op="add"))


def stores(*body: Stmt, shape=(N,)) -> int:
    """To h, after the pass."""
    buffers = (Buffer("x", "real", (N,), "in"), Buffer("y", "real", (N,), "out"), Buffer("h", "real", shape, "temp"))
    kernel = spent(Kernel("f", ("N", "T"), (), buffers, body))
    return sum(isinstance(s, Store) and s.buffer == "h" for s in walk(kernel.body))


CONDITION = Op("greater", (get("x", Dim.of(0)), Const(0.0, "real")), "bool")


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ([FILL, READ], 1),
        ([FILL, READ, COPY], 1),  # after the last reading
        ([FILL, COPY, READ], 2),
        ([FILL, COPY], 0),  # never read
        ([over("t", T, FILL, READ, COPY)], 1),  # each iteration begins anew
        ([over("t", T, READ, COPY, kind="seq")], 1),  # the next one reads it
        ([FILL, over("t", T, READ, COPY, kind="seq")], 2),
        ([FILL, over("t", T, READ, kind="seq"), COPY], 1),
        ([over("t", T, FILL, READ, COPY), READ_2], 2),  # outside, too
        ([over("t", T, over("i", N - 1, put("h", I)), READ, COPY, kind="seq")], 2),  # not all of it is filled
        ([over("t", T, over("s", T, FILL), READ, COPY, kind="seq")], 2),  # which may run no times
        ([over("t", T, put("h", Dim.of(0)), READ, COPY, kind="seq")], 2),
        ([FILL, READ, over("j", N, put("h", J, value=get("h", J), op="add"))], 2),  # what is added to is read
        ([over("t", T, FILL, If(CONDITION, (READ,), (COPY,)), kind="seq")], 2),
        ([over("t", T, If(CONDITION, (FILL, READ, COPY), ()), kind="seq")], 1),
        ([over("t", T, If(CONDITION, (FILL, READ), (COPY,)), kind="seq")], 2),
    ],
)
def test_stores(body, left):
    assert stores(*body) == left


def test_a_matrix_filled_along_one_axis():
    """h[i, i] is not all of h."""
    diagonal = over("i", N, put("h", I, I))
    read = over("k", N, put("y", Dim.of("k"), value=get("h", Dim.of("k"), Dim.of(0))))
    copy = over("j", N, put("h", J, Dim.of(0), value=get("x", J)))
    assert stores(over("t", T, diagonal, read, copy, kind="seq"), shape=(N, N)) == 2


LAYER = """
import numpy as np
from layerc import Param, layer, real


@layer
def selective(x: real["T D"], a: Param[real["D N"]], b: real["T N"], c: real["T N"]) -> real["T D"]:
    h = np.zeros((x.shape[1], b.shape[1]))
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        h = a * h + x[t][:, None] * b[t]
        y[t] = h @ c[t]
    return y
"""


def test_what_a_reverse_restores_is_read_where_it_was_saved(tmp_path):
    path = tmp_path / "selective.py"
    path.write_text(LAYER)
    kernel = kernels_in(path)["selective", "backward"]
    reverse = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq"][-1]
    assert not any(isinstance(s, Store) and s.buffer == "h" for s in walk((reverse,)))
