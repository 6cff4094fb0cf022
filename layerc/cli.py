"""The command line: `layerc build layers.py` and its companions.

Exit status: 0 done, 1 mistakes in the file, 2 usage (no such file, no such layer, output that cannot be
written),
3 no working C compiler, 70 a fault of layerc itself. Never a traceback, unless LAYERC_DEBUG is set.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from layerc import __version__, told

MISTAKES, USAGE, NO_COMPILER, INTERRUPTED, INTERNAL = 1, 2, 3, 130, 70

TEACH = """\
layerc compiles neural-network layers written in NumPy to C, with their gradients.

  1. Write a layer file, layers.py:          import numpy as np
                                             from layerc import layer, real

                                             @layer
                                             def mish(x: real["*S"]) -> real["*S"]:
                                                 return x * np.tanh(np.log1p(np.exp(x)))
  2. layerc build layers.py                  writes the package layers_compiled/ beside it
  3. In Python:                              import layers_compiled as L
                                             y = L.mish(x);  y, pullback = L.mish.vjp(x)

  layerc grad layers.py prints the gradients as source; layerc --help lists all commands.
"""

NET = """

layerc build layers.py       reads the file, and never runs it.
layerc build net.py:net      RUNS net.py, as Python: a Net is an object that it makes. From its variable `net` comes a
                             package with one C file (predict, train_step, load_safetensors; no Python), a shared
                             library, the weights that the net has then, and a module. `if __name__ == "__main__":`
                             is not entered."""

EXIT_CODES = "exit status: 0 done, 1 mistakes in the layer file, 2 usage, 3 no working C compiler"


def parser(teaching: bool = True) -> argparse.ArgumentParser:
    """Of the command line. `teaching`: it may have to print its help, all of it."""
    top = argparse.ArgumentParser(prog="layerc", description=TEACH, epilog=EXIT_CODES, formatter_class=_Formatter)
    top.add_argument("--version", action="version", version=f"layerc {__version__}")
    found = top.add_subparsers(dest="command", metavar="command", title="commands")
    build = _command(found, "build", "build", "compile a layer file, or a whole net, to a package", NET)
    build.add_argument("file", metavar="layers.py | net.py:NET", help="a layer file; or a script and its Net")
    build.add_argument("--solver", metavar="NAME", help="of a net: what train_step updates by (default: the only one)")
    build.add_argument("--top", metavar="BLOB", help="of a net: what predict gives (default: what the loss compares)")
    build.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="the package directory (default: <stem>_compiled beside the file)",
    )
    build.add_argument("--f32-only", action="store_true", help="leave float64 out: half the time and size")
    build.add_argument(
        "--checked",
        action="store_true",
        help="trap NaN and infinity where they arise, naming the line (slower)",
    )
    build.add_argument(
        "--portable",
        action="store_true",
        help="one library for every CPU of this kind, not for this very one",
    )
    build.add_argument("--dump", metavar="STAGE", help="also print a stage: see layerc show")
    grad = _command(found, "grad", "grad", "print gradient source")
    _target(grad)
    grad.add_argument("--order", type=int, default=1, metavar="N", help="differentiate N times (default 1)")
    show = _command(found, "show", "show", "print a stage of the compilation")
    _target(show)
    show.add_argument(
        "--stage", required=True, help=f"typed, kept, ir, ir:PASS or c; passes: {_passes() if teaching else ''}"
    )
    check = _command(found, "check", "check", "print types and inferred shapes, and test that the layers are valid")
    _target(check)
    _values(check)
    check.add_argument("--types", action="store_true", help="types and shapes only: build and test nothing")
    explain = _command(found, "explain", "explain", "write a page with forward, gradient and C, linked line by line")
    _target(explain)
    explain.add_argument(
        "-o", "--output", metavar="report.html", help="the page (default: <stem>.html beside the file)"
    )
    bench = _command(found, "bench", "bench", "time forward and backward of a layer")
    _target(bench)
    _values(bench)
    bench.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    bench.add_argument("--threads", type=int, default=1, metavar="N", help="default 1")
    info = _command(found, "info", "info", "say what a built package holds")
    info.add_argument("directory", metavar="DIR")
    return top


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Text as it is written, and room for the options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=110)


def _command(
    parsers: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, run: str, help: str, more: str = ""
) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = parsers.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.{more}",
        epilog=EXIT_CODES,
        formatter_class=_Formatter,
    )
    made.set_defaults(run=run)
    return made


def _target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="layers.py[:NAME]", help="a layer file, or one layer of it")


def _values(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shapes",
        nargs="+",
        default=[],
        metavar="NAME=N,M",
        help="shapes of the inputs, with the batch axis: x=32,64,28,28",
    )
    parser.add_argument("--config", nargs="+", default=[], metavar="NAME=VALUE", help="configuration: kernel=3")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        print(TEACH, end="")
        return 0
    try:
        options = parser(bool({"-h", "--help"} & set(arguments))).parse_args(arguments)
    except SystemExit as left:  # argparse has said what is wrong
        return left.code if isinstance(left.code, int) else USAGE
    if not hasattr(options, "run"):
        print(TEACH, end="")
        return USAGE
    return _guarded(options)


def _guarded(options: argparse.Namespace) -> int:
    """Runs the command; what it raises becomes a message and an exit status."""
    try:
        if not _is_done(options):
            from layerc import commands  # and with them the compiler

            getattr(commands, options.run)(options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # `layerc show ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except Exception as error:
        if os.environ.get("LAYERC_DEBUG"):
            raise
        return _explained(error)


def _is_done(options: argparse.Namespace) -> bool:
    """Whether a build would change nothing, which is found out before the compiler is loaded."""
    if options.run != "build" or options.dump or options.solver or options.top:
        return False
    from layerc.build.unchanged import default_output, is_unchanged

    source = Path(options.file)
    if not source.is_file():
        return False
    target = Path(options.output) if options.output else default_output(source)
    wanted = {key: getattr(options, key) for key in ("f32_only", "checked", "portable")}
    if not is_unchanged(source, target, {**wanted, "keep": True}):
        return False
    told.built(target)
    return True


def _passes() -> str:
    from layerc import commands

    return ", ".join(commands.passes())


def _explained(error: Exception) -> int:
    from layerc import commands
    from layerc.build.compiler import NoCompiler
    from layerc.build.writer import UnusableOutput
    from layerc.transpile.errors import InternalError, InvalidFile

    match error:
        case InvalidFile():
            count = len(error.mistakes)
            return _say(f"{error}\n{count} mistake{'s' if count > 1 else ''}; nothing was written", MISTAKES)
        case commands.Failed():
            return _say(f"layerc: {error}", MISTAKES)
        case commands.Usage() | UnusableOutput():
            return _say(f"layerc: {error}", USAGE)
        case NoCompiler():
            return _say(f"layerc: {error}", NO_COMPILER)
        case InternalError():
            return _say(str(error), INTERNAL)
        case OSError() if error.filename is not None:
            return _say(f"layerc: {error.filename}: {error.strerror}", USAGE)
    return _say(
        f"internal error: {type(error).__name__}: {error}\n"
        "  This is a fault of layerc, not of your file: please report it with the layer that shows it.\n"
        "  LAYERC_DEBUG=1 shows where it arose.",
        INTERNAL,
    )


def _say(text: str, status: int) -> int:
    print(text, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
