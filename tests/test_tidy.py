"""Rules about the code itself, checked like any other behaviour."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "puredelta"
MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_module_is_tidy(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module starts by saying what it is for"
    assert not [w for w in ("TODO", "FIXME", "XXX", "NotImplementedError") if w in text]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lazy = [n for n in ast.walk(node) if isinstance(n, ast.ImportFrom)]
            assert not [n for n in lazy if (n.module or "").startswith("puredelta")], node.name
