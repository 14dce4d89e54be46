from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.errors import InvalidRequestError
from puredelta.inspection.findings import Severity
from puredelta.inspection.migration import RULES, script_findings

OLD = """
from delta.tables import DeltaTable
from delta import configure_spark_with_delta_pip
import delta.exceptions

spark = (
    SparkSession.builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0")
    .getOrCreate()
)

def each(batch, n):
    batch._jdf.sparkSession().sql("SELECT 1")
"""


def checks(script: Path) -> dict[str, Severity]:
    return {f.check: f.severity for f in script_findings(script)}


def test_a_script_for_delta_spark_is_named_line_by_line(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(OLD)
    found = checks(script)
    assert {
        "migrate-import-tables",
        "migrate-import-pip-utils",
        "migrate-import-exceptions",
        "migrate-session-extension",
        "migrate-session-catalog",
        "migrate-session-packages",
        "migrate-jvm",
        "migrate-activate",
    } <= set(found)
    first = next(script_findings(script))
    assert "job.py:2:" in first.message
    assert "puredelta.tables" in str(first.mend)


def test_a_script_that_is_migrated_is_in_order(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("import puredelta\npuredelta.activate(spark)\nspark.sql('SELECT 1')\n")
    assert checks(script) == {"migrate": Severity.OK}


def test_a_script_is_parsed_and_never_run(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(f"open({str(tmp_path / 'made')!r}, 'w')\n")
    list(script_findings(script))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("text", ["def f(:\n", "\0"])
def test_what_is_no_python_is_refused(tmp_path: Path, text: str) -> None:
    script = tmp_path / "job.py"
    script.write_text(text)
    with pytest.raises(InvalidRequestError, match="is no Python"):
        list(script_findings(script))


def test_every_rule_says_what_to_do() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.mend and rule.message.endswith(".") for rule in RULES)
