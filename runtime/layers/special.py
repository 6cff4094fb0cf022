"""Neurons that need a special function."""

from scipy.special import erf

from layerc import layer, real


@layer
def gelu(x: real["*S"]) -> real["*S"]:
    """x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel 2016)."""
    return 0.5 * x * (1 + erf(x * 0.7071067811865476))
