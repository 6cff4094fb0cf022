"""Reading strips of handwritten digits, nobody having said where one ends and the next begins: CTC.

    python examples/strips.py            (or: make example-strips)

Graves et al., "Connectionist temporal classification", 2006. The strips are made here: scikit-learn's digits in random
order, their margins cut off, with gaps of chance and noise. Two GRUs read the columns, one of them from the right.
"""

import sys

import jobs
import numpy as np

from layerc.runtime import GRU, Adam, CompiledLayer, Concat, CTCLoss, Function, LRPolicy, MemoryData, Net

EPOCHS, BATCH, STRIPS, HIDDEN, WIDTH = 8, 32, 3000, 64, 64
DIGITS = (3, 7)  # in a strip, from 3 to 6
TARGET = jobs.Target(0.95)


def data() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Strips (N, WIDTH, 8) of columns and their labels (N, 6): 1 + digit, -1 behind the last. Digits in the test are
    none of those trained with."""
    from sklearn.model_selection import train_test_split

    images, digits = jobs.load("digits", return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 8, 8)
    seen, unseen = train_test_split(np.arange(len(digits)), test_size=360, stratify=digits, random_state=0)
    return _strips(images[seen], digits[seen], STRIPS, 1), _strips(images[unseen], digits[unseen], 300, 2)


def _strips(images: np.ndarray, digits: np.ndarray, count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.zeros((count, WIDTH, 8), np.float32)
    labels = np.full((count, DIGITS[1] - 1), -1)
    for strip, label in zip(x, labels):
        at = rng.integers(0, 4)
        for place, k in enumerate(rng.integers(len(digits), size=rng.integers(*DIGITS))):
            inked = np.flatnonzero(images[k].max(axis=0) > 0.1)
            columns = images[k].T[inked[0] : inked[-1] + 1]
            if at + len(columns) > WIDTH:
                break
            strip[at : at + len(columns)] = columns
            label[place] = 1 + digits[k]
            at += len(columns) + rng.integers(0, 4)
    return [x + rng.normal(0, 0.05, x.shape).astype(np.float32), labels]


def net(training: list[np.ndarray]) -> Net:
    L = jobs.layers()
    layers = [
        MemoryData(training, BATCH, shuffle=True, name="data"),
        GRU(HIDDEN, name="rightwards", bottoms=["data"]),
        CompiledLayer(L.backwards, name="mirrored", bottoms=["data"]),
        GRU(HIDDEN, name="mirror", bottoms=["mirrored"]),
        CompiledLayer(L.backwards, name="leftwards", bottoms=["mirror"]),
        Concat(2, name="both", bottoms=["rightwards", "leftwards"]),
        L.Readout(classes=11, name="scores", bottoms=["both"], tops=["scores"]),
        CTCLoss(blank=0, name="loss", bottoms=["scores", "label"]),
    ]
    return Net("strips", layers, seed=1)


def read(scores: np.ndarray) -> list[list[int]]:
    """Each strip's digits: the best label of each column, repeats taken together, blanks left out."""
    best = scores.argmax(2)
    return [[int(k) - 1 for k, before in zip(row, [0, *row]) if k not in (0, before)] for row in best]


def right(scores: np.ndarray, labels: np.ndarray) -> float:
    """1 - edit distance / number of digits."""
    truth = [[int(k) - 1 for k in row if k > 0] for row in labels]
    wrong = sum(_distance(a, b) for a, b in zip(read(scores), truth))
    return 1 - wrong / sum(map(len, truth))


def _distance(a: list[int], b: list[int]) -> int:
    """Levenshtein's."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != other))
    return row[-1]


def run(epochs: int = EPOCHS, picture: bool = True) -> jobs.Result:
    training, test = data()
    reader = net(training)
    total = epochs * -(-STRIPS // BATCH)
    solver = Adam(max_epoch=epochs, lr=LRPolicy.Cosine(6e-3, total), clip_global_norm=5.0)
    history: dict[int, float] = {}
    if picture:
        note = Function(
            lambda s, n: history.update({s.state.iter: right(n.predict(test[0]), test[1])}), every_n_epoch=1
        )
        solver.add(note)
    clock = jobs.Clock()
    jobs.solve(solver, reader, total, clock)
    scores = reader.predict(test[0])
    if picture:
        draw(history, test, scores)
    return clock.result("digits read right", right(scores, test[1]), solver.state.iter)


def draw(history: dict[int, float], test: list[np.ndarray], scores: np.ndarray) -> None:
    """Four strips, what is read, and how sure the net is of which digit at each column; the training."""
    figure, axes = jobs.figure(9, 1, 9, 10)
    e = np.exp(scores - scores.max(2, keepdims=True))
    p = e / e.sum(2, keepdims=True)
    for k, digits in enumerate(read(scores[:4])):
        strip, sure = axes[2 * k, 0], axes[2 * k + 1, 0]
        strip.imshow(test[0][k].T, cmap="gray_r", aspect="auto")
        strip.set_title("read: " + " ".join(map(str, digits)), loc="left", fontsize=9)
        sure.imshow(p[k].T[1:], cmap="Blues", aspect="auto", vmin=0, vmax=1)
        sure.set_yticks([0, 9])
        strip.axis("off")
        sure.set_xticks([])
    axes[8, 0].plot(list(history), list(history.values()), marker="o", ms=3)
    axes[8, 0].set(xlabel="iteration", ylabel="right", ylim=(0.7, 1))
    axes[8, 0].grid(alpha=0.3)
    jobs.save(figure, "strips")


if __name__ == "__main__":
    sys.exit(jobs.main(run, TARGET))
