"""Several processes that train one net together: what a net asks of the others, and how it is shared among them.

Each has the whole net and a part of every batch. A loss divides by the number of terms that all have, so the sum over
the workers of the losses, and of the gradients, is what one process has for the whole batch. Gradients lie in one
array, and are added up in one go. Who carries the sums is in `layerc.bridges` (`mpi`).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from layerc.runtime.layer import LayerState
    from layerc.runtime.net import Net

Part = tuple[int, int, int]  # epoch, start, stop


class Workers:
    """Worker `rank` of `size`; these here are one alone, who asks nobody.

    An engine overrides the three sums. All workers call them in the same order, and all get the same result.
    """

    rank: int = 0
    size: int = 1

    def total(self, number: Any) -> Any:
        """The sum of every worker's number."""
        return number

    def add_up(self, array: np.ndarray) -> None:
        """Put the sum of every worker's array, contiguous and of one shape, into each."""

    def from_first(self, array: np.ndarray) -> None:
        """Put what worker 0 has in this array into each."""

    def gradients(self, net: "Net") -> None:
        """What follows a backward: all have the sum of the gradients, and the mean of states that belong to layers."""
        if self.size == 1:
            return
        self.add_up(net.buffer.gradient)
        for state in (s for s in _every(net.track.states) if s.layer.has_common_states):
            for array in (a for a in state.states.values() if a.dtype.kind == "f"):
                self.add_up(array)
                array /= self.size

    def part(self, batch: Sequence[Part]) -> list[Part]:
        """This worker's samples of a batch: as many as the others', or one less; in their order. At least one range,
        which may be empty."""
        total = sum(stop - start for _, start, stop in batch)
        first, last = total * self.rank // self.size, total * (self.rank + 1) // self.size
        found, passed = [], 0
        for epoch, start, stop in batch:
            mine = start + max(first - passed, 0), min(stop, start + last - passed)
            if mine[0] < mine[1]:
                found.append((epoch, *mine))
            passed += stop - start
        return found or [(batch[0][0], batch[0][1], batch[0][1])]


ALONE = Workers()


def share(net: "Net", workers: Workers) -> None:
    """From now on the net trains with these workers: on its part of each batch, from worker 0's parameters.

    Call it in every process, before the first batch. ValueError for a loss that does not say how it averages,
    RuntimeError for a net whose shapes are not known yet; nothing has changed then.
    """
    net.check_trainable()
    states = list(_every(net.track.states))
    for state in states:
        if state.layer.has_loss and not state.layer.is_summed:
            raise ValueError(
                f"layer {state.layer.name!r} ({type(state.layer).__name__}) is a loss of its own, and does not say what"
                " it divides by: workers cannot share it. Derive it from runtime's Loss and call settle"
            )
    net.workers = workers
    workers.from_first(net.buffer.data)
    for state in states:
        state.layer.divide(state, workers)
        if state.layer.has_common_states:
            for array in state.states.values():
                workers.from_first(array)


def _every(states: Sequence["LayerState"]) -> Iterator["LayerState"]:
    """Those of nets inside of layers too."""
    for state in states:
        yield state
        track = getattr(state, "track", None)
        if track is not None:
            yield from _every(track.states)
