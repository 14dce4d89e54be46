"""The pages of the guide do what they say: their Python and SQL run, in the order of the page."""

from __future__ import annotations

import datetime as dt
import importlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from logging import getLogger
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.spark.session.storage import open_log
from puredelta.statements.parse.parse import split_statements
from puredelta.store.registry import NO_SESSION
from puredelta.store.web_hdfs import WebHdfs
from tests import connect_session
from tests.servers.unity import unity_server

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"^```(python|sql)\n(.*?)^```", re.MULTILINE | re.DOTALL)
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [
    *(DOCS / name for name in ("index.md", "activation.md", "sql.md", "explain.md")),
    *sorted((DOCS / "guides").glob("*.md")),
]


def blocks(page: Path, data: Path) -> list[tuple[str, str]]:
    """The blocks of a page, with ``/data`` in a directory of the test."""
    text = page.read_text(encoding="utf-8").replace("/data/", f"{data}/")
    return _BLOCK.findall(text)


def prepared(spark: SparkSession, data: Path) -> DataFrame:
    """The Parquet files that the README converts, and the rows that it merges."""
    flights = spark.sql("""
        SELECT id, cast(id % 3 AS INT) AS month, 'AA' AS carrier, id - 5 AS delay,
               false AS cancelled FROM range(30)
    """)
    flights.write.partitionBy("month").parquet(str(data / "flights"))
    return spark.sql("""
        SELECT id, cast(id % 3 AS INT) AS month, 'AA' AS carrier, 7L AS delay,
               id = 29 AS cancelled FROM range(25, 35)
    """)


def orders(spark: SparkSession, data: Path) -> dict[str, Any]:
    """The table of the page on activation, and the stream that is merged into it."""
    rows = spark.range(2)
    feed = {"delta.enableChangeDataFeed": "true"}
    puredelta.write(rows, data / "orders", properties=feed)
    puredelta.write(spark.range(2, 3), data / "orders", mode="append")
    puredelta.write(spark.range(1, 5), data / "new")
    stream = spark.readStream.format("delta").load(str(data / "new"))
    return {"DeltaTable": puredelta.DeltaTable, "stream": stream}


def events(spark: SparkSession, data: Path) -> dict[str, Any]:
    """The table of the page on SQL, and what is merged into it."""
    rows = spark.createDataFrame([(1, dt.date(2025, 1, 2))], "id INT, day DATE")
    puredelta.write(rows, data / "events")
    return {"date": dt.date, "updates": rows}


def states(spark: SparkSession, data: Path) -> dict[str, Any]:
    """The table of the page on explain."""
    rows = spark.range(30).selectExpr("id", "'on time' AS state")
    puredelta.write(rows, data / "states")
    return {"path": str(data / "states")}


def catalog(spark: SparkSession, data: Path) -> dict[str, Any]:
    """The server of the page on Unity Catalog."""
    server = _open.enter_context(unity_server(f"file:{data}"))
    return {REPLACED: {"http://127.0.0.1:8080": server.url}}


def workspace(spark: SparkSession, data: Path) -> dict[str, Any]:
    """The server of the page on Databricks, with its token and client credentials."""
    clients = {"principal": "client-secret"}
    server = _open.enter_context(unity_server(f"file:{data}", tokens={"dapi-1"}, clients=clients))
    server.schemas["etl", "sales"] = None
    known = {
        "DATABRICKS_TOKEN": "dapi-1",
        "DATABRICKS_CLIENT_ID": "principal",
        "DATABRICKS_CLIENT_SECRET": "client-secret",
    }
    _open.enter_context(patch.dict(os.environ, known))
    replaced = {
        "https://dbc-a1b2345c-d6e7.cloud.databricks.com": server.url,
        "/oidc/v1/token": "/api/2.1/unity-catalog/oauth/token",
    }
    return {REPLACED: replaced}


def glue(spark: SparkSession, data: Path) -> dict[str, Any]:
    """The catalog of the page on EMR; its bucket is a directory."""
    for package in ("boto3", "moto"):
        pytest.importorskip(package)
    _open.enter_context(importlib.import_module("moto").mock_aws())
    spark.conf.set("spark.puredelta.catalog.lake.local_files", "true")
    return {REPLACED: {"s3://my-bucket": f"file:{data}"}}


def bucket(spark: SparkSession, data: Path) -> dict[str, Any]:
    """A directory in place of the bucket of the page on Dataproc."""
    return {REPLACED: {"gs://lake": str(data)}}


def lakehouse(spark: SparkSession, data: Path) -> dict[str, Any]:
    """A directory in place of the lakehouse of the page on Fabric."""
    return {REPLACED: {"abfss://sales@{host}/shop.lakehouse/Tables": str(data)}}


_open = ExitStack()
REPLACED = "replaced"
"""The name of what stands in the page for something that a test does not have."""
LATER = {
    "change-data-feed",
    "databricks",
    "emr",
    "explain",
    "optimising",
    "unity-catalog",
    "upserts",
}
"""Pages that take long: make thorough runs them."""
PREPARED = {
    "activation": orders,
    "explain": states,
    "damage": events,
    "databricks": workspace,
    "dataproc": bucket,
    "emr": glue,
    "fabric": lakehouse,
    "iceberg": events,
    "sql": events,
    "unity-catalog": catalog,
}


@pytest.fixture
def logging_as_it_was() -> Iterator[None]:
    """Take back what a page does to loggers."""
    names = ("puredelta", "puredelta.statement", "puredelta.stage")
    known = [(logger, logger.level, list(logger.handlers)) for logger in map(getLogger, names)]
    yield
    for logger, level, handlers in known:
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.mark.usefixtures("logging_as_it_was")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.thorough if page.stem in LATER else ())
        for page in (README, *PAGES)
        if _BLOCK.search(page.read_text(encoding="utf-8"))
    ],
    ids=lambda page: page.stem,
)
def test_every_block_runs(page: Path, spark: SparkSession, tmp_path: Path) -> None:
    try:
        assert puredelta.activate(spark)
        run_page(page, spark, tmp_path)
    finally:
        spark.sql("DROP TABLE IF EXISTS flights")
        puredelta.deactivate()


@pytest.mark.spark
@pytest.mark.thorough
def test_pages_of_platforms_run_over_connect(tmp_path: Path) -> None:
    pages = ["dataproc", "emr"]
    found = connect_session.ask("tests.guides_over_connect", tmp_path, *pages)
    assert found == dict.fromkeys(pages, "run")


def run_page(page: Path, spark: SparkSession, data: Path) -> None:
    """Run the blocks of a page in an activated session, and take their settings back."""
    names: dict[str, Any] = {"spark": spark, "puredelta": puredelta, "__name__": "page"}
    if page == README:
        names["corrections"] = prepared(spark, data)
    known = spark.conf.getAll
    try:
        if page.stem in PREPARED:
            names |= PREPARED[page.stem](spark, data)
        replaced = names.pop(REPLACED, {})
        for number, (language, block) in enumerate(blocks(page, data)):
            text = block
            for said, meant in replaced.items():
                text = text.replace(said, meant)
            if language == "sql":
                for statement in split_statements(text):
                    spark.sql(statement).collect()
            else:
                code = compile(text, f"{page.name}, block {number}", "exec")
                exec(code, names)
        for query in spark.streams.active:
            query.processAllAvailable()
    finally:
        for query in spark.streams.active:
            query.stop()
        for key in spark.conf.getAll.keys() - known.keys():
            spark.conf.unset(key)
        _open.close()


class OpensOnly:
    """Stands for `puredelta` and for a reader: stores are opened, and nothing is asked of them."""

    def __init__(self, spark: SparkSession, opened: list[str], **options: str) -> None:
        self.spark, self.opened, self.options = spark, opened, options

    def write(self, rows: DataFrame, location: str) -> None:
        self.opened.append(open_log(rows.sparkSession, location).root_uri)

    def read(self, spark: SparkSession, location: str) -> None:
        self.opened.append(open_log(spark, location).root_uri)

    def format(self, name: str) -> OpensOnly:
        assert name == "delta"
        return self

    def option(self, key: str, value: str) -> OpensOnly:
        return OpensOnly(self.spark, self.opened, **self.options, **{key: value})

    def load(self, location: str) -> DataFrame:
        web = WebHdfs(settings=self.options, user="somebody")
        storage = replace(NO_SESSION.with_options(self.options), file_systems=web)
        self.opened.append(storage.open(location).root_uri)
        return self.spark.range(0)


@pytest.mark.parametrize(
    ("page", "first", "expected"),
    [
        ("storage.md", 0, ["s3a", "abfss", "gs", "hdfs", "file", "hdfs"]),
        ("guides/fabric.md", 1, ["abfss"]),
    ],
)
def test_settings_of_storage_are_understood(
    spark: SparkSession, tmp_path: Path, page: str, first: int, expected: list[str]
) -> None:
    """Blocks get as far as their store, which connects at its first request."""
    opened = list[str]()
    key = tmp_path / "key.json"
    nothing = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    key.write_text(json.dumps({"disable_oauth": True, **nothing}))
    known = {key: value for key, value in spark.conf.getAll.items() if key.startswith("fs.")}
    only_opens = OpensOnly(spark, opened)
    try:
        for number, (_, text) in enumerate(blocks(DOCS / page, tmp_path)[first:]):
            said = text.replace("/etc/key.json", str(key)).replace("spark.read.", "reads.")
            said = said.replace("name-node", "localhost").replace('"..."', '"Li4u"')
            names = {"spark": spark, "puredelta": only_opens, "reads": only_opens}
            code = compile(said, f"{page}, block {number}", "exec")
            exec(code, {**names, "rows": spark.range(1)})
    finally:
        for key_made in {k for k in spark.conf.getAll if k.startswith("fs.")} - known.keys():
            spark.conf.unset(key_made)
    schemes = [root.partition(":")[0] for root in opened]
    assert schemes == expected


def test_pages_are_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.relative_to(ROOT / "docs").as_posix() in navigation
