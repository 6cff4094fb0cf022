"""Helpers of the tests of nets: small nets, layers by hand, gradients by central differences."""

import ast
import importlib.util
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layerc import config
from layerc.adjoint.gradient import gradient_text
from layerc.build.driver import build, compile_module, read_module
from layerc.runtime import Blob, Layer, LayerState, Net, Parameter
from layerc.transpile.ir import For, If, Kernel, Stmt
from layerc.transpile.layers import check_file
from layerc.transpile.passes.tree import map_bodies, walk

FAMILIAR = Path(__file__).parent.parent / "benchmarks" / "familiar.py"
KINDS = Path(__file__).parent.parent / "benchmarks" / "kinds.py"
SPELLED = Path(__file__).parent.parent / "benchmarks" / "spelled.py"  # layers, each written in several ways


def data(n: int = 20, d: int = 6, classes: int = 3, dtype: Any = np.float64, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(dtype)
    return [x, (np.abs(x[:, 0] * 5).astype(int)) % classes]


def load_package(directory: Path, name: str) -> Any:
    """Import a package from its folder."""
    spec = importlib.util.spec_from_file_location(
        name, directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def built_from(folder: Path, name: str, source: str) -> Any:
    """The package of a layer file with this text."""
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(source))
    return load_package(build(path), f"{name}_compiled")


def runs_loops(kernel: Kernel) -> bool:
    """Whether the loops of a layer are run in it: not where a pullback is given what they tell."""
    return not any(b.kind == "in" and "_by_" in b.name for b in kernel.buffers)


def built_with(module: str, constants: dict[str, int], folder: Path, name: str, source: str) -> Any:
    """The package that a compiler with other constants in one of its modules makes: they are back when it is built."""
    with pytest.MonkeyPatch.context() as patch:
        for constant, value in constants.items():
            patch.setattr(importlib.import_module(module), constant, value)
        patch.setenv("LAYERC_CACHE", str(folder / "cache"))  # what it answers is no answer of the compiler itself
        return built_from(folder, name, source)


def layers_of(path: Path, *names: str) -> str:
    """The text of these layers of a file, without its imports."""
    text = path.read_text()
    found = {n.name: n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    lines = text.split("\n")
    texts = ["\n".join(lines[found[n].decorator_list[0].lineno - 1 : found[n].end_lineno]) for n in names]
    return "\n\n\n".join(texts) + "\n"


@cache
def kernels_in(path: Path) -> dict[tuple[str, str], Kernel]:
    """(layer, method) -> its kernel after all passes, for a layer file, which is compiled once."""
    return {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(path)).parts}


def in_caches(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Without the versions for arrays that caches do not hold, which `past` puts beside loops."""
    found: list[Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, in_caches)
        found += stmt.orelse if isinstance(stmt, If) and is_of_two_ways(stmt) else (stmt,)
    return tuple(found)


def is_of_two_ways(stmt: Stmt) -> bool:
    """Whether it asks if a row goes past the caches."""
    return isinstance(stmt, If) and any(isinstance(s, For) and s.past for s in walk(stmt.then))


def differences(f: Any, array: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Central differences of the number f() with respect to an array that f reads."""
    found = np.zeros_like(array)
    for k in np.ndindex(array.shape):
        old = array[k]
        array[k] = old + eps
        up = f()
        array[k] = old - eps
        down = f()
        array[k] = old
        found[k] = (up - down) / (2 * eps)
    return found


def check_gradients(net: Net, feed: dict[str, np.ndarray], tol: float = 1e-6, regu_coef: float = 0.0) -> None:
    """Every parameter and every float input of a float64 net against central differences."""
    assert net.dtype == np.float64
    feed = {k: np.array(v) for k, v in feed.items()}
    counts = [(s, s.rng.count) for s in net.track.states if s is not None]

    def loss() -> float:
        for state, count in counts:
            state.rng.count = count  # the same random numbers each time
        return net.forward(regu_coef, data=feed)

    loss()
    counts = [(s, 0) for s in net.track.states]
    loss()
    inputs = {k: net.gradient(k) for k, v in feed.items() if v.dtype.kind == "f"}
    net.backward(regu_coef)
    params = {name: p.gradient.copy() for name, p in net.named_parameters().items() if not p.frozen}
    for name, gradient in params.items():
        expected = differences(loss, net.named_parameters()[name].data)
        np.testing.assert_allclose(gradient, expected, rtol=tol, atol=tol, err_msg=name)
    if regu_coef == 0:
        for name, gradient in inputs.items():
            np.testing.assert_allclose(gradient, differences(loss, feed[name]), rtol=tol, atol=tol, err_msg=name)


class Double(Layer):
    """y = factor x, by hand."""

    can_do_bp = True
    factor: float = config(2.0, check=lambda f: f > 0)

    def setup(self, backend, inputs, diffs):
        return LayerState(self, blobs=[Blob(np.zeros_like(inputs[0].data))])

    def forward(self, backend, state, inputs):
        state.blobs[0].resize(inputs[0].shape)
        state.blobs[0].data[...] = self.factor * inputs[0].data

    def backward(self, backend, state, inputs, diffs):
        if diffs[0]:
            diffs[0].data[...] = self.factor * state.blobs_diff[0].data

    def shutdown(self, backend, state):
        state.is_down = True


class Shift(Layer):
    """y = x + p, with a parameter by hand."""

    can_do_bp = has_param = has_neuron = True

    def setup(self, backend, inputs, diffs):
        p = Parameter("shift", inputs[0].shape[1:])
        return LayerState(self, blobs=[Blob(np.zeros_like(inputs[0].data))], parameters=[p])

    def forward(self, backend, state, inputs):
        state.blobs[0].data = inputs[0].data + state.parameters[0].data

    def backward(self, backend, state, inputs, diffs):
        dy = state.blobs_diff[0].data
        state.parameters[0].gradient = dy.sum(axis=0)
        if diffs[0]:
            diffs[0].data = dy


class SumLoss(Layer):
    """sum x**2 / 2 and its mean, by hand."""

    is_sink = has_loss = has_stats = can_do_bp = True

    def setup(self, backend, inputs, diffs):
        return LayerState(self, seen=[])

    def forward(self, backend, state, inputs):
        state.loss = 0.5 * float(np.sum(inputs[0].data ** 2))
        state.seen.append(state.loss)

    def backward(self, backend, state, inputs, diffs):
        if diffs[0]:
            diffs[0].data = inputs[0].data

    def dump_statistics(self, storage, state, show):
        storage.update_statistics("square", float(np.mean(state.seen)) if state.seen else float("nan"))

    def reset_statistics(self, state):
        state.seen.clear()


class Stopper(Layer):
    """A copy that cannot do bp."""

    def setup(self, backend, inputs, diffs):
        return LayerState(self, blobs=[Blob(np.zeros_like(inputs[0].data))])

    def forward(self, backend, state, inputs):
        state.blobs[0].data = inputs[0].data


class Negate(Layer):
    """x = -x in place, by hand: it writes into what it is given."""

    can_do_bp = is_inplace = True

    def setup(self, backend, inputs, diffs):
        return LayerState(self, blobs=inputs)

    def forward(self, backend, state, inputs):
        inputs[0].data *= -1

    def backward(self, backend, state, inputs, diffs):
        if diffs[0]:
            diffs[0].data *= -1


def gradient_of(folder: Path, text: str, name: str) -> str:
    """The source of one layer's gradient."""
    path = folder / "text_of.py"
    path.write_text(text)
    layer = next(one for one in check_file(path).layers if one.name == name)
    return gradient_text(layer, text, str(path))
