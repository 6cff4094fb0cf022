"""A folder where units are compiled while others are still being made, and linked when all are there.

with Workshop(compiler) as shop:
    shop.make({"a.c": text}, [Unit("a.c")])      compilation starts
    ...
    shop.link([Unit("a.c"), ...], place)         waits for it
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from layerc.build.compiler import Compiler, Unit
from layerc.build.jobs import Jobs
from layerc.build.objects import Objects


class Workshop:
    """Objects come from earlier builds where they are the same. Afterwards the folder is gone and nothing runs."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        # What a debugger is told names the folder: such an object is of this build only.
        self._objects = None if compiler.tells_lines else Objects(compiler)
        self._jobs = Jobs()
        self._folder = tempfile.TemporaryDirectory(prefix="layerc-", ignore_cleanup_errors=True)
        self._sizes: dict[str, int] = {}
        self._begun: set[Unit] = set()

    def __enter__(self) -> "Workshop":
        return self

    def __exit__(self, *why: object) -> None:
        try:
            self._jobs.__exit__(*why)
        finally:
            self._folder.cleanup()
            if self._objects is not None:
                self._objects.forget()

    def make(self, files: Mapping[str, str], units: Sequence[Unit]) -> None:
        """Start to compile those of the units that have not begun. files: the C files and headers that they read; one
        that is there stays as it is."""
        for name, text in files.items():
            if name not in self._sizes:
                self._sizes[name] = len(text)
                self._path(name).write_text(text, encoding="utf-8")
        for unit in units:
            if unit not in self._begun:
                self._begun.add(unit)
                self._jobs.start(partial(self._compile, unit), self._sizes[unit.source])

    def _compile(self, unit: Unit) -> None:
        command = self.compiler.compile(unit)
        if self._objects is None:
            return self._jobs.run(command, self._path())
        key = self._objects.key(command, self._path(unit.source).read_text(encoding="utf-8"))
        if not self._objects.take(key, self._path(unit.object)):
            self._jobs.run(command, self._path())
            self._objects.keep(key, self._path(unit.object), self._path(unit.rules))

    def link(self, units: Sequence[Unit], place: Path) -> None:
        """The library of these units, in their order, once they are compiled. CompilerFailed if one is not."""
        self._jobs.wait()
        self._jobs.run(self.compiler.link([unit.object for unit in units], place.name), self._path())
        shutil.move(self._path(place.name), place)

    def _path(self, name: str = "") -> Path:
        return Path(self._folder.name, name)
