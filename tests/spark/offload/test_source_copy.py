"""What a copy of source rows leaves behind, and what its tasks read, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from puredelta.log.replay.table_log import TableLog
from puredelta.spark.offload.source_copy import (
    RowGroup,
    SourceCopy,
    copy_orders,
    cut_into_runs,
    plan_copy,
)
from puredelta.spark.offload.workers import WorkerSettings
from puredelta.spark.offload.write_job import write_alone
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.write.written_files import WriteResult
from puredelta.worker.data_files.copy_rows import CopyOrder
from puredelta.worker.files import label
from tests.commands.dml.tables import lay_table
from tests.spark.files import write_file
from tests.spark.local_workers import LocalWorkers


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "t", pa.schema([("id", pa.int64())]), [])


SETTINGS = WorkerSettings()


def copied(log: TableLog, workers: LocalWorkers) -> WriteResult | NotApplicable:
    """Copy all rows of two files in a task each."""
    outside = Path(log.root_uri.removeprefix("file:")).parent
    files = tuple(write_file(outside / f"{n}.parquet", {"id": [n, n + 10]}) for n in range(2))
    chosen = SourceCopy(
        files=files,
        group_rows=((2,), (2,)),
        size_bytes=1 << 30,
        rows={},
        include=False,
        columns=(("id", "id", pa.int64()),),
    )
    session: Any = workers
    plan = plan_copy(
        chosen,
        SETTINGS,
        store=log.store,
        config=log.snapshot().config,
        codec="snappy",
        spark=session,
    )
    return write_alone(session, plan, SETTINGS)


def files_of(log: TableLog) -> list[str]:
    root = Path(log.root_uri.removeprefix("file:"))
    return [path.name for path in root.rglob("*") if "_delta_log" not in path.parts]


def test_all_rows_are_written(log: TableLog) -> None:
    done = copied(log, LocalWorkers())
    assert isinstance(done, WriteResult)
    assert done.num_rows == 4
    assert sorted(files_of(log)) == sorted(
        [*done.directories, *(add.path.rpartition("/")[2] for add in done.adds)]
    )


@pytest.mark.parametrize("able_tasks", [0, 1])
def test_workers_without_the_libraries_leave_nothing(log: TableLog, able_tasks: int) -> None:
    refused = copied(log, LocalWorkers(able_tasks=able_tasks))
    assert isinstance(refused, NotApplicable)
    assert "ModuleNotFoundError" in refused.reason
    assert files_of(log) == []


def selected(rows: dict[int, list[int]], *, include: bool, size_bytes: int = 1 << 20) -> SourceCopy:
    """Choose among the rows of two files, of three row groups each, a hundred rows a group."""
    return SourceCopy(
        files=tuple(DataFile(uri=f"file:///s/{n}.parquet", size_bytes=1) for n in range(2)),
        group_rows=((100, 100, 100), (100, 0, 100)),
        size_bytes=size_bytes,
        rows={n: RowBitmap.of_rows(np.array(some, np.int64)) for n, some in rows.items()},
        include=include,
        columns=(("id", "id", pa.int64()),),
    )


def orders_of(chosen: SourceCopy, parallelism: int = 1) -> list[CopyOrder]:
    return copy_orders(
        chosen,
        SETTINGS,
        paths=[f"/s/{n}.parquet" for n in range(len(chosen.files))],
        parallelism=parallelism,
        directory="/t/new",
        codec="snappy",
    )


def groups_read(chosen: SourceCopy, parallelism: int = 1) -> list[list[tuple[str, Any, int]]]:
    """Return what every task reads: path, row groups, first row."""
    return [
        [(Path(label(one.path)).name, one.groups, one.first_row) for one in order.sources]
        for order in orders_of(chosen, parallelism)
    ]


def test_row_groups_without_a_chosen_row_are_not_read() -> None:
    chosen = selected({0: [5, 299]}, include=True)
    assert groups_read(chosen) == [[("0.parquet", (0,), 0), ("0.parquet", (2,), 200)]]
    left_out = selected({0: list(range(100, 300)), 1: list(range(199))}, include=False)
    assert groups_read(left_out) == [[("0.parquet", (0,), 0), ("1.parquet", (2,), 100)]]
    assert groups_read(selected({}, include=True)) == []


def test_tasks_get_the_marks_of_their_rows_only() -> None:
    """A file of many row groups may be read in many places."""

    def words(chosen: SourceCopy) -> list[list[int]]:
        sources = [one for order in orders_of(chosen) for one in order.sources]
        return [np.frombuffer(one.words, "<i8").tolist() for one in sources]

    assert words(selected({0: [5, 150, 250, 299]}, include=True)) == [[0, 2, 3, 4]]
    assert words(selected({0: [5, 250, 299]}, include=True)) == [[0], [3, 4]]


@pytest.mark.parametrize(
    ("megabytes", "include", "tasks"),
    [
        (1, False, 1),  # not worth two
        (100, False, 2),  # as many as run at a time
        (500, False, 4),  # files of 128 MB
        (4000, True, 4),  # few rows, but no task reads more than 1 GB
    ],
)
def test_tasks_are_few_and_none_is_long(megabytes: int, *, include: bool, tasks: int) -> None:
    rows = {0: [1, 101, 201], 1: [1, 101]} if include else {}
    chosen = selected(rows, include=include, size_bytes=megabytes << 20)
    assert len(groups_read(chosen, parallelism=2)) == tasks


def test_row_groups_are_cut_into_runs_in_order() -> None:
    groups = [RowGroup(n // 4, n % 4, 100 * (n % 4), 100) for n in range(10)]
    for num_runs in (1, 2, 3, 10, 50):
        runs = cut_into_runs(groups, num_runs)
        assert [group for run in runs for group in run] == groups
        assert all(runs)
        assert len(runs) == min(num_runs, len(groups))
        assert max(map(len, runs)) - min(map(len, runs)) <= 1
    skewed = [RowGroup(0, 0, 0, 1000), *(RowGroup(1, n, n, 1) for n in range(5))]
    assert [len(run) for run in cut_into_runs(skewed, 2)] in ([1, 5], [6])
    assert cut_into_runs([], 3) == []


@pytest.mark.parametrize(
    ("megabytes", "parallelism", "threads"), [(1, 1, 1), (1, 3, 3), (100, 2, 1), (1, 64, 4)]
)
def test_cores_without_a_task_decode_columns(
    megabytes: int, parallelism: int, threads: int
) -> None:
    chosen = selected({}, include=False, size_bytes=megabytes << 20)
    orders = orders_of(chosen, parallelism)
    assert {order.limits.decoding_threads for order in orders} == {threads}
