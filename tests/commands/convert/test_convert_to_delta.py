"""CONVERT TO DELTA from footers alone (W-22): no Spark job runs in any of these."""

from __future__ import annotations

import errno
import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from puredelta.commands.convert.convert_to_delta import (
    ALREADY_DELTA,
    ConvertResult,
    convert_to_delta,
)
from puredelta.errors import (
    ConcurrentWriteException,
    CorruptTableError,
    DeltaError,
    InvalidRequestError,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.log.commit.commit_request import Phase
from puredelta.store.base import StorageError
from tests.commands.convert.directories import (
    adds,
    contents,
    first_commit,
    schema,
    write,
)
from tests.commands.sessions import FakeSession

DEFAULTS = "spark.databricks.delta.properties.defaults."


def convert(root: Path, partition_schema: T.StructType | None = None, **options) -> ConvertResult:
    session = FakeSession(**options.pop("settings", {}))
    return convert_to_delta(session, f"parquet.`{root}`", partition_schema, **options)


def columns(**types: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in types.items()])


def require_untouched(root: Path, act: Callable[[], object], kind: type[DeltaError]) -> DeltaError:
    """Run what must fail, and check that the directory is as before."""
    before = contents(root)
    with pytest.raises(kind) as refused:
        act()
    assert contents(root) == before
    assert not (root / "_delta_log").exists()
    return refused.value


# --- what is committed ------------------------------------------------------------------------


def test_one_commit_with_everything_in_it(tmp_path: Path) -> None:
    """C-50, C-53 to C-56."""
    write(tmp_path, "b/part-1", {"id": [3], "s": ["x"]})
    write(tmp_path, "a.parquet", {"id": [1, 2], "s": ["y", None]})
    before = contents(tmp_path)
    result = convert(tmp_path)
    assert (result.location, result.version, result.num_files) == (f"file:{tmp_path}", 0, 2)
    assert not result.already_delta
    assert contents(tmp_path) == before, "data files are never touched (C-61)"

    commit = first_commit(tmp_path)
    assert list(commit) == ["commitInfo", "metaData", "protocol", "add"]  # C-55
    info = commit["commitInfo"][0]
    assert info["operation"] == "CONVERT"
    assert info["operationParameters"] == {
        "numFiles": 2,
        "partitionedBy": "[]",
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    assert info["readVersion"] == -1
    assert info["isBlindAppend"] is False
    assert info["isolationLevel"] == "Serializable"
    assert info["operationMetrics"] == {"numConvertedFiles": "2"}
    assert info["engineInfo"].startswith("Apache-Spark/4.1.0 puredelta/")
    assert commit["protocol"] == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    assert commit["metaData"][0]["partitionColumns"] == []
    assert commit["metaData"][0]["format"] == {"provider": "parquet", "options": {}}
    assert schema(tmp_path) == {"id": "long", "s": "string"}

    assert list(adds(tmp_path)) == ["a.parquet", "b/part-1"]
    add = adds(tmp_path)["a.parquet"]
    file = tmp_path / "a.parquet"
    assert add["size"] == file.stat().st_size
    assert add["modificationTime"] == file.stat().st_mtime_ns // 1_000_000
    assert add["dataChange"] is True
    assert add["partitionValues"] == {}
    assert add["stats"] == {
        "numRecords": 2,
        "minValues": {"id": 1, "s": "y"},
        "maxValues": {"id": 2, "s": "y"},
        "nullCount": {"id": 0, "s": 1},
    }


def test_c_58_a_checkpoint_lies_beside_version_0(tmp_path: Path) -> None:
    write(tmp_path, "f", {"id": [1]})
    convert(tmp_path)
    log = tmp_path / "_delta_log"
    assert {p.name for p in log.iterdir()} == {
        f"{0:020d}.json",
        f"{0:020d}.checkpoint.parquet",
        "_last_checkpoint",
    }
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 0


def test_partitions(tmp_path: Path) -> None:
    """C-35, C-43, C-47, C-50."""
    write(tmp_path, "Day=2024-01-01/place=10%3A00 a/f", {"v": [1]})
    write(tmp_path, "day=__HIVE_DEFAULT_PARTITION__/place=b%25/f", {"v": [2]})
    convert(tmp_path, columns(day=T.DateType(), place=T.StringType()))
    assert schema(tmp_path) == {"v": "long", "day": "date", "place": "string"}
    assert first_commit(tmp_path)["metaData"][0]["partitionColumns"] == ["day", "place"]
    parameters = first_commit(tmp_path)["commitInfo"][0]["operationParameters"]
    assert parameters["partitionedBy"] == '["day","place"]'
    assert {path: add["partitionValues"] for path, add in adds(tmp_path).items()} == {
        "Day=2024-01-01/place=10%253A00%20a/f": {"day": "2024-01-01", "place": "10:00 a"},
        "day=__HIVE_DEFAULT_PARTITION__/place=b%2525/f": {"day": None, "place": "b%"},
    }
    assert adds(tmp_path)["Day=2024-01-01/place=10%253A00%20a/f"]["stats"] == {
        "numRecords": 1,
        "minValues": {"v": 1},
        "maxValues": {"v": 1},
        "nullCount": {"v": 0},
    }


def test_c_35_c_63_partition_columns_may_be_in_the_files_too(tmp_path: Path) -> None:
    write(tmp_path, "k=1/f", {"z": [1], "K": ["7"], "b": [1]})
    convert(tmp_path, columns(k=T.IntegerType()))
    assert list(schema(tmp_path).items()) == [("z", "long"), ("k", "integer"), ("b", "long")]
    assert set(adds(tmp_path)["k=1/f"]["stats"]["nullCount"]) == {"z", "b"}


def test_c_28_values_above_the_directory_are_not_parsed(tmp_path: Path) -> None:
    root = tmp_path / "key1=1"
    write(root, "key2=2/f", {"v": [1]})
    convert(root, columns(key2=T.IntegerType()))
    assert adds(root)["key2=2/f"]["partitionValues"] == {"key2": "2"}


# --- statistics -------------------------------------------------------------------------------


def test_c_52_no_statistics_at_all(tmp_path: Path) -> None:
    write(tmp_path, "f", {"id": [1]})
    convert(tmp_path, collect_stats=False)
    assert adds(tmp_path)["f"]["stats"] is None
    assert first_commit(tmp_path)["commitInfo"][0]["operationParameters"]["collectStats"] is False


def test_c_52_the_setting_wins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "f", {"id": [1]})
    convert(tmp_path, settings={"spark.databricks.delta.stats.collect": "false"})
    assert adds(tmp_path)["f"]["stats"] is None
    assert "spark.databricks.delta.stats.collect is false" in caplog.text


def test_c_25_w_23_files_without_rows_are_counted_and_listed(tmp_path: Path) -> None:
    table = pa.table({"id": [1]})
    write(tmp_path, "a", table)
    write(tmp_path, "b", table.slice(0, 0))
    assert convert(tmp_path).num_files == 2
    assert adds(tmp_path)["b"]["stats"]["numRecords"] == 0
    assert first_commit(tmp_path)["commitInfo"][0]["operationMetrics"] == {"numConvertedFiles": "2"}


def test_c_51b_floats_of_arrow_have_no_bounds(tmp_path: Path) -> None:
    """Arrow leaves NaN out of its bounds; Spark orders it above everything."""
    write(tmp_path, "f", {"x": [1.0, math.nan], "y": pa.array([1.0, 2.0], pa.float32())})
    convert(tmp_path)
    stats = adds(tmp_path)["f"]["stats"]
    assert stats["nullCount"] == {"x": 0, "y": 0}
    assert "x" not in {**stats.get("minValues", {}), **stats.get("maxValues", {})}
    assert "y" not in {**stats.get("minValues", {}), **stats.get("maxValues", {})}


def test_c_51b_int96_has_no_bounds(tmp_path: Path) -> None:
    times = pa.table({"t": pa.array([1, 2], pa.timestamp("us"))})
    write(tmp_path, "f", times, use_deprecated_int96_timestamps=True)
    convert(tmp_path)
    assert schema(tmp_path) == {"t": "timestamp"}
    stats = adds(tmp_path)["f"]["stats"]
    assert not stats.get("minValues")
    assert not stats.get("maxValues")


def test_x_61_indexed_columns_follow_the_default_properties(tmp_path: Path) -> None:
    write(tmp_path, "f", {"a": [1], "b": [2], "c": [3]})
    convert(tmp_path, settings={f"{DEFAULTS}dataSkippingNumIndexedCols": "2"})
    assert set(adds(tmp_path)["f"]["stats"]["minValues"]) == {"a", "b"}


def test_statistics_are_those_of_the_merged_schema(tmp_path: Path) -> None:
    """The guess from the first and last file misses a column of the one between."""
    write(tmp_path, "a", {"id": [1]})
    write(tmp_path, "b", {"id": [2], "new": ["x"]})
    write(tmp_path, "c", {"id": [3]})
    convert(tmp_path)
    assert schema(tmp_path) == {"id": "long", "new": "string"}
    assert adds(tmp_path)["b"]["stats"]["minValues"] == {"id": 2, "new": "x"}
    assert adds(tmp_path)["a"]["stats"]["nullCount"] == {"id": 0, "new": 1}


def test_x_72_structs_that_share_the_names_of_their_fields(tmp_path: Path) -> None:
    """pyarrow calls two schemas equal whose leaves are, whatever structs they are in."""
    write(tmp_path, "f1", {"s": [{"x": 1}], "t": [{"y": 2}]})
    write(tmp_path, "f2", {"t": [{"x": 3}], "s": [{"y": 4}]})
    write(tmp_path, "f3", {"u": [{"x": 5}], "v": [{"y": 6}]})
    convert(tmp_path)
    found = {path: add["stats"]["minValues"] for path, add in adds(tmp_path).items()}
    assert found == {
        "f1": {"s": {"x": 1}, "t": {"y": 2}},
        "f2": {"t": {"x": 3}, "s": {"y": 4}},
        "f3": {"u": {"x": 5}, "v": {"y": 6}},
    }


# --- schema -----------------------------------------------------------------------------------


def test_w_28a_columns_are_ordered_by_the_paths_of_the_files(tmp_path: Path) -> None:
    write(tmp_path, "z", {"a": [1], "b": [1]})
    write(tmp_path, "m", {"c": [1], "a": [1]})
    write(tmp_path, "a", {"b": [1]})
    convert(tmp_path)
    assert list(schema(tmp_path)) == ["b", "c", "a"]


def test_c_38_names_that_differ_in_case_are_one_column(tmp_path: Path) -> None:
    write(tmp_path, "f1", {"a": [1]})
    write(tmp_path, "f2", {"A": [2]})
    convert(tmp_path)
    assert schema(tmp_path) == {"a": "long"}
    assert adds(tmp_path)["f2"]["stats"]["minValues"] == {"a": 2}


def test_c_30_small_integers_widen_and_everything_is_nullable(tmp_path: Path) -> None:
    required = pa.schema([pa.field("i", pa.int8(), nullable=False)])
    write(tmp_path, "f1", pa.table({"i": pa.array([1], pa.int8())}, required))
    write(tmp_path, "f2", {"i": pa.array([1], pa.int32())})
    convert(tmp_path)
    text = first_commit(tmp_path)["metaData"][0]["schemaString"]
    assert json.loads(text)["fields"] == [
        {"name": "i", "type": "integer", "nullable": True, "metadata": {}}
    ]


def test_x_55_timestamps_without_zone_raise_the_protocol(tmp_path: Path) -> None:
    write(tmp_path, "f", {"t": pa.array([1], pa.timestamp("us"))})
    convert(tmp_path)
    protocol = first_commit(tmp_path)["protocol"][0]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["timestampNtz"]
    assert "timestampNtz" in protocol["writerFeatures"]


SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"


def spark_file(root: Path, path: str, **fields: dict[str, Any]) -> None:
    """Write integers under a schema that Spark would have left in the footer."""
    table = pa.table({name: pa.array([1], pa.int32()) for name in fields})
    stated = [
        {"name": name, "nullable": False, "metadata": {}} | field for name, field in fields.items()
    ]
    text = json.dumps({"type": "struct", "fields": stated})
    write(root, path, table.replace_schema_metadata({SPARK_SCHEMA: text}))


def test_c_33_sparks_own_schema_wins(tmp_path: Path) -> None:
    spark_file(
        tmp_path,
        "f",
        b={
            "type": "byte",
            "metadata": {"comment": "small", "__CHAR_VARCHAR_TYPE_STRING": "char(3)"},
        },
        u={"type": {"type": "udt", "class": "x.Y", "sqlType": "integer"}},
    )
    convert(tmp_path)
    text = first_commit(tmp_path)["metaData"][0]["schemaString"]
    assert json.loads(text)["fields"] == [
        {"name": "b", "type": "byte", "nullable": True, "metadata": {"comment": "small"}},
        {"name": "u", "type": "integer", "nullable": True, "metadata": {}},
    ]


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ({"type": "interval day"}, "c: interval day"),
        ({"type": {"type": "array", "elementType": "time(6)", "containsNull": True}}, "time(6)"),
        (
            {"type": "string", "metadata": {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}},
            "c: string collate spark.UTF8_LCASE",
        ),
    ],
)
def test_types_no_table_can_have(tmp_path: Path, field: dict[str, Any], shown: str) -> None:
    spark_file(tmp_path, "odd", c=field)
    error = require_untouched(tmp_path, lambda: convert(tmp_path), InvalidRequestError)
    assert error.getErrorClass() == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert shown in error.message
    assert f"file:{tmp_path}/odd" in error.message


# --- refusals ---------------------------------------------------------------------------------


def test_missing_path(tmp_path: Path) -> None:
    error = require_untouched(tmp_path, lambda: convert(tmp_path / "absent"), TableNotFoundError)
    assert error.message == f"file:{tmp_path}/absent doesn't exist"


def test_empty_directory(tmp_path: Path) -> None:
    error = require_untouched(tmp_path, lambda: convert(tmp_path), InvalidRequestError)
    assert error.getErrorClass() == "DELTA_EMPTY_DIRECTORY"


def test_a_file_that_is_not_parquet(tmp_path: Path) -> None:
    write(tmp_path, "a", {"id": [1]})
    (tmp_path / "notes.txt").write_text("hello")
    write(tmp_path, "z", {"id": [1]})
    error = require_untouched(tmp_path, lambda: convert(tmp_path), CorruptTableError)
    assert error.getErrorClass() == "DELTA_FAILED_READ_FILE_FOOTER"
    assert f"Could not read footer for file: file:{tmp_path}/notes.txt" in error.message


@pytest.mark.parametrize("kept", [0, 4, -1, -300])
def test_a_corrupt_footer(tmp_path: Path, kept: int) -> None:
    file = write(tmp_path, "f.parquet", {"id": [1]})
    whole = file.read_bytes()
    file.write_bytes(whole[:kept] if kept >= 0 else whole[:kept] + b"\0" * (-kept - 8) + whole[-8:])
    error = require_untouched(tmp_path, lambda: convert(tmp_path), CorruptTableError)
    assert f"file:{tmp_path}/f.parquet" in error.message


def test_c_32_corrupt_files_can_be_left_out(tmp_path: Path) -> None:
    write(tmp_path, "b", {"id": [1]})
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "c").touch()
    result = convert(tmp_path, settings={"spark.sql.files.ignoreCorruptFiles": "true"})
    assert result.num_files == 1
    assert list(adds(tmp_path)) == ["b"]
    assert adds(tmp_path)["b"]["stats"]["numRecords"] == 1


def test_c_32_unless_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    settings = {"spark.sql.files.ignoreCorruptFiles": "true"}
    error = require_untouched(
        tmp_path, lambda: convert(tmp_path, settings=settings), InvalidRequestError
    )
    assert error.getErrorClass() == "DELTA_EMPTY_DIRECTORY"


def test_partition_mismatch(tmp_path: Path) -> None:
    write(tmp_path, "part=1/f", {"id": [1]})
    error = require_untouched(tmp_path, lambda: convert(tmp_path), InvalidRequestError)
    assert error.getErrorClass() == "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"


def test_c_31_schema_mismatch(tmp_path: Path) -> None:
    write(tmp_path, "a", {"id": [1], "v": [{"x": 1}]})
    write(tmp_path, "b", {"id": [1], "v": [{"x": "text"}]})
    error = require_untouched(tmp_path, lambda: convert(tmp_path), InvalidRequestError)
    assert error.getErrorClass() == "DELTA_FAILED_MERGE_SCHEMA_FILE"
    assert f"Failed to merge schema of file file:{tmp_path}/b:" in error.message
    assert " |-- v: struct<x:string> (nullable = true)" in error.message
    assert isinstance(error.__cause__, DeltaError)
    assert error.__cause__.getErrorClass() == "DELTA_FAILED_TO_MERGE_FIELDS"


@pytest.mark.parametrize(
    ("table", "error_class"),
    [
        ({"a": [1], "A": [1]}, "DELTA_FAILED_MERGE_SCHEMA_FILE"),
        ({}, "DELTA_FAILED_INFER_SCHEMA"),
    ],
)
def test_schemas_no_table_can_have(
    tmp_path: Path, table: dict[str, list[object]], error_class: str
) -> None:
    """X-07."""
    write(tmp_path, "f", table)
    error = require_untouched(tmp_path, lambda: convert(tmp_path), InvalidRequestError)
    assert error.getErrorClass() == error_class


@pytest.mark.parametrize(
    ("partition_schema", "error_class"),
    [
        (
            T.StructType([T.StructField("k", T.StringType()), T.StructField("K", T.StringType())]),
            "DELTA_DUPLICATE_COLUMNS_FOUND",
        ),
        (columns(k=T.ArrayType(T.IntegerType())), "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (columns(**{"k k": T.StringType()}), "DELTA_INVALID_PARTITION_COLUMN_NAME"),
    ],
)
def test_x_07_partition_schemas_no_table_can_have(
    tmp_path: Path, partition_schema: T.StructType, error_class: str
) -> None:
    write(tmp_path, "k=1/f", {"id": [1]})
    error = require_untouched(
        tmp_path, lambda: convert(tmp_path, partition_schema), InvalidRequestError
    )
    assert error.getErrorClass() == error_class


def test_column_mapping_by_default_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "f", {"id": [1]})
    settings = {f"{DEFAULTS}columnMapping.mode": "name"}
    error = require_untouched(
        tmp_path, lambda: convert(tmp_path, settings=settings), InvalidRequestError
    )
    assert error.getErrorClass() == "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING"
    assert f"'{DEFAULTS}columnMapping.mode' cannot be set to `name`" in error.message


def test_row_tracking_by_default_needs_statistics(tmp_path: Path) -> None:
    write(tmp_path, "f", {"id": [1]})
    settings = {f"{DEFAULTS}enableRowTracking": "true"}
    error = require_untouched(
        tmp_path,
        lambda: convert(tmp_path, settings=settings, collect_stats=False),
        InvalidRequestError,
    )
    assert error.getErrorClass() == "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS"


def test_c_53_default_properties(tmp_path: Path) -> None:
    write(tmp_path, "f", {"id": [1]})
    settings = {f"{DEFAULTS}appendOnly": "true", f"{DEFAULTS}nonsense": "x"}
    convert(tmp_path, settings=settings)
    assert first_commit(tmp_path)["metaData"][0]["configuration"] == {"delta.appendOnly": "true"}


def test_x_60_tight_bounds_where_deletion_vectors_are_on(tmp_path: Path) -> None:
    write(tmp_path, "f", {"id": [1]})
    convert(tmp_path, settings={f"{DEFAULTS}enableDeletionVectors": "true"})
    assert adds(tmp_path)["f"]["stats"]["tightBounds"] is True


# --- what is there already --------------------------------------------------------------------


def test_c_05_a_delta_table_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "f", {"id": [1]})
    convert(tmp_path)
    write(tmp_path, "k=1/g", {"id": [2]})
    with caplog.at_level(logging.INFO):
        again = convert(tmp_path)
    assert again.already_delta
    assert again.message == ALREADY_DELTA
    assert ALREADY_DELTA in caplog.text
    by_name = convert_to_delta(FakeSession(), f"delta.`{tmp_path}`")
    assert by_name.already_delta
    assert len(list((tmp_path / "_delta_log").glob("*.json"))) == 1


def test_delta_by_name_only(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match=f"`{tmp_path}` is not a Delta table"):
        convert_to_delta(FakeSession(), f"delta.`{tmp_path}`")


def test_c_59_a_rival_creates_the_table_first(tmp_path: Path) -> None:
    write(tmp_path, "f", {"id": [1]})
    rival: list[ConvertResult] = []

    def meanwhile(phase: Phase) -> None:
        if phase is Phase.STAGED and not rival:
            rival.append(convert(tmp_path))

    with pytest.raises(ConcurrentWriteException) as lost:
        convert(tmp_path, on_phase=meanwhile)
    assert lost.value.getErrorClass() == "DELTA_CONCURRENT_WRITE"
    assert len(list((tmp_path / "_delta_log").glob("*.json"))) == 1


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "_delta_log"), PermissionError),
        (StorageError(errno.ENOSPC, "No space left on device", "_delta_log"), StorageError),
    ],
    ids=str,
)
def test_permission_denied_or_disk_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: OSError, kind: type[OSError]
) -> None:
    write(tmp_path, "f", {"id": [1]})
    before = contents(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr("puredelta.store.local.LocalStore.put_if_absent", refuse)
        with pytest.raises(kind, match=failure.strerror):
            convert(tmp_path)
    assert contents(tmp_path) == before
    assert not (tmp_path / "_delta_log").exists()
    assert convert(tmp_path).version == 0, "nothing is in the way of another try"


@pytest.mark.parametrize("scheme", ["nowhere://bucket/t", "hdfs://name/t"])
def test_other_storage_is_refused_by_name(scheme: str) -> None:
    with pytest.raises(UnsupportedError, match=scheme.partition(":")[0]):
        convert_to_delta(FakeSession(), f"parquet.`{scheme}`")


def test_the_number_of_rows_is_exact(tmp_path: Path) -> None:
    for number in range(30):
        table = pa.table({"id": list(range(number))}, pa.schema([("id", pa.int64())]))
        pq.write_table(table, tmp_path / f"{number:02}", row_group_size=7)
    convert(tmp_path)
    counts = [add["stats"]["numRecords"] for add in adds(tmp_path).values()]
    assert counts == list(range(30))
