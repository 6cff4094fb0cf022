"""Losses and statistics: values by NumPy, gradients to every float bottom by central differences."""

import numpy as np
import pytest
from layer_checks import check, net_of, run
from scipy import special

from layerc.runtime import (
    Accuracy,
    BinaryAccuracy,
    BinaryCrossEntropyLoss,
    CTCLoss,
    GaussianKLLoss,
    HingeLoss,
    MultinomialLogisticLoss,
    NullBlob,
    SoftlabelSoftmaxLoss,
    SoftmaxLoss,
    SquareLoss,
    TopologyError,
    WassersteinLoss,
)

RNG = np.random.default_rng(0)
SHAPES = [(3, 4), (1, 1), (2, 3, 2), (3, 1, 2, 2)]


def normal(*shape):
    return RNG.normal(size=shape)


def unit(*shape):
    return RNG.uniform(0.05, 0.95, size=shape)


def made(cls, *args, bottoms=("p", "t"), **more):
    return cls(*args, name="loss", bottoms=list(bottoms), **more)


# -- losses of two blobs ----------------------------------------------------------------------------------


def bce(p, t):
    return -np.sum(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log1p(-p), -100))


PAIRS = {
    SquareLoss: (normal, normal, lambda p, t: np.sum((p - t) ** 2) / 2),
    BinaryCrossEntropyLoss: (unit, unit, bce),
    HingeLoss: (normal, lambda *s: np.sign(normal(*s)), lambda p, t: np.sum(np.maximum(1 - t * p, 0))),
    GaussianKLLoss: (normal, unit, lambda m, s: np.sum(m**2 + s**2 - 2 * np.log(s) - 1) / 2),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cls", PAIRS)
def test_pairs(cls, shape):
    first, second, value = PAIRS[cls]
    feed = {"p": first(*shape), "t": second(*shape)}
    check(made(cls), feed, lambda p, t: value(p, t) / len(p))
    check(made(cls, weight=-0.3, normalize="sum"), feed, lambda p, t: -0.3 * value(p, t))


@pytest.mark.parametrize("cls", PAIRS)
def test_pairs_without_examples(cls):
    net = run(made(cls), {"p": np.zeros((0, 3)), "t": np.zeros((0, 3))})
    net.backward()
    assert net.objective() == 0
    assert net.blobs["p"].diff.shape == (0, 3)


@pytest.mark.parametrize("cls", PAIRS)
def test_pairs_refuse_other_shapes(cls):
    with pytest.raises(ValueError, match=r"'loss'.*'p'.*'t'"):
        net_of(made(cls), {"p": np.zeros((2, 3)), "t": np.zeros((2, 4))})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binary_cross_entropy_at_its_ends(dtype):
    p = np.array([[0.0, 1.0, 0.0, 1.0, 0.5]])
    t = np.array([[1.0, 0.0, 0.0, 1.0, 1.0]])
    net = run(made(BinaryCrossEntropyLoss), {"p": p, "t": t}, dtype)
    assert net.objective() == pytest.approx(200 + np.log(2), rel=1e-6)
    net.backward()
    assert np.isfinite(net.blobs["p"].diff).all()
    assert net.blobs["p"].diff[0, 4] == pytest.approx(-2)
    np.testing.assert_allclose(net.blobs["t"].diff[0, :4], [100, -100, 100, -100])


def test_binary_cross_entropy_shows_what_is_no_probability():
    for bad in (-0.1, 1.1, np.nan):
        net = run(made(BinaryCrossEntropyLoss), {"p": np.array([[bad]]), "t": np.array([[0.5]])})
        assert np.isnan(net.objective())


@pytest.mark.parametrize(("cls", "no"), [(HingeLoss, -1), (BinaryCrossEntropyLoss, 0)])
def test_integer_targets(cls, no):
    net = run(made(cls), {"p": unit(4, 2), "t": np.array([[1, 1], [no, 1], [1, no], [1, 1]])})
    net.backward()
    floats = run(made(cls), {"p": net.blobs["p"].data, "t": net.blobs["t"].data.astype(float)})
    assert net.objective() == floats.objective()
    assert net.blobs["t"].diff is NullBlob()


def test_hinge_uses_its_weight():
    """Mocha's forward ignored it."""
    feed = {"p": np.array([[0.5]]), "t": np.array([[1.0]])}
    assert run(made(HingeLoss, weight=3.0), feed).objective() == pytest.approx(1.5)


# -- losses of labels -------------------------------------------------------------------------------------

LABELS = [((5, 3), 1), ((2, 3, 4), 1), ((2, 3, 4), 2), ((2, 3, 4), -1), ((2, 2, 3, 2), -2), ((3, 1), 1), ((1, 4), 1)]


def labels_for(shape, axis):
    axis %= len(shape)
    return RNG.integers(0, shape[axis], (*shape[:axis], *shape[axis + 1 :]))


def picked(values, labels, axis):
    return np.take_along_axis(values, np.expand_dims(labels, axis), axis).squeeze(axis)


@pytest.mark.parametrize(("shape", "axis"), LABELS)
@pytest.mark.parametrize("cls", [SoftmaxLoss, MultinomialLogisticLoss])
@pytest.mark.parametrize("normalize", ["mean", "sum", "weights"])
def test_labels(cls, shape, axis, normalize):
    p, t = unit(*shape), labels_for(shape, axis)
    weights = RNG.uniform(0.5, 2, shape[axis])
    layer = made(cls, axis, weights, 0, normalize=normalize)

    def value(p, t):
        logs = special.log_softmax(p, axis=axis) if cls is SoftmaxLoss else np.log(p)
        kept = t != 0
        terms = (-weights[t] * picked(logs, t, axis))[kept]
        divisor = {"mean": kept.sum(), "sum": 1, "weights": weights[t][kept].sum()}[normalize]
        return terms.sum() / divisor if kept.any() else 0.0

    check(layer, {"p": p, "t": t}, value)
    if normalize == "mean":
        check(made(cls, axis), {"p": p, "t": np.expand_dims(t, axis)})


def test_multinomial_clamps():
    p = np.array([[0.0, 1.0], [1e-30, 1.0]])
    net = run(made(MultinomialLogisticLoss), {"p": p, "t": np.array([0, 0])})
    assert net.objective() == pytest.approx(-np.log(1e-20))
    net.backward()
    assert net.blobs["p"].diff.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("cls", [SoftmaxLoss, MultinomialLogisticLoss])
def test_a_class_of_no_weight_may_be_impossible(cls):
    p = np.array([[-np.inf, 0.5], [0.5, 0.5]]) if cls is SoftmaxLoss else np.array([[0, 1.0], [0.5, 0.5]])
    net = run(made(cls, class_weights=[0, 1]), {"p": p, "t": np.array([0, 1])})
    net.backward()
    assert np.isfinite(net.objective())
    assert np.isfinite(net.blobs["p"].diff).all()


@pytest.mark.parametrize(
    "bad", [{"class_weights": [1, -1]}, {"class_weights": [[1]]}, {"axis": 0.5}, {"normalize": "n"}]
)
@pytest.mark.parametrize("cls", [SoftmaxLoss, MultinomialLogisticLoss])
def test_label_losses_check_their_fields(cls, bad):
    with pytest.raises(ValueError, match=rf"{cls.__name__} 'loss'.*{next(iter(bad))}"):
        made(cls, **bad)


def test_label_losses_check_their_bottoms():
    scores = {"p": np.zeros((2, 3)), "t": np.zeros(2, int)}
    for layer in (made(SoftmaxLoss, axis=2), made(SoftmaxLoss, axis=0), made(SoftmaxLoss, class_weights=[1, 1])):
        with pytest.raises(ValueError, match="'loss'"):
            net_of(layer, scores)
    with pytest.raises(ValueError, match="'t'"):
        net_of(made(SoftmaxLoss), {"p": np.zeros((2, 3)), "t": np.zeros((2, 3), int)})


@pytest.mark.parametrize(("shape", "axis"), LABELS)
def test_soft_labels(shape, axis):
    feed = {"p": normal(*shape), "t": unit(*shape)}
    count = np.prod(shape) / shape[axis]
    check(made(SoftlabelSoftmaxLoss, axis), feed, lambda p, t: -np.sum(t * special.log_softmax(p, axis)) / count)


def test_soft_labels_of_impossible_classes():
    feed = {"p": np.array([[-np.inf, 0.0, 1.0]]), "t": np.array([[0.0, 0.5, 0.5]])}
    net = run(made(SoftlabelSoftmaxLoss), feed)
    net.backward()
    assert np.isfinite(net.objective())
    assert np.isfinite(net.blobs["p"].diff).all()


# -- transport and alignment ------------------------------------------------------------------------------


def sinkhorn(a, b, cost, lam, n_iter):
    kernel = np.exp(-lam * cost)
    total = 0
    for one, other in zip(a, b):
        u = np.full(len(one), 1 / len(one))
        for _ in range(n_iter):
            u = one / (kernel @ (other / (kernel.T @ u)))
        v = other / (kernel.T @ u)
        total += np.sum(u * ((kernel * cost) @ v))
    return total / len(a)


@pytest.mark.parametrize(("n", "c", "d", "n_iter"), [(3, 4, 4, 50), (2, 3, 5, 7), (1, 1, 2, 3), (2, 4, 3, 1)])
def test_wasserstein(n, c, d, n_iter):
    cost = RNG.uniform(0, 2, (c, d))
    feed = {"p": RNG.dirichlet(np.ones(c), n), "t": RNG.dirichlet(np.ones(d), n)}
    layer = made(WassersteinLoss, cost, 1.5, n_iter)
    check(layer, feed, lambda a, b: sinkhorn(a, b, cost, 1.5, n_iter), tol=2e-6)


def test_wasserstein_fields_and_shapes():
    with pytest.raises(TypeError, match="lam"):
        made(WassersteinLoss, np.eye(2))
    for bad in ((np.eye(2), -1), (np.ones(3), 1), (np.array([[np.inf]]), 1), (np.eye(2), 1, 0)):
        with pytest.raises(ValueError, match="WassersteinLoss"):
            made(WassersteinLoss, *bad)
    with pytest.raises(ValueError, match=r"'p'.*\(N, 2\)"):
        net_of(made(WassersteinLoss, np.eye(2), 1), {"p": np.zeros((4, 3)), "t": np.zeros((4, 2))})
    cost = np.eye(2)
    layer = made(WassersteinLoss, cost, 1)
    cost[0, 0] = 9
    assert layer.M[0, 0] == 1


def alignments(log_p, label, blank):
    """-log of the summed probability of all paths, by trying them all."""
    import itertools

    total = 0.0
    for path in itertools.product(range(log_p.shape[1]), repeat=len(log_p)):
        merged = [c for c, _ in itertools.groupby(path) if c != blank]
        if merged == list(label):
            total += np.exp(sum(log_p[t, c] for t, c in enumerate(path)))
    return -np.log(total)


CTC_LABELS = [[1, 2], [1, 1], [2], [], [0, 1]]


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("label", CTC_LABELS)
def test_ctc(label, blank):
    if blank in label:
        label = [1 if k == blank else k for k in label]
    x = normal(2, 5, 3)
    padded = np.array([label + [-1] * (3 - len(label))] * 2)
    expected = np.mean([alignments(special.log_softmax(one, 1), label, blank) for one in x])
    check(made(CTCLoss, blank), {"p": x, "t": padded}, lambda p, t: expected)


def test_ctc_lengths():
    x = normal(3, 6, 3)
    label = np.array([[1, 2, 2], [2, 1, 0], [1, 1, 1]])
    steps, sizes = np.array([6, 4, 3]), np.array([3, 2, 0])
    layer = made(CTCLoss, bottoms=("p", "t", "xl", "tl"))
    parts = [alignments(special.log_softmax(x[k, : steps[k]], 1), label[k, : sizes[k]], 0) for k in range(3)]
    net = check(layer, {"p": x, "t": label, "xl": steps, "tl": sizes}, lambda *_: np.mean(parts))
    assert not net.blobs["p"].diff[1, 4:].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ctc_of_what_cannot_be(dtype):
    net = run(made(CTCLoss), {"p": normal(1, 2, 3), "t": np.array([[1, 1]])}, dtype)
    assert net.objective() == np.inf
    net.backward()
    assert not net.blobs["p"].diff.any()


def test_ctc_of_extreme_scores():
    x = np.zeros((1, 4, 3))
    x[0, :, 1] = 1e4
    x[0, 1, 2] = -np.inf
    net = run(made(CTCLoss), {"p": x, "t": np.array([[1]])})
    assert net.objective() == pytest.approx(0, abs=1e-9)
    net.backward()
    assert np.isfinite(net.blobs["p"].diff).all()


@pytest.mark.parametrize("bad", [0, 3, -2])
def test_ctc_wrong_labels(bad):
    with pytest.raises(IndexError, match=rf"'loss'.*'t'.*{bad}"):
        run(made(CTCLoss), {"p": normal(1, 4, 3), "t": np.array([[1, bad, 2]])})


def test_ctc_wrong_bottoms():
    x, t = normal(2, 4, 3), np.array([[1, 2], [1, 2]])
    with pytest.raises(ValueError, match="x_length"):
        net_of(made(CTCLoss, bottoms="ptl"), {"p": x, "t": t, "l": np.array([4, 4])})
    with pytest.raises(ValueError, match="blank"):
        net_of(made(CTCLoss, 3), {"p": x, "t": t})
    with pytest.raises(ValueError, match="x_length"):
        run(made(CTCLoss, bottoms="ptlm"), {"p": x, "t": t, "l": np.array([4, 5]), "m": np.array([2, 2])})


def test_ctc_without_examples_or_steps():
    for shape in ((0, 4, 3), (2, 0, 3)):
        net = run(made(CTCLoss), {"p": np.zeros(shape), "t": np.full((shape[0], 2), -1)})
        assert net.objective() == 0


# -- statistics -------------------------------------------------------------------------------------------


def test_losses_are_statistics_by_samples():
    net = net_of(made(SquareLoss, weight=2.0), {"p": np.zeros((1, 1)), "t": np.zeros((1, 1))})
    for n, value in ((3, 1.0), (1, 3.0)):
        net.forward(data={"p": np.full((n, 1), value), "t": np.zeros((n, 1))})
    assert net.statistics() == {"loss.loss": pytest.approx((3 * 1 + 1 * 9) / 4)}


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_accuracy_along_axes(axis):
    p = normal(3, 4, 4)
    t = labels_for(p.shape, axis)
    for k in (1, 2, 4):
        net = run(made(Accuracy, k, axis), {"p": p, "t": t})
        rank = (np.moveaxis(p, axis, -1) > np.expand_dims(picked(p, t, axis), -1)).sum(-1)
        assert net.statistics()["loss.accuracy"] == pytest.approx((rank < k).mean())


def test_binary_accuracy():
    p, t = np.array([[0.6, 0.4], [0.5, 0.9]]), np.array([[1, 1], [0, 1]])
    for target in (t, t.astype(float)):
        assert run(made(BinaryAccuracy), {"p": p, "t": target}).statistics() == {"loss.accuracy": 0.75}
    assert run(made(BinaryAccuracy, 0.95), {"p": p, "t": t}).statistics() == {"loss.accuracy": 0.25}
    with pytest.raises(ValueError, match="'t'"):
        net_of(made(BinaryAccuracy), {"p": p, "t": t[:, 0]})


def test_statistics_are_sinks():
    with pytest.raises(TopologyError, match="sink"):
        net_of(made(BinaryAccuracy, tops=["y"]), {"p": normal(2, 2), "t": normal(2, 2)})
