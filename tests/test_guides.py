"""The pages of the guide do what they say: their Python and SQL run, in the order of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.cli.session.statements import split_statements

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"^```(python|sql)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def blocks(page: Path, data: Path) -> list[tuple[str, str]]:
    """The blocks of a page, with ``/data`` in a directory of the test."""
    text = page.read_text(encoding="utf-8").replace("/data/", f"{data}/")
    return _BLOCK.findall(text)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if _BLOCK.search(page.read_text(encoding="utf-8"))],
    ids=lambda page: page.stem,
)
def test_every_block_runs(page: Path, spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "puredelta": puredelta, "__name__": "page"}
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
        puredelta.deactivate()
        spark.conf.unset("spark.databricks.delta.write.txnAppId")
        spark.conf.unset("spark.databricks.delta.write.txnVersion")


def test_pages_are_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.relative_to(ROOT / "docs").as_posix() in navigation
