"""Solvers against torch.optim: the same parameters after the same gradients."""

import numpy as np
import pytest

from layerc.runtime import (
    SGD,
    Accuracy,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    InnerProduct,
    LRPolicy,
    MemoryData,
    Nesterov,
    Net,
    Neurons,
    NoRegu,
    RMSprop,
    SoftmaxLoss,
)

torch = pytest.importorskip("torch")

OPTIMIZERS = {
    "sgd": (SGD(lr=0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "momentum": (SGD(lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9)),
    "weight decay": (SGD(lr=0.1, regu_coef=0.05), lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.1)),
    "nesterov": (Nesterov(lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True)),
    "adam": (Adam(lr=0.1), lambda p: torch.optim.Adam(p, 0.1)),
    "adamw": (AdamW(lr=0.1, weight_decay=0.3), lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.3)),
    "rmsprop": (RMSprop(lr=0.01, momentum=0.4), lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.4)),
    "adagrad": (Adagrad(lr=0.1), lambda p: torch.optim.Adagrad(p, 0.1)),
    "adadelta": (Adadelta(lr=0.7), lambda p: torch.optim.Adadelta(p, 0.7, rho=0.95)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_torchs(name):
    """Thirty iterations on the same batches, float64, to rounding."""
    solver, make = OPTIMIZERS[name]
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(40, 6)), rng.integers(0, 3, 40)
    regu = {} if name == "weight decay" else {"weight_regu": NoRegu()}
    layers = [
        MemoryData([x, t], 10, name="data"),
        InnerProduct(5, name="a", bottoms=["data"], neuron=Neurons.Tanh(), bias=False, **regu),
        InnerProduct(3, name="b", bottoms=["a"], bias=False, **regu),
        SoftmaxLoss(name="loss", bottoms=["b", "label"]),
        Accuracy(name="accuracy", bottoms=["b", "label"]),
    ]
    net = Net("n", layers)
    w = [torch.tensor(net.params[k]["weight"].data.copy(), requires_grad=True) for k in "ab"]
    optimizer = make(w)
    solver.init(net)
    for it in range(30):
        rows = [(10 * it + k) % 40 for k in range(10)]
        solver.step(net)
        optimizer.zero_grad()
        scores = torch.tanh(torch.tensor(x[rows]) @ w[0]) @ w[1]
        torch.nn.functional.cross_entropy(scores, torch.tensor(t[rows])).backward()
        optimizer.step()
    for k, own in zip("ab", w):
        np.testing.assert_allclose(net.params[k]["weight"].data, own.detach().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("policy", "scheduler"),
    [
        (LRPolicy.Cosine(0.5, 20, 0.1), lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 20, 0.1)),
        (LRPolicy.Step(0.5, 0.3, 7), lambda o: torch.optim.lr_scheduler.StepLR(o, 7, 0.3)),
        (LRPolicy.Exp(0.5, 0.9), lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9)),
        (LRPolicy.Linear(0.5, 0.05, 15), lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, 15)),
    ],
)
def test_policies_are_torchs(policy, scheduler):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.5)
    steps = scheduler(optimizer)
    for it in range(20):
        assert policy(it) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        optimizer.step()
        steps.step()
