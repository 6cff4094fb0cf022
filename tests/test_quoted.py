"""What the documentation quotes is what the commands print."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_quoted_output_is_real() -> None:
    spec = importlib.util.spec_from_file_location("quoted", DOCS / "quoted.py")
    assert spec and spec.loader
    quoted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(quoted)
    pages = [p for p in sorted(DOCS.glob("*.md")) if quoted.BLOCK.search(p.read_text(encoding="utf-8"))]
    assert pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert quoted.updated(text) == text, f"{page.name} is stale: python docs/quoted.py"
