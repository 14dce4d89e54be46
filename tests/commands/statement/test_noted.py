"""How far a conversion is: what it notes while it reads footers, and what its log says."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from puredelta.commands.command import command_on
from puredelta.commands.convert.plan import plan_conversion
from puredelta.commands.convert.target import ConversionTarget, find_target
from puredelta.commands.statement.progress import counted, note_nothing
from puredelta.spark.session.storage import open_log


def test_every_256th_file_is_noted() -> None:
    notes: list[str] = []
    assert list(counted(range(600), 600, notes.append)) == list(range(600))
    assert notes == [f"reading footers, {n}/600 files" for n in (0, 256, 512)]


def test_nothing_is_read_ahead_of_what_is_asked_for() -> None:
    notes: list[str] = []
    files = counted(iter(range(3)), 3, notes.append)
    assert notes == []
    assert next(files) == 0
    assert notes == ["reading footers, 0/3 files"]


@pytest.mark.parametrize(("logged_every_s", "lines"), [(-1.0, 2), (3600.0, 0)])
def test_the_log_says_it_now_and_then(
    caplog: pytest.LogCaptureFixture, logged_every_s: float, lines: int
) -> None:
    caplog.set_level(logging.INFO, "puredelta")
    list(counted(range(300), 300, note_nothing, logged_every_s=logged_every_s))
    assert len(caplog.messages) == lines
    assert all("CONVERT TO DELTA: reading footers, " in text for text in caplog.messages)


@pytest.mark.spark
def test_a_conversion_notes_the_footers_that_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    for name in "abc":
        pq.write_table(pa.table({"id": [1]}), tmp_path / f"{name}.parquet")
    target = find_target(spark, f"parquet.`{tmp_path}`", None)
    assert isinstance(target, ConversionTarget)
    command = command_on(spark, open_log(spark, target.location), None, target.capability)
    notes: list[str] = []
    plan = plan_conversion(command, target, collect_stats=True, note=notes.append)
    assert len(plan.listed) == 3
    assert notes == ["listing files", "reading footers, 0/3 files"]
