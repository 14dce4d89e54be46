"""The examples in docstrings do what they say; those that need a session are shown only."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import puredelta

_ROOT = Path(puredelta.__file__).parent
_MODULES = [
    ".".join(["puredelta", *path.relative_to(_ROOT).with_suffix("").parts]).removesuffix(
        ".__init__"
    )
    for path in sorted(_ROOT.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", _MODULES)
def test_examples_are_true(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed, capsys.readouterr().out


def test_there_are_examples() -> None:
    modules = map(importlib.import_module, _MODULES)
    found = [
        example
        for m in modules
        for test in doctest.DocTestFinder().find(m)
        for example in test.examples
    ]
    run = [example for example in found if doctest.SKIP not in example.options]
    assert len(run) > 100
