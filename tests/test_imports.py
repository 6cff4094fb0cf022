"""Who imports whom: the arrows of the house, read from the source, and what importing really loads.

layerc -> build -> adjoint -> transpile        layerc -> runtime <- bridges
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("layerc", "build", "adjoint", "transpile", "runtime", "bridges")

# A folder may import these of the house, besides itself. `layerc` means the face: `from layerc import ...`.
MAY = {
    "transpile": (),
    "adjoint": ("transpile",),
    "build": ("adjoint", "transpile"),
    "runtime": (),
    "bridges": ("runtime",),
    "layerc": ("build", "adjoint", "transpile", "runtime", "bridges"),
}
ONLY_BRIDGES = ("torch", "jax", "jaxlib", "mpi4py")
ONLY_COMPILER = ("gast", "astor")  # a built package runs without


def sources(folder: str) -> list[Path]:
    files = sorted((ROOT / folder).rglob("*.py"))
    return [p for p in files if not any(part.endswith("_compiled") for part in p.parts)]


def imports(path: Path) -> list[tuple[int, str]]:
    """(line, dotted module) of every import, those inside functions too; `from a import b` is a.b."""
    found = []
    folder, *inner = path.relative_to(ROOT).parts[:-1]
    package = (["layerc"] if folder == "layerc" else ["layerc", folder]) + inner
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, node.module] if node.module else base
            found += [(node.lineno, ".".join([*base, alias.name])) for alias in node.names]
        elif isinstance(node, ast.Call) and _called(node.func) in ("import_module", "__import__"):
            found += [(node.lineno, str(a.value)) for a in node.args[:1] if isinstance(a, ast.Constant)]
    return found


def _called(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def house_folder(module: str) -> str | None:
    """The folder of the house that a dotted module lies in, None for others."""
    parts = module.split(".")
    if parts[0] != "layerc":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in FOLDERS else "layerc"


def is_layer_file(path: Path) -> bool:
    return path.is_relative_to(ROOT / "runtime/layers")


@pytest.mark.parametrize("folder", FOLDERS)
def test_arrows(folder):
    wrong = []
    for path in sources(folder):
        allowed = {folder, *MAY[folder], *(["layerc"] if is_layer_file(path) else [])}
        for line, module in imports(path):
            target = house_folder(module)
            if target is not None and target not in allowed:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {folder} must not import {module}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_are_never_imported_by_their_bare_name(folder):
    """`import transpile` works by chance in the checkout and not at all once installed."""
    bare = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in sources(folder)
        for line, module in imports(path)
        if module.split(".")[0] in set(FOLDERS) - {"layerc"}
    ]
    assert not bare, "\n".join(bare)


@pytest.mark.parametrize(
    ("folder", "banned"),
    [
        *((folder, ONLY_BRIDGES) for folder in FOLDERS if folder != "bridges"),
        ("runtime", ONLY_COMPILER),
        ("bridges", ONLY_COMPILER),
        ("layerc", ONLY_COMPILER),
    ],
)
def test_third_parties_stay_where_they_belong(folder, banned):
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in sources(folder)
        for line, module in imports(path)
        if module.split(".")[0] in banned
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["annotations", "calls", "classes", "init", "language"])
def test_the_meaning_of_a_layer_file_needs_numpy_and_the_runtime_only(name):
    for line, module in imports(ROOT / f"layerc/{name}.py"):
        first = module.split(".")[0]
        assert first in {"numpy", "layerc"} | sys.stdlib_module_names, f"layerc/{name}.py:{line}: {module}"
        assert house_folder(module) in (None, "layerc", "runtime"), f"layerc/{name}.py:{line}: {module}"


def test_shapes_need_the_standard_library_only():
    modules = {module.split(".")[0] for _, module in imports(ROOT / "runtime/shapes.py")}
    assert modules <= sys.stdlib_module_names


# statement; modules that must not be loaded by it
LOADS = [
    ("import layerc", ["numpy", "layerc.language", "gast", "astor"]),
    ("import layerc.runtime", ["gast", "astor", "layerc.transpile", "layerc.build", "layerc.language"]),
    ("import layerc.runtime.shapes", ["gast", "astor", "numpy", "layerc.transpile", "layerc.language"]),
    ("from layerc import set_num_threads", ["gast", "astor", "layerc.transpile", "layerc.language"]),
    (
        "from layerc import Layer, Param, init, layer, real",
        ["gast", "astor", "layerc.transpile", "layerc.build"],
    ),
    ("from layerc import *", ["gast", "astor", "layerc.transpile", "layerc.build", "torch", "jax"]),
]


@pytest.mark.parametrize(("statement", "absent"), LOADS)
def test_what_an_import_loads(statement, absent, tmp_path):
    probe = f"{statement}\nimport sys\nprint([m for m in {absent} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"
