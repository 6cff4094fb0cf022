"""`@layer`: a function of a layer file, with its meaning under plain NumPy.

@layer
def mish(x: real["*S"]) -> real["*S"]: ...

mish(x)                # one example; `*S` takes any number of axes
mish(x, batch=True)    # axis 0 is a batch
mish.fn(flat)          # the function as written, with no check
mish.signature         # what it takes and gives
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, overload

from layerc.annotations import Signature, read_signature
from layerc.calls import bind_arguments, call, run_body, running

Function = Callable[..., Any]


class LayerFunction:
    """A layer function, callable with NumPy arrays.

    Attributes: `fn`, the function as written; `signature`; `batched`, True if it takes whole batches;
    `custom_backward`, the gradient function given by hand, or None; `differentiable`, False after
    `@layer(backward=None)`.
    """

    def __init__(self, fn: Function, *, batched: bool = False, backward: "Function | str | None" = "auto") -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.name: str = fn.__name__
        self.batched = batched
        self.differentiable = backward is not None
        self.custom_backward: Function | None = None
        if callable(backward):
            self.backward(backward)
        elif backward not in ("auto", None):
            raise TypeError(f'{self.name}: backward must be "auto", None or a function, not {backward!r}')

    @functools.cached_property
    def signature(self) -> Signature:
        """Read at first use: annotations may name what the file defines further down."""
        return read_signature(self.fn, self.name)

    def __call__(self, *args: Any, batch: bool | None = None, **kwargs: Any) -> Any:
        """Evaluate on arrays of one type, float32 or float64; the arrays are never changed.

        batch: True maps axis 0 of all inputs, False takes one example; by default the ranks decide. Outputs
        have the declared types and shapes; several come as a tuple. ValueError for shapes, TypeError for
        types and missing or unknown arguments, each naming the function and the argument.
        """
        if running.get():
            return self.fn(*args, **kwargs)
        values = bind_arguments(self.signature, args, kwargs)
        return call(self.signature, self.fn, values, batched=self.batched, batch=batch)

    def as_written(self, values: Mapping[str, Any], dtype: Any, backward: bool = False) -> Any:
        """What the function, or its backward by hand, returns for the values that it sees, with `real` as dtype."""
        return run_body(self.custom_backward if backward and self.custom_backward else self.fn, dtype, values)

    def backward(self, fn: Function) -> Any:
        """Decorator: gives the gradient by hand. The names of its parameters say what it needs."""
        self.custom_backward = fn.fn if isinstance(fn, LayerFunction) else fn
        # Written under the forward's own name, the decorator must not take that name away.
        return self if getattr(fn, "__name__", None) == self.name else fn

    def __repr__(self) -> str:
        return f"<layer {self.signature}>"


@overload
def layer(fn: Function, /) -> LayerFunction: ...
@overload
def layer(
    *, batched: bool = False, backward: "Function | str | None" = "auto"
) -> Callable[[Function], LayerFunction]: ...
def layer(
    fn: Function | None = None, /, *, batched: bool = False, backward: "Function | str | None" = "auto"
) -> LayerFunction | Callable[[Function], LayerFunction]:
    """Mark a function as a layer.

    batched: the function takes the whole batch (axis 0) instead of one example; backward: None disables the
    gradient, a function supplies it, "auto" derives it.
    """
    if fn is not None:
        return LayerFunction(fn)
    return lambda fn: LayerFunction(fn, batched=batched, backward=backward)
