"""What is written for the rows a statement found: decided from positions alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from puredelta.commands.dml.decide import RowPlan, plan_rows, uses_deletion_vectors
from puredelta.commands.dml.positions import RowPositions
from puredelta.commands.dml.resolve.resolved_statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    NotMatchedClause,
    ResolvedDelete,
    ResolvedInsert,
    ResolvedUpdate,
)
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.protocol.table.row_tracking import (
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    tracked_columns,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.row_bitmap import RowBitmap

FEATURES = frozenset(
    {"changeDataFeed", "deletionVectors", "rowTracking", "domainMetadata", "appendOnly"}
)
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKING = {
    "delta.enableRowTracking": "true",
    ROW_ID_COLUMN: "_id",
    ROW_COMMIT_VERSION_COLUMN: "_version",
}
NOBODY = frozenset[str]()
FROM_SOURCE = ResolvedUpdate(
    values={}, unchanged=NOBODY, target_columns=NOBODY, source_columns=frozenset({"s0"})
)
INSERT = NotMatchedClause(action=ResolvedInsert(values={}, source_columns=NOBODY), condition=None)
DELETE_THE_REST = NotMatchedBySourceClause(action=ResolvedDelete(), condition=None)


def config_of(properties: dict[str, str]) -> TableConfig:
    protocol = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"deletionVectors"}),
        writer_features=FEATURES,
    )
    schema = encode_schema(StructType((StructField("id", LONG),)))
    return TableConfig.of(
        protocol,
        Metadata(id="x", schema_string=schema, partition_columns=(), configuration=properties),
    )


def rows(*positions: int) -> dict[int, RowBitmap]:
    return {0: RowBitmap.of_rows(np.array(positions, np.int64))} if positions else {}


def plan(
    *,
    updated: tuple[int, ...] = (),
    deleted: tuple[int, ...] = (),
    num_source_rows: int = 3,
    properties: dict[str, str] | None = None,
    **options: Any,
) -> RowPlan:
    """Of: WHEN MATCHED UPDATE, WHEN NOT MATCHED INSERT, WHEN NOT MATCHED BY SOURCE DELETE."""
    config = config_of(properties or {})
    statement: Any = SimpleNamespace(
        config=config,
        matched=(MatchedClause(action=FROM_SOURCE, condition=None),),
        not_matched=(INSERT,),
        not_matched_by_source=(DELETE_THE_REST,),
    )
    positions = RowPositions(
        matched=(rows(*updated),),
        by_source=(rows(*deleted),),
        matched_source=rows(*range(len(updated))),
        source_of=(rows(*range(len(updated))),),
    )
    return plan_rows(
        statement,
        positions,
        num_source_rows=num_source_rows,
        tracks_rows=tracked_columns(config) is not None,
        **options,
    )


def test_the_counts_of_updates_and_inserts() -> None:
    made = plan(updated=(4, 7), deleted=(1,))
    assert (made.num_updates, made.num_inserts) == (2, 1)
    assert [made.updated[0].rows().tolist(), made.deleted[0].rows().tolist()] == [[4, 7], [1]]


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ({"updated": (4,)}, True),
        ({"deleted": (4,)}, True),
        ({}, False),  # M-124: only inserts
        ({"deleted": (4,), "infers_deletes": True}, False),
        ({"deleted": (4,), "updated": (5,), "infers_deletes": True}, True),  # M-123
    ],
)
def test_which_changes_are_recorded(given: dict[str, Any], recorded: bool) -> None:
    assert plan(properties=FEED, **given).recorded is recorded
    assert plan(**given).recorded is False


def test_a_delete_that_is_recorded_is_something_to_write() -> None:
    assert plan(deleted=(1,), num_source_rows=0).is_empty
    assert not plan(deleted=(1,), num_source_rows=0, properties=FEED).is_empty


def test_a_row_that_keeps_its_id_is_made_from_the_old_row() -> None:
    """M-110; else the staged row alone makes it."""
    made, tracked = plan(updated=(4,)), plan(updated=(4,), properties=TRACKING)
    assert (len(made.from_source), len(made.from_target)) == (1, 0)
    assert (len(tracked.from_source), len(tracked.from_target)) == (0, 1)
    assert (made.keeps_row_ids, tracked.keeps_row_ids) == (False, True)
    assert not plan(deleted=(4,), properties=TRACKING).keeps_row_ids


def test_a_table_says_whether_rows_are_hidden() -> None:  # M-130
    assert uses_deletion_vectors(config_of({"delta.enableDeletionVectors": "true"}))
    assert not uses_deletion_vectors(config_of({}))
