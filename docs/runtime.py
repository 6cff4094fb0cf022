"""Writes the generated part of docs/runtime.md: what of the runtime is compiled from layer files (`make docs`).

python docs/runtime.py           write it
python docs/runtime.py --check   exit status 1 if it is not up to date
"""

import ast
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "runtime.md"
RUNTIME = HERE.parent / "runtime"
PART = re.compile(r"(<!-- compiled: python docs/runtime.py -->\n)(.*?)(<!-- /compiled -->\n)", re.DOTALL)


def functions(path: Path) -> tuple[list[str], list[str]]:
    """Names of the layers of a layer file, and of those whose gradient is written by hand."""
    layers, by_hand = [], []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            layers.append(node.name)
            by_hand += [
                node.name for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "backward"
            ]
        elif isinstance(node, ast.FunctionDef):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            layers += [node.name for mark in marks if mark.partition("(")[0] == "layer"]
            by_hand += [mark.partition(".")[0] for mark in marks if mark.endswith(".backward")]
    return layers, by_hand


def served(stem: str, names: list[str]) -> list[str]:
    """The files of the runtime that call functions of a layer file, by their addresses."""
    found = []
    for path in sorted(RUNTIME.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(f'"{stem}.{name}' in text for name in [*names, "{"]):
            found.append(path.name)
    return found


def part() -> str:
    rows, count, hands = [], 0, 0
    files = sorted(p for p in (RUNTIME / "layers").glob("*.py") if not p.name.startswith("_"))
    for path in files:
        names, by_hand = functions(path)
        count, hands = count + len(names), hands + len(by_hand)
        shown = ", ".join(f"`{name}`{' *' if name in by_hand else ''}" for name in names)
        users = ", ".join(f"`{user}`" for user in served(path.stem, names))
        rows.append(f"| `layers/{path.name}` | {shown} | {users} |")
    return "\n".join(
        [
            f"{count} functions and classes in {len(files)} layer files; the gradients of {hands} (*) are written by hand.",
            "",
            "| layer file | functions | serves |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )


def updated(text: str) -> str:
    return PART.sub(lambda found: found[1] + part() + found[3], text)


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = updated(before)
    if after != before and "--check" in sys.argv:
        sys.exit(f"{PAGE.name} is stale: make docs")
    PAGE.write_text(after, encoding="utf-8")
