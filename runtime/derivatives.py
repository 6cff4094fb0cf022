"""What a helper can say of its own derivative. NumPy needs none of it: these are the meanings of the values.

The compiler knows these by name; `layerc.ode45` is written with them, and a layer file may be, too.
"""

from collections.abc import Callable
from typing import Any


def stop_gradient(x: Any) -> Any:
    """x, as a constant: no derivative passes."""
    return x


def with_derivative(value: Any, of: Any) -> Any:
    """`value`, with the derivative of `of`, whose own value nobody computes."""
    return value


def with_backward(
    value: Any, backward: Callable[..., Any], arguments: tuple[Any, ...], settings: tuple[Any, ...] = ()
) -> Any:
    """`value`, a function of the arguments, whose gradients are backward(*arguments, *settings, y, dy).

    They are nested as the arguments are: a tuple of arrays has a tuple of gradients. What is given for an integer or a
    constant is not read. `settings`: what else it needs, functions among them.
    """
    return value


def pull(fn: Callable[..., Any], dy: Any, arguments: tuple[Any, ...], captured: tuple[Any, ...] = ()) -> Any:
    """dy times the derivatives of fn(*arguments), by each argument, and by each value that it captured: only compiled
    code has it."""
    raise NotImplementedError("derivatives are the compiler's: layerc build makes them")


def captured(fn: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """The arrays around fn, a nested function or a lambda, that fn(*arguments) reads: the compiler finds them."""
    return ()
