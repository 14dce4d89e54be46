"""The pages of the guide do what they say: their Python and SQL run, in the order of the page."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from logging import getLogger
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.spark.session.storage import open_log
from puredelta.statements.parse.parse import split_statements
from puredelta.store.registry import NO_SESSION
from puredelta.store.web_hdfs import WebHdfs
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
    return {"server": server}


_open = ExitStack()
PREPARED = {
    "activation": orders,
    "explain": states,
    "damage": events,
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
    [page for page in (README, *PAGES) if _BLOCK.search(page.read_text(encoding="utf-8"))],
    ids=lambda page: page.stem,
)
def test_every_block_runs(page: Path, spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "puredelta": puredelta, "__name__": "page"}
    if page == README:
        names["corrections"] = prepared(spark, tmp_path)
    try:
        assert puredelta.activate(spark)
        if page.stem in PREPARED:
            names |= PREPARED[page.stem](spark, tmp_path)
        for number, (language, block) in enumerate(blocks(page, tmp_path)):
            text = block
            if "server" in names:
                text = block.replace("http://127.0.0.1:8080", names["server"].url)
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
        spark.sql("DROP TABLE IF EXISTS flights")
        puredelta.deactivate()
        spark.conf.unset("spark.databricks.delta.write.txnAppId")
        spark.conf.unset("spark.databricks.delta.write.txnVersion")
        for key in ("", ".uri", ".token"):
            spark.conf.unset(f"spark.sql.catalog.main{key}")
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


def test_settings_of_storage_are_understood(spark: SparkSession, tmp_path: Path) -> None:
    """Every block of the page gets as far as its store, which connects at its first request."""
    page, opened = DOCS / "storage.md", list[str]()
    key = tmp_path / "key.json"
    nothing = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    key.write_text(json.dumps({"disable_oauth": True, **nothing}))
    known = {key: value for key, value in spark.conf.getAll.items() if key.startswith("fs.")}
    only_opens = OpensOnly(spark, opened)
    try:
        for number, (_, text) in enumerate(blocks(page, tmp_path)):
            said = text.replace("/etc/key.json", str(key)).replace("spark.read.", "reads.")
            said = said.replace("name-node", "localhost").replace('"..."', '"Li4u"')
            names = {"spark": spark, "puredelta": only_opens, "reads": only_opens}
            code = compile(said, f"{page.name}, block {number}", "exec")
            exec(code, {**names, "rows": spark.range(1)})
    finally:
        for key_made in {k for k in spark.conf.getAll if k.startswith("fs.")} - known.keys():
            spark.conf.unset(key_made)
    schemes = [root.partition(":")[0] for root in opened]
    assert schemes == ["s3a", "abfss", "gs", "hdfs", "file", "hdfs"]


def test_pages_are_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.relative_to(ROOT / "docs").as_posix() in navigation
