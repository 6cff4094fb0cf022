"""Nets for `test_net_ahead.py`: scripts as a user would write them. Each makes `net`, `solver` and `DATA`."""

_HEAD = """
import numpy as np
from layerc.runtime import *
rng = np.random.default_rng(0)
def floats(*shape):
    return rng.standard_normal(shape).astype(FLOAT)
FLOAT = np.float32
"""

_BODIES = {
    "mlp": """
DATA = [floats(50, 12), rng.integers(0, 5, 50)]
net = Net("mlp", [
    MemoryData(DATA, 16, name="data"),
    InnerProduct(9, name="ip1", bottoms=["data"], neuron=Neurons.Tanh()),
    Dropout(0.3, name="drop", bottoms=["ip1"]),
    InnerProduct(5, name="ip2", bottoms=["ip1"]),
    SoftmaxLoss(name="loss", bottoms=["ip2", "label"]),
    Accuracy(name="accuracy", bottoms=["ip2", "label"]),
], seed=3)
solver = SGD(lr=LRPolicy.Inv(0.1, 1e-2, 0.75), momentum=MomPolicy.Linear(0.5, 0.1, 2, 0.9), regu_coef=1e-3)
""",
    "convolution": """
DATA = [floats(20, 3, 9, 8), rng.integers(0, 4, 20)]
net = Net("convolution", [
    MemoryData(DATA, 8, name="data"),
    Convolution(6, kernel=3, pad=1, name="c1", bottoms=["data"], neuron=Neurons.ReLU()),
    BatchNorm(name="bn", bottoms=["c1"]),
    Pooling("max", kernel=2, stride=2, name="p1", bottoms=["bn"]),
    LRN(kernel=3, name="lrn", bottoms=["p1"]),
    Convolution(4, kernel=(2, 3), n_group=2, bias=False, name="c2", bottoms=["lrn"], neuron=Neurons.ELU()),
    Pooling("mean", kernel=2, pad=1, name="p2", bottoms=["c2"]),
    InnerProduct(4, name="ip", bottoms=["p2"], weight_cons=L2Cons(0.3), bias_cons=NonNeg()),
    SoftmaxLoss(name="loss", bottoms=["ip", "label"]),
], seed=1)
solver = Adam(lr=LRPolicy.Cosine(0.01, 4), regu_coef=1e-4)
""",
    "shared": """
x = floats(40, 6)
DATA = [x, rng.integers(0, 6, 40)]
net = Net("shared", [
    MemoryData(DATA, 16, name="data"),
    InnerProduct(6, name="a", bottoms=["data"], param_key="k", neuron=Neurons.Sigmoid()),
    InnerProduct(6, name="b", bottoms=["a"], param_key="k", neuron=Neurons.Softplus()),
    InnerProduct(3, name="code", bottoms=["b"]),
    TiedInnerProduct("code", name="back", bottoms=["code"]),
    Split(name="two", bottoms=["back"], tops=["left", "right"]),
    SquareLoss(name="copy", bottoms=["left", "data"], weight=0.5),
    SoftmaxLoss(name="class", bottoms=["right", "label"], weight=2.0),
    HingeLoss(name="hinge", bottoms=["a", "b"], normalize="sum", weight=0.01),
], seed=5)
solver = Nesterov(lr=0.05, momentum=0.9, regu_coef=1e-3, clip_global_norm=0.5, clip_value=0.2)
""",
    "sequences": """
DATA = [rng.integers(0, 11, (30, 5)), rng.integers(0, 4, 30)]
net = Net("sequences", [
    MemoryData(DATA, 12, name="data", tops=["word", "label"]),
    Embedding(11, 7, name="table", bottoms=["word"]),
    LSTM(6, name="lstm", bottoms=["table"]),
    LayerNorm(name="norm", bottoms=["lstm"]),
    GRU(5, sequence=False, name="gru", bottoms=["norm"]),
    InnerProduct(4, name="ip", bottoms=["gru"]),
    SoftmaxLoss(class_weights=[1.0, 0.5, 2.0, 0.0], normalize="weights", ignore_label=3, name="loss",
                bottoms=["ip", "label"]),
], seed=2)
rate = LRPolicy.Staged((2, 0.01), (2, LRPolicy.Step(0.02, 0.5, 2)), (9, 0.001))
solver = RMSprop(lr=rate, momentum=0.5, clip_norm=0.1)
""",
    "shapes": """
FLOAT = np.float64
DATA = [floats(14, 4, 3, 3), floats(14, 8)]
net = Net("shapes", [
    MemoryData(DATA, 5, name="data", tops=["x", "t"]),
    Crop((2, 2), name="crop", bottoms=["x"]),
    Concat(name="both", bottoms=["crop", "crop"]),
    ChannelPooling("max", kernel=2, stride=2, name="pool", bottoms=["both"]),
    Reshape((8, -1), name="flat", bottoms=["pool"]),
    Power(0.5, 1.5, 2.0, name="power", bottoms=["flat"]),
    Softmax(1, name="soft", bottoms=["power"]),
    ElementWise("multiply", name="times", bottoms=["soft", "power"]),
    InnerProduct(8, name="ip", bottoms=["times"], neuron=Neurons.GELU()),
    Identity(name="same", bottoms=["ip"], neuron=Neurons.Sigmoid()),
    BinaryCrossEntropyLoss(name="bce", bottoms=["same", "same"], weight=0.1),
    SquareLoss(name="loss", bottoms=["ip", "t"]),
], seed=4)
solver = Adagrad(lr=0.05)
net.freeze("ip.bias")
""",
    "images": """
DATA = [floats(12, 2, 5, 5), rng.integers(0, 3, (12, 5, 5)), np.abs(floats(12, 3)) + 0.1]
DATA[2] /= DATA[2].sum(axis=1, keepdims=True)
net = Net("images", [
    MemoryData(DATA, 4, name="data", tops=["x", "label", "mass"]),
    RandomMask(0.2, name="mask", bottoms=["x"]),
    Convolution(3, kernel=3, pad=1, name="c", bottoms=["mask"]),
    SoftmaxLoss(name="loss", bottoms=["c", "label"], axis=1, ignore_label=2),
    Pooling("mean", kernel=5, name="all", bottoms=["c"]),
    Reshape((3,), name="flat", bottoms=["all"]),
    Softmax(name="p", bottoms=["flat"]),
    WassersteinLoss([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]], 3.0, 8, name="move", bottoms=["p", "mass"]),
    SoftlabelSoftmaxLoss(name="soft", bottoms=["flat", "mass"]),
], seed=6)
solver = AdamW(lr=0.01, weight_decay=0.1, lr_factors=[("c.bias", 2.0)], decay_factors=[("c.bias", 0.0)])
""",
    "subnet": """
inner = Net("inner", [
    Input([(4,)], ["u"], name="in"),
    InnerProduct(6, name="ip", bottoms=["u"], neuron=Neurons.Swish()),
    BatchNorm(name="bn", bottoms=["ip"]),
])
DATA = [floats(24, 4), floats(24, 6)]
net = Net("subnet", [
    Input([(4,), (6,)], ["x", "t"], name="data"),
    Subnet(inner, name="sub", bottoms=["x"]),
    Subnet(inner, name="sub2", bottoms=["x"], param_key="other"),
    ElementWise("add", name="sum", bottoms=["sub", "sub2"]),
    SquareLoss(name="loss", bottoms=["sum", "t"]),
], seed=7)
solver = Adadelta()
""",
    "functions": """
DATA = [floats(18, 6), np.abs(floats(18, 6)) + 0.5]
def fn(x):
    return np.maximum(x, 0.1) * 2 - np.sqrt(np.square(x) + 1)
def d_fn(x, dy):
    return dy * (2 * np.where(x > 0.1, 1.0, 0.0) - x / np.sqrt(x * x + 1))
net = Net("functions", [
    Input([(6,), (6,)], ["x", "sigma"], name="data"),
    FunctionLayer(fn, d_fn, name="fn", bottoms=["x"], tops=["fn"]),
    InnerProduct(6, name="ip", bottoms=["fn"]),
    GaussianKLLoss(name="kl", bottoms=["ip", "sigma"]),
], seed=8)
solver = SGD(lr=0.1)
""",
    "alignments": """
words = rng.integers(1, 5, (20, 3))
words[::3, 1:] = -1
DATA = [floats(20, 6, 5), words, rng.integers(4, 7, 20), rng.integers(0, 3, 20), rng.integers(0, 4, (20, 2))]
net = Net("alignments", [
    MemoryData(DATA, 6, name="data", tops=["x", "word", "x_length", "length", "short"]),
    GRU(5, name="gru", bottoms=["x"]),
    CTCLoss(name="until", bottoms=["gru", "word"]),
    CTCLoss(4, name="told", bottoms=["gru", "short", "x_length", "length"], weight=0.5),
], seed=10)
solver = Adam(lr=0.01)
""",
    "compiled": """
import own_layers as L
DATA = [floats(21, 3, 4), floats(21, 3, 4)]
net = Net("compiled", [
    MemoryData(DATA, 8, name="data", tops=["x", "t"]),
    L.Scaled(name="scaled", bottoms=["x"], tops=["s"]),
    CompiledLayer(L.noisy, name="noisy", bottoms=["s"], config={"level": 0.1}),
    CompiledLayer(L.rows, name="rows", bottoms=["noisy"], params={"w": ((4, 4), Gaussian(0, 1))}),
    SquareLoss(name="loss", bottoms=["rows", "t"]),
], seed=9)
solver = SGD(lr=0.05, momentum=0.9)
""",
}

SCRIPTS = {name: _HEAD + body for name, body in _BODIES.items()}

OWN_LAYERS = '''
import numpy as np
from layerc import Layer, Param, Random, State, init, layer, real

class Scaled(Layer):
    """A learnable scale, and a state that counts what came by."""
    scale: Param[real["C"]] = init.uniform(0.5, 1.5)
    seen: State[real["C"]] = init.zeros()
    batched = True

    def predict(self, x: real["N C S"]) -> real["N C S"]:
        return x * self.scale[:, None] + self.seen[:, None]

    def forward(self, x: real["N C S"]) -> real["N C S"]:
        self.seen = 0.9 * self.seen + 0.1 * np.sum(np.sum(x, axis=2), axis=0)
        return x * self.scale[:, None] + self.seen[:, None]

@layer
def noisy(x: real["*S"], rng: Random, level: float = 0.5) -> real["*S"]:
    return x + level * rng.standard_normal(x.shape)

@layer
def rows(x: real["T D"], w: Param[real["D K"]]) -> real["T K"]:
    return np.tanh(x @ w)
'''
