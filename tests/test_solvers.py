"""Solvers against their formulas, policies, stops, clipping, resuming."""

import math
import re

import numpy as np
import pytest
from nets import SumLoss, data

from layerc.runtime import (
    SGD,
    Accuracy,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    Constant,
    Dropout,
    Function,
    FunctionLayer,
    Gaussian,
    InnerProduct,
    L2Cons,
    LRPolicy,
    MemoryData,
    MomPolicy,
    Nesterov,
    Net,
    Neurons,
    NonNeg,
    NullBlob,
    RMSprop,
    Snapshot,
    SoftmaxLoss,
    TopologyError,
    ValidationPerformance,
)

X, T = data()


def net_of(**ip):
    layers = [
        MemoryData([X, T], 8, True, name="data"),
        InnerProduct(5, name="ip1", bottoms=["data"], neuron=Neurons.Tanh(), bias_init=Gaussian(), **ip),
        Dropout(0.3, name="drop", bottoms=["ip1"]),
        InnerProduct(3, name="ip2", bottoms=["ip1"]),
        SoftmaxLoss(name="loss", bottoms=["ip2", "label"]),
        Accuracy(name="accuracy", bottoms=["ip2", "label"]),
    ]
    return Net("n", layers, seed=3)


def everything(net):
    return {name: p.data.copy() for name, p in net.named_parameters().items()}


# The update rules once more, written as in the catalogue: (w, g, history, t, lr, m) -> w
RULES = {
    "sgd": (
        lambda **k: SGD(lr=0.1, **k),
        lambda w, g, h, t: w + h.setdefault("v", 0) * 0 + _sgd(h, g, 0.1, 0.0),
    ),
    "momentum": (lambda **k: SGD(lr=0.1, momentum=0.9, **k), lambda w, g, h, t: w + _sgd(h, g, 0.1, 0.9)),
    "nesterov": (
        lambda **k: Nesterov(lr=0.1, momentum=0.9, **k),
        lambda w, g, h, t: w + _nesterov(h, g, 0.1, 0.9),
    ),
    "adam": (lambda **k: Adam(lr=0.1, **k), lambda w, g, h, t: w - _adam(h, g, t, 0.1)),
    "adamw": (
        lambda **k: AdamW(lr=0.1, weight_decay=0.2, **k),
        lambda w, g, h, t: w * (1 - 0.1 * 0.2) - _adam(h, g, t, 0.1),
    ),
    "rmsprop": (lambda **k: RMSprop(lr=0.1, momentum=0.5, **k), lambda w, g, h, t: w - 0.1 * _rms(h, g, 0.5)),
    "adagrad": (lambda **k: Adagrad(lr=0.1, **k), lambda w, g, h, t: w - 0.1 * _adagrad(h, g)),
    "adadelta": (lambda **k: Adadelta(lr=0.5, **k), lambda w, g, h, t: w - 0.5 * _adadelta(h, g)),
}


def _sgd(h, g, lr, m):
    h["v"] = m * h.get("v", 0) - lr * g
    return h["v"]


def _nesterov(h, g, lr, m):
    h["v"] = m * h.get("v", 0) - lr * g
    return m * h["v"] - lr * g


def _adam(h, g, t, lr):
    h["m"] = 0.9 * h.get("m", 0) + 0.1 * g
    h["s"] = 0.999 * h.get("s", 0) + 0.001 * g * g
    return lr * (h["m"] / (1 - 0.9**t)) / (np.sqrt(h["s"] / (1 - 0.999**t)) + 1e-8)


def _rms(h, g, m):
    h["s"] = 0.99 * h.get("s", 0) + 0.01 * g * g
    h["v"] = m * h.get("v", 0) + g / (np.sqrt(h["s"]) + 1e-8)
    return h["v"]


def _adagrad(h, g):
    h["s"] = h.get("s", 0) + g * g
    return g / (np.sqrt(h["s"]) + 1e-10)


def _adadelta(h, g):
    h["s"] = 0.95 * h.get("s", 0) + 0.05 * g * g
    step = np.sqrt(h.get("u", 0) + 1e-6) / np.sqrt(h["s"] + 1e-6) * g
    h["u"] = 0.95 * h.get("u", 0) + 0.05 * step * step
    return step


@pytest.mark.parametrize("name", RULES)
def test_updates(name):
    make, rule = RULES[name]
    net = net_of()
    solver = make(max_iter=9)
    solver.init(net)
    histories = {n: {} for n in everything(net)}
    for t in range(1, 8):
        before = everything(net)
        solver.step(net)
        for n, p in net.named_parameters().items():
            expected = rule(before[n], p.gradient, histories[n], t)
            np.testing.assert_allclose(p.data, expected, rtol=1e-12, atol=1e-15, err_msg=f"{n} at {t}")


def test_adams_second_moment_decays():
    """Mocha's never does: after large gradients the steps would stay small for ever."""
    net = net_of()
    solver = Adam(max_iter=1)
    solver.init(net)
    solver.history["s"][...] = 1.0
    solver.step(net)
    assert (solver.history["s"] < 1.0).all()


def test_adagrad_is_per_element():
    net = net_of()
    solver = Adagrad(max_iter=1)
    solver.init(net)
    solver.step(net)
    assert len(np.unique(solver.history["s"])) > 20


def test_learn_rate_factors_and_freezing():
    net = net_of(weight_lr=0.5)
    net.freeze("ip2.bias")
    solver = SGD(lr=0.1, max_iter=3, lr_factors=[("ip2.*", 3.0), ("ip2.weight", 9.0)])
    solver.init(net)
    before = everything(net)
    solver.step(net)
    for name, factor in {"ip1.weight": 0.5, "ip1.bias": 1.0, "ip2.weight": 3.0}.items():
        p = net.named_parameters()[name]
        np.testing.assert_allclose(p.data, before[name] - 0.1 * factor * p.gradient, rtol=1e-12)
    assert np.array_equal(net.params["ip2"]["bias"].data, before["ip2.bias"])
    assert net.params["ip2"]["bias"].gradient is NullBlob()
    with pytest.raises(ValueError, match="'nix'"):
        SGD(max_iter=1, lr_factors=[("nix", 1.0)]).init(net)


def test_unfreezing_starts_adams_count_afresh():
    net = net_of()
    net.freeze("ip1")
    solver = Adam(lr=0.1, max_iter=10)
    solver.init(net)
    for _ in range(5):
        solver.step(net)
    net.unfreeze("ip1")
    before = net.params["ip1"]["weight"].data.copy()
    solver.step(net)
    g = net.params["ip1"]["weight"].gradient
    np.testing.assert_allclose(before - net.params["ip1"]["weight"].data, 0.1 * g / (abs(g) + 1e-8), rtol=1e-6)


def test_shared_parameters_are_updated_once():
    def shared(*keys):
        layers = [MemoryData([X[:, :4], T], 20, name="data")]
        layers += [InnerProduct(4, name=n, bottoms=[b], param_key=k) for n, b, k in zip("ab", ("data", "a"), keys)]
        net = Net("n", [*layers, SumLoss(name="l", bottoms=["b"])])
        return net

    net = shared("k", "k")
    solver = SGD(lr=0.01, momentum=0.9, max_iter=2)
    solver.init(net)
    before = net.params["a"]["weight"].data.copy()
    solver.step(net)
    np.testing.assert_allclose(net.params["a"]["weight"].data, before - 0.01 * net.params["a"]["weight"].gradient)
    assert solver.history["v"].size == 20


def test_regularizer_in_objective_and_gradient():
    net = net_of()
    solver = SGD(lr=0.0, max_iter=1, regu_coef=0.25)
    solver.init(net)
    w1, w2 = (net.params[n]["weight"].data for n in ("ip1", "ip2"))
    assert solver.step(net) == pytest.approx(net.objective() + 0.25 * ((w1**2).sum() + (w2**2).sum()))
    with_regu = net.params["ip1"]["weight"].gradient.copy()
    net.backward()
    np.testing.assert_allclose(with_regu - net.params["ip1"]["weight"].gradient, 0.5 * w1)


def gradients_after(**options):
    net = net_of()
    solver = SGD(lr=0.0, max_iter=1, **options)
    solver.init(net)
    solver.step(net)
    return [p.gradient for p in net.buffer.parameters]


def test_clipping():
    plain = gradients_after()
    norms = [np.linalg.norm(g) for g in plain]
    for g, n, c in zip(plain, norms, gradients_after(clip_norm=0.05)):
        np.testing.assert_allclose(c, g * min(1, 0.05 / n))
    whole = math.sqrt(sum(n * n for n in norms))
    for g, c in zip(plain, gradients_after(clip_global_norm=0.05)):
        np.testing.assert_allclose(c, g * 0.05 / whole)
    for g, c in zip(plain, gradients_after(clip_value=0.01)):
        np.testing.assert_allclose(c, np.clip(g, -0.01, 0.01))
    for g, c in zip(plain, gradients_after(clip_norm=1e9, clip_global_norm=1e9, clip_value=1e9)):
        assert np.array_equal(g, c)


def test_constraints():
    net = net_of(weight_cons=L2Cons(0.3), bias_cons=NonNeg(every_n_iter=2))
    solver = SGD(lr=0.1, max_iter=4)
    solver.init(net)
    net.params["ip1"]["bias"].data[...] = -1
    solver.step(net)
    w = net.params["ip1"]["weight"].data
    np.testing.assert_allclose(np.linalg.norm(w, axis=0), 0.3, rtol=1e-12)
    assert (net.params["ip1"]["bias"].data < 0).all()
    solver.step(net)
    assert (net.params["ip1"]["bias"].data == 0).all()


def test_l2cons_leaves_what_fits():
    w = np.array([[3.0, 0.1], [4.0, 0.0]])
    L2Cons(1.0).apply(w)
    np.testing.assert_allclose(w, [[0.6, 0.1], [0.8, 0.0]])
    bias = np.array([3.0, 4.0])
    L2Cons(1.0).apply(bias)
    np.testing.assert_allclose(bias, [0.6, 0.8])
    with pytest.raises(ValueError, match="threshold"):
        L2Cons(0)


POLICIES = [
    (LRPolicy.Fixed(0.1), {0: 0.1, 99: 0.1}),
    (LRPolicy.Step(1.0, 0.5, 10), {0: 1, 9: 1, 10: 0.5, 25: 0.25}),
    (LRPolicy.Exp(2.0, 0.5), {0: 2, 3: 0.25}),
    (LRPolicy.Inv(0.01, 1e-4, 0.75), {0: 0.01, 100: 0.01 * 1.01**-0.75}),
    (LRPolicy.Linear(1.0, 0.0, 4), {0: 1, 1: 0.75, 4: 0, 9: 0}),
    (LRPolicy.Cosine(1.0, 4), {0: 1, 2: 0.5, 4: 0, 8: 0}),
    (LRPolicy.Cosine(1.0, 4, 0.2), {2: 0.6, 4: 0.2}),
    (
        LRPolicy.Staged((2, LRPolicy.Fixed(1)), (3, 0.5), (1, LRPolicy.Exp(1.0, 0.5))),
        {0: 1, 1: 1, 2: 0.5, 4: 0.5, 5: 0.5**5, 9: 0.5**9},
    ),
    (MomPolicy.Step(0.5, 1.5, 10, 0.9), {0: 0.5, 10: 0.75, 20: 0.9, 90: 0.9}),
    (MomPolicy.Linear(0.5, 0.1, 10, 0.9), {0: 0.5, 9: 0.5, 10: 0.6, 80: 0.9}),
]


@pytest.mark.parametrize(("policy", "values"), POLICIES)
def test_policies(policy, values):
    for it, value in values.items():
        assert policy(it) == pytest.approx(value), it


def test_policies_are_asked_for_the_iteration():
    net, asked = net_of(), []
    solver = SGD(
        lr=lambda it: asked.append(it) or 0.1 / (it + 1),
        momentum=MomPolicy.Linear(0.0, 0.1, 1, 0.9),
        max_iter=4,
    )
    assert solver.state.learning_rate == 0.1
    solver.init(net)
    asked.clear()
    for it in range(3):
        solver.step(net)
        assert solver.state.learning_rate == pytest.approx(0.1 / (it + 1))
        assert solver.state.momentum == pytest.approx(0.1 * it)
    assert asked == [0, 1, 2]


WRONG = [
    ({"lr": -1}, ValueError, "lr"),
    ({"lr": "fast"}, ValueError, "lr"),
    ({"max_iter": 1.5}, ValueError, "max_iter"),
    ({"max_iter": True}, ValueError, "max_iter"),
    ({"target": 0.1}, ValueError, "target"),
    ({"patience": ("a", 0)}, ValueError, "patience"),
    ({"clip_norm": 0}, ValueError, "clip_norm"),
    ({"lr_factors": [("a", -1)]}, ValueError, "lr_factors"),
    ({"regu_coef": -1}, ValueError, "regu_coef"),
    ({"beta1": 0.9}, TypeError, "beta1"),
    ({"momentun": 0.9}, TypeError, "momentun"),
]


@pytest.mark.parametrize(("options", "error", "word"), WRONG)
def test_wrong_options(options, error, word):
    with pytest.raises(error, match=word):
        SGD(**options)


def test_wrong_options_of_others():
    with pytest.raises(TypeError, match="momentum"):
        Adam(momentum=0.9)
    with pytest.raises(ValueError, match="beta2"):
        Adam(beta2=1.0)
    with pytest.raises(ValueError, match="max_iter"):
        SGD().solve(net_of())


def test_stops():
    net = net_of()
    solver = SGD(max_iter=7)
    solver.solve(net)
    assert (solver.state.iter, solver.state.stop_reason) == (7, "max_iter")
    solver = SGD(max_epoch=2)
    solver.solve(net_of())
    assert (solver.state.iter, solver.state.epoch, solver.state.stop_reason) == (6, 2, "max_epoch")
    solver = SGD(max_time=0.0)
    solver.solve(net_of())
    assert solver.state.stop_reason == "max_time"
    solver = SGD(target=("obj_val", 1e9))
    solver.solve(net_of())
    assert (solver.state.iter, solver.state.stop_reason) == (1, "target")
    solver = SGD(max_iter=100)
    solver.add(Function(lambda s, n: s.stop("tea") if s.state.iter == 3 else None, every_n_iter=1))
    solver.solve(net_of())
    assert (solver.state.iter, solver.state.stop_reason) == (3, "tea")


def test_patience_counts_validations():
    net = net_of()
    solver = SGD(lr=0.0, patience=("accuracy.accuracy", 3))
    solver.add(ValidationPerformance([X, T], every_n_iter=2))
    solver.solve(net)
    assert (solver.state.iter, solver.state.stop_reason) == (6, "patience")


def test_target_of_a_validation():
    solver = Adam(lr=0.05, target=("accuracy.accuracy", 0.5), max_iter=500)
    watch = ValidationPerformance([X, T], every_n_iter=5)
    solver.add(watch)
    solver.solve(net_of())
    assert solver.state.stop_reason == "target"
    assert watch.statistics["accuracy.accuracy"] >= 0.5


def test_nan_objective():
    layers = [
        MemoryData([X, T], 8, name="data"),
        InnerProduct(3, name="a", bottoms=["data"]),
        FunctionLayer(lambda x: x * np.nan if x.base is None else x, lambda x, dy: dy, name="f", bottoms=["a"]),
        SumLoss(name="l", bottoms=["f"]),
    ]
    calls = []

    def turn(x):
        calls.append(1)
        return x * (np.nan if len(calls) > 3 else 1.0)

    layers[2] = FunctionLayer(turn, lambda x, dy: dy, name="f", bottoms=["a"])
    net = Net("n", layers)
    solver = SGD(lr=1e-3, max_iter=10)
    solver.init(net)
    for _ in range(2):
        solver.step(net)
    before = everything(net)
    with pytest.raises(FloatingPointError, match="iteration 2"):
        solver.step(net)
    assert all(np.array_equal(before[n], p.data) for n, p in net.named_parameters().items())


def test_untrainable_nets_are_refused_at_init():
    layers = [MemoryData([X, T], 8, name="data"), InnerProduct(3, name="dead", bottoms=["data"])]
    with pytest.raises(TopologyError, match="loss"):
        SGD(max_iter=1).init(Net("n", layers))
    layers += [SumLoss(name="l", bottoms=["data"])]
    with pytest.raises(TopologyError, match="'dead'"):
        SGD(max_iter=1).init(Net("n", layers))


class Told(ValidationPerformance):
    """A validation with these results."""

    def __init__(self, *values, **when):
        super().__init__([X, T], **when)
        self.values = iter(values)

    def enjoy(self, solver, net):
        if solver.state.iter:
            solver.validated(net, {"accuracy.accuracy": next(self.values)})


@pytest.mark.parametrize("staged", [False, True])
def test_decay_on_validation_goes_back(tmp_path, staged):
    net = net_of()
    policy = LRPolicy.DecayOnValidation(0.1, "accuracy.accuracy", 0.5)
    solver = SGD(lr=LRPolicy.Staged((9, policy), (1, 1e-3)) if staged else policy, max_iter=4)
    solver.add(Snapshot(tmp_path, every_n_iter=1))
    kept = {}
    solver.add(Function(lambda s, n: kept.update({s.state.iter: everything(n)}), every_n_iter=1))
    solver.add(Told(0.5, 0.6, 0.4, 0.3, every_n_iter=1))
    solver.init(net)
    for _ in range(2):
        solver.step(net)
    assert policy.rate == 0.1
    solver.step(net)
    assert policy.rate == 0.05
    assert all(np.array_equal(kept[2][n], v) for n, v in everything(net).items())
    solver.init(net_of())
    assert policy.rate == 0.1  # a training begins anew


def test_decay_on_validation_acts_in_its_stage():
    first, second = (LRPolicy.DecayOnValidation(base, "accuracy.accuracy") for base in (0.1, 0.01))
    solver = SGD(lr=LRPolicy.Staged((3, first), (1, second)), max_iter=6)
    solver.add(Told(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, every_n_iter=1))
    solver.solve(net_of())
    assert (first.rate, second.rate) == (0.05, 0.00125)


@pytest.mark.parametrize("order", [1, -1])
def test_resuming_a_decay_is_bit_identical(tmp_path, order):
    """Whichever of validation and snapshot was added first."""

    def train(net, max_iter, **more):
        decay = LRPolicy.DecayOnValidation(0.2, "loss.loss", 0.7, higher_better=True)  # the loss falls: always worse
        solver = SGD(lr=LRPolicy.Staged((2, 0.1), (20, decay)), momentum=0.5, max_iter=max_iter, **more)
        for one in (Snapshot(tmp_path / str(max_iter), every_n_iter=6), ValidationPerformance([X, T], every_n_iter=2))[
            ::order
        ]:
            solver.add(one)
        solver.solve(net)
        return net, decay

    whole, decay = train(net_of(), 14)
    train(net_of(), 6)
    again, resumed = train(net_of(), 14, load_from=tmp_path / "6")
    assert decay.rate == resumed.rate < 0.2
    assert all(np.array_equal(everything(again)[n], value) for n, value in everything(whole).items())


SOLVERS = {
    "SGD": lambda **k: SGD(lr=0.05, momentum=MomPolicy.Linear(0.5, 0.01, 1, 0.9), regu_coef=1e-3, **k),
    "Nesterov": lambda **k: Nesterov(lr=LRPolicy.Inv(0.05, 0.01, 0.75), momentum=0.9, **k),
    "Adam": lambda **k: Adam(lr=0.05, **k),
    "AdamW": lambda **k: AdamW(lr=0.05, **k),
    "RMSprop": lambda **k: RMSprop(momentum=0.3, **k),
    "Adagrad": lambda **k: Adagrad(**k),
    "Adadelta": lambda **k: Adadelta(**k),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_resuming_is_bit_identical(tmp_path, name):
    """Mocha loses the momentum. Here: dropout, shuffling, statistics, history, in the middle of an epoch."""
    whole, first, then = net_of(), net_of(), Net("other", net_of().layers, seed=99)
    SOLVERS[name](max_iter=23).solve(whole)
    solver = SOLVERS[name](max_iter=14)
    solver.add(Snapshot(tmp_path, every_n_iter=7))
    solver.solve(first)
    again = SOLVERS[name](max_iter=23, load_from=tmp_path)
    again.solve(then)
    assert again.state.iter == 23
    for n, value in everything(whole).items():
        assert np.array_equal(value, then.named_parameters()[n].data), n
    assert whole.statistics() == then.statistics()
    assert whole.epoch == then.epoch


def test_load_from(tmp_path):
    net = net_of()
    solver = SGD(max_iter=3)
    solver.add(Snapshot(tmp_path / "s", every_n_iter=3))
    solver.solve(net)
    net.save(tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match=r"SGD.*Adam"):
        Adam(max_iter=9, load_from=tmp_path / "s").init(net_of())
    warm = Adam(max_iter=9, load_from=tmp_path / "w.safetensors")
    other = net_of()
    warm.init(other)
    assert warm.state.iter == 0
    assert np.array_equal(everything(other)["ip1.weight"], everything(net)["ip1.weight"])
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
        SGD(max_iter=1, load_from=tmp_path).init(net_of())
    done = SGD(max_iter=3, load_from=tmp_path / "s")
    done.solve(net_of())
    assert (done.state.iter, done.state.stop_reason) == (3, "max_iter")


def test_training_learns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)).astype(np.float32)
    t = (x[:, 0] * x[:, 1] > 0).astype(int)
    layers = [
        InnerProduct(32, neuron=Neurons.ReLU()),
        InnerProduct(2),
        SoftmaxLoss(name="loss"),
        Accuracy(name="accuracy"),
    ]
    net = Net.chain("xor", layers, data=[x, t], batch_size=50, shuffle=True)
    solver = Adam(lr=0.02, max_epoch=40)
    solver.solve(net)
    assert net.evaluate([x, t])["accuracy.accuracy"] > 0.95


def test_constant_init_symmetry_is_the_users():
    net = net_of(weight_init=Constant(0.5))
    assert (net.params["ip1"]["weight"].data == 0.5).all()
