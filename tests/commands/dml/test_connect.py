"""MERGE over Spark Connect: public API only, the same answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commands.dml.connect_merges import AMOUNTS_OF_MERGES
from tests.connect_session import AMOUNTS, ask, each_check, of_every

ALL_IDS = sum(range(40))


@pytest.fixture(scope="module", params=AMOUNTS)
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, connect_server: str
) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("connect")
    return ask("tests.commands.dml.connect_merges", directory, request.param, server=connect_server)


MERGED = {
    "upsert": [[2, 0, 1, 18], [41, ALL_IDS + 50, ALL_IDS - 3 - 12 + 1 + 2 + 3]],
    "keeping_columns": [[2, 0, 1, 18], [41, ALL_IDS + 50, ALL_IDS - 3 - 12 + 1 + 2 + 3]],
    "deleting": [[0, 1, 0, 9], [39, ALL_IDS - 3, ALL_IDS - 3]],
    "by_source": [
        [2, 4, 0, 14],
        [36, ALL_IDS - 36 - 37 - 38 - 39, ALL_IDS - 36 - 37 - 38 - 39 + 1 + 1],
    ],
}
"""Rows that a merge has changed and copied, and those that are left."""


@each_check(AMOUNTS_OF_MERGES)
def test_a_merge(answers: dict[str, Any], check: str) -> None:
    assert answers[check] == [*MERGED[check], []]


def test_workers_look_keys_up(answers: dict[str, Any]) -> None:
    assert answers["lookups"] == ["done"] * sum(merge in answers for merge in MERGED)


def test_workers_copy_rows_of_the_source(answers: dict[str, Any]) -> None:
    assert answers["copies"] == ["done"]  # no other of these merges has rows of the source as new


def test_as_many_tasks_as_cores_are_not_shuffled(answers: dict[str, Any]) -> None:
    look_up, copies_and_new_rows, *_ = answers["tasks"]
    assert (look_up, copies_and_new_rows) == ("local_relation", "repartition")


def test_columns_bound_to_frames(answers: dict[str, Any]) -> None:
    left, refused = answers["bound_columns"]
    kept = [[n, {3: 4, 5: 10}.get(n, n)] for n in range(10) if n != 4]
    assert left == [*kept, [50, 3]]
    assert refused == "CANNOT_RESOLVE_DATAFRAME_COLUMN"


@of_every
def test_names_and_columns_of_the_sides_of_a_join(answers: dict[str, Any]) -> None:
    by_name, by_column, replaced, refused = answers["sides_of_a_join"]
    first = [[n, {3: 330, 4: 440}.get(n, n)] for n in range(6)]
    assert by_name == first
    others = [[0, 0], [1, 1], [4, -360], [5, 5], [6, 60], [7, 70]]
    assert by_column == sorted([*others, [2, 2], [3, 330]])
    assert replaced == sorted([*others, [2, 200], [3, 300], [4, 400]])
    assert refused == "DELTA_MERGE_UNRESOLVED_EXPRESSION"


@of_every
def test_m61_casts_of_another_mode_than_the_sessions(answers: dict[str, Any]) -> None:
    rows, refused = answers["legacy"]
    assert rows == [[1, 705032704], [2, None], [3, None]]
    assert refused == "CAST_INVALID_INPUT"


def test_several_matches(answers: dict[str, Any]) -> None:
    assert answers["refused"] == ["MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW", True]


def test_update_and_delete(answers: dict[str, Any]) -> None:
    left, deleted, refusals = answers["changes"]
    assert left == [[0, "a", 0], [1, "a", 8], [4, "c", 40]]
    assert deleted == 2
    assert refusals == [
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
        "DELTA_UNSUPPORTED_SUBQUERY",
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
    ]


@of_every
def test_one_moment(answers: dict[str, Any]) -> None:
    """M-24: the clock is read once a statement, in the source, too."""
    assert answers["moments"] == [1, 1, 0]


@of_every
def test_a_table_with_a_change_data_feed_and_row_ids(answers: dict[str, Any]) -> None:
    """Row 3 keeps its id and the version that wrote it, row 2 its id."""
    assert answers["with_features"] == [True, [[1, 1], [2, 0]], True]


@of_every
def test_features_are_dropped(answers: dict[str, Any]) -> None:
    assert answers["dropped_features"] == [[[n, f"v{n}", "a"] for n in (1, 2, 3)], True]


@of_every
def test_m100_to_m106_columns_that_fill_themselves(answers: dict[str, Any]) -> None:
    assert answers["filled_columns"] == [
        [10, 0, 2, 0, "x "],
        [15, 1, 2, 2, "x "],
        [30, 3, 7, 21, "x "],
        [35, 4, 2, 8, "x "],
        [20, 12, 2, 24, "x "],
        35,
    ]
