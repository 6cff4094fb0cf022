"""Memory of results that nobody has any more is kept for the next results, and never given to two."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from layerc.runtime import Convolution, Input, Net
from layerc.runtime.quick import empty

_quick = pytest.importorskip("layerc.runtime._quick", reason="without the extension NumPy allocates results")

LARGE = (1000, 500)
DOUBLE = np.dtype("f8")


@pytest.fixture(autouse=True)
def nothing_kept():
    gc.collect()
    _quick.release()
    yield
    _quick.release()


def place(array):
    return array.__array_interface__["data"][0]


def test_the_next_result_lies_where_the_last_did():
    first = empty(LARGE, DOUBLE)
    at = place(first)
    assert first.flags.owndata and at % 64 == 0 and _quick.kept_bytes() == 0
    del first
    assert _quick.kept_bytes() >= 1000 * 500 * 8
    assert place(empty(LARGE, DOUBLE)) == at


def test_what_somebody_has_stays():
    first = empty(LARGE, DOUBLE)
    part = first[3:5, ::-1]
    part[:] = 7.0
    del first
    others = [empty(LARGE, DOUBLE) for _ in range(20)]
    for other in others:
        other[:] = 0.0
    assert np.all(part == 7.0)
    assert len({place(o) for o in others}) == len(others)


def test_small_ones_are_numpys():
    small = empty((10,), DOUBLE)
    del small
    assert _quick.kept_bytes() == 0


def test_no_more_is_kept_than_128_megabytes():
    arrays = [empty((2 << 20,), DOUBLE) for _ in range(30)]  # 16 MB each
    del arrays
    assert 0 < _quick.kept_bytes() <= 128 << 20
    huge = empty((10 << 20,), DOUBLE)
    before = _quick.kept_bytes()
    del huge  # larger than half of it: given back
    assert _quick.kept_bytes() == before


def test_a_small_result_takes_no_large_block():
    large = empty((4, *LARGE), DOUBLE)
    at = place(large)
    del large
    assert place(empty(LARGE, DOUBLE)) != at


def test_arrays_behave_as_all_arrays():
    array = empty(LARGE, DOUBLE)
    array[:] = 1.0
    array.resize((2000, 500), refcheck=False)
    assert array[:1000].sum() == 500_000 and not array[1000:].any()
    assert empty((0, 5), DOUBLE).shape == (0, 5) and empty((), DOUBLE).shape == ()
    with pytest.raises(MemoryError):
        empty((1 << 45,), DOUBLE)
    with pytest.raises(ValueError, match="too big"):
        empty((1 << 40, 1 << 40), DOUBLE)
    before = _quick.kept_bytes()
    other = np.empty(100_000)  # allocated as ever, not by the handler of results
    del other
    assert _quick.kept_bytes() == before


def test_results_at_the_same_time():
    """Each thread finds in its results what it wrote."""

    def run(number):
        for k in range(200):
            array = empty((300 + 40 * (k % 7), 100), DOUBLE)
            array[:] = number
            if not (array == number).all():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(8)))


def test_results_of_layers():
    layer = Convolution(8, kernel=3, pad=1, name="c", bottoms=["data"])
    net = Net("one", [Input([(4, 40, 40)], ["data"], name="data"), layer], seed=1)
    inputs = [np.random.default_rng(k).standard_normal((6, 4, 40, 40)).astype(np.float32) for k in range(4)]
    expected = [net.predict(x).copy() for x in inputs]
    results = [net.predict(x) for x in inputs]
    for got, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
