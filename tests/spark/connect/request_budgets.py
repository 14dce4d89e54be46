"""What `test_request_budgets` asks of a Spark Connect session, run as a program of its own."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.session import session as sessions
from puredelta.tables import DeltaTable

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


CALLS = (
    "activate",
    "first write",
    "append",
    "merge by name",
    "merge by path",
    "merge by builder",
    "delete",
)
QUERIES = ("query by load", "query by table", "query by text")


def ask(spark: SparkSession, directory: Path) -> dict[str, Any]:
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
    found["merge by name"] = sent.of(lambda: spark.sql(MERGE.format("t")).collect())
    found["merge by path"] = sent.of(lambda: spark.sql(MERGE.format(f"delta.`{path}`")).collect())
    source, table = spark.table("s").alias("s"), DeltaTable.forName(spark, "t").alias("t")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    found["merge by builder"] = sent.of(merge.execute)
    found["delete"] = sent.of(lambda: spark.sql("DELETE FROM t WHERE id = 3").collect())
    rows.write.parquet(f"{path}-plain")
    rows.write.saveAsTable("plain")
    queries = {
        "load": lambda kind, of: spark.read.format(kind).load(of).where("id = 5").collect(),
        "table": lambda _, of: spark.table(of).where(F.col("id") == 5).collect(),
        "text": lambda _, of: spark.sql(f"SELECT * FROM {of} WHERE id = 5").collect(),
    }
    for name, query in queries.items():
        mine, plain = (path, f"{path}-plain") if name == "load" else ("t", "plain")
        query("delta", mine)
        query("parquet", plain)
        ours = sent.of(lambda query=query, mine=mine: query("delta", mine))  # type: ignore[misc]
        others = sent.of(lambda query=query, plain=plain: query("parquet", plain))  # type: ignore[misc]
        found[f"query by {name}"] = [ours, others]
    spark.sql(f"SELECT * FROM parquet.`{path}-plain`").collect()
    rows.write.format("delta").partitionBy("p").saveAsTable("parts")
    for other in ("t", "parts"):
        text = f"SELECT a.id, count(*) FROM t a JOIN {other} b ON a.id = b.id + 1 GROUP BY 1"
        spark.sql("USE default")  # all names are forgotten
        sent.relations.clear()
        requests = sent.of(lambda text=text: spark.sql(text).collect())  # type: ignore[misc]
        of_columns, of_rows = sent.relations
        found[f"join with {other}"] = [requests, of_columns == of_rows]
    return found


if __name__ == "__main__":
    session = SparkSession.builder.remote("local[2]").getOrCreate()
    answers = ask(session, Path(sys.argv[1]))
    session.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer
