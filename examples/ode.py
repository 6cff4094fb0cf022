"""Layers whose output is the solution of a differential equation: a growth curve, and a neural ODE for a spiral."""

import numpy as np

from layerc import Layer, Param, config, init, layer, ode45, real


@layer
def logistic(y0: real, t: real["T"], rate: Param[real[""]], limit: Param[real[""]]) -> real["T"]:
    """A population that begins as y0, at the times t > 0; Verhulst 1838."""
    y = np.zeros_like(t)
    for k in range(len(t)):
        y[k] = ode45(lambda _, p: rate * p * (1 - p / limit), 0.0, t[k], y0)
    return y


class Spiral(Layer):
    """y(1) for dy/dt = tanh(y³ W + b) V + c, y(0) the input: as the spiral of Chen et al., "Neural Ordinary
    Differential Equations", 2018. The gradient keeps no step of the way."""

    width: int = config(16, check=lambda n: n > 0)
    w: Param[real["D width"]] = init.normal(0, 0.3)
    b: Param[real["width"]] = init.zeros()
    v: Param[real["width D"]] = init.normal(0, 0.3)
    c: Param[real["D"]] = init.zeros()
    rtol: float = config(1e-6, check=lambda tol: tol > 0)

    def predict(self, y0: real["D"]) -> real["D"]:
        def slope(t, y):
            return np.tanh((y * y * y) @ self.w + self.b) @ self.v + self.c

        return ode45(slope, 0.0, 1.0, y0, rtol=self.rtol, gradient="adjoint")
