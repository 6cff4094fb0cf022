import numpy as np
from numpy.linalg import eig
from layerc import Layer, Param, State, config, init, layer, nothing, real  # E import: layerc has no nothing

for i in range(3):  # E statement: For is not part
    print("hello")


@layer
def untyped(x):  # E annotation: x has no type
    return x + undefined  # E name: undefined is not defined


@layer
def wrong_types(x: list, y: real["N +"], z: real[N], w: real["*S *T"], *rest, **more):  # E annotation: not one of # E annotation: cannot read the dimension # E annotation: a shape is written as a string # E annotation: at most one group # E annotation: no * or **
    return x


@layer
def defaults(x: real["N"] = 3):  # E annotation: has a default
    return x


@layer(batch=True)  # E layer: no option batch
def options(x: real["N"]):
    return np.unique(x)  # E shape: depends on values


@layer
def asked(x: real["N"]) -> real["N"]:
    return x * x


@asked.backward
def asked_gradient(x, dz):  # E backward: cannot ask for dz
    return dz


@layer
def counted(x: real["N"], w: Param[real["N"]]) -> real["N"]:
    return x * w


@counted.backward
def counted_gradient(x, w, dy):  # E backward: returns 1 gradients, 2 are needed
    return dy * w


@layer
def shaped(x: real["N"], w: real[""]) -> real["N"]:
    return x * w


@shaped.backward
def shaped_gradient(x, w, dy):  # E backward: the gradient of w has shape (N,)
    return dy * w, dy * x


@layer
def no_derivative(x: real["N"]):
    y = x * 2
    return np.median(y)  # E unsupported


class Fields(Layer):
    gain: real["C"]  # E annotation: the field gain has no role
    start: Param[real["C"]] = 3  # E layer: not an initializer
    size: int = config(3)
    other = 4  # E layer: not part of a layer class

    def predict(self, x: real["C"]):
        self.start = x  # E role: Param or config
        self.size = 3  # E role: Param or config
        self.missing = 3  # E role: is not a State
        return x + self.absent  # E name: no field absent

    @property  # E layer: no decorators
    def extra(self):
        return 1

    def forward(this, x: real["C"]):  # E layer: must be self
        return x


class Nothing(Layer):  # E layer: neither predict nor forward
    size: int = 3


class Different(Layer):  # E layer: differ in their arguments
    def predict(self, x: real["C"]):
        return x

    def forward(self, x: real["C"], y: real["C"]):
        return x + y


class Overwrites(Layer):
    gain: Param[real["C"]] = init.ones()

    def predict(self, x: real["C"]):
        part = self.gain[1:]
        part += 1  # E role: this writes into gain, a Param
        return x * self.gain
