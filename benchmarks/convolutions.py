"""A convolution of a Net beside PyTorch's, forward, two threads: `python benchmarks/convolutions.py [ROUNDS]`.

Shapes of known nets, most of them with one image: what there is to share among threads is then inside the image, and
the memory of the patches is large. Medians of turns in one run.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from settings import THREADS, pin_threads

pin_threads()  # before anything below imports numpy

import numpy as np  # noqa: E402
import tables  # noqa: E402
import torch  # noqa: E402
from report import duration, geometric_mean  # noqa: E402

from layerc.runtime import Convolution, Input, Net  # noqa: E402

CASES = [  # examples, channels, height and width, filters, kernel, padding, groups
    (1, 64, 56, 64, 3, 1, 1),
    (2, 64, 56, 64, 3, 1, 1),
    (8, 64, 56, 64, 3, 1, 1),
    (1, 64, 56, 64, 3, 1, 2),
    (1, 64, 56, 64, 3, 1, 64),
    (1, 128, 28, 128, 3, 1, 1),
    (1, 256, 14, 256, 3, 1, 1),
    (1, 3, 224, 64, 7, 3, 1),
    (64, 1, 28, 20, 5, 0, 1),
]


TURN = 0.02  # seconds of one in a round: its threads are awake, and those of the other asleep


def seconds(call: Callable[[], Any]) -> float:
    """The median of the calls of a turn, but for the first."""
    found, end = [], time.perf_counter() + TURN
    while len(found) < 4 or time.perf_counter() < end:
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return statistics.median(found[1:])


def times(case: tuple[int, ...], rounds: int) -> tuple[float, float]:
    """Ours and PyTorch's, in seconds."""
    examples, channels, size, filters, kernel, pad, groups = case
    layer = Convolution(filters, kernel=kernel, pad=pad, n_group=groups, name="c", bottoms=["data"])
    net = Net("one", [Input([(channels, size, size)], ["data"], name="data"), layer], seed=1)
    x = np.random.default_rng(0).standard_normal((examples, channels, size, size)).astype(np.float32)
    net.predict(x)
    weight, bias = (torch.from_numpy(np.array(net.params["c"][k].data)) for k in ("weight", "bias"))
    given = torch.from_numpy(x)

    def peer() -> torch.Tensor:
        with torch.no_grad():
            return torch.nn.functional.conv2d(given, weight, bias, padding=pad, groups=groups)

    np.testing.assert_allclose(net.predict(x), peer().numpy(), 1e-3, 1e-4)
    both = [(seconds(lambda: net.predict(x)), seconds(peer)) for _ in range(rounds)]
    ours, theirs = (statistics.median(column) for column in zip(*both, strict=True))
    return ours, theirs


def main() -> None:
    torch.set_num_threads(THREADS)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    header = ["examples", "channels", "size", "filters", "kernel", "pad", "groups", "layerc", "PyTorch", "faster"]
    rows, ratios = [], {}
    for case in CASES:
        ours, theirs = times(case, rounds)
        ratios[str(case)] = theirs / ours
        rows.append([*map(str, case), duration(ours), duration(theirs), f"{theirs / ours:.2f}"])
    line = f"Geometric mean {geometric_mean(ratios):.2f}, worst {min(ratios.values()):.2f}."
    print(tables.text([tables.Block("Convolutions", [line], header, rows)]))


if __name__ == "__main__":
    main()
