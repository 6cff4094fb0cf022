"""A neural differential equation that learns a spiral from pieces of its path.

    python examples/spiral.py            (or: make example-spiral)

Chen et al., "Neural ordinary differential equations", 2018. The path is y' = A y³, integrated here. The net sees short
noisy pieces of it only: a point, and the eight that follow. Then it draws the whole path from its first point.
"""

import sys

import jobs
import numpy as np

from layerc.runtime import ODE, Adam, Gaussian, Input, LRPolicy, MemoryData, Net, SquareLoss

EPOCHS, BATCH, HIDDEN = 160, 100, 50
POINTS, STEP, AHEAD = 500, 0.02, 8
TARGET = jobs.Target(0.15, is_least=False)
_A = np.array([[-0.1, 2.0], [-2.0, -0.1]])


def path() -> np.ndarray:
    """(POINTS, 2) places of y' = A y³ from (2, 0), every STEP; by Runge and Kutta, in 20 steps each."""

    def rate(y: np.ndarray) -> np.ndarray:
        return (y**3) @ _A

    y, h = np.array([2.0, 0.0]), STEP / 20
    places = [y]
    for _ in range(POINTS - 1):
        for _ in range(20):
            k1 = rate(y)
            k2 = rate(y + h / 2 * k1)
            k3 = rate(y + h / 2 * k2)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
        places.append(y)
    return np.array(places)


def data() -> list[np.ndarray]:
    """For each point, itself and the AHEAD following ones: 1 + AHEAD arrays (N, 2), with noise."""
    places = path()
    places = (places + np.random.default_rng(0).normal(0, 0.002, places.shape)).astype(np.float32)
    count = len(places) - AHEAD
    return [places[k : k + count] for k in range(1 + AHEAD)]


def flow(name: str, bottom: str, t: float = STEP) -> ODE:
    """The solution after a time t. All of them share their parameters."""
    start = {"w1": ((2, HIDDEN), Gaussian(0, 0.1)), "b1": ((HIDDEN,), 0.0), "w2": ((HIDDEN, 2), Gaussian(0, 0.1))}
    rate = jobs.layers().spiral_rate
    return ODE(rate, (0, t), params=start, rtol=1e-4, atol=1e-5, name=name, bottoms=[bottom], param_key="rate")


def net(pieces: list[np.ndarray]) -> Net:
    tops = [f"t{k}" for k in range(1 + AHEAD)]
    layers = [MemoryData(pieces, BATCH, shuffle=True, name="data", tops=tops)]
    for k in range(1, 1 + AHEAD):
        layers.append(flow(f"y{k}", f"y{k - 1}" if k > 1 else "t0"))
        layers.append(SquareLoss(name=f"loss{k}", bottoms=[f"y{k}", f"t{k}"]))
    return Net("spiral", layers, seed=1)


def drawn(spiral: Net) -> np.ndarray:
    """The path from its first point, as the net has learnt it."""
    one = Net("one", [Input([(2,)], tops=["t0"], name="input"), flow("y1", "t0")])
    for name, parameter in one.params["y1"].items():
        parameter.data[...] = spiral.params["y1"][name].data
    places = [np.array([[2.0, 0.0]], np.float32)]
    for _ in range(POINTS - 1):
        places.append(one.predict(places[-1]))
    return np.concatenate(places)


def error(places: np.ndarray) -> float:
    """Of a path, in parts of the true one: root mean squares."""
    truth = path()
    return float(np.sqrt(np.mean((places - truth) ** 2) / np.mean(truth**2)))


def run(epochs: int = EPOCHS, picture: bool = True) -> jobs.Result:
    pieces = data()
    spiral = net(pieces)
    total = epochs * -(-len(pieces[0]) // BATCH)
    solver = Adam(max_epoch=epochs, lr=LRPolicy.Cosine(1e-2, total))
    clock = jobs.Clock()
    jobs.solve(solver, spiral, total, clock)
    places = drawn(spiral)
    if picture:
        draw(places, pieces)
    return clock.result("error of the path", error(places), solver.state.iter)


def draw(places: np.ndarray, pieces: list[np.ndarray]) -> None:
    figure, axes = jobs.figure(1, 2, 11, 5)
    truth, times = path(), STEP * np.arange(POINTS)
    axes[0, 0].plot(*pieces[0].T, ".", ms=2, color="0.6", label="points to learn from")
    axes[0, 0].plot(*truth.T, lw=2, color="#8fb4d9", label="the path")
    axes[0, 0].plot(*places.T, "--", lw=1, color="#b03030", label="learnt")
    axes[0, 0].legend(loc="lower right", fontsize=8)
    axes[0, 0].set_aspect("equal")
    for k, name in enumerate("xy"):
        axes[0, 1].plot(times, truth[:, k], lw=2, color="#8fb4d9")
        axes[0, 1].plot(times, places[:, k], "--", lw=1, color="#b03030", label=f"{name}, learnt")
    axes[0, 1].set_xlabel("time")
    jobs.save(figure, "spiral")


if __name__ == "__main__":
    sys.exit(jobs.main(run, TARGET))
