"""`make bench-compile`: what a build costs, and the import of what it made.

    python benchmarks/compile_times.py [--rounds 5] [--file examples/layers.py]

Everything in processes of its own. Cold: neither the package nor anything in the cache is there. Unchanged: the same
again. One layer edited: a small one at the end of the file computes something else; the cache is that of the builds
before. Import: the package over NumPy alone, one after the other. What peers take for their first call is in
`make bench`. Writes benchmarks/results/compile.json, .md and .txt.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import tables
from settings import RESULTS, ROOT


def seconds(*command: str, folder: Path) -> float:
    """Of a process, which has a cache in the folder; CalledProcessError if it fails."""
    environment = {**os.environ, "LAYERC_CACHE": str(folder / "cache")}
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
    return time.perf_counter() - begin


def measure(path: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds by what was done, in each round."""
    found: dict[str, list[float]] = {"cold": [], "unchanged": [], "one layer edited": [], "gradients only": []}
    imports: dict[str, list[float]] = {"python alone": [], "numpy": [], "numpy and the package": []}
    with tempfile.TemporaryDirectory(prefix="layerc-compile-") as name:
        folder = Path(name)
        source, package = folder / path.name, folder / f"{path.stem}_compiled"
        layerc = (sys.executable, "-m", "layerc")
        for k in range(rounds):
            print(f"round {k + 1} of {rounds}", file=sys.stderr, flush=True)
            shutil.copy(path, source)
            for old in (package, folder / "cache"):
                shutil.rmtree(old, ignore_errors=True)
            found["cold"].append(seconds(*layerc, "build", source.name, folder=folder))
            found["unchanged"].append(seconds(*layerc, "build", source.name, folder=folder))
            for factor in (2.5, 3.5):
                source.write_text(f"{path.read_text()}\n\n@layer\ndef added(x: real['N']):\n    return x * {factor}\n")
                edited = seconds(*layerc, "build", source.name, folder=folder)
            found["one layer edited"].append(edited)
            found["gradients only"].append(seconds(*layerc, "grad", source.name, folder=folder))
        for _ in range(4 * rounds):
            for what, text in zip(imports, ("pass", "import numpy", f"import numpy, {package.name}"), strict=True):
                imports[what].append(seconds(sys.executable, "-c", text, folder=folder))
    return {"build": found, "import": imports}


def blocks(run: dict) -> list[tables.Block]:
    median = {what: statistics.median(times) for times in run["seconds"].values() for what, times in times.items()}
    over = [
        after - before
        for before, after in zip(
            run["seconds"]["import"]["numpy"], run["seconds"]["import"]["numpy and the package"], strict=True
        )
    ]
    rows = [[f"`layerc build`, {what}", f"{median[what]:.2f} s"] for what in ("cold", "unchanged", "one layer edited")]
    rows += [["`layerc grad`", f"{median['gradients only']:.2f} s"]]
    rows += [[f"import: {what}", f"{1e3 * median[what]:.0f} ms"] for what in run["seconds"]["import"]]
    rows += [["import of the package over NumPy", f"{1e3 * statistics.median(over):.0f} ms"]]
    lines = [f"{run['file']}: {run['layers']} layers, medians of {run['rounds']} builds, processes of their own."]
    return [tables.Block("Build and import", lines, ["what", "takes"], rows)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file", type=Path, default=ROOT / "examples" / "layers.py")
    options = parser.parse_args()
    path = options.file.resolve()
    text = path.read_text()
    run = {
        "machine": machine.describe(),
        "file": str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name,
        "layers": text.count("\n@layer") + text.count("(Layer):"),
        "rounds": options.rounds,
        "seconds": measure(path, options.rounds),
    }
    print(tables.text(blocks(run)))
    tables.write(blocks(run), run, RESULTS, "compile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
