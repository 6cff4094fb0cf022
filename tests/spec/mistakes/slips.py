import math

import numpy as np

from layerc import Layer, Param, bool_, config, i64, init, layer, real


@layer
def masked(x: real["N"], y: real["N"], m: bool_["N"]):
    y[m] = x[m]  # E shape: depends on values # H np.where(m, x, y)
    x[m] += y[m] * 2  # E shape: depends on values # H x += np.where(m, y * 2, 0)
    a = np.sum(x[m])  # E shape: depends on values # H np.sum(np.where(m, x, 0))
    b = x[x > 0].mean()  # E shape: depends on values # H np.sum(np.where(x > 0, x, 0)) / np.sum(x > 0)
    c = x[~m].max()  # E shape: depends on values # H np.max(np.where(~m, x, -np.inf))
    d = len(x[m])  # E shape: depends on values # H np.sum(m)
    e = (x[m] * y[m]).sum()  # E shape: depends on values # H np.sum(np.where(m, x * y, 0))
    return x[m]  # E shape: depends on values # H np.where(m, x, 0)


@layer
def rebound(x: real["N"], w: Param[real["N"]], *, k: int = 2, on: bool = True):
    k = 3  # E role: k is configuration
    w *= 2  # E role: w, a Param
    w[0] = 1.0  # E role: w, a Param
    w = w * 2  # E role: w is a Param
    k += 1  # E role: k is configuration
    for on in range(3):  # E role: on is configuration
        x = x + 1
    return x * w


class Rebound(Layer):
    w: Param[real["N"]] = init.ones()
    k: int = config(3)

    def predict(self, x: real["N"]):
        self.w = x  # E role: self.w is a Param or config
        self.w[0] = 1  # E role: w, a Param
        self.w += 1  # E role: w, a Param
        self.k += 1  # E role: self.k is a Param or config
        return x


@layer
def syntax(x: real["N"]):
    a = {1, 2}  # E unsupported: a set # H an array
    b = {v for v in (1, 2)}  # E unsupported: a set comprehension # H array
    c = {"a": x}  # E unsupported: a dictionary # H separate variables
    d = {k: 1 for k in (1, 2)}  # E unsupported: a dictionary comprehension
    e = f"{x}"  # E unsupported: an f-string
    if (n := 3) > 2:  # E unsupported: := # H a statement of its own
        x = x * 2
    f = np.random.rand(3)  # E unsupported: hidden state # H rng: Random
    g = np.random.default_rng(3)  # E unsupported: hidden state # H rng: Random
    h = np.fft.rfft(x)  # E unsupported: is complex # H np.cos
    return x


@layer
def shifts(x: real["N"], k: i64["N"]):
    a = x << 2  # E type: << and >> take integers # H power of two
    b = ~x  # E type: take booleans or integers
    for i in range(0, 4, k[0]):  # E type: step of a range # H while
        x = x + 1
    return x


@layer
def lengths(x: real["N"]):
    states = []
    i = 0
    while i < x.shape[0]:
        states.append(x[i])
        i += 1
    n = len(states)  # E shape: appended to a number of times that depends on values
    filled = []
    while i > 0:
        filled.append(x[i - 1])
        i -= 1
    while len(filled) > 0:  # E type: length of this list depends on values # H n += 1
        x = x + filled.pop()
    return x


@layer
def counted_from(x: real["N"], w: real["N N"]):
    for i, r in enumerate(x, x):  # E type: enumerate counts from an integer
        w = w + r * i
    v = np.broadcast_to(x, (x.shape[0], x.shape[0]))
    v[0] = 1.0  # E unsupported: not written into # H .copy()
    x[0] = 2.0
    return v, w


@layer
def reversed_each_time(y: real["K"]):
    u = y
    for k in range(30):
        u = u[::-1]  # E name: u is one thing before the loop and another after its body
        u[0] += 1.0
    return u, y


@layer
def not_in_every_round(x: real["N"]):
    for i in range(x.shape[0]):
        if x[i] > 0:
            break
        v = x[i]
    for i in range(x.shape[0]):
        s = w + 1  # E name: w has no value yet
        w = x[i] * s
    return x * v * w  # E name: v is assigned only when


@layer
def lists_as_arrays(x: real["N N"], s: real):
    ys = []
    for r in x:
        ys.append(r)
    a = ys < x  # E type: arithmetic on a list is not that on arrays # H np.stack(ys)
    b = ys == ys  # E type: arithmetic on a list
    c = abs(ys)  # E type: arithmetic on a list
    d = max(x)  # E type: max of rows asks for the truth of arrays # H np.max(x)
    np.add.at(ys, 0, s)  # E type: arithmetic on a list
    ys += s  # E type: arithmetic on a list
    return np.stack(ys) + a + b + c + d


@layer
def booleans_of_numpy(x: real["N"], s: real):
    w = np.any(x > 0) - True  # E type: NumPy has no - for booleans # H ~ for not
    v = -(x[0] > 0)  # E type: NumPy has no - for booleans
    k = (s > 0) - (s < 0)  # E type: NumPy has no - for booleans
    n = np.negative(x.shape[0] > 2)  # E type: NumPy has no - for booleans
    return x * w * v * k * n


@layer
def truths_of_pythons_or_numpys(x: real["N"], flag: bool = True):
    a = True
    for i in range(x.shape[0]):
        a = x[i] > 0
    b = a + a  # E type: this truth value is Python's own on one path and NumPy's on another # H bool(v)
    c = flag
    if x[0] > 0:
        c = x[1] > 0
    d = -c  # E type: this truth value is Python's own on one path and NumPy's on another
    e = (flag and x[0] > 0) + flag  # E type: this truth value is Python's own on one path
    return x * b * d * e


@layer
def flags_and_extremes(x: real["N"], w: float = 1.0):
    a = np.sum(x, keepdims=2.5)  # E type: keepdims must be True or False at build time
    b = max(w)  # E type: max takes an array, or two and more scalars
    return x * a * b


@layer
def arrays_without_axes(x: real["N"]):
    v = np.zeros(())
    v += x  # E shape: an array without axes, which this changes in place, cannot hold (N,) # H v = v + x
    w = 1.0 if x[0] > 0 else 2.0
    w += x
    return v + w


@layer
def methods_of_pythons_own(x: real["N"], s: real):
    a = not s
    a = a.copy()  # E type: a Python number (bool) has no copy # H np.asarray
    b = float(s) * 2
    b = b.sum()  # E type: a Python number (float) has no sum
    c = math.sqrt(s).copy()  # E type: a Python number (float) has no copy
    d = -(int(s) // 2)
    d = d.astype(float)  # E type: a Python number (int) has no astype
    return x * a * b * c * d, (s * float(s)).copy()


@layer
def lists_have_no_axes(x: real["N"]):
    ys = [x, x]
    a = np.take_along_axis(ys, np.zeros((2, 1), dtype=np.int64), axis=1)  # E type: this takes arrays # H np.stack(ys)
    return a


@layer
def lists_take_one_integer(x: real["N M"]):
    ys = []
    for i in range(x.shape[0]):
        ys.append(x[i] * 2)
    a = ys[0, 1]  # E type: a list takes one integer # H np.stack(ys)
    b = ys[np.array([0, 1])]  # E type: a list takes one integer
    c = ys[None] + ys[...]  # E type: a list takes one integer
    ys[x[:, 0] > 0] = x[0]  # E type: a list takes one integer
    return a + b + c + ys[0] + ys[1:][0]


@layer
def bound_behind_the_return(x: real["N"]):
    s = 1.0

    def f(p):
        return p * s  # E name: s has no value yet # H another name
        s = 0.0

    return f(x)


@layer
def extremes_of_nothing(x: real["N M"]):
    a = np.max(x[:0])  # E shape: of no elements are no numbers # H start from a value
    b = np.min(np.zeros((3, 0)), axis=1)  # E shape: of no elements are no numbers
    c = np.argmax(x[:, 2:2], axis=1)  # E shape: of no elements are no numbers
    d = x[:0].min(axis=1)
    return x * a + b[0] + c[0], d
