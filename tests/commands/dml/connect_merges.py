"""Merges through a Spark Connect session, run as a program of its own by `test_connect`.

A process cannot hold a classic and a Connect session. The answers are one JSON object on
the last line: what each merge counted, and the sum of the ids and values it left.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.commands.dml import search, write
from puredelta.commands.dml.spec import Clause
from puredelta.errors import InvalidRequestError
from puredelta.protocol.schema.types import LONG, STRING, StructField
from puredelta.protocol.table.table_config import CHAR_VARCHAR
from puredelta.spark.offload.key_lookup import look_up_keys
from puredelta.spark.offload.source_copy import plan_copy
from puredelta.tables import DeltaTable
from tests.commands.dml.features import (
    FEED,
    TRACKING,
    is_explained,
    make_table,
    source,
    tracked_rows,
)
from tests.commands.dml.tables import (
    data_files,
    delete,
    delete_by_source,
    insert,
    lay_table,
    merge,
    table_rows,
    update,
    update_by_source,
)
from tests.commands.filled import defaulted, generated, identity, lay_empty
from tests.connect_session import answers_to, connect_builder

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
MERGES: dict[str, tuple[Clause, ...]] = {
    "upsert": (update(), insert()),
    "keeping_columns": (update(v="s.v"), insert("s.v = 3")),
    "deleting": (delete("s.v = 1"),),
    "by_source": (
        update("s.v = 1", v="t.v + s.v"),
        delete_by_source("id > 35"),  # unqualified: the target is meant
        update_by_source("v = 30", v="v + 1"),
    ),
}

AMOUNTS_OF_MERGES = {"sample": ("upsert", "by_source"), "every": tuple(MERGES)}


def main(directory: Path, amount: str) -> None:
    spark = connect_builder().getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    answers = merges(spark, directory, AMOUNTS_OF_MERGES[amount])
    answers |= answers_to(AMOUNTS[amount], spark, directory=directory)
    spark.stop()
    print(json.dumps(answers))  # noqa: T201 - how the test is answered


def merges(spark: SparkSession, directory: Path, names: Iterable[str]) -> dict[str, object]:
    """Run the merges, and note what workers do for them."""
    answers: dict[str, object] = {}
    lookups: list[str] = []
    copies: list[str] = []

    def noted(call: Callable[..., Any], notes: list[str]) -> Callable[..., Any]:
        def noting(*arguments: Any, **named: Any) -> Any:
            answer = call(*arguments, **named)
            notes.append(getattr(answer, "reason", "done"))
            return answer

        return noting

    search.look_up_keys = noted(look_up_keys, lookups)  # type: ignore[attr-defined]
    write.plan_copy = noted(plan_copy, copies)  # type: ignore[attr-defined]
    tasks = tasks_of_workers(spark)
    for name in names:
        clauses = MERGES[name]
        root = directory / name
        rows = [[{"id": n, "p": "a", "v": n} for n in range(k, k + 10)] for k in range(0, 40, 10)]
        log = lay_table(root, SCHEMA, rows)
        before = data_files(root)
        source = spark.createDataFrame(
            [(3, "b", 1), (12, "b", 2), (50, "b", 3)], "id long, p string, v long"
        )
        counts = merge(spark, log, source, "t.id = s.id", *clauses).rows
        left = table_rows(spark, log)
        active = {add.path for add in log.snapshot().files.adds()}
        answers[name] = [
            [counts.updated, counts.deleted, counts.inserted, counts.copied],
            [len(left), sum(r["id"] for r in left), sum(r["v"] for r in left)],
            sorted(data_files(root) - before - active),
        ]
    return {**answers, "lookups": lookups[:], "copies": copies[:], "tasks": tasks[:]}


def tasks_of_workers(spark: SparkSession) -> list[str]:
    """Return a list to which the kind of rows is added that each job of workers gets."""
    stub: Any = spark.client._stub  # type: ignore[attr-defined]
    send, found = stub.ExecutePlan, list[str]()

    def noting(request: Any, *arguments: Any, **named: Any) -> Any:
        if request.plan.root.WhichOneof("rel_type") == "map_partitions":
            found.append(request.plan.root.map_partitions.input.WhichOneof("rel_type"))
        return send(request, *arguments, **named)

    stub.ExecutePlan = noting
    return found


def bound_columns(spark: SparkSession, root: Path) -> object:
    """Columns taken from the source, and from the table's own frame; then from another frame."""
    log = lay_table(root, SCHEMA, [[{"id": n, "p": "a", "v": n} for n in range(10)]])
    table = DeltaTable.forPath(spark, str(root))
    old = table.toDF()
    news = spark.createDataFrame([(3, "b", 1), (50, "b", 3)], "id long, p string, v long")
    merge = table.alias("t").merge(news.where("id > 0").alias("s"), old["id"] == news["id"])
    merge = merge.whenMatchedUpdate(old["v"] > 2, {"v": old["v"] + news["v"]})
    values = {"id": news.id, "p": news["p"], "v": news.v}
    merge.whenNotMatchedInsert(news.v > 2, values).execute()
    table.delete(old["id"] == 4)
    table.update(old.id == 5, {"v": old.v * 2})
    left = sorted([r["id"], r["v"]] for r in table_rows(spark, log))
    try:
        table.delete(spark.range(1)["id"] == 1)
    except AnalysisException as error:
        return [left, error.getCondition()]
    return [left, ""]


def sides_of_a_join(spark: SparkSession, root: Path) -> object:
    """A source is a join: its sides have aliases, and columns are taken from them."""
    log = lay_table(root, SCHEMA, [[{"id": n, "p": "a", "v": n} for n in range(6)]])
    table = DeltaTable.forPath(spark, str(root)).alias("t")
    left = spark.range(2, 8).selectExpr("id", "id * 10 AS v").alias("a")
    right = spark.range(0, 5).selectExpr("id", "id * 100 AS w").alias("b")
    both = left.join(right, left["id"] == right["id"], "left")
    merge = table.merge(both, "t.id = a.id AND a.v > 20")
    merge.whenMatchedUpdate("b.w IS NOT NULL", {"v": "b.w + a.v"}).execute()
    found: list[object] = [sorted([r["id"], r["v"]] for r in table_rows(spark, log))]
    merge = table.merge(both, F.col("t.id") == F.col("a.id"))
    merge = merge.whenMatchedUpdate(right["w"] == 400, {"v": left["v"] - right["w"]})
    merge.whenNotMatchedInsert(values={"id": left["id"], "p": F.lit("n"), "v": "a.v"}).execute()
    found.append(sorted([r["id"], r["v"]] for r in table_rows(spark, log)))
    rows = both.where("b.id IS NOT NULL").selectExpr("a.id", "'r' AS p", "w AS v")
    options = {"replaceOn": "t.id = a.id AND a.id < 4", "targetAlias": "t"}
    puredelta.write(rows, str(root), mode="overwrite", options=options)
    found.append(sorted([r["id"], r["v"]] for r in table_rows(spark, log)))
    try:
        table.merge(both, "t.id = c.id").whenMatchedDelete().execute()
    except AnalysisException as error:
        found.append(error.getCondition())
    return found


def changes(spark: SparkSession, root: Path) -> list[object]:
    """UPDATE and DELETE; ends with what is refused."""
    rows = [[{"id": n, "p": p, "v": n} for n in range(k, k + 3)] for k, p in ((0, "a"), (3, "b"))]
    log = lay_table(root, SCHEMA, rows, partition_by=["p"])
    target, table = f"delta.`{root}`", DeltaTable.forPath(spark, str(root))
    puredelta.sql(
        spark,
        f"UPDATE {target} AS t SET t.v = v + (SELECT max(x) FROM VALUES (7) AS u(x)) WHERE id = 1",
    )
    table.alias("t").update("t.id = 4", {"t.v": "t.id * 10", "p": "'c'"})
    [deleted] = puredelta.sql(spark, f"DELETE FROM {target} WHERE p = 'b'").collect()
    table.delete("v = 2")
    wrong = ("nope = 1", "rand() > 2", "sum(id) > 1", "id IN (SELECT 1)", "id")
    refusals = [refusal(table, condition) for condition in wrong]
    left = [[r["id"], r["p"], r["v"]] for r in table_rows(spark, log)]
    return [left, deleted.num_affected_rows, refusals]


def refusal(table: DeltaTable, condition: str) -> str | None:
    try:
        table.delete(condition)
    except (InvalidRequestError, AnalysisException) as error:
        return error.getCondition()
    return None


def moments(spark: SparkSession, root: Path) -> list[int]:
    """How many moments there are in the rows of one MERGE, and of one UPDATE (M-24)."""
    rows = "SELECT id, {0} AS a, {0} AS b, {0} AS c, {0} AS d FROM range({1})"
    puredelta.write(spark.sql(rows.format("timestamp'2020-01-01'", 3)), root)
    source = spark.sql("SELECT id, now() AS x, current_timestamp() AS y FROM range(1, 9)")
    puredelta.sql(
        spark,
        f"MERGE INTO delta.`{root}` t USING {{s}} s ON t.id = s.id AND t.a < current_timestamp "
        "WHEN MATCHED THEN UPDATE SET a = s.x, b = s.y, c = s.z, d = current_timestamp() "
        "WHEN NOT MATCHED THEN INSERT (id, a, b, c, d) VALUES (s.id, s.x, s.y, s.z, now()) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = now(), b = now(), c = now(), d = now()",
        s=source.withColumn("z", F.current_timestamp()),
    )
    table = DeltaTable.forPath(spark, root)
    found = [{moment for row in table.toDF().collect() for moment in list(row)[1:]}]
    table.update(set={"a": "now()", "b": F.now(), "c": "current_timestamp", "d": "now()"})
    found.append({moment for row in table.toDF().collect() for moment in list(row)[1:]})
    return [*map(len, found), len(found[0] & found[1])]


def with_features(spark: SparkSession, root: Path) -> list[object]:
    """With a change data feed and row ids: delete 1, update 2, copy 3, insert 9."""
    rows = [(n, "x", "a") for n in (1, 2, 3)]
    log = make_table(spark, root, rows, properties={**FEED, **TRACKING})
    changes = source(spark, (1, "y", "a"), (2, "y", "a"), (9, "y", "a"))
    merge(spark, log, changes, "t.k = s.k", delete("t.k = 1"), update(), insert())
    ids = tracked_rows(spark, log)
    return [is_explained(spark, log, 1), [ids[key] for key in (2, 3)], ids[9][0] > 2]


def filled_columns(spark: SparkSession, root: Path) -> list[object]:
    """Defaults, a generated and an identity column, ``char(n)``: append, then merge."""
    log = lay_empty(
        root,
        identity("id", start=10, step=5),
        StructField("k", LONG),
        defaulted("d", LONG, "1 + 1"),
        generated("g", LONG, "K * d"),
        StructField("c", STRING, metadata={CHAR_VARCHAR: "char(2)", "CURRENT_DEFAULT": "'x'"}),
    )
    puredelta.write(spark.range(3).withColumnRenamed("id", "k"), log.root_uri, mode="append")
    table = DeltaTable.forPath(spark, log.root_uri).alias("t")
    new = spark.range(2, 5, 1, 1).withColumnRenamed("id", "k").alias("s")
    (
        table.merge(new, "t.k = s.k")
        .whenMatchedUpdate(set={"k": "t.k + 10", "d": "DEFAULT"})
        .whenNotMatchedInsert("s.k = 3", values={"k": "s.k", "d": "7"})
        .whenNotMatchedInsert(values={"k": "s.k", "d": "DEFAULT"})
        .execute()
    )
    mark = log.snapshot().config.identity_columns["id"].high_water_mark
    return [*(list(row) for row in table.toDF().sort("k").collect()), mark]


def dropped_features(spark: SparkSession, root: Path) -> list[object]:
    """Column mapping and widened types leave the files; rows keep their ids."""
    features = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    rows = [(n, f"v{n}", "a") for n in (1, 2, 3)]
    log = make_table(spark, root, rows, properties={**features, **TRACKING})
    ids = tracked_rows(spark, log)
    for change in (
        "ALTER COLUMN k TYPE BIGINT",
        "RENAME COLUMN v TO w",
        "DROP FEATURE typeWidening",
        "DROP FEATURE columnMapping",
    ):
        puredelta.sql(spark, f"ALTER TABLE delta.`{root}` {change}")
    left = [list(row) for row in puredelta.read(spark, log.root_uri).sort("k").collect()]
    return [left, tracked_rows(spark, log) == ids]


def legacy(spark: SparkSession, root: Path) -> list[object]:
    """The casts of a policy, and of a setting of delta-spark, that are not the session's own."""
    target = f"delta.`{root}`"
    puredelta.sql(spark, f"CREATE TABLE {target} (id INT, v INT) USING delta")
    spark.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    rows = spark.sql("SELECT * FROM VALUES (1, '7'), (2, 'abc'), (3, '5000000000') AS r(id, v)")
    puredelta.sql(spark, f"INSERT INTO {target} SELECT * FROM {{rows}}", rows=rows)
    row = "SELECT 1 AS id, array(5000000000L, 6L) AS l"
    puredelta.sql(
        spark,
        f"MERGE INTO {target} t USING ({row}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.l[0]",
    )
    spark.conf.unset("spark.sql.storeAssignmentPolicy")
    found: list[object] = [sorted(map(list, puredelta.read(spark, str(root)).collect()))]
    spark.conf.set(_FOLLOWS, "true")
    try:
        puredelta.sql(spark, f"UPDATE {target} SET v = '1 000' WHERE id = 2")
    except PySparkException as error:
        found.append(error.getCondition())
    spark.conf.unset(_FOLLOWS)
    return found


_FOLLOWS = "spark.databricks.delta.updateAndMergeCastingFollowsAnsiEnabledFlag"


def refused(spark: SparkSession, root: Path) -> list[object]:
    log = lay_table(root, SCHEMA, [[{"id": 1, "p": "a", "v": 1}]])
    twice = spark.createDataFrame([(1, "b", 1), (1, "b", 2)], "id long, p string, v long")
    try:
        merge(spark, log, twice, "t.id = s.id", update())
    except InvalidRequestError as error:
        return [error.code.name, "(id = 1) matches 2 source rows" in error.message]
    return []


CHECKS = (
    changes,
    with_features,
    dropped_features,
    filled_columns,
    bound_columns,
    sides_of_a_join,
    legacy,
    refused,
    moments,
)
AMOUNTS = {"sample": (changes, bound_columns, refused), "every": CHECKS}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
