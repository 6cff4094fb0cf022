"""A variational autoencoder of handwritten digits.

    python examples/vae.py            (or: make example-vae)

Kingma and Welling, "Auto-encoding variational Bayes", 2014. Ten numbers stand for an image of 8x8; they are drawn from
a normal distribution that the encoder gives, by a compiled layer with a random generator.
"""

import sys

import jobs
import numpy as np

from layerc.runtime import (
    Adam,
    BinaryCrossEntropyLoss,
    CompiledLayer,
    GaussianKLLoss,
    InnerProduct,
    Input,
    LRPolicy,
    MemoryData,
    Net,
    Neurons,
    ValidationPerformance,
)

EPOCHS, BATCH, HIDDEN, LATENT = 150, 64, 200, 10
TARGET = jobs.Target(27.0, is_least=False)  # nats


def data() -> tuple[np.ndarray, np.ndarray]:
    """1,437 images to train with, 360 to test: (N, 64), from 0 to 1."""
    from sklearn.model_selection import train_test_split

    x, t = jobs.load("digits", return_X_y=True)
    x_train, x_test = train_test_split((x / 16).astype(np.float32), test_size=360, stratify=t, random_state=0)
    return x_train, x_test


def decoder(code: str) -> list[InnerProduct]:
    return [
        InnerProduct(HIDDEN, name="decode", bottoms=[code], neuron=Neurons.ReLU()),
        InnerProduct(64, name="image", bottoms=["decode"], neuron=Neurons.Sigmoid()),
    ]


def net(training: np.ndarray) -> Net:
    layers = [
        MemoryData([training], BATCH, shuffle=True, name="data", tops=["data"]),
        InnerProduct(HIDDEN, name="encode", bottoms=["data"], neuron=Neurons.ReLU()),
        InnerProduct(LATENT, name="mu", bottoms=["encode"]),
        InnerProduct(LATENT, name="sigma", bottoms=["encode"], neuron=Neurons.Exponential()),
        CompiledLayer(jobs.layers().sampled, name="code", bottoms=["mu", "sigma"]),
        *decoder("code"),
        BinaryCrossEntropyLoss(name="likeness", bottoms=["image", "data"]),
        GaussianKLLoss(name="prior", bottoms=["mu", "sigma"]),
    ]
    return Net("vae", layers, seed=1)


def run(epochs: int = EPOCHS, picture: bool = True) -> jobs.Result:
    training, test = data()
    vae = net(training)
    total = epochs * -(-len(training) // BATCH)
    solver = Adam(max_epoch=epochs, lr=LRPolicy.Cosine(3e-3, total))
    if picture:
        solver.add(ValidationPerformance([test], every_n_epoch=1))
    clock = jobs.Clock()
    jobs.solve(solver, vae, total, clock)
    if picture:
        draw(vae, solver, test)
    found = vae.evaluate([test])
    nats = found["likeness.loss"] + found["prior.loss"]
    return clock.result("nats per image", nats, solver.state.iter)


def draw(vae: Net, solver: Adam, test: np.ndarray) -> None:
    """Images and what becomes of them; images drawn from nothing; the way from one to another; the training."""
    dream = Net("dream", [Input([(LATENT,)], tops=["code"], name="input"), *decoder("code")], seed=1)
    for layer, own in dream.params.items():
        for name, parameter in own.items():
            parameter.data[...] = vae.params[layer][name].data
    codes = vae.predict(test, top="mu")
    along = np.linspace(0, 1, 12, dtype=np.float32)[:, None]
    rows = (
        ("test images", test[:12]),
        ("made again", vae.predict(test[:12], top="image")),
        ("dreamt", dream.predict(np.random.default_rng(1).standard_normal((12, LATENT)).astype(np.float32))),
        ("from one to another", dream.predict((1 - along) * codes[0] + along * codes[1])),
    )
    figure, axes = jobs.figure(6, 12, 9, 7)
    for ax in axes.ravel():
        ax.axis("off")
    for line, (title, images) in zip(axes, rows):
        line[0].set_title(title, loc="left", fontsize=9)
        for ax, image in zip(line, images):
            ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    grid = axes[4, 0].get_gridspec()
    curve = figure.add_subplot(grid[4:, :])
    for name in ("likeness", "prior"):
        values = solver.lounge.statistics[f"validation.{name}.loss"]
        curve.plot(list(values), list(values.values()), label=name)
    curve.set(xlabel="iteration", ylabel="nats per test image", ylim=(0, 35))
    curve.legend(frameon=False)
    curve.grid(alpha=0.3)
    jobs.save(figure, "vae")


if __name__ == "__main__":
    sys.exit(jobs.main(run, TARGET))
