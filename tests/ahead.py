"""Building nets ahead of time in tests."""

import importlib.util
import itertools
import runpy
import sys

from nets_ahead import SCRIPTS

from layerc.cli import main

MLP = SCRIPTS["mlp"]
DROP = 'Dropout(0.3, name="drop", bottoms=["ip1"])'
IP2 = 'InnerProduct(5, name="ip2", bottoms=["ip1"])'
_count = itertools.count()


def build(folder, script, *options, name="net"):
    """The script's variables and the built package."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "net.py"
    path.write_text(script)
    assert main(["build", f"{path}:{name}", "-o", str(folder / "built"), *options]) == 0
    return run(path), package(folder / "built")


def run(path):
    sys.path.insert(0, str(path.parent))
    try:
        return runpy.run_path(str(path))
    finally:
        sys.path.pop(0)


def package(folder):
    spec = importlib.util.spec_from_file_location(f"built_net_{next(_count)}", folder / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def changed(*pairs, script=MLP):
    """The script with other texts."""
    for old, new in pairs:
        assert old in script, old
        script = script.replace(old, new)
    return script


def middle(layer, script=MLP):
    """The net with another layer in place of its dropout; it makes "m" of "ip1"."""
    return changed((DROP, layer), (IP2, IP2.replace("ip1", "m")), script=script)
