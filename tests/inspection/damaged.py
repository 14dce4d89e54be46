"""Healthy histories made at random, and damage planted in them."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.files.deletion_vectors import (
    DeletionVectorUpdate,
    read_vector,
    write_vectors,
)
from puredelta.log.files.file_table import remove_file
from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Add, AddChangeFile, Protocol, SetTransaction
from puredelta.protocol.schema.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    StructField,
    StructType,
)
from tests.filled_table import SmallTable

FEATURES = ("columnMapping", "typeWidening", "timestampNtz", "deletionVectors")
PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset(FEATURES),
    writer_features=frozenset(
        {
            *(*FEATURES, "appendOnly", "invariants", "changeDataFeed", "inCommitTimestamp"),
            *("rowTracking", "domainMetadata"),
        }
    ),
)
UNTRACKED = replace(
    PROTOCOL, writer_features=(PROTOCOL.writer_features or frozenset()) - {"rowTracking"}
)
SCHEMA = StructType(
    (
        StructField("id", LONG, nullable=False),
        StructField("p", STRING),
        StructField("n", INTEGER),
        StructField("x", DOUBLE),
        StructField("s", STRING),
        StructField("d", DATE),
        StructField("t", TIMESTAMP),
        StructField("m", DecimalType(12, 3)),
    )
)
HOUR_S = 3_600


def healthy(root: Path, seed: int, *, steps: int = 12) -> SmallTable:
    """Make a table with commits of many kinds; every file is two hours old."""
    random_ = random.Random(seed)
    table = SmallTable(
        root,
        SCHEMA,
        partitioned_by=random_.choice([(), ("p",), ("p", "n")]),
        protocol=random_.choice([PROTOCOL, UNTRACKED]),
        delta__enableDeletionVectors="true",
        delta__enableInCommitTimestamps=random_.choice(["true", "false"]),
        delta__checkpointInterval=str(random_.choice([3, 5, 100])),
        delta__checkpointPolicy="classic",
    )
    table.append(rows(random_))
    for number in range(steps):
        random_.choice(STEPS)(table, random_, number)
    age(root)
    return table


def age(root: Path) -> None:
    """Make data files older than a job at work."""
    for file in root.rglob("*"):
        if file.is_file() and "_delta_log" not in file.parts:
            past = file.stat().st_mtime - 2 * HOUR_S
            os.utime(file, (past, past))


def rows(random_: random.Random) -> list[dict[str, Any]]:
    where = {"p": random_.choice(["a", "b c", None]), "n": random_.choice([1, 2, None])}
    start = random_.randrange(1_000)
    zone = dt.timezone.utc
    return [
        {
            "id": start + number,
            **where,
            "x": random_.choice([None, -0.0, 1.5, random_.random()]),
            "s": random_.choice([None, "", "x" * 50, "ä\U0001f600", str(random_.random())]),
            "d": random_.choice([None, dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
            "t": random_.choice([None, dt.datetime(1969, 12, 31, 23, 0, 0, 123_456, tzinfo=zone)]),
            "m": random_.choice([None, 0, -12]),
        }
        for number in range(random_.randrange(1, 6))
    ]


def append_step(table: SmallTable, random_: random.Random, _: int) -> None:
    needs_counts = table.config.supports("rowTracking")
    table.append(rows(random_), stats=needs_counts or random_.random() > 0.1)


def rewrite_step(table: SmallTable, random_: random.Random, _: int) -> None:
    file = _chosen(table, random_)
    if file is not None:
        table.commit(remove_file(file), table.file(rows(random_)))


def compact_step(table: SmallTable, random_: random.Random, _: int) -> None:
    """Write a file again as it is, as OPTIMIZE does."""
    file = _chosen(table, random_)
    if file is None or file.deletion_vector is not None:
        return
    name = f"compact-{random_.random()}.parquet"
    (table.root / name).write_bytes((table.root / file.path.replace("%20", " ")).read_bytes())
    same = replace(file, path=name, data_change=False, base_row_id=None,
                   default_row_commit_version=None)  # fmt: skip
    table.commit(remove_file(file, data_change=False), same)


def delete_rows_step(table: SmallTable, random_: random.Random, _: int) -> None:
    file = _chosen(table, random_)
    if file is None or physical_rows(file) is None:
        return
    old = np.array([], np.uint64)
    if file.deletion_vector is not None:
        old = read_vector(file.deletion_vector, table.log.root_uri, store=table.log.store)
    gone = random_.randrange(physical_rows(file) or 1)
    positions = np.union1d(np.asarray(old, np.uint64), np.array([gone], np.uint64))
    update = DeletionVectorUpdate(file=file, rows=positions)
    written = write_vectors([update], store=table.log.store, config=table.config)
    table.commit(remove_file(file), *written.adds)


def change_feed_step(table: SmallTable, random_: random.Random, number: int) -> None:
    file = _chosen(table, random_)
    if file is None or physical_rows(file) is None or file.deletion_vector is not None:
        return
    added = table.file(rows(random_))
    kinds = ["delete"] * (physical_rows(file) or 0) + ["insert"] * (physical_rows(added) or 0)
    path = table.root / "_change_data" / f"cdc-{number}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"_change_type": kinds}), path)
    change = AddChangeFile(
        path=f"_change_data/{path.name}",
        partition_values=added.partition_values,
        size_bytes=path.stat().st_size,
    )
    table.commit(remove_file(file), added, change)


def stream_step(table: SmallTable, random_: random.Random, number: int) -> None:
    table.commit(
        table.file(rows(random_)),
        SetTransaction(app_id="stream", version=number, last_updated_ms=1),
    )


def new_column_step(table: SmallTable, _: random.Random, number: int) -> None:
    known = table.config.schema.fields
    table.change(StructType((*known, StructField(f"new {number}", STRING))))


def property_step(table: SmallTable, _: random.Random, number: int) -> None:
    table.change(note=str(number))


def _chosen(table: SmallTable, random_: random.Random) -> Add | None:
    files = list(table.log.snapshot().files.adds())
    return random_.choice(files) if files else None


Step = Callable[[SmallTable, random.Random, int], None]
STEPS: list[Step] = [
    *(
        append_step,
        append_step,
        rewrite_step,
        compact_step,
        delete_rows_step,
        change_feed_step,
        stream_step,
    ),
    *(new_column_step, property_step),
]


# --- planted damage -------------------------------------------------------------------------


def lines(table: SmallTable, version: int) -> list[dict[str, Any]]:
    text = log_file(table, version).read_text()
    return [json.loads(line) for line in text.splitlines()]


def write_lines(table: SmallTable, version: int, actions: list[dict[str, Any]]) -> None:
    log_file(table, version).write_text("".join(json.dumps(a) + "\n" for a in actions))


def log_file(table: SmallTable, version: int) -> Path:
    return table.root / "_delta_log" / f"{version:020d}.json"


def change_lines(
    table: SmallTable, version: int, kind: str, change: Callable[[dict[str, Any]], object]
) -> None:
    """Change each action of a kind in a commit."""
    actions = lines(table, version)
    for action in actions:
        if kind in action:
            change(action[kind])
    write_lines(table, version, actions)
