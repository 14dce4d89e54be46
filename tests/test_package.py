"""The package's own names: all there, imported late, and never taken for a layer."""

from __future__ import annotations

import subprocess
import sys

import pytest

import puredelta


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_public_name_is_there() -> None:
    for name in puredelta.__all__:
        assert getattr(puredelta, name) is not None
        assert name in dir(puredelta)
    assert list(puredelta.__all__) == sorted(puredelta.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'merge_into'"):
        _ = puredelta.merge_into


def test_importing_the_package_does_not_import_pyspark() -> None:
    code = "import sys, puredelta; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    assert run_python(code) == "False False"


def test_sql_is_the_function_whatever_is_imported_first() -> None:
    code = (
        "import puredelta; from puredelta.statements.execute.dispatch import run_sql; "
        "print(puredelta.sql.__module__, callable(puredelta.sql))"
    )
    assert run_python(code) == "puredelta.api True"
