from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from puredelta.inspection.environment import (
    DELTA_EXTENSION,
    delta_spark_findings,
    java_finding,
    workers_finding,
)
from puredelta.inspection.findings import Severity


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("banner", "severity"),
    [
        ('openjdk version "17.0.1"', Severity.OK),
        ('openjdk version "1.8.0_392"', Severity.ERROR),
        ('openjdk version "11.0.2"', Severity.ERROR),
        ("nonsense", Severity.ERROR),
    ],
)
def test_java_is_asked_for_its_version(tmp_path: Path, banner: str, severity: Severity) -> None:
    program(tmp_path / "bin" / "java", f"echo '{banner}' >&2")
    assert java_finding({"JAVA_HOME": str(tmp_path)}).severity is severity


def test_no_java_is_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    found = java_finding({"PATH": str(tmp_path)})
    assert found.severity is Severity.ERROR
    assert "JAVA_HOME" in str(found.mend)


def test_workers_that_run_this_python_are_in_order() -> None:
    found = workers_finding({"PYSPARK_PYTHON": sys.executable})
    assert found.severity is Severity.OK, found


def test_workers_whose_python_lacks_the_package_are_named(tmp_path: Path) -> None:
    answer = json.dumps({"version": sys.version_info[:2], "found": {"pyarrow": "1"}})
    python = program(tmp_path / "python3", f"echo '{answer}'")
    found = workers_finding({"PATH": f"{tmp_path}:/bin"})
    assert found.severity is Severity.ERROR
    assert str(python) in found.message
    assert "lacks puredelta" in found.message
    assert found.mend == f"export PYSPARK_PYTHON={sys.executable}"


@pytest.mark.parametrize("text", ["exit 1", "echo '[]'"])
def test_workers_whose_python_does_not_run_are_named(tmp_path: Path, text: str) -> None:
    python = program(tmp_path / "py", text)
    assert workers_finding({"PYSPARK_PYTHON": str(python)}).severity is Severity.ERROR


def test_settings_of_delta_spark_without_its_jar_are_an_error(tmp_path: Path) -> None:
    conf = tmp_path / "spark-defaults.conf"
    conf.write_text(f"# {DELTA_EXTENSION}\n")
    environ = {"SPARK_CONF_DIR": str(tmp_path)}
    assert [f.check for f in delta_spark_findings(environ)] == ["delta-spark"]
    conf.write_text(f"spark.sql.extensions {DELTA_EXTENSION}\n")
    found = {f.check: f for f in delta_spark_findings(environ)}
    assert found["delta-spark-settings"].severity is Severity.ERROR
    assert "spark.sql.catalog.spark_catalog" in str(found["delta-spark-settings"].mend)


def test_the_jar_of_delta_spark_is_named(tmp_path: Path) -> None:
    jar = tmp_path / "jars" / "delta-spark_2.13-4.0.0.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"")
    found = {f.check: f for f in delta_spark_findings({"SPARK_HOME": str(tmp_path)})}
    assert str(jar) in found["delta-spark-jar"].message
