"""Event files, read back by the format's description."""

import struct

import numpy as np
import pytest

from layerc.runtime import SGD, InnerProduct, MemoryData, Net, SquareLoss, TensorBoard, ValidationPerformance
from layerc.runtime.tensorboard import _checksum


def records(data):
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        assert data[8:12] == _checksum(data[:8])
        event, data = data[12 : 12 + size], data[12 + size :]
        assert data[:4] == _checksum(event)
        data = data[4:]
        yield fields(event)


def fields(message):
    """(number, value) of the fields of a message."""
    found, at = [], 0
    while at < len(message):
        key, at = message[at], at + 1
        if key & 7 == 1:
            found.append((key >> 3, struct.unpack("<d", message[at : at + 8])[0]))
            at += 8
        elif key & 7 == 5:
            found.append((key >> 3, struct.unpack("<f", message[at : at + 4])[0]))
            at += 4
        else:
            value = shift = 0
            while True:
                byte, at = message[at], at + 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            if key & 7 == 2:
                value, at = message[at : at + value], at + value
            found.append((key >> 3, value))
    return found


def test_checksum():
    """CRC-32C of "123456789" is e3069283, which the mask makes this."""
    crc = 0xE3069283
    assert struct.unpack("<I", _checksum(b"123456789"))[0] == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_what_is_written(tmp_path):
    x = np.ones((300, 1))
    layers = [
        MemoryData([x, x], 1, name="data"),
        InnerProduct(1, name="ip", bottoms=["data"]),
        SquareLoss(name="loss", bottoms=["ip", "label"]),
    ]
    net = Net("n", layers)
    solver = SGD(max_iter=200, lr=0.1)
    solver.add(ValidationPerformance(data=[x, x], every_n_iter=100))
    solver.add(TensorBoard(tmp_path / "logs", every_n_iter=200))
    solver.solve(net)
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name.startswith("events.out.tfevents.")
    first, start, end = records(path.read_bytes())
    assert dict(first)[3] == b"brain.Event:2"
    assert dict(end)[2] == 200
    values = {dict(fields(v))[1].decode(): dict(fields(v))[2] for _, v in fields(dict(end)[5])}
    assert values["obj_val"] == pytest.approx(solver.state.obj_val)
    assert values["learning_rate"] == pytest.approx(0.1)
    assert {"loss/loss", "validation/loss/loss"} <= set(values)
    assert "obj_val" not in {dict(fields(v))[1].decode() for _, v in fields(dict(start)[5])}
