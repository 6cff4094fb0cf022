"""Options of the suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files from what is generated now")


@pytest.fixture(scope="module")
def light_code() -> Iterator[None]:
    """Kernels that take the C compiler a quarter of the time, for files of many small layers that look at values only.
    (Such layers are compiled as users have them by the oracles and by `make fuzz`.)"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYERC_CFLAGS", "-O0")
        yield
