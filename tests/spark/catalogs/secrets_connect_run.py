"""Statements of a Connect session with tokens and vended keys, whose every output is kept.

The log of the client is written at its level DEBUG, with every request. Spark's server writes its
event log, its own log and the pages of its UI. The last line has the texts that a user, or another
session of the server, can ask for, in JSON.
"""

from __future__ import annotations

import json
import logging
import operator
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

import puredelta
from puredelta.catalogs.tokens import variable_of
from puredelta.tables import DeltaTable
from tests.servers import s3
from tests.servers.unity import UnityServer, unity_server
from tests.spark.catalogs.secrets_run import (
    KEY,
    LATER,
    NAME,
    OTHER,
    SESSION,
    TOKEN,
    failures,
    keep_bucket,
    keep_pages,
    text_of,
)

MERGE = (
    f"MERGE INTO {NAME} t USING (SELECT 1L AS id, 'b' AS note) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def main(directory: Path) -> None:
    from pyspark.sql.connect.logging import logger  # noqa: PLC0415 - only Connect has it

    logger.disabled = False
    logger.setLevel(logging.DEBUG)
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("py4j").setLevel(logging.INFO)
    (directory / "events").mkdir()
    keys = {"s3.access-key-id": "id", "s3.secret-access-key": KEY, "s3.session-token": SESSION}
    with (
        s3.s3_server("moto", directory) as endpoint,
        unity_server(f"s3://{s3.BUCKET}/m", tokens={TOKEN, LATER}, keys=lambda _: keys) as server,
    ):
        server.schemas["other", "sales"] = None
        os.environ[variable_of("main")] = TOKEN
        os.environ[variable_of("other")] = LATER
        spark = started(directory)
        for name in ("main", "other"):
            ours, theirs = f"spark.puredelta.catalog.{name}", f"spark.sql.catalog.{name}"
            spark.conf.set(theirs, "io.unitycatalog.spark.UCSingleCatalog")
            spark.conf.set(f"{theirs}.uri", server.url)
            spark.conf.set(f"{ours}.storage.endpoint", endpoint)
            spark.conf.set(f"{ours}.storage.region", "us-east-1")
        puredelta.activate(spark)
        texts = [text_of(one) for one in questions(spark, server, keys)]
        context = SparkContext._active_spark_context
        assert context is not None
        keep_pages(context, directory, "/connect/")
        keep_bucket(endpoint, directory)
        spark.stop()
    print(json.dumps(texts))  # noqa: T201 - the answer


def started(directory: Path) -> SparkSession:
    """Return the session of a server of this process, which writes all it can."""
    builder = SparkSession.builder.remote("local[2]")
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{directory}/events",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    for key, text in settings.items():
        builder = builder.config(key, text)
    spark = builder.getOrCreate()
    context = SparkContext._active_spark_context
    assert context is not None
    context.setLogLevel("INFO")
    return spark


def questions(
    spark: SparkSession, server: UnityServer, keys: dict[str, str]
) -> Iterator[Callable[[], Any]]:
    """Yield statements, texts about them, what another session sees, and failures."""
    yield lambda: spark.sql(f"CREATE TABLE {OTHER} AS SELECT 1L AS id, 'o' AS note")
    yield lambda: spark.sql(f"CREATE TABLE {NAME} AS SELECT id, 'a' AS note FROM range(9)")
    yield lambda: spark.sql(MERGE).collect()
    yield lambda: spark.sql(f"INSERT INTO {NAME} SELECT * FROM {OTHER}").collect()
    yield lambda: spark.table(NAME).join(spark.table(OTHER), "id").explain(True)
    yield lambda: spark.sql(f"UPDATE {NAME} SET note = 'c' WHERE id = 3").collect()
    yield lambda: spark.sql(f"SELECT note, count(*) FROM {NAME} GROUP BY note").collect()
    yield lambda: spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {NAME}").collect()
    yield lambda: spark.range(3).selectExpr("id", "'w' AS note").writeTo(NAME).append()
    yield lambda: [puredelta.dry_run(spark, MERGE), puredelta.last_report()]
    yield lambda: puredelta.explain(spark, MERGE)
    yield lambda: vars(DeltaTable.forName(spark, NAME))
    yield lambda: repr(spark.table(NAME)._plan.to_proto(spark.client))
    yield lambda: spark.table(NAME).createOrReplaceTempView("seen")
    for text in ("DESCRIBE HISTORY", "DESCRIBE DETAIL", "DESCRIBE EXTENDED", "SHOW TBLPROPERTIES"):
        yield lambda text=text: spark.sql(f"{text} {NAME}").collect()
    yield from other_sessions(spark)
    variable = variable_of("main")
    yield from failures(
        spark, server, keys, lambda text: operator.setitem(os.environ, variable, text)
    )


def other_sessions(spark: SparkSession) -> Iterator[Callable[[], Any]]:
    """Yield what sessions of the same server can ask for; a client of PySpark 4.0 makes none."""
    makers = [name for name in ("newSession", "cloneSession") if hasattr(spark, name)]
    for session in (spark, *(getattr(spark, name)() for name in makers)):
        yield lambda session=session: session.conf.getAll
        yield lambda session=session: session.sql("SET").collect()
        yield lambda session=session: session.sql("SET -v").collect()
        yield lambda session=session: session.sql("SHOW VIEWS").collect()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
