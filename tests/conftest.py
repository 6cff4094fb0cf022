"""Options of the suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

# What compiles large layer files for minutes: passes, nets ahead of time, random programs. `make test-heavy`, and CI.
HEAVY = frozenset(
    f"test_{name}"
    for name in """
        abreast acceleration ahead before bounds built_net channels chunks clipped dear decide deepen
        distribute_rows early edges elide emit ends enemy enemy_programs fusion fuzz gangs held in_place interchange
        kinds lanes lanes_of_elements lanes_of_places lanes_of_rows layout less_than_none net_ahead ode45 of_pixels
        once operands options outputs outward overlap past periods products proofs quotients races random reductions
        regroup rows searches sections select shares shifts short_rows slabs specialise stacks strands tables tails
        turn turns unchanged undo units usual ways windows
    """.split()
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in HEAVY:
            item.add_marker("heavy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files from what is generated now")


@pytest.fixture(scope="module")
def light_code() -> Iterator[None]:
    """Kernels that take the C compiler a quarter of the time, for files of many small layers that look at values only.
    (Such layers are compiled as users have them by the oracles and by `make fuzz`.)"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYERC_CFLAGS", "-O0")
        yield
