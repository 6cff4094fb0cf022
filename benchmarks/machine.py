"""The machine a run is made on."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

import numpy as np
from settings import ROOT, THREADS


def describe() -> dict:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "cores used": len(os.sched_getaffinity(0)),
        "threads": THREADS,
        "caches": _caches(),
        "memory GB": round(memory / 1e9),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": _commit(),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def _cpu() -> str:
    fields = [line.split(":", 1) for line in _text("/proc/cpuinfo").splitlines() if ":" in line]
    facts = {key.strip(): value.strip() for key, value in reversed(fields)}
    if "model name" not in facts:
        return platform.processor() or platform.machine()
    widest = next((f for f in ("avx512f", "avx2", "asimd") if f in facts.get("flags", "")), "")
    return f"{facts['model name']} (family {facts.get('cpu family')}, model {facts.get('model')}, {widest})"


def _caches() -> str:
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if _text(index / "type").strip() != "Instruction":
            found["L" + _text(index / "level").strip()] = _text(index / "size").strip()
    return ", ".join(f"{level} {size}" for level, size in found.items())


def _commit() -> str:
    def git(*command):
        done = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changes = git("status", "--porcelain", "-uno")
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changes else "")


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
