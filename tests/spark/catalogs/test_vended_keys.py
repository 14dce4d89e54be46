"""Tables in a bucket whose keys only the catalog hands out."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.catalogs.failures import CatalogRequestError
from puredelta.errors import DeltaError
from tests.servers.proxy import Proxy
from tests.servers.s3 import BUCKET, UNTIL, WRONG, is_installed, s3_server
from tests.servers.unity import RefusedError, UnityServer, unity_server

PREFIX = "spark.sql.catalog.main"
OWN = "spark.puredelta.catalog.main"
SECRET = "vended-secret"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not is_installed("moto"):
        pytest.skip("moto is not installed")
    with s3_server("moto", tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture
def server() -> Iterator[UnityServer]:
    numbers = itertools.count(1)

    def keys(location: str) -> dict[str, str]:
        assert location.startswith(f"s3://{BUCKET}/")
        return {
            "s3.access-key-id": "vended-id",
            "s3.secret-access-key": SECRET,
            "s3.session-token": f"vended-token-{next(numbers)}",
        }

    root = f"s3://{BUCKET}/managed"
    with unity_server(root, keys=keys, keys_live_ms=3_000) as running:
        yield running


@pytest.fixture
def main(
    spark: SparkSession, server: UnityServer, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SparkSession]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    settings = {
        PREFIX: "io.unitycatalog.spark.UCSingleCatalog",
        f"{PREFIX}.uri": server.url,
        f"{OWN}.storage.endpoint": endpoint,
        f"{OWN}.storage.region": "us-east-1",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    puredelta.activate(spark)
    try:
        yield spark
    finally:
        puredelta.deactivate()
        for key in settings:
            spark.conf.unset(key)


def uses(server: UnityServer) -> list[str]:
    """What keys were asked for since the last call."""
    asked = [t for t in server.targets if "/credentials?" in t]
    server.targets.clear()
    return sorted({target.rpartition("=")[2] for target in asked})


def test_statements_use_the_keys_of_the_catalog(
    main: SparkSession, server: UnityServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="puredelta")
    main.sql("CREATE TABLE main.sales.orders (id BIGINT, note STRING)")
    server.targets.clear()
    main.sql("INSERT INTO main.sales.orders SELECT id, 'new' FROM range(10)")
    assert uses(server) == ["READ", "READ_WRITE"]
    frame = main.sql("SELECT * FROM main.sales.orders WHERE id < 3")
    assert frame.count() == 3
    assert uses(server) == ["READ"]
    main.sql("UPDATE main.sales.orders SET note = 'paid' WHERE id = 1")
    main.sql(
        "MERGE INTO main.sales.orders t USING (SELECT 99 AS id, 'x' AS note) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert main.table("main.sales.orders").count() == 11
    assert main.sql("SELECT count(*) FROM main.sales.orders WHERE note = 'paid'").first()[0] == 1  # type: ignore[index]
    plan = frame._jdf.queryExecution().toString()
    settings = str(main.conf.getAll)
    assert all(SECRET not in text and "vended-token" not in text for text in (plan, caplog.text))
    assert SECRET not in settings
    location = server.tables["main", "sales", "orders"].location
    assert location.startswith("s3://")
    main.sql("CREATE TABLE main.sales.copy AS SELECT * FROM main.sales.orders")
    assert main.table("main.sales.copy").count() == 11


def test_external_tables_in_a_bucket(main: SparkSession, server: UnityServer) -> None:
    place = f"s3://{BUCKET}/external/t"
    main.sql(f"CREATE TABLE main.sales.events USING delta LOCATION '{place}' AS SELECT 1 AS id")
    main.sql("INSERT INTO main.sales.events VALUES (2)")
    main.sql("OPTIMIZE main.sales.events")
    assert main.table("main.sales.events").count() == 2
    assert server.tables["main", "sales", "events"].location == place


def test_a_reader_without_the_right_to_write(
    main: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    del tmp_path
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    original = server.credentials

    def credentials(query: dict[str, str], body: object, *name: str) -> object:
        if query.get("operation") == "READ_WRITE":
            raise RefusedError(403, "PERMISSION_DENIED", "Access denied.")
        return original(query, body, *name)

    server.credentials = credentials  # type: ignore[method-assign]
    assert main.table("main.sales.orders").count() == 1
    with pytest.raises(CatalogRequestError, match="Access denied"):
        main.sql("INSERT INTO main.sales.orders VALUES (2)")
    server.credentials = original  # type: ignore[method-assign]
    assert main.table("main.sales.orders").count() == 1


def until(server: UnityServer, lives_ms: int) -> list[int]:
    """Let keys expire after a time, and return the times of those that were handed out."""
    handed_out: list[int] = []

    def keys(_: str) -> dict[str, str]:
        handed_out.append(int(time.time() * 1000) + lives_ms)
        return {**_KEY, "s3.session-token": f"{UNTIL}{handed_out[-1]}"}

    server.keys, server.keys_live_ms = keys, lives_ms
    return handed_out


_KEY = {"s3.access-key-id": "vended-id", "s3.secret-access-key": SECRET}


def test_an_expired_key_is_renewed_in_the_driver(main: SparkSession, server: UnityServer) -> None:
    handed_out = until(server, 60_000)
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    until(server, -1_000)
    with pytest.raises(DeltaError) as expired:
        main.table("main.sales.orders").collect()
    assert SECRET not in str(expired.value)
    assert UNTIL not in str(expired.value)
    until(server, 60_000)
    assert main.table("main.sales.orders").count() == 1
    assert handed_out


def test_a_wrong_key_is_one_error_and_writes_nothing(
    main: SparkSession, server: UnityServer
) -> None:
    until(server, 60_000)
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    server.keys = lambda _: {**_KEY, "s3.session-token": WRONG}
    with pytest.raises(DeltaError) as refused:
        main.sql("INSERT INTO main.sales.orders VALUES (2)")
    assert server.tables["main", "sales", "orders"].latest == 0
    assert SECRET not in str(refused.value)
    until(server, 60_000)
    assert main.table("main.sales.orders").count() == 1


@pytest.mark.thorough
def test_a_merge_outlives_its_keys(main: SparkSession, server: UnityServer, endpoint: str) -> None:
    until(server, 600_000)  # workers that are slow to start
    main.sql("CREATE TABLE main.sales.orders AS SELECT id, 'old' AS note FROM range(100)")
    handed_out = until(server, 10_000)
    with Proxy(endpoint, delay_seconds=0.4) as slow:
        main.conf.set(f"{OWN}.storage.endpoint", slow.endpoint)
        started = time.monotonic()
        main.sql(
            "MERGE INTO main.sales.orders t USING (SELECT id * 2 AS id, 'new' AS note FROM "
            "range(80)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        seconds = time.monotonic() - started
        main.conf.set(f"{OWN}.storage.endpoint", endpoint)
    assert seconds > 10, "the keys live ten"
    assert len(handed_out) > 2
    counts = main.sql("SELECT note, count(*) FROM main.sales.orders GROUP BY note").collect()
    assert {row[0]: row[1] for row in counts} == {"new": 80, "old": 50}


@pytest.mark.thorough
def test_a_write_is_repeated_whose_keys_expired_meanwhile(
    main: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    until(server, 600_000)
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1L AS id")
    frame = main.table("main.sales.orders")
    handed_out = until(server, 9_000)
    seen = str(tmp_path / "seen")

    def slow_once(rows: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        if not os.path.exists(seen):  # noqa: PTH110 - in a worker
            open(seen, "w").close()  # noqa: PTH123
            time.sleep(12)
        yield from rows

    rows = main.range(5).repartition(1).mapInPandas(slow_once, "id long")
    rows.write.format("delta").mode("append").saveAsTable("main.sales.orders")
    assert main.table("main.sales.orders").count() == 6
    assert len(handed_out) > 1
    assert frame.count() == 1, "a frame reads with the keys of now"


@pytest.mark.thorough
def test_a_write_longer_than_any_key_is_cut(
    main: SparkSession, server: UnityServer, endpoint: str
) -> None:
    """Rows take longer than a key both to compute and to store."""
    until(server, 600_000)
    main.sql("CREATE TABLE main.sales.orders (id BIGINT)")

    def slow(rows: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        time.sleep(2)
        yield from rows

    rows = main.range(12).repartition(12).mapInPandas(slow, "id long")
    handed_out = until(server, 9_000)
    with Proxy(endpoint, delay_seconds=2.0) as distant:
        main.conf.set(f"{OWN}.storage.endpoint", distant.endpoint)
        started = time.monotonic()
        rows.write.format("delta").mode("append").saveAsTable("main.sales.orders")
        seconds = time.monotonic() - started
        main.conf.set(f"{OWN}.storage.endpoint", endpoint)
    assert seconds > 30, "a job of a minute, keys of nine seconds"
    until(server, 600_000)
    assert sorted(row.id for row in main.table("main.sales.orders").collect()) == list(range(12))
    files = main.table("main.sales.orders").inputFiles()
    assert len(files) == len(set(files))
    assert len(handed_out) > 3
    assert not main.catalog.isCached("main.sales.orders")


@pytest.mark.thorough
@pytest.mark.parametrize("condition", ["t.id = s.id", "t.id <= s.id AND t.id + 1 > s.id"])
def test_a_merge_of_a_minute_with_keys_of_ten_seconds(
    main: SparkSession, server: UnityServer, endpoint: str, condition: str
) -> None:
    until(server, 600_000)
    main.sql("CREATE TABLE main.sales.orders AS SELECT id, 'old' AS note FROM range(100)")

    def slow(rows: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        time.sleep(15)
        yield from rows

    source = main.sql("SELECT id * 2 AS id, 'new' AS note FROM range(80)").repartition(8)
    source.mapInPandas(slow, "id long, note string").createOrReplaceTempView("slow_source")
    handed_out = until(server, 10_000)
    with Proxy(endpoint, delay_seconds=0.3) as distant:
        main.conf.set(f"{OWN}.storage.endpoint", distant.endpoint)
        started = time.monotonic()
        main.sql(
            f"MERGE INTO main.sales.orders t USING slow_source s ON {condition} "
            "WHEN MATCHED THEN UPDATE SET note = upper(s.note) WHEN NOT MATCHED THEN INSERT *"
        )
        seconds = time.monotonic() - started
        main.conf.set(f"{OWN}.storage.endpoint", endpoint)
    until(server, 600_000)
    assert seconds > 60
    assert len(handed_out) > 5
    counts = main.sql("SELECT note, count(*) FROM main.sales.orders GROUP BY note").collect()
    assert {row[0]: row[1] for row in counts} == {"NEW": 50, "new": 30, "old": 50}
