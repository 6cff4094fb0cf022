"""Mistakes that stand behind others: in the blocks of a statement, in the backward of a layer, in what NumPy runs."""

import numpy as np
from layerc import Layer, Param, State, config, init, layer, real


@layer
def headers(x: real["N"]):
    s = 0.0
    if x > 0:  # E type: the truth of an array
        s = undefined_a  # E name: undefined_a is not defined
        t = np.nope(x)  # E unsupported: np.nope is not part
    else:
        s = undefined_b  # E name: undefined_b is not defined
    for i in range(undefined_c):  # E name: undefined_c is not defined
        v = x[i] + s * late
        late = np.nope(x)  # E unsupported: np.nope is not part
        for j in range(3):
            late = late + v
    while x > 3:  # E type: the truth of an array
        x = x + undefined_d  # E name: undefined_d is not defined
        if s > 3:
            break
    return x


@layer
def exits(x: real["N"]):
    if x > 0:  # E type: the truth of an array
        return np.nope(x)  # E unsupported: np.nope is not part
    for i in range(x.shape[0]):
        if x[i] > undefined:  # E name: undefined is not defined
            return x + 1
        if x[i] > 3:
            continue
        y = np.nope(x)  # E unsupported: np.nope is not part
    return undefined  # E name: undefined is not defined


@layer
def lists(x: real["N"]):
    ys = []
    for i in range(undefined):  # E name: undefined is not defined
        ys.append(x)
    zs = []
    for i in range(3):
        if x > 0:  # E type: the truth of an array
            zs.append(x)
    us = []
    us.append(np.nope(x))  # E unsupported: np.nope is not part
    return np.stack(ys) + np.stack(zs) + np.stack(us)


@layer
def forward(x: real["N"], w: Param[real["N"]], *, k: int = 3):
    return np.nope(x * w * k)  # E unsupported: np.nope is not part


@forward.backward
def backward(x, w, dy, memory):
    z = np.nope(dy)  # E unsupported: np.nope is not part
    t = x + undefined  # E name: undefined is not defined
    return memory * 3 * z + x @ w * k, t


class Method(Layer):
    w: Param[real["C"]] = init.ones()
    k: int = config(3)

    def forward(self, x: real["C"]):
        return np.nope(x)  # E unsupported: np.nope is not part

    def backward(self, x, dy):
        return self.missing, np.nope(dy) * self.w * self.k  # E name: no field missing # E unsupported: np.nope is not part


SIZE = 3


class Written(Layer):
    w: Param[real["C 3"]]
    b: Param[real["C"]]
    s: State[real["C"]]
    k: int = config(3)

    def initialize(self, shape):
        rng = np.random.default_rng(0)
        try:
            first, *_ = shape
        except ValueError as fault:
            print(fault)
        self.w = np.zeros((first, SIZE)) + np.linalg.nope(rng)  # E name: np.linalg has no nope
        self.w = np.zeros((4, SIZE))
        self.w = np.ones((4, 4))  # E shape: w has shape (C, 3), this is (4, 4)
        self.b = np.zeros((SIZE, SIZE))  # E shape: b has shape (C,), this is (3, 3)
        self.s = np.foo(3)  # E name: np has no foo
        self.zz = 3  # E role: self.zz is no field
        self.k = 3  # E role: self.k is configuration
        self.b = unknown  # E name: unknown is not defined

    def reset_state(self):
        self.s = np.zeros(3)
        self.b = [np.pi for each in self.s]  # E role: self.b is a Param, which reset_state cannot assign

    def predict(self, x: real["C"]):
        return undefined + x  # E name: undefined is not defined
