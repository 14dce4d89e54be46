"""operationParameters as delta-spark writes them (M-161, C-56, C-57).

The expected lines are those of delta-spark 4.4.0, apart from MERGE predicates, in which it
writes expression ids (W-16).
"""

from __future__ import annotations

import json

import pytest

from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.protocol.actions.operations import (
    ClauseSummary,
    Definition,
    Operation,
    WriteMode,
    convert,
    define_table,
    drop_columns,
    merge,
    rename_column,
    with_rows,
    write,
)


def written(operation: Operation) -> str:
    info = CommitInfo(operation=operation.name, operation_parameters=operation.parameters)
    return encode_action(info).removeprefix('{"commitInfo":').removesuffix("}")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (
            write(WriteMode.APPEND),
            """{"operation":"WRITE","operationParameters":{"mode":"Append","partitionBy":"[]"}}""",
        ),
        (
            write(WriteMode.ERROR_IF_EXISTS, partition_by=["p", "q"]),
            (r"""{"operation":"WRITE","operationParameters":{"mode":"ErrorIfExists","""
            r""""partitionBy":"[\"p\",\"q\"]"}}"""),
        ),
        (
            write(WriteMode.OVERWRITE, replaced={"predicate": "id = 1"}),
            ("""{"operation":"WRITE","operationParameters":{"mode":"Overwrite","partitionBy":"[]","""
            """"predicate":"id = 1"}}"""),
        ),
        (
            write(WriteMode.OVERWRITE, overwrites_schema=True),
            ("""{"operation":"WRITE","operationParameters":{"mode":"Overwrite","partitionBy":"[]","""
            """"canOverwriteSchema":true}}"""),
        ),
        (
            write(WriteMode.APPEND, merges_schema=True),
            ("""{"operation":"WRITE","operationParameters":{"mode":"Append","partitionBy":"[]","""
            """"canMergeSchema":true}}"""),
        ),
        (
            write(WriteMode.OVERWRITE, overwrites_partitions=True),
            ("""{"operation":"WRITE","operationParameters":{"mode":"Overwrite","partitionBy":"[]","""
            """"isDynamicPartitionOverwrite":true}}"""),
        ),
        (
            define_table(Definition.CREATE, partition_by=["dd"]),
            (r"""{"operation":"CREATE TABLE","operationParameters":{"partitionBy":"[\"dd\"]","""
            """"clusterBy":"[]","description":null,"isManaged":"false","properties":"{}"}}"""),
        ),
        (
            with_rows(define_table(Definition.CREATE, properties={"delta.appendOnly": "true"})),
            ("""{"operation":"CREATE TABLE AS SELECT","operationParameters":{"partitionBy":"[]","""
            """"clusterBy":"[]","description":null,"isManaged":"false","""
            r""""properties":"{\"delta.appendOnly\":\"true\"}"}}"""),
        ),
        (
            convert(num_files=5, partitioned_by=["p"]),
            ("""{"operation":"CONVERT","operationParameters":{"numFiles":5,"""
            r""""partitionedBy":"[\"p\"]","collectStats":true,"sourceFormat":"parquet"}}"""),
        ),
        (
            convert(num_files=2, collect_stats=False, catalog_table="db.t"),
            ("""{"operation":"CONVERT","operationParameters":{"numFiles":2,"partitionedBy":"[]","""
            """"collectStats":false,"catalogTable":"db.t","sourceFormat":"parquet"}}"""),
        ),
        (
            merge(
                predicate="t.id = s.k",
                matched=[ClauseSummary(action="update", condition="t.v > 3"),
                         ClauseSummary(action="delete")],
                not_matched=[ClauseSummary(action="insert")],
                not_matched_by_source=[ClauseSummary(action="delete", condition="t.id = 0")],
            ),
            (r"""{"operation":"MERGE","operationParameters":{"predicate":"[\"t.id = s.k\"]","""
            r""""matchedPredicates":"[{\"predicate\":\"t.v > 3\",\"actionType\":\"update\"},"""
            r"""{\"actionType\":\"delete\"}]","""
            r""""notMatchedPredicates":"[{\"actionType\":\"insert\"}]","""
            r""""notMatchedBySourcePredicates":"""
            r""""[{\"predicate\":\"t.id = 0\",\"actionType\":\"delete\"}]"}}"""),
        ),
        (
            merge(predicate="true"),
            (r"""{"operation":"MERGE","operationParameters":{"predicate":"[\"true\"]","""
            """"matchedPredicates":"[]","notMatchedPredicates":"[]","""
            """"notMatchedBySourcePredicates":"[]"}}"""),
        ),
    ],
)  # fmt: skip
def test_parameters_are_written_as_the_reference_writes_them(
    operation: Operation, expected: str
) -> None:
    assert written(operation) == expected


def test_text_inside_json_text_stays_readable() -> None:
    predicate = "name = 'Zoë \"x\"'"
    text = merge(predicate=predicate).parameters["predicate"]
    assert json.loads(text) == [predicate]
    assert "ë" in text


def test_a_part_of_a_path_that_has_a_dot_is_in_back_ticks() -> None:
    assert drop_columns([("a b.c",), ("s", "x")]).parameters == {"columns": '["`a b.c`","s.x"]'}
    assert rename_column(("s", "x.y"), ("s", "z")).parameters == {
        "oldColumnPath": "s.`x.y`",
        "newColumnPath": "s.z",
    }
