"""Train the digits net, build it whole, and read digits with it from a C program that has no Python.

    python examples/ahead.py            (or: make aot)

Needs scikit-learn, matplotlib and tqdm: pip install 'layerc[demo]'.
"""

import importlib
import shlex
import subprocess
import sys
from typing import Any

import digits
import numpy as np
from digits import HERE, OUT, chapter, indented

from layerc.runtime import SGD, LRPolicy, MemoryData, Net

EPOCHS = 12
BUILT = OUT / "digits_ahead"


def shell(*command: Any) -> str:
    words = [str(word).replace(f"{HERE}/", "") for word in command]
    print(f"    $ {shlex.join(words).replace(shlex.quote(sys.executable) + ' -m layerc.cli', 'layerc')}", flush=True)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def train(L: Any, training: list[np.ndarray], test: list[np.ndarray]) -> Net:
    """A small net, quickly."""
    source = MemoryData(training, 64, shuffle=True, name="data")
    net = Net("digits", digits.layers(L, source, wide=64, ratio=0.2), seed=1)
    total = EPOCHS * -(-len(training[0]) // 64)
    solver = SGD(max_epoch=EPOCHS, lr=LRPolicy.Cosine(0.1, total), momentum=0.9, regu_coef=1e-4)
    solver.solve(net)
    accuracy = net.evaluate(test)["accuracy.accuracy"]
    net.save(OUT / "digits.safetensors")
    print(
        f"    {solver.state.iter} iterations, test accuracy {accuracy:.2%}; the weights are in out/digits.safetensors"
    )
    return net


def main() -> int:
    OUT.mkdir(exist_ok=True)
    chapter(1, "Train the net, in Python")
    L = digits.build()
    training, test = digits.digits()
    net = train(L, training, test)

    chapter(2, "Build it whole")
    print(indented(shell(sys.executable, "-m", "layerc.cli", "build", HERE / "digits_net.py:net", "-o", BUILT)))

    chapter(3, "Read digits with a C program")
    np.savetxt(OUT / "digits.csv", test[0], fmt="%.9g", delimiter=",")
    flags = ["-O3", "-march=native", "-fopenmp", "-lm"]
    shell("cc", HERE / "digits_main.c", BUILT / "net.c", f"-I{BUILT}", *flags, "-o", OUT / "digits")
    lines = [
        line.split() for line in shell(OUT / "digits", OUT / "digits.safetensors", OUT / "digits.csv").splitlines()
    ]
    classes, scores = (
        np.array([int(w[0]) for w in lines]),
        np.array([w[1:] for w in lines], np.float64).astype(np.float32),
    )
    for row in lines[:3]:
        print(f"    {row[0]}   {' '.join(f'{float(score):7.2f}' for score in row[1:])}")
    print(f"    ... {len(lines)} digits")

    chapter(4, "Compare")
    good = [
        (f"test accuracy of the C program {np.mean(classes == test[1]):.2%}", np.mean(classes == test[1]) > 0.95),
        ("its scores are those of the net, to the last bit", np.array_equal(scores, net.predict(test[0]))),
        ("three steps of training are the solver's, to the last bit", steps_agree(training)),
    ]
    for text, passed in good:
        print(f"    {'ok  ' if passed else 'BAD '} {text}")
    return 0 if all(passed for _, passed in good) else 1


def steps_agree(training: list[np.ndarray]) -> bool:
    """Whether `train_step` of the package does what `solver.step` does."""
    sys.path[:0] = [str(OUT), str(HERE)]
    built = importlib.import_module(BUILT.name)
    script = importlib.import_module("digits_net")
    net, solver = script.net, script.solver
    solver.init(net)
    forward = net.forward
    for k in range(3):
        x, t = (a[64 * k : 64 * (k + 1)] for a in training)
        net.forward = lambda regu=0.0, x=x, t=t: forward(regu, data={"data": x, "label": t})
        if solver.step(net) != built.train_step(x, t):
            return False
    return all(np.array_equal(p.data, built.params[name]) for name, p in net.named_parameters().items())


if __name__ == "__main__":
    sys.exit(main())
