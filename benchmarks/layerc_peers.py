"""layerc as a peer: as users have it, in the ways that ways.py lays side by side, and the stand-in for it."""

import importlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
from case import Bound, Case
from peer import Peer, require
from settings import ROOT, THREADS

BUILT = "LAYERC_BENCH_BUILT"  # the folder in which the ways of a run have their packages, each built once


class Layerc(Peer):
    """The package `layerc build` makes, built afresh for the run in a directory of its own."""

    title = "layerc"
    flags: tuple[str, ...] = ()  # of `layerc build`

    def variants(self, case):
        return ("layerc",)

    def start(self):
        require("layerc")
        self.packages: dict[str, object] = {}
        self.facts: dict = {"build seconds": {}}
        return self.facts

    def package(self, source: str):
        if isinstance(self.packages.get(source), Exception):
            raise self.packages[source]
        if source not in self.packages:
            with self.folder() as directory:  # a library stays mapped when its folder goes
                self.packages[source] = self._built(source, Path(directory))
        return self.packages[source]

    def folder(self) -> AbstractContextManager[str]:
        """Where packages are built."""
        return tempfile.TemporaryDirectory(prefix="layerc_bench_")

    def _built(self, source: str, directory: Path):
        name = Path(source).stem + "_compiled"
        begin = time.perf_counter()
        command = [*_layerc_command(), "build", *self.flags, str(ROOT / source), "-o", str(directory / name)]
        build = subprocess.run(command, capture_output=True, text=True, check=False)
        if build.returncode:
            said = f"{build.stdout}{build.stderr}"
            why = f"{said}\nlayerc build {source}: exit {build.returncode}"
            self.packages[source] = RuntimeError(why)
            raise self.packages[source]
        self.facts["build seconds"][source] = time.perf_counter() - begin
        sys.path.insert(0, str(directory))
        return importlib.import_module(name)

    def ready(self, case):
        self.package(case.source)  # the build is a figure of its own

    def bind(self, case, variant):
        return case.layerc(self.package(case.source), case.draw())

    def bind_exact(self, case: Case) -> Bound:
        """The same in float64."""
        draw = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in case.draw().items()}
        return case.layerc(self.package(case.source), draw)


def _layerc_command() -> list[str]:
    script = Path(sysconfig.get_path("scripts")) / "layerc"
    return [str(script)] if script.exists() else [sys.executable, "-m", "layerc"]


class StandIn(Layerc):
    """NumPy under the compiled package's API: tries the harness where there is no compiler. Not a result."""

    title = "NumPy stand-in"

    def start(self):
        return {"numpy": np.__version__}

    def package(self, source):
        return importlib.import_module("stand_in")


class Native(Layerc):
    """What ways.py measures the other ways by: the library for all shapes, compiled for this CPU, all threads."""

    title = f"{THREADS} threads"

    def folder(self):
        directory = Path(os.environ[BUILT], *self.flags)
        directory.mkdir(exist_ok=True)
        return nullcontext(str(directory))


class Again(Native):
    """The very same in another process: how far apart two that do not differ are. Where a process has its pages makes
    the large cases faster or slower as long as it lives, which no number of rounds takes out."""

    title = f"{THREADS} threads again"


class OneThread(Native):
    title = "1 thread"

    def start(self):
        facts = super().start()
        importlib.import_module("layerc").set_num_threads(1)
        return facts


class Portable(Native):
    """One library for every CPU, its instruction set chosen when it is loaded."""

    title = "portable"
    flags = ("--portable",)


class Specialised(Native):
    """A kernel for the very shapes of the case. Classes of layers cannot be had so: functions only."""

    title = "specialised"

    def bind(self, case, variant):
        return case.layerc(_ForShapes(self.package(case.source), case), case.draw())


class _ForShapes:
    """A package whose layers are made for the shapes of a case when they are first asked for."""

    def __init__(self, package, case: Case):
        self.package, self.shapes = package, {name: a.shape for name, a in case.arguments.items()}

    def __getattr__(self, name: str):
        layer = getattr(self.package, name)
        if not hasattr(layer, "specialize"):
            raise TypeError(f"{name}: class layers have no specialize")
        layer.specialize(**self.shapes)
        return layer
