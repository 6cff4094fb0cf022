"""Finds a C compiler, learns which flags it takes, and links C files into one Python extension.

The environment's CC is authoritative: where it is set, nothing else is tried. Otherwise `cc`, `gcc`,
`clang`, in this order; the first that works is taken. Flags in LAYERC_CFLAGS come after ours: "-g -O0" to look at a
kernel with a debugger.

Never -ffast-math: at a `-shared` link gcc makes it set flush-to-zero for the whole process, and it breaks
NaN.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from layerc.build.jobs import CompilerFailed, Jobs

BASE_FLAGS = ("-std=gnu11", "-O2", "-fPIC")
# Each makes the code faster and is dropped where the compiler does not know it; the results stay the same. Those of the
# second line are what -O3 has that our loops gain by: all of it would take gcc a quarter longer, for the same speed.
OPTIONAL_FLAGS = (
    *("-fno-math-errno", "-fno-trapping-math", "-mprefer-vector-width=512", "-fopenmp"),
    *("-fvect-cost-model=dynamic", "-fpredictive-commoning", "-ftree-partial-pre", "-fgcse-after-reload"),
    # gcc tunes for some processors by leaving a lone chain of sums without fused products, so that the bits of a sum
    # would hang on what stands beside it in a loop.
    "--param=avoid-fma-max-bits=0",
    "-fira-region=all",  # else what an inner loop sums up may live on the stack, for the sake of what is outside it
)
# For this very CPU: the first that is taken. On x86 -mcpu is an old name of -mtune, elsewhere it says it all.
NATIVE_FLAGS = ("-march=native",) if platform.machine() in ("x86_64", "AMD64") else ("-mcpu=native", "-march=native")
WRAPPER_FLAGS = ("-std=gnu11", "-O1", "-fPIC")  # for code that has to run on any CPU
LINK_FLAGS = ("-shared", "-Wl,-Bsymbolic", "-Wl,--build-id=none")
DARWIN_LINK_FLAGS = ("-shared", "-undefined", "dynamic_lookup")
_LINES = ("-g", "-fsanitize", "--coverage", "-ftest-coverage", "-fprofile")


class NoCompiler(Exception):
    """No working C compiler; the message names what was tried and the command that installs one."""


class NoPythonHeader(NoCompiler):
    """There is a C compiler, but not the Python.h that an extension includes."""


@dataclass(frozen=True)
class Unit:
    """One translation unit: the file's name in the build directory, and flags besides the compiler's.

    `anywhere`: the code has to run on any CPU, so that it can tell what the CPU lacks.
    """

    source: str
    flags: tuple[str, ...] = ()
    anywhere: bool = False
    python: bool = True  # and then includes Python.h

    @property
    def object(self) -> str:
        return f"{Path(self.source).stem}.o"

    @property
    def rules(self) -> str:
        """The file with what it was made of, as make reads it."""
        return f"{Path(self.source).stem}.d"


@dataclass(frozen=True)
class Compiler:
    """A working compiler: its command, the flags it takes, and what it says of its target."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    native: tuple[str, ...]
    version: str
    macros: str  # all predefined macros under these flags: they tell version and CPU apart

    def has_macro(self, name: str) -> bool:
        return f"#define {name} " in self.macros

    @property
    def openmp(self) -> bool:
        return self.has_macro("_OPENMP")

    def without_openmp(self) -> "Compiler":
        return probe(self.command, tuple(f for f in self.flags if f != "-fopenmp"), bool(self.native))

    def build(self, units: Sequence[Unit], output: str, directory: Path) -> None:
        """Compile the units in `directory`, side by side, and link them into `output`. Raises CompilerFailed."""
        with Jobs() as jobs:
            for unit in units:
                jobs.start(partial(jobs.run, self.compile(unit), directory))
            jobs.wait()
            jobs.run(self.link([unit.object for unit in units], output), directory)

    def compile(self, unit: Unit) -> list[str]:
        """The command that makes an object of a unit, and tells in a file beside it what headers it is made of. File
        names are relative, so that no path of a temporary directory gets into a library.
        """
        flags = WRAPPER_FLAGS if unit.anywhere else (*self.flags, *self.native)
        include = ("-I" + python_include(),) if unit.anywhere and unit.python else ()
        told = ("-MD", "-MF", unit.rules)
        return [*self.command, *flags, *unit.flags, "-I.", *include, *told, "-c", unit.source, "-o", unit.object]

    def link(self, objects: Sequence[str], output: str) -> list[str]:
        """The command that makes a library of objects."""
        flags = DARWIN_LINK_FLAGS if sys.platform == "darwin" else LINK_FLAGS
        openmp = ("-fopenmp",) if "-fopenmp" in self.flags else ()
        return [*self.command, *flags, *openmp, *objects, "-o", output, "-lm"]

    @property
    def tells_lines(self) -> bool:
        """Whether objects hold the lines of their source: for a debugger, a sanitizer, a profile."""
        return any(word.startswith(_LINES) for word in (*self.command, *self.flags))


def find(portable: bool = False) -> Compiler:
    """The compiler to use, with code for this very CPU or, if `portable`, for any. Raises NoCompiler."""
    found = _find(os.environ.get("CC", ""), os.environ.get("PATH", ""), portable)
    more = os.environ.get("LAYERC_CFLAGS", "")
    return _with_flags(found, more) if more.strip() else found


def _with_flags(compiler: Compiler, text: str) -> Compiler:
    """With the user's own flags behind ours. NoCompiler where it does not take them."""
    try:
        flags = (*compiler.flags, *shlex.split(text))
        return replace(compiler, flags=flags, macros=_macros(compiler.command, [*flags, *compiler.native]))
    except (ValueError, CompilerFailed) as error:  # ValueError: a quote without its other half
        reason = _first_line(error.output) if isinstance(error, CompilerFailed) else error
        raise NoCompiler(f"{shlex.join(compiler.command)} does not take LAYERC_CFLAGS={text!r}: {reason}") from None


@cache
def _find(cc: str, path: str, portable: bool) -> Compiler:
    tried = []
    for command in [tuple(shlex.split(cc))] if cc.strip() else [("cc",), ("gcc",), ("clang",)]:
        if shutil.which(command[0], path=path) is None:
            tried.append(f"{shlex.join(command)} (not found)")
            continue
        try:
            return _working(command, native=not portable)
        except CompilerFailed as failed:
            tried.append(f"{shlex.join(command)} ({_first_line(failed.output)})")
    origin = " (named by the environment variable CC)" if cc.strip() else ""
    advice = f"to install one: {_how_to_install('compiler')}"
    raise NoCompiler(f"no working C compiler{origin}: tried {', '.join(tried)}\n{advice}")


def _working(command: tuple[str, ...], native: bool) -> Compiler:
    """The compiler with the most flags that work. CompilerFailed, or NoPythonHeader."""
    compiler = probe(command, BASE_FLAGS + OPTIONAL_FLAGS, native)
    trouble = _trouble(compiler)
    if trouble and compiler.openmp:
        compiler = compiler.without_openmp()
        trouble = _trouble(compiler)
    if trouble:
        raise CompilerFailed(command, trouble)
    python_include()  # last: without a compiler the header is the lesser trouble
    return compiler


def probe(command: tuple[str, ...], flags: Sequence[str], native: bool) -> Compiler:
    """Drop the optional flags that the compiler refuses. CompilerFailed where it refuses the others."""
    base = [f for f in flags if f not in OPTIONAL_FLAGS]
    _macros(command, base)
    wanted = [f for f in flags if f in OPTIONAL_FLAGS]
    kept = tuple(base) + tuple(wanted if _takes(command, wanted) else [f for f in wanted if _takes(command, [f])])
    best = next(((f,) for f in NATIVE_FLAGS if _takes(command, [f])), ()) if native else ()
    macros = _macros(command, [*kept, *best])
    version = _first_line(_output([*command, "--version"]))
    return Compiler(command, kept, best, version, macros)


def _takes(command: tuple[str, ...], flags: Sequence[str]) -> bool:
    try:
        _macros(command, ["-Werror", *flags])  # clang only warns of flags it does not know
    except CompilerFailed:
        return False
    return True


def _macros(command: tuple[str, ...], flags: Sequence[str]) -> str:
    return _output([*command, *flags, "-dM", "-E", "-x", "c", os.devnull])


def _trouble(compiler: Compiler) -> str:
    """Why the compiler cannot make a library, or "". Some take -fopenmp and have no library for it."""
    with tempfile.TemporaryDirectory(prefix="layerc-") as name:
        directory = Path(name)
        directory.joinpath("try.c").write_text(_TRY)
        try:
            compiler.build([Unit("try.c")], "try.so", directory)
        except CompilerFailed as failed:
            return failed.output or "it fails"
        return "" if directory.joinpath("try.so").is_file() else "it makes no output"


_TRY = """\
#include <math.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
int threads(void) { return omp_get_max_threads(); }
#endif
double try(double x, int64_t n) { return exp(x) + (double)n; }
"""


def _output(command: Sequence[str]) -> str:
    """What the command prints. CompilerFailed where it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    except OSError as error:
        raise CompilerFailed(command, str(error)) from None
    if done.returncode:
        raise CompilerFailed(command, done.stderr or f"exit status {done.returncode}")
    return done.stdout


def python_include() -> str:
    """The directory of Python.h. Raises NoPythonHeader."""
    directory = sysconfig.get_paths()["include"]
    if not Path(directory, "Python.h").is_file():
        raise NoPythonHeader(
            f"a C compiler is there, but the header Python.h is not in {directory}\n"
            f"to install it: {_how_to_install('header')}"
        )
    return directory


def _how_to_install(what: str) -> str:
    if sys.platform == "darwin":
        return "xcode-select --install" if what == "compiler" else "brew install python"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    family = f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".split()
    commands: Mapping[str, tuple[str, str]] = {
        "debian": ("apt install gcc", "apt install python3-dev"),
        "fedora": ("dnf install gcc", "dnf install python3-devel"),
        "suse": ("zypper install gcc", "zypper install python3-devel"),
        "arch": ("pacman -S gcc", "pacman -S python"),
        "alpine": ("apk add gcc musl-dev", "apk add python3-dev"),
    }
    known = next((commands[name] for name in family if name in commands), commands["debian"])
    return known[0] if what == "compiler" else known[1]


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def baseline(compiler: Compiler, *flags: str) -> Compiler:
    """The same compiler with other code generation flags in place of those for this CPU."""
    return replace(compiler, native=flags)
