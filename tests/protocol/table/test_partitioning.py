"""Which files are in one partition."""

from __future__ import annotations

import re
from pathlib import Path

import puredelta
from puredelta.protocol.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType
from puredelta.protocol.table.partitioning import Partitioning
from tests.log.tables import config

CHAR = StructField("c", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(4)"})
TABLE = config(
    schema=StructType((StructField("id", LONG), CHAR, StructField("t", TIMESTAMP))),
    partitioned_by=("c", "t"),
)


def test_blanks_of_char_do_not_count() -> None:
    partitioning = Partitioning.of(TABLE)
    short, filled = ({"c": text, "t": None} for text in ("ab", "ab  "))
    assert partitioning.key(short) == partitioning.key(filled) == ("ab", None)
    assert partitioning.key({"c": "    "}) != partitioning.key({"c": ""}) == (None, None)
    assert partitioning.key(None) == partitioning.key({})


def test_local_times_are_those_of_the_session() -> None:
    local = {"c": "a", "t": "2024-01-01 00:00:00"}
    for zone, utc in (("UTC", "2024-01-01T00:00:00Z"), ("+02:00", "2023-12-31T22:00:00.000000Z")):
        partitioning = Partitioning.of(TABLE, zone)
        assert partitioning.key(local) == partitioning.key({"c": "a", "t": utc})
    for zone in (None, "no zone"):
        partitioning = Partitioning.of(TABLE, zone)
        assert partitioning.key(local) != partitioning.key({"c": "a", "t": "2024-01-01T00:00:00Z"})


NO_COMPARISON = {
    "inspection/damage/history.py": "the names of columns",
    "log/replay/spooled_files.py": "the names of columns",
    "spark/scan/change_scan.py": "the names of columns",
    "spark/scan/native_scan.py": "the directories of equal texts are made once",
    "commands/dml/replaced_rows.py": "the texts of new files, each of which is parsed",
}
"""Modules that put texts of partitions into a set or a key, and the use they make of it."""


def test_no_module_compares_texts() -> None:
    """Texts of partition values become keys in one place."""
    raw = re.compile(
        r"(sorted|tuple|set|hash)\((?!partitioning.key)[^\n]*partition_values\b|partition_values =="
    )
    root = Path(puredelta.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if any(map(raw.search, path.read_text(encoding="utf-8").splitlines()))
    }
    assert found == NO_COMPARISON.keys()
