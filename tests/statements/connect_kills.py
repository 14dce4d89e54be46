"""What `test_connect_kills` asks: clients of one server that die before and after each request.

``connect_kills DIRECTORY`` starts the server and a client for each death. ``connect_kills DIRECTORY
URL STATEMENT TABLE DEATH`` is such a client; without a death it counts its requests and its writes
of the log.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.store.local import LocalStore

OLD, NEW = [[1, 1], [2, 2]], [[1, 1], [2, 7], [3, 3]]
STATEMENTS = {
    "ctas": "CREATE TABLE {t} USING delta AS SELECT * FROM "
    "VALUES (1, 1), (2, 7), (3, 3) AS v(id, v)",
    "insert": "INSERT OVERWRITE {t} VALUES (1, 1), (2, 7), (3, 3)",
    "merge": "MERGE INTO {t} t USING (SELECT * FROM VALUES (2, 7), (3, 3) AS v(id, v)) s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
}


class Deaths:
    """Counts the steps of a statement, and kills this process at one of them."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0
        self.is_counting = False

    def step(self) -> None:
        """Count a step, and die at the one."""
        if not self.is_counting:
            return
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call with a step on both sides."""

        def called(*args: Any, **kwargs: Any) -> Any:
            self.step()
            answer = call(*args, **kwargs)
            self.step()
            return answer

        return called


def client(url: str, name: str, table: str, death: int) -> None:
    spark = SparkSession.builder.remote(url).create()
    assert puredelta.activate(spark)
    deaths = Deaths(death)
    stub: Any = spark.client._stub  # type: ignore[attr-defined]
    stub.ExecutePlan = deaths.around(stub.ExecutePlan)
    put: Any = LocalStore.put_if_absent
    LocalStore.put_if_absent = deaths.around(put)  # type: ignore[method-assign]
    deaths.is_counting = True
    spark.sql(STATEMENTS[name].format(t=table)).collect()
    print(json.dumps(deaths.count))  # noqa: T201 - the answer


def rows_of(spark: SparkSession, table: str) -> Any:
    """Return the rows that a name has for another client, or the class of its error."""
    try:
        return sorted([row[0], row[1]] for row in spark.sql(f"SELECT * FROM {table}").collect())
    except (DeltaError, PySparkException) as error:
        return error.getCondition()


def mended(spark: SparkSession, name: str, table: str) -> Any:
    """Return the rows after the statement was given again, as the guide says."""
    text = STATEMENTS[name].format(t=table)
    if name == "ctas":
        text = text.replace("CREATE TABLE", "CREATE OR REPLACE TABLE")
    spark.sql(text).collect()
    return rows_of(spark, table)


def ask(directory: Path) -> dict[str, Any]:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    assert puredelta.activate(spark)
    own: Any = spark.client  # type: ignore[attr-defined]
    url = f"sc://{own._builder.endpoint}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(name: str, death: int) -> tuple[str, subprocess.CompletedProcess[str]]:
        table = f"{name}_{death}"
        if name != "ctas":
            spark.sql(f"CREATE TABLE {table} (id INT, v INT) USING delta")
            spark.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
        command = [sys.executable, "-m", "tests.statements.connect_kills", str(directory)]
        given = [*command, url, name, table, str(death)]
        return table, subprocess.run(
            given, env=environment, check=False, capture_output=True, text=True
        )

    found: dict[str, Any] = {}
    for name in STATEMENTS:
        _, unharmed = run(name, 0)
        steps = int(unharmed.stdout.splitlines()[-1])
        found[name] = []
        for death in range(1, steps + 1):
            table, ended = run(name, death)
            found[name].append(
                [ended.returncode, rows_of(spark, table), mended(spark, name, table)]
            )
    spark.stop()
    return found


if __name__ == "__main__":
    if len(sys.argv) > 2:
        client(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        print(json.dumps(ask(Path(sys.argv[1]))))  # noqa: T201 - the answer
