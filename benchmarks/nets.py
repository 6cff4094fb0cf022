"""A net of the runtime beside the same net built ahead of time, and PyTorch's eager twin where it is installed.

    python benchmarks/nets.py [--batches 1,64,512] [--threads 1]

Median microseconds of a call; `overhead`: what a layer of the runtime costs beside its kernels, from a chain of layers
that have next to nothing to compute.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import layerc
from layerc import nets
from layerc.runtime import SGD, InnerProduct, Input, Net, Power, SquareLoss

SCRIPT = """
from layerc.runtime import *
net = Net("mlp", [
    Input([(64,), ()], ["data", "label"], name="data"),
    InnerProduct(64, name="ip1", bottoms=["data"], neuron=Neurons.ReLU()),
    InnerProduct(64, name="ip2", bottoms=["ip1"], neuron=Neurons.ReLU()),
    InnerProduct(10, name="ip3", bottoms=["ip2"]),
    SoftmaxLoss(name="loss", bottoms=["ip3", "label"]),
], seed=1)
conv = Net("conv", [
    Input([(1, 28, 28), ()], ["data", "label"], name="data"),
    Convolution(8, kernel=5, name="c1", bottoms=["data"], neuron=Neurons.ReLU()),
    Pooling("max", kernel=2, stride=2, name="p1", bottoms=["c1"]),
    Convolution(16, kernel=5, name="c2", bottoms=["p1"], neuron=Neurons.ReLU()),
    Pooling("max", kernel=2, stride=2, name="p2", bottoms=["c2"]),
    InnerProduct(10, name="ip", bottoms=["p2"]),
    SoftmaxLoss(name="loss", bottoms=["ip", "label"]),
], seed=1)
solver = SGD(lr=0.01, momentum=0.9)
"""


def median(call: Callable[[], Any], seconds: float = 0.4) -> float:
    """Microseconds of a call."""
    call(), call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def torch_twin(name: str, x: np.ndarray, t: np.ndarray, threads: int) -> tuple[Callable, Callable] | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    n = torch.nn
    layers = {
        "net": [n.Linear(64, 64), n.ReLU(), n.Linear(64, 64), n.ReLU(), n.Linear(64, 10)],
        "conv": [
            *(n.Conv2d(1, 8, 5), n.ReLU(), n.MaxPool2d(2), n.Conv2d(8, 16, 5), n.ReLU(), n.MaxPool2d(2)),
            *(n.Flatten(), n.Linear(256, 10)),
        ],
    }[name]  # fmt: skip
    model = n.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    x_, t_ = torch.from_numpy(x), torch.from_numpy(t)

    def step() -> None:
        optimizer.zero_grad()
        loss = n.functional.cross_entropy(model(x_), t_)
        loss.backward()
        optimizer.step()
        loss.item()

    def predict() -> None:
        with torch.inference_mode():
            model(x_)

    return predict, step


def compare(folder: Path, name: str, shape: tuple[int, ...], batches: list[int], threads: int) -> None:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    target, _ = nets.build(script, name, folder / f"built_{name}", None, None, lambda text: None)
    sys.path.insert(0, str(folder))
    built = __import__(target.name)
    for batch in batches:
        scope: dict[str, Any] = {}
        exec(SCRIPT, scope)
        net, solver = scope[name], scope["solver"]
        rng = np.random.default_rng(0)
        x, t = rng.standard_normal((batch, *shape)).astype(np.float32), rng.integers(0, 10, batch)
        solver.init(net)
        forward = net.forward
        net.forward = lambda regu=0.0: forward(regu, data={"data": x, "label": t})  # noqa: B023
        rows = [
            ("Net", lambda: net.predict(x), lambda: solver.step(net)),  # noqa: B023
            ("built", lambda: built.predict(x), lambda: built.train_step(x, t)),  # noqa: B023
        ]
        twin = torch_twin(name, x, t, threads)
        if twin is not None:
            rows.append(("torch eager", *twin))
        for title, predict, step in rows:
            print(f"{name:<5} {batch:>6}  {title:<12} {median(predict):>10.1f} {median(step):>12.1f}")


def overhead() -> None:
    """Per layer, from chains of different length on one number."""

    def chain(n: int) -> tuple[Net, SGD]:
        layers = [Input([(1,), (1,)], ["p0", "t"], name="in")]
        layers += [Power(1.0, 0.0, 1.0, name=f"p{k + 1}", bottoms=[f"p{k}"]) for k in range(n)]
        layers += [InnerProduct(1, name="ip", bottoms=[f"p{n}"]), SquareLoss(name="loss", bottoms=["ip", "t"])]
        return Net("chain", layers, force_backward=True), SGD(lr=0.0)

    x = np.ones((1, 1), np.float32)
    found = {}
    for n in (10, 60):
        net, _ = chain(n)
        feed = {"p0": x, "t": x}
        net.forward_backward(data=feed)
        found[n] = (
            median(lambda: net.predict(x)),  # noqa: B023
            median(lambda: net.forward(data=feed)),  # noqa: B023
            median(net.backward),
        )
    texts = [f"{(b - a) / 50:.2f}" for a, b in zip(found[10], found[60])]
    print(
        f"\na layer of a Net, its kernel on one number: predict {texts[0]}, forward {texts[1]}, backward {texts[2]} us"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,64,512")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    layerc.set_num_threads(options.threads)
    batches = [int(n) for n in options.batches.split(",")]
    print(f"{'net':<5} {'batch':>6}  {'':<12} {'predict us':>10} {'train_step us':>12}")
    with tempfile.TemporaryDirectory(prefix="layerc-nets-") as folder:
        compare(Path(folder), "net", (64,), batches, options.threads)
        compare(Path(folder), "conv", (1, 28, 28), batches, options.threads)
    overhead()


if __name__ == "__main__":
    main()
