"""`make bench-nets`: nets of the runtime, and the same built ahead of time, beside PyTorch and ONNX Runtime.

    python benchmarks/nets.py [--nets mlp,lenet] [--batches 1,64,256] [--rounds 15]

Inference and training steps (SGD with momentum on one batch), all with the same weights and, in one run, one after the
other in every round; the ratio is the median over the rounds. Then the runtime's own cost: a layer of a Net beside its
kernel, and the update of a million parameters. Writes benchmarks/results/nets.json, .md and .txt.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from settings import RESULTS, THREADS, pin_threads

pin_threads()  # before anything below imports numpy

import machine  # noqa: E402
import numpy as np  # noqa: E402
import tables  # noqa: E402
from net_peers import PEERS, Calls  # noqa: E402
from report import duration, geometric_mean  # noqa: E402
from run import names_of  # noqa: E402
from stream import Triad  # noqa: E402

import layerc  # noqa: E402
from layerc import nets  # noqa: E402
from layerc.runtime import SGD, Adam, InnerProduct, Input, Net, Power, SquareLoss  # noqa: E402

# Mocha's examples for MNIST.
SCRIPT = """
from layerc.runtime import *
mlp = Net("mlp", [
    Input([(784,), ()], ["data", "label"], name="data"),
    InnerProduct(128, name="ip1", bottoms=["data"], neuron=Neurons.ReLU()),
    InnerProduct(64, name="ip2", bottoms=["ip1"], neuron=Neurons.ReLU()),
    InnerProduct(10, name="ip3", bottoms=["ip2"]),
    SoftmaxLoss(name="loss", bottoms=["ip3", "label"]),
], seed=1)
lenet = Net("lenet", [
    Input([(1, 28, 28), ()], ["data", "label"], name="data"),
    Convolution(20, kernel=5, name="c1", bottoms=["data"]),
    Pooling("max", kernel=2, stride=2, name="p1", bottoms=["c1"]),
    Convolution(50, kernel=5, name="c2", bottoms=["p1"]),
    Pooling("max", kernel=2, stride=2, name="p2", bottoms=["c2"]),
    InnerProduct(500, name="ip1", bottoms=["p2"], neuron=Neurons.ReLU()),
    InnerProduct(10, name="ip2", bottoms=["ip1"]),
    SoftmaxLoss(name="loss", bottoms=["ip2", "label"]),
], seed=1)
solver = SGD(lr=0.001, momentum=0.9)
"""
SHAPES = {"mlp": (784,), "lenet": (1, 28, 28)}
TURN = 0.06  # seconds of a peer in a round
WHAT = ("inference", "training")


def own(name: str, built: Any) -> dict[str, Callable[[np.ndarray, np.ndarray], Calls]]:
    """The net of the script, and its library."""

    def net(x: np.ndarray, t: np.ndarray) -> Calls:
        scope: dict[str, Any] = {}
        exec(SCRIPT, scope)
        made, solver = scope[name], scope["solver"]
        solver.init(made)
        forward = made.forward
        made.forward = lambda regu=0.0: forward(regu, data={"data": x, "label": t})
        return Calls(lambda: made.predict(x), lambda: solver.step(made), made)

    def library(x: np.ndarray, t: np.ndarray) -> Calls:
        one = built.open()
        return Calls(lambda: one.predict(x), lambda: one.train_step(x, t))

    return {"layerc built": library, "layerc Net": net}


def compare(folder: Path, name: str, batches: list[int], rounds: int) -> dict[str, Any]:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    target, _ = nets.build(script, name, folder / f"built_{name}", None, None, lambda text: None)
    sys.path.insert(0, str(folder))
    candidates = own(name, __import__(target.name))
    found = {}
    for batch in batches:
        rng = np.random.default_rng(0)
        x, t = rng.standard_normal((batch, *SHAPES[name])).astype(np.float32), rng.integers(0, 10, batch)
        calls = {title: make(x, t) for title, make in candidates.items()}
        model = calls["layerc Net"].model
        for title, peer in PEERS.items():
            print(f"{name}, {batch} examples: {title}", file=sys.stderr, flush=True)
            if (made := peer(model, x, t)) is not None:
                calls[title] = made
        check(calls)
        found[str(batch)] = {what: interleaved(calls, what, rounds) for what in WHAT}
    return found


def check(calls: dict[str, Calls]) -> None:
    """All begin with the same weights, so all say the same."""
    expected = calls["layerc Net"].inference()
    for title, one in calls.items():
        np.testing.assert_allclose(np.asarray(one.inference()), expected, 1e-3, 1e-4, err_msg=title)


def interleaved(calls: dict[str, Calls], what: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of a call in each round, by peer."""
    timed = {title: call for title, one in calls.items() if (call := getattr(one, what)) is not None}
    found: dict[str, list[float]] = {title: [] for title in timed}
    for call in timed.values():
        median(call, TURN)
    for _ in range(rounds):
        for title, call in timed.items():
            found[title].append(median(call, TURN))
            time.sleep(0.03)  # a pool of threads that idles spins for a while
    return found


def median(call: Callable[[], Any], seconds: float) -> float:
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def overhead() -> dict[str, float]:
    """Seconds of a layer, from chains of different length on one number."""

    def chain(n: int) -> Net:
        layers = [Input([(1,), (1,)], ["p0", "t"], name="in")]
        layers += [Power(1.0, 0.0, 1.0, name=f"p{k + 1}", bottoms=[f"p{k}"]) for k in range(n)]
        layers += [InnerProduct(1, name="ip", bottoms=[f"p{n}"]), SquareLoss(name="loss", bottoms=["ip", "t"])]
        return Net("chain", layers, force_backward=True)

    x = np.ones((1, 1), np.float32)
    feed = {"p0": x, "t": x}
    found = {}
    for n in (10, 60):
        net = chain(n)
        net.forward_backward(data=feed)
        calls = (lambda: net.predict(x), lambda: net.forward(data=feed), net.backward)  # noqa: B023
        found[n] = [median(call, 0.3) for call in calls]
    return dict(zip(("predict", "forward", "backward"), ((b - a) / 50 for a, b in zip(found[10], found[60]))))


def update() -> dict[str, float]:
    """Bytes a second of the update of a million parameters, all that it must read and write counted once; and of a
    triad over arrays of that size."""
    net = Net("wide", [Input([(1000,), (1000,)], ["x", "t"], name="in"), InnerProduct(1000, name="ip", bottoms=["x"]),
                       SquareLoss(name="loss", bottoms=["ip", "t"])])  # fmt: skip
    x = np.ones((1, 1000), np.float32)
    net.forward_backward(data={"x": x, "t": x})
    found = {}
    for kind, arrays in ((SGD(lr=0.0, momentum=0.9), 5), (Adam(lr=0.0), 7)):
        kind.init(net)
        seconds = median(lambda: kind._update(net), 0.3)  # noqa: B023
        found[kind.kind] = arrays * net.buffer.data.nbytes / seconds
    Triad.facts()
    triad = Triad(net.buffer.data.size)
    return {**found, "a STREAM triad of arrays of that size": triad.nbytes / median(triad, 0.3)}


def blocks(run: dict[str, Any]) -> list[tables.Block]:
    made = []
    for what in WHAT:
        titles = list(dict.fromkeys(t for net in run["nets"].values() for b in net.values() for t in b[what]))
        peers = [t for t in titles if not t.startswith("layerc")]
        rows, least = [], []
        for net, batch, found in ((n, b, f[what]) for n, every in run["nets"].items() for b, f in every.items()):
            times = {t: statistics.median(seconds) for t, seconds in found.items()}
            best = min((p for p in peers if p in times), key=times.__getitem__, default=None)
            cells = [duration(times[t]) if t in times else "" for t in titles]
            ratio = statistics.median(a / b for a, b in zip(found[best], found["layerc built"])) if best else None
            least += [ratio] if ratio else []
            rows.append([net, batch, *cells, f"{ratio:.2f}" if ratio else ""])
        lines = [
            "Median of a call. The last column: times the net built ahead of time is faster than the fastest peer."
        ]
        if least:
            mean = geometric_mean(dict(enumerate(least)))
            lines.append(f"Geometric mean {mean:.2f}, worst {min(least):.2f}.")
        made.append(tables.Block(f"Nets: {what}", lines, ["net", "batch", *titles, "faster"], rows))
    texts = [f"{key} {1e6 * seconds:.2f} us" for key, seconds in run["overhead"].items()]
    rates = [f"{key} {rate / 1e9:.1f} GB/s" for key, rate in run["update"].items()]
    lines = [f"A layer of a Net, its kernel on one number included: {', '.join(texts)}."]
    lines.append(f"Update of a million parameters: {', '.join(rates)}.")
    return [*made, tables.Block("Nets: the runtime's own cost", lines)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", type=names_of(SHAPES), default=list(SHAPES), help=",".join(SHAPES))
    parser.add_argument("--batches", default="1,64,256")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    layerc.set_num_threads(THREADS)
    batches = [int(n) for n in options.batches.split(",")]
    with tempfile.TemporaryDirectory(prefix="layerc-nets-") as folder:
        measured = {n: compare(Path(folder), n, batches, options.rounds) for n in options.nets}
    run = {"machine": machine.describe(), "nets": measured, "overhead": overhead(), "update": update()}
    print(tables.text(blocks(run)))
    tables.write(blocks(run), run, RESULTS, "nets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
