"""The log part of tables that other implementations wrote: files, schema, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from puredelta.errors import CorruptTableError, DeltaError, ErrorCode, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.schema_json import parse_schema
from tests.data_dir import find_data

_FOUND = find_data("golden", "manifest.jsonl")
ROWS: list[dict[str, Any]] = (
    [] if _FOUND is None else [json.loads(line) for line in _FOUND.read_text().splitlines()]
)
if not ROWS:
    pytest.skip("the golden tables are absent", allow_module_level=True)
assert _FOUND is not None
GOLDEN = _FOUND.parent

BROKEN = {
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": (
        CorruptTableError,
        ErrorCode.STATE_RECOVER_ERROR,
    ),
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": (
        CorruptTableError,
        ErrorCode.STATE_RECOVER_ERROR,
    ),
    "deltalog-state-reconstruction-without-protocol": (
        CorruptTableError,
        ErrorCode.STATE_RECOVER_ERROR,
    ),
    "no-delta-log-folder": (TableNotFoundError, ErrorCode.TABLE_NOT_FOUND),
    "versions-not-contiguous": (CorruptTableError, ErrorCode.VERSIONS_NOT_CONTIGUOUS),
}


def _open(row: dict[str, Any]) -> TableLog:
    root = GOLDEN / row["name"]
    return TableLog.open(str(root / "delta" if (root / "delta").exists() else root))


def _names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


MUST_FAIL = [row for row in ROWS if "must_fail" in row]
GOOD = [row for row in ROWS if "must_fail" not in row]


@pytest.mark.parametrize("row", MUST_FAIL, ids=_names(MUST_FAIL))
def test_broken_tables_are_refused_with_the_reference_code(row: dict[str, Any]) -> None:
    kind, code = BROKEN[row["name"]]
    with pytest.raises(DeltaError) as caught:
        _open(row).snapshot()
    assert isinstance(caught.value, kind)
    assert caught.value.code is code


@pytest.mark.parametrize("row", GOOD, ids=_names(GOOD))
def test_good_tables_open(row: dict[str, Any]) -> None:
    log = _open(row)
    snapshot = log.snapshot(version=row.get("version"))
    if row.get("log_only"):
        assert [a.path for a in snapshot.files.adds()] == row["files"]
        assert snapshot.config.schema == parse_schema(json.dumps(row["schema"]))
    rows = snapshot.files.num_records()
    if rows is not None and "expected_rows" in row:
        assert rows == row["expected_rows"]
    assert len(log.history()) == len({c.version for c in log.commits_after(-1)})


@pytest.mark.parametrize("row", GOOD, ids=_names(GOOD))
def test_every_version_is_the_same_however_it_is_reached(row: dict[str, Any]) -> None:
    """Replaying commit by commit from a warm log gives what opening from files gives."""
    log = _open(row)
    for version in range((log.latest_version() or 0) + 1):
        warm, cold = log.snapshot(version=version), _open(row).snapshot(version=version)
        assert set(warm.files.rows["path"].to_pylist()) == set(cold.files.rows["path"].to_pylist())
        assert warm.config.schema == cold.config.schema


def test_the_manifest_is_where_the_tables_are() -> None:
    assert all((GOLDEN / row["name"]).is_dir() for row in ROWS)
    assert isinstance(GOLDEN, Path)
