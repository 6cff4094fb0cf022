"""A convolutional net of LeNet's shape on scikit-learn's handwritten digits, 98.5 % or more of the test set right.

    python examples/lenet.py            (or: make example-lenet)

LeCun et al., "Gradient-based learning applied to document recognition", 1998; with its scaled tanh, a compiled
layer. The images are 8x8 pixels, so the filters are 3x3. Each is shifted by up to a pixel as it is trained with.
"""

import sys

import jobs
import numpy as np

from layerc.runtime import (
    Accuracy,
    Adam,
    Convolution,
    Crop,
    Dropout,
    InnerProduct,
    LRPolicy,
    MemoryData,
    Net,
    Pooling,
    SoftmaxLoss,
    ValidationPerformance,
)

EPOCHS, BATCH = 60, 64
TARGET = jobs.Target(0.985)


def data() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """1,437 images to train with and 360 to test, (N, 1, 10, 10): a border of one pixel to shift them in."""
    from sklearn.model_selection import train_test_split

    x, t = jobs.load("digits", return_X_y=True)
    x = np.pad((x / 16).astype(np.float32).reshape(-1, 1, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1)))
    x_train, x_test, t_train, t_test = train_test_split(x, t, test_size=360, stratify=t, random_state=0)
    return [x_train, t_train], [x_test, t_test]


def net(training: list[np.ndarray]) -> Net:
    squash = jobs.layers().scaled_tanh
    layers = [
        MemoryData(training, BATCH, shuffle=True, name="data"),
        Crop((8, 8), random_crop=True, name="shifted", bottoms=["data"]),
        Convolution(16, kernel=3, pad=1, name="c1", bottoms=["shifted"], neuron=squash),
        Pooling("max", kernel=2, stride=2, name="s2", bottoms=["c1"]),
        Convolution(32, kernel=3, pad=1, name="c3", bottoms=["s2"], neuron=squash),
        Pooling("max", kernel=2, stride=2, name="s4", bottoms=["c3"]),
        InnerProduct(120, name="f5", bottoms=["s4"], neuron=squash),
        Dropout(0.5, bottoms=["f5"], name="drop"),
        InnerProduct(10, name="f6", bottoms=["f5"]),
        SoftmaxLoss(name="loss", bottoms=["f6", "label"]),
        Accuracy(name="accuracy", bottoms=["f6", "label"]),
    ]
    return Net("lenet", layers, seed=1)


def run(epochs: int = EPOCHS, picture: bool = True) -> jobs.Result:
    training, test = data()
    lenet = net(training)
    total = epochs * -(-len(training[0]) // BATCH)
    solver = Adam(max_epoch=epochs, lr=LRPolicy.Cosine(2e-3, total), regu_coef=1e-4)
    if picture:
        solver.add(ValidationPerformance(test, every_n_epoch=1))
    clock = jobs.Clock()
    jobs.solve(solver, lenet, total, clock)
    if picture:
        draw(lenet, solver, test)
    return clock.result("test accuracy", lenet.evaluate(test)["accuracy.accuracy"], solver.state.iter)


def draw(lenet: Net, solver: Adam, test: list[np.ndarray]) -> None:
    """The first filters and what they make of a digit; the digits that are taken for others; the accuracy."""
    x, t = test
    found = lenet.predict(x).argmax(1)
    wrong = np.flatnonzero(found != t)[:8]
    figure, axes = jobs.figure(5, 8, 9, 7)
    for ax in axes.ravel():
        ax.axis("off")
    filters, seen = lenet.params["c1"]["weight"].data, lenet.predict(x[:1], top="c1")
    for k in range(8):
        axes[0, k].imshow(filters[k, 0], cmap="RdBu", vmin=-1, vmax=1)
        axes[1, k].imshow(seen[0, k], cmap="gray")
    axes[0, 0].set_title("filters, and what they see", loc="left", fontsize=9)
    for ax, k in zip(axes[2], wrong):
        ax.imshow(x[k, 0], cmap="gray_r")
        ax.set_title(f"{t[k]}, not {found[k]}", fontsize=9)
    grid = axes[3, 0].get_gridspec()
    for ax in axes[3:].ravel():
        ax.remove()
    curve = figure.add_subplot(grid[3:, :])
    values = solver.lounge.statistics["validation.accuracy.accuracy"]
    curve.plot(list(values), list(values.values()))
    curve.set(ylim=(0.9, 1), xlabel="iteration", ylabel="test accuracy")
    curve.grid(alpha=0.3)
    jobs.save(figure, "lenet")


if __name__ == "__main__":
    sys.exit(jobs.main(run, TARGET))
