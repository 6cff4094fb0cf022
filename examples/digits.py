"""Compile five layers, look at a gradient, train handwritten digits with them, and check every gradient.

    python examples/digits.py            (or: make demo)

Needs scikit-learn, matplotlib and tqdm: pip install 'layerc[demo]'.
"""

import importlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jobs
import numpy as np

from layerc.runtime import (
    SGD,
    Accuracy,
    Dropout,
    Function,
    InnerProduct,
    Input,
    LRPolicy,
    MemoryData,
    Net,
    Plot,
    ProgressBar,
    SoftmaxLoss,
    ValidationPerformance,
)

HERE = Path(__file__).resolve().parent
OUT = HERE / "out"
TARGET = 0.975  # test accuracy
WORST = 1e-6  # relative error of a gradient, in float64
EPOCHS, BATCH = 50, 64


# -- saying things -----------------------------------------------------------------------------------------

COLOUR = sys.stdout.isatty()


def styled(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def chapter(number: int, title: str) -> None:
    print(f"\n{styled('1;36', f'{number}. {title}')}\n", flush=True)


def indented(text: str) -> str:
    return "\n".join("    " + line if line else "" for line in text.rstrip().splitlines())


# -- 1. build ----------------------------------------------------------------------------------------------


def build() -> Any:
    """Compile layers.py and import what came of it."""
    command = [sys.executable, "-m", "layerc.cli", "build", str(HERE / "layers.py")]
    print(f"    $ layerc build {HERE.name}/layers.py", flush=True)
    start = time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.stdout.strip():
        print(indented(result.stdout))
    if result.returncode:
        sys.exit(result.returncode)
    print(f"    {HERE.name}/layers_compiled/ after {time.perf_counter() - start:.1f} s")
    sys.path.insert(0, str(HERE))
    return importlib.import_module("layers_compiled")


# -- 2. train ----------------------------------------------------------------------------------------------


def digits() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """1,797 images of 8x8 pixels: 1,437 to train with, 360 to test, each digit in proportion."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError:
        sys.exit("this demo needs scikit-learn: pip install 'layerc[demo]'")
    x, t = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    x_train, x_test, t_train, t_test = train_test_split(x, t, test_size=360, stratify=t, random_state=0)
    return [x_train, t_train], [x_test, t_test]


def layers(L: Any, source: Any, wide: int = 256, ratio: float = 0.5) -> list[Any]:
    """Three inner products; in between the compiled SReLU, learnable in each of its channels, and dropout."""
    return [
        source,
        Dropout(name="drop0", bottoms=["data"], ratio=ratio / 5),
        InnerProduct(name="ip1", bottoms=["data"], output_dim=wide),
        L.SReLU(name="act1", bottoms=["ip1"], tops=["act1"]),
        Dropout(name="drop1", bottoms=["act1"], ratio=ratio),
        InnerProduct(name="ip2", bottoms=["act1"], output_dim=wide),
        L.SReLU(name="act2", bottoms=["ip2"], tops=["act2"]),
        Dropout(name="drop2", bottoms=["act2"], ratio=ratio),
        InnerProduct(name="ip3", bottoms=["act2"], output_dim=10),
        SoftmaxLoss(name="loss", bottoms=["ip3", "label"]),
        Accuracy(name="accuracy", bottoms=["ip3", "label"]),
    ]


def job(L: Any, training: list[np.ndarray], epochs: int = EPOCHS) -> tuple[Net, SGD, int]:
    """A net, its solver, and how many iterations that will take."""
    net = Net("digits", layers(L, MemoryData(training, BATCH, shuffle=True, name="data")), seed=1)
    total = epochs * -(-len(training[0]) // BATCH)
    return net, SGD(max_epoch=epochs, lr=LRPolicy.Cosine(0.1, total), momentum=0.9, regu_coef=1e-4), total


def run(epochs: int = EPOCHS, picture: bool = True) -> jobs.Result:
    """The training alone, for compare.py."""
    training, test = digits()
    net, solver, total = job(jobs.layers("layers"), training, epochs)
    if picture:
        OUT.mkdir(exist_ok=True)
        solver.add(Plot(OUT / "digits.png", every_n_iter=1))
    clock = jobs.Clock()
    jobs.solve(solver, net, total, clock)
    return clock.result("test accuracy", net.evaluate(test)["accuracy.accuracy"], solver.state.iter)


def train(L: Any, training: list[np.ndarray], test: list[np.ndarray]) -> tuple[Net, float]:
    """Train; returns the net and its accuracy on the test set."""
    net, solver, total = job(L, training)
    print(indented(str(net)), "\n", flush=True)

    validation = ValidationPerformance(test, every_n_epoch=1)
    solver.add(validation)
    solver.add(Plot(OUT / "digits.png", every_n_iter=1))
    if sys.stderr.isatty():
        solver.add(ProgressBar(total))
    else:
        solver.add(Function(lambda s, n: report(s.state, validation), every_n_epoch=5))

    start = time.perf_counter()
    solver.solve(net)
    seconds = time.perf_counter() - start
    accuracy = validation.statistics["accuracy.accuracy"]
    wrong = round((1 - accuracy) * len(test[0]))
    print(f"\n    {solver.state.iter} iterations in {seconds:.1f} s, {1e6 * seconds / solver.state.iter:.0f} us each")
    print(f"    test accuracy {styled('1;32', f'{accuracy:.2%}')}: {wrong} of {len(test[0])} wrong")
    return net, accuracy


def report(state: Any, validation: ValidationPerformance) -> None:
    """A line for those who have no terminal."""
    accuracy = validation.statistics["accuracy.accuracy"]
    print(
        f"    epoch {state.epoch:3d}   objective {state.obj_val:.4f}   test accuracy {accuracy:.2%}",
        flush=True,
    )


# -- 3. check ----------------------------------------------------------------------------------------------


def check(L: Any, trained: Net, test: list[np.ndarray], samples: int = 12, step: float = 1e-5) -> float:
    """Compare gradients of the trained net, in float64, with central differences of its loss.

    A few entries of each parameter, by a fixed draw; without dropout. Prints each parameter's worst
    relative error, returns
    the worst.
    """
    placeholder = Input([(64,), ()], ["data", "label"], name="data")
    net = Net("check", layers(L, placeholder, ratio=0.0), dtype=np.float64)
    for name, p in trained.named_parameters().items():
        net.named_parameters()[name].data[...] = p.data
    feed = {"data": test[0][:50].astype(np.float64), "label": test[1][:50]}
    net.forward_backward(data=feed)
    gradients = {name: p.gradient.copy() for name, p in net.named_parameters().items()}

    rng, worst = np.random.default_rng(0), 0.0
    for name, p in net.named_parameters().items():
        # Entries that do nothing have nothing to compare: a slope that no example meets, a pixel always
        # white.
        live = np.flatnonzero(np.abs(gradients[name]) > 1e-7)
        errors = []
        for k in rng.choice(live, min(samples, live.size), replace=False):
            place = np.unravel_index(k, p.shape)
            value = p.data[place]
            losses = []
            for shift in (step, -step):
                p.data[place] = value + shift
                losses.append(net.forward(data=feed))
            p.data[place] = value
            expected = (losses[0] - losses[1]) / (2 * step)
            scale = max(abs(expected), abs(gradients[name][place]), 1e-3 * np.abs(gradients[name]).max())
            errors.append(abs(gradients[name][place] - expected) / scale)
        error = max(errors, default=0.0)
        worst = max(worst, error)
        shape = "x".join(map(str, p.shape))
        print(
            f"    {name:<22} {shape:>8}   {len(errors):2d} entries   worst relative error {error:.1e}",
            flush=True,
        )
    return worst


def main() -> int:
    start = time.perf_counter()
    OUT.mkdir(exist_ok=True)

    chapter(1, "Compile five layers that no framework ships")
    L = build()
    print("\n    SReLU, as its author wrote it in layers.py:\n")
    print(indented(L.SReLU.source))
    print("\n    and its gradient, as layerc wrote it:\n")
    print(indented(L.SReLU.gradient_source))

    chapter(2, "Train a net of compiled layers on handwritten digits")
    training, test = digits()
    net, accuracy = train(L, training, test)

    chapter(3, "Compare its gradients with finite differences, in float64")
    worst = check(L, net, test)

    chapter(4, "Result")
    good = [
        (accuracy >= TARGET, f"test accuracy {accuracy:.2%} (wanted: {TARGET:.1%})"),
        (worst <= WORST, f"worst relative error of a gradient {worst:.1e} (wanted: {WORST:.0e})"),
    ]
    for passed, text in good:
        print(f"    {styled('1;32', 'ok  ') if passed else styled('1;31', 'BAD ')} {text}")
    print(f"    in {time.perf_counter() - start:.0f} s\n")
    print("    Look next at")
    shown = HERE.relative_to(Path.cwd()) if HERE.is_relative_to(Path.cwd()) else HERE
    for what, why in (
        ("out/digits.png", "the training curve"),
        ("layers_compiled/gradients.py", "all five gradients, plain NumPy"),
        ("layers_compiled/layers.c", "the C of both"),
    ):
        print(f"        {shown / what!s:<40} {why}")
    print(f"        {'layerc explain ' + str(shown / 'layers.py'):<40} forward, gradient and C side by side")
    return 0 if all(passed for passed, _ in good) else 1


if __name__ == "__main__":
    sys.exit(main())
