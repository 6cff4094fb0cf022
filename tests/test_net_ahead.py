"""Whole nets ahead of time: the same answers as the Net, to the last bit, and clear errors."""

import importlib.util
import itertools
import sys

import numpy as np
import pytest
from nets_ahead import OWN_LAYERS, SCRIPTS

from layerc.cli import main

_count = itertools.count()


def build(folder, script, *options, name="net"):
    """The script's variables and the built package."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "net.py"
    path.write_text(script)
    assert main(["build", f"{path}:{name}", "-o", str(folder / "built"), *options]) == 0
    return run(path), package(folder / "built")


def run(path):
    import runpy

    sys.path.insert(0, str(path.parent))
    try:
        return runpy.run_path(str(path))
    finally:
        sys.path.pop(0)


def package(folder):
    spec = importlib.util.spec_from_file_location(f"built_net_{next(_count)}", folder / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
