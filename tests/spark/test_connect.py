"""Scans over Spark Connect: the same rows with public API only."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect_session import AMOUNTS, ask, each_check
from tests.spark import connect_checks


@pytest.fixture(scope="module", params=AMOUNTS)
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, connect_server: str
) -> dict[str, Any]:
    """Ask one Connect session."""
    directory = tmp_path_factory.mktemp("connect")
    return ask("tests.spark.connect_checks", directory, request.param, server=connect_server)


EXPECTED: dict[str, Any] = {
    "session": True,
    "rows": sorted(
        [["a b", "1", "-1"], ["a b", "2", "-1"]]
        + [["None", str(n), "None"] for n in range(4)]
        + [["a b", str(n), "7"] for n in (0, 2, 3)]
    ),
    "filtered": [["0", "0"], ["2", "2"], ["3", "3"]],
    "where": [[1, 3], [1, 4], [1, 2], [3, 5]],
    "positions": [["0", str(n), str(n)] for n in (0, 2, 3)]
    + [["1", str(n), str(n)] for n in range(4)],
    "only_positions": 9,
    "empty": [["p", "id", "n", "__puredelta_file", "__puredelta_row"], []],
    "staged": [["0", "0", "0"], ["1", "1", "0"]],
    "mapped_by_name": [["a b"], [["5"]]],
    "mapped_by_id": True,
    "hidden": "DELTA_UNSUPPORTED_DATA_FILE",
    "cached": [9, 9, 4, 9],
    "long_vectors": [299_700, 1],
    "time_travel": [
        2,
        "DELTA_ONEOF_IN_TIMETRAVEL",
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "DELTA_TIMESTAMP_INVALID",
    ],
    "instants": [["1577854800000000"]],
    "changed_rows": [
        [
            ["None", "2", "update_preimage", "5"],
            ["None", "5", "update_postimage", "5"],
            ["a b", "0", "delete", "3"],
            ["a b", "0", "insert", "1"],
            ["a b", "1", "delete", "2"],
            ["a b", "1", "insert", "1"],
            ["a b", "2", "delete", "6"],
            ["a b", "2", "insert", "1"],
        ],
        ["p", "id", "_change_type", "_commit_version", "_commit_timestamp"],
        [],
    ],
    "workers": [[1, 2, 3], [-4]],
    "own_reads": {
        "local": "blind",
        "text": "blind",
        "other": "blind",
        "view of other": "blind",
        "own": "reads",
        "joined": "reads",
        "older": "reads",
        "version": "blind",
        "view of own": "reads",
        "view in a subquery": "DELTA_CONCURRENT_WRITE",
        "local again": "blind",
        "older view": "DELTA_CONCURRENT_WRITE",
        "older and empty": "reads",
        "renewed": [
            [[3, 3]],
            [[4, 3]],
            [[5, 5]],
            [[5, 6]],
            "DELTA_METADATA_MISMATCH",
            4,
        ],
    },
    "activated": [
        [[0, 0], [0, 0], [2, 0], [2, 0], [3, 1], [7, 9], [7, 5]],
        [
            "DELTA_UNSUPPORTED_ON_CONNECT",
            "DELTA_OPERATION_NOT_ALLOWED",
            "TABLE_OR_VIEW_ALREADY_EXISTS",
        ],
        ["DELTA_OPERATION_NOT_ALLOWED"] * 2 + ["DELTA_ILLEGAL_OPTION", "nothing"],
        [8, ["a"]],
    ],
    "activated_sql": [
        "MERGE of",
        [[2, 1, 0, 1], [1], [1], [1]],
        [[0, 3], [1, 2], [7, 1], [8, 1], [9, 2]],
        ["PARSE_SYNTAX_ERROR"] * 2 + ["DELTA_UNSUPPORTED_ON_CONNECT"] * 3,
        [[[1]], []],
        ["`id`", "`p`"],
    ],
    "catalog_names": [
        None,
        [],
        [["1", "1", "0", "0"]],
        [["0", "a"], ["1", "a"], ["2", "x"]],
        1,
        [],
        [],
        [["2"]],
        [["x"]],
        [],
        [],
    ],
    "query_columns": [
        [["id, a.b"], [["2", "4"], ["3", "6"]]],
        [["p"], [["5"]]],
        [["id"], [["4"]]],
        [["p"], [["4"]]],
        [["id, p"], [["0", "4"], ["1", "8"]]],
        [["id, p", "id"], [["1"], ["3"]]],
        [
            ["id, a.b, é, seven", "id, a.b, é, seven, p"],
            [["3", "6", "x", "7", "1", "6", "x", "7", "1"]],
        ],
        [["id, é"], [["x", "2"]]],
        [["id", "seven"], [["1"]]],
        [["id"], [["2"]]],
        [1, 3],
    ],
    "row_changes": [True, True, True],
    "reader_settings": [True, ["0", "2024-01-01 12:00:00"], "DELTA_UNSUPPORTED_SETTING"],
    "progress": [True, True, "", 0],
    "maintenance": [
        [8, 3],
        [8, 3],
        [10, 0],
        4,
        [["delete", 5], ["insert", 3]],
        2,
        [
            "WRITE",
            "WRITE",
            "SET TBLPROPERTIES",
            "OPTIMIZE",
            "VACUUM START",
            "VACUUM END",
            "RESTORE",
        ],
    ],
    "statements": [
        [
            "SET TBLPROPERTIES",
            "TRUNCATE",
            "ADD CONSTRAINT",
            "CHANGE COLUMN",
            "SET TBLPROPERTIES",
            "ADD COLUMNS",
            "WRITE",
        ],
        [
            ["s", "struct<x:decimal(5,2)>", "it"],
            ["id", "bigint", None],
            ["p", "int", None],
            ["# Partition Information", "", ""],
            ["# col_name", "data_type", "comment"],
            ["p", "int", None],
        ],
        ["s", "id", "p"],
        3,
        [
            "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION",
            "PARSE_SYNTAX_ERROR",
            "TABLE_OR_VIEW_ALREADY_EXISTS",
            "DELTA_TABLE_ALREADY_EXISTS",
        ],
    ],
}


@pytest.mark.spark
@each_check(connect_checks.AMOUNTS)
def test_connect(answers: dict[str, Any], check: str) -> None:
    assert answers[check] == EXPECTED[check]
