"""Tables of a Unity catalog by name, in an activated session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession

import puredelta
from puredelta.catalogs.failures import CatalogRequestError
from puredelta.errors import (
    CatalogError,
    ErrorCode,
    InvalidRequestError,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.paths import encode_uri
from puredelta.tables import DeltaTable
from tests.servers.unity import Table, UnityServer, unity_server

SECRET = "dapi-0123456789abcdef"
PREFIX = "spark.sql.catalog.main"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with unity_server(f"file:{tmp_path}", tokens={SECRET}) as running:
        yield running


@pytest.fixture
def main(spark: SparkSession, server: UnityServer) -> Iterator[SparkSession]:
    """An activated session with the settings of the connector."""
    settings = {
        PREFIX: "io.unitycatalog.spark.UCSingleCatalog",
        f"{PREFIX}.uri": server.url,
        f"{PREFIX}.token": SECRET,
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


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def table_of(server: UnityServer, name: str = "orders") -> Table:
    return server.tables["main", "sales", name]


def folder_of(server: UnityServer, name: str = "orders") -> Path:
    return Path(table_of(server, name).location.removeprefix("file://"))


def test_a_managed_table_from_creation_to_drop(main: SparkSession, server: UnityServer) -> None:
    main.sql("CREATE TABLE main.sales.orders (id BIGINT, note STRING)")
    table = table_of(server)
    assert table.kind == "MANAGED"
    assert table.properties["delta.columnMapping.mode"] == "name"
    assert table.properties["delta.enableRowTracking"] == "true"
    main.sql("INSERT INTO main.sales.orders VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    assert rows(main.sql("SELECT * FROM main.sales.orders")) == [(1, "a"), (2, "b"), (3, "c")]
    main.sql("UPDATE main.sales.orders SET note = 'B' WHERE id = 2")
    main.sql("DELETE FROM main.sales.orders WHERE main.sales.orders.id = 3")
    main.sql(
        "MERGE INTO main.sales.orders AS t USING (SELECT 1 AS id, 'A' AS note UNION ALL "
        "SELECT 9, 'z') AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(main.table("main.sales.orders")) == [(1, "A"), (2, "B"), (9, "z")]
    assert (table.latest, table.published) == (4, 4)
    history = main.sql("DESCRIBE HISTORY main.sales.orders").collect()
    assert [row["operation"] for row in history] == [
        "MERGE",
        "DELETE",
        "UPDATE",
        "WRITE",
        "CREATE TABLE",
    ]
    detail = main.sql("DESCRIBE DETAIL main.sales.orders").first()
    assert detail is not None
    assert detail["name"] == "main.sales.orders"
    folder = folder_of(server)
    main.sql("DROP TABLE main.sales.orders")
    assert not server.tables
    assert not folder.exists()
    main.sql("DROP TABLE IF EXISTS main.sales.orders")
    with pytest.raises(TableNotFoundError):
        main.sql("DROP TABLE main.sales.orders")


@pytest.mark.thorough
def test_queries_name_tables_and_columns_as_ever(main: SparkSession) -> None:
    main.sql("CREATE TABLE main.sales.orders AS SELECT id, id % 2 AS part FROM range(4)")
    main.sql("CREATE TABLE main.sales.parts AS SELECT 0 AS part, 'even' AS name")
    joined = main.sql(
        "SELECT o.id, main.sales.parts.name FROM main.sales.orders o JOIN main.sales.parts "
        "ON o.part = parts.part ORDER BY o.id"
    )
    assert rows(joined) == [(0, "even"), (2, "even")]
    assert rows(main.sql("SELECT main.sales.orders.id FROM `main`.`sales`.`orders`")) == [
        (0,),
        (1,),
        (2,),
        (3,),
    ]
    assert main.sql("SELECT count(*) FROM main.sales.orders").first() == Row(4)
    nested = "SELECT max(id) FROM (SELECT * FROM main.sales.orders WHERE id < 3)"
    assert main.sql(nested).first()[0] == 2  # type: ignore[index]
    with_cte = "WITH big AS (SELECT * FROM main.sales.orders WHERE id > 1) SELECT id FROM big"
    assert rows(main.sql(with_cte)) == [(2,), (3,)]
    main.sql("INSERT INTO main.sales.orders SELECT 10, part FROM main.sales.parts")
    assert rows(main.sql("SELECT id FROM main.sales.orders VERSION AS OF 0")) == [
        (0,),
        (1,),
        (2,),
        (3,),
    ]
    assert len(rows(main.table("main.sales.orders").filter("id >= 0"))) == 5
    assert rows(main.table("main.sales.orders").select("main.sales.orders.id").limit(1))
    assert rows(main.read.option("versionAsOf", 0).table("main.sales.orders")) == rows(
        main.sql("SELECT * FROM main.sales.orders VERSION AS OF 0")
    )
    changed = main.sql(
        "UPDATE main.sales.orders SET part = (SELECT max(part) + 5 FROM main.sales.parts) "
        "WHERE id = 0"
    ).first()
    assert changed is not None
    assert changed[0] == 1


def test_writers_and_builders_take_the_name(main: SparkSession, server: UnityServer) -> None:
    frame = main.range(3).selectExpr("id", "id * 2 AS twice")
    frame.write.format("delta").saveAsTable("main.sales.orders")
    frame.write.format("delta").mode("append").saveAsTable("main.sales.orders")
    frame.write.insertInto("main.sales.orders")
    frame.writeTo("main.sales.orders").append()
    assert main.table("main.sales.orders").count() == 12
    frame.write.format("delta").mode("overwrite").saveAsTable("main.sales.orders")
    assert main.table("main.sales.orders").count() == 3
    with pytest.raises(InvalidRequestError, match="already exists"):
        frame.write.format("delta").saveAsTable("main.sales.orders")
    table = DeltaTable.forName(main, "main.sales.orders")
    table.update("id = 1", {"twice": "100"})
    table.alias("t").merge(frame.alias("s"), "t.id = s.id").whenMatchedDelete().execute()
    assert table.toDF().count() == 0
    frame.writeTo("main.sales.second").using("delta").create()
    frame.writeTo("main.sales.second").using("delta").createOrReplace()
    assert main.table("main.sales.second").count() == 3
    assert table_of(server, "second").properties["io.unitycatalog.tableId"]
    built = (
        DeltaTable.create(main)
        .tableName("main.sales.built")
        .addColumn("id", "BIGINT")
        .property("team", "me")
        .execute()
    )
    built.delete()
    assert table_of(server, "built").properties["team"] == "me"
    frame.mergeInto("main.sales.second", main.table("main.sales.second")["id"] == 1)
    assert table_of(server).latest == table_of(server).published


def test_replacement_keeps_the_table(main: SparkSession, server: UnityServer) -> None:
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    table_id = table_of(server).id
    main.sql("CREATE OR REPLACE TABLE main.sales.orders AS SELECT 'x' AS name")
    assert rows(main.sql("SELECT name FROM main.sales.orders")) == [("x",)]
    assert (table_of(server).id, table_of(server).latest) == (table_id, 1)
    assert [field["name"] for field in table_of(server).fields] == ["name"]
    main.sql("REPLACE TABLE main.sales.orders (id INT) COMMENT 'again'")
    assert table_of(server).comment == "again"
    main.sql("RESTORE TABLE main.sales.orders TO VERSION AS OF 0")
    assert rows(main.table("main.sales.orders")) == [(1,)]
    with pytest.raises(TableNotFoundError):
        main.sql("REPLACE TABLE main.sales.other (id INT)")
    with pytest.raises(InvalidRequestError, match="already exists"):
        main.sql("CREATE TABLE main.sales.orders (id INT)")
    main.sql("CREATE TABLE IF NOT EXISTS main.sales.orders (id INT)")


def test_changes_of_the_definition(main: SparkSession, server: UnityServer) -> None:
    main.sql("CREATE TABLE main.sales.orders (id BIGINT, note STRING)")
    main.sql("ALTER TABLE main.sales.orders ADD COLUMNS (more INT)")
    main.sql("ALTER TABLE main.sales.orders RENAME COLUMN note TO remark")
    main.sql("ALTER TABLE main.sales.orders SET TBLPROPERTIES ('team' = 'me')")
    main.sql("ALTER TABLE main.sales.orders CLUSTER BY (id)")
    main.sql("COMMENT ON TABLE main.sales.orders IS 'the orders'")
    table = table_of(server)
    assert [field["name"] for field in table.fields] == ["id", "remark", "more"]
    assert (table.properties["team"], table.comment) == ("me", "the orders")
    assert "clusteringColumns" in table.properties
    main.sql("ALTER TABLE main.sales.orders UNSET TBLPROPERTIES ('team')")
    assert "team" not in table.properties
    described = main.sql("DESCRIBE TABLE main.sales.orders").collect()
    assert [row["col_name"] for row in described][:3] == ["id", "remark", "more"]
    assert main.sql("SHOW COLUMNS IN main.sales.orders").count() == 3
    main.sql("TRUNCATE TABLE main.sales.orders")


@pytest.mark.parametrize(
    "statement",
    [
        "OPTIMIZE main.sales.orders",
        "VACUUM main.sales.orders",
        "VACUUM main.sales.orders DRY RUN",
        "REORG TABLE main.sales.orders APPLY (PURGE)",
        "ALTER TABLE main.sales.orders DROP FEATURE deletionVectors",
        "ALTER TABLE main.sales.orders UNSET TBLPROPERTIES ('io.unitycatalog.tableId')",
    ],
)
def test_operations_of_the_catalog_are_refused(main: SparkSession, statement: str) -> None:
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    with pytest.raises(UnsupportedError) as refused:
        main.sql(statement)
    assert refused.value.code is ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION
    assert rows(main.table("main.sales.orders")) == [(1,)]


def test_a_managed_table_by_its_path_is_refused(main: SparkSession, server: UnityServer) -> None:
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    path = str(folder_of(server))
    for call in (
        lambda: main.read.format("delta").load(path),
        lambda: main.sql(f"SELECT * FROM delta.`{path}`"),
        lambda: main.sql(f"INSERT INTO delta.`{path}` VALUES (2)"),
        lambda: main.range(1).write.format("delta").mode("append").save(path),
        lambda: DeltaTable.forPath(main, path),
    ):
        with pytest.raises(UnsupportedError) as refused:
            call()
        assert refused.value.code is ErrorCode.CATALOG_MANAGED_TABLE_BY_PATH
    with pytest.raises(UnsupportedError):
        main.sql(
            f"CREATE TABLE delta.`{path}2` (id INT) USING delta TBLPROPERTIES "
            "('delta.feature.catalogManaged' = 'supported')"
        )


def test_external_tables(main: SparkSession, server: UnityServer, tmp_path: Path) -> None:
    place = tmp_path / "external %41 ä"
    main.sql(f"CREATE TABLE main.sales.orders (id BIGINT) USING delta LOCATION '{place}'")
    table = table_of(server)
    assert (table.kind, table.location) == ("EXTERNAL", encode_uri(f"file:{place}"))
    main.sql("INSERT INTO main.sales.orders VALUES (1), (2)")
    main.sql("OPTIMIZE main.sales.orders")
    assert rows(main.read.format("delta").load(str(place))) == [(1,), (2,)]
    assert rows(main.sql("SELECT * FROM main.sales.orders")) == [(1,), (2,)]
    main.sql("DROP TABLE main.sales.orders")
    assert TableLog.open(str(place)).exists()
    main.sql(f"CREATE TABLE main.sales.again USING delta LOCATION '{place}'")
    assert [field["name"] for field in table_of(server, "again").fields] == ["id"]
    assert rows(main.table("main.sales.again")) == [(1,), (2,)]
    server.fail("POST", "/delta/v1/catalogs/main/schemas/sales/tables", "400")
    with pytest.raises(CatalogError, match="has no entry"):
        main.sql(f"CREATE TABLE main.sales.third USING delta LOCATION '{place}'")


def test_columns_of_an_external_table_follow(
    main: SparkSession, server: UnityServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = "main.sales.events"
    main.sql(f"CREATE TABLE {name} (id BIGINT) USING delta LOCATION '{tmp_path / 'events'}'")
    main.sql(f"ALTER TABLE {name} ADD COLUMNS (note STRING)")
    main.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {name} t USING (SELECT 1L AS id, 2 AS more) s "
        "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    table = table_of(server, "events")
    assert [field["name"] for field in table.fields] == ["id", "note", "more"]
    assert table.properties["delta.lastUpdateVersion"] == "2"
    server.fail("POST", "/delta/v1/catalogs/main/schemas/sales/tables/events", "403")
    main.sql(f"ALTER TABLE {name} ADD COLUMNS (last INT)")
    assert main.table(name).columns == ["id", "note", "more", "last"]
    assert "Version 3" in caplog.text
    assert len(table.fields) == 3


@pytest.mark.thorough
def test_reads_of_the_table_itself_count_under_every_name(
    main: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    place = str(tmp_path / "twice")
    main.sql(f"CREATE TABLE main.sales.orders USING delta LOCATION '{place}' AS SELECT 1 AS id")
    main.sql(f"CREATE TABLE main.sales.again USING delta LOCATION '{place}'")
    for text in (
        f"INSERT INTO delta.`{place}` SELECT id + 1 FROM main.sales.orders",
        f"INSERT INTO main.sales.orders SELECT id + 10 FROM delta.`{place}`",
        "INSERT INTO main.sales.orders SELECT id + 100 FROM main.sales.again",
        "INSERT INTO main.sales.orders SELECT id + 1000 FROM main.sales.orders",
    ):
        main.sql(text)
        last = main.sql("DESCRIBE HISTORY main.sales.orders LIMIT 1").first()
        assert last is not None
        assert last["isBlindAppend"] is False, text
    server.requests.clear()
    main.sql("INSERT INTO main.sales.orders VALUES (1)")
    assert len(server.requests) <= 6


@pytest.mark.thorough
def test_listings(main: SparkSession, server: UnityServer) -> None:
    server.schemas["main", "other"] = None
    for name in ("orders", "parts", "other"):
        main.sql(f"CREATE TABLE main.sales.{name} (id INT)")
    listed = main.sql("SHOW TABLES IN main.sales LIKE 'o*|nothing'")
    assert listed.columns == ["namespace", "tableName", "isTemporary"]
    assert rows(listed) == [("sales", "orders", False), ("sales", "other", False)]
    assert rows(main.sql("SHOW SCHEMAS IN main")) == [("other",), ("sales",)]
    assert main.sql("SHOW TABLES").columns[0] == "namespace"
    extended = {
        row["col_name"]: row["data_type"]
        for row in main.sql("DESCRIBE EXTENDED main.sales.orders").collect()
    }
    assert [extended[key] for key in ("Catalog", "Database", "Table", "Type")] == [
        "main",
        "sales",
        "orders",
        "MANAGED",
    ]
    assert extended["Location"].endswith(table_of(server).id)
    shown = main.sql("SHOW TBLPROPERTIES main.sales.orders ('nothing')").first()
    assert shown is not None
    assert "main.sales.orders" in shown["value"]


def test_unknown_names_are_errors_of_the_catalog(main: SparkSession, server: UnityServer) -> None:
    for call in (
        lambda: main.sql("SELECT * FROM main.sales.missing"),
        lambda: main.table("main.sales.missing"),
        lambda: main.sql("INSERT INTO main.sales.missing VALUES (1)"),
        lambda: main.sql("DELETE FROM main.other.missing"),
        lambda: DeltaTable.forName(main, "main.sales.missing"),
        lambda: main.sql("DESCRIBE HISTORY main.sales.missing"),
    ):
        with pytest.raises(TableNotFoundError) as missing:
            call()
        assert missing.value.code is ErrorCode.TABLE_OR_VIEW_NOT_FOUND
    with pytest.raises(TableNotFoundError) as schema:
        main.sql("CREATE TABLE main.nothing.orders (id INT)")
    assert schema.value.code is ErrorCode.SCHEMA_NOT_FOUND
    server.tables["main", "sales", "csv"] = Table(
        id="1", kind="EXTERNAL", location="file:/x", fields=[], properties={}, format="CSV"
    )
    with pytest.raises(CatalogRequestError, match="Only Delta tables"):
        main.sql("DELETE FROM main.sales.csv")
    with pytest.raises(InvalidRequestError, match="demands"):
        main.sql(
            "CREATE TABLE main.sales.x (id INT) TBLPROPERTIES "
            "('delta.checkpointPolicy' = 'classic')"
        )


def test_no_text_shows_the_token(
    main: SparkSession, server: UnityServer, caplog: pytest.LogCaptureFixture
) -> None:
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    frame = main.sql("SELECT * FROM main.sales.orders")
    plan = frame._jdf.queryExecution().toString()
    history = str(main.sql("DESCRIBE HISTORY main.sales.orders").collect())
    detail = str(main.sql("DESCRIBE DETAIL main.sales.orders").collect())
    server.tokens = {"other"}
    with pytest.raises(CatalogRequestError) as refused:
        main.sql("SELECT * FROM main.sales.orders")
    log = "".join(path.read_text() for path in folder_of(server).rglob("*.json"))
    texts = [plan, history, detail, str(refused.value), repr(refused.value), caplog.text, log]
    assert all(SECRET not in text for text in texts)


def test_streams_read_and_write_by_name(
    main: SparkSession, server: UnityServer, tmp_path: Path
) -> None:
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    main.sql("INSERT INTO main.sales.orders VALUES (2)")
    query = (
        main.readStream.table("main.sales.orders")
        .writeStream.format("delta")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable("main.sales.copy")
    )
    query.awaitTermination()
    assert rows(main.table("main.sales.copy")) == [(1,), (2,)]
    assert table_of(server, "copy").kind == "MANAGED"


def test_a_replacement_says_nothing_else_than_the_catalog(
    main: SparkSession, server: UnityServer
) -> None:
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1 AS id")
    for key, text in (
        ("io.unitycatalog.tableId", "another"),
        ("delta.enableInCommitTimestamps", "false"),
        ("DELTA.enableInCommitTimestamps", "false"),
    ):
        for verb in ("CREATE OR REPLACE TABLE main.sales.orders", "CREATE TABLE main.sales.new"):
            with pytest.raises(InvalidRequestError, match="The catalog demands"):
                main.sql(f"{verb} (id INT) TBLPROPERTIES ('{key}' = '{text}')")
    same = table_of(server).id
    main.sql(
        "CREATE OR REPLACE TABLE main.sales.orders (id INT) "
        f"TBLPROPERTIES ('io.unitycatalog.tableId' = '{same}')"
    )
    assert (table_of(server).id, table_of(server).latest) == (same, 1)


def test_an_entry_that_cannot_be_used_is_dropped(main: SparkSession, server: UnityServer) -> None:
    for location in ("dbfs:/t", "s3://b/t?x", "file:/../t"):
        server.tables["main", "sales", "odd"] = Table("1", "EXTERNAL", location, [], {})
        with pytest.raises(CatalogRequestError):
            main.sql("SELECT * FROM main.sales.odd")
        main.sql("DROP TABLE main.sales.odd")
        assert not server.tables


def test_a_table_of_the_same_name_is_another_one(main: SparkSession, server: UnityServer) -> None:
    """Another client drops a table and creates one of its name."""
    main.sql("CREATE TABLE main.sales.orders AS SELECT 1L AS id")
    held = DeltaTable.forName(main, "main.sales.orders")
    other = main.newSession()
    for key in (PREFIX, f"{PREFIX}.uri", f"{PREFIX}.token"):
        other.conf.set(key, main.conf.get(key))
    other.sql("DROP TABLE main.sales.orders")
    other.sql("CREATE TABLE main.sales.orders AS SELECT 2L AS id")
    for call in (held.delete, held.toDF, held.history, lambda: held.update(set={"id": "3"})):
        with pytest.raises(CatalogRequestError, match="another table"):
            call()
    assert rows(main.table("main.sales.orders")) == [(2,)]
    assert table_of(server).latest == 0
    table_of(server).location = f"{table_of(server).location}-moved"
    with pytest.raises(TableNotFoundError):
        main.table("main.sales.orders")


@pytest.mark.thorough
def test_a_stream_notices_another_table_of_the_name(main: SparkSession, tmp_path: Path) -> None:
    main.sql("CREATE TABLE main.sales.source AS SELECT 1L AS id")
    main.sql("CREATE TABLE main.sales.sink (id BIGINT)")

    def run() -> None:
        writer = main.readStream.table("main.sales.source").writeStream.format("delta")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).toTable("main.sales.sink")
        query.awaitTermination()

    run()
    main.sql("DROP TABLE main.sales.source")
    main.sql("CREATE TABLE main.sales.source AS SELECT 50L AS id")
    with pytest.raises(StreamingQueryException, match="used to read from another Delta table"):
        run()
    assert rows(main.table("main.sales.sink")) == [(1,)]
