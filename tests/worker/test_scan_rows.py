"""Parts of data files as rows for Spark."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.files import DataPath
from puredelta.worker.read_rows import OnlySparkError
from puredelta.worker.scan_rows import (
    FILE_PARTS,
    SCAN_LAYOUTS,
    FilePart,
    ScanError,
    ScanLayout,
    read_part,
    read_parts,
)
from puredelta.worker.wire import INT96, LIMITS, OLD_TIMES, Limits
from tests.worker.expressions import group_condition

DATA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def layout(**more: Any) -> ScanLayout:
    values: dict[str, Any] = {
        "data": DATA,
        "constants": pa.schema([("p", pa.int32())]),
        "row_index": "row",
        "by_field_id": False,
        "case_sensitive": False,
        "skips_missing": False,
    }
    return ScanLayout(**{**values, **more})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = pa.table(
        {"ID": pa.array(range(1000), pa.int32()), "text": [f"t{n}" for n in range(1000)]}
    )
    pq.write_table(rows, tmp_path / "f.parquet", row_group_size=100)
    return tmp_path / "f.parquet"


def part(path: Path, start: int = 0, stop: int | None = None) -> FilePart:
    size = path.stat().st_size if path.exists() else 9
    stop = size if stop is None else stop
    return FilePart(path=str(path), start=start, stop=stop, size=size, constants=(7,))


def rows_of(wanted: ScanLayout, *parts: FilePart) -> pa.Table:
    batches = [batch for one in parts for batch in read_part(wanted, one)]
    return pa.Table.from_batches(batches)


def test_a_part_has_the_columns_asked_for_in_their_types(file: Path) -> None:
    rows = rows_of(layout(), part(file))
    assert rows.schema.names == ["id", "text", "p", "row"]
    assert rows["id"].type == pa.int64()
    assert rows["id"].to_pylist() == rows["row"].to_pylist() == list(range(1000))
    assert set(rows["p"].to_pylist()) == {7}


@pytest.mark.parametrize("step", [1, 700, 2_000, 5_000, 1 << 20])
def test_parts_have_each_row_once_wherever_the_file_is_cut(file: Path, step: int) -> None:
    size = file.stat().st_size
    step = max(step, size // 50)
    cuts = [(at, min(at + step, size)) for at in range(0, size, step)]
    rows = rows_of(layout(), *(part(file, *cut) for cut in cuts))
    assert rows["id"].to_pylist() == rows["row"].to_pylist() == list(range(1000))


def test_rows_are_counted_where_no_column_is_read(file: Path) -> None:
    limits = Limits(read_rows=30)
    rows = rows_of(layout(data=pa.schema([]), limits=limits), part(file))
    assert rows.schema.names == ["p", "row"]
    assert rows["row"].to_pylist() == list(range(1000))


def test_a_column_that_the_file_lacks_is_null(file: Path) -> None:
    wanted = pa.schema([("new", pa.list_(pa.string())), ("id", pa.int64())])
    rows = rows_of(layout(data=wanted), part(file))
    assert rows["new"].null_count == 1000
    only = rows_of(layout(data=pa.schema([("new", pa.string())])), part(file))
    assert only["new"].null_count == 1000


def test_a_file_without_field_ids_is_not_null_in_every_column(file: Path) -> None:
    numbered = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    with pytest.raises(ScanError, match=r"f\.parquet cannot be read by Arrow: it has no field ids"):
        rows_of(layout(data=numbered, by_field_id=True), part(file))
    assert rows_of(layout(data=pa.schema([]), by_field_id=True), part(file)).num_rows == 1000


def test_an_object_is_read_as_a_file_is(file: Path) -> None:
    size = file.stat().st_size
    store: DataPath = ((f"file://{file.parent}", pickle.dumps({})), "f.parquet", size)
    one = FilePart(path=store, start=0, stop=size, size=size, constants=(7,))
    assert rows_of(layout(), one) == rows_of(layout(), part(file))


def test_parts_travel_as_rows(file: Path) -> None:
    message = pickle.dumps([FILE_PARTS.encode(part(file))])
    batches = [pa.RecordBatch.from_arrays([pa.array([message, message])], ["parts"])]
    found = list(read_parts(SCAN_LAYOUTS.encode(layout()), batches))
    assert sum(batch.num_rows for batch in found) == 2000


def test_a_missing_file_is_an_error_that_names_it_unless_it_may_be_missing(tmp_path: Path) -> None:
    gone = part(tmp_path / "gone.parquet")
    with pytest.raises(ScanError, match=r"gone\.parquet"):
        list(read_part(layout(), gone))
    assert list(read_part(layout(skips_missing=True), gone)) == []


def test_a_damaged_file_is_an_error_even_if_files_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(ScanError, match=r"x\.parquet"):
        list(read_part(layout(skips_missing=True), part(tmp_path / "x.parquet")))


@pytest.mark.parametrize(
    ("cause", "is_told"), [(OSError("no token"), True), (FileNotFoundError("gone"), False)]
)
def test_an_object_that_cannot_be_reached_says_where_its_storage_is_set(
    monkeypatch: pytest.MonkeyPatch, cause: OSError, is_told: bool
) -> None:
    def opened(_: DataPath, *, describes: bool) -> Any:
        raise OnlySparkError(str(cause)) from cause

    monkeypatch.setattr("puredelta.worker.scan_rows.opened", opened)
    path = (("s3://bucket", b""), "t/f.parquet", 9)
    part = FilePart(path=path, start=0, stop=9, size=9, constants=(1,))
    with pytest.raises(ScanError, match=r"s3://bucket/t/f\.parquet") as raised:
        list(read_part(layout(), part))
    assert ("spark.puredelta.storage." in str(raised.value)) is is_told


def test_row_groups_without_a_row_of_a_condition_are_not_read(file: Path) -> None:
    """Rows that are left keep their places in the file."""
    found = rows_of(layout(condition=group_condition(("equal", "id", 250))), part(file))
    assert found["row"].to_pylist() == found["id"].to_pylist() == list(range(200, 300))
    where = group_condition(("or_kleene", (("less", "id", 50), ("starts_with", "text", "t99"))))
    found = rows_of(layout(condition=where), part(file))
    assert found["row"].to_pylist() == [*range(100), *range(900, 1000)]
    nothing = list(read_part(layout(condition=group_condition(("equal", "id", 5000))), part(file)))
    assert nothing == []


def test_days_of_another_calendar_are_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    table = pa.table({"id": [1, 2], "text": ["a", "b"]})
    old = table.replace_schema_metadata({"org.apache.spark.version": "2.4.0"})
    pq.write_table(old, path)
    assert rows_of(layout(condition=group_condition(("equal", "id", 9))), part(path)).num_rows == 2


def test_what_settings_of_the_session_move_is_refused(tmp_path: Path) -> None:
    """Spark reads old dates and INT96 otherwise then; a file that names its calendar is as ever."""
    path, old = tmp_path / "f.parquet", pa.array([-700_000], pa.date32())
    stamps = pa.array([10**18], pa.timestamp("ns"))
    table = pa.table({"d": old, "ts": stamps})
    wanted = pa.schema([("d", pa.date32()), ("ts", pa.timestamp("us", "UTC"))])
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    for word, column in ((INT96, "ts"), (OLD_TIMES, "d")):
        moved = replace(LIMITS, only_spark=(word,))
        data = pa.schema([wanted.field(column)])
        with pytest.raises(ScanError, match=r"INT96|days from 1970"):
            rows_of(layout(data=data, limits=moved), part(path))
        assert rows_of(layout(data=data), part(path)).num_rows == 1
    marked = table.replace_schema_metadata({"org.apache.spark.version": "4.0.0"})
    pq.write_table(marked, path)
    of_spark = layout(
        data=pa.schema([wanted.field("d")]), limits=replace(LIMITS, only_spark=(OLD_TIMES,))
    )
    assert rows_of(of_spark, part(path)).num_rows == 1
