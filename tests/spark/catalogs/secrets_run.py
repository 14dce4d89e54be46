"""Statements of a session with a token and vended keys, whose every output is kept, as a program.

Spark writes its event log and its own log below the directory, and so do the pages of its UI, the
files of the bucket and those of the command line. The last line has the texts that a user can ask
for, in JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import socket
import sys
import threading
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta
from puredelta.catalogs.catalog import KeyUse, TableIdentifier
from puredelta.cli.run import run_command_line
from puredelta.errors import DeltaError
from puredelta.spark.session.catalogs import session_catalog
from puredelta.tables import DeltaTable
from tests.servers import s3
from tests.servers.unity import UnityServer, unity_server

TOKEN, KEY, SESSION = "dapi-token-1a2b3c", "secret-key-4d5e6f", "session-7a8b9c"
CLIENT, LATER = "client-secret-0d1e2f", "dapi-token-set-later"
SECRETS = (TOKEN, KEY, SESSION, CLIENT, LATER)
NAME, OTHER = "main.sales.orders", "other.sales.events"
PAGES = (
    "/jobs/",
    "/stages/",
    "/storage/",
    "/environment/",
    "/executors/",
    "/SQL/",
    "/api/v1/applications",
)


def main(directory: Path) -> None:
    events = directory / "events"
    events.mkdir()
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("py4j").setLevel(logging.INFO)  # at DEBUG it logs every argument of a call
    keys = {"s3.access-key-id": "id", "s3.secret-access-key": KEY, "s3.session-token": SESSION}
    with (
        s3.s3_server("moto", directory) as endpoint,
        unity_server(
            f"s3://{s3.BUCKET}/m",
            tokens={TOKEN, LATER},
            keys=lambda _: keys,
            clients={"client": CLIENT},
        ) as server,
    ):
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "true")
            .config("spark.ui.port", "0")
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.compress", "false")
            .config("spark.eventLog.dir", f"file:{events}")
            .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
            .config("spark.sql.catalog.main", "io.unitycatalog.spark.UCSingleCatalog")
            .config("spark.sql.catalog.main.uri", server.url)
            .config("spark.sql.catalog.main.token", TOKEN)
            .config("spark.sql.catalog.other.auth.oauth.clientSecret", CLIENT)
            .config("spark.puredelta.catalog.main.storage.endpoint", endpoint)
            .config("spark.puredelta.catalog.main.storage.region", "us-east-1")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("INFO")
        puredelta.activate(spark)
        set_other(spark, server, endpoint)
        server.schemas["other", "sales"] = None
        texts = [text_of(one) for one in questions(spark, server, keys)]
        command_line(directory, server, endpoint)
        keep_pages(spark.sparkContext, directory)
        keep_bucket(endpoint, directory)
        spark.stop()
    print(json.dumps(texts))  # noqa: T201 - the answer


def set_other(spark: SparkSession, server: UnityServer, endpoint: str) -> None:
    """Set a second catalog while the session runs, with client credentials."""
    other = "spark.sql.catalog.other"
    settings = {
        other: "io.unitycatalog.spark.UCSingleCatalog",
        f"{other}.uri": server.url,
        f"{other}.auth.type": "oauth",
        f"{other}.auth.oauth.uri": f"{server.url}/api/2.1/unity-catalog/oauth/token",
        f"{other}.auth.oauth.clientId": "client",
        "spark.puredelta.catalog.other.storage.endpoint": endpoint,
        "spark.puredelta.catalog.other.storage.region": "us-east-1",
    }
    for key, text in settings.items():
        spark.conf.set(key, text)


def command_line(directory: Path, server: UnityServer, endpoint: str) -> None:
    """Keep what the command line prints, with a token that is right and one that is refused."""
    server.tokens = {TOKEN}
    server.faults.clear()
    for token in (TOKEN, LATER):
        conf = {
            "spark.sql.catalog.main": "io.unitycatalog.spark.UCSingleCatalog",
            "spark.sql.catalog.main.uri": server.url,
            "spark.sql.catalog.main.token": token,
            "spark.puredelta.catalog.main.storage.endpoint": endpoint,
            "spark.puredelta.catalog.main.storage.region": "us-east-1",
        }
        more = [part for key, text in conf.items() for part in ("--conf", f"{key}={text}")]
        for words in (
            ["report", NAME, "--out", str(directory / f"report-{token == TOKEN}.html")],
            ["doctor", "--catalog", "main", "--verbose"],
            ["history", NAME, "--json"],
            ["detail", NAME],
        ):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                run_command_line([*words, *more])
            kept = directory / f"printed-{words[0]}-{token == TOKEN}"
            kept.write_text(printed.getvalue())


def keep_pages(context: SparkContext, directory: Path, *more: str) -> None:
    """Keep the pages of Spark's UI, those of each query among them."""
    root = context.uiWebUrl
    assert root is not None
    ids = range(60)
    application = f"/api/v1/applications/{context.applicationId}"
    pages = [*PAGES, f"{application}/environment", f"{application}/sql?details=true&length=500"]
    pages += more
    pages += [f"/SQL/execution/?id={number}" for number in ids]
    for number, page in enumerate(pages):
        with (
            contextlib.suppress(urllib.error.HTTPError),
            urllib.request.urlopen(urljoin(root, page)) as answer,
        ):
            (directory / f"page-{number}").write_bytes(answer.read())


def keep_bucket(endpoint: str, directory: Path) -> None:
    """Keep every file of the bucket, staged commits too."""
    from obstore.store import S3Store  # noqa: PLC0415 - in this program alone

    store = S3Store(
        s3.BUCKET,
        endpoint=endpoint,
        access_key_id="id",
        secret_access_key="any",
        region="us-east-1",
        client_options={"allow_http": True},
    )
    for number, found in enumerate(row for rows in store.list() for row in rows):
        (directory / f"stored-{number}").write_bytes(bytes(store.get(found["path"]).bytes()))


def values(spark: SparkSession) -> str:
    """Return the texts of the values that hold a secret."""
    found = session_catalog(spark, "other")
    assert found is not None
    table = found.catalog.load(TableIdentifier("other", "sales", "events"))
    keys = found.catalog.keys(table, KeyUse.READ)
    assert keys[0].options["secret_access_key"] == KEY
    return f"{found!r} {found.catalog!r} {table!r} {keys!r} {keys[0]}"


def questions(
    spark: SparkSession, server: UnityServer, keys: dict[str, str]
) -> Iterator[Callable[[], Any]]:
    """Yield statements, texts about them, and failures."""
    merge = (
        f"MERGE INTO {NAME} t USING (SELECT 1L AS id, 'b' AS note) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    yield lambda: spark.sql(f"CREATE TABLE {OTHER} AS SELECT 1L AS id, 'o' AS note")
    yield lambda: spark.sql(f"CREATE TABLE {NAME} AS SELECT id, 'a' AS note FROM range(9)")
    yield lambda: spark.sql(merge).collect()
    yield lambda: spark.sql(f"INSERT INTO {NAME} SELECT * FROM {OTHER}").collect()
    yield lambda: spark.table(NAME).join(spark.table(OTHER), "id").explain(True)
    yield lambda: spark.conf.set("spark.sql.catalog.main.token", LATER)
    yield lambda: spark.sql(f"SELECT * FROM {NAME} WHERE id = 2").collect()
    yield lambda: values(spark)
    yield lambda: spark.sql(f"UPDATE {NAME} SET note = 'c' WHERE id = 3").collect()
    yield lambda: spark.sql(f"SELECT note, count(*) FROM {NAME} GROUP BY note").collect()
    yield lambda: spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {NAME}").collect()
    yield lambda: [puredelta.dry_run(spark, merge), puredelta.last_report()]
    yield lambda: puredelta.explain(spark, merge)
    yield lambda: [session_catalog(spark, "main"), DeltaTable.forName(spark, NAME)]
    yield lambda: vars(DeltaTable.forName(spark, NAME))
    for text in ("DESCRIBE HISTORY", "DESCRIBE DETAIL", "DESCRIBE EXTENDED", "SHOW TBLPROPERTIES"):
        yield lambda text=text: spark.sql(f"{text} {NAME}").collect()
    yield from failures(
        spark, server, keys, lambda text: spark.conf.set("spark.sql.catalog.main.token", text)
    )


def failures(
    spark: SparkSession,
    server: UnityServer,
    keys: dict[str, str],
    set_token: Callable[[str], None],
) -> Iterator[Callable[[], Any]]:
    """Yield statements that fail, each for another reason."""
    server.fail("POST", ".*/tables/orders", "500", times=20)
    yield lambda: spark.sql(f"DELETE FROM {NAME} WHERE id = 5")
    server.faults.clear()
    server.keys = lambda _: {**keys, "s3.session-token": f"{s3.WRONG}-{SESSION}"}
    yield lambda: spark.sql(f"DELETE FROM {NAME} WHERE id = 6")
    server.keys = lambda _: keys
    table = ".*/tables/orders"

    def delete() -> Any:
        return spark.sql(f"DELETE FROM {NAME} WHERE id = 7")

    echoes = (
        lambda answer: {**answer, "latest-table-version": LATER},
        lambda answer: {**answer, "metadata": {**answer["metadata"], "location": f"s3://b?{KEY}"}},
        lambda _: {"error": f"Bearer {LATER}"},
    )
    for change in echoes:
        server.fail("GET", table, "change", change=change)
        yield delete
    server.fail(
        "GET", f"{table}/credentials", "change", change=lambda _: {"storage-credentials": KEY}
    )
    yield delete
    for status in ("302", "401", "403", "404", "429"):
        server.fail("GET", table, status, times=9)
        yield delete
        server.faults.clear()
    server.tokens = {"another"}
    yield delete
    server.clients = {}
    yield lambda: spark.sql(f"DELETE FROM {OTHER} WHERE id = 7")
    server.tokens, address = {LATER, TOKEN}, server.url
    with silent_server() as url, untrusted_server() as secure:
        for uri in (url, secure, "http://127.0.0.1:1", "http://10.0.0.1", "https://id:x@127.0.0.1"):
            spark.conf.set("spark.sql.catalog.main.uri", uri)
            spark.conf.set("spark.puredelta.catalog.main.timeout_s", "0.5")
            yield delete
    spark.conf.set("spark.sql.catalog.main.uri", address)
    set_token(f"{LATER}\n{TOKEN}")
    yield delete


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """Yield the address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextlib.contextmanager
def untrusted_server() -> Iterator[str]:
    """Yield the address of a server that answers a TLS handshake with something else."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(4096)
                        connection.sendall(b"HTTP/1.1 400 no TLS\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


def text_of(question: Callable[[], Any]) -> str:
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = question()
        return f"{value!r} {printed.getvalue()}"
    except (DeltaError, PySparkException) as error:
        causes, cause = [], error
        while cause is not None:
            causes.append(f"{cause!r} {vars(cause)}")
            cause = cause.__cause__ or cause.__context__
        return f"refused: {error} {error!r} {traceback.format_exc()} {causes}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
