"""Tables in a bucket whose keys only the catalog hands out."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.catalogs.failures import CatalogRequestError
from tests.servers.s3 import BUCKET, is_installed, s3_server
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
