"""The pages of the guide do what they say: their Python and SQL run, in the order of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.cli.session.statements import split_statements

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"^```(python|sql)\n(.*?)^```", re.MULTILINE | re.DOTALL)
README = ROOT / "README.md"
PAGES = [ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def blocks(page: Path, data: Path) -> list[tuple[str, str]]:
    """The blocks of a page, with ``/data`` in a directory of the test."""
    text = page.read_text(encoding="utf-8").replace("/data/", f"{data}/")
    return _BLOCK.findall(text)


def prepared(spark: SparkSession, data: Path) -> DataFrame:
    """The Parquet files that the README converts, and the rows that it merges."""
    flights = spark.sql("""
        SELECT id, cast(id % 3 AS INT) AS month, 'AA' AS carrier, id - 5 AS delay,
               false AS cancelled FROM range(30)
    """)
    flights.write.partitionBy("month").parquet(str(data / "flights"))
    return spark.sql("""
        SELECT id, cast(id % 3 AS INT) AS month, 'AA' AS carrier, 7L AS delay,
               id = 29 AS cancelled FROM range(25, 35)
    """)


@pytest.mark.parametrize(
    "page",
    [page for page in (README, *PAGES) if _BLOCK.search(page.read_text(encoding="utf-8"))],
    ids=lambda page: page.stem,
)
def test_every_block_runs(page: Path, spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "puredelta": puredelta, "__name__": "page"}
    if page == README:
        names["corrections"] = prepared(spark, tmp_path)
    try:
        assert puredelta.activate(spark)
        for number, (language, text) in enumerate(blocks(page, tmp_path)):
            if language == "sql":
                for statement in split_statements(text):
                    spark.sql(statement).collect()
            else:
                code = compile(text, f"{page.name}, block {number}", "exec")
                exec(code, names)
    finally:
        spark.sql("DROP TABLE IF EXISTS flights")
        puredelta.deactivate()
        spark.conf.unset("spark.databricks.delta.write.txnAppId")
        spark.conf.unset("spark.databricks.delta.write.txnVersion")


def test_pages_are_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.relative_to(ROOT / "docs").as_posix() in navigation
