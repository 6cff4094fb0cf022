"""Two processes under a real MPI train as one does: `mpiexec -n 2` of examples that are run as a user would."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mpi4py")

BIN = Path(sys.executable).parent
MPIEXEC = shutil.which("mpiexec", path=str(BIN)) or shutil.which("mpiexec")

SCRIPT = """
    import sys
    import numpy as np
    from layerc.bridges.mpi import share
    from layerc.runtime import Adam, InnerProduct, MemoryData, Net, Neurons, Snapshot, SoftmaxLoss

    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(100, 8)), rng.integers(0, 3, 100)
    layers = [
        MemoryData([x, t], 32, shuffle=True, name="data"),
        InnerProduct(16, name="a", bottoms=["data"], neuron=Neurons.Tanh()),
        InnerProduct(3, name="b", bottoms=["a"]),
        SoftmaxLoss(name="loss", bottoms=["b", "label"]),
    ]
    net = Net("net", layers, seed=1, dtype=np.float64)
    workers = share(net)
    solver = Adam(max_epoch=5, lr=0.01, regu_coef=1e-3, load_from=sys.argv[2] if len(sys.argv) > 2 else None)
    if workers.rank == 0:
        solver.add(Snapshot(sys.argv[1] + "/snapshots", every_n_epoch=2))
    solver.solve(net)
    np.savez(f"{sys.argv[1]}/{workers.rank}_of_{workers.size}.npz", w=net.buffer.data, value=solver.state.obj_val)
    """


def run(folder: Path, workers: int, *more: str) -> list[dict[str, np.ndarray]]:
    script = folder / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [MPIEXEC, "-n", str(workers), sys.executable, "-m", "mpi4py", str(script), str(folder), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return [dict(np.load(folder / f"{rank}_of_{workers}.npz")) for rank in range(workers)]


@pytest.mark.skipif(MPIEXEC is None, reason="mpi4py is here, but no mpiexec: pip install mpich")
def test_two_processes_do_what_one_does(tmp_path):
    (alone,) = run(tmp_path, 1)
    for mine in run(tmp_path, 2):
        np.testing.assert_allclose(mine["w"], alone["w"], 1e-9, 1e-11)
        np.testing.assert_allclose(mine["value"], alone["value"], 1e-9)
    (tmp_path / "snapshots").rename(tmp_path / "old")
    first = sorted((tmp_path / "old").iterdir())[0]
    for mine in run(tmp_path, 2, str(first)):  # stopped after two epochs, and resumed
        np.testing.assert_allclose(mine["w"], alone["w"], 1e-9, 1e-11)


@pytest.mark.skipif(MPIEXEC is None, reason="mpi4py is here, but no mpiexec: pip install mpich")
def test_a_failure_of_one_ends_all(tmp_path):
    """Under `-m mpi4py` nobody waits for ever."""
    script = tmp_path / "fails.py"
    script.write_text(
        "from mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank == 1:\n"
        "    raise SystemError('gone')\n"
        "MPI.COMM_WORLD.Barrier()\n"
    )
    command = [MPIEXEC, "-n", "2", sys.executable, "-m", "mpi4py", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "gone" in done.stdout + done.stderr
