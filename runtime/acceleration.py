"""Which code runs a layer: the compiled, or the NumPy that it means, which a debugger can step through.

L.mish(x, acceleration="none"); s.vjp(x, acceleration="none"); Net(name, layers, acceleration="none")
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

AUTO = "auto"
CHOICES = (AUTO, "none")

_none: ContextVar[bool] = ContextVar("none", default=False)
_AS_IT_IS = nullcontext()


def checked(where: str, choice: Any) -> str:
    """ValueError naming the choices for any other one."""
    if not isinstance(choice, str) or choice not in CHOICES:
        raise ValueError(f"{where}: acceleration must be {' or '.join(map(repr, CHOICES))}, not {choice!r}")
    return choice


def accelerated(choice: str) -> AbstractContextManager[None]:
    """What nets run inside is computed so; "auto" leaves it as it is, as in a net within a net."""
    return _with_numpy() if choice == "none" else _AS_IT_IS


@contextmanager
def _with_numpy() -> Iterator[None]:
    token = _none.set(True)
    try:
        yield
    finally:
        _none.reset(token)


def is_none() -> bool:
    return _none.get()
