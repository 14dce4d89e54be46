"""When files of somebody else are as good as staged ones; no session is needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from puredelta.commands.dml import staged_source as module
from puredelta.commands.dml.staged_source import SourceFiles, reads_alike, source_files
from puredelta.errors import DeltaError, ErrorCode
from puredelta.protocol.schema.types import DATE, LONG
from puredelta.protocol.table.stats import LeafStatistics
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.scan.plain_scan import PlainScan
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.session.types import from_spark_type

ID = T.StructField("id", T.LongType())
NAME = T.StructField("name", T.StringType())


def lay(path: Path, columns: dict[str, Any], **options: Any) -> DataFile:
    pq.write_table(pa.table(columns), path, **options)
    found = path.stat()
    return DataFile(
        uri=f"file:{path}", size_bytes=found.st_size, modified_ms=found.st_mtime_ns // 1_000_000
    )


def described(
    *files: DataFile, is_table: bool = False, key: str = "id"
) -> SourceFiles | NotApplicable:
    scan = PlainScan(files=files, fields=(ID, NAME), is_table=is_table)
    return source_files(scan, wanted=[ID, NAME], keys={key})


def refusal(*files: DataFile, **options: Any) -> str:
    found = described(*files, **options)
    assert isinstance(found, NotApplicable)
    return found.reason


@pytest.fixture
def one(tmp_path: Path) -> DataFile:
    """Ids 1 to 3, and a column that nobody wants."""
    columns = {"id": [1, 2, 3], "name": ["a", "b", None], "more": ["x" * 999] * 3}
    return lay(tmp_path / "one.parquet", columns, row_group_size=2)


def test_footers_tell_rows_bounds_and_bytes(tmp_path: Path, one: DataFile) -> None:
    more = lay(tmp_path / "more.parquet", {"id": [None, 9], "name": ["c", "d"]})
    none = lay(
        tmp_path / "none.parquet", {"id": pa.array([], "int64"), "name": pa.array([], "string")}
    )
    found = described(one, none, more)
    assert isinstance(found, SourceFiles)
    assert found.rows.group_rows == ((2, 1), (2,))
    assert found.rows.row_counts == (3, 2)
    assert found.rows.files == (one, more), "a file without rows is left out"
    assert found.rows.columns == {("id",): LeafStatistics(1, 9, 1)}, "keys only"
    assert 0 < found.column_bytes < one.size_bytes
    assert set(found.watched) == {one.uri, none.uri, more.uri}
    found.require_unchanged()


def test_files_are_not_ours_to_remove(one: DataFile) -> None:
    found = described(one)
    assert isinstance(found, SourceFiles)
    store: Any = None
    found.rows.remove(store)
    assert Path(one.uri.removeprefix("file:")).exists()


@pytest.mark.parametrize(
    "columns",
    [
        {"id": [1]},
        {"ID": [1], "name": ["a"]},
        {"id": [1], "name": ["a"], "NAME": ["b"]},
    ],
)
def test_every_file_has_the_columns_as_they_are_spelt(
    tmp_path: Path, one: DataFile, columns: dict[str, Any]
) -> None:
    assert "does not have exactly the column" in refusal(
        one, lay(tmp_path / "two.parquet", columns)
    )


def test_a_key_in_another_form(tmp_path: Path, one: DataFile) -> None:
    narrow = lay(tmp_path / "two.parquet", {"id": pa.array([1], "int32"), "name": ["a"]})
    assert "stores the key id in another form" in refusal(one, narrow)
    assert isinstance(described(one, narrow, key="name"), SourceFiles), "Spark reads that"


@pytest.mark.parametrize(
    ("kind", "stored", "alike"),
    [
        (T.LongType(), pa.int64(), True),
        (T.LongType(), pa.uint64(), False),
        (T.ShortType(), pa.int16(), True),
        (T.StringType(), pa.string(), True),
        (T.StringType(), pa.dictionary(pa.int32(), pa.large_string()), True),
        (T.StringType(), pa.binary(), False),
        (T.DecimalType(10, 2), pa.decimal128(10, 2), True),
        (T.DecimalType(10, 2), pa.decimal128(9, 2), False),
        (T.TimestampType(), pa.timestamp("us", "UTC"), True),
        (T.TimestampType(), pa.timestamp("ns"), False),  # INT96
        (T.TimestampType(), pa.timestamp("ms", "UTC"), False),
        (T.TimestampNTZType(), pa.timestamp("us"), True),
        (T.DayTimeIntervalType(), pa.int64(), False),
        (T.StructType([ID]), pa.struct([("id", pa.int32())]), True),
    ],
)
def test_values_that_arrow_reads_as_spark_does(
    kind: T.DataType, stored: pa.DataType, alike: bool
) -> None:
    assert reads_alike(from_spark_type(kind), stored, hybrid_calendar=False) is alike


def test_the_hybrid_calendar_is_sparks_alone() -> None:
    assert not reads_alike(DATE, pa.date32(), hybrid_calendar=True)
    assert reads_alike(LONG, pa.int64(), hybrid_calendar=True)


def test_a_file_that_is_not_the_one_listed(tmp_path: Path, one: DataFile) -> None:
    path = Path(one.uri.removeprefix("file:"))
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))
    assert "not as it was listed" in refusal(one)
    assert isinstance(described(one, is_table=True), SourceFiles), "what a log says is a hint"
    path.write_bytes(path.read_bytes() + b"more")
    assert "not as it was listed" in refusal(one, is_table=True)
    path.unlink()
    assert "not as it was listed" in refusal(one)


def test_files_that_cannot_be_used(tmp_path: Path, one: DataFile) -> None:
    assert "ignores files" in refusal(lay(tmp_path / "_hidden.parquet", {"id": [1], "name": ["a"]}))
    text = tmp_path / "text.parquet"
    text.write_text("no Parquet at all")
    assert "does not end with" in refusal(
        DataFile(uri=f"file:{text}", size_bytes=17, modified_ms=text.stat().st_mtime_ns // 10**6)
    )
    assert "are small" in refusal(*[one] * 65)
    reserved = PlainScan(files=(one,), fields=(ID,), is_table=False)
    for name in ("_metadata", "__puredelta_file"):
        field = T.StructField(name, T.LongType())
        assert source_files(reserved, wanted=[field], keys=()) == NotApplicable(
            reason="a column has a reserved name"
        )


@pytest.mark.parametrize("change", ["touched", "gone"])
def test_a_change_is_noticed(one: DataFile, change: str) -> None:
    found = described(one)
    assert isinstance(found, SourceFiles)
    path = Path(one.uri.removeprefix("file:"))
    if change == "gone":
        path.unlink()
    else:
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    with pytest.raises(DeltaError, match=r"not deterministic.*Nothing was committed") as raised:
        found.require_unchanged()
    assert raised.value.code is ErrorCode.MERGE_SOURCE_CHANGED
    assert "materializeSource" in raised.value.message


def test_text_of_any_layout_is_of_one_type() -> None:
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.large_string())):
        assert module.plain_type(kind) == pa.string()
    assert module.plain_type(pa.large_binary()) == pa.binary()
    assert module.plain_type(pa.int8()) == pa.int8()
