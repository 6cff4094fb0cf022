"""The catalogue's layers against torch in float64: values, and gradients of every bottom and parameter."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from layer_checks import net_of
from oracles.side_by_side import compare, made, normal

from layerc.runtime import (
    GRU,
    LRN,
    LSTM,
    BatchNorm,
    BinaryCrossEntropyLoss,
    Convolution,
    CTCLoss,
    Embedding,
    InnerProduct,
    LayerNorm,
    MultinomialLogisticLoss,
    Pooling,
    Softmax,
    SoftmaxLoss,
    SquareLoss,
)

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(0)


CONVOLUTIONS = [
    ((2, 4, 7, 8), 6, (3, 2), (2, 1), (1, 0), 2, (1, 2)),
    ((3, 3, 9, 9), 5, (3, 3), (1, 1), (1, 1), 1, (1, 1)),
    ((1, 6, 11, 5), 6, (5, 1), (3, 2), (4, 2), 6, (2, 1)),
    ((2, 1, 1, 1), 1, (1, 1), (1, 1), (0, 0), 1, (1, 1)),
    ((2, 16, 14, 14), 24, (3, 3), (1, 1), (1, 1), 1, (1, 1)),
]
IN_STRIPS = [
    ((1, 20, 12, 12), 50, (5, 5), (1, 1), (0, 0), 1, (1, 1)),
    ((5, 20, 12, 12), 50, (5, 5), (1, 1), (0, 0), 1, (1, 1)),
    ((2, 64, 23, 19), 48, (3, 3), (2, 1), (1, 2), 2, (1, 2)),
]


@pytest.mark.parametrize("case", [*CONVOLUTIONS, *IN_STRIPS])
@pytest.mark.parametrize("bias", [True, False])
def test_convolution(case, bias):
    shape, n_filter, kernel, stride, pad, groups, dilation = case
    layer = made(Convolution, n_filter, kernel, stride, pad, groups, dilation, bias)
    assert (layer.function(shape)[1]["strips"] > 1) == (case in IN_STRIPS)
    compare(
        layer,
        {"x": normal(*shape)},
        lambda x, weight, bias=None: F.conv2d(x, weight, bias, stride, pad, dilation, groups),
    )


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad"), itertools.product([(7, 10), (5, 5)], [2, 3, 5], [1, 2, 3], [0, 1])
)
@pytest.mark.parametrize("ceil", [False, True])
def test_pooling(size, kernel, stride, pad, ceil):
    x = normal(2, 3, *size)
    layer = made(Pooling, "max", kernel, stride, pad, ceil)
    compare(layer, {"x": x}, lambda x: F.max_pool2d(x, kernel, stride, pad, ceil_mode=ceil))
    for count in (True, False):
        layer = made(Pooling, "mean", kernel, stride, pad, ceil, count)
        compare(layer, {"x": x}, lambda x, count=count: F.avg_pool2d(x, kernel, stride, pad, ceil, count))


@pytest.mark.parametrize(("kernel", "size"), [*itertools.product(range(1, 6), range(1, 7))])
def test_pooling_of_small_images(kernel, size):
    """What torch refuses is refused, all else is the same."""
    x = normal(1, 2, size, size)
    for stride, pad, ceil in itertools.product(range(1, 5), range(kernel // 2 + 1), (False, True)):
        layer = made(Pooling, "max", kernel, stride, pad, ceil)
        try:
            F.max_pool2d(torch.tensor(x), kernel, stride, pad, ceil_mode=ceil)
        except RuntimeError:
            with pytest.raises(ValueError, match="'y'"):
                net_of(layer, {"x": x})
            continue
        compare(layer, {"x": x}, lambda x: F.max_pool2d(x, kernel, stride, pad, ceil_mode=ceil))  # noqa: B023
        for count in (True, False):
            layer = made(Pooling, "mean", kernel, stride, pad, ceil, count)
            compare(layer, {"x": x}, lambda x: F.avg_pool2d(x, kernel, stride, pad, ceil, count))  # noqa: B023


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_lrn(kernel):
    layer = made(LRN, kernel, 0.3, 2.0, 0.75)
    compare(layer, {"x": normal(2, 7, 3, 4)}, lambda x: F.local_response_norm(x, kernel, 0.3, 0.75, 2.0))


@pytest.mark.parametrize("shape", [(6, 4), (5, 4, 3), (3, 2, 4, 5)])
@pytest.mark.parametrize("phase", ["train", "predict"])
def test_batch_norm(shape, phase):
    mean, var = torch.zeros(shape[1], dtype=torch.float64), torch.ones(shape[1], dtype=torch.float64)
    feed = {"x": normal(*shape)}

    def function(x, weight, bias):
        return F.batch_norm(x, mean, var, weight, bias, phase == "train", 0.3, 1e-4)

    compare(made(BatchNorm, 0.3, 1e-4), feed, function, phase)
    net = net_of(made(BatchNorm, 0.3, 1e-4), feed)
    net.forward(data=feed, phase=phase)
    np.testing.assert_allclose(net.states["y"]["mean"], mean.numpy())
    np.testing.assert_allclose(net.states["y"]["var"], var.numpy())


@pytest.mark.parametrize(("shape", "axis"), [((4, 6), -1), ((3, 4, 5), 1), ((2, 3, 4, 5), 2)])
def test_layer_norm(shape, axis):
    layer = made(LayerNorm, axis, 1e-4)
    compare(layer, {"x": normal(*shape)}, lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, bias, 1e-4))


def recurrent(kind, hidden, x, first, weight_ih, weight_hh, bias_ih, bias_hh):
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    values = (weight_ih.T, weight_hh.T, bias_ih, bias_hh)
    module = kind(x.shape[2], hidden, batch_first=True).double()
    state = tuple(h[None] for h in first) if first else None
    return torch.func.functional_call(
        module, dict(zip(names, values)), (x, state[0] if state and len(state) == 1 else state)
    )[0]


@pytest.mark.parametrize(("cls", "kind"), [(GRU, torch.nn.GRU), (LSTM, torch.nn.LSTM)])
@pytest.mark.parametrize("sequence", [True, False])
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(("n", "t", "d", "h"), [(3, 7, 4, 5), (1, 1, 2, 3), (20, 12, 6, 33)])
def test_recurrent(cls, kind, sequence, given, n, t, d, h):
    feed = {"x": normal(n, t, d)} | ({name: normal(n, h) for name in cls.carried} if given else {})

    def function(x, *first, **params):
        y = recurrent(kind, h, x, first, **params)
        return y if sequence else y[:, -1]

    compare(made(cls, h, sequence, bottoms=list(feed)), feed, function)


def test_embedding_and_products():
    index = RNG.integers(0, 9, (4, 3))
    compare(made(Embedding, 9, 5), {"x": index}, lambda x, weight: F.embedding(x, weight))
    compare(made(InnerProduct, 5), {"x": normal(4, 2, 3)}, lambda x, weight, bias: x.flatten(1) @ weight + bias)
    compare(made(Softmax, 2), {"x": normal(2, 3, 4)}, lambda x: torch.softmax(x, 2))


@pytest.mark.parametrize("shape", [(6, 4), (3, 4, 5), (2, 4, 3, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_label_losses(shape, weighted):
    weights = RNG.uniform(0.2, 2, 4) if weighted else None
    given = None if weights is None else torch.tensor(weights)
    feed = {"x": normal(*shape), "t": RNG.integers(0, 4, (shape[0], *shape[2:]))}
    for normalize, reduction in (("weights" if weighted else "mean", "mean"), ("sum", "sum")):
        options = {"bottoms": ("x", "t"), "class_weights": weights, "ignore_label": 2, "normalize": normalize}
        compare(
            made(SoftmaxLoss, **options),
            feed,
            lambda x, t, reduction=reduction: F.cross_entropy(x, t, given, ignore_index=2, reduction=reduction),
        )
        positive = {"x": np.exp(feed["x"]), "t": feed["t"]}
        compare(
            made(MultinomialLogisticLoss, **options),
            positive,
            lambda x, t, reduction=reduction: F.nll_loss(torch.log(x), t, given, ignore_index=2, reduction=reduction),
        )


def test_losses_of_pairs():
    feed = {"x": RNG.uniform(0.1, 0.9, (5, 3)), "t": RNG.uniform(0.1, 0.9, (5, 3))}
    two = {"bottoms": ("x", "t")}
    compare(made(SquareLoss, **two), feed, lambda x, t: F.mse_loss(x, t, reduction="sum") / 10)
    compare(
        made(BinaryCrossEntropyLoss, **two),
        feed,
        lambda x, t: -torch.sum(t * torch.log(x) + (1 - t) * torch.log(1 - x)) / 5,
    )


@pytest.mark.parametrize(("n", "t", "c", "s"), [(4, 9, 5, 3), (1, 3, 2, 1), (17, 20, 6, 6)])
@pytest.mark.parametrize("blank", [0, 1])
def test_ctc(n, t, c, s, blank):
    label = RNG.integers(0, c - 1, (n, s))
    label += label >= blank
    lengths = RNG.integers(0, s + 1, n)
    steps = np.minimum(t, 2 * lengths + RNG.integers(1, 4, n))
    feed = {"x": normal(n, t, c), "t": label, "xl": steps, "tl": lengths}

    def function(x, t, xl, tl):
        losses = F.ctc_loss(F.log_softmax(x, 2).swapaxes(0, 1), t, xl, tl, blank, reduction="none")
        return losses.mean()

    compare(made(CTCLoss, blank, bottoms=list(feed)), feed, function)
