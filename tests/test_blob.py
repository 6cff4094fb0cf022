"""Blobs, NullBlob, parameters."""

import copy
import pickle

import numpy as np
import pytest

from layerc.runtime import Blob, NullBlob, Parameter
from layerc.runtime.parameters import ParameterBuffer


def test_null_blob_is_one_false_object():
    assert NullBlob() is NullBlob()
    assert not NullBlob()
    assert copy.deepcopy(NullBlob()) is NullBlob()
    assert pickle.loads(pickle.dumps(NullBlob())) is NullBlob()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_every_blob_is_true(shape):
    blob = Blob(np.zeros(shape))
    assert blob
    assert blob.shape == shape


def test_resize_reuses_memory_and_grows():
    blob = Blob(np.zeros((8, 4), np.float32))
    first = blob.data.ctypes.data
    for n in (3, 8, 1):
        blob.resize((n, 4))
        assert blob.shape == (n, 4)
        assert blob.data.ctypes.data == first
        assert blob.data.flags.c_contiguous
    blob.resize((9, 4))
    assert blob.shape == (9, 4)
    assert blob.dtype == np.float32
    grown = blob.data.ctypes.data
    blob.resize((8, 4))
    assert blob.data.ctypes.data == grown
    with pytest.raises(ValueError, match="-1"):
        blob.resize((-1, 4))


def test_reshape_shares_memory_with_diff():
    blob = Blob(np.arange(6.0), diff=np.ones(6))
    other = blob.reshape((2, -1))
    other.data[0, 0] = 9
    assert blob.data[0] == 9
    assert blob.shape == (6,)
    assert other.diff.shape == (2, 3)
    with pytest.raises(ValueError):
        blob.reshape((4, 2))


def test_copies():
    blob = Blob(np.zeros((2, 2)))
    taken = blob.to_array()
    blob.copy_from(np.ones((2, 2), np.float32))
    assert blob.data.sum() == 4
    assert taken.sum() == 0
    blob.fill(3)
    assert blob.data.min() == 3
    blob.copy_from(Blob(np.zeros((2, 2))))
    assert blob.data.max() == 0
    with pytest.raises(ValueError, match=r"\(4,\).*\(2, 2\)"):
        blob.copy_from(np.ones(4))


def test_assigning_data_copies_and_fits():
    blob, value = Blob(np.zeros(2)), np.ones((3, 2))
    blob.data = value
    value[...] = 7
    assert blob.data.tolist() == [[1, 1]] * 3
    with pytest.raises(TypeError):
        Blob(np.zeros(2, np.int64)).data = np.full(2, 0.5)


@pytest.mark.parametrize("bad", [np.zeros(2, complex), np.zeros(2, np.float16), np.array(["a"]), [None]])
def test_types(bad):
    with pytest.raises(TypeError):
        Blob(bad)


def test_dlpack():
    blob = Blob(np.arange(4, dtype=np.float32))
    assert np.from_dlpack(blob).tolist() == [0, 1, 2, 3]


def test_non_contiguous_arrays_become_so():
    assert Blob(np.zeros((4, 6))[:, ::2]).data.flags.c_contiguous


def test_diff():
    blob = Blob(np.zeros(3))
    assert blob.diff is NullBlob()
    blob.diff = np.ones(3)
    assert isinstance(blob.diff, np.ndarray)


def test_parameter_buffer_is_contiguous():
    a, b = Parameter("a", (2, 3)), Parameter("b", (4,))
    buffer = ParameterBuffer([a, b], np.float64)
    buffer.data[...] = np.arange(10)
    assert a.data.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert b.data.tolist() == [6, 7, 8, 9]
    a.data[...] = -1
    assert buffer.data[:6].tolist() == [-1] * 6
    assert buffer.segments(lambda p: p.lr) == [(slice(0, 10), 1.0)]
    b.lr = 2.0
    assert [place for place, _ in buffer.segments(lambda p: p.lr)] == [slice(0, 6), slice(6, 10)]
    a.is_frozen_by_user = True
    assert [place for place, _ in buffer.segments(lambda p: p.lr)] == [slice(6, 10)]


def test_parameter_shapes():
    p = Parameter("w", (2, 3))
    assert p.gradient is NullBlob()
    with pytest.raises(ValueError, match=r"'w'.*\(2, 3\).*\(3,\)"):
        p.gradient = np.ones(3)
    p.lr = 0.0
    assert p.frozen
