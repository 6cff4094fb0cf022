"""Coffee breaks, the lounge and snapshots."""

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from nets import data

from layerc.runtime import (
    SGD,
    Accuracy,
    CoffeeLounge,
    Dropout,
    Function,
    InnerProduct,
    MemoryData,
    Net,
    Plot,
    ProgressBar,
    Snapshot,
    SoftmaxLoss,
    TrainingSummary,
    ValidationPerformance,
)
from layerc.runtime import snapshot as snapshots

X, T = data()


def net_of(seed=0):
    layers = [
        MemoryData([X, T], 8, True, name="data"),
        InnerProduct(3, name="ip", bottoms=["data"]),
        Dropout(0.2, name="drop", bottoms=["ip"]),
        SoftmaxLoss(name="loss", bottoms=["ip", "label"]),
        Accuracy(name="accuracy", bottoms=["ip", "label"]),
    ]
    return Net("n", layers, seed=seed)


def solve(*breaks, net=None, **options):
    solver = SGD(**{"max_iter": 7, "momentum": 0.9, **options})
    for one in breaks:
        solver.add(one)
    solver.solve(net or net_of())
    return solver


def test_when():
    iters, epochs = [], []
    solve(
        Function(lambda s, n: iters.append(s.state.iter), every_n_iter=3),
        Function(lambda s, n: epochs.append((s.state.iter, s.state.epoch)), every_n_epoch=2),
        max_iter=13,
    )
    assert iters == [0, 3, 6, 9, 12]
    assert epochs == [(6, 2), (12, 4)]
    for wrong in ({}, {"every_n_iter": 1, "every_n_epoch": 1}, {"every_n_iter": 0}, {"every_n_epoch": True}):
        with pytest.raises(ValueError, match=r"every_n|Function"):
            Function(print, **wrong)
    with pytest.raises(TypeError, match="coffee"):
        SGD().add(print)


def test_the_first_break_sees_nothing_done():
    seen = []
    net = net_of()
    start = net.params["ip"]["weight"].data.copy()

    def look(solver, net):
        if solver.state.iter == 0:
            seen.append(
                (
                    solver.state.obj_val,
                    solver.state.learning_rate,
                    np.array_equal(start, net.params["ip"]["weight"].data),
                )
            )

    solve(Function(look, every_n_iter=1), net=net, lr=0.25)
    assert len(seen) == 1
    assert np.isnan(seen[0][0])
    assert seen[0][1:] == (0.25, True)


def test_training_summary(capsys):
    solver = solve(TrainingSummary(every_n_iter=5), max_iter=10)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "obj_val" in lines[1]
    statistics = solver.lounge.statistics
    assert set(statistics) == {"obj_val", "learning_rate", "momentum"}
    assert list(statistics["obj_val"]) == [5, 10]
    assert list(statistics["momentum"]) == [0, 5, 10]
    solve(TrainingSummary(["iter", "accuracy.accuracy"], every_n_iter=5))
    assert "accuracy.accuracy" in capsys.readouterr().out
    with pytest.raises(ValueError, match="'nix'"):
        solve(TrainingSummary(["nix"], every_n_iter=1))


def test_validation_changes_nothing():
    plain, watched = net_of(), net_of()
    solve(net=plain)
    watch = ValidationPerformance([X[:7], T[:7]], every_n_iter=1)
    solver = solve(watch, net=watched)
    for a, b in zip(plain.buffer.parameters, watched.buffer.parameters):
        assert np.array_equal(a.data, b.data)
        assert np.array_equal(a.gradient, b.gradient)
    assert plain.statistics() == watched.statistics()
    assert set(watch.statistics) == {"loss.loss", "accuracy.accuracy"}
    assert list(solver.lounge.statistics["validation.accuracy.accuracy"]) == list(range(8))
    assert watch.statistics["accuracy.accuracy"] == pytest.approx((watched.predict(X[:7]).argmax(1) == T[:7]).mean())
    with pytest.raises(ValueError, match="arrays"):
        solve(ValidationPerformance([X], every_n_iter=1))


def test_lounge_file(tmp_path):
    path = tmp_path / "lounge.csv"

    def train(file_exists, max_iter, value):
        solver = SGD(max_iter=max_iter)
        solver.lounge = CoffeeLounge(path, file_exists=file_exists)
        solver.add(Function(lambda s, n: s.lounge.update_statistics("v", value), every_n_iter=2))
        solver.solve(net_of())
        with open(path, newline="") as file:
            return list(csv.reader(file))

    third = 1 / 3
    assert train("merge", 4, third) == [
        ["iter", "name", "value"],
        *([str(i), "v", repr(third)] for i in (0, 2, 4)),
    ]
    rows = train("merge", 2, 0.5)[1:]
    assert [(r[0], r[2]) for r in rows] == [("0", "0.5"), ("2", "0.5"), ("4", repr(third))]
    with pytest.raises(FileExistsError, match=r"lounge\.csv"):
        train("panic", 2, 1.0)
    assert len(train("overwrite", 2, 1.0)) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["lounge.csv"]
    for wrong in ({"save_into": "a.txt"}, {"file_exists": "append"}, {"every_n_iter": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            CoffeeLounge(**wrong)


def test_lounge_grows_while_training(tmp_path):
    path, sizes = tmp_path / "lounge.csv", []
    solver = SGD(max_iter=6)
    solver.lounge = CoffeeLounge(path, every_n_iter=3)
    solver.add(Function(lambda s, n: s.lounge.update_statistics("v", 1.0), every_n_iter=1))
    solver.add(Function(lambda s, n: sizes.append(len(path.read_text().splitlines())), every_n_iter=1))
    solver.solve(net_of())
    assert sizes == sorted(sizes)
    assert sizes[-1] >= 4
    assert len(path.read_text().splitlines()) == 8


def test_snapshots_are_kept(tmp_path):
    solve(Snapshot(tmp_path, every_n_iter=2, keep=2), max_iter=9)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "snapshot-000006.safetensors",
        "snapshot-000008.safetensors",
    ]
    for wrong in ({"keep": 0}, {"format": "pickle"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Snapshot(tmp_path, every_n_iter=1, **wrong)


def test_a_failed_snapshot_leaves_nothing(tmp_path, monkeypatch):
    def torn(path, *rest):
        with open(path, "wb") as file:
            file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(snapshots.weights, "_write_safetensors", torn)
    with pytest.raises(OSError, match="disk full"):
        solve(Snapshot(tmp_path, every_n_iter=2))
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, numpy as np
sys.path[:0] = {path!r}
{prelude}
from test_coffee import net_of, SGD, Snapshot
solver = SGD(max_iter=10**9, momentum=0.9)
solver.add(Snapshot({folder!r}, every_n_iter=1))
print("go", flush=True)
solver.solve(net_of())
"""


@pytest.mark.slow
def test_a_killed_run_leaves_only_whole_snapshots(tmp_path):
    here = os.path.dirname(__file__)
    prelude = "import standin" if "standin" in sys.modules else ""
    code = KILLED.format(path=[here, *sys.path], folder=str(tmp_path), prelude=prelude)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    child.stdout.readline()
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("snapshot-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    child.send_signal(signal.SIGKILL)
    child.wait()
    found = snapshots.found(tmp_path)
    assert found
    for path in (found[0], found[-1]):
        snapshots.weights.read_with_meta(path)
    solve(load_from=tmp_path, max_iter=int(found[-1].name[9:15]) + 1)


def test_snapshot_at_zero_is_the_start(tmp_path):
    solve(Snapshot(tmp_path, every_n_iter=100), max_iter=2)
    a, b = net_of(), net_of(seed=5)
    solve(net=a)
    solve(net=b, load_from=tmp_path / "snapshot-000000.safetensors")
    assert np.array_equal(a.buffer.data, b.buffer.data)


def test_progress_bar_is_quiet_without_a_terminal(capsys):
    solve(ProgressBar())
    assert capsys.readouterr().err == ""


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    solve(Plot(tmp_path / "sub" / "curve.png", every_n_iter=2), ValidationPerformance([X, T], every_n_iter=3))
    assert (tmp_path / "sub" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_failing_break_still_finishes_the_files(tmp_path):
    solver = SGD(max_iter=5)
    solver.lounge = CoffeeLounge(tmp_path / "l.csv", every_n_iter=1000)

    def fail(solver, net):
        solver.lounge.update_statistics("v", 1.0)
        if solver.state.iter == 3:
            raise KeyError("tea")

    solver.add(Function(fail, every_n_iter=1))
    with pytest.raises(KeyError, match="tea"):
        solver.solve(net_of())
    assert len((tmp_path / "l.csv").read_text().splitlines()) == 5
