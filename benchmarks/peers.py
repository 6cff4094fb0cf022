"""The peers: how each binds a case's twin to its own arrays. One class a peer; all run in worker processes."""

import importlib
import inspect
import os
import shutil
import subprocess
import weakref
from types import FunctionType

import numpy as np
from case import Block, Bound, as_tuple, block, left
from cases import COMPILES_ITSELF
from layerc_peers import Again, Layerc, Native, OneThread, Portable, Specialised, StandIn
from peer import Absent, Peer, require
from settings import THREADS


def _twins(*modules: str) -> dict:
    """Functions of these modules, by name."""
    return {name: f for module in modules for name, f in vars(importlib.import_module(module)).items()}


class TorchEager(Peer):
    title = "torch eager"

    def variants(self, case):
        return case.torch

    def start(self):
        self.torch = require("torch")
        self.torch.set_num_threads(THREADS)
        if self.torch.get_num_interop_threads() != 1:  # which can be set only once in a process
            self.torch.set_num_interop_threads(1)
        self.twins = _twins("twins_torch", "kinds_torch")
        return {
            "torch": self.torch.__version__,
            "threads": self.torch.get_num_threads(),
            "vectors": self.torch.backends.cpu.get_cpu_capability(),
        }

    def native(self, arrays):
        return [self.torch.from_numpy(a) for a in arrays]

    def numpy(self, array):
        return None if array is None else array.detach().numpy()

    def arguments(self, case):
        """Tensors, and those of them that have gradients (the floating ones)."""
        tensors = self.native(list(case.draw().values()))
        leaves = [t.requires_grad_() for t in tensors if t.is_floating_point()]
        return tensors, leaves

    def twin(self, name: str):
        return self.twins[name]

    def bind(self, case, variant):
        torch, twin = self.torch, self.twin(variant)
        tensors, leaves = self.arguments(case)

        def forward():
            with torch.no_grad():
                return twin(*tensors)

        def gradient(*dy):
            y = as_tuple(twin(*tensors))
            return y, _in_order(tensors, torch.autograd.grad(y, leaves, dy))

        def kept():
            saved = weakref.WeakSet()  # of what the graph of y holds: what went with a part of it is not kept

            def pack(tensor):
                saved.add(one := _Saved(tensor))
                return one

            with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one.tensor):
                y = as_tuple(twin(*tensors))
            return left([_storage(one.tensor) for one in saved], map(_storage, (*tensors, *y)))

        return Bound(forward, gradient, kept)


class _Saved:
    """A tensor, as long as autograd holds it for a backward."""

    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor itself may hold the graph that holds it


def _storage(tensor) -> Block:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def _in_order(tensors, gradients) -> tuple:
    """The gradients with None in the places of integer tensors."""
    rest = iter(gradients)
    return tuple(next(rest) if t.is_floating_point() else None for t in tensors)


class TorchOwn(TorchEager):
    """torch's own kernel for the layer, eager."""

    title = "torch's own"

    def variants(self, case):
        return (case.own,) if case.own else ()


class TorchCompile(TorchEager):
    """Two ways, the faster counts: a compiled forward under autograd, or `torch.func.vjp` as one graph."""

    title = "torch.compile"
    JOINT = " joint"

    def variants(self, case):
        names = case.torch if case.compiled is None else case.compiled
        names += (case.own,) if case.own and case.own not in names else ()
        return (*names, *(n + self.JOINT for n in names if n not in COMPILES_ITSELF))

    def start(self):
        os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # the first call is to be a first call
        facts = super().start()
        torch = self.torch
        x = torch.ones(8, requires_grad=True)  # loads the compiler, before any first call counts
        torch.compile(lambda x: x.sin() + 1)(x).sum().backward()
        return facts | {"compiler": _compiler_version(os.environ.get("CXX", "g++"))}

    def twin(self, name):
        twin = super().twin(name)
        return twin if name in COMPILES_ITSELF else self.torch.compile(twin)

    def clear(self):
        self.torch.compiler.reset()  # or the next case's shapes would count as a change, compiled dynamic

    def bind(self, case, variant):
        if not variant.endswith(self.JOINT):
            return super().bind(case, variant)._replace(kept=None)  # the hooks that show it would change the graph
        torch, name = self.torch, variant.removesuffix(self.JOINT)
        twin = self.twins[name]
        tensors, _ = self.arguments(case)

        def both(tensors, dy):
            def of_leaves(*leaves):
                rest = iter(leaves)
                return twin(*(next(rest) if t.is_floating_point() else t for t in tensors))

            y, pullback = torch.func.vjp(of_leaves, *(t for t in tensors if t.is_floating_point()))
            return y, pullback(dy if isinstance(y, tuple) else dy[0])

        forward = super().bind(case, name).forward
        plain = [t.detach() for t in tensors]
        compiled = torch.compile(_own_code(both, variant))

        def gradient(*dy):
            y, gradients = compiled(plain, dy)
            return as_tuple(y), _in_order(plain, gradients)

        return Bound(forward, gradient)


def _own_code(f: FunctionType, name: str) -> FunctionType:
    """A copy of f with a code object of its own: by that torch files its compiled versions."""
    return FunctionType(f.__code__.replace(co_name=name), f.__globals__, name, f.__defaults__, f.__closure__)


class Jax(Peer):
    """Value and vjp in one jitted function."""

    title = "jax.jit"

    def variants(self, case):
        return case.jax

    def start(self):
        self.jax = require("jax")
        self.twins = _twins("twins_jax", "kinds_jax")
        self.jax.jit(lambda x: x + 1)(np.float32(1)).block_until_ready()  # loads XLA
        return {
            "jax": self.jax.__version__,
            "jaxlib": importlib.import_module("jaxlib").__version__,
            "threads": os.environ["NPROC"],
        }

    def native(self, arrays):
        return [self.jax.block_until_ready(self.jax.numpy.array(a)) for a in arrays]

    def bind(self, case, variant):
        jax, twin = self.jax, self.twins[variant]
        arrays = self.native(list(case.draw().values()))
        floating = [a.dtype == np.float32 for a in arrays]

        @jax.jit
        def both(arrays, dy):
            def of_leaves(*leaves):
                rest = iter(leaves)
                return twin(*(next(rest) if f else a for a, f in zip(arrays, floating, strict=True)))

            y, pullback = jax.vjp(of_leaves, *(a for a, f in zip(arrays, floating, strict=True) if f))
            rest = iter(pullback(dy if isinstance(y, tuple) else dy[0]))
            return as_tuple(y), tuple(next(rest) if f else None for f in floating)

        value, last = jax.jit(twin), max(i for i, f in enumerate(floating) if f)

        def forward():
            y = value(*arrays)
            as_tuple(y)[-1].block_until_ready()
            return y

        def gradient(*dy):
            y, gradients = both(arrays, dy)
            gradients[last].block_until_ready()  # results of one executable are ready together
            return y, gradients

        return Bound(forward, gradient)


class Numba(Peer):
    """Kernels in loops, as one hands them to a framework: a forward, which returns before dy is known, then a backward
    of what it has kept, worked out by hand."""

    title = "numba"
    MODULES = ("twins_numba", "rows_numba", "steps_numba", "kinds_numba", "kinds_numba_steps")  # in order of imports

    def variants(self, case):
        return case.numba

    def start(self):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the threads of a kernel call it each for its own rows
        numba = require("numba")
        numba.set_num_threads(THREADS)
        numba.njit(parallel=True)(_doubled)(np.ones(8, np.float32))  # loads the compiler and the threads
        self.clear()
        return {
            "numba": numba.__version__,
            "threads": numba.get_num_threads(),
            "threading": numba.threading_layer(),
            "vectors of exp, sin, ..": "SVML" if numba.config.USING_SVML else "none",
        }

    def clear(self):
        for name in self.MODULES:  # anew: a kernel that another case has compiled would have no first call
            importlib.reload(importlib.import_module(name))
        self.twins = _twins(*self.MODULES)

    def bind(self, case, variant):
        value, backward = self.twins[variant], self.twins[f"{variant}_backward"]
        keeping, named = self.twins.get(f"{variant}_forward"), case.draw()
        arguments, read = tuple(named.values()), inspect.signature(backward.py_func).parameters
        reads, reads_y = tuple(a for name, a in named.items() if name in read), "y" in read

        def forward():
            y, kept = keeping(*arguments) if keeping else (value(*arguments), ())
            return y, (*reads, y, *kept) if reads_y else (*reads, *kept)

        def gradient(*dy):
            y, held = forward()
            return as_tuple(y), backward(*held, *dy)

        def kept():
            y, held = forward()
            return left(map(block, held), map(block, (*arguments, *as_tuple(y))))

        return Bound(lambda: value(*arguments), gradient, kept)


def _doubled(x):
    return x + x


class Stream(Peer):
    """STREAM's triad of the same footprint as a pass: what memory gives in the same rounds."""

    title = "STREAM triad"

    def variants(self, case):
        return ("triad",) if case.traffic else ()

    def start(self):
        self.triad = importlib.import_module("stream").Triad
        return self.triad.facts()

    def bind(self, case, variant):
        forward, gradient = (self.triad(arrays * case.nbytes // 12) for arrays in case.traffic)
        return Bound(forward, lambda *dy: ((gradient(),), ()))


def _compiler_version(command: str) -> str:
    if shutil.which(command) is None:
        return f"{command}: absent"
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    return version.stdout.partition("\n")[0]


PEERS: dict[str, type[Peer]] = {
    "layerc": Layerc,
    "native": Native,
    "again": Again,
    "one thread": OneThread,
    "portable": Portable,
    "specialised": Specialised,
    "stand-in": StandIn,
    "torch": TorchEager,
    "own": TorchOwn,
    "compile": TorchCompile,
    "jax": Jax,
    "numba": Numba,
    "stream": Stream,
}
WAYS = ("native", "again", "one thread", "portable", "specialised")  # of layerc: ways.py
ASKABLE = ("torch", "own", "compile", "jax", "numba")

__all__ = ["ASKABLE", "PEERS", "WAYS", "Absent", "Peer"]
