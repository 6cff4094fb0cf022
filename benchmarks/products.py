"""Matrix products beside NumPy's (OpenBLAS), one thread, in one run: `python benchmarks/products.py [f32|f64]`.
`make bench-ways` runs it, too.

Rates are billions of floating-point operations a second, each from the fastest of many calls. The routine itself is
timed, as a call from Python costs more than a small product.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.pop("OPENBLAS_CORETYPE", None)  # NumPy's library finds out itself what CPU this is, as ours does:
os.environ.pop("OPENBLAS_L2_SIZE", None)  # told an older one, it runs at half its speed

import numpy as np
import tables
from report import geometric_mean

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
KINDS = {"f32": np.float32, "f64": np.float64}
LAYOUTS = ("nn", "nt", "tn", "tt")  # of both operands; t: by columns
SMALL = 32  # sizes up to which a product is small
TITLE = "Matrix products beside NumPy's"
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


def fastest(run: Callable[[int], None], flops: float, seconds: float) -> float:
    """Seconds of one of many runs, in so many seconds; `run(n)` does n."""
    times = max(1, int(1e-3 * 5e10 / (flops + 5e4)))
    found = []
    start = time.perf_counter()
    while len(found) < 7 or (time.perf_counter() - start < seconds and len(found) < 200):
        begun = time.perf_counter()
        run(times)
        found.append((time.perf_counter() - begun) / times)
    return min(found)


def rates(
    lib: ctypes.CDLL, real: Any, layout: str, size: tuple[int, int, int], threads: int = 1, seconds: float = 0.25
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
    ours = fastest(lambda times: call(*given, ctypes.c_int64(times)), flops, seconds)
    assert abs(y - want).max() < 1e-4 * k**0.5, (layout, size)
    return flops / ours / 1e9, flops / fastest(numpy, flops, seconds) / 1e9


def measure(kinds: list[str], seconds: float) -> dict[str, Any]:
    """Billions of operations a second: {type: [[rows, depth, columns], {layout: [ours, NumPy's]}]}."""
    lib, found = library(), {}
    for kind in kinds:
        rows = found.setdefault(np.dtype(KINDS[kind]).name, [])
        for size in SIZES:
            print(f"products, {kind}: {_text(size)}", file=sys.stderr, flush=True)
            layouts = {layout: rates(lib, KINDS[kind], layout, size, seconds=seconds) for layout in LAYOUTS}
            rows.append([size, layouts])
    return {"blas": blas(), "rates": found}


def blas() -> str:
    """NumPy's library and, where it says so, the processor whose kernels it runs."""
    name = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    for path in Path(np.__file__).parents[1].glob("numpy.libs/libscipy_openblas64_*"):
        core = ctypes.CDLL(str(path)).scipy_openblas_get_corename64_
        core.restype = ctypes.c_char_p
        return f"{name} with kernels for {core().decode()}"
    return str(name)


def block(run: dict[str, Any]) -> tables.Block:
    lines = [f"Billions of operations a second on one thread, the fastest of many: ours (NumPy's, {run['blas']})."]
    rows = []
    for kind, found in run["rates"].items():
        shares: dict[str, dict[str, float]] = {f"up to {SMALL}": {}, "larger": {}}
        for size, layouts in found:
            ratios = {f"{_text(size)} {layout}": ours / blas for layout, (ours, blas) in layouts.items()}
            shares["larger" if max(size) > SMALL else f"up to {SMALL}"] |= ratios
            cells = [f"{ours:.1f} ({blas:.1f})" for ours, blas in layouts.values()]
            rows.append([kind, _text(size), *cells, f"{min(ratios.values()):.2f}"])
        lines += [f"{kind}, {sizes}: {_summary(ratios)}." for sizes, ratios in shares.items()]
    return tables.Block(TITLE, lines, ["type", "rows x depth x columns", *LAYOUTS, "least ratio"], rows)


def _summary(ratios: dict[str, float]) -> str:
    worst = min(ratios, key=ratios.__getitem__)
    behind = sum(ratio < 0.9 for ratio in ratios.values())
    mean = geometric_mean(ratios)
    return f"geometric mean {mean:.2f}, worst {worst}, {ratios[worst]:.2f}; below 0.9 in {behind} of {len(ratios)}"


def _text(size: Sequence[int]) -> str:
    return " x ".join(map(str, size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], help="default: both")
    parser.add_argument("--seconds", type=float, default=0.25, help="of each product of each")
    parser.add_argument("--json", type=Path, help="where to write the run")
    options = parser.parse_args()
    run = measure(options.kinds or list(KINDS), options.seconds)
    print(tables.text([block(run)]))
    if options.json:
        options.json.write_text(json.dumps(run))


if __name__ == "__main__":
    main()
