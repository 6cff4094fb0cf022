"""Whole nets ahead of time: the same answers as the Net, to the last bit; and what cannot be built is told."""

import json
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
from ahead import MLP, build, changed, middle, package
from nets_ahead import OWN_LAYERS, SCRIPTS

from layerc import get_num_threads, set_num_threads
from layerc.cli import main

pytestmark = pytest.mark.optimised


@pytest.fixture(scope="module")
def own_layers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_layers.py").write_text(OWN_LAYERS)
    assert main(["build", str(folder / "own_layers.py"), "-o", str(folder / "built" / "own_layers")]) == 0
    sys.path.insert(0, str(folder / "built"))
    yield
    sys.path.remove(str(folder / "built"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_built_net_does_what_the_net_does(name, tmp_path, own_layers):
    scope, built = build(tmp_path, SCRIPTS[name])
    net, solver, data = scope["net"], scope["solver"], scope["DATA"]
    tops = [t for layer in net.layers if layer.is_source for t in layer.tops]
    given = dict(zip(tops, data))
    inputs = {f: [p["name"] for p in built._net._net[f]["inputs"]] for f in ("predict", "train")}

    def predicts_alike():
        for n in (1, 7, len(data[0]), 3):
            own = built.predict(*(given[k][:n] for k in inputs["predict"]))
            np.testing.assert_array_equal(own, net.predict({k: given[k][:n] for k in inputs["predict"]}))

    predicts_alike()
    forward = net.forward
    solver.init(net)
    for step, n in enumerate((8, 8, 5, 12, 2, 8)):
        batch = {k: given[k][step : step + n] for k in tops}
        net.forward = lambda regu=0.0, batch=batch: forward(regu, data={k: batch[k] for k in fed(net)})
        expected = solver.step(net)
        assert built.train_step(*(batch[k] for k in inputs["train"])) == expected, f"loss of step {step}"
        assert np.isfinite(expected)
        for key, p in net.named_parameters().items():
            np.testing.assert_array_equal(p.data, built.params[key], err_msg=f"{key} after step {step}")
        for layer, states in net.states.items():
            for state, value in states.items():
                np.testing.assert_array_equal(value, built.states[f"{layer}.{state}"], err_msg=f"state, step {step}")
    del net.forward
    predicts_alike()


def fed(net):
    return [t for layer in net.layers if layer.is_source for t in layer.tops]


# -- examples apart -------------------------------------------------------------------------------------------

IN_PARTS = {"mlp", "convolution", "shared", "shapes", "images"}  # no other has only layers of the kind


@pytest.mark.parametrize("name", SCRIPTS)
def test_threads_that_share_the_examples_change_no_bit(name, tmp_path, own_layers):
    scope, built = build(tmp_path, SCRIPTS[name])
    given = dict(zip([t for s in scope["net"].layers if s.is_source for t in s.tops], scope["DATA"]))
    ports = [p["name"] for p in built._net._net["predict"]["inputs"]]
    x = [np.concatenate([given[k]] * 4)[:49] for k in ports]
    with closing(threads()) as count:
        alone = next(count) and built.predict(*x)
        np.testing.assert_array_equal(alone, scope["net"].predict(dict(zip(ports, x))))
        for n in count:
            np.testing.assert_array_equal(built.open().predict(*x), alone, err_msg=f"{n} threads")
    assert ("lcn_part(&own" in (tmp_path / "built" / "net.c").read_text()) == (name in IN_PARTS)


@pytest.mark.parametrize("name", ["mlp", "shapes"])
def test_a_part_that_fails_is_computed_with_the_whole(name, tmp_path, own_layers):
    """As where a thread has no memory: the answer is that of one thread, or what fails there as well is told."""
    scope, built = build(tmp_path, SCRIPTS[name])
    given = dict(zip([t for s in scope["net"].layers if s.is_source for t in s.tops], scope["DATA"]))
    x = [np.concatenate([given[p["name"]]] * 4)[:49] for p in built._net._net["predict"]["inputs"]]
    expected = built.predict(*x)
    folder, part = tmp_path / "built", "failed |= lcn_part("
    text = (folder / "net.c").read_text()
    assert text.count(part) == 1
    fails = f"if (p == 1) own.arena[0] = 1, failed = 1; else {part}"
    (folder / "net.c").write_text(text.replace(part, fails))
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "libnet.so").unlink()
    flags = manifest["native"]["flags"]
    subprocess.run(["cc", "-shared", *flags, "net.c", "-o", "libnet.so", "-lm"], cwd=folder, check=True)
    del manifest["native"]["size"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with closing(threads()) as count:
        for n in count:
            np.testing.assert_array_equal(package(folder).predict(*x), expected, err_msg=f"{n} threads")


@pytest.mark.parametrize(("limit", "kept"), [("net_c.MOST_SHARED", "lcn_parts(net"), ("net_kernels.MOST", "_2(")])
def test_limits_of_what_is_compiled_change_no_bit(limit, kept, tmp_path, own_layers, monkeypatch):
    """Parameters too large for every thread to read, and more kernels than are compiled for their sizes."""
    scope, built = build(tmp_path / "all", SCRIPTS["convolution"])
    monkeypatch.setattr(f"layerc.build.{limit}", 0)
    _, limited = build(tmp_path / "few", SCRIPTS["convolution"])
    texts = [(tmp_path / f / "built" / "net.c").read_text() for f in ("all", "few")]
    assert [kept in t for t in texts] == [True, False]
    x = scope["DATA"][0][:9]
    np.testing.assert_array_equal(limited.predict(x), built.predict(x))


def threads():
    before = get_num_threads()
    try:
        for n in (1, 2, 3, 5):
            set_num_threads(n)
            yield n
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_layer_that_says_so_mixes_examples(name, own_layers):
    scope = {}
    exec(SCRIPTS[name], scope)
    net = scope["net"]
    if not all(s.is_per_example or s.is_source or s.has_loss or not s.has_neuron for s in net.layers):
        return
    wires = [t for s in net.layers if s.is_source for t in s.tops]
    given = {k: np.concatenate([v] * 4)[:13] for k, v in zip(wires, scope["DATA"])}
    whole = net.predict(given)
    for rows in (slice(0, 4), slice(4, 13), slice(7, 10)):
        np.testing.assert_allclose(net.predict({k: v[rows] for k, v in given.items()}), whole[rows], 1e-5, 1e-6)


# -- what cannot be built -------------------------------------------------------------------------------------

_BY_HAND = """
class Mine(Layer):
    can_do_bp = True
    bottom_counts = (1, 1)
    def setup(self, backend, inputs, diffs):
        return LayerState(self, blobs=[Blob(inputs[0].to_array())])
    def forward(self, backend, state, inputs):
        state.blobs[0].data = inputs[0].data
    def backward(self, backend, state, inputs, diffs):
        diffs[0].data = state.blobs_diff[0].data
"""
_SOLVER = "solver = SGD"
_DATA = 'MemoryData(DATA, 16, name="data")'
_LOSS = 'SoftmaxLoss(name="loss", bottoms=["ip2", "label"])'


def _function(text):
    """The net with a layer of NumPy's."""
    return middle(f'FunctionLayer({text}, lambda x, dy: dy, name="drop", bottoms=["ip1"], tops=["m"])')


_HAND = changed(("net = Net", _BY_HAND + "net = Net"))
_OPEN = 'Input([(None,), ()], ["data", "label"], name="data")'
_NOISE = """RandomNormal((9,), name="noise", tops=["noise"]),
    ElementWise("add", name="drop", bottoms=["ip1", "noise"], tops=["m"])"""
_UNREACHED = 'SquareLoss(name="other", bottoms=["ip1", "ip1"])'

BAD = {
    "no net": ("x = 1\n", 2, "has no net net; it makes no net"),
    "another name": (changed(("net = Net", "other = Net")), 2, "has no net net; it has other"),
    "no net by that name": (MLP + "net, keep = 3, net\n", 2, "net is a int, no net; it has keep"),
    "two solvers": (MLP + "second = Adam()\n", 2, "has the solvers solver, second; name the one that trains"),
    "a layer": ("import os\nos.abort()\ndef net(x):\n    pass\n", 2, "net is no net; to build the layers of a file"),
    "raises": ("x = 1\nif x:\n    y = 1 / 0\n", 1, "net.py:3:5: error[ZeroDivisionError]: division by zero"),
    "drawn": ("y = undefined_name\n", 1, "    1 | y = undefined_name\n      | ^^^^^^^^^^^^^^^^^^"),
    "syntax": ("x = (1,\n", 1, "net.py:1:5: error[SyntaxError]"),
    "ends Python": ("import sys\nsys.exit(3)\n", 1, "ended Python: exit(3)"),
    "no shapes": (changed((_DATA, _OPEN)), 1, "does not know its shapes"),
    "by hand": (middle('Mine(name="drop", bottoms=["ip1"], tops=["m"])', _HAND), 1, "layer 'drop' (Mine): it"),
    "unknown NumPy": (_function("lambda x: np.sort(x)"), 1, "layer 'drop' (FunctionLayer): np.sort is called"),
    "decides by values": (_function("lambda x: x if x.sum() > 0 else -x"), 1, "(FunctionLayer): Python"),
    "N squared": (_function("lambda x: x * np.sum(x[:, None] * x, axis=(1, 2))[:, None]"), 1, "faster than the"),
    "N in Python": (_function("lambda x: x * (1.0 * len(x))"), 1, "it does not work alike for all batch sizes"),
    "data of its own": (middle(_NOISE), 1, "layer 'noise' (RandomNormal) makes data of its own"),
    "LBFGS": (changed((_SOLVER, "solver = LBFGS(max_iter=2)\nunused = dict")), 1, "solver LBFGS: it goes back"),
    "every fifth": (changed(('name="ip2"', 'name="ip2", weight_cons=NonNeg(5)')), 1, "only when the net runs"),
    "not reached": (changed((_LOSS, _UNREACHED)), 1, "no loss and no seed is reached"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_built_is_told_and_nothing_is_written(name, tmp_path, capsys):
    script, status, text = BAD[name]
    (tmp_path / "net.py").write_text(script)
    assert main(["build", f"{tmp_path}/net.py:net", "-o", f"{tmp_path}/built"]) == status
    error = capsys.readouterr().err
    assert text in error, error
    assert "Traceback" not in error
    assert "internal error" not in error
    assert {p.name for p in tmp_path.iterdir()} - {"__pycache__"} == {"net.py"}


@pytest.mark.parametrize("option", ["--f32-only", "--checked", "--portable"])
def test_options_of_layer_files(option, tmp_path, capsys):
    (tmp_path / "net.py").write_text(MLP)
    assert main(["build", f"{tmp_path}/net.py:net", option]) == 2
    assert f"{option} is for layer files" in capsys.readouterr().err


def test_unusable_output(tmp_path, capsys):
    (tmp_path / "net.py").write_text(MLP)
    (tmp_path / "file").write_text("")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for target, text in (
        ("file/built", "file"),
        ("file", "there is a file of this name"),
        ("mine", "holds other files"),
    ):
        assert main(["build", f"{tmp_path}/net.py:net", "-o", f"{tmp_path}/{target}"]) == 2
        assert text in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == ["file", "mine", "net.py"]
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["letter.txt"]
