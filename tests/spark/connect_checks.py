"""What `test_connect` asks of a Spark Connect session, run as a program of its own.

A process cannot hold a classic and a Connect session, and starting one is dear: all questions
are asked in one go, the answers are one JSON object on the last line.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from operator import neg
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.api import read
from puredelta.commands.changes import read_changes
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import AddChangeFile, Remove
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    StructField,
    StructType,
)
from puredelta.spark.offload.workers import WorkerCalls, WorkerSettings, run_in_workers
from puredelta.spark.scan.scan import scan, scan_parquet
from puredelta.spark.session.names import FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.session import NotApplicable, SessionInfo
from puredelta.spark.session.types import to_spark
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.activation.connect_check import activated, activated_sql
from tests.commands import test_reader_settings as reader
from tests.commands import test_row_changes as row_changes_of
from tests.commands.hand_histories import random_history
from tests.connect_session import Checks, answers_to, connect_builder
from tests.spark.catalogs.connect_names import catalog_names
from tests.spark.connect_maintenance import maintenance, progress
from tests.spark.files import write_file
from tests.spark.scan.connect_own_reads import own_reads
from tests.spark.tables import TableFiles
from tests.statements.connect_columns import query_columns
from tests.statements.connect_statements import statements


def longs(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def schema(**columns: Any) -> StructType:
    return StructType(tuple(StructField(n, t) for n, t in columns.items()))


def tuples(rows: DataFrame) -> list[list[Any]]:
    return sorted(list(map(str, row)) for row in rows.collect())


def session(spark: SparkSession, _: Path) -> Any:
    return SessionInfo.of(spark).is_connect


def mixed(directory: Path) -> TableFiles:
    """Odd paths, typed partition values, deletion vectors, a column old files lack."""
    table = TableFiles.create(
        directory / "t b", schema(p=STRING, id=LONG, n=INTEGER), partition_columns=["p", "n"]
    )
    ids = {"id": longs(0, 1, 2, 3)}
    table.write("p=a b/0 %20+é.parquet", ids, values={"p": "a b", "n": "-1"}, deleted=[0, 3])
    table.write("p={x}[y]*/1.parquet", ids, values={"p": "", "n": None})
    table.write("p=a b/2.parquet", ids, values={"p": "a b", "n": "7"}, deleted=[1], inline=True)
    return table


def rows(spark: SparkSession, directory: Path) -> Any:
    return tuples(read(spark, mixed(directory).root))


def filtered(spark: SparkSession, directory: Path) -> Any:
    found = read(spark, mixed(directory).root).filter("p = 'a b' and n > 0")
    return tuples(found.select("id", "_metadata.row_index"))


def where(spark: SparkSession, directory: Path) -> Any:
    """Files of which a condition is given at once are not read at all."""
    root = mixed(directory).root
    conditions = ("p = 'a b' AND n > 0", "n IS NULL", "n < 0 AND id IN (1, 2)", "upper(p) = 'A B'")
    found = [read(spark, root, where=condition) for condition in conditions]
    return [[len(rows.inputFiles()), rows.count()] for rows in found]


def positions(spark: SparkSession, directory: Path) -> Any:
    snapshot = mixed(directory).snapshot()
    some = snapshot.files.take([2, 1])
    found = scan(spark, snapshot, some, columns=["id"], with_position=True)
    return tuples(found.select(FILE_ORDINAL, ROW_INDEX, "id"))


def only_positions(spark: SparkSession, directory: Path) -> Any:
    return scan(spark, mixed(directory).snapshot(), columns=[], with_position=True).count()


def empty(spark: SparkSession, directory: Path) -> Any:
    snapshot = mixed(directory).snapshot()
    found = scan(spark, snapshot, snapshot.files.take([]), with_position=True)
    return [found.columns, tuples(found)]


def staged(spark: SparkSession, directory: Path) -> Any:
    files = [write_file(directory / f"{n}.parquet", {"id": longs(n)}) for n in range(2)]
    return tuples(scan_parquet(spark, files, schema=to_spark(schema(id=LONG)), with_position=True))


def mapped_table(directory: Path, mode: str) -> TableFiles:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    table = TableFiles.create(
        directory / "t",
        StructType((StructField("a b", LONG, metadata=metadata),)),
        configuration={"delta.columnMapping.mode": mode},
    )
    table.write("x.parquet", {"col-1": longs(5)})
    return table


def mapped_by_name(spark: SparkSession, directory: Path) -> Any:
    found = read(spark, mapped_table(directory, "name").root)
    return [found.columns, tuples(found)]


def refused(action: Callable[[], Any]) -> str:
    try:
        action()
    except DeltaError as error:
        return error.code.error_class
    return "not refused"


def mapped_by_id(spark: SparkSession, directory: Path) -> Any:
    """A file without field ids, which Spark refuses, too."""
    try:
        tuples(read(spark, mapped_table(directory, "id").root))
    except PySparkException as error:
        return "has no field ids" in str(error)
    return "not refused"


def hidden(spark: SparkSession, directory: Path) -> Any:
    table = TableFiles.create(directory / "t", schema(id=LONG))
    table.write("_x.parquet", {"id": longs(1)})
    return refused(lambda: read(spark, table.root))


def cached(spark: SparkSession, directory: Path) -> Any:
    """Rows that are cached, read again: as they are, by a condition, beside themselves."""
    table = TableFiles.create(directory / "t", schema(id=LONG))
    table.write("a.parquet", {"id": longs(*range(9))})
    rows = read(spark, table.root).cache()
    try:
        again, some = read(spark, table.root), read(spark, table.root, where="id > 4")
        joined = again.join(rows.select("id"), "id").count()
        return [rows.count(), again.count(), some.count(), joined]
    finally:
        rows.unpersist()


def long_vectors(spark: SparkSession, directory: Path) -> Any:
    """A deletion vector that is too long for the text of a condition: its words are rows."""
    root = str(directory / "t")
    properties = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    puredelta.sql(spark, f"CREATE TABLE delta.`{root}` (id BIGINT) USING delta {properties}")
    puredelta.write(spark.range(0, 300_000, 1, 1), root, mode="append")
    DeltaTable.forPath(spark, root).delete("id % 1000 = 7")
    rows = read(spark, root)
    return [rows.count(), rows.where("id IN (6, 7)").count()]


def time_travel(spark: SparkSession, directory: Path) -> Any:
    root = mixed(directory).root
    both = refused(lambda: read(spark, root, version=1, timestamp="2020-01-01"))
    early = refused(lambda: read(spark, root, timestamp="2020-01-01"))
    wrong = refused(lambda: read(spark, root, timestamp="soon"))
    return [read(spark, root, version=1).count(), both, early, wrong]


def instants(spark: SparkSession, directory: Path) -> Any:
    table = TableFiles.create(
        directory / "t", schema(id=LONG, at=TIMESTAMP), partition_columns=["at"]
    )
    table.write("x.parquet", {"id": longs(1)}, values={"at": "2020-01-01T05:00:00.000000Z"})
    return tuples(read(spark, table.root).selectExpr("unix_micros(at)"))


def changed_rows(spark: SparkSession, directory: Path) -> Any:
    """One file in several commits: added, partially deleted twice, removed."""
    table = TableFiles.create(
        directory / "t b",
        schema(p=STRING, id=LONG),
        partition_columns=["p"],
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    add = table.write("p=a b/0 é.parquet", {"id": longs(0, 1, 2)}, values={"p": "a b"})
    remove = Remove(
        path=add.path,
        deleted_ms=1,
        data_change=True,
        partition_values=add.partition_values,
        size_bytes=add.size_bytes,
    )
    first, second = table.vector([1]), table.vector([0, 1], inline=True)
    table.commit(remove, replace(add, deletion_vector=first))
    table.commit(replace(remove, deletion_vector=first), replace(add, deletion_vector=second))
    kinds = pa.array(["update_preimage", "update_postimage"])
    change = table.write("_change_data/cdc-1.parquet", {"id": longs(2, 5), "_change_type": kinds})
    table.commit(
        AddChangeFile(path=change.path, partition_values={"p": None}, size_bytes=change.size_bytes)
    )
    table.commit(replace(remove, deletion_vector=second))
    log = TableLog.open(str(table.root))
    found = read_changes(spark, log, starting_version=1).where("NOT (_commit_version = 4)")
    nothing = read_changes(spark, log, starting_version=0, ending_version=0)
    return [tuples(found.drop("_commit_timestamp")), nothing.columns, tuples(nothing)]


def row_changes(spark: SparkSession, root: Path) -> Any:
    """``CHANGES`` by the feed, by row ids and by values are what the commits did."""
    history = random_history(root, 12, 5)
    made = Counter(history.changes)
    plain = row_changes_of.changes(spark, root / "plain")
    return [
        row_changes_of.changes(spark, root / "recorded", **row_changes_of.UPDATES) == made,
        row_changes_of.changes(spark, root / "tracked", **row_changes_of.UPDATES) == made,
        row_changes_of.uncarried(plain.elements()) == row_changes_of.uncarried(made.elements()),
    ]


def reader_settings(spark: SparkSession, root: Path) -> Any:
    """Rows that a DELETE does not touch are those that the session reads, with a filter none is."""
    root.mkdir()
    reader.WRITERS["int96"](spark, root)
    with temporary_settings(spark, reader.SETTINGS["conversion"]):
        DeltaTable.convertToDelta(spark, f"parquet.`{root}`")
        plain = tuples(spark.read.parquet(str(root)).where("id <> 3").selectExpr("id", "string(c)"))
        table = DeltaTable.forPath(spark, str(root))
        table.delete("id = 3")
        same = tuples(table.toDF().selectExpr("id", "string(c)")) == plain
    with temporary_settings(spark, {"parquet.read.filter": "x"}):
        try:
            table.delete("id = 1")
        except DeltaError as error:
            return [same, plain[0], error.getCondition()]
    return [same, plain[0], "no error"]


def workers(spark: SparkSession, _: Path) -> Any:
    """Tasks reach Python workers as rows of Arrow."""
    calls = [
        WorkerCalls(function=abs, messages=[-1, 2, -3]),
        WorkerCalls(function=neg, messages=[4]),
    ]
    found = run_in_workers(spark, calls, WorkerSettings())
    return found.reason if isinstance(found, NotApplicable) else list(map(sorted, found))


CHECKS: Checks = (
    session,
    rows,
    filtered,
    where,
    positions,
    only_positions,
    empty,
    staged,
    mapped_by_name,
    mapped_by_id,
    hidden,
    cached,
    long_vectors,
    time_travel,
    instants,
    changed_rows,
    reader_settings,
    row_changes,
    workers,
    own_reads,
    activated,
    activated_sql,
    statements,
    catalog_names,
    query_columns,
    maintenance,
    progress,
)


AMOUNTS = {
    "sample": (
        session,
        rows,
        staged,
        mapped_by_name,
        hidden,
        cached,
        time_travel,
        changed_rows,
        own_reads,
        activated,
        statements,
    ),
    "every": CHECKS,
}
DATABASE = "connect_checks"
"""Of names that the checks give: the server's catalog is that of other tests, too."""


def main(directory: Path, amount: str) -> None:
    spark = connect_builder().getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    spark.sql(f"CREATE DATABASE {DATABASE}")
    spark.catalog.setCurrentDatabase(DATABASE)
    answers = answers_to(AMOUNTS[amount], spark, directory=directory)
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
    spark.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
