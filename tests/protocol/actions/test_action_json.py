"""Actions survive JSON in both directions, and broken ones are named (protocol "Actions")."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.protocol.actions.action_json import encode_action, parse_action
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    SetTransaction,
    Sidecar,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INT = st.integers(-(2**63), 2**63 - 1)
INT_32 = st.integers(-(2**31), 2**31 - 1)
OPTIONAL_INT = st.none() | INT
TEXTS = st.dictionaries(TEXT, TEXT, max_size=3)
NULLABLE_TEXTS = st.dictionaries(TEXT, st.none() | TEXT, max_size=3)
VECTORS = st.builds(
    DeletionVectorDescriptor,
    storage_type=st.sampled_from("upi"),
    path_or_inline=TEXT,
    offset=st.none() | INT_32,
    size_bytes=INT_32,
    cardinality=INT,
    max_row_index=OPTIONAL_INT,
)
FILE_IDENTITY = {
    "deletion_vector": st.none() | VECTORS,
    "base_row_id": OPTIONAL_INT,
    "default_row_commit_version": OPTIONAL_INT,
    "stats": st.none() | TEXT,
    "tags": st.none() | NULLABLE_TEXTS,
}
JSON_VALUES = st.recursive(
    st.booleans() | INT | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(
        Add,
        path=TEXT,
        partition_values=NULLABLE_TEXTS,
        size_bytes=INT,
        modified_ms=INT,
        data_change=st.booleans(),
        clustering_provider=st.none() | TEXT,
        **FILE_IDENTITY,
    ),
    st.builds(
        Remove,
        path=TEXT,
        deleted_ms=OPTIONAL_INT,
        data_change=st.booleans(),
        extended_file_metadata=st.none() | st.booleans(),
        partition_values=st.none() | NULLABLE_TEXTS,
        size_bytes=OPTIONAL_INT,
        **FILE_IDENTITY,
    ),
    st.builds(
        AddChangeFile,
        path=TEXT,
        partition_values=NULLABLE_TEXTS,
        size_bytes=INT,
        tags=st.none() | NULLABLE_TEXTS,
    ),
    st.builds(
        Metadata,
        id=TEXT,
        schema_string=TEXT,
        partition_columns=st.lists(TEXT, max_size=2).map(tuple),
        configuration=TEXTS,
        created_ms=OPTIONAL_INT,
        name=st.none() | TEXT,
        description=st.none() | TEXT,
        format_options=TEXTS,
    ),
    st.builds(
        Protocol,
        min_reader_version=INT_32,
        min_writer_version=INT_32,
        reader_features=st.none() | st.frozensets(TEXT, max_size=3),
        writer_features=st.none() | st.frozensets(TEXT, max_size=3),
    ),
    st.builds(SetTransaction, app_id=TEXT, version=INT, last_updated_ms=OPTIONAL_INT),
    st.builds(DomainMetadata, domain=TEXT, configuration=TEXT, removed=st.booleans()),
    st.builds(
        CommitInfo,
        timestamp_ms=OPTIONAL_INT,
        operation=st.none() | TEXT,
        operation_parameters=st.dictionaries(TEXT, JSON_VALUES, max_size=3),
        operation_metrics=st.none() | TEXTS,
        is_blind_append=st.none() | st.booleans(),
        in_commit_timestamp_ms=OPTIONAL_INT,
        tags=st.none() | TEXTS,
        extra=st.dictionaries(TEXT.map("x".__add__), JSON_VALUES, max_size=3),
    ),
    st.builds(CheckpointMetadata, version=INT, tags=st.none() | TEXTS),
    st.builds(Sidecar, path=TEXT, size_bytes=INT, modified_ms=INT, tags=st.none() | TEXTS),
)


@given(ACTIONS)
def test_an_action_survives_its_json(action: Action) -> None:
    line = encode_action(action)
    assert "\n" not in line
    assert "\r" not in line
    assert parse_action(line) == action
    assert parse_action(line.encode()) == action
    assert parse_action(json.loads(line)) == action


def test_null_and_empty_partition_values_stay_apart() -> None:
    """X-82: null is JSON null; what an empty string means is not the log's business."""
    line = (
        '{"add":{"path":"a","partitionValues":{"p":null,"q":""},"size":1,"modificationTime":2,'
        '"dataChange":true}}'
    )
    add = parse_action(line)
    assert isinstance(add, Add)
    assert add.partition_values == {"p": None, "q": ""}
    assert encode_action(add) == line


def test_keys_stand_in_the_order_and_spelling_of_the_reference() -> None:
    lines = [
        (
            '{"commitInfo":{"inCommitTimestamp":5,"timestamp":4,"operation":"WRITE",'
            '"operationParameters":{"mode":"Append","partitionBy":"[]"},"readVersion":0,'
            '"isolationLevel":"Serializable","isBlindAppend":true,"operationMetrics":{"numFiles":"4"},'
            '"engineInfo":"Apache-Spark/4.2.0","txnId":"a"}}'
        ),
        (
            '{"metaData":{"id":"m","format":{"provider":"parquet","options":{}},"schemaString":"{}",'
            '"partitionColumns":["p"],"configuration":{"delta.appendOnly":"true"},"createdTime":1}}'
        ),
        (
            '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["a","b"],'
            '"writerFeatures":["a","b"]}}'
        ),
        (
            '{"remove":{"path":"a","deletionTimestamp":3,"dataChange":true,"extendedFileMetadata":true,'
            '"partitionValues":{},"size":1,"deletionVector":{"storageType":"u","pathOrInlineDv":"x",'
            '"offset":1,"sizeInBytes":34,"cardinality":2},"stats":"{}"}}'
        ),
        '{"domainMetadata":{"domain":"d","configuration":"{}","removed":false}}',
    ]
    for line in lines:
        action = parse_action(line)
        assert action is not None
        assert encode_action(action) == line


def test_a_row_of_a_checkpoint_is_read_like_a_line() -> None:
    row = {
        "txn": None,
        "metaData": {
            "id": "m",
            "format": {"provider": "parquet", "options": []},
            "schemaString": "{}",
            "partitionColumns": [],
            "configuration": [("delta.appendOnly", "true")],
            "createdTime": None,
        },
    }
    metadata = parse_action(row)
    assert isinstance(metadata, Metadata)
    assert metadata.configuration == {"delta.appendOnly": "true"}


def test_unknown_kinds_and_keys_are_passed_over() -> None:
    assert parse_action('{"futureAction":{"x":1}}') is None
    assert parse_action("{}") is None
    assert parse_action('{"txn":{"appId":"a","version":1,"newKey":{}}}') == SetTransaction(
        app_id="a", version=1
    )


def test_commit_info_keeps_what_it_has_no_name_for() -> None:
    line = (
        '{"commitInfo":{"timestamp":"yesterday","operation":"WRITE","operationParameters":{},'
        '"operationMetrics":{"num_added_files":1,"per_file":{"min":2}},"userId":"u",'
        '"job":{"jobId":"j"},"clientVersion":"delta-rs.0.6.0"}}'
    )
    info = parse_action(line)
    assert isinstance(info, CommitInfo)
    assert info.timestamp_ms is None
    assert info.operation_metrics == {"num_added_files": "1", "per_file": '{"min": 2}'}
    assert info.extra == {
        "timestamp": "yesterday",
        "userId": "u",
        "job": {"jobId": "j"},
        "clientVersion": "delta-rs.0.6.0",
    }
    assert json.loads(encode_action(info))["commitInfo"]["timestamp"] == "yesterday"


def test_a_metadata_without_schema_is_read_and_written_without() -> None:
    line = (
        '{"metaData":{"id":"t","format":{"provider":"parquet","options":{}},"partitionColumns":[],'
        '"configuration":{}}}'
    )
    metadata = parse_action(line)
    assert isinstance(metadata, Metadata)
    assert metadata.schema_string == ""
    assert encode_action(metadata) == line


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        (b"\xff{}", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"add":{"path":"a","size":1,"modificationTime":1}}', "'dataChange' is missing"),
        ('{"add":{"path":"a","size":"x","modificationTime":1,"dataChange":true}}', "whole number"),
        ('{"add":{"path":7,"size":1,"modificationTime":1,"dataChange":true}}', "expected text"),
        ('{"add":7}', "broken 'add'"),
        ('{"protocol":{"minReaderVersion":true,"minWriterVersion":2}}', "whole number"),
        ('{"txn":{"appId":"a","version":1.5}}', "whole number, found 1.5"),
        ('{"domainMetadata":{"domain":"d","configuration":"","removed":"no"}}', "true or false"),
        ('{"commitInfo":7}', "broken 'commitInfo'"),
    ],
)
def test_a_broken_line_is_named(line: str | bytes, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem) as caught:
        parse_action(line)
    assert caught.value.code is ErrorCode.LOG_CORRUPTED


def test_the_message_shows_the_start_of_a_long_line_only() -> None:
    with pytest.raises(CorruptTableError) as caught:
        parse_action('{"txn":{"appId":"' + "a" * 10_000 + '"}}')
    assert len(str(caught.value)) < 500
