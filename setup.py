"""What pyproject.toml cannot say: the sub-packages of a mapped layout, the C of the call path, and the compiled
built-in layers.

Every file of runtime/layers/ is a layer file. The step `build_layers` compiles each with the compiler of this
very checkout into the package layerc.runtime.<stem>_compiled: inside the wheel, or, for an editable install,
beside the sources. `python setup.py build_layers --inplace` repeats the latter alone.
"""

import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module, util
from pathlib import Path

import numpy
from setuptools import Command, Extension, setup
from setuptools.command.build import build

ROOT = Path(__file__).resolve().parent
FOLDERS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]


def packages() -> list[str]:
    """The mapped packages and those inside them; `*_compiled` is output, never input."""
    found = set(FOLDERS)
    for package, folder in FOLDERS.items():
        for inner in (ROOT / folder).rglob("*/__init__.py"):
            parts = inner.parent.relative_to(ROOT / folder).parts
            if not any(part.endswith("_compiled") for part in parts):
                found.add(".".join((package, *parts)))
    return sorted(found)


def source_driver():
    """`layerc.build.driver` of this checkout, or None while there is none.

    Nothing is installed yet, so `layerc.build` is not below `layerc/`. But the folders have the names of the
    sub-packages: adding the checkout to the package's search path is all it takes.
    """
    sys.path.insert(0, str(ROOT))
    package = import_module("layerc")
    if str(ROOT) not in package.__path__:
        package.__path__.append(str(ROOT))
    if util.find_spec("layerc.build.driver") is None:
        return None
    return import_module("layerc.build.driver")


class build_layers(Command):
    """Compile the built-in layers (a sub-command of `build`, after setuptools' SubCommand protocol)."""

    description = "compile the layer files of runtime/layers"
    user_options = [("inplace", "i", "write beside the sources"), ("build-lib=", "b", "folder to build into")]
    boolean_options = ["inplace"]
    editable_mode = False

    def initialize_options(self):
        self.build_lib = None
        self.inplace = False

    def finalize_options(self):
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def layer_files(self):
        return sorted(p for p in (ROOT / "runtime/layers").glob("*.py") if not p.name.startswith("_"))

    def output(self, source):
        beside = self.inplace or self.editable_mode
        return (ROOT / "runtime" if beside else Path(self.build_lib) / "layerc/runtime") / f"{source.stem}_compiled"

    def run(self):
        sources = self.layer_files()
        driver = source_driver() if sources else None
        if driver is None:
            self.announce("build_layers: no layer files or no compiler yet: nothing to compile", level=3)
            return
        # In place it serves this machine; a wheel serves all..
        portable = not (self.inplace or self.editable_mode)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            started = {}
            for source in sources:
                self.announce(f"build_layers: {source.relative_to(ROOT)} -> {self.output(source)}", level=3)
                started[source] = pool.submit(driver.build, source, self.output(source), portable=portable, keep=False)
            for one in started.values():
                one.result()

    def get_source_files(self):
        return [str(p.relative_to(ROOT)) for p in self.layer_files()]

    def get_outputs(self):
        folders = [self.output(source) for source in self.layer_files()]
        return [str(p) for folder in folders for p in sorted(folder.rglob("*")) if p.is_file()]

    def get_output_mapping(self):
        return {}


class Build(build):
    sub_commands = [*build.sub_commands, ("build_layers", None)]


setup(
    packages=packages(),
    ext_modules=[
        Extension(
            "layerc.runtime._quick",
            ["runtime/quick.c", "runtime/kept.c"],
            [numpy.get_include()],
            depends=["runtime/kept.h"],
            py_limited_api=True,
        ),
    ],
    cmdclass={"build": Build, "build_layers": build_layers},
)
