"""Two tables: wine by its chemistry, by a net of Gaussians; tumours by the shape of their cells, by a soft margin.

    python examples/tabular.py            (or: make example-tabular)

Both come with scikit-learn. Wine (178 rows, 13 columns, 3 growers) is told by how near it is to learnt centers: a
compiled layer. Breast cancer (569 rows, 30 columns) by a small net whose loss is the hinge of a support vector machine.
Accuracies are means over five parts, each the test of a net that was trained with the other four.
"""

import sys

import jobs
import numpy as np

from layerc.runtime import (
    Accuracy,
    Adam,
    BinaryAccuracy,
    CompiledLayer,
    Gaussian,
    HingeLoss,
    InnerProduct,
    LRPolicy,
    MemoryData,
    Net,
    Neurons,
    SoftmaxLoss,
    ValidationPerformance,
)

EPOCHS, BATCH, CENTERS, HIDDEN = 60, 32, 24, 32
TARGET = jobs.Target(0.96)
TABLES = {"wine": 1e-3, "breast_cancer": 1e-2}  # and how much their weights are held back


def parts(table: str) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """(training, test) five times, columns scaled to mean 0 and variance 1 by the training rows.

    Targets: 0, 1, 2 for wine; (N, 1) of -1 and 1 for cancer, as the hinge loss wants them.
    """
    from sklearn.model_selection import StratifiedKFold

    x, t = jobs.load(table, return_X_y=True)
    target = t if table == "wine" else (2.0 * t[:, None] - 1).astype(np.float32)
    pairs = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(x, t):
        scaled = ((x - x[train].mean(0)) / x[train].std(0)).astype(np.float32)
        pairs.append(([scaled[train], target[train]], [scaled[test], target[test]]))
    return pairs


def net(table: str, training: list[np.ndarray]) -> Net:
    source = MemoryData(training, BATCH, shuffle=True, name="data")
    columns = training[0].shape[1]
    if table == "wine":
        start = {"centers": ((CENTERS, columns), Gaussian()), "log_width": ((CENTERS,), 0.0)}
        layers = [
            CompiledLayer(jobs.layers().gaussians, params=start, name="near", bottoms=["data"]),
            InnerProduct(3, name="scores", bottoms=["near"]),
            SoftmaxLoss(name="loss", bottoms=["scores", "label"]),
            Accuracy(name="accuracy", bottoms=["scores", "label"]),
        ]
    else:
        layers = [
            InnerProduct(HIDDEN, name="hidden", bottoms=["data"], neuron=Neurons.GELU()),
            InnerProduct(1, name="margin", bottoms=["hidden"]),
            HingeLoss(name="loss", bottoms=["margin", "label"]),
            BinaryAccuracy(0.0, name="accuracy", bottoms=["margin", "label"]),
        ]
    return Net(table, [source, *layers], seed=1)


def run(epochs: int = EPOCHS, picture: bool = True) -> jobs.Result:
    """Train ten nets; the result is the lower of the two accuracies."""
    clock, curves, means, iterations = jobs.Clock(), {}, {}, 0
    for table, held in TABLES.items():
        accuracies = []
        for training, test in parts(table):
            one = net(table, training)
            total = epochs * -(-len(training[0]) // BATCH)
            solver = Adam(max_epoch=epochs, lr=LRPolicy.Cosine(1e-2, total), regu_coef=held)
            if picture:
                solver.add(ValidationPerformance(test, every_n_epoch=1))
            jobs.solve(solver, one, total, clock, lines=0)
            iterations += solver.state.iter
            accuracies.append(one.evaluate(test)["accuracy.accuracy"])
            curves[table, len(accuracies)] = solver.lounge.statistics.get("validation.accuracy.accuracy", {})
        means[table] = float(np.mean(accuracies))
        print(f"    {table}: {means[table]:.2%}, from {min(accuracies):.2%} to {max(accuracies):.2%}", flush=True)
    if picture:
        draw(curves)
    return clock.result("test accuracy", min(means.values()), iterations)


def draw(curves: dict[tuple[str, int], dict[int, float]]) -> None:
    figure, axes = jobs.figure(1, 2, 10, 4)
    for (table, part), values in curves.items():
        ax = axes[0, list(TABLES).index(table)]
        ax.plot(list(values), list(values.values()), lw=1, label=f"part {part}")
        ax.set(title=table, xlabel="iteration", ylabel="test accuracy", ylim=(0.8, 1.005))
        ax.grid(alpha=0.3)
    axes[0, 0].legend(frameon=False, loc="lower right")
    jobs.save(figure, "tabular")


if __name__ == "__main__":
    sys.exit(jobs.main(run, TARGET))
