"""What `test_request_budgets` asks of a Spark Connect session, run as a program of its own."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.session import session as sessions
from puredelta.tables import DeltaTable

Amounts = Mapping[str, Sequence[str]]
MERGE = (
    "MERGE INTO {} t USING s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


class Sent(Counter[str]):
    """The requests of a session from now on; hooks that come later are not lost."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self.relations: list[bytes] = []
        """What was asked for its columns or its rows, in the order of the requests."""
        stub: Any = spark.client._stub  # type: ignore[attr-defined]
        for name in ("ExecutePlan", "AnalyzePlan", "Config", "AddArtifacts"):
            setattr(stub, name, self._counting(name, getattr(stub, name)))

    def _counting(self, name: str, original: Any) -> Any:
        def send(*arguments: Any, **named: Any) -> Any:
            self[name] += 1
            request = arguments[0]
            plan = request.schema.plan if name == "AnalyzePlan" else getattr(request, "plan", None)
            if plan is not None and plan.HasField("root"):
                self.relations.append(plan.root.SerializeToString(deterministic=True))
            return original(*arguments, **named)

        return send

    def of(self, call: Any) -> list[int]:
        """Return the requests of a call: executed plans, questions about plans, settings."""
        self.clear()
        call()
        return [self[name] for name in ("ExecutePlan", "AnalyzePlan", "Config")]


CALLS: Amounts = {
    "sample": ("activate", "first write", "append", "merge by name"),
    "every": (
        "activate",
        "first write",
        "append",
        "merge by name",
        "merge by path",
        "merge by builder",
        "delete",
    ),
}
QUERIES: Amounts = {
    "sample": ("query by text",),
    "every": ("query by load", "query by table", "query by text"),
}
JOINS: Amounts = {"sample": ("join with t",), "every": ("join with t", "join with parts")}


def ask(spark: SparkSession, directory: Path, amount: str) -> dict[str, Any]:
    asked = {*CALLS[amount], *QUERIES[amount], *JOINS[amount]}
    sessions.SETTINGS_KEPT_SECONDS = 3600.0  # however slow this machine is
    sent, path = Sent(spark), str(directory / "t")
    found: dict[str, Any] = {"activate": sent.of(lambda: puredelta.activate(spark))}
    rows = spark.sql("SELECT id, id % 3 AS p FROM range(100)")
    found["first write"] = sent.of(lambda: rows.write.format("delta").save(path))
    append = rows.write.format("delta").mode("append")
    found["append"] = sent.of(lambda: append.save(path))
    rows.write.format("delta").saveAsTable("t")
    spark.sql("SELECT id, 7L AS p FROM range(50, 150)").createOrReplaceTempView("s")
    spark.sql(MERGE.format("t"))
    for name, call in _statements(spark, path).items():
        if name in asked:
            found[name] = sent.of(call)
    rows.write.parquet(f"{path}-plain")
    rows.write.saveAsTable("plain")
    for name, query in _queries(spark).items():
        if name in asked:
            ours, plain = (path, f"{path}-plain") if name == "query by load" else ("t", "plain")
            both = partial(query, "delta", ours), partial(query, "parquet", plain)
            found[name] = _both(sent, *both)
    spark.sql(f"SELECT * FROM parquet.`{path}-plain`").collect()
    rows.write.format("delta").partitionBy("p").saveAsTable("parts")
    for other in ("t", "parts"):
        if f"join with {other}" in asked:
            found[f"join with {other}"] = _join(spark, sent, other)
    return found


def _statements(spark: SparkSession, path: str) -> dict[str, Callable[[], object]]:
    source, table = spark.table("s").alias("s"), DeltaTable.forName(spark, "t").alias("t")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    return {
        "merge by name": lambda: spark.sql(MERGE.format("t")).collect(),
        "merge by path": lambda: spark.sql(MERGE.format(f"delta.`{path}`")).collect(),
        "merge by builder": merge.execute,
        "delete": lambda: spark.sql("DELETE FROM t WHERE id = 3").collect(),
    }


def _queries(spark: SparkSession) -> dict[str, Callable[[str, str], object]]:
    """Return queries of a format, and of a path or a name."""
    return {
        "query by load": lambda kind, of: (
            spark.read.format(kind).load(of).where("id = 5").collect()
        ),
        "query by table": lambda _, of: spark.table(of).where(F.col("id") == 5).collect(),
        "query by text": lambda _, of: spark.sql(f"SELECT * FROM {of} WHERE id = 5").collect(),
    }


def _both(sent: Sent, ours: Callable[[], object], plain: Callable[[], object]) -> list[list[int]]:
    """Return the requests of a query of a Delta table and of Parquet files that are known."""
    ours()
    plain()
    return [sent.of(ours), sent.of(plain)]


def _join(spark: SparkSession, sent: Sent, other: str) -> list[Any]:
    text = f"SELECT a.id, count(*) FROM t a JOIN {other} b ON a.id = b.id + 1 GROUP BY 1"
    spark.sql("USE default")  # all names are forgotten
    sent.relations.clear()
    requests = sent.of(lambda: spark.sql(text).collect())
    of_columns, of_rows = sent.relations
    return [requests, of_columns == of_rows]


if __name__ == "__main__":
    session = SparkSession.builder.remote("local[2]").getOrCreate()
    answers = ask(session, Path(sys.argv[1]), sys.argv[2])
    session.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer
