"""Neurons: elementwise functions applied to what a layer makes: `InnerProduct(64, neuron=Neurons.ReLU())`.

A compiled elementwise function of one argument is a neuron too: `neuron=L.mish`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.fields import check_numbers


class Neuron:
    """An elementwise function y(x) and its pullback. `address` is its compiled function, the fields its
    config."""

    address: ClassVar[str]

    is_per_element: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_numbers(self, *self.config)

    @property
    def function(self) -> Any:
        return builtin.function(self.address)

    @property
    def config(self) -> dict[str, Any]:
        return vars(self)  # nothing but the fields

    def apply(self, x: np.ndarray) -> np.ndarray:
        (y,) = self.function.run("predict", {"x": x}, self.config).values()
        return y

    def pull(self, x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
        return self.function.pull({"x": x, "y": y, "dy": dy}, self.config)["x"]


@dataclass(frozen=True)
class Identity(Neuron):
    """x."""

    def apply(self, x: np.ndarray) -> np.ndarray:
        return x

    def pull(self, x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
        return dy


@dataclass(frozen=True)
class ReLU(Neuron):
    """max(epsilon, x), derivative 0 at epsilon."""

    epsilon: float = 0.0
    address = "activations.relu"


@dataclass(frozen=True)
class LReLU(Neuron):
    """x where x > 0, else slope x."""

    slope: float = 0.01
    address = "activations.leaky_relu"


@dataclass(frozen=True)
class Sigmoid(Neuron):
    """1 / (1 + exp(-x))."""

    address = "activations.sigmoid"


@dataclass(frozen=True)
class Tanh(Neuron):
    """tanh x."""

    address = "activations.tanh"


@dataclass(frozen=True)
class Exponential(Neuron):
    """exp x."""

    address = "activations.exponential"


@dataclass(frozen=True)
class ELU(Neuron):
    """x where x > 0, else alpha (exp(x) - 1)."""

    alpha: float = 1.0
    address = "activations.elu"


@dataclass(frozen=True)
class GELU(Neuron):
    """x Phi(x), by erf."""

    address = "special.gelu"


@dataclass(frozen=True)
class Swish(Neuron):
    """x sigmoid(x)."""

    address = "activations.swish"


@dataclass(frozen=True)
class Softplus(Neuron):
    """log(1 + exp(x))."""

    address = "activations.softplus"


class Compiled(Neuron):
    """A user's compiled elementwise function."""

    is_per_element = False  # nobody has made sure of it

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        parameters = fn.manifest["parameters"]
        inputs = [p["name"] for p in parameters if p["role"] == "input"]
        others = [p for p in parameters if p["role"] not in ("input", "config") or p.get("required")]
        if len(inputs) != 1 or len(others) > (1 if others and others[0]["name"] == inputs[0] else 0):
            raise TypeError(f"a neuron is a function of one array, not {fn.manifest['signature']}")
        (self.input,) = inputs
        made = fn.manifest["methods"]["predict"]["outputs"][0]
        self.output, self.cotangent = made["name"], made["cotangent"]

    def apply(self, x: np.ndarray) -> np.ndarray:
        (y,) = self.fn.run("predict", {self.input: x}, {}).values()
        if y.shape != x.shape:
            raise ValueError(f"neuron {self.fn.manifest['name']} is not elementwise: {x.shape} became {y.shape}")
        return y

    def pull(self, x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
        return self.fn.pull({self.input: x, self.output: y, self.cotangent: dy}, {})[self.input]

    def __repr__(self) -> str:
        return f"Neurons.{self.fn.manifest['name']}"


def as_neuron(value: Any) -> Neuron:
    """A neuron of whatever stands for one; TypeError for the rest."""
    if isinstance(value, Neuron):
        return value
    if isinstance(value, type) and issubclass(value, Neuron):
        raise TypeError(f"is a class; write Neurons.{value.__name__}()")
    if hasattr(value, "run") and hasattr(value, "manifest"):
        return Compiled(value)
    raise TypeError("must be one of Neurons.* or a compiled elementwise function")


class Neurons:
    """The namespace of the neurons."""

    Identity, ReLU, LReLU, Sigmoid, Tanh = Identity, ReLU, LReLU, Sigmoid, Tanh
    Exponential, ELU, GELU, Swish, Softplus = Exponential, ELU, GELU, Swish, Softplus
