"""Time per element of every kernel of transpile/math.h against scalar libm.

    python benchmarks/math_kernels.py [name ...]

4096 elements (both arrays stay in L1 or L2), the loop repeated inside C, the best of many runs.
Flags for the kernels come from CFLAGS if set. A `-` under `vec` means gcc did not vectorise the loop.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

PROBE = Path(__file__).parent.parent / "tests" / "math_probe.c"
FLAGS = "-std=gnu11 -O3 -march=native -mprefer-vector-width=512 -fno-math-errno -fno-trapping-math -fopenmp-simd"
N, RUNS = 4096, 40

POWERS = ("power4", "power5", "power6")
ROOTS = ("root4", "power34", "power32", "over_root2", "over_root4", "over_power34", "over_power32")
# Kernels whose C name differs from NumPy's; None: libm has no such function.
LIBM = {
    **{f"arc{n}": f"a{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "abs": "fabs",
    "max": "fmax",
    "min": "fmin",
    "mod": "fmod",
    "gammaln": "lgamma",
    **dict.fromkeys(
        ("sigmoid", "digamma", "trigamma", "logit", "log_expit", "sign", "floor_div", "heaviside", "xlogy", "logaddexp")
    ),
    **dict.fromkeys(("sin_near", "cos_near", *POWERS, *ROOTS)),
}
DOMAIN = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "pow", "gammaln", "digamma", "xlogy", *ROOTS), (0.01, 5)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh", "log1p"), (-0.99, 0.99)),
    "arccosh": (1, 9),
    "logit": (0.01, 0.99),
}
DRIVER = """
#include <math.h>
#include <time.h>
typedef void loop(long, const void *, const void *, const void *);
double best(loop *f, long n, const void *x, const void *y, const void *z, int runs)
{
    double least = 1e30;
    for (int r = 0; r < runs; r++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int k = 0; k < 8; k++) f(n, x, y, z);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double t = (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec);
        if (t < least) least = t;
    }
    return least / 8 / n;
}
"""


def kernels() -> dict[str, tuple[int, int]]:
    """name_f32 or name_f64 of each float or double loop of the probe: its line, its number of arguments."""
    found = {}
    for number, line in enumerate(PROBE.read_text().splitlines(), 1):
        if m := re.fullmatch(r"([FD])([12])\((\w+)\)", line):
            found[m[3] + {"F": "_f32", "D": "_f64"}[m[1]]] = number, int(m[2])
    return found


def libm_loop(loop: str, arity: int) -> str:
    name, width = loop.rsplit("_", 1)
    call, (kind, suffix) = LIBM.get(name, name), {"f32": ("float", "f"), "f64": ("double", "")}[width]
    args = "x[i], z[i]" if arity == 2 else "x[i]"
    second = f"const {kind} *z, " if arity == 2 else ""
    body = f"for (long i = 0; i < n; i++) y[i] = {call}{suffix}({args});"
    return f"void {loop}(long n, const {kind} *x, {second}{kind} *y) {{ {body} }}" if call else ""


def compiled(folder: Path) -> tuple[ctypes.CDLL, ctypes.CDLL, str]:
    """The kernels, the scalar libm loops with the stopwatch, and gcc's report on the kernels."""
    cc = shutil.which("gcc") or sys.exit("math_kernels.py needs gcc")
    flags = os.environ.get("CFLAGS", FLAGS).split()
    shared = ["-shared", "-fPIC", "-lm", "-o"]
    report = subprocess.run(
        [cc, *flags, "-fopt-info-vec-optimized", PROBE, *shared, folder / "lc.so"],
        capture_output=True,
        text=True,
    )
    if report.returncode:
        sys.exit(report.stderr)
    (folder / "libm.c").write_text(DRIVER + "\n".join(libm_loop(loop, n) for loop, (_, n) in kernels().items()))
    subprocess.run(
        [cc, "-O2", "-fno-math-errno", "-fno-tree-vectorize", folder / "libm.c", *shared, folder / "libm.so"],
        check=True,
    )
    return ctypes.CDLL(folder / "lc.so"), ctypes.CDLL(folder / "libm.so"), report.stderr


def main(chosen: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours, libm, report = compiled(Path(folder))
    libm.best.restype = ctypes.c_double
    vectorised = {int(n) for n in re.findall(r"\.c:(\d+):\d+: optimized: .*loop vectorized", report)}
    rng = np.random.default_rng(0)

    def nanoseconds(library, loop, arity) -> float:
        if not hasattr(library, loop):
            return np.nan
        dtype = np.float32 if loop.endswith("32") else np.float64
        low, high = DOMAIN.get(loop.rsplit("_", 1)[0], (-5, 5))
        arrays = [rng.uniform(low, high, N).astype(dtype) for _ in range(arity)] + [np.empty(N, dtype)] * (3 - arity)
        return libm.best(
            getattr(library, loop), ctypes.c_long(N), *(ctypes.c_void_p(a.ctypes.data) for a in arrays), RUNS
        )

    print(
        f"{'ns/element':12}{'float':>8}{'libm':>8}{'ratio':>7}{'vec':>5}{'double':>10}{'libm':>8}{'ratio':>7}{'vec':>5}"
    )
    for name in dict.fromkeys(loop.rsplit("_", 1)[0] for loop in kernels()):
        if chosen and name not in chosen:
            continue
        row = f"{name:12}"
        for loop in (f"{name}_f32", f"{name}_f64"):
            line, arity = kernels()[loop]
            a, b = nanoseconds(ours, loop, arity), nanoseconds(libm, loop, arity)
            compare = f"{b:8.2f}{b / a:7.1f}" if b == b else f"{'':15}"
            row += f"{a:{8 if loop.endswith('32') else 10}.2f}{compare}{'yes' if line in vectorised else '-':>5}"
        print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
