"""The examples of ``docs/explain.md``, one after the other as a reader would run them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import puredelta

PAGE = Path(__file__).parents[3] / "docs" / "explain.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def logging_as_it_was() -> Iterator[None]:
    loggers = [logging.getLogger(f"puredelta{part}") for part in ("", ".stage", ".statement")]
    before = [(logger, list(logger.handlers), logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)


@pytest.mark.usefixtures("logging_as_it_was")
def test_every_example_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "events")
    puredelta.write(spark.range(30).selectExpr("id", "'fine' as state").coalesce(1), path)
    names = {"spark": spark, "path": path}
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) >= 6
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert "MERGE of file:" in shown
    assert "_change_type" in shown
    assert "DELETE of file:" in shown
