"""`TensorBoard`: statistics as event files, written without TensorFlow or TensorBoard.

A file is a sequence of records (length, its checksum, data, its checksum; checksums are masked CRC-32C), each an
`Event` message: 1 wall time, 2 step, 3 version, 5 summary {1 value {1 tag, 2 number}}, as in TensorFlow's event.proto.
"""

import math
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerc.runtime.coffee import CoffeeBreak, ValidationPerformance

if TYPE_CHECKING:
    from layerc.runtime.net import Net
    from layerc.runtime.solvers import Solver


class TensorBoard(CoffeeBreak):
    """Writes objective, rates, the net's statistics and the last validations to a file in `folder`, for
    `tensorboard --logdir folder`. Default each iteration."""

    def __init__(self, folder: Any, **when: Any) -> None:
        super().__init__(**(when or {"every_n_iter": 1}))
        self.folder = Path(folder)
        self.file: Any = None

    def init(self, solver: "Solver", net: "Net") -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        self.file = open(self.folder / f"events.out.tfevents.{now:.6f}.{net.name}", "wb")  # noqa: SIM115
        self._write(_double(1, now) + _bytes(3, b"brain.Event:2"))

    def enjoy(self, solver: "Solver", net: "Net") -> None:
        state = solver.state
        values = {"obj_val": state.obj_val, "learning_rate": state.learning_rate, "momentum": state.momentum}
        values |= net.statistics()
        for one in solver.breaks:
            if isinstance(one, ValidationPerformance):
                values |= {f"validation.{name}": value for name, value in one.statistics.items()}
        summary = b"".join(
            _bytes(1, _bytes(1, name.replace(".", "/").encode()) + b"\x15" + struct.pack("<f", value))
            for name, value in values.items()
            if not math.isnan(value)
        )
        if summary:
            self._write(_double(1, time.time()) + b"\x10" + _varint(state.iter) + _bytes(5, summary))

    def finalize(self, solver: "Solver", net: "Net") -> None:
        if self.file is not None:
            self.file.close()

    def _write(self, event: bytes) -> None:
        size = struct.pack("<Q", len(event))
        self.file.write(size + _checksum(size) + event + _checksum(event))
        self.file.flush()


def _varint(n: int) -> bytes:
    found = bytearray()
    while n > 127:
        found.append(n & 127 | 128)
        n >>= 7
    return bytes([*found, n])


def _bytes(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _double(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)


def _table() -> list[int]:
    found = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        found.append(n)
    return found


_CRC = _table()


def _checksum(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
