"""Training one net by several processes over MPI. Needs mpi4py and an MPI (pip install mpi4py mpich).

    # train.py                                        mpiexec -n 4 python -m mpi4py train.py
    from layerc.bridges.mpi import share

    net = make_net()                                  # the same in every process: same seed, same data
    workers = share(net)                              # each now trains on its part of every batch
    solver = SGD(max_epoch=10, lr=0.1)
    if workers.rank == 0:
        solver.add(TrainingSummary())                 # whoever prints and writes is one
    solver.solve(net)

Four processes with `batch_size=256` do what one does with `batch_size=256`, up to the rounding of the sums: batches,
their order, the objective, the update. Random layers draw other numbers in each worker. Statistics are of a worker's
own part; what `ValidationPerformance` finds is the same everywhere, if all workers have it.
"""

from typing import Any

import numpy as np

from layerc.runtime.net import Net
from layerc.runtime.workers import Workers
from layerc.runtime.workers import share as _share


class MPIWorkers(Workers):
    """The processes of an MPI communicator."""

    def __init__(self, comm: Any = None) -> None:
        """comm: default MPI.COMM_WORLD."""
        from mpi4py import MPI

        self.comm = MPI.COMM_WORLD if comm is None else comm
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        self._in_place, self._sum = MPI.IN_PLACE, MPI.SUM

    def total(self, number: Any) -> float:
        found = np.array([number], np.float64)
        self.comm.Allreduce(self._in_place, found, op=self._sum)
        return float(found[0])

    def add_up(self, array: np.ndarray) -> None:
        self.comm.Allreduce(self._in_place, array, op=self._sum)

    def from_first(self, array: np.ndarray) -> None:
        self.comm.Bcast(array, root=0)

    def __repr__(self) -> str:
        return f"MPIWorkers(rank={self.rank}, size={self.size})"


def share(net: Net, comm: Any = None) -> Workers:
    """Train this net with the other processes of `comm` (default MPI.COMM_WORLD); called by all of them.

    Parameters and states become those of rank 0. ImportError without mpi4py; ValueError for a loss written by hand
    that does not say how it averages, RuntimeError for a net whose shapes are not known yet: nothing has changed then.
    """
    try:
        workers = MPIWorkers(comm)
    except ImportError as error:
        raise ImportError(f"{error}: install an MPI and its Python side: pip install mpi4py mpich") from error
    _share(net, workers)
    return workers


__all__ = ["MPIWorkers", "share"]
