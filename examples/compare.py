"""Run training jobs and their PyTorch twins, and print how good and how fast they are.

    python examples/compare.py [NAME ...] [--epochs N] [--threads N]

Each runs alone, in a process of its own. The twins need torch: pip install 'layerc[oracles]'.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = tuple(sorted(p.name.removesuffix("_torch.py") for p in (HERE / "twins").glob("*_torch.py")))


def one(name: str, epochs: int | None) -> None:
    """In the child: run it, and print the result as the last line."""
    sys.path.append(str(HERE / "twins"))
    keywords = {} if epochs is None else {"epochs": epochs}
    if name.endswith("_torch"):
        result = importlib.import_module(name).run(**keywords)
    else:
        result = importlib.import_module(name).run(picture=False, **keywords)
    print(json.dumps(asdict(result)))


def measured(name: str, epochs: int | None, threads: int) -> dict:
    command = [sys.executable, str(HERE / "compare.py"), "--one", name]
    command += [] if epochs is None else ["--epochs", str(epochs)]
    environment = {**os.environ, "LAYERC_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--epochs", type=int, help="instead of each job's own number")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.epochs)
        return 0
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no job {', '.join(sorted(unknown))}; there is {', '.join(NAMES)}")
    print(f"{given.threads} threads; seconds of training alone, and of work on all cores\n")
    print("| job | measure | layerc | torch | layerc s | torch s | faster by | layerc work | torch work | less by |")
    print("|---" * 10 + "|")
    for name in given.names or NAMES:
        ours, torch = (measured(n, given.epochs, given.threads) for n in (name, f"{name}_torch"))
        row = [name, ours["measure"], f"{ours['value']:.4g}", f"{torch['value']:.4g}"]
        for key in ("seconds", "work"):
            row += [f"{ours[key]:.1f}", f"{torch[key]:.1f}", f"{torch[key] / ours[key]:.2f}"]
        print("| " + " | ".join(row) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
