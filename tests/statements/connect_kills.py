"""What `test_connect_kills` asks: clients of one server that die before and after each request.

``connect_kills DIRECTORY STATEMENT[=DEATH]...`` kills a client of each statement at each of its
steps, or at one. ``connect_kills DIRECTORY URL STATEMENT TABLE DEATH`` is such a client; without a
death it counts its steps: requests and writes of the log, each a step before and a step after.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.store.local import LocalStore
from tests.connect_session import connect_builder

OLD, NEW = [[1, 1], [2, 2]], [[1, 1], [2, 7], [3, 3]]
_VALUES = "VALUES (1, 1), (2, 7), (3, 3)"
STATEMENTS = {
    "create": "CREATE TABLE {t} (id INT, v INT) USING delta",
    "ctas": f"CREATE TABLE {{t}} USING delta AS SELECT * FROM {_VALUES} AS v(id, v)",
    "ctas by path": f"CREATE TABLE {{t}} USING delta AS SELECT * FROM {_VALUES} AS v(id, v)",
    "replace": f"REPLACE TABLE {{t}} USING delta AS SELECT * FROM {_VALUES} AS v(id, v)",
    "create or replace": (
        f"CREATE OR REPLACE TABLE {{t}} USING delta AS SELECT * FROM {_VALUES} AS v(id, v)"
    ),
    "insert": f"INSERT OVERWRITE {{t}} {_VALUES}",
    "merge": (
        "MERGE INTO {t} t USING (SELECT * FROM VALUES (2, 7), (3, 3) AS v(id, v)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ),
}
DEFINES = ("create", "ctas", "ctas by path")
"""Statements whose table is not there before."""
STREAM = "stream"
_BY_SERVER = "PYTHON_DATA_SOURCE_ERROR"
_TRIES = 10
_REQUESTS = ("ExecutePlan", "AnalyzePlan", "Config", "AddArtifacts")


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


def stream(spark: SparkSession, table: str, directory: Path) -> None:
    """Write all that is new in the source of a stream, as one batch."""
    writer = spark.readStream.table("source").writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(directory / f"checkpoint_{table}"))
    writer.toTable(table).awaitTermination()


def client(url: str, name: str, table: str, directory: Path, death: int) -> None:
    spark = SparkSession.builder.remote(url).create()
    if not name.endswith("by path"):
        spark.sql(f"USE {table.partition('.')[0]}")
    assert puredelta.activate(spark)
    deaths = Deaths(death)
    stub: Any = spark.client._stub  # type: ignore[attr-defined]
    for request in _REQUESTS:
        setattr(stub, request, deaths.around(getattr(stub, request)))
    put: Any = LocalStore.put_if_absent
    LocalStore.put_if_absent = deaths.around(put)  # type: ignore[method-assign]
    deaths.is_counting = True
    if name == STREAM:
        stream(spark, table, directory)
    else:
        spark.sql(STATEMENTS[name].format(t=table)).collect()
    print(json.dumps(deaths.count))  # noqa: T201 - the answer


def rows_of(spark: SparkSession, table: str) -> Any:
    """Return the rows that a name has for another client, or the class of its error.

    The last request of a client that is gone may still be on its way: an entry that appears while
    a query is analyzed is found by the server alone.
    """
    found: Any = _BY_SERVER
    for _ in range(_TRIES):
        found = _asked(spark, table)
        if found != _BY_SERVER:
            break
        time.sleep(1)
    return found


def _asked(spark: SparkSession, table: str) -> Any:
    try:
        return sorted([row[0], row[1]] for row in spark.sql(f"SELECT * FROM {table}").collect())
    except (DeltaError, PySparkException) as error:
        return error.getCondition()


def mended(spark: SparkSession, name: str, table: str, directory: Path) -> Any:
    """Return the rows after the same was asked for again, as the guide says.

    The query of a client that is gone goes on; as long as it does, Spark fails another one.
    """
    if name == STREAM:
        for left in reversed(range(_TRIES)):
            try:
                stream(spark, table, directory)
                break
            except StreamingQueryException:
                if not left:
                    raise
                time.sleep(1)
        return rows_of(spark, table)
    text = STATEMENTS[name].format(t=table)
    try:
        spark.sql(text.replace("CREATE TABLE", "CREATE OR REPLACE TABLE")).collect()
    except DeltaError as error:
        return error.getCondition()
    return rows_of(spark, table)


def _steps(unharmed: subprocess.CompletedProcess[str]) -> int:
    assert unharmed.returncode == 0, unharmed.stderr[-2000:]
    return int(unharmed.stdout.splitlines()[-1])


def ask(spark: SparkSession, directory: Path, wanted: list[str]) -> dict[str, Any]:
    """Kill clients; of each: how it ended, the rows left, the rows when it was asked again."""
    own: Any = spark.client  # type: ignore[attr-defined]
    url = f"sc://{own._builder.endpoint}"
    database = directory.name
    spark.sql(f"CREATE DATABASE {database} LOCATION '{directory}/{database}.db'")
    spark.sql(f"USE {database}")
    spark.sql("CREATE TABLE source (id INT, v INT) USING delta")
    spark.sql(f"INSERT INTO source {_VALUES}")

    def run(name: str, death: int) -> tuple[str, subprocess.CompletedProcess[str]]:
        table = f"{name.replace(' ', '_')}_{death}"
        whole = f"{database}.{table}"
        if name.endswith("by path"):
            table = whole = f"delta.`{directory}/{table}`"
        if name not in {*DEFINES, STREAM}:
            spark.sql(f"CREATE TABLE {table} (id INT, v INT) USING delta")
            spark.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
        command = [sys.executable, "-m", "tests.statements.connect_kills", str(directory)]
        given = [*command, url, name, whole, str(death)]
        return table, subprocess.run(given, check=False, capture_output=True, text=True)

    found: dict[str, Any] = {}
    for one in wanted:
        name, _, death = one.partition("=")
        deaths = [int(death)] if death else range(1, _steps(run(name, 0)[1]) + 1)
        found[name] = []
        for at in deaths:
            table, ended = run(name, at)
            left = rows_of(spark, table)
            again = mended(spark, name, table, directory)
            found[name].append([at, ended.returncode, left, again])
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {database} CASCADE")
    return found


if __name__ == "__main__":
    place = Path(sys.argv[1])
    if "://" in sys.argv[2]:
        client(sys.argv[2], sys.argv[3], sys.argv[4], place, int(sys.argv[5]))
    else:
        session = connect_builder().getOrCreate()
        assert puredelta.activate(session)
        answers = ask(session, place, sys.argv[2:])
        session.stop()
        print(json.dumps(answers))  # noqa: T201 - the answer
