"""`net.to_onnx(path)`: inference of a net as an ONNX model, where every layer has a standard form.

`FORMS` is the list of those that have: a function writes the nodes of one layer, as phase "predict" computes them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime import convolution, inner_product, neurons, pooling, rearrange
from layerc.runtime.activation import Activation
from layerc.runtime.crop import Crop
from layerc.runtime.data import DataLayer, Input
from layerc.runtime.dropout import Dropout, RandomMask
from layerc.runtime.element_wise import ElementWise
from layerc.runtime.embedding import Embedding
from layerc.runtime.identity import Identity
from layerc.runtime.layer import LayerState
from layerc.runtime.normalisation import BatchNorm, LayerNorm
from layerc.runtime.power import Power
from layerc.runtime.recurrent import GRU, LSTM
from layerc.runtime.softmax import Argmax, Index2Onehot, Softmax
from layerc.runtime.subnet import Subnet
from layerc.runtime.topology import titled
from layerc.runtime.weights import need
from layerc.runtime.whole_files import check_folder, written_whole

if TYPE_CHECKING:
    from layerc.runtime.execution import Track
    from layerc.runtime.net import Net

OPSET, IR = 20, 9  # of 2023: the first with GELU


class NoForm(ValueError):
    """A layer, or what it is asked for, is not among ONNX's operators."""


class Writer:
    """Nodes and constants of a model. Values are known by their names."""

    def __init__(self, onnx: Any, dtype: np.dtype) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.owner = ""  # the layer that is written
        self.inside = ""  # the subnets that it is in: "sub/", which no key of the net around has
        self._count = 0

    def _fresh(self) -> str:
        self._count += 1
        return f"{self.owner}:{self._count}"

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node; the name of its last output, earlier ones left out."""
        made = [""] * (outputs - 1) + [self._fresh()]
        name = f"{self.owner}:{operator}{self._count}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), made, name=name, **attributes))
        return made[-1]

    def constant(self, value: Any, name: str | None = None) -> str:
        """An array; a number is one of the net's type, a list are integers."""
        if isinstance(value, float):
            value = np.array(value, self.dtype)
        elif isinstance(value, list):
            value = np.array(value, np.int64)
        name = name or self._fresh()
        self.constants[name] = np.asarray(value, order="C")
        return name

    def parameter(self, state: LayerState, name: str) -> str:
        """A parameter of the layer, by its own name; one that is shared is there once."""
        found = next((p for p in state.parameters if p.name == name), None)
        if found is None:
            return ""  # no bias: how ONNX leaves out an input
        return self.constant(found.data, f"{self.inside}{state.layer.param_key}.{name}")


Form = Callable[[Writer, Any, LayerState, list[str], list[tuple[int, ...]]], list[str]]


def _each(one: Callable[[Writer, Any, LayerState, str, tuple[int, ...]], str]) -> Form:
    """The form of a layer that does the same with each of its bottoms."""
    return lambda w, layer, state, xs, shapes: [one(w, layer, state, x, s) for x, s in zip(xs, shapes)]


# -- layers with parameters --------------------------------------------------------------------------------


def _inner_product(w: Writer, layer: Any, state: LayerState, x: str, shape: tuple[int, ...]) -> str:
    given = [w.add("Flatten", x, axis=1), w.parameter(state, "weight"), w.parameter(state, "bias")]
    return w.add("Gemm", *[name for name in given if name])


def _tied(w: Writer, layer: Any, state: LayerState, x: str, shape: tuple[int, ...]) -> str:
    (weight,) = state.borrowed
    lent = w.constant(np.ascontiguousarray(weight.data.T))
    given = [w.add("Flatten", x, axis=1), lent, w.parameter(state, "bias")]
    return w.add("Gemm", *[name for name in given if name])


def _convolution(w: Writer, layer: Any, state: LayerState, x: str, shape: tuple[int, ...]) -> str:
    given = [x, w.parameter(state, "weight"), w.parameter(state, "bias")]
    sizes = {"strides": layer.stride, "pads": layer.pad * 2, "dilations": layer.dilation, "group": layer.n_group}
    return w.add("Conv", *[name for name in given if name], **sizes)


def _embedding(w: Writer, layer: Any, state: LayerState, xs: list[str], shapes: Any) -> list[str]:
    return [w.add("Gather", w.parameter(state, "weight"), xs[0])]


def _batch_norm(w: Writer, layer: Any, state: LayerState, xs: list[str], shapes: Any) -> list[str]:
    states = [w.constant(state.states[name], f"{w.owner}.{name}") for name in ("mean", "var")]
    learnt = [w.parameter(state, name) for name in ("weight", "bias")]
    return [w.add("BatchNormalization", xs[0], *learnt, *states, epsilon=layer.eps)]


def _layer_norm(w: Writer, layer: Any, state: LayerState, xs: list[str], shapes: Any) -> list[str]:
    learnt = [w.parameter(state, name) for name in ("weight", "bias")]
    return [w.add("LayerNormalization", xs[0], *learnt, axis=layer.axis, epsilon=layer.eps)]


def _recurrent(operator: str, order: Sequence[int], **attributes: Any) -> Form:
    """order: which of our gates ONNX wants first, second..."""

    def form(w: Writer, layer: Any, state: LayerState, xs: list[str], shapes: Any) -> list[str]:
        if layer.stateful:
            raise NoForm("stateful=True: a model keeps nothing from one call to the next")
        found = {p.name: p.data for p in state.parameters}

        def gates(name: str) -> np.ndarray:
            """(gates H, ...) in ONNX's order."""
            parts = np.split(found[name].T, len(order))
            return np.concatenate([parts[k] for k in order])

        weights = [w.constant(gates(name)[None]) for name in ("weight_ih", "weight_hh")]
        biases = w.constant(np.concatenate([gates("bias_ih"), gates("bias_hh")])[None])
        first = [w.add("Unsqueeze", x, w.constant([0])) for x in xs[1:]]
        x = w.add("Transpose", xs[0], perm=[1, 0, 2])
        given = [x, *weights, biases, *(["", *first] if first else [])]
        if layer.sequence:
            y = w.add(operator, *given, hidden_size=layer.output_dim, **attributes)
            return [w.add("Transpose", w.add("Squeeze", y, w.constant([1])), perm=[1, 0, 2])]
        last = w.add(operator, *given, hidden_size=layer.output_dim, outputs=2, **attributes)
        return [w.add("Squeeze", last, w.constant([0]))]

    return form


# -- layers without ----------------------------------------------------------------------------------------


def _pooling(w: Writer, layer: Any, state: LayerState, x: str, shape: tuple[int, ...]) -> str:
    ends = layer.pad
    if layer.ceil:  # written out for this size of image: rules for windows over the end differ among versions of ONNX
        _, config = layer.function(shape)
        ends = config["end_h"], config["end_w"]
        if layer.pooling == "mean" and layer.count_pad and (ends[0] > layer.pad[0] or ends[1] > layer.pad[1]):
            raise NoForm("a mean whose windows reach beyond the padding (ceil=True)")
    sizes = {"kernel_shape": layer.kernel, "strides": layer.stride, "pads": (*layer.pad, *ends)}
    if layer.pooling == "max":
        return w.add("MaxPool", x, **sizes)
    return w.add("AveragePool", x, **sizes, count_include_pad=int(layer.count_pad))


def _lrn(w: Writer, layer: Any, state: LayerState, x: str, shape: tuple[int, ...]) -> str:
    if layer.mode != "across":
        raise NoForm('mode="within"')
    image = x if len(shape) == 4 else w.add("Reshape", x, w.constant([0, 0, 1, -1]))
    y = w.add("LRN", image, alpha=layer.scale, beta=layer.power, bias=layer.shift, size=layer.kernel)
    return y if image == x else w.add("Reshape", y, w.add("Shape", x))


def _power(w: Writer, layer: Any, state: LayerState, x: str, shape: tuple[int, ...]) -> str:
    for operator, value, nothing in (("Mul", layer.scale, 1), ("Add", layer.shift, 0), ("Pow", layer.power, 1)):
        if value != nothing:
            x = w.add(operator, x, w.constant(float(value)))
    return x


def _element_wise(w: Writer, layer: Any, state: LayerState, xs: list[str], shapes: Any) -> list[str]:
    operator = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div"}[layer.operation]
    found = xs[0]
    for x in xs[1:]:
        found = w.add(operator, found, x)
    return [found]


def _crop(w: Writer, layer: Any, state: LayerState, x: str, shape: tuple[int, ...]) -> str:
    starts = [(n - wanted) // 2 for n, wanted in zip(shape[2:], layer.crop_size)]
    ends = [start + wanted for start, wanted in zip(starts, layer.crop_size)]
    return w.add("Slice", x, w.constant(starts), w.constant(ends), w.constant([2, 3]))


def _one_hot(w: Writer, layer: Any, state: LayerState, x: str, shape: tuple[int, ...]) -> str:
    values = w.constant(np.array([0, 1], w.dtype))
    return w.add("OneHot", x, w.constant(np.array(layer.n_class)), values, axis=layer.axis)


def _nothing(w: Writer, layer: Any, state: LayerState, xs: list[str], shapes: Any) -> list[str]:
    """What only training does, and copies."""
    return xs * len(state.blobs) if len(xs) == 1 else xs


def _subnet(w: Writer, layer: Any, state: LayerState, xs: list[str], shapes: Any) -> list[str]:
    """Its layers, one by one."""
    values, around = dict(zip(layer.feeds, xs)), w.inside
    w.inside = f"{w.owner}/"
    mistakes = _write_steps(w, layer.present_track(state), layer.makes, values)
    w.inside = around
    if mistakes:
        raise NoForm("; ".join(mistakes))
    return [values[wire] for wire in layer.makes]


FORMS: dict[type, Form] = {
    inner_product.InnerProduct: _each(_inner_product),
    inner_product.TiedInnerProduct: _each(_tied),
    convolution.Convolution: _each(_convolution),
    Embedding: _embedding,
    BatchNorm: _batch_norm,
    LayerNorm: _layer_norm,
    GRU: _recurrent("GRU", (1, 0, 2), linear_before_reset=1),
    LSTM: _recurrent("LSTM", (0, 3, 1, 2)),
    pooling.Pooling: _each(_pooling),
    pooling.LRN: _each(_lrn),
    Power: _each(_power),
    ElementWise: _element_wise,
    Crop: _each(_crop),
    Softmax: _each(lambda w, layer, state, x, shape: w.add("Softmax", x, axis=layer.axis)),
    Argmax: _each(lambda w, layer, state, x, shape: w.add("ArgMax", x, axis=layer.axis, keepdims=0)),
    Index2Onehot: _each(_one_hot),
    rearrange.Reshape: _each(lambda w, layer, state, x, s: w.add("Reshape", x, w.constant([0, *layer.shape]))),
    rearrange.Concat: lambda w, layer, state, xs, shapes: [w.add("Concat", *xs, axis=layer.axis)],
    rearrange.Split: _nothing,
    Subnet: _subnet,
    Identity: _nothing,
    Dropout: _nothing,
    RandomMask: _nothing,
    Activation: lambda w, layer, state, xs, shapes: [_neuron(w, layer.neuron, xs[0])],
}

NEURONS: dict[type, Callable[[Writer, Any, str], str]] = {
    neurons.Identity: lambda w, n, x: x,
    neurons.ReLU: lambda w, n, x: w.add("Max", x, w.constant(float(n.epsilon))) if n.epsilon else w.add("Relu", x),
    neurons.LReLU: lambda w, n, x: w.add("LeakyRelu", x, alpha=n.slope),
    neurons.Sigmoid: lambda w, n, x: w.add("Sigmoid", x),
    neurons.Tanh: lambda w, n, x: w.add("Tanh", x),
    neurons.Exponential: lambda w, n, x: w.add("Exp", x),
    neurons.ELU: lambda w, n, x: w.add("Elu", x, alpha=n.alpha),
    neurons.GELU: lambda w, n, x: w.add("Gelu", x),
    neurons.Swish: lambda w, n, x: w.add("Mul", x, w.add("Sigmoid", x)),
    neurons.Softplus: lambda w, n, x: w.add("Softplus", x),
}


def _neuron(w: Writer, neuron: Any, x: str) -> str:
    if type(neuron) not in NEURONS:
        raise NoForm(f"neuron {neuron!r}")
    return NEURONS[type(neuron)](w, neuron, x)


# -- the whole ---------------------------------------------------------------------------------------------


def model_of(net: "Net", wire: int) -> Any:
    """The model that computes a wire as `predict` does. ValueError naming every layer without a standard form."""
    onnx = need("onnx", "onnx", "onnx")
    graph, track = net.graph, net.track
    w = Writer(onnx, net.dtype)
    steps = graph.ancestors([wire], set())
    fed = [top for i in sorted(steps) if _is_fed(graph.steps[i].layer) for top in graph.steps[i].tops]
    values = {top: graph.wires[top].name for top in fed}
    inputs = [_port(onnx, net, top) for top in fed if top == wire or steps.intersection(graph.wires[top].readers)]
    mistakes = _write_steps(w, track, [wire], values)
    if mistakes:
        raise ValueError(f"net {net.name!r}: no standard form in ONNX for {'; '.join(mistakes)}")
    output = graph.wires[wire].name
    names = {port.name for port in inputs}
    last = onnx.helper.make_node("Identity", [values[wire]], [output if output not in names else f"{output}:out"])
    port = _port(onnx, net, wire, last.output[0])
    constants = [onnx.numpy_helper.from_array(a, name) for name, a in w.constants.items()]
    made_graph = onnx.helper.make_graph([*w.nodes, last], net.name, inputs, [port], constants)
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(made_graph, producer_name="layerc", opset_imports=[opset], ir_version=IR)
    onnx.checker.check_model(model, full_check=True)
    return model


def _is_fed(layer: Any) -> bool:
    """Whether the model's caller gives what it makes."""
    return isinstance(layer, DataLayer | Input)


def _write_steps(w: Writer, track: "Track", wires: Sequence[int], values: dict[int, str]) -> list[str]:
    """The steps that make these wires; `values`, the names of the wires, has those of sources. Returns what has no
    form."""
    graph, mistakes = track.graph, []
    for i in sorted(graph.ancestors(wires, set())):
        step, state = graph.steps[i], track.states[i]
        layer = step.layer
        if _is_fed(layer):
            continue
        w.owner = w.inside + layer.name
        shapes = [track.blobs[b].shape for b in step.bottoms]
        try:
            if type(layer) not in FORMS:
                raise NoForm("")
            made = FORMS[type(layer)](w, layer, state, [values[b] for b in step.bottoms], shapes)
        except NoForm as why:
            known = graph.maker(step.tops[0])
            mistakes.append(titled(known) + (f": {why}" if str(why) else ""))
            made = ["?"] * len(step.tops)
        values.update(zip(step.tops, made))
    return mistakes


def _port(onnx: Any, net: "Net", wire: int, name: str | None = None) -> Any:
    """An input or output, of any number of examples; of any size in axes that vary, or may follow from such."""
    blob, made = net.track.blobs[wire], net.graph.wires[wire]
    layer = net.graph.steps[made.maker].layer
    sizes: list[Any] = ["N", *blob.shape[1:]]
    if isinstance(layer, Input):
        declared = layer.shapes[made.top] or sizes[1:]
        sizes = ["N", *(f"{made.name}{k}" if size is None else size for k, size in enumerate(declared, 1))]
    elif any(None in (shape or ()) for one in net.layers if isinstance(one, Input) for shape in one.shapes):
        sizes = ["N", *[None] * (len(sizes) - 1)]
    kind = onnx.helper.np_dtype_to_tensor_dtype(blob.dtype)
    return onnx.helper.make_tensor_value_info(name or made.name, kind, sizes)


def write(net: "Net", path: Any, wire: int) -> None:
    """Write the model whole or not at all."""
    path = Path(path)
    check_folder(path)  # before the work
    content = model_of(net, wire).SerializeToString()
    with written_whole(path) as scratch:
        Path(scratch).write_bytes(content)
