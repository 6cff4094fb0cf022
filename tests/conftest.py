"""Options of the suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

# What compiles large layer files for minutes: passes, nets ahead of time, random programs. `make test-heavy`, and CI.
HEAVY = frozenset(
    f"test_{name}"
    for name in """
        abreast acceleration across ahead as_written before beside bounds built_net by_hand carry channels
        chunks clipped combed common cutoff dear decide deepen distribute_rows distribute_views early edges
        elide emit ends enemy enemy_programs extremes fission found fusion fuzz gangs gathered halting held
        in_place interchange inward kept_extremes kinds lanes lanes_of_elements lanes_of_places lanes_of_rows
        layout less_than_none lives near nested net_ahead numbers_that_iterate ode45 of_pixels once operands
        options outputs outward overlap padded passes past periods phases pixels pooled products proofs
        quotients races random random_windows reductions regroup rescaled rows rows_of_elements running searches
        sections select set_windows shares shifts short_rows slabs sorted_rows specialise stacks steps strands
        tables tails triangles trusted truths turn turns unchanged undo units usual ways weights_used_twice
        while_elements windows windows_of_recurrences
    """.split()
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in HEAVY:
            item.add_marker("heavy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files from what is generated now")
    parser.addoption("--optimised", action="store_true", help="compile all layers as users have them")


@pytest.fixture(scope="module", autouse=True)
def plain_code(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels that take the C compiler a third of the time: what most files look at are values. Those that look at
    what the optimiser makes of the C have `pytestmark = pytest.mark.optimised`; the built-in layers, the examples and
    all of tests/oracles and tests/fuzz.py are compiled as users have them, and `make test-optimised` all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        if not (request.config.getoption("--optimised") or request.node.get_closest_marker("optimised")):
            patch.setenv("LAYERC_CFLAGS", "-O0")
        yield
