"""A GRU that learns to write the Python manual, letter by letter.

    python examples/letters.py            (or: make example-letters)

The text is pydoc_data.topics, which comes with every Python: what `help("for")` shows. The last twentieth is kept
for the test. Measured in bits per character; xz makes 1.63 bits of each, but it reads the whole text.
"""

import sys
import textwrap

import jobs
import numpy as np

from layerc.runtime import (
    GRU,
    Adam,
    Embedding,
    Input,
    LRPolicy,
    MemoryData,
    Net,
    SoftmaxLoss,
    ValidationPerformance,
)

EPOCHS, STREAMS, STEPS, HIDDEN, EMBEDDED = 12, 32, 64, 160, 32
TARGET = jobs.Target(1.75, is_least=False)  # bits


def text() -> str:
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def data() -> tuple[str, list[np.ndarray], list[np.ndarray]]:
    """The alphabet; (N, T) letters and those that follow, to train with and to test.

    The training text is cut into STREAMS that are read side by side: each batch goes on where the last one ended, and
    so do the hidden values of a stateful GRU.
    """
    written = text()
    alphabet = "".join(sorted(set(written)))
    number = {letter: k for k, letter in enumerate(alphabet)}
    codes = np.array([number[letter] for letter in written])
    cut = len(codes) * 19 // 20
    batches = (cut - 1) // (STREAMS * STEPS)
    return alphabet, _windows(codes[:cut], STREAMS, batches, STEPS), _windows(codes[cut:], None, 1, 4 * STEPS)


def _windows(codes: np.ndarray, streams: int | None, batches: int, steps: int) -> list[np.ndarray]:
    if streams is None:
        streams = (len(codes) - 1) // (batches * steps)
    length = streams * batches * steps
    pair = []
    for shift in (0, 1):
        table = codes[shift : shift + length].reshape(streams, batches, steps)
        pair.append(np.ascontiguousarray(table.swapaxes(0, 1)).reshape(-1, steps))
    return pair


def net(alphabet: str, training: list[np.ndarray]) -> Net:
    layers = [
        MemoryData(training, STREAMS, name="data"),
        Embedding(len(alphabet), EMBEDDED, name="embedded", bottoms=["data"]),
        GRU(HIDDEN, stateful=True, name="gru", bottoms=["embedded"]),
        jobs.layers().Readout(classes=len(alphabet), name="readout", bottoms=["gru"], tops=["readout"]),
        SoftmaxLoss(axis=2, name="loss", bottoms=["readout", "label"]),
    ]
    return Net("letters", layers, seed=1)


def run(epochs: int = EPOCHS, picture: bool = True) -> jobs.Result:
    alphabet, training, test = data()
    writer = net(alphabet, training)
    total = epochs * (len(training[0]) // STREAMS)
    solver = Adam(max_epoch=epochs, lr=LRPolicy.Cosine(4e-3, total), clip_global_norm=1.0)
    if picture:
        solver.add(ValidationPerformance(test, len(test[0]), every_n_epoch=1))
    clock = jobs.Clock()
    jobs.solve(solver, writer, total, clock)
    measured = bits(writer, test)
    if picture:
        sample = write(writer, alphabet, "The for statement", 600)
        sample = "\n".join(textwrap.fill(line, 72) for line in sample.splitlines())
        print("\n" + textwrap.indent(sample, "    | ") + "\n")
        draw(solver, sample)
    return clock.result("bits per character", measured, solver.state.iter)


def bits(writer: Net, test: list[np.ndarray]) -> float:
    """Per character of the test windows, each read from zeros, as they are more than there are streams."""
    return float(writer.evaluate(test, len(test[0]))["loss.loss"] / np.log(2))


def write(writer: Net, alphabet: str, start: str, count: int, temperature: float = 0.6) -> str:
    """Let the net go on after `start`: one letter at a time, with its hidden values from hand to hand."""
    step = Net(
        "step",
        [
            Input([(None,), (HIDDEN,)], tops=["letter", "before"], name="input"),
            Embedding(len(alphabet), EMBEDDED, name="embedded", bottoms=["letter"]),
            GRU(HIDDEN, name="gru", bottoms=["embedded", "before"]),
            jobs.layers().Readout(classes=len(alphabet), name="readout", bottoms=["gru"], tops=["readout"]),
        ],
    )
    hidden, written, rng = np.zeros((1, HIDDEN), np.float32), start, np.random.default_rng(1)
    letters = np.array([[alphabet.index(letter) for letter in start]])
    step.forward(data={"letter": letters, "before": hidden}, phase="predict")
    for layer, own in step.params.items():
        for name, parameter in own.items():
            parameter.data[...] = writer.params[layer][name].data
    for _ in range(count):
        step.forward(data={"letter": letters, "before": hidden}, phase="predict")
        hidden = step.blobs["gru"].data[:, -1].copy()
        scores = step.blobs["readout"].data[0, -1].astype(np.float64) / temperature
        p = np.exp(scores - scores.max())
        letters = rng.choice(len(alphabet), (1, 1), p=p / p.sum())
        written += alphabet[letters[0, 0]]
    return written


def draw(solver: Adam, sample: str) -> None:
    figure, axes = jobs.figure(1, 2, 12, 5)
    values = solver.lounge.statistics["validation.loss.loss"]
    axes[0, 0].plot(list(values), np.array(list(values.values())) / np.log(2), marker="o", ms=3)
    axes[0, 0].set(xlabel="iteration", ylabel="bits per character, test")
    axes[0, 0].grid(alpha=0.3)
    axes[0, 1].axis("off")
    axes[0, 1].text(0, 1, sample.replace("$", r"\$"), va="top", family="monospace", fontsize=7)
    jobs.save(figure, "letters")


if __name__ == "__main__":
    sys.exit(jobs.main(run, TARGET))
