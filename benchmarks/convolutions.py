"""A convolution of a Net beside PyTorch's, forward, two threads: `python benchmarks/convolutions.py [ROUNDS]`.

Shapes of known nets, most of them with one image: what there is to share among threads is then inside the image, and
the memory of the patches is large. Medians of turns in one run. Writes benchmarks/results/convolutions.json, .md, .txt.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from settings import RESULTS, THREADS, pin_threads

pin_threads()  # before anything below imports numpy

import machine  # noqa: E402
import numpy as np  # noqa: E402
import tables  # noqa: E402
from report import duration, geometric_mean  # noqa: E402

import layerc  # noqa: E402
from layerc.runtime import Convolution, Input, Net  # noqa: E402

WHAT = ["examples", "channels", "size", "filters", "kernel", "pad", "groups"]
CASES = [
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
TURN = 0.06  # seconds of one in a round: its threads are awake, and those of the other asleep


def seconds(call: Callable[[], Any]) -> float:
    """The median of the calls of a turn, but for the first."""
    found, end = [], time.perf_counter() + TURN
    while len(found) < 4 or time.perf_counter() < end:
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return statistics.median(found[1:])


def times(case: tuple[int, ...], rounds: int) -> dict[str, float]:
    """Seconds of a call, ours and PyTorch's."""
    import torch

    torch.set_num_threads(THREADS)
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
    calls = {"layerc Net": lambda: net.predict(x), "torch eager": peer}
    found = [{name: seconds(call) for name, call in calls.items()} for _ in range(rounds)]
    return {name: statistics.median(one[name] for one in found) for name in calls}


def blocks(run: dict[str, Any]) -> list[tables.Block]:
    rows, ratios = [], {}
    for number, (case, found) in enumerate(run["cases"]):
        ratios[number] = found["torch eager"] / found["layerc Net"]
        rows.append([*map(str, case), *map(duration, found.values()), f"{ratios[number]:.2f}"])
    line = f"Median of a call. Geometric mean {geometric_mean(ratios):.2f}, worst {min(ratios.values()):.2f}."
    return [tables.Block("Convolutions, forward", [line], [*WHAT, "layerc Net", "torch eager", "faster"], rows)]


def main() -> None:
    layerc.set_num_threads(THREADS)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    run = {"machine": machine.describe(), "cases": [(case, times(case, rounds)) for case in CASES]}
    print(tables.text(blocks(run)))
    tables.write(blocks(run), run, RESULTS, "convolutions")


if __name__ == "__main__":
    main()
