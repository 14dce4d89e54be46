"""The first hour of somebody who comes from delta-spark: imports, settings, Pythons."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.activation import session
from puredelta.errors import InvalidRequestError
from puredelta.tables import DeltaTable

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


@pytest.fixture
def no_delta(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if no package called delta were there, before and after."""
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *a: None if name == "delta" else real(name, *a)
    )
    for name in [n for n in sys.modules if n.partition(".")[0] == "delta"]:
        monkeypatch.delitem(sys.modules, name)
    yield
    session.remove_delta_module()


@pytest.mark.usefixtures("no_delta")
def test_imports_of_delta_find_this_package() -> None:
    session.install_delta_module()
    session.install_delta_module()
    assert importlib.import_module("delta.tables").DeltaTable is DeltaTable
    assert importlib.import_module("delta").DeltaTable is DeltaTable
    found = importlib.import_module("delta.exceptions")
    assert issubclass(found.ConcurrentAppendException, found.DeltaConcurrentModificationException)
    assert importlib.import_module("delta.pip_utils").configure_spark_with_delta_pip
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("delta.connect")
    session.remove_delta_module()
    assert "delta" not in sys.modules
    assert "delta.tables" not in sys.modules


def test_an_installed_delta_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = ModuleType("delta")
    monkeypatch.setitem(sys.modules, "delta", theirs)
    with pytest.raises(InvalidRequestError, match="never replaces it"):
        session.install_delta_module()
    session.remove_delta_module()
    assert sys.modules["delta"] is theirs


@pytest.mark.usefixtures("no_delta")
def test_activation_gives_the_module_where_it_is_asked_for(active: SparkSession) -> None:
    assert puredelta.activate(active)
    assert "delta" not in sys.modules
    assert puredelta.activate(active, delta_module=True)
    assert importlib.import_module("delta.tables").DeltaTable is DeltaTable


def classic(**settings: str) -> Any:
    values = {key.replace("__", "."): value for key, value in settings.items()}

    class Session:
        __module__ = "pyspark.sql.session"
        conf = SimpleNamespace(get=lambda key, default=None: values.get(key, default))

    return Session()


@pytest.mark.parametrize(
    ("settings", "runs", "words"),
    [
        ({}, True, None),
        ({"spark__sql__extensions": _EXTENSION}, True, "Remove it and start a new session"),
        (
            {"spark__sql__extensions": _EXTENSION, "spark__sql__catalog__spark_catalog": _CATALOG},
            False,
            "extensions and spark.sql.catalog.spark_catalog name .* JAR is not here.*Remove both",
        ),
    ],
)
def test_settings_of_delta_spark_without_its_jar(
    settings: dict[str, str], runs: bool, words: str | None
) -> None:
    spark = classic(**settings)
    if words is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert session._is_free_of_delta_spark(spark) is runs
    else:
        with pytest.warns(UserWarning, match=words):
            assert session._is_free_of_delta_spark(spark) is runs


class Context:
    def __init__(self, master: str) -> None:
        self.master = master
        self.pythonExec = "python3"
        self.seen: list[str] = []


def with_context(master: str) -> Any:
    context = Context(master)
    register = lambda _source: context.seen.append(context.pythonExec)  # noqa: E731
    return SimpleNamespace(sparkContext=context, dataSource=SimpleNamespace(register=register))


@pytest.fixture
def other_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return python


@pytest.mark.usefixtures("other_python")
def test_a_local_session_runs_the_source_by_this_python() -> None:
    spark = with_context("local[2]")
    session.let_spark_find_source(spark)
    assert spark.sparkContext.seen == [sys.executable]
    assert spark.sparkContext.pythonExec == "python3", "nothing lasting"


def test_a_cluster_is_warned_which_python_lacks_the_package(other_python: Path) -> None:
    spark = with_context("spark://host:7077")
    with pytest.warns(UserWarning, match=f"{other_python}.*PYSPARK_PYTHON={sys.executable}"):
        session.let_spark_find_source(spark)
    assert not spark.sparkContext.seen


@pytest.mark.usefixtures("other_python")
def test_nothing_happens_where_the_python_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/somewhere/python")
    spark = with_context("local[2]")
    session.let_spark_find_source(spark)
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    session.let_spark_find_source(spark)
    assert not spark.sparkContext.seen


def test_importing_tables_does_not_bring_the_module() -> None:
    code = "import puredelta.tables, sys; print('delta' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
