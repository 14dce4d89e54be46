"""What a gathering leaves behind where workers cannot do it, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from puredelta.log.table_log import TableLog
from puredelta.spark.rewriting import Refused
from puredelta.spark.row_gatherer import Selection, gather
from puredelta.spark.written_files import WriteResult
from tests.commands.merge.tables import lay_table
from tests.spark.files import write_file
from tests.spark.local_workers import LocalWorkers


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "t", pa.schema([("id", pa.int64())]), [])


def gathered(log: TableLog, workers: LocalWorkers) -> WriteResult | Refused:
    """Gather all rows of two files in a task each."""
    outside = Path(log.root_uri.removeprefix("file:")).parent
    files = tuple(write_file(outside / f"{n}.parquet", {"id": [n, n + 10]}) for n in range(2))
    selection = Selection(
        files=files,
        group_rows=((2,), (2,)),
        size_bytes=1 << 30,
        rows={},
        keeps=False,
        columns=(("id", "id", pa.int64()),),
    )
    session: Any = workers
    config = log.snapshot().config
    return gather(session, selection, store=log.store, config=config, codec="snappy")


def files_of(log: TableLog) -> list[str]:
    root = Path(log.root_uri.removeprefix("file:"))
    return [path.name for path in root.rglob("*") if "_delta_log" not in path.parts]


def test_all_rows_are_written(log: TableLog) -> None:
    done = gathered(log, LocalWorkers())
    assert isinstance(done, WriteResult)
    assert done.num_rows == 4
    assert sorted(files_of(log)) == sorted(
        [done.directory, *(add.path.rpartition("/")[2] for add in done.adds)]
    )


@pytest.mark.parametrize("able_tasks", [0, 1])
def test_workers_without_the_libraries_leave_nothing(log: TableLog, able_tasks: int) -> None:
    refused = gathered(log, LocalWorkers(able_tasks=able_tasks))
    assert isinstance(refused, Refused)
    assert "ModuleNotFoundError" in refused.reason
    assert files_of(log) == []
