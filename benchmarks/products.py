"""Matrix products beside NumPy's (OpenBLAS), one thread, in one run: `python benchmarks/products.py [f32|f64]`.

Rates are billions of floating-point operations a second, each from the fastest of many calls. The routine itself is
timed, as a call from Python costs more than a small product.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from layerc.build.compiler import Unit, find
from layerc.transpile import emit

SIZES = [  # rows, depth, columns
    *((n, n, n) for n in (4, 8, 16, 24, 32, 48, 64, 65, 96, 128, 127, 256, 512, 511, 1024)),
    (512, 64, 128),
    (64, 512, 512),
    (4096, 64, 64),
    (64, 4096, 64),
    (1000, 100, 10),
    (8, 512, 512),
    (1, 512, 512),
]
CALL = """
void call_{t}(int64_t m, int64_t n, int64_t k, const {c} *a, int64_t ai, int64_t ak, const {c} *b, int64_t bk,
              int64_t bj, {c} *y, int64_t yi, int64_t yj, int64_t threads, int64_t times)
{{
    while (times-- > 0) {{
        const int64_t room = lc_product_room_{t}(m, n, k, ai, bj, yi, yj, threads);
        void *panels = aligned_alloc(64, (size_t)(room + 63 + !room) & ~(size_t)63);
        lc_product_{t}(m, n, k, a, ai, ak, b, bk, bj, y, yi, yj, 0, panels, threads);
        free(panels);
    }}
}}
"""


def library() -> ctypes.CDLL:
    """gemm.h as a package has it, compiled as a package is."""
    calls = [CALL.format(t=t, c=c) for t, c in (("f32", "float"), ("f64", "double"))]
    folder = Path(tempfile.mkdtemp(prefix="products-"))
    folder.joinpath("products.c").write_text("\n".join([emit.c_file([]), *emit.templates("\n".join(calls)), *calls]))
    find().build([Unit("products.c")], "products.so", folder)
    return ctypes.CDLL(str(folder / "products.so"))


def fastest(run: Callable[[int], None], flops: float) -> float:
    """Seconds of one of many runs; `run(n)` does n."""
    times = max(1, int(1e-3 * 5e10 / (flops + 5e4)))
    found = []
    start = time.perf_counter()
    while len(found) < 7 or (time.perf_counter() - start < 0.25 and len(found) < 200):
        begun = time.perf_counter()
        run(times)
        found.append((time.perf_counter() - begun) / times)
    return min(found)


def rates(
    lib: ctypes.CDLL, real: Any, layout: str, size: tuple[int, int, int], threads: int = 1
) -> tuple[float, float]:
    """Ours and NumPy's."""
    m, k, n = size
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k) if layout[0] == "n" else (k, m)).astype(real)
    b = rng.standard_normal((k, n) if layout[1] == "n" else (n, k)).astype(real)
    a, b, y = a if layout[0] == "n" else a.T, b if layout[1] == "n" else b.T, np.empty((m, n), real)
    call = lib.call_f32 if real is np.float32 else lib.call_f64

    def operand(x: np.ndarray) -> list[Any]:
        return [ctypes.c_void_p(x.ctypes.data), *(ctypes.c_int64(s // x.itemsize) for s in x.strides)]

    given = [*map(ctypes.c_int64, (m, n, k)), *operand(a), *operand(b), *operand(y), ctypes.c_int64(threads)]

    def numpy(times: int) -> None:
        for _ in range(times):
            np.matmul(a, b, out=y)

    flops = 2.0 * m * n * k
    want = a.astype(float) @ b
    ours = fastest(lambda times: call(*given, ctypes.c_int64(times)), flops)
    assert abs(y - want).max() < 1e-4 * k**0.5, (layout, size)
    return flops / ours / 1e9, flops / fastest(numpy, flops) / 1e9


def main() -> None:
    lib = library()
    for real in (np.float32, np.float64):
        if len(sys.argv) > 1 and sys.argv[1] != f"f{np.dtype(real).itemsize * 8}":
            continue
        print(f"{np.dtype(real).name}, one thread, GF/s: ours (NumPy)")
        print(f"{'rows x depth x columns':>24}" + "".join(f"{layout:>18}" for layout in ("nn", "nt", "tn", "tt")))
        for size in SIZES:
            found = [rates(lib, real, layout, size) for layout in ("nn", "nt", "tn", "tt")]
            row = "".join(f"{f'{ours:.1f} ({blas:.1f})':>18}" for ours, blas in found)
            print(f"{' x '.join(map(str, size)):>24}{row}", flush=True)


if __name__ == "__main__":
    main()
