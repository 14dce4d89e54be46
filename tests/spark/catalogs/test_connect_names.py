"""Three-part names over Spark Connect: statements, readers, writers and builders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect_session import ask

ANSWERS = {
    "definition": [
        [],
        "name",
        [],
        [],
        [],
        ["id", "note", "more"],
        [],
        [],
        [],
        [],
        ["copy", "orders"],
    ],
    "queries": [
        [["1", "a"], ["2", "b"], ["3", "c"]],
        [["a", "1"], ["b", "2"], ["c", "3"]],
        [["x", "1"]],
        [["3"]],
        [["2"]],
        [["1"], ["2"], ["3"]],
        None,
        [["1"]],
        1,
        [["1"]],
    ],
    "writers": [
        *[None] * 4,
        12,
        None,
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        None,
        None,
        3,
        None,
        None,
        3,
        0,
    ],
    "changes": [
        [["1"]],
        [["1"]],
        [["1"]],
        None,
        None,
        [["2", "1", "0", "1"]],
        [["3", "1", "0", "2"]],
        [["3", "3", "0", "0"]],
        [["1", "x!?"], ["2", "C?"], ["9", "z?"]],
        [["1", "x!"], ["2", "C"], ["9", "z"]],
    ],
    "versions": [
        [["1"], ["2"]],
        2,
        ["WRITE", "CREATE TABLE"],
        "main.sales.orders",
        "id",
        "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        [["delta.columnMapping.mode", "name"]],
    ],
    "listings": [
        [["sales", "orders", "False"]],
        [["sales"]],
        True,
        False,
        ["id", "note"],
        "orders",
        [],
        3,
    ],
    "refusals": [
        *["TABLE_OR_VIEW_NOT_FOUND"] * 4,
        "SCHEMA_NOT_FOUND",
        "DELTA_UNSUPPORTED_ON_CONNECT",
        "DELTA_UNSUPPORTED_ON_CONNECT",
        None,
        "DELTA_CATALOG_REQUEST_FAILED",
    ],
}


@pytest.mark.spark
@pytest.mark.thorough
def test_names_of_catalogs(tmp_path: Path) -> None:
    assert ask("tests.spark.catalogs.connect_names", tmp_path) == ANSWERS
