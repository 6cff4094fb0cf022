"""The nets of nets.py in PyTorch, torch.compile and ONNX Runtime, with the weights of a layerc Net."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from settings import THREADS

from layerc.runtime import Net


@dataclass(frozen=True)
class Calls:
    inference: Callable[[], Any]
    training: Callable[[], Any] | None = None
    model: Any = None


def eager(net: Net, x: np.ndarray, t: np.ndarray) -> Calls | None:
    return _torch(net, x, t, lambda f: f)


def compiled(net: Net, x: np.ndarray, t: np.ndarray) -> Calls | None:
    try:
        import torch
    except ImportError:
        return None
    torch._dynamo.reset()
    return _torch(net, x, t, lambda f: torch.compile(f, dynamic=False))


def _torch(net: Net, x: np.ndarray, t: np.ndarray, compile: Callable[[Any], Any]) -> Calls | None:
    """None where PyTorch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(THREADS)
    nn, parts = torch.nn, []
    for layer in net.layers:
        own = net.params.get(layer.name, {})
        kind = type(layer).__name__
        if kind == "Convolution":
            weight = own["weight"].data
            parts.append(nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2:]))
        elif kind == "Pooling":
            parts.append(nn.MaxPool2d(2))
        elif kind == "InnerProduct":
            weight = own["weight"].data.T
            if parts and not any(isinstance(p, nn.Linear) for p in parts):
                parts.append(nn.Flatten())
            parts.append(nn.Linear(weight.shape[1], weight.shape[0]))
        else:
            continue
        if own:
            with torch.no_grad():
                parts[-1].weight.copy_(torch.from_numpy(np.array(weight)))
                parts[-1].bias.copy_(torch.from_numpy(np.array(own["bias"].data)))
        if type(getattr(layer, "neuron", None)).__name__ == "ReLU":
            parts.append(nn.ReLU())
    model = nn.Sequential(*parts)
    optimizer = torch.optim.SGD(model.parameters(), 0.001, momentum=0.9)
    x_, t_ = torch.from_numpy(x), torch.from_numpy(t)
    forward, loss_of = compile(model), compile(lambda a, b: nn.functional.cross_entropy(model(a), b))

    def training() -> float:
        optimizer.zero_grad()
        loss = loss_of(x_, t_)
        loss.backward()
        optimizer.step()
        return loss.item()

    def inference() -> Any:
        with torch.inference_mode():
            return forward(x_)

    return Calls(inference, training)


def onnxruntime(net: Net, x: np.ndarray, t: np.ndarray) -> Calls | None:
    try:
        import onnxruntime as runtime
    except ImportError:
        return None
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        net.to_onnx(path)
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x}
    return Calls(lambda: session.run(None, feed)[0])


PEERS = {"torch eager": eager, "torch.compile": compiled, "ONNX Runtime": onnxruntime}
