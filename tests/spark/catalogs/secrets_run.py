"""Statements of a session with a token and vended keys, whose every output is kept, as a program.

Spark writes its event log, which is all that its UI shows, and its own log below the directory.
The last line has the texts that a user can ask for, in JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.spark.session.catalogs import session_catalog
from puredelta.tables import DeltaTable
from tests.servers import s3
from tests.servers.unity import UnityServer, unity_server

TOKEN, KEY, SESSION = "dapi-token-1a2b3c", "secret-key-4d5e6f", "session-7a8b9c"
NAME = "main.sales.orders"


def main(directory: Path) -> None:
    events = directory / "events"
    events.mkdir()
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("py4j").setLevel(logging.INFO)  # at DEBUG it logs every argument of a call
    keys = {"s3.access-key-id": "id", "s3.secret-access-key": KEY, "s3.session-token": SESSION}
    with (
        s3.s3_server("moto", directory) as endpoint,
        unity_server(f"s3://{s3.BUCKET}/m", tokens={TOKEN}, keys=lambda _: keys) as server,
    ):
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.compress", "false")
            .config("spark.eventLog.dir", f"file:{events}")
            .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
            .config("spark.sql.catalog.main", "io.unitycatalog.spark.UCSingleCatalog")
            .config("spark.sql.catalog.main.uri", server.url)
            .config("spark.sql.catalog.main.token", TOKEN)
            .config("spark.puredelta.catalog.main.storage.endpoint", endpoint)
            .config("spark.puredelta.catalog.main.storage.region", "us-east-1")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("INFO")
        puredelta.activate(spark)
        texts = [_text(one) for one in questions(spark, server, keys)]
        spark.stop()
    print(json.dumps(texts))  # noqa: T201 - the answer


def questions(
    spark: SparkSession, server: UnityServer, keys: dict[str, str]
) -> Iterator[Callable[[], Any]]:
    """Yield statements, texts about them, and failures."""
    merge = (
        f"MERGE INTO {NAME} t USING (SELECT 1L AS id, 'b' AS note) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    yield lambda: spark.sql(f"CREATE TABLE {NAME} AS SELECT id, 'a' AS note FROM range(9)")
    yield lambda: spark.sql(merge).collect()
    yield lambda: spark.sql(f"UPDATE {NAME} SET note = 'c' WHERE id = 3").collect()
    yield lambda: spark.sql(f"SELECT note, count(*) FROM {NAME} GROUP BY note").collect()
    yield lambda: spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {NAME}").collect()
    yield lambda: [puredelta.dry_run(spark, merge), puredelta.last_report()]
    yield lambda: puredelta.explain(spark, merge)
    yield lambda: [session_catalog(spark, "main"), DeltaTable.forName(spark, NAME)]
    yield lambda: vars(DeltaTable.forName(spark, NAME))
    for text in ("DESCRIBE HISTORY", "DESCRIBE DETAIL", "DESCRIBE EXTENDED", "SHOW TBLPROPERTIES"):
        yield lambda text=text: spark.sql(f"{text} {NAME}").collect()
    server.fail("POST", ".*/tables/orders", "500", times=20)
    yield lambda: spark.sql(f"DELETE FROM {NAME} WHERE id = 5")
    server.faults.clear()
    server.keys = lambda _: {**keys, "s3.session-token": f"{s3.WRONG}-{SESSION}"}
    yield lambda: spark.sql(f"DELETE FROM {NAME} WHERE id = 6")
    server.tokens = {"another"}
    yield lambda: spark.sql(f"DELETE FROM {NAME} WHERE id = 7")
    spark.conf.set("spark.sql.catalog.main.uri", "http://127.0.0.1:1")
    yield lambda: spark.sql(f"DELETE FROM {NAME} WHERE id = 8")


def _text(question: Callable[[], Any]) -> str:
    try:
        return repr(question())
    except (DeltaError, PySparkException) as error:
        return f"refused: {error} {error!r} {traceback.format_exc()}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
