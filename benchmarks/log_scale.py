"""A log of a million active files: opened, pruned, appended to, by each engine in turn.

    python -m benchmarks.log_scale [--files 1000000] [--directory DIR] [--policy v2]

The log is laid once: four commits and a checkpoint of them (one file; V2 with `--policy v2`; ten
files, as other writers make them, with `--policy parts`).
Its data files do not exist: nothing here reads rows. Every engine works in a process of its own
on the same log, one after the other, and what it commits is removed. Seconds are those on the
clock, and those of a processor that the process and all it started used: on a machine that others
use, too, only the second can be compared. delta-spark and delta-rs append a row, puredelta the
action alone: its Spark job is measured by `benchmarks.trickle`.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.engines import python_of
from benchmarks.processes import forget_peaks, peaks, processor_seconds

DAYS = 1_000
PARTS = 10
FIRST_DAY = dt.date(2020, 1, 1)
_FIELDS = (("id", "long"), ("v", "double"), ("name", "string"), ("day", "date"))
_SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _FIELDS
    ],
}
ENGINES = ("puredelta", "delta-rs", "delta-spark")
Step = tuple[str, Callable[[], object]]


# --- the log ---------------------------------------------------------------------------------


def lay_log(root: Path, num_files: int, policy: str) -> None:
    """Write the commits, and with puredelta the checkpoint of the last of them."""
    from puredelta.log.maintenance.checkpoint_write import write_checkpoint  # noqa: PLC0415
    from puredelta.log.replay.table_log import TableLog  # noqa: PLC0415

    log = root / "_delta_log"
    log.mkdir(parents=True)
    _write(log / f"{0:020d}.json", map(json.dumps, _head(policy)))
    for commit in range(4):
        part = range(commit * num_files // 4, (commit + 1) * num_files // 4)
        _write(log / f"{commit + 1:020d}.json", map(_add, part))
    table = TableLog.open(str(root))
    started, used = time.perf_counter(), processor_seconds()
    snapshot = table.snapshot()
    _show("puredelta", "open from four commits", started, used)
    started, used = time.perf_counter(), processor_seconds()
    write_checkpoint(table.store, snapshot, now_ms=int(time.time() * 1000))
    _show("puredelta", "checkpoint", started, used)
    if policy == "parts":
        _split(log)


def _split(log: Path) -> None:
    """Replace a checkpoint in one file by one in several, with the same rows in their order."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    (whole,) = log.glob("*.checkpoint.parquet")
    version, rows = whole.name.split(".")[0], pq.read_table(whole)
    size = -(-rows.num_rows // PARTS)
    for part in range(PARTS):
        name = f"{version}.checkpoint.{part + 1:010d}.{PARTS:010d}.parquet"
        pq.write_table(rows.slice(part * size, size), log / name)
    whole.unlink()
    hint = {"version": int(version), "size": rows.num_rows, "parts": PARTS}
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def _head(policy: str) -> Iterator[dict[str, Any]]:
    is_v2 = policy == "v2"
    names = ["v2Checkpoint"] if is_v2 else None
    protocol = {"minReaderVersion": 3 if is_v2 else 1, "minWriterVersion": 7 if is_v2 else 2}
    listed = {"readerFeatures": names, "writerFeatures": names} if is_v2 else {}
    yield {"protocol": {**protocol, **listed}}
    yield {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(_SCHEMA),
            "partitionColumns": ["day"],
            "configuration": {"delta.checkpointPolicy": "v2" if policy == "v2" else "classic"},
            "createdTime": 1,
        }
    }


def _add(number: int) -> str:
    day = FIRST_DAY + dt.timedelta(days=number % DAYS)
    stats = {
        "numRecords": 1000,
        "minValues": {"id": number * 1000, "v": number * 0.5, "name": f"n{number:07d}"},
        "maxValues": {"id": number * 1000 + 999, "v": number * 0.5 + 9, "name": f"n{number:07d}z"},
        "nullCount": {"id": 0, "v": 0, "name": 3},
    }
    name = uuid.UUID(int=number * 2_654_435_761)
    body = {
        "path": f"day={day}/part-{number % 1000:05d}-{name}.c000.snappy.parquet",
        "partitionValues": {"day": str(day)},
        "size": 123_456 + number % 1000,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }
    return json.dumps({"add": body}, separators=(",", ":"))


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w") as stream:
        for line in lines:
            stream.write(line + "\n")


# --- engines ---------------------------------------------------------------------------------


def puredelta_steps(root: str, low: int, day: dt.date) -> Iterator[Step]:
    """The log alone: no session is started."""
    from puredelta.log.commit.commit_request import CommitRequest  # noqa: PLC0415
    from puredelta.log.commit.transaction import Transaction  # noqa: PLC0415
    from puredelta.log.replay.table_log import TableLog  # noqa: PLC0415
    from puredelta.log.skipping.pruning import prune_files  # noqa: PLC0415
    from puredelta.protocol.actions.actions import Add  # noqa: PLC0415
    from puredelta.protocol.actions.operations import Operation  # noqa: PLC0415
    from puredelta.protocol.schema import predicates as p  # noqa: PLC0415
    from puredelta.protocol.schema.types import DATE, LONG  # noqa: PLC0415

    log = TableLog.open(root)

    def compare(column: str, kind: Any, op: p.CompareOp, value: object) -> p.Compare:
        return p.Compare(op, p.Ref(p.Side.TARGET, (column,), kind), p.Const(value))

    def prune(predicate: p.Predicate) -> object:
        snapshot = log.snapshot()
        return prune_files(snapshot.files, snapshot.config, predicate)

    def append() -> object:
        add = Add(
            path=f"new-{uuid.uuid4()}.parquet",
            partition_values={"day": str(day)},
            size_bytes=1,
            modified_ms=1,
            data_change=True,
            stats='{"numRecords":1}',
        )
        request = CommitRequest(actions=[add], operation=Operation(name="WRITE", parameters={}))
        return Transaction(log, log.snapshot(), engine_info="bench").commit(request)

    begins = compare("id", LONG, p.CompareOp.GREATER_OR_EQUAL, low)
    ends = compare("id", LONG, p.CompareOp.LESS, low + 100_000)
    by_partition, by_key = compare("day", DATE, p.CompareOp.EQUAL, day), p.And((begins, ends))
    yield "open", log.snapshot
    for again in ("", " again"):
        yield f"prune by partition{again}", lambda: prune(by_partition)
    for again in ("", " again"):
        yield f"prune by key range{again}", lambda: prune(by_key)
    yield "append", append
    yield "append again", append


def rust_steps(root: str, low: int, day: dt.date) -> Iterator[Step]:
    """deltalake."""
    import pyarrow as pa  # noqa: PLC0415
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415

    tables: list[Any] = []
    rows = pa.table({"id": [1], "v": [1.0], "name": ["x"], "day": pa.array([day])})
    yield "open", lambda: tables.append(DeltaTable(root))
    keys = f"id >= {low} AND id < {low + 100_000}"

    def prune(predicate: str) -> object:
        return tables[0].file_uris(file_pruning_predicate=predicate)

    for again in ("", " again"):
        yield f"prune by partition{again}", lambda: prune(f"day = '{day}'")
    for again in ("", " again"):
        yield f"prune by key range{again}", lambda: prune(keys)
    yield "append", lambda: write_deltalake(tables[0], rows, mode="append")
    yield "append again", lambda: write_deltalake(tables[0], rows, mode="append")


def spark_steps(root: str, low: int, day: dt.date) -> Iterator[Step]:
    """delta-spark in a session of two cores, with the log's files cached as it caches them."""
    import delta  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    )
    spark = delta.configure_spark_with_delta_pip(builder).getOrCreate()
    spark.range(10).count()

    def table() -> Any:
        return spark.read.format("delta").load(root)

    def opened() -> object:
        log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, root)  # noqa: SLF001
        return log.unsafeVolatileSnapshot().numOfFiles()

    def append() -> object:
        row = spark.sql(f"SELECT 1L AS id, 1D AS v, 'x' AS name, DATE'{day}' AS day")
        return row.write.format("delta").mode("append").save(root)

    yield "open", opened
    keys = f"id >= {low} AND id < {low + 100_000}"
    day_only = f"day = DATE'{day}'"
    for again in ("", " again"):
        yield f"prune by partition{again}", lambda: table().filter(day_only).inputFiles()
    for again in ("", " again"):
        yield f"prune by key range{again}", lambda: table().filter(keys).inputFiles()
    yield "append", append
    yield "append again", append


_STEPS = {"puredelta": puredelta_steps, "delta-rs": rust_steps, "delta-spark": spark_steps}


# --- measuring -------------------------------------------------------------------------------


def measure(engine: str, root: Path, num_files: int) -> None:
    """Run the steps of one engine here, and print what they took."""
    before = {path.name for path in (root / "_delta_log").iterdir()}
    day = FIRST_DAY + dt.timedelta(days=min(DAYS, num_files) // 2)
    try:
        for name, run in _STEPS[engine](str(root), num_files // 2 * 1000, day):
            forget_peaks()
            started, used = time.perf_counter(), processor_seconds()
            run()
            _show(engine, name, started, used)
    finally:
        for path in (root / "_delta_log").iterdir():
            if path.name not in before and path.is_file():
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()


def _show(engine: str, step: str, started: float, used: float) -> None:
    seconds, processor = time.perf_counter() - started, processor_seconds() - used
    memory = sum(peaks().values())
    print(f"| {engine} | {step} | {seconds:.2f} | {processor:.2f} | {memory:.0f} |", flush=True)


def main() -> int:
    """Lay the log if it is not there, and measure every engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=Path("/tmp/puredelta-log-scale"))
    parser.add_argument("--policy", choices=("classic", "v2", "parts"), default="classic")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--only", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    root = options.directory / f"{options.policy}-{options.files}"
    if options.only is not None:
        measure(options.only, root, options.files)
        return 0
    print("| engine | step | seconds | processor s | memory MB |\n| --- | --- | --- | --- | --- |")
    if not (root / "_delta_log").exists():
        lay_log(root, options.files, options.policy)
    failed = 0
    for engine in options.engines.split(","):
        python = python_of(engine)
        arguments = ["--files", str(options.files), "--directory", str(options.directory)]
        arguments += ["--policy", options.policy]
        failed |= subprocess.run(
            [python, "-m", "benchmarks.log_scale", *arguments, "--only", engine],
            check=False,
            env={**os.environ, "PYSPARK_PYTHON": python},
        ).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
