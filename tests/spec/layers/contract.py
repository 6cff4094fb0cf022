"""The layers of SPEC itself, and one for every role and every way of giving a backward."""

import numpy as np

from layerc import Layer, Memory, Param, State, bool_, config, i64, init, layer, real


@layer
def mish(x: real["*S"]) -> real["*S"]:
    return x * np.tanh(np.log1p(np.exp(x)))


@layer(batched=True)
def rbf(x: real["N D"], centers: Param[real["K D"]], gamma: Param[real["K"]]) -> real["N K"]:
    d = x[:, None, :] - centers
    return np.exp(-gamma * np.sum(d * d, axis=-1))


class SReLU(Layer):
    """S-shaped ReLU: per-channel thresholds and slopes (Hu et al. 2019)."""

    left_threshold: Param[real["C"]] = init.uniform(-1, 0)
    left_slope: Param[real["C"]] = init.uniform(0, 1)
    right_threshold: Param[real["C"]] = init.uniform(0, 1)
    right_slope: Param[real["C"]] = init.uniform(0, 1)

    def predict(self, x: real["C *S"]) -> real["C *S"]:
        tl, al = self.left_threshold[:, None], self.left_slope[:, None]
        tr, ar = self.right_threshold[:, None], self.right_slope[:, None]
        return np.where(x <= tl, tl + al * (x - tl), np.where(x >= tr, tr + ar * (x - tr), x))


class RunningMean(Layer):
    """Subtracts a mean that training updates."""

    batched = True
    mean: State[real["C"]] = init.zeros()
    scale: Param[real["C"]] = init.ones()
    rate: float = config(0.5, check=lambda r: 0 < r <= 1)

    def predict(self, x: real["N C"]) -> real["N C"]:
        return (x - self.mean) * self.scale

    def forward(self, x: real["N C"]) -> real["N C"]:
        m = np.mean(x, axis=0)
        self.mean = (1 - self.rate) * self.mean + self.rate * m
        return (x - m) * self.scale


class Counter(Layer):
    """Changes a state in place, through a view."""

    batched = True
    count: State[real["C"]] = init.zeros()

    def predict(self, x: real["N C"]) -> real["N C"]:
        return x + self.count

    def forward(self, x: real["N C"]) -> real["N C"]:
        first = self.count[:1]
        first += 1
        self.count[-1] += 10
        return x + self.count


@layer
def scaled(x: real["N"], *, by: float = 2.0, times: int = 1, flip: bool = False) -> real["N"]:
    y = x
    for _ in range(times):
        y = y * by
    return y[::-1] if flip else y


@layer
def named(x: real["N"], w: real[""]) -> {"double": real["N"], "total": real[""]}:
    return x * 2 * w, np.sum(x)


@layer
def counted(x: real["N"], k: i64["N"], m: bool_["N"], s: real) -> tuple[real["N"], i64["N"]]:
    return np.where(m, x * k, s), k + 1


@layer
def unrelated(x: real["N"], z: real["M"]) -> real["N"]:
    return x * 2


@layer(backward=None)
def forward_only(x: real["N"]) -> real["N"]:
    return np.round(x)


@layer
def straight_through(x: real["N"]) -> real["N"]:
    return np.sign(x)


@straight_through.backward
def straight_through_gradient(x, dy):
    return np.where(np.abs(x) <= 1, dy, 0)


@layer
def by_output(x: real["N"], w: Param[real["N"]]) -> real["N"]:
    return np.exp(x) * w


@by_output.backward
def by_output_gradient(y, w, dy):
    return dy * y, dy * y / w


@layer
def two(x: real["N"]) -> {"a": real["N"], "b": real[""]}:
    return x * x, np.sum(x)


@two.backward
def two_gradient(x, da, db):
    return 2 * x * da + db * 10  # not the derivative, so that it is seen to be used


@layer
def two_unnamed(x: real["N"]) -> tuple[real["N"], real["N"]]:
    return np.sin(x), np.cos(x)


@two_unnamed.backward
def two_unnamed_gradient(y1, y2, dy1, dy2):
    return dy1 * y2 - dy2 * y1


class Remembers(Layer):
    """Keeps what the backward needs."""

    w: Param[real["C"]] = init.ones()

    def predict(self, x: real["C"]) -> real["C"]:
        return np.tanh(x) * self.w

    def forward(self, x: real["C"]) -> tuple[real["C"], Memory[real["C"]]]:
        t = np.tanh(x)
        return t * self.w, t

    def backward(self, dy, memory):
        return dy * self.w * (1 - memory * memory), dy * memory


class Kernel(Layer):
    """Configuration with a check, and one that must be given."""

    size: int = config(3, check=lambda k: k > 0)
    gain: float
    on: bool = True
    w: Param[real["size"]] = init.normal(0, 1)

    def predict(self, x: real["T"]) -> real["T-size+1"]:
        y = np.zeros(x.shape[0] - self.size + 1)
        for i in range(x.shape[0] - self.size + 1):
            y[i] = x[i : i + self.size] @ self.w * self.gain
        return y if self.on else y * 0


@layer
def at(x: real["N"], k: i64) -> real:
    return x[k]


@layer
def positive(x: real["N"]) -> real["N"]:
    assert np.all(x > 0), "x must be positive"
    return np.log(x)


@layer
def ratio(a: i64, b: i64) -> i64:
    return a // b
