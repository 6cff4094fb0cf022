"""What a peer is to the harness: a class that binds a case's twin to arrays of its own.

Every peer gets its arguments and the outputs' gradients in its own arrays beforehand; that is never timed.
"""

import importlib
import importlib.util

import numpy as np
from case import Bound, Case


class Absent(Exception):
    """The peer is not installed here; the text says what is missing."""


class Peer:
    title: str

    def variants(self, case: Case) -> tuple[str, ...]:
        """The twins of the case, by name: the parent asks this, so it imports nothing."""
        raise NotImplementedError

    def start(self) -> dict:
        """Import what it needs, set the threads; returns facts for the report (versions)."""
        raise NotImplementedError

    def bind(self, case: Case, variant: str) -> Bound:
        raise NotImplementedError

    def ready(self, case: Case) -> None:
        """What precedes every first call and is not part of it."""

    def clear(self) -> None:
        """Forget what the last case compiled."""

    def native(self, arrays: list[np.ndarray]) -> list:
        return arrays

    def numpy(self, array) -> np.ndarray | None:
        return None if array is None else np.asarray(array)


def require(name: str):
    if importlib.util.find_spec(name) is None:
        raise Absent(f"{name} is not installed")
    return importlib.import_module(name)
