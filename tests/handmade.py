"""A package written by hand, manifest and C, so that writer and runtime can be tested without the compiler.

mish      one example, elementwise          rbf     whole batches, two params
SReLU     a class with four params          pick    an index that is checked at run time
scale     config, a check, a rank-0 input   moments two outputs, an integer input; backward reads an output
Running   a class with a state and config   noise   random numbers from a seed
Shift     a class with its own initialize   flat    no gradient
"""

from pathlib import Path
from typing import Any

from layerc.build.writer import write_package

SOURCE = """\
import numpy as np

from layerc import Layer, Param, Random, State, config, init, layer, real, i64


@layer
def mish(x: real["*S"]) -> real["*S"]:
    return x * np.tanh(np.log1p(np.exp(x)))


@layer(batched=True)
def rbf(x: real["N D"], centers: Param[real["K D"]], gamma: Param[real["K"]]) -> real["N K"]:
    d = x[:, None, :] - centers
    return np.exp(-gamma * np.sum(d * d, axis=-1))


class SReLU(Layer):
    left_threshold: Param[real["C"]] = init.uniform(-1, 0)
    left_slope: Param[real["C"]] = init.uniform(0, 1)
    right_threshold: Param[real["C"]] = init.uniform(0, 1)
    right_slope: Param[real["C"]] = init.uniform(0, 1)

    def predict(self, x: real["C *S"]) -> real["C *S"]:
        tl, al = self.left_threshold[:, None], self.left_slope[:, None]
        tr, ar = self.right_threshold[:, None], self.right_slope[:, None]
        return np.where(x <= tl, tl + al * (x - tl), np.where(x >= tr, tr + ar * (x - tr), x))


@layer
def pick(x: real["N"], index: i64) -> real:
    return x[index]


@layer
def scale(x: real["N"], by: real, power: int = 1) -> real["N"]:
    return x * by**power


@layer
def moments(x: real["N"], k: i64) -> tuple[real, real["N"]]:
    y1 = np.sum(x) * k
    return y1, np.exp(x)


class Running(Layer):
    batched = True
    rate: float = config(0.5, check=lambda r: 0 <= r <= 1)
    mean: State[real["C"]] = init.zeros()

    def predict(self, x: real["N C"]) -> real["N C"]:
        return x - self.mean

    def forward(self, x: real["N C"]) -> real["N C"]:
        self.mean = (1 - self.rate) * self.mean + self.rate * np.mean(x, axis=0)
        return x - self.mean


class Shift(Layer):
    batched = True
    backward = None
    offset: Param[real["C"]] = init.zeros()

    def initialize(self, x):
        self.offset = np.arange(x[1], dtype=float)

    def predict(self, x: real["N C"]) -> real["N C"]:
        return x - self.offset


@layer
def noise(x: real["N"], rng: Random) -> real["N"]:
    return x * rng.random(x.shape)
"""

HEADER = """\
#ifndef LAYERS_H
#define LAYERS_H
#include <stdint.h>
#ifndef LC_CALL
#define LC_CALL
typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;
#endif
"""

C_HEAD = """\
#include "layers.h"
#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#define THREADS(call) ((call) && (call)->threads > 0 ? (call)->threads : 1)
static int fail(lc_call *call, int code, int64_t a, int64_t b)
{
    if (call) { call->code = code; call->info[0] = a; call->info[1] = b; call->info[2] = call->info[3] = 0; }
    return code;
}
"""

# name -> (C parameters, body), with T for the element type and F for the suffix of libm's functions.
KERNELS = {
    "mish": (
        "int64_t batch, int64_t S, const T *x, T *y, lc_call *call",
        """int64_t n = batch * S;
#pragma omp parallel for num_threads(THREADS(call)) if (n > 10000)
for (int64_t i = 0; i < n; i++) y[i] = x[i] * tanhF(log1pF(expF(x[i])));
return 0;""",
    ),
    "mish_backward": (
        "int64_t batch, int64_t S, const T *x, const T *dy, T *d_x, lc_call *call",
        """(void)call;
for (int64_t i = 0; i < batch * S; i++) {
    T e = expF(x[i]), t = tanhF(log1pF(e));
    d_x[i] = dy[i] * (t + x[i] * (1 - t * t) * e / (1 + e));
}
return 0;""",
    ),
    "rbf": (
        "int64_t N, int64_t D, int64_t K, const T *x, const T *centers, const T *gamma, T *y, lc_call *call",
        """(void)call;
for (int64_t n = 0; n < N; n++)
    for (int64_t k = 0; k < K; k++) {
        T s = 0;
        for (int64_t d = 0; d < D; d++) { T t = x[n * D + d] - centers[k * D + d]; s += t * t; }
        y[n * K + k] = expF(-gamma[k] * s);
    }
return 0;""",
    ),
    "rbf_backward": (
        "int64_t N, int64_t D, int64_t K, const T *x, const T *centers, const T *gamma, const T *y, const T *dy, "
        "T *d_x, T *d_centers, T *d_gamma, lc_call *call",
        """(void)call;
for (int64_t i = 0; i < N * D; i++) d_x[i] = 0;
for (int64_t i = 0; i < K * D; i++) d_centers[i] = 0;
for (int64_t k = 0; k < K; k++) d_gamma[k] = 0;
for (int64_t n = 0; n < N; n++)
    for (int64_t k = 0; k < K; k++) {
        T s = 0, g = dy[n * K + k] * y[n * K + k];
        for (int64_t d = 0; d < D; d++) {
            T t = x[n * D + d] - centers[k * D + d];
            s += t * t;
            d_x[n * D + d] -= 2 * g * gamma[k] * t;
            d_centers[k * D + d] += 2 * g * gamma[k] * t;
        }
        d_gamma[k] -= g * s;
    }
return 0;""",
    ),
    "SReLU_predict": (
        "int64_t batch, int64_t C, int64_t S, const T *x, const T *tl, const T *al, const T *tr, const T *ar, T *y, "
        "lc_call *call",
        """(void)call;
for (int64_t b = 0; b < batch; b++)
    for (int64_t c = 0; c < C; c++)
        for (int64_t s = 0; s < S; s++) {
            int64_t i = (b * C + c) * S + s;
            T v = x[i];
            y[i] = v <= tl[c] ? tl[c] + al[c] * (v - tl[c]) : v >= tr[c] ? tr[c] + ar[c] * (v - tr[c]) : v;
        }
return 0;""",
    ),
    "SReLU_backward": (
        "int64_t batch, int64_t C, int64_t S, const T *x, const T *tl, const T *al, const T *tr, const T *ar, "
        "const T *dy, T *d_x, T *d_tl, T *d_al, T *d_tr, T *d_ar, lc_call *call",
        """(void)call;
for (int64_t c = 0; c < C; c++) d_tl[c] = d_al[c] = d_tr[c] = d_ar[c] = 0;
for (int64_t b = 0; b < batch; b++)
    for (int64_t c = 0; c < C; c++)
        for (int64_t s = 0; s < S; s++) {
            int64_t i = (b * C + c) * S + s;
            T v = x[i], g = dy[i];
            if (v <= tl[c]) { d_x[i] = g * al[c]; d_tl[c] += g * (1 - al[c]); d_al[c] += g * (v - tl[c]); }
            else if (v >= tr[c]) { d_x[i] = g * ar[c]; d_tr[c] += g * (1 - ar[c]); d_ar[c] += g * (v - tr[c]); }
            else d_x[i] = g;
        }
return 0;""",
    ),
    "SReLU_backward_params": (
        "int64_t batch, int64_t C, int64_t S, const T *x, const T *tl, const T *al, const T *tr, const T *ar, "
        "const T *dy, T *d_tl, T *d_al, T *d_tr, T *d_ar, lc_call *call",
        """(void)call; (void)x; (void)tl; (void)al; (void)tr; (void)ar; (void)dy; (void)batch; (void)S;
for (int64_t c = 0; c < C; c++) d_tl[c] = d_al[c] = d_tr[c] = d_ar[c] = 42;
return 0;""",
    ),
    "pick": (
        "int64_t batch, int64_t N, const T *x, const int64_t *index, T *y, lc_call *call",
        """for (int64_t b = 0; b < batch; b++) {
    int64_t i = index[b] < 0 ? index[b] + N : index[b];
    if (i < 0 || i >= N) return fail(call, 2, index[b], N);
    y[b] = x[b * N + i];
}
return 0;""",
    ),
    "pick_backward": (
        "int64_t batch, int64_t N, const int64_t *index, const T *dy, T *d_x, lc_call *call",
        """(void)call;
for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < N; i++) d_x[b * N + i] = i == (index[b] + N) % N ? dy[b] : 0;
return 0;""",
    ),
    "scale": (
        "int64_t batch, int64_t N, int64_t power, const T *x, const T *by, T *y, lc_call *call",
        """if (power > 90) return fail(call, power == 99 ? 1 : power == 98 ? 3 : power == 97 ? 4 : 77, power, 0);
for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < N; i++) y[b * N + i] = x[b * N + i] * powF(by[b], (T)power);
return 0;""",
    ),
    "scale_backward": (
        "int64_t batch, int64_t N, int64_t power, const T *x, const T *by, const T *dy, T *d_x, T *d_by, lc_call *call",
        """(void)call;
for (int64_t b = 0; b < batch; b++) {
    d_by[b] = 0;
    for (int64_t i = 0; i < N; i++) {
        d_x[b * N + i] = dy[b * N + i] * powF(by[b], (T)power);
        d_by[b] += dy[b * N + i] * x[b * N + i] * (T)power * powF(by[b], (T)(power - 1));
    }
}
return 0;""",
    ),
    "moments": (
        "int64_t batch, int64_t N, const T *x, const int64_t *k, T *y1, T *y2, lc_call *call",
        """(void)call;
for (int64_t b = 0; b < batch; b++) {
    T s = 0;
    for (int64_t i = 0; i < N; i++) { s += x[b * N + i]; y2[b * N + i] = expF(x[b * N + i]); }
    y1[b] = s * (T)k[b];
}
return 0;""",
    ),
    "moments_backward": (
        "int64_t batch, int64_t N, const int64_t *k, const T *y2, const T *dy1, const T *dy2, T *d_x, lc_call *call",
        """(void)call;
for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < N; i++) d_x[b * N + i] = dy1[b] * (T)k[b] + dy2[b * N + i] * y2[b * N + i];
return 0;""",
    ),
    "Running_predict": (
        "int64_t N, int64_t C, const T *x, const T *mean, T *y, lc_call *call",
        """(void)call;
for (int64_t n = 0; n < N; n++)
    for (int64_t c = 0; c < C; c++) y[n * C + c] = x[n * C + c] - mean[c];
return 0;""",
    ),
    "Running_forward": (
        "int64_t N, int64_t C, double rate, const T *x, const T *mean, T *y, T *new_mean, lc_call *call",
        """(void)call;
for (int64_t c = 0; c < C; c++) {
    T s = 0;
    for (int64_t n = 0; n < N; n++) s += x[n * C + c];
    new_mean[c] = (1 - (T)rate) * mean[c] + (T)rate * s / (T)N;
    for (int64_t n = 0; n < N; n++) y[n * C + c] = x[n * C + c] - new_mean[c];
}
return 0;""",
    ),
    "Running_backward": (
        "int64_t N, int64_t C, double rate, const T *dy, T *d_x, lc_call *call",
        """(void)call;
for (int64_t c = 0; c < C; c++) {
    T s = 0;
    for (int64_t n = 0; n < N; n++) s += dy[n * C + c];
    for (int64_t n = 0; n < N; n++) d_x[n * C + c] = dy[n * C + c] - (T)rate * s / (T)N;
}
return 0;""",
    ),
    "noise": (
        "int64_t batch, int64_t N, int64_t rng, const T *x, T *y, lc_call *call",
        """(void)call;
for (int64_t i = 0; i < batch * N; i++) y[i] = x[i] * (T)((rng ^ i) % 1000);
return 0;""",
    ),
    "noise_backward": (
        "int64_t batch, int64_t N, int64_t rng, const T *dy, T *d_x, lc_call *call",
        """(void)call;
for (int64_t i = 0; i < batch * N; i++) d_x[i] = dy[i] * (T)((rng ^ i) % 1000);
return 0;""",
    ),
}


def parameter(name: str, role: str, dtype: str, shape: str = "", **more: Any) -> dict[str, Any]:
    base = {"name": name, "role": role, "dtype": dtype, "shape": shape, "default": None, "required": False}
    return {**base, "init": None, "check": None, **more}


def method(kernel: str, dims: str, arguments: str, outputs: list[dict[str, str]], config: str = "") -> dict[str, Any]:
    return {
        "kernels": {"f32": f"{kernel}_f32", "f64": f"{kernel}_f64"},
        "dims": dims.split(),
        "config": config.split(),
        "arguments": arguments.split(),
        "outputs": outputs,
    }


def out(name: str, shape: str, role: str = "output") -> dict[str, str]:
    carrier = {"cotangent": f"d{name}"} if role == "output" else {}
    return {"name": name, "role": role, "dtype": "real", "shape": shape, **carrier}


def grad(of: str, shape: str, role: str = "input") -> dict[str, str]:
    return {**out(f"d_{of}", shape, role), "of": of}


def layer(name: str, parameters: list[Any], methods: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {"name": name, "kind": "function", "line": 1, "doc": f"{name}, by hand.", "batched": False}
    sources = {"source": f"def {name}...", "gradient": f"def d_{name}...", "c": f"int {name}_f32..."}
    inputs = ", ".join(p["name"] for p in parameters)
    rest = {"backward": "auto", "signature": f"{name}({inputs})", "sources": sources}
    return {**base, **rest, "parameters": parameters, "methods": methods, **more}


def srelu() -> dict[str, Any]:
    uniform = {
        "left_threshold": [-1, 0],
        "left_slope": [0, 1],
        "right_threshold": [0, 1],
        "right_slope": [0, 1],
    }
    params = [parameter(n, "param", "real", "C", init={"name": "uniform", "args": a}) for n, a in uniform.items()]
    names = " ".join(uniform)
    gradients = [grad(n, "C", "param") for n in uniform]
    backward = method("SReLU_backward", "C S", f"x {names} dy", [grad("x", "C *S"), *gradients])
    backward["variants"] = {"params": method("SReLU_backward_params", "C S", f"x {names} dy", gradients)}
    predict = method("SReLU_predict", "C S", f"x {names}", [out("y", "C *S")])
    x = parameter("x", "input", "real", "C *S")
    return layer("SReLU", [x, *params], {"predict": predict, "backward": backward}, kind="class")


def layers() -> list[dict[str, Any]]:
    x = parameter("x", "input", "real", "N")
    rbf = [
        parameter("x", "input", "real", "N D"),
        parameter("centers", "param", "real", "K D"),
        parameter("gamma", "param", "real", "K"),
    ]
    rbf_gradients = [grad("x", "N D"), grad("centers", "K D", "param"), grad("gamma", "K", "param")]
    rate = parameter("rate", "config", "float", default=0.5, check="lambda r: 0 <= r <= 1")
    running = [
        parameter("x", "input", "real", "N C"),
        parameter("mean", "state", "real", "C", init={"name": "zeros", "args": []}),
        rate,
    ]
    new_mean = {**out("mean", "C", "state"), "of": "mean"}
    return [
        layer(
            "mish",
            [parameter("x", "input", "real", "*S")],
            {
                "predict": method("mish", "S", "x", [out("y", "*S")]),
                "backward": method("mish_backward", "S", "x dy", [grad("x", "*S")]),
            },
        ),
        layer(
            "rbf",
            rbf,
            {
                "predict": method("rbf", "N D K", "x centers gamma", [out("y", "N K")]),
                "backward": method("rbf_backward", "N D K", "x centers gamma y dy", rbf_gradients),
            },
            batched=True,
        ),
        srelu(),
        layer(
            "pick",
            [x, parameter("index", "input", "i64")],
            {
                "predict": method("pick", "N", "x index", [out("y", "")]),
                "backward": method("pick_backward", "N", "index dy", [grad("x", "N")]),
            },
        ),
        layer(
            "scale",
            [
                x,
                parameter("by", "input", "real"),
                parameter("power", "config", "int", default=1, check="lambda p: p > 0"),
            ],
            {
                "predict": method("scale", "N", "x by", [out("y", "N")], "power"),
                "backward": method("scale_backward", "N", "x by dy", [grad("x", "N"), grad("by", "")], "power"),
            },
        ),
        layer(
            "moments",
            [x, parameter("k", "input", "i64")],
            {
                "predict": method("moments", "N", "x k", [out("y1", ""), out("y2", "N")]),
                "backward": method("moments_backward", "N", "k y2 dy1 dy2", [grad("x", "N")]),
            },
        ),
        layer(
            "Running",
            running,
            {
                "predict": method("Running_predict", "N C", "x mean", [out("y", "N C")]),
                "forward": method("Running_forward", "N C", "x mean", [out("y", "N C"), new_mean], "rate"),
                "backward": method("Running_backward", "N C", "dy", [grad("x", "N C")], "rate"),
            },
            kind="class",
            batched=True,
        ),
        layer(
            "noise",
            [x, parameter("rng", "random", "rng")],
            {
                "predict": method("noise", "N", "x", [out("y", "N")], "rng"),
                "backward": method("noise_backward", "N", "dy", [grad("x", "N")], "rng"),
            },
        ),
        layer(
            "Shift",
            [running[0], parameter("offset", "param", "real", "C", init={"name": "zeros", "args": []})],
            {"predict": method("Running_predict", "N C", "x offset", [out("y", "N C")])},
            kind="class",
            batched=True,
            backward="none",
            by_hand=["initialize"],
        ),
        layer(
            "flat",
            [parameter("x", "input", "real", "*S")],
            {"predict": method("mish", "S", "x", [out("y", "*S")])},
            backward="none",
        ),
    ]


def manifest() -> dict[str, Any]:
    error = {"file": "layers.py", "line": 31, "layer": "pick"}
    message = "index {0} is out of range for axis 0 with size {1}"
    return {
        "format": 1,
        "layerc": "0.1.0",
        "source": "layers.py",
        "sha256": "0" * 64,
        "module": "_native",
        "errors": [
            {**error, "number": 2, "exception": "IndexError", "message": message},
            {**error, "number": 3, "exception": "ZeroDivisionError", "message": "integer division by zero"},
            {**error, "number": 4, "exception": "SystemExit", "message": "not an exception we raise"},
        ],
        "layers": layers(),
    }


def texts(kernels: dict[str, tuple[str, str]] = KERNELS) -> tuple[str, str, str]:
    """C text, header and cdef."""
    code, header, cdef = (
        [C_HEAD],
        [HEADER],
        ["typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;"],
    )
    for name, (parameters, body) in kernels.items():
        for kind, type_, suffix in (("f32", "float", "f"), ("f64", "double", "")):
            typed = _typed(parameters, type_, suffix)
            header.append(f"int {name}_{kind}({typed});")
            code.append(f"int {name}_{kind}({typed})\n{{\n{_typed(body, type_, suffix)}\n}}")
            cdef.append(f"int {name}_{kind}({_untyped(typed)});")
    return "\n".join(code) + "\n", "\n".join(header) + "\n#endif\n", "\n".join(cdef)


def _typed(text: str, type_: str, suffix: str) -> str:
    for function in ("tanh", "log1p", "exp", "pow"):
        text = text.replace(f"{function}F", f"{function}{suffix}")
    for use in ("T *", "T e", "T s", "T t", "T v", "(T)"):
        text = text.replace(use, use.replace("T", type_))
    return text


def _untyped(parameters: str) -> str:
    parts = [p.strip() for p in parameters.split(",")]
    arrays = ("const float *", "const double *", "const int64_t *", "float *", "double *")
    return ", ".join("void *" + p.rpartition("*")[2] if p.startswith(arrays) else p for p in parts)


def build(directory: Path, *, small: bool = False, **options: Any) -> bool:
    """Write the package. small: mish alone, for tests of writing."""
    if small:
        options.setdefault("manifest", {**manifest(), "layers": layers()[:1]})
    kernels = {n: k for n, k in KERNELS.items() if not small or n.startswith("mish")}
    c_text, h_text, cdef = texts(kernels)
    return write_package(
        directory,
        options.pop("manifest", None) or manifest(),
        **{"c_text": c_text, "h_text": h_text, "cdef": cdef, **options},
        gradients_text="import numpy as np\n",
        source_text=SOURCE,
    )
