"""STREAM's triad, a = b + s c, in C with OpenMP through ctypes (NumPy on one core without a compiler)."""

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from settings import THREADS

SOURCE = """
void triad(long n, float *restrict a, const float *restrict b, const float *restrict c, float s) {
    #pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}
"""
FLAGS = ("-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp", "-shared", "-fPIC")
LARGE = 1 << 26  # elements: 256 MB an array, beyond the caches


def _build():
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as directory:
        source, library = Path(directory, "triad.c"), Path(directory, "triad.so")
        source.write_text(SOURCE)
        if subprocess.run([compiler, *FLAGS, str(source), "-o", str(library)], check=False).returncode:
            return None
        return ctypes.CDLL(str(library)).triad  # the mapping outlives the file


class Triad:
    """One triad call over arrays of n floats; `nbytes` is what it moves by STREAM's counting: 3 arrays."""

    kernel = None

    def __init__(self, n: int):
        self.nbytes = 12 * n
        self.arrays = [np.full(n, value, np.float32) for value in (0, 1, 2)]
        self.arguments = (
            ctypes.c_long(n),
            *(ctypes.c_void_p(a.ctypes.data) for a in self.arrays),
            ctypes.c_float(3),
        )

    def __call__(self):
        if Triad.kernel:
            Triad.kernel(*self.arguments)
        else:
            np.add(self.arrays[1], self.arrays[2], out=self.arrays[0])

    @staticmethod
    def facts() -> dict:
        """Builds the kernel and measures it once beyond the caches."""
        Triad.kernel = _build()
        triad, seconds = Triad(LARGE), []
        for _ in range(8):
            begin = time.perf_counter()
            triad()
            seconds.append(time.perf_counter() - begin)
        return {
            "how": f"C, OpenMP, {THREADS} threads" if Triad.kernel else "NumPy add, 1 thread",
            "GB/s beyond the caches": triad.nbytes / float(np.median(seconds[1:])) / 1e9,
            "MB an array beyond the caches": 4 * LARGE / 1e6,
        }
