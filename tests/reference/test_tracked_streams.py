"""Logs of schemas of delta-spark and of puredelta: the same stops, and one log for both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.reference.test_streams import offsets, ours, theirs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVERYTHING = {
    "allowSourceColumnRename": "always",
    "allowSourceColumnDrop": "always",
    "allowSourceColumnTypeChange": "always",
}
ENDINGS = (
    "DELTA_STREAMING_METADATA_EVOLUTION",
    "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
)


def run(rows: DataFrame, checkpoint: Path) -> tuple[list[Any], str]:
    """Return the batches with rows, and the class of the error that ended the query.

    A batch that reached a limit goes on to the next file with delta-spark, and ends here.
    """
    batches: list[Any] = []

    def take(batch: DataFrame, _: int) -> None:
        known = batch.drop("_commit_timestamp")
        if rows := sorted(map(str, known.collect())):
            batches.append((known.columns, rows))

    writer = rows.writeStream.foreachBatch(take).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        text = str(error)
        return batches, next((name for name in ENDINGS if name in text), text)
    return batches, ""


def entries(checkpoint: Path) -> list[Any]:
    """Return the log of schemas as values: the order of keys and of sets means nothing."""
    found = []
    files = sorted(checkpoint.glob("_schema_log_*/[0-9]*"), key=lambda path: int(path.name))
    for file in files:
        header, _, body = file.read_text().partition("\n")
        values = json.loads(body)
        for key in ("dataSchemaJson", "partitionSchemaJson", "protocolJson"):
            values[key] = json.loads(values[key])
        for name in ("readerFeatures", "writerFeatures"):
            values["protocolJson"]["protocol"][name].sort()
        values["sourceMetadataPath"] = values["sourceMetadataPath"].rpartition("/sources/")[2]
        found.append((header, list(values), values))
    return found


def history(spark: SparkSession, path: str) -> list[Any]:
    """Return steps that change the columns of a table, with rows between some of them."""
    name = f"delta.`{path}`"
    return [
        [f"INSERT INTO {name} VALUES (1, 'a', 1)", f"INSERT INTO {name} VALUES (2, 'b', 1)"],
        [f"ALTER TABLE {name} RENAME COLUMN v TO w", f"INSERT INTO {name} VALUES (3, 'c', 2)"],
        [
            f"INSERT INTO {name} VALUES (4, 'd', 2)",
            f"ALTER TABLE {name} DROP COLUMN w",
            f"ALTER TABLE {name} ADD COLUMN w INT",
            f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT",
            f"INSERT INTO {name} VALUES (5, 2, 5)",
        ],
        [
            f"ALTER TABLE {name} SET TBLPROPERTIES ('note' = '1')",
            f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '7')",
            f"INSERT INTO {name} VALUES (6, 3, 6)",
        ],
    ]


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, v STRING, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', "
        "'delta.enableChangeDataFeed' = 'true')"
    )
    return path


CASES: dict[str, dict[str, str]] = {
    "whole": {"maxFilesPerTrigger": "1"},
    "changes": {"startingVersion": "0", "readChangeFeed": "true"},
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_stops(spark: SparkSession, tmp_path: Path, path: str, case: str) -> None:
    """Step for step the same batches, errors, offsets and logs; each step is run to its end."""
    for steps in history(spark, path):
        for statement in steps:
            spark.sql(statement)
        for _ in range(5):
            runs = []
            for read, where in ((theirs, tmp_path / "a"), (ours, tmp_path / "b")):
                options = {**CASES[case], "schemaTrackingLocation": str(where)}
                refused = run(read(spark, path, **options), where)
                runs.append((refused, run(read(spark, path, **options, **EVERYTHING), where)))
            assert runs[1] == runs[0]
            if not runs[0][1][1]:
                break
        assert not runs[0][1][1], "it came to an end"
    keys = ("reservoirVersion", "index", "isStartingVersion", "sourceVersion")
    places = [
        [tuple(json.loads(text)[key] for key in keys) for text in offsets(tmp_path / where)]
        for where in "ab"
    ]
    stops = [[place for place in known if place[1] in {-20, -19}] for known in places]
    assert stops[1] == stops[0]
    assert places[1][-1] == places[0][-1]
    assert entries(tmp_path / "b") == entries(tmp_path / "a")
    assert len(entries(tmp_path / "a")) > 3


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_one_log_for_both(spark: SparkSession, tmp_path: Path, path: str, first: str) -> None:
    """Every run is that of the other one: each row comes once, in the columns of its version."""
    turns: list[Any] = [theirs, ours] if first == "theirs" else [ours, theirs]
    checkpoint, seen, runs = tmp_path / "c", [], 0
    options = {"schemaTrackingLocation": str(checkpoint), **EVERYTHING}
    for steps in history(spark, path):
        for statement in steps:
            spark.sql(statement)
        why = "begin"
        while why:
            found, why = run(turns[runs % 2](spark, path, **options), checkpoint)
            assert why in {"", ENDINGS[0]}
            seen += [row for _, rows in found for row in rows]
            runs += 1
    assert sorted(seen) == [
        "Row(id=1, v='a', p=1)",
        "Row(id=2, v='b', p=1)",
        "Row(id=3, w='c', p=2)",
        "Row(id=4, w='d', p=2)",
        "Row(id=5, p=2, w=5)",
        "Row(id=6, p=3, w=6)",
    ]
    assert runs > len(history(spark, path))
