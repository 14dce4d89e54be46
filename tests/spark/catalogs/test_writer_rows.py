"""Eight sessions that insert, merge, update and delete by name at once: the rows at the end.

`PUREDELTA_CATALOG_COMMITS` says how many statements each has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.connect_session import ROOT
from tests.servers.unity import unity_server
from tests.spark.catalogs.conftest import activated
from tests.spark.catalogs.writer_rows_run import NAME, rows_after

SESSIONS = 8
STATEMENTS = int(os.environ.get("PUREDELTA_CATALOG_COMMITS", "5"))
TIMEOUT_S = 1_800


@pytest.mark.spark
@pytest.mark.thorough
def test_rows_are_the_union_of_all_sessions(spark: SparkSession, tmp_path: Path) -> None:
    with unity_server(f"file:{tmp_path}/tables") as server, activated(spark, server):
        spark.sql(f"CREATE TABLE {NAME} (writer INT, id BIGINT, note STRING)")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": "--driver-memory 600m pyspark-shell",
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        started = []
        for writer in range(SESSIONS):
            own = tmp_path / f"session-{writer}"
            own.mkdir()
            where = [str(own), server.url, str(writer), str(STATEMENTS)]
            command = [sys.executable, "-m", "tests.spark.catalogs.writer_rows_run", *where]
            started.append(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=(own / "log").open("w"),
                    text=True,
                )
            )
        said = [process.communicate(timeout=TIMEOUT_S)[0] for process in started]
        logs = [path.read_text()[-2_000:] for path in sorted(tmp_path.glob("session-*/log"))]
        assert not [log for log, one in zip(logs, started, strict=True) if one.returncode]
        repeated = [json.loads(one.splitlines()[-1])["repeated"] for one in said]
        assert server.tables["main", "sales", "orders"].latest == SESSIONS * STATEMENTS, repeated
        expected = {
            row: note
            for writer in range(SESSIONS)
            for row, note in rows_after(writer, STATEMENTS).items()
        }
        found = [tuple(row) for row in spark.table(NAME).collect()]
        assert sorted(found) == sorted((*row, note) for row, note in expected.items())
        history = spark.sql(f"DESCRIBE HISTORY {NAME}").collect()
        operations = Counter(row["operation"] for row in history)
        assert sum(operations.values()) == SESSIONS * STATEMENTS + 1
        assert operations["MERGE"] == SESSIONS * len(range(2, STATEMENTS, 5))
        ids = spark.table(NAME).selectExpr("_metadata.row_id AS id").collect()
        assert len({row["id"] for row in ids}) == len(found), "row ids are distinct"
