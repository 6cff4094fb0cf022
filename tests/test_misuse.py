"""Wrong calls of nets, solvers and their parts: each says which part, and what it was given."""

import re

import h5py
import numpy as np
import pytest

from layerc.runtime import (
    SGD,
    Accuracy,
    Blob,
    CoffeeLounge,
    Constant,
    DataTransformers,
    FunctionLayer,
    Gaussian,
    HDF5Data,
    HingeLoss,
    Identity,
    InnerProduct,
    Input,
    L1Regu,
    L2Cons,
    L2Regu,
    LayercClassifier,
    LRPolicy,
    MemoryData,
    MomPolicy,
    Net,
    Neurons,
    Orthogonal,
    Parameter,
    RandomNormal,
    Reshape,
    RMSprop,
    SoftmaxLoss,
    Uniform,
    ValidationPerformance,
    WassersteinLoss,
    Xavier,
)

X, T = np.arange(40.0).reshape(10, 4) / 40, np.arange(10) % 3


def net_of(*more, **keywords):
    source = MemoryData([X, T], 5, name="data", **keywords)
    ip, bottoms = InnerProduct(3, name="ip", bottoms=["data"]), ["ip", "label"]
    return Net(
        "n", [source, ip, *more, SoftmaxLoss(name="loss", bottoms=bottoms), Accuracy(name="accuracy", bottoms=bottoms)]
    )


def seen():
    net = net_of()
    net.forward()
    return net


def function(fn, backward=None):
    return net_of(FunctionLayer(fn, backward, name="f", bottoms=["data"], tops=["f"]))


def pulled(backward):
    net = Net("n", [Input([(4,)], ["x"], name="in"), FunctionLayer(lambda x: x, backward, name="f", bottoms=["x"])])
    net.force_backward = True
    net.forward(data={"x": X})
    net.backward(seed={"f": X})


def closed():
    net = net_of()
    net.shutdown()
    return net


def replaced():
    net_of().params["ip"]["weight"] = 3


def validated(statistic):
    solver = SGD(patience=(statistic, 2))
    solver.add(ValidationPerformance([X, T], every_n_iter=1))
    solver.solve(net_of())


def decaying(statistic, *breaks, wrap=lambda policy: policy):
    solver = SGD(max_iter=1, lr=wrap(LRPolicy.DecayOnValidation(0.1, statistic)))
    for one in breaks:
        solver.add(one)
    solver.solve(net_of())


def stepped_with(net):
    solver = SGD(max_iter=2)
    solver.init(net_of())
    solver.step(net)


def net_with(source):
    return Net("n", [source])


def hinged(label, times=1):
    net = Net("n", [Input([(4,), (4,)], ["x", "t"], name="in"), HingeLoss(name="hinge", bottoms=["x", "t"])])
    for k in range(times):
        net.forward(data={"x": X, "t": np.where(k + 1 < times, 1, label) * np.ones_like(X, int)})


def lounged(path):
    solver = SGD(max_iter=1)
    solver.lounge = CoffeeLounge(path)
    solver.solve(net_of())


def activated(source):
    Net("n", [source, Identity(name="act", bottoms=["label"], neuron=Neurons.ReLU())])


def classified():
    LayercClassifier(net=[InnerProduct(3), SoftmaxLoss(name="own")]).fit(X, T)


VALIDATION = ValidationPerformance([X, T], every_n_iter=1)

CALLS = {
    "decay of nothing": (
        lambda: decaying("zz", VALIDATION),
        ValueError,
        "lr=Decay.*no statistic 'zz'; there is .*loss",
    ),
    "decay of obj_val": (lambda: decaying("obj_val", VALIDATION), ValueError, "lr=Decay.*no statistic 'obj_val'"),
    "decay unseen": (lambda: decaying("loss.loss"), ValueError, "lr=Decay.*add ValidationPerformance"),
    "staged decay": (
        lambda: decaying("zz", VALIDATION, wrap=lambda policy: LRPolicy.Staged((1, 0.1), (1, policy))),
        *(ValueError, "lr=Decay.*'zz'"),
    ),
    "decay ratio": (lambda: LRPolicy.DecayOnValidation(0.1, "a.a", 2), ValueError, "DecayOnValidation: ratio=2"),
    "decay statistic": (lambda: LRPolicy.DecayOnValidation(0.1, 3), ValueError, "DecayOnValidation: statistic=3"),
    "decay of momentum": (
        lambda: SGD(momentum=LRPolicy.DecayOnValidation(0.1, "loss.loss")),
        *(ValueError, "SGD: momentum=.*learning rates"),
    ),
    "momentum": (lambda: SGD(momentum=2.0), ValueError, "SGD: momentum=2.0 at iteration 0"),
    "momentum of 1": (lambda: RMSprop(momentum=MomPolicy.Fixed(1)), ValueError, "RMSprop: momentum=1.0 at iteration 0"),
    "most momentum": (lambda: MomPolicy.Linear(0.5, 0.1, 1, 1.5), ValueError, "CappedLinear: max=1.5"),
    "momentum in time": (
        lambda: SGD(max_iter=9, momentum=MomPolicy.Exp(0.5, 2)).solve(net_of()),
        *(ValueError, "momentum=1.0 at iteration 1"),
    ),
    "target": (lambda: SGD(target=("acuracy.accuracy", 0.5)).solve(net_of()), ValueError, "target=.*accuracy.accuracy"),
    "patience": (lambda: SGD(patience=("zz", 2)).solve(net_of()), ValueError, "patience=.*'zz'; there is .*loss.loss"),
    "patience at init": (lambda: SGD(patience=("zz", 2)).init(net_of()), ValueError, "patience="),
    "patience of a validation": (lambda: validated("validation.zz"), ValueError, "validation.accuracy.accuracy"),
    "initializer class": (lambda: InnerProduct(3, weight_init=Xavier), ValueError, "weight_init.*write Xavier"),
    "orthogonal": (lambda: Orthogonal(gain="a"), ValueError, "Orthogonal: gain='a'"),
    "gaussian": (lambda: Gaussian(std="a"), ValueError, "Gaussian: std='a'"),
    "uniform": (lambda: Uniform("a", 1), ValueError, "Uniform: low='a'"),
    "constant": (lambda: Constant("a"), ValueError, "Constant: value='a'"),
    "gaussian nan": (lambda: Gaussian(np.nan), ValueError, "Gaussian: mean=nan"),
    "uniform inf": (lambda: Uniform(0, np.inf), ValueError, "Uniform: high=inf"),
    "constant nan": (lambda: Constant(np.nan), ValueError, "Constant: value=nan"),
    "array of texts": (lambda: InnerProduct(3, weight_init=["a"]), ValueError, "weight_init=.*Array: .* numbers"),
    "l2": (lambda: L2Regu("a"), ValueError, "L2Regu: c='a'"),
    "l1": (lambda: L1Regu(np.nan), ValueError, "L1Regu: c=nan"),
    "l2 cons": (lambda: L2Cons("a"), ValueError, "L2Cons: threshold='a'"),
    "neuron": (lambda: Neurons.LReLU("a"), ValueError, "LReLU: slope='a'"),
    "input shape": (lambda: Input([(-1,)], ["x"]), ValueError, "'input': field shapes=.*negative extent; None"),
    "random shape": (lambda: RandomNormal((-1,)), ValueError, "'randomnormal': field shape=.*negative extent"),
    "another net": (lambda: stepped_with(net_of()), ValueError, "SGD: step was given net 'n', but init another one"),
    "step of nothing": (lambda: stepped_with(3), TypeError, "SGD: a solver trains a net, not int 3"),
    "lounge": (lambda: setattr(SGD(max_iter=1), "lounge", 3), TypeError, "SGD: lounge=3 must be a CoffeeLounge"),
    "batch size": (lambda: net_of().evaluate([X, T], 0), ValueError, "batch_size=0 must be a positive integer"),
    "no sample": (lambda: net_of().evaluate([X[:0], T[:0]]), ValueError, "no sample.*'data' has 0 examples"),
    "net seed": (lambda: Net("n", [], seed="a"), TypeError, "net 'n': seed='a'"),
    "real seed": (lambda: Net("n", [], seed=1.5), TypeError, "net 'n': seed=1.5"),
    "negative seed": (lambda: Net("n", [], seed=-1), ValueError, "net 'n': seed=-1"),
    "backend": (lambda: Net("n", [], backend=3), TypeError, "net 'n': backend=3"),
    "a layer for a list": (
        lambda: Net("n", Input([(4,)], ["x"])),
        TypeError,
        "net 'n' takes a list of layers, not Inp",
    ),
    "no list": (lambda: Net.chain("c", 3), TypeError, "net 'c' takes a list of layers, not int 3"),
    "regu_coef nan": (lambda: net_of().forward(regu_coef=np.nan), ValueError, "regu_coef=nan"),
    "diff": (lambda: Blob(np.ones(3), np.ones(4)), ValueError, r"diff of a blob of shape \(3,\).*\(4,\)"),
    "diff blob": (lambda: Blob(np.ones(3), Blob(np.ones(4))), ValueError, r"diff of a blob of shape \(3,\).*\(4,\)"),
    "top_k": (
        lambda: net_of(Accuracy(4, name="best", bottoms=["ip", "label"])),
        *(ValueError, "layer 'best' .*top_k=4 is more than its 3 classes"),
    ),
    "sinkhorn": (lambda: WassersteinLoss(np.ones((2, 2)), 1.0, 0), ValueError, "field sinkhorn_iter=0"),
    "hinge": (lambda: hinged(0), IndexError, "layer 'hinge' .*'t'.*label 0 is neither -1 nor 1"),
    "hinge again": (lambda: hinged(2, times=6), IndexError, "layer 'hinge' .*'t'.*label 2 is neither -1 nor 1"),
    "list of files": (lambda: net_with(HDF5Data("s/none.txt", 2, name="d")), OSError, "layer 'd' .*no file s/none.txt"),
    "save": (lambda: net_of().save("s/w.h5"), FileNotFoundError, "^s/w.h5 cannot be written: there is no folder /.*s$"),
    "lounge file": (lambda: lounged("s/l.csv"), FileNotFoundError, "^s/l.csv cannot be written: there is no folder"),
    "integers": (lambda: activated(MemoryData([X, T], 5)), TypeError, "layer 'act' .*'label'.*floats, not int64"),
    "integers to a neuron": (
        lambda: Net("n", [MemoryData([X, T], 5), Reshape((1,), name="r", bottoms=["label"], neuron=Neurons.ReLU())]),
        *(TypeError, "layer 'r' .*floats, not int64"),
    ),
    "two losses": (classified, ValueError, "LayercClassifier: net has a loss, SoftmaxLoss.'own'"),
    "step first": (lambda: SGD(max_iter=1).step(net_of()), RuntimeError, r"SGD: step needs init\(net\)"),
    "no net": (lambda: SGD(max_iter=1).solve(None), TypeError, "SGD: .*NoneType"),
    "data": (lambda: net_of().forward(data=X), TypeError, "data= takes {blob: array}, not ndarray"),
    "seed": (lambda: seen().backward(seed=X), TypeError, "seed= takes {blob: array}, not ndarray"),
    "seed of both": (lambda: net_of().forward_backward(seed=X), TypeError, "seed= takes {blob: array}"),
    "regu_coef": (lambda: net_of().forward(regu_coef="a"), TypeError, "regu_coef='a'"),
    "regu_coef back": (lambda: seen().backward(regu_coef="a"), TypeError, "regu_coef='a'"),
    "freeze": (lambda: net_of().freeze(3), TypeError, "not 3"),
    "chain": (lambda: Net.chain("c", [3]), TypeError, "not int 3"),
    "load_from nothing": (
        lambda: SGD(max_iter=1, load_from="s/no").solve(net_of()),
        FileNotFoundError,
        "load_from.*s/no",
    ),
    "load_from": (lambda: SGD(load_from=3), ValueError, "load_from=3"),
    "mean": (
        lambda: net_of(transformers=[("data", DataTransformers.SubMean(np.ones(3)))]),
        ValueError,
        r"SubMean: mean of shape \(3,\).*\(5, 4\)",
    ),
    "fn none": (lambda: function(lambda x: None), TypeError, r"layer 'f' \(FunctionLayer\): fn gave None"),
    "fn text": (lambda: function(lambda x: "a"), TypeError, r"layer 'f' \(FunctionLayer\): fn gave array\('a'|'a'"),
    "gradients": (lambda: pulled(lambda x, dy: (dy, dy)), ValueError, "layer 'f'.*2 gradients for 1"),
    "no gradient": (lambda: pulled(lambda x, dy: "a"), TypeError, "layer 'f'.*backward gave 'a'"),
    "rate": (lambda: LRPolicy.Fixed(-1), ValueError, "Fixed: base=-1"),
    "rate text": (lambda: LRPolicy.Exp("a", 1), ValueError, "Exp: base='a'"),
    "decay text": (lambda: LRPolicy.Inv(0.1, "a", 1), ValueError, "Inv: gamma='a'"),
    "stages": (lambda: LRPolicy.Staged(("a", 1.0)), ValueError, "Staged takes"),
    "factor": (
        lambda: setattr(net_of().params["ip"]["weight"], "lr", "a"),
        ValueError,
        "lr of parameter 'weight'.*'a'",
    ),
    "negative decay": (lambda: Parameter("w", (3,), decay=-1), ValueError, "decay of parameter 'w'.*-1"),
    "a parameter": (replaced, TypeError, r"\['weight'\]\.data\[\.\.\.\] = v"),
    "force_backward": (lambda: Net("n", [], force_backward="a"), TypeError, "force_backward='a'"),
    "text after": (lambda: str(closed()), RuntimeError, "shut down"),
    "blobs after": (lambda: closed().blobs, RuntimeError, "shut down"),
    "params after": (lambda: closed().params, RuntimeError, "shut down"),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls(name):
    call, kind, text = CALLS[name]
    with pytest.raises(kind, match=text):
        call()


def test_an_activation_reads_integers_as_floats():
    net = Net("n", [Input([(2,)], ["x"], name="in"), Identity(name="act", bottoms=["x"], neuron=Neurons.ReLU())])
    assert net.predict(np.array([[-1, 2]])).tolist() == [[0.0, 2.0]]


def test_patience_may_name_what_a_validation_records():
    solver = SGD(lr=0.0, patience=("validation.accuracy.accuracy", 3))
    solver.add(ValidationPerformance([X, T], every_n_iter=2))
    solver.solve(net_of())
    assert (solver.state.iter, solver.state.stop_reason) == (6, "patience")


def test_weights_of_another_type(tmp_path):
    net, path = net_of(), tmp_path / "w.h5"
    net.save(path)
    before = net.params["ip"]["weight"].data.copy()
    with h5py.File(path, "a") as file:
        del file["ip/weight"]
        file["ip/weight"] = np.ones((4, 3), np.int32)
    with pytest.raises(ValueError, match=r"of another type: ip\.weight int32"):
        net.load(path)
    net.load(path, strict=False)
    np.testing.assert_array_equal(net.params["ip"]["weight"].data, before)


# content of the file | kind | part of what is said, which always names layer and file
FILES = {
    "junk": (b"junk", OSError, "cannot be read"),
    "empty": ({"data": X[:0], "label": T[:0]}, ValueError, "no samples"),
    "unequal": ({"data": X, "label": T[:4]}, ValueError, "different lengths"),
    "missing": ({"data": X}, ValueError, "no dataset 'label'"),
    "text": ({"data": X, "label": b"three"}, ValueError, "no array of numbers"),
    "group": ({"data/x": X, "label": T}, ValueError, "no dataset 'data'"),
}


def put(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
        return
    with h5py.File(path, "w") as file:
        for name, array in content.items():
            file[name] = array


@pytest.mark.parametrize("name", FILES)
def test_data_files(tmp_path, name):
    content, kind, text = FILES[name]
    put(tmp_path / "a.h5", content)
    with pytest.raises(kind, match=f"layer 'd' .*{text}") as caught:
        Net("n", [HDF5Data(tmp_path / "a.h5", 2, name="d", tops=["data", "label"])])
    assert "a.h5" in str(caught.value)


LOUNGES = {
    "header.csv": b"a,b\n",
    "short.csv": b"iter,name,value\n1\n",
    "text.csv": b"iter,name,value\n1,a,b\n",
    "bytes.csv": b"\xff\xfe\x00",
    "junk.h5": b"junk",
    "other.h5": {"x": X},
    "empty.h5": {"x/y": X},
    "odd.h5": {"x/iter": X, "x/value": X},
}


@pytest.mark.parametrize("name", LOUNGES)
def test_broken_lounges(tmp_path, name):
    put(tmp_path / name, LOUNGES[name])
    solver = SGD(max_iter=1)
    solver.lounge = CoffeeLounge(tmp_path / name)
    with pytest.raises(ValueError, match=f"{re.escape(name)} is no lounge's file"):
        solver.solve(net_of())
