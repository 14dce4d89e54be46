"""What a gathering leaves behind where workers cannot do it, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from puredelta.log.replay.table_log import TableLog
from puredelta.spark.offload import source_copy
from puredelta.spark.offload.source_copy import Selection, plan_copy
from puredelta.spark.offload.write_job import write_alone
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.write.written_files import WriteResult
from tests.commands.dml.tables import lay_table
from tests.spark.files import write_file
from tests.spark.local_workers import LocalWorkers


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "t", pa.schema([("id", pa.int64())]), [])


def gathered(log: TableLog, workers: LocalWorkers) -> WriteResult | NotApplicable:
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
    context: Any = workers.sparkContext
    plan = plan_copy(
        selection,
        store=log.store,
        config=log.snapshot().config,
        codec="snappy",
        parallelism=context.defaultParallelism,
    )
    return write_alone(context, plan)


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
    assert isinstance(refused, NotApplicable)
    assert "ModuleNotFoundError" in refused.reason
    assert files_of(log) == []


def selected(rows: dict[int, list[int]], *, keeps: bool, size_bytes: int = 1 << 20) -> Selection:
    """Choose among the rows of two files, of three row groups each, a hundred rows a group."""
    return Selection(
        files=tuple(DataFile(uri=f"file:///s/{n}.parquet", size_bytes=1) for n in range(2)),
        group_rows=((100, 100, 100), (100, 0, 100)),
        size_bytes=size_bytes,
        rows={n: RowBitmap.of_rows(np.array(some, np.int64)) for n, some in rows.items()},
        keeps=keeps,
        columns=(("id", "id", pa.int64()),),
    )


def groups_read(selection: Selection, parallelism: int = 1) -> list[list[tuple[str, Any, int]]]:
    """Return what every task reads: path, row groups, first row."""
    made: list[Any] = source_copy._orders(selection, parallelism, "/t/new", "snappy")
    return [
        [(Path(path).name, groups, first) for path, groups, first, *_ in one[1]] for one in made
    ]


def test_row_groups_without_a_chosen_row_are_not_read() -> None:
    chosen = selected({0: [5, 299]}, keeps=True)
    assert groups_read(chosen) == [[("0.parquet", (0,), 0), ("0.parquet", (2,), 200)]]
    left_out = selected({0: list(range(100, 300)), 1: list(range(199))}, keeps=False)
    assert groups_read(left_out) == [[("0.parquet", (0,), 0), ("1.parquet", (2,), 100)]]
    assert groups_read(selected({}, keeps=True)) == []


def test_tasks_get_the_marks_of_their_rows_only() -> None:
    """A file of many row groups may be read in many places."""

    def words(selection: Selection) -> list[list[int]]:
        made: list[Any] = source_copy._orders(selection, 1, "/t/new", "snappy")
        return [np.frombuffer(some, "<i8").tolist() for one in made for *_, some, _ in one[1]]

    assert words(selected({0: [5, 150, 250, 299]}, keeps=True)) == [[0, 2, 3, 4]]
    assert words(selected({0: [5, 250, 299]}, keeps=True)) == [[0], [3, 4]]


@pytest.mark.parametrize(
    ("megabytes", "keeps", "tasks"),
    [
        (1, False, 1),  # not worth two
        (100, False, 2),  # as many as run at a time
        (500, False, 4),  # files of 128 MB
        (4000, True, 4),  # few rows, but no task reads more than 1 GB
    ],
)
def test_tasks_are_few_and_none_is_long(megabytes: int, *, keeps: bool, tasks: int) -> None:
    rows = {0: [1, 101, 201], 1: [1, 101]} if keeps else {}
    chosen = selected(rows, keeps=keeps, size_bytes=megabytes << 20)
    assert len(groups_read(chosen, parallelism=2)) == tasks
