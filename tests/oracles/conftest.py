"""The oracles look at what users get."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def plain_code() -> None:
    """Not here, in place of that of tests/conftest.py: the layers are compiled with the optimiser."""
