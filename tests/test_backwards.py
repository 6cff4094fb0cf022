"""Backwards by hand, and gradient files as layer files: what they give is checked against the derived gradient."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from

from layerc.build.gradients import gradient_source
from layerc.runtime import CompiledLayer, Input, Net
from layerc.transpile.layers import check_file

SOURCE = """
    import numpy as np
    from layerc import Layer, Param, State, init, layer, real

    class Remembers(Layer):
        batched = True
        s: State[real["C"]] = init.zeros()
        w: Param[real["C"]] = init.ones()

        def forward(self, x: real["N C"]):
            self.s = self.s + 1
            return x * self.w + self.s

        def backward(self, x, w, s, dy):
            return dy * w, np.sum(x * dy, axis=0), np.sum(dy, axis=0)

    @layer(batched=True)
    def centred(x: real["N C"], w: Param[real["C"]]) -> real["N C"]:
        return (x - np.mean(x, axis=0)) * w

    @layer(batched=True)
    def d_centred(x: real["N C"], w: Param[real["C"]], dy: real["N C"]) -> tuple[real["N C"], Param[real["C"]]]:
        g = dy * w
        return g - np.mean(g, axis=0), np.sum((x - np.mean(x, axis=0)) * dy, axis=0)

    @layer
    def rbf(x: real["N"], w: Param[real["N"]]) -> real["N"]:
        return np.exp(x * w)
    """


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("backwards"), "backwards", SOURCE)


def test_gradients_of_states_may_come_last(package):
    layer = package.Remembers()
    layer.initialize((5, 3))
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    _, pullback = layer.vjp(x)
    found = pullback(x)
    np.testing.assert_allclose(found.inputs[0], x)
    assert list(found.params) == ["w"]


def test_a_backward_for_a_batch_gives_sums_of_params(package):
    weights = {"w": np.arange(1.0, 4.0)}
    hand, own = (
        CompiledLayer(package.centred, params=weights, name=name, bottoms=["x"], tops=[f"y_{name}"], **options)
        for name, options in (("hand", {"backward": package.d_centred}), ("own", {}))
    )
    net = Net("n", [Input([(3,)], ["x"], name="d"), hand, own], dtype=np.float64)
    rng = np.random.default_rng(1)
    x, dy = rng.standard_normal((2, 5, 3))
    net.forward(data={"x": x})
    net.backward(seed={"y_hand": dy, "y_own": dy})
    np.testing.assert_allclose(net.params["hand"]["w"].gradient, net.params["own"]["w"].gradient, 1e-12)


def test_a_gradient_file_is_a_layer_file(package, tmp_path):
    """A gradient of a Param is summed over the batch there, too."""
    made = built_from(tmp_path, "again", gradient_source(check_file(tmp_path / "backwards.py", _plain()), None))
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((4, 3)), rng.standard_normal(3)
    y, pullback = package.rbf.vjp(x, w)
    dy = rng.standard_normal((4, 3))
    for found, right in zip(made.d_rbf(x, w, y, dy), pullback(dy), strict=True):
        np.testing.assert_allclose(found, right, 1e-12)
    assert made.d_rbf.signature.endswith("-> tuple[real['N'], real['N']]")


def _plain() -> str:
    lines = SOURCE.splitlines()
    return "\n".join(line[4:] for line in lines)
