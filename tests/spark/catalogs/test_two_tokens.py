"""Two users of one process: each sees the catalog with the token of its own settings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

import puredelta
from puredelta.catalogs.failures import CatalogRequestError
from puredelta.errors import DeltaError
from puredelta.spark.session.catalogs import session_catalog
from tests.servers.unity import RefusedError, UnityServer, unity_server

PREFIX = "spark.sql.catalog.main"
ANN, BOB = "ann-0123456789", "bob-9876543210"
SECRETS = (ANN, BOB)


class Grants(UnityServer):
    """A server where each user may see the tables whose names begin with the user's."""

    def _require_token(self, path: str, headers: dict[str, str]) -> None:
        super()._require_token(path, headers)
        user = headers["authorization"].removeprefix("Bearer ")[:3]
        table = path.partition("/tables/")[2]
        if table and not table.startswith(user):
            raise RefusedError(403, "PERMISSION_DENIED", f"{user} may not see {table}.")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    monkeypatch.setattr("tests.servers.unity.UnityServer", Grants)
    with unity_server(f"file:{tmp_path}", tokens=set(SECRETS)) as running:
        yield running


@pytest.fixture
def users(spark: SparkSession, server: UnityServer) -> Iterator[tuple[SparkSession, SparkSession]]:
    ann, bob = spark.newSession(), spark.newSession()
    for session, token in ((ann, ANN), (bob, BOB)):
        session.conf.set(PREFIX, "io.unitycatalog.spark.UCSingleCatalog")
        session.conf.set(f"{PREFIX}.uri", server.url)
        session.conf.set(f"{PREFIX}.token", token)
    puredelta.activate(spark)
    try:
        yield ann, bob
    finally:
        puredelta.deactivate()


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_each_session_sees_its_own_tables(
    users: tuple[SparkSession, SparkSession], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "puredelta")
    ann, bob = users
    texts: list[str] = []
    ann.sql("CREATE TABLE main.sales.ann_t AS SELECT 1 AS id")
    bob.sql("CREATE TABLE main.sales.bob_t AS SELECT 2 AS id")
    ann.sql("USE main.sales")
    assert rows(ann.sql("SELECT * FROM ann_t")) == [(1,)]
    assert bob.catalog.currentCatalog() == "spark_catalog", "USE is of one session"
    assert rows(bob.table("main.sales.bob_t")) == [(2,)]
    for session, other in ((ann, "bob_t"), (bob, "ann_t")):
        for text in (
            f"SELECT * FROM main.sales.{other}",
            f"INSERT INTO main.sales.{other} VALUES (3)",
            f"DESCRIBE HISTORY main.sales.{other}",
            f"DROP TABLE main.sales.{other}",
        ):
            with pytest.raises(CatalogRequestError) as refused:
                session.sql(text)
            assert refused.value.refusal.name == "NOT_ALLOWED"
            texts += [str(refused.value), repr(refused.value), repr(refused.value.details)]
    frame = ann.sql("SELECT id + 1 AS more FROM ann_t")
    texts.append(frame._jdf.queryExecution().toString())
    texts += [one.getMessage() for one in caplog.records if one.name.startswith("puredelta")]
    texts += [repr(session_catalog(session, "main")) for session in users]
    assert not [text for text in texts for secret in SECRETS if secret in text]


def test_a_frame_keeps_the_token_of_its_session(users: tuple[SparkSession, SparkSession]) -> None:
    ann, bob = users
    ann.sql("CREATE TABLE main.sales.ann_t AS SELECT 1 AS id")
    ann.table("main.sales.ann_t").createOrReplaceGlobalTempView("shared")
    assert rows(bob.sql("SELECT * FROM global_temp.shared")) == [(1,)], "Ann has shared it"
    with pytest.raises(DeltaError):
        bob.sql("CREATE TEMPORARY VIEW mine AS SELECT * FROM main.sales.ann_t")
    ann.sql("DROP VIEW global_temp.shared")


@pytest.mark.parametrize("name", ["main", "spark_catalog"])
def test_a_catalog_that_spark_would_load_is_a_warning(spark: SparkSession, name: str) -> None:
    settings = {f"spark.sql.catalog.{name}": "io.unitycatalog.spark.UCSingleCatalog"}
    if name == "main":
        settings["spark.sql.defaultCatalog"] = name
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        with pytest.warns(UserWarning, match="USE NAME.schema"):
            assert not puredelta.activate(spark)
    finally:
        for key in settings:
            spark.conf.unset(key)


def test_a_secret_that_spark_would_log_is_a_warning(
    spark: SparkSession,
    server: UnityServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    began_with = {"spark.eventLog.enabled": "true", f"{PREFIX}.token": "***"}
    conf = SparkConf(loadDefaults=False).setAll(list(began_with.items()))
    monkeypatch.setattr(type(spark.sparkContext), "getConf", lambda _: conf)
    session = spark.newSession()
    session.conf.set(f"{PREFIX}.token", ANN)
    session.conf.set(f"{PREFIX}.uri", server.url)
    session.conf.set(PREFIX, "io.unitycatalog.spark.UCSingleCatalog")
    assert session_catalog(session, "main")
    assert not caplog.text, "the session began with the key, so Spark hides its values"
    session.conf.set("spark.sql.catalog.other.uri", server.url)
    session.conf.set("spark.sql.catalog.other.token", BOB)
    session.conf.set("spark.sql.catalog.other", "io.unitycatalog.spark.UCSingleCatalog")
    assert session_catalog(session, "other")
    assert session_catalog(session, "other")
    assert caplog.text.count("spark.sql.catalog.other.token was set while") == 1
    assert BOB not in caplog.text
