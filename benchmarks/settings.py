"""What every process of a run agrees on: the threads, the seed, where results go."""

import os
from pathlib import Path

THREADS = 2
SEED = 20
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results"

_COUNTED = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "LAYERC_NUM_THREADS",
    "NPROC",
)  # NPROC is what XLA's CPU client reads


def pin_threads() -> None:
    """Give this process and its children THREADS threads; call it before numpy, torch, jax or numba is imported.

    The variables do most of it; the affinity mask makes it true also of a pool that asks the machine.
    """
    for variable in _COUNTED:
        os.environ[variable] = str(THREADS)
    os.environ["JAX_PLATFORMS"] = "cpu"
    if hasattr(os, "sched_setaffinity"):
        cpus = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cpus[:THREADS])
