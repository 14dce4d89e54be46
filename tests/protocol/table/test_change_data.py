from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.action_json import encode_action, parse_action
from puredelta.protocol.actions.actions import Add, AddChangeFile, CommitInfo
from puredelta.protocol.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType
from puredelta.protocol.table.change_data import (
    change_file,
    change_file_path,
    change_schema,
    changed_no_rows,
    find_change_columns,
    require_no_change_columns,
)

TABLE = StructType((StructField("id", LONG, nullable=False), StructField("p", STRING)))
ZEROS = {
    "numTargetRowsInserted": "0",
    "numTargetRowsUpdated": "0",
    "numTargetRowsDeleted": "0",
    "numTargetRowsCopied": "7",
}
ONE_UPDATED = {**ZEROS, "numTargetRowsUpdated": "1"}
ONE_MISSING = {k: v for k, v in ZEROS.items() if k != "numTargetRowsDeleted"}


def written(path: str) -> Add:
    return Add(
        path=path,
        partition_values={"p": "a b"},
        size_bytes=9,
        modified_ms=5,
        data_change=True,
        stats='{"numRecords":1}',
    )


def test_columns_of_the_feed() -> None:
    feed = change_schema(TABLE)
    assert feed.fields[:2] == TABLE.fields
    assert [(f.name, f.type, f.nullable) for f in feed.fields[2:]] == [
        ("_change_type", STRING, True),
        ("_commit_version", LONG, True),
        ("_commit_timestamp", TIMESTAMP, True),
    ]


@pytest.mark.parametrize(
    ("data_path", "expected"),
    [
        ("part-00000-x.c000.snappy.parquet", "_change_data/cdc-00000-x.c000.snappy.parquet"),
        ("job-7/p=a b/part-1.parquet", "_change_data/job-7/p=a b/cdc-1.parquet"),
        ("job-7/t=10%3A00/other.parquet", "_change_data/job-7/t=10%3A00/cdc-other.parquet"),
    ],
)
def test_m_122_change_files_lie_below_one_directory(data_path: str, expected: str) -> None:
    assert change_file_path(data_path) == expected


def test_m_122_action_of_a_change_file() -> None:
    action = change_file(written("p=a%20b/part-0%25.parquet"))
    assert action == AddChangeFile(
        path="_change_data/p=a%20b/cdc-0%25.parquet",
        partition_values={"p": "a b"},
        size_bytes=9,
    )
    assert parse_action(encode_action(action)) == action
    assert '"dataChange":false' in encode_action(action)
    assert change_file(written("x"), path="_change_data/a b").path == "_change_data/a%20b"
    with pytest.raises(ValueError, match="below its table"):
        change_file(written("file:/elsewhere/part-0.parquet"))


@pytest.mark.parametrize(
    ("info", "nothing"),
    [
        (None, False),
        (CommitInfo(operation="MERGE", operation_metrics=ZEROS), True),
        (CommitInfo(operation="MERGE", operation_metrics=None), False),
        (CommitInfo(operation="UPDATE", operation_metrics=ZEROS), False),
        (CommitInfo(operation="MERGE", operation_metrics=ONE_UPDATED), False),
        (CommitInfo(operation="MERGE", operation_metrics=ONE_MISSING), False),
    ],
)
def test_m_125_merges_that_only_rewrote_rows(info: CommitInfo | None, nothing: bool) -> None:
    assert changed_no_rows(info) is nothing


def test_reserved_columns() -> None:
    require_no_change_columns(["id", "change_type"], was_enabled=True)
    assert find_change_columns(["id", "_Commit_Version"]) == ["_Commit_Version"]
    for was_enabled, code in (
        (True, ErrorCode.RESERVED_CDC_COLUMNS_ON_WRITE),
        (False, ErrorCode.TABLE_ALREADY_CONTAINS_CDC_COLUMNS),
    ):
        with pytest.raises(InvalidRequestError, match="_Change_Type") as raised:
            require_no_change_columns(["id", "_Change_Type"], was_enabled=was_enabled)
        assert raised.value.code is code
