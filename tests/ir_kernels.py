"""Kernels in the shape lowering gives them, built by hand: one nest per array statement. Used by
test_passes and test_emit.

k = Builder("scale", "S", batch=True)
x, y = k.arg("x", "S"), k.out("y", "S")
k.set(y, lambda s: x[s] * 2.0)
kernel = k.kernel()
"""

from __future__ import annotations

import ctypes
import inspect
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from layerc.build.compiler import find
from layerc.transpile import emit, ir
from layerc.transpile.dims import ZERO, Atom, Dim, maximum

FLAGS = [*find().flags, *find().native]
WARNINGS = "-Wall -Wextra -Werror".split()
_COMPARE = {
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_not",
}


class E:
    """An expression with Python's operators."""

    def __init__(self, expr: ir.Expr):
        self.ir = expr

    @property
    def dtype(self) -> str:
        return "i64" if isinstance(self.ir, ir.Int) else self.ir.dtype

    def __add__(self, o):
        return op("add", self, o)

    def __radd__(self, o):
        return op("add", o, self)

    def __sub__(self, o):
        return op("subtract", self, o)

    def __rsub__(self, o):
        return op("subtract", o, self)

    def __mul__(self, o):
        return op("multiply", self, o)

    def __rmul__(self, o):
        return op("multiply", o, self)

    def __truediv__(self, o):
        return op("divide", self, o)

    def __rtruediv__(self, o):
        return op("divide", o, self)

    def __lt__(self, o):
        return op("less", self, o)

    def __le__(self, o):
        return op("less_equal", self, o)

    def __gt__(self, o):
        return op("greater", self, o)

    def __ge__(self, o):
        return op("greater_equal", self, o)

    def __and__(self, o):
        return op("logical_and", self, o)

    def __neg__(self):
        return op("negative", self)


def lift(value: Any, dtype: str = "real") -> E:
    return value if isinstance(value, E) else E(ir.Const(value, dtype))


def op(name: str, *args: Any) -> E:
    kinds = [a.dtype for a in args if isinstance(a, E)]
    lifted = [lift(a, kinds[-1]) for a in args]
    dtype = "bool" if name in _COMPARE else lifted[-1].dtype
    return E(ir.Op(name, tuple(a.ir for a in lifted), dtype))


def real(e: E) -> E:
    return E(ir.Cast(e.ir, "real"))


def atom(e: E) -> Dim:
    """An integer read from memory, for use in an index."""
    return Dim.of(Atom("load", (e.ir,)))


class Array:
    def __init__(self, builder: Builder, name: str, shape: tuple[Dim, ...], batched: bool, dtype: str):
        self.builder, self.name, self.shape, self.batched, self.dtype = builder, name, shape, batched, dtype

    def at(self, index: Any) -> tuple[Dim, ...]:
        index = index if isinstance(index, tuple) else (index,)
        return ((Dim.of("b"),) if self.batched else ()) + tuple(Dim.of(i) for i in index)

    def __getitem__(self, index: Any) -> E:
        return E(ir.Load(self.name, self.at(index), self.dtype))

    def store(self, index: Any, value: Any, op: str | None = None) -> None:
        self.builder.emit(ir.Store(self.name, self.at(index), lift(value, self.dtype).ir, op))


class Builder:
    def __init__(self, name: str, dims: str = "", batch: bool = False, scalars: tuple[tuple[str, str], ...] = ()):
        self.name, self.batch = name, batch
        self.dims = (("batch",) if batch else ()) + tuple(dims.split())
        self.scalars = tuple(ir.Scalar(*s) for s in scalars)
        self.buffers: list[ir.Buffer] = []
        self.before: list[ir.Stmt] = []
        self.stack: list[list[ir.Stmt]] = [[]]
        self.count = 0

    # -- declarations
    def _declare(
        self, name: str, shape: str | tuple, kind: str, batched: bool, dtype: str, alias: str | None = None
    ) -> Array:
        extents = (
            tuple(Dim.of(int(d) if d.isdigit() else d) for d in shape.split()) if isinstance(shape, str) else shape
        )
        full = ((Dim.of("batch"),) if batched else ()) + extents
        self.buffers.append(ir.Buffer(name, dtype, full, kind, alias))
        return Array(self, name, extents, batched, dtype)

    def arg(self, name: str, shape: str = "", dtype: str = "real") -> Array:
        return self._declare(name, shape, "in", self.batch, dtype)

    def param(self, name: str, shape: str = "", dtype: str = "real") -> Array:
        return self._declare(name, shape, "in", False, dtype)

    def out(self, name: str, shape: str = "", dtype: str = "real") -> Array:
        return self._declare(name, shape, "out", self.batch, dtype)

    def grad(self, name: str, shape: str = "") -> Array:
        """A gradient summed over the batch: zeroed before the batch loop."""
        array = self._declare(name, shape, "out", False, "real")
        self.before.append(
            self.nest(array.shape, lambda *i: ir.Store(name, tuple(map(Dim.of, i)), ir.Const(0, "real")))
        )
        return array

    def temp(self, shape: str | tuple = "", dtype: str = "real", kind: str = "temp", name: str = "") -> Array:
        self.count += 1
        return self._declare(name or f"t{self.count}", shape, kind, False, dtype)

    def scalar(self, name: str) -> E:
        return E(next(s for s in self.scalars if s.name == name))

    # -- statements
    def emit(self, stmt: ir.Stmt) -> None:
        self.stack[-1].append(stmt)

    def nest(self, shape: tuple[Dim, ...], make: Callable[..., ir.Stmt], kind: str = "map") -> ir.Stmt:
        self.count += 1
        names = [f"i{self.count}_{k}" for k in range(len(shape))]
        stmt = make(*names)
        for name, extent in zip(reversed(names), reversed(shape)):
            stmt = ir.For(name, Dim.of(0), Dim.of(extent), (stmt,), kind)
        return stmt

    def set(self, target: Array, value: Callable[..., Any], op: str | None = None) -> Array:
        """target[...] = value(i, j...)"""
        self.emit(
            self.nest(
                target.shape,
                lambda *i: ir.Store(target.name, target.at(i), lift(value(*i), target.dtype).ir, op),
            )
        )
        return target

    def let(self, shape: str | tuple, value: Callable[..., Any], dtype: str = "real") -> Array:
        return self.set(self.temp(shape, dtype), value)

    def reduce(
        self,
        shape: str | tuple,
        keep: tuple[int, ...],
        value: Callable[..., Any],
        op: str = "add",
        into: Array | None = None,
        init: float | None = 0.0,
    ) -> Array:
        extents = (
            tuple(Dim.of(int(d) if d.isdigit() else d) for d in shape.split()) if isinstance(shape, str) else shape
        )
        target = into or self.temp(tuple(extents[k] for k in keep))
        if init is not None:
            self.set(target, lambda *i: init)
        self.emit(
            self.nest(
                extents,
                lambda *i: ir.Store(
                    target.name, target.at(tuple(i[k] for k in keep)), lift(value(*i), target.dtype).ir, op
                ),
            )
        )
        return target

    def loop(self, var: str, hi: Any, body: Callable[[str], Any], kind: str = "seq", lo: Any = 0) -> None:
        self.stack.append([])
        body(var)
        self.emit(ir.For(var, Dim.of(lo), Dim.of(hi), tuple(self.stack.pop()), kind))  # type: ignore[call-arg]

    def block(self, body: Callable[[], Any]) -> tuple[ir.Stmt, ...]:
        self.stack.append([])
        body()
        return tuple(self.stack.pop())

    def kernel(self) -> ir.Kernel:
        assert len(self.stack) == 1
        body = tuple(self.stack[0])
        if self.batch:
            body = (*self.before, ir.For("b", Dim.of(0), Dim.of("batch"), body, "map"))
        order = {"in": 0, "out": 1, "temp": 2, "list": 2}
        return ir.Kernel(
            self.name,
            self.dims,
            self.scalars,
            tuple(sorted(self.buffers, key=lambda b: order[b.kind])),
            body,
            "batch" if self.batch else None,
        )


# -- running -------------------------------------------------------------------------------------------------
class Call(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int32), ("code", ctypes.c_int32), ("info", ctypes.c_int64 * 4)]


class Library:
    def __init__(self, jobs: list, flags: list[str] | None = None, warnings: bool = True, keep: str | None = None):
        folder = Path(keep or tempfile.mkdtemp(prefix="lc_"))
        folder.mkdir(exist_ok=True)
        self.text = emit.c_file(jobs)
        self.kernels = {k.name: k for k, _ in jobs}
        (folder / "k.c").write_text(self.text)
        command = [
            *find().command,
            *(FLAGS if flags is None else flags),
            *(WARNINGS if warnings else []),
            "-shared",
            "-fPIC",
            "k.c",
            "-o",
            "k.so",
            "-lm",
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:6000]
        self.messages = done.stderr
        self.lib = ctypes.CDLL(str(folder / "k.so"))

    def __call__(self, name: str, *arrays: np.ndarray, threads: int = 1, scalars: tuple = (), **dims: int) -> Call:
        """Inputs then outputs, all of one float type, which names the function."""
        kernel = self.kernels[name]
        real = "f64" if any(a.dtype == np.float64 for a in arrays) else "f32"
        call = Call(threads=threads)
        values: list[Any] = [ctypes.c_int64(dims[d]) for d in kernel.dims]
        for s, v in zip(kernel.scalars, scalars):
            values.append(ctypes.c_double(v) if s.dtype in ("real", "f32", "f64") else ctypes.c_int64(v))
        for a in arrays:
            assert a.flags.c_contiguous
            values.append(ctypes.c_void_p(a.ctypes.data))
        code = getattr(self.lib, f"{name}_{real}")(*values, ctypes.byref(call))
        assert code == call.code
        return call


def both(*kernels: ir.Kernel) -> list:
    return [(k, d) for k in kernels for d in ("f32", "f64")]


# -- the zoo -------------------------------------------------------------------------------------------------
def mish() -> ir.Kernel:
    k = Builder("mish", "S", batch=True)
    x, y = k.arg("x", "S"), k.out("y", "S")
    t = k.let("S", lambda s: op("log1p", op("exp", x[s])))
    u = k.let("S", lambda s: op("tanh", t[s]))
    k.set(y, lambda s: x[s] * u[s])
    return k.kernel()


def mish_backward() -> ir.Kernel:
    k = Builder("mish_backward", "S", batch=True)
    x, dy, dx = k.arg("x", "S"), k.arg("dy", "S"), k.out("dx", "S")
    e = k.let("S", lambda s: op("exp", x[s]))
    t = k.let("S", lambda s: op("log1p", e[s]))
    u = k.let("S", lambda s: op("tanh", t[s]))
    du = k.let("S", lambda s: dy[s] * x[s])
    dt = k.let("S", lambda s: du[s] * (1.0 - u[s] * u[s]))
    de = k.let("S", lambda s: dt[s] / (1.0 + e[s]))
    k.set(dx, lambda s: dy[s] * u[s] + de[s] * e[s])
    return k.kernel()


def srelu() -> ir.Kernel:
    k = Builder("srelu", "C S", batch=True)
    x, tl, al, tr, ar = k.arg("x", "C S"), *(k.param(n, "C") for n in ("tl", "al", "tr", "ar"))
    y = k.out("y", "C S")
    left = k.let("C S", lambda c, s: tl[c] + al[c] * (x[c, s] - tl[c]))
    right = k.let("C S", lambda c, s: tr[c] + ar[c] * (x[c, s] - tr[c]))
    low = k.let("C S", lambda c, s: x[c, s] < tl[c], "bool")
    high = k.let("C S", lambda c, s: x[c, s] > tr[c], "bool")
    k.set(y, lambda c, s: op("where", low[c, s], left[c, s], op("where", high[c, s], right[c, s], x[c, s])))
    return k.kernel()


def srelu_backward() -> ir.Kernel:
    k = Builder("srelu_backward", "C S", batch=True)
    x, dy = k.arg("x", "C S"), k.arg("dy", "C S")
    tl, al, tr, ar = (k.param(n, "C") for n in ("tl", "al", "tr", "ar"))
    dx = k.out("dx", "C S")
    grads = [k.grad("d" + n, "C") for n in ("tl", "al", "tr", "ar")]
    low = k.let("C S", lambda c, s: x[c, s] < tl[c], "bool")
    high = k.let("C S", lambda c, s: x[c, s] > tr[c], "bool")
    dleft = k.let("C S", lambda c, s: op("where", low[c, s], dy[c, s], 0.0))
    dright = k.let("C S", lambda c, s: op("where", low[c, s], 0.0, op("where", high[c, s], dy[c, s], 0.0)))
    dmid = k.let("C S", lambda c, s: op("where", low[c, s], 0.0, op("where", high[c, s], 0.0, dy[c, s])))
    k.set(dx, lambda c, s: dmid[c, s] + dleft[c, s] * al[c] + dright[c, s] * ar[c])
    sl = k.reduce("C S", (0,), lambda c, s: dleft[c, s])
    sr = k.reduce("C S", (0,), lambda c, s: dright[c, s])
    gal = k.reduce("C S", (0,), lambda c, s: dleft[c, s] * (x[c, s] - tl[c]))
    gar = k.reduce("C S", (0,), lambda c, s: dright[c, s] * (x[c, s] - tr[c]))
    values = [
        lambda c: sl[c] * (1.0 - al[c]),
        lambda c: gal[c],
        lambda c: sr[c] * (1.0 - ar[c]),
        lambda c: gar[c],
    ]
    for g, v in zip(grads, values):
        k.set(g, v, "add")
    return k.kernel()


def layernorm() -> ir.Kernel:
    k = Builder("layernorm", "D", batch=True)
    x, gamma, beta, y = k.arg("x", "D"), k.param("gamma", "D"), k.param("beta", "D"), k.out("y", "D")
    total = k.reduce("D", (), lambda d: x[d])
    mean = k.let("", lambda: total[()] / real(E(ir.Int(Dim.of("D")))))
    c = k.let("D", lambda d: x[d] - mean[()])
    squares = k.reduce("D", (), lambda d: c[d] * c[d])
    var = k.let("", lambda: squares[()] / real(E(ir.Int(Dim.of("D")))))
    r = k.let("", lambda: 1.0 / op("sqrt", var[()] + 1e-5))
    h = k.let("D", lambda d: c[d] * r[()])
    k.set(y, lambda d: h[d] * gamma[d] + beta[d])
    return k.kernel()


def softmax() -> ir.Kernel:
    """Batched rows: a top-level nest over n, max, exp, sum, division."""
    k = Builder("softmax", "N C")
    x, y = k.arg("x", "N C"), k.out("y", "N C")
    m = k.reduce("N C", (0,), lambda n, c: x[n, c], "max", init=-np.inf)
    e = k.let("N C", lambda n, c: op("exp", x[n, c] - m[n]))
    s = k.reduce("N C", (0,), lambda n, c: e[n, c])
    k.set(y, lambda n, c: e[n, c] / s[n])
    return k.kernel()


def matmul(layout: str = "nn", term: Callable[[E, E], E] = lambda a, b: a * b) -> ir.Kernel:
    """C = A B; with another term than a product, a nest of the same shape that stays one."""
    k = Builder(f"matmul_{layout}", "N M K")
    a = k.arg("a", "N K" if layout[0] == "n" else "K N")
    b = k.arg("b", "K M" if layout[1] == "n" else "M K")
    c = k.out("c", "N M")
    k.reduce(
        "N M K",
        (0, 1),
        lambda i, j, l: term(a[i, l] if layout[0] == "n" else a[l, i], b[l, j] if layout[1] == "n" else b[j, l]),
        into=c,
    )
    return k.kernel()


def rbf() -> ir.Kernel:
    k = Builder("rbf", "D K", batch=True)
    x, c, g, y = k.arg("x", "D"), k.param("c", "K D"), k.param("g"), k.out("y", "K")
    diff = k.let("K D", lambda j, d: x[d] - c[j, d])
    sq = k.let("K D", lambda j, d: diff[j, d] * diff[j, d])
    dist = k.reduce("K D", (0,), lambda j, d: sq[j, d])
    k.set(y, lambda j: op("exp", -(g[()] * dist[j])))
    return k.kernel()


def rbf_backward() -> ir.Kernel:
    k = Builder("rbf_backward", "D K", batch=True)
    x, c, g, y, dy = k.arg("x", "D"), k.param("c", "K D"), k.param("g"), k.arg("y", "K"), k.arg("dy", "K")
    dx = k.out("dx", "D")
    dc, dg = k.grad("dc", "K D"), k.grad("dg")
    diff = k.let("K D", lambda j, d: x[d] - c[j, d])
    sq = k.let("K D", lambda j, d: diff[j, d] * diff[j, d])
    dist = k.reduce("K D", (0,), lambda j, d: sq[j, d])
    w = k.let("K", lambda j: dy[j] * y[j])
    dg_ = k.reduce("K", (), lambda j: -(w[j] * dist[j]))
    ddist = k.let("K", lambda j: -(w[j] * g[()]))
    ddiff = k.let("K D", lambda j, d: 2.0 * ddist[j] * diff[j, d])
    k.reduce("K D", (1,), lambda j, d: ddiff[j, d], into=dx)
    k.set(dc, lambda j, d: -ddiff[j, d], "add")
    k.set(dg, lambda: dg_[()], "add")
    return k.kernel()


def ema() -> ir.Kernel:
    k = Builder("ema", "T D", batch=True)
    x, a, y = k.arg("x", "T D"), k.param("a", "D"), k.out("y", "T D")
    h = k.let("D", lambda d: 0.0)

    def step(t: str) -> None:
        new = k.let("D", lambda d: a[d] * h[d] + (1.0 - a[d]) * x[t, d])
        k.set(h, lambda d: new[d])
        k.emit(k.nest(h.shape, lambda d: ir.Store("y", y.at((t, d)), h[d].ir)))

    k.loop("t", "T", step)
    return k.kernel()


def ema_backward() -> ir.Kernel:
    """The gradient program reads h[t-1] as y[t-1]; time runs backwards by index."""
    k = Builder("ema_backward", "T D", batch=True)
    x, a, y, dy = k.arg("x", "T D"), k.param("a", "D"), k.arg("y", "T D"), k.arg("dy", "T D")
    dx = k.out("dx", "T D")
    k.grad("da", "D")
    dh = k.let("D", lambda d: 0.0)

    def step(r: str) -> None:
        t = Dim.of("T") - 1 - Dim.of(r)
        k.set(dh, lambda d: dy[t, d], "add")
        first = E(ir.Op("greater", (ir.Int(t), ir.Const(0, "i64")), "bool"))
        earlier = maximum(t - 1, ZERO)  # a `where` reads both of its values
        before = k.let("D", lambda d: op("where", first, y[earlier, d], 0.0))
        k.emit(k.nest(dh.shape, lambda d: ir.Store("da", (Dim.of(d),), (dh[d] * (before[d] - x[t, d])).ir, "add")))
        k.emit(k.nest(dh.shape, lambda d: ir.Store("dx", dx.at((t, d)), (dh[d] * (1.0 - a[d])).ir)))
        k.set(dh, lambda d: dh[d] * a[d])

    k.loop("r", "T", step)
    return k.kernel()


def kepler() -> ir.Kernel:
    """A scalar example with a value-dependent loop: E - e sin E = M by Newton, until the step is small."""
    k = Builder("kepler", "", batch=True)
    m, e, y = k.arg("m"), k.arg("e"), k.out("y")
    v, step, n = k.let("", lambda: m[()]), k.let("", lambda: 1.0), k.let("", lambda: 0, "i64")

    def before() -> None:
        pass

    def body() -> None:
        s = k.let("", lambda: (v[()] - e[()] * op("sin", v[()]) - m[()]) / (1.0 - e[()] * op("cos", v[()])))
        k.set(step, lambda: s[()])
        k.set(v, lambda: v[()] - step[()])
        k.set(n, lambda: n[()] + 1)

    cond = op("logical_and", op("greater", op("abs", step[()]), 1e-6), op("less", n[()], lift(50, "i64")))
    k.emit(ir.While(k.block(before), cond.ir, k.block(body)))
    k.set(y, lambda: v[()])
    return k.kernel()


def gather() -> ir.Kernel:
    """y[i] = x[idx[i]] with a check, dx by scatter-add, and a list that grows."""
    k = Builder("gather", "N M", batch=True)
    x, idx, y, z = k.arg("x", "N"), k.arg("idx", "M", "i64"), k.out("y", "M"), k.out("z", "N")
    bad = k.temp("", "bool")

    def check(i: str) -> None:
        cond = op(
            "logical_and",
            op("greater_equal", idx[i], lift(0, "i64")),
            op("less", idx[i], E(ir.Int(Dim.of("N")))),
        )
        k.emit(ir.Check(cond.ir, 7, (atom(idx[i]), Dim.of("N"))))

    k.buffers.remove(next(b for b in k.buffers if b.name == bad.name))
    k.loop("c", "M", check)
    k.set(y, lambda i: x[atom(idx[i])])
    k.set(z, lambda i: 0.0)
    k.emit(k.nest(y.shape, lambda i: ir.Store("z", z.at(atom(idx[i])), (x[atom(idx[i])] * 2.0).ir, "add")))
    stack = k.temp("M", kind="list", name="stack")

    def push(i: str) -> None:
        k.emit(ir.Grow("stack", Dim.of(i) + 1))
        stack.store(i, y[i])

    k.loop("p", "M", push)
    k.set(y, lambda i: stack[Dim.of("M") - 1 - Dim.of(i)])
    return k.kernel()


ZOO: dict[str, Callable[[], ir.Kernel]] = {
    name: f
    for name, f in list(globals().items())
    if inspect.isfunction(f) and f.__module__ == __name__ and f.__annotations__.get("return") == "ir.Kernel"
}


# -- what they mean, in NumPy: inputs then outputs in the order of the ABI -----------------------------------
def _rows(x: np.ndarray) -> np.ndarray:
    return x.reshape(x.shape[0], -1)


def reference(name: str, v: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = v.get("x")
    match name:
        case "mish":
            return {"y": x * np.tanh(np.log1p(np.exp(x)))}
        case "mish_backward":
            e = np.exp(x)
            u = np.tanh(np.log1p(e))
            return {"dx": v["dy"] * u + v["dy"] * x * (1 - u * u) / (1 + e) * e}
        case "srelu" | "srelu_backward":
            tl, al, tr, ar = (v[n][:, None] for n in ("tl", "al", "tr", "ar"))
            low, high = x < tl, x > tr
            if name == "srelu":
                return {"y": np.where(low, tl + al * (x - tl), np.where(high, tr + ar * (x - tr), x))}
            dy = v["dy"]
            high = high & ~low
            dl, dr, dm = np.where(low, dy, 0), np.where(high, dy, 0), np.where(low | high, 0, dy)
            return {
                "dx": dm + dl * al + dr * ar,
                "dtl": (dl * (1 - al)).sum((0, 2)),
                "dal": (dl * (x - tl)).sum((0, 2)),
                "dtr": (dr * (1 - ar)).sum((0, 2)),
                "dar": (dr * (x - tr)).sum((0, 2)),
            }
        case "layernorm":
            with np.errstate(all="ignore"):
                c = x - x.mean(-1, keepdims=True)
                return {"y": c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * v["gamma"] + v["beta"]}
        case "softmax":
            if not x.size:
                return {"y": x}
            e = np.exp(x - x.max(-1, keepdims=True))
            return {"y": e / e.sum(-1, keepdims=True)}
        case "rbf" | "rbf_backward":
            diff = x[:, None, :] - v["c"]
            dist = (diff**2).sum(-1)
            if name == "rbf":
                return {"y": np.exp(-v["g"] * dist)}
            w = v["dy"] * v["y"]
            dd = 2 * -(w * v["g"])[:, :, None] * diff
            return {"dx": dd.sum(1), "dc": -dd.sum(0), "dg": -(w * dist).sum()}
        case "ema":
            h, y = np.zeros_like(x[:, 0]) if x.shape[1] else None, np.empty_like(x)
            for t in range(x.shape[1]):
                h = y[:, t] = v["a"] * h + (1 - v["a"]) * x[:, t]
            return {"y": y}
        case "ema_backward":
            dx, da, dh = np.empty_like(x), np.zeros_like(v["a"]), 0 * v["a"]
            for t in range(x.shape[1])[::-1]:
                dh = dh + v["dy"][:, t]
                da += (dh * ((v["y"][:, t - 1] if t else 0) - x[:, t])).sum(0)
                dx[:, t] = dh * (1 - v["a"])
                dh = dh * v["a"]
            return {"dx": dx, "da": da}
        case "kepler":
            m, e = v["m"], v["e"]
            y = m + 0 * e
            step, n = np.ones_like(m), np.zeros(m.shape, int)
            while (on := (abs(step) > 1e-6) & (n < 50)).any():
                s = (y - e * np.sin(y) - m) / (1 - e * np.cos(y))
                step, y, n = np.where(on, s, step), np.where(on, y - s, y), n + on
            return {"y": y}
        case "gather":
            y = np.take_along_axis(x, v["idx"], 1)
            z = np.zeros_like(x)
            for b in range(len(x)):
                np.add.at(z[b], v["idx"][b], 2 * y[b])
            return {"y": y[:, ::-1].copy(), "z": z}
    raise KeyError(name)


def shapes(kernel: ir.Kernel, dims: dict[str, int]) -> dict[str, tuple[int, ...]]:
    return {b.name: tuple(d.evaluate(dims) for d in b.shape) for b in kernel.buffers if b.kind in ("in", "out")}


def random_inputs(kernel: ir.Kernel, dims: dict[str, int], dtype: Any, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}
    sizes = shapes(kernel, dims)
    for b in kernel.buffers:
        if b.kind == "in":
            if b.dtype == "i64":
                found[b.name] = rng.integers(0, max(dims["N"], 1), sizes[b.name])
            else:
                found[b.name] = rng.standard_normal(sizes[b.name]).astype(dtype)
    for name in ("e", "a"):
        if name in found and kernel.name in ("kepler", "ema", "ema_backward"):
            found[name] = (abs(np.tanh(found[name])) * 0.8).astype(dtype)
    return found


def outputs(kernel: ir.Kernel, dims: dict[str, int], dtype: Any) -> dict[str, np.ndarray]:
    kinds = {"real": dtype, "i64": np.int64, "bool": np.uint8}
    sizes = shapes(kernel, dims)
    return {b.name: np.full(sizes[b.name], 7, kinds[b.dtype]) for b in kernel.buffers if b.kind == "out"}


def run_kernel(
    lib: Library,
    kernel: ir.Kernel,
    dims: dict[str, int],
    values: dict[str, np.ndarray],
    dtype: Any,
    threads: int = 1,
) -> dict[str, np.ndarray]:
    outs = outputs(kernel, dims, dtype)
    call = lib(kernel.name, *values.values(), *outs.values(), threads=threads, **dims)
    assert call.code == 0, (kernel.name, call.code)
    return outs


def all_kernels() -> dict[str, ir.Kernel]:
    found = {f().name: f() for f in ZOO.values() if f is not matmul}
    return found | {f"matmul_{s}": matmul(s) for s in ("nn", "nt", "tn")}


SIZES = [  # one value for each dim, in turn over the kernel's dims
    (3, 5, 7),
    (1, 1, 1),
    (2, 17, 33),
    (1, 64, 130),
    (0, 3, 4),
    (4, 1, 1030),
    (3, 0, 5),
    (33, 2, 3),
    (70, 4, 9),
    (1, 2100, 9),
    (6, 2, 0),
    (300, 40, 50),
]


def cases(kernel: ir.Kernel) -> list[dict[str, int]]:
    found = [dict(zip(kernel.dims, sizes)) for sizes in SIZES]
    return [d for d in found if kernel.name != "gather" or d["N"] > 0]


if __name__ == "__main__":  # run by test_emit under the sanitizers
    import sys

    from layerc.transpile import passes

    kernels = all_kernels()
    for openmp in ([], ["-fopenmp"]):
        flags = [
            "-std=gnu11",
            "-O1",
            "-g",
            "-march=native",
            "-fno-math-errno",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
        ]
        library = Library(both(*(passes.run(k) for k in kernels.values())), flags + openmp, keep=sys.argv[1])
        for kernel in kernels.values():
            for dims in cases(kernel):
                for dtype in (np.float32, np.float64):
                    run_kernel(library, kernel, dims, random_inputs(kernel, dims, dtype), dtype, 2)
    print("clean")
