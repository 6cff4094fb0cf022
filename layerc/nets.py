"""`layerc build net.py:net`: run the script that makes the net, and build the net whole."""

import ast
import linecache
import re
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from layerc.build import driver
from layerc.build.net import write_net
from layerc.build.net_kernels import OtherVersion
from layerc.build.net_maps import c_name
from layerc.runtime import plan, weights
from layerc.runtime.net import Net
from layerc.runtime.rehearse import schedule
from layerc.runtime.solvers import Solver
from layerc.runtime.symbolic import Unrecordable

Progress = Callable[[str], None]


class NoSuch(Exception):
    """The script has no such net or solver, or none that is meant; the message says what it has."""


class BadScript(Exception):
    """The script, or its net, cannot be built; the message says where and why."""


def build(
    script: Path, name: str, output: Path | None, solver: str | None, top: str | None, tell: Progress
) -> tuple[Path, dict[str, Any]]:
    """The package's directory and the plan of the net. NoSuch, BadScript; what the C compiler and the writer raise."""
    _refuse_layers(script, name)
    tell(f"running {script.name}")
    found = _run(script)
    net = _named(script, found, name, Net, "net")
    teacher = _teacher(script, found, solver)
    if top is not None and top not in net.graph.last:
        raise NoSuch(f"{script}:{name}: no blob {top!r}; there is {', '.join(map(repr, net.graph.last))}")
    tell(f"rehearsing {net.name}")
    try:
        made = plan.data(schedule(net, teacher, top))
        arrays = weights.packed(weights.collect(net))
    except (Unrecordable, ValueError, TypeError, KeyError, RuntimeError) as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        raise BadScript(f"{script}:{name}: {text}{notes}") from None
    target = output if output is not None else driver.default_output(script)
    tell("compiling the C code")
    try:
        write_net(target, made, prefix_of(name), arrays, script.name, driver.VERSION)
    except OtherVersion as error:
        raise BadScript(f"{script}:{name}: {error}") from None
    return target, made


def prefix_of(name: str) -> str:
    """What the C functions start with."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    is_free = re.match(r"(?!lc)[A-Za-z]", made) and (made == c_name(made) or made == "net")
    return made if is_free else f"net_{made}".rstrip("_")


def _refuse_layers(script: Path, name: str) -> None:
    """A layer file is never run: NoSuch where the name is that of a function or class in it."""
    try:
        body = ast.parse(script.read_bytes()).body
    except (SyntaxError, ValueError):
        return  # running it says what is wrong
    if any(isinstance(stmt, ast.FunctionDef | ast.ClassDef) and stmt.name == name for stmt in body):
        raise NoSuch(f"{script}: {name} is no net; to build the layers of a file: layerc build {script}")


def _run(script: Path) -> dict[str, Any]:
    """The variables of the script after it has run, as a module that is not `__main__`."""
    sys.path.insert(0, str(script.resolve().parent))
    try:
        return runpy.run_path(str(script), run_name=script.stem)
    except SystemExit as left:
        raise BadScript(f"{script} ended Python: exit({left.code!r})") from None
    except Exception as error:
        raise BadScript(_drawn(script, error)) from None
    finally:
        sys.path.pop(0)


def _drawn(script: Path, error: Exception) -> str:
    """The line of the script where it failed."""
    if isinstance(error, SyntaxError):
        line, column, text = error.lineno or 1, (error.offset or 1) - 1, (error.text or "").rstrip("\n")
    else:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(script)]
        if not frames:
            return f"{script}: {type(error).__name__}: {error}"
        line = frames[-1].lineno or 1
        text = linecache.getline(str(script), line).rstrip()
        column = len(text) - len(text.lstrip())
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    head = f"{script}:{line}:{column + 1}: error[{type(error).__name__}]: {message}"
    caret = "^" * max(len(text.strip()), 1) if not isinstance(error, SyntaxError) else "^"
    return f"{head}\n{line:>5} | {text}\n      | {' ' * column}{caret}"


def _named(script: Path, found: dict[str, Any], name: str, kind: type, what: str) -> Any:
    known = [key for key, value in found.items() if isinstance(value, kind)]
    if name in known:
        return found[name]
    has = f"it has {', '.join(known)}" if known else f"it makes no {what}"
    if name in found:
        raise NoSuch(f"{script}: {name} is a {type(found[name]).__name__}, no {what}; {has}")
    raise NoSuch(f"{script} has no {what} {name}; {has}")


def _teacher(script: Path, found: dict[str, Any], name: str | None) -> Solver | None:
    """The solver that is named, or the only one of the script; None without one."""
    if name is not None:
        solver: Solver = _named(script, found, name, Solver, "solver")
        return solver
    known = {id(v): key for key, v in found.items() if isinstance(v, Solver)}
    if len(known) > 1:
        raise NoSuch(f"{script} has the solvers {', '.join(known.values())}; name the one that trains: --solver NAME")
    return found[next(iter(known.values()))] if known else None
