"""What each command of `layerc` does. A wrong use raises Usage; mistakes in files and the like are raised as
they come.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from layerc import told
from layerc.build import driver
from layerc.transpile.program import Assign, Function, Layer, Module, walk_stmts


class Usage(Exception):
    """The command line asks for what is not there; the message says what is."""


def passes() -> tuple[str, ...]:
    return tuple(stage.partition(":")[2] for stage in driver.STAGES if ":" in stage)


class Failed(Exception):
    """A layer is not valid; the message says how many."""


# -- what is asked for ------------------------------------------------------------------------------------
def _split(text: str) -> tuple[Path, str | None]:
    """layers.py:NAME -> the file and the name."""
    path = Path(text)
    if ":" not in text or path.exists():
        return path, None
    file, _, name = text.rpartition(":")
    return Path(file), name


def _file(path: Path) -> Path:
    if path.is_dir():
        raise Usage(f"{path} is a directory; name a layer file in it")
    if not path.exists():
        raise Usage(f"there is no file {path}")
    return path


def _module(text: str) -> tuple[Module, str | None]:
    """The typed module, and the layer of it that is asked for."""
    path, name = _split(text)
    module = driver.read_module(_file(path))
    known = [layer.name for layer in module.layers]
    if name is not None and name not in known:
        raise Usage(f"{path} has no layer {name}; it has {', '.join(known)}")
    return module, name


def _layers(module: Module, name: str | None) -> list[Layer]:
    return [layer for layer in module.layers if name in (None, layer.name)]


def _stage(text: str) -> str:
    if text not in driver.STAGES:
        raise Usage(f"there is no stage {text}; there are: {', '.join(driver.STAGES)}")
    return text


# -- commands ---------------------------------------------------------------------------------------------
def build(options: argparse.Namespace) -> None:
    path, name = _split(options.file)
    if name is not None:
        return _build_net(options, path, name)
    if options.solver or options.top:
        raise Usage("--solver and --top are for a net: layerc build net.py:NAME")
    source = _file(path)
    target = Path(options.output) if options.output else None
    stage = _stage(options.dump) if options.dump else None
    with _Progress() as progress:
        made = driver.build(
            source,
            target,
            f32_only=options.f32_only,
            checked=options.checked,
            portable=options.portable,
            dump=stage,
            progress=progress,
        )
    told.built(made)


def _build_net(options: argparse.Namespace, path: Path, name: str) -> None:
    from layerc import nets

    for option in ("f32_only", "checked", "portable", "dump"):
        if getattr(options, option):
            raise Usage(f"--{option.replace('_', '-')} is for layer files; {options.file} names a net")
    script = _file(path)
    target = Path(options.output) if options.output else None
    with _Progress() as progress:
        try:
            made, plan = nets.build(script, name, target, options.solver, options.top, progress)
        except nets.NoSuch as error:
            raise Usage(str(error)) from None
        except nets.BadScript as error:
            raise Failed(str(error)) from None
    prefix, predict = nets.prefix_of(name), plan["predict"]
    arguments = ", ".join(p["name"] for p in predict["inputs"])
    print(f"built {made}: {prefix}.c, {prefix}.h, lib{prefix}.so, weights.safetensors")
    print(f"predict({arguments}) -> {predict['outputs'][0]['name']}")
    if plan["train"]:
        arguments = ", ".join(p["name"] for p in plan["train"]["inputs"])
        print(f"train_step({arguments}) -> loss, by {plan['solver']}")
    else:
        print("no train_step: the script makes no solver, or the net has no loss")
    if plan["left_out"]:
        print(f"left out, as no loss needs them: {', '.join(plan['left_out'])}")


class _Progress:
    """One line on a terminal that always says what is being done; silent elsewhere."""

    def __enter__(self) -> "_Progress":
        self.shown = sys.stderr.isatty()
        return self

    def __call__(self, text: str) -> None:
        if self.shown:
            sys.stderr.write(f"\r\x1b[K{text} ...")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def grad(options: argparse.Namespace) -> None:
    if options.order < 1:
        raise Usage("--order is 1 or more")
    module, name = _module(options.file)
    print(driver.gradient_source(module, name, options.order), end="")


def show(options: argparse.Namespace) -> None:
    stage = _stage(options.stage)
    module, name = _module(options.file)
    print(driver.show(module, stage, name).rstrip("\n"))


def check(options: argparse.Namespace) -> None:
    module, name = _module(options.file)
    driver.compile_module(module)  # what only the gradients and the loop nests find
    layers = _layers(module, name)
    shapes, config = _values(options, layers)
    for layer in layers:
        print(driver.signature(layer))
        for function in (layer.predict, layer.forward, layer.custom):
            if function is not None:
                _print_types(function)
    if not options.types:
        _test(options, layers, shapes, config)


def _test(
    options: argparse.Namespace,
    layers: list[Layer],
    shapes: dict[str, tuple[int, ...]],
    config: dict[str, Any],
) -> None:
    """The validity suite on a package of its own. Failed unless every layer passes."""
    from layerc.checking import reports

    failed = 0
    with tempfile.TemporaryDirectory(prefix="layerc-check-") as folder, _Progress() as progress:
        package = driver.build(_split(options.file)[0], Path(folder) / "check_compiled", progress=progress)
        progress("checking")
        try:
            for report in reports(package, [layer.name for layer in layers], shapes, config):
                progress.clear()
                print(f"\n{report}")
                failed += not report.passed
        except (ValueError, TypeError) as error:  # shapes and configuration that do not fit the layer
            raise Usage(str(error)) from None
        except MemoryError as error:
            raise _too_large(error) from None
        except (IndexError, AssertionError, ArithmeticError) as error:  # a line of the file that no values suit
            raise Failed(f"{error}\n  so it raises {type(error).__name__} for all values that were tried") from None
    if failed:
        raise Failed(f"{failed} of {len(layers)} layers failed" if len(layers) > 1 else "the layer failed")


def explain(options: argparse.Namespace) -> None:
    from layerc.explain import MARK, page

    module, name = _module(options.file)
    source = _split(options.file)[0]
    target = Path(options.output) if options.output else source.with_suffix(".html")
    if target.is_dir():
        raise Usage(f"{target} is a directory; name a file in it")
    if not target.parent.is_dir():
        raise Usage(f"there is no directory {target.parent}")
    if target.exists() and not target.is_file():
        raise Usage(f"{target} is no ordinary file; name another with -o")
    if target.exists() and target.samefile(source):
        raise Usage(f"{target} is the layer file itself; name another with -o")
    if not options.output and target.exists() and MARK not in target.read_text("utf-8", "replace")[:500]:
        raise Usage(f"{target} is no page of layerc; name another file with -o")
    _replace(target, page(module, name))
    print(f"wrote {target}")


def _replace(target: Path, text: str) -> None:
    """Writes a file: all of it, or nothing."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _print_types(function: Function) -> None:
    """Every variable with its line and its type."""
    print(f"    {function.name}")
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, Assign):
            print(f"    {stmt.span.line:>5}  {stmt.name}: {stmt.value.type}")
    for result in function.results:
        print(f"           -> {result.name}: {result.type}")


def info(options: argparse.Namespace) -> None:
    directory = Path(options.directory)
    path = directory / "manifest.json"
    if not path.is_file():
        raise Usage(f"{directory} is not a package built by layerc: it has no manifest.json")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        source = manifest.get("net", {}).get("script", manifest["source"])
        print(f"{directory.name}: built from {source} by layerc {manifest['layerc']}")
        native = manifest.get("native", {})
        print(f"  compiler  {native.get('compiler', '?')}, {' '.join(native.get('flags', []))}")
        for layer in manifest["layers"]:
            _print_layer(layer)
        if "net" in manifest:
            _print_net(manifest["net"])
    except (ValueError, KeyError) as error:
        raise Usage(f"{path} cannot be read ({error}); build the package again") from None
    except (TypeError, AttributeError, IndexError):
        raise Usage(f"{path} is no manifest of layerc; build the package again") from None


def _print_net(net: dict[str, Any]) -> None:
    """A net that was built whole."""
    for name, title in (("predict", "predict"), ("train", "train_step")):
        function = net[name]
        if function is None:
            continue
        inputs, outputs = (
            ", ".join(f"{p['name']}: {p['dtype']}{['batch', *p['shape']]}".replace("'", "") for p in function[key])
            for key in ("inputs", "outputs")
        )
        times, plus = function["arena"]
        print(f"\n  {net['prefix']}_{title}({inputs}) -> {outputs or 'loss'}")
        print(f"    arena {times} bytes an example" + (f" and {plus} more" if plus else ""))
        if name == "train":
            print(f"    by {net['solver']}")
    print()
    for held in net["held"]:
        role = "param" if held["buffer"] == "parameters" else "state"
        print(f"    {role:<7} {held['name']}: {held['dtype']}{held['shape']}")


def _print_layer(layer: dict[str, Any]) -> None:
    doc = (layer["doc"] or "").strip().splitlines()
    print(f"\n  {layer['signature']}")
    if doc:
        print(f"    {doc[0]}")
    for param in layer["parameters"]:
        if layer["kind"] == "class" and param["role"] in ("param", "state", "config"):
            shape = f"['{param['shape']}']" if param["shape"] else ""
            print(f"    {param['role']:<7} {param['name']}: {param['dtype']}{shape}")
    kernels = sorted({kernel for method in layer["methods"].values() for kernel in method["kernels"].values()})
    gradient = {"auto": "derived", "custom": "by hand", "none": "none"}[layer["backward"]]
    print(f"    gradient {gradient}; C functions {', '.join(kernels)}")


def bench(options: argparse.Namespace) -> None:
    from layerc.timing import time_layer

    path, name = _split(options.file)
    layers = _layers(_module(options.file)[0], name)
    shapes, config = _values(options, layers)
    with tempfile.TemporaryDirectory(prefix="layerc-bench-") as folder, _Progress() as progress:
        package = driver.build(path, Path(folder) / "bench_compiled", progress=progress)
        lines: list[str] = []
        for layer in layers:
            progress(f"timing {layer.name}")
            try:
                lines += time_layer(package, layer.name, shapes, config, options.dtype, options.threads)
            except (ValueError, TypeError) as error:  # shapes and configuration that do not fit the layer
                raise Usage(str(error)) from None
            except MemoryError as error:
                raise _too_large(error) from None
    print("\n".join(lines))


def _values(options: argparse.Namespace, layers: list[Layer]) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
    """What --shapes and --config say; Usage for names that are no arguments of these layers."""
    shapes, config = _shapes(options.shapes), _config(options.config)
    known = {p.name for layer in layers for p in layer.params}
    if strange := [n for n in (*shapes, *config) if n not in known]:
        raise Usage(f"no argument {strange[0]}; there is {', '.join(sorted(known))}")
    return shapes, config


def _too_large(error: MemoryError) -> Usage:
    return Usage(f"arrays of these --shapes find no room in memory ({error or 'out of memory'})")


def _shapes(words: list[str]) -> dict[str, tuple[int, ...]]:
    return {key: tuple(_integers(value, key)) for key, value in _pairs(words)}


def _config(words: list[str]) -> dict[str, Any]:
    return {key: _number(value) for key, value in _pairs(words)}


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    for word in words:
        if "=" not in word:
            raise Usage(f"{word}: write NAME=VALUE")
    return [(key, value) for key, _, value in (word.partition("=") for word in words)]


def _integers(text: str, name: str) -> list[int]:
    try:
        return [int(n) for n in text.split(",") if n]
    except ValueError:
        raise Usage(f"{name}={text}: a shape is integers with commas, as in x=32,64") from None


def _number(text: str) -> Any:
    try:
        return {"True": True, "False": False}.get(text) if text in ("True", "False") else json.loads(text)
    except ValueError:
        raise Usage(f"{text} is no number") from None
