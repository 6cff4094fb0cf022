"""The layers of the training jobs that no framework ships: jobs.py builds them into job_layers_compiled/."""

import numpy as np

from layerc import Layer, Param, Random, config, init, layer, real


@layer
def scaled_tanh(x: real["*S"]) -> real["*S"]:
    """1.7159 tanh(2x/3), which maps 1 to 1: LeCun et al., "Efficient BackProp", 1998."""
    return 1.7159 * np.tanh(2 / 3 * x)


@layer(batched=True)
def gaussians(x: real["N D"], centers: Param[real["K D"]], log_width: Param[real["K"]]) -> real["N K"]:
    """exp(-|x_n - c_k|² / (D w_k²)): how near x is to each center (Broomhead and Lowe 1988)."""
    d = x[:, None, :] - centers
    return np.exp(-np.mean(d * d, axis=-1) * np.exp(-2 * log_width))


@layer
def spiral_rate(
    t: real,
    y: real["2"],
    w1: Param[real["2 H"]],
    b1: Param[real["H"]],
    w2: Param[real["H 2"]],
) -> real["2"]:
    """dy/dt of a neural differential equation in the plane: tanh(y³ w1 + b1) w2 (Chen et al. 2018)."""
    return np.tanh((y * y * y) @ w1 + b1) @ w2


@layer
def sampled(mu: real["D"], sigma: real["D"], rng: Random) -> real["D"]:
    """A draw from N(mu, sigma²) that lets gradients through to both (Kingma and Welling 2014)."""
    return mu + sigma * rng.standard_normal(mu.shape)


class Readout(Layer):
    """Scores of `classes` classes at each step of a sequence."""

    classes: int = config(check=lambda n: n > 0)
    weight: Param[real["H classes"]] = init.xavier()
    bias: Param[real["classes"]] = init.zeros()

    def predict(self, h: real["T H"]) -> real["T classes"]:
        return h @ self.weight + self.bias


@layer
def backwards(x: real["T D"]) -> real["T D"]:
    """The sequence from its end to its start."""
    return x[::-1]
