"""The client of a Unity Catalog server beside the stand-in."""

from __future__ import annotations

import json
import logging
import pickle
import socket
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from puredelta.catalogs.answers import loaded_table, location_from, vended_keys
from puredelta.catalogs.catalog import (
    CommittedVersion,
    KeyUse,
    LoadedTable,
    RatifiedCommit,
    TableCreation,
    TableIdentifier,
    TableKind,
    TableUpdate,
    address_of,
    name_of_address,
)
from puredelta.catalogs.failures import CatalogRequestError, Refusal, refusal_of
from puredelta.catalogs.settings import catalog_names, find_catalog
from puredelta.catalogs.tokens import OAuthTokens, fixed_token, token_from_file
from puredelta.catalogs.transport import Answer, HttpRequest, HttpTransport
from puredelta.catalogs.unity import UnityCatalog, type_json, update_json
from puredelta.errors import ErrorCode, InvalidRequestError
from tests.catalogs.managed import ORDERS, Orders, no_wait, unity
from tests.servers.unity import Table, UnityServer, unity_server

TABLE = "/delta/v1/catalogs/main/schemas/sales/tables/orders"
SECRET = "dapi-0123456789abcdef"
CLASS = "io.unitycatalog.spark.UCSingleCatalog"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with unity_server(f"file:{tmp_path}") as running:
        yield running


def external(server: UnityServer, name: str = "orders", location: str = "file:/data/t") -> None:
    server.tables["main", "sales", name] = Table(
        id="1", kind="EXTERNAL", location=location, fields=[], properties={}
    )


# --- requests --------------------------------------------------------------------------------


def test_tables_and_schemas_are_listed_page_by_page(server: UnityServer) -> None:
    for number in range(205):
        external(server, f"t{number:03d}")
    rows = list(unity(server).tables("sales"))
    assert [row.name.table for row in rows] == [f"t{n:03d}" for n in range(205)]
    assert {row.format for row in rows} == {"delta"}
    assert len(server.asked("GET", "/tables")) == 3
    assert list(unity(server).schemas()) == ["sales"]


def test_an_external_table_is_loaded(server: UnityServer) -> None:
    external(server)
    table = unity(server).load(ORDERS)
    assert (table.kind, table.location) == (TableKind.EXTERNAL, "file:/data/t")
    assert not table.is_catalog_managed
    assert table.latest_version is None


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        (TableIdentifier("other", "sales", "orders"), Refusal.NOT_FOUND),
        (TableIdentifier("main", "other", "orders"), Refusal.NOT_FOUND),
        (TableIdentifier("main", "sales", "other"), Refusal.NOT_FOUND),
        (TableIdentifier("main", "sales", "a/b?c#d"), Refusal.NOT_FOUND),
    ],
)
def test_unknown_names_are_not_found(
    server: UnityServer, name: TableIdentifier, refusal: Refusal
) -> None:
    with pytest.raises(CatalogRequestError) as failed:
        unity(server).load(name)
    assert failed.value.refusal is refusal
    assert failed.value.code is ErrorCode.TABLE_OR_VIEW_NOT_FOUND


@pytest.mark.parametrize(
    "text", ["odd name", "dot.ted", "tick`ed", "Ünï 表", "a/b", "per%2Fcent", "q?x#y", "..", "x:y"]
)
def test_any_name_reaches_the_server_as_it_is(server: UnityServer, text: str) -> None:
    external(server, text)
    external(server, "other")
    name = TableIdentifier("main", "sales", text)
    assert unity(server).load(name).name == name
    assert unity(server).describe(name).name == name
    assert name_of_address(address_of(name)) == name
    unity(server).drop(name)
    assert list(server.tables) == [("main", "sales", "other")]


def test_another_format_is_refused(server: UnityServer) -> None:
    external(server)
    server.tables["main", "sales", "orders"].format = "PARQUET"
    with pytest.raises(CatalogRequestError, match="not a Delta table") as failed:
        unity(server).load(ORDERS)
    assert failed.value.refusal is Refusal.OTHER_FORMAT
    assert ".." not in str(failed.value)


@pytest.mark.parametrize("kind", ["500", "503", "429", "lost answer", "lost request"])
def test_reads_are_repeated(server: UnityServer, kind: str) -> None:
    external(server)
    server.fail("GET", TABLE, kind, times=3)
    assert unity(server).load(ORDERS).table_id == "1"
    server.fail("GET", TABLE, kind, times=4)
    with pytest.raises(CatalogRequestError) as failed:
        unity(server).load(ORDERS)
    assert failed.value.refusal is Refusal.NO_ANSWER


def test_writes_are_sent_once(server: UnityServer) -> None:
    external(server)
    server.fail("DELETE", TABLE, "500", times=1)
    with pytest.raises(CatalogRequestError):
        unity(server).drop(ORDERS)
    unity(server).drop(ORDERS)
    assert not server.tables


def test_tables_are_renamed_and_dropped(server: UnityServer) -> None:
    external(server)
    external(server, "taken")
    with pytest.raises(CatalogRequestError) as failed:
        unity(server).rename(ORDERS, "taken")
    assert failed.value.refusal is Refusal.EXISTS
    unity(server).rename(ORDERS, "renamed")
    unity(server).drop(TableIdentifier("main", "sales", "renamed"))
    assert list(server.tables) == [("main", "sales", "taken")]


def test_an_external_table_is_created(server: UnityServer) -> None:
    fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    created = unity(server).create(
        TableCreation(
            name=ORDERS,
            kind=TableKind.EXTERNAL,
            location="file:/data/t",
            definition=TableUpdate(
                columns={"type": "struct", "fields": fields},
                protocol={"minReaderVersion": 1, "minWriterVersion": 2},
                set_properties={"a": "b", "delta.feature.x": "supported"},
                comment="c",
            ),
            timestamp_ms=1,
        )
    )
    assert created.kind is TableKind.EXTERNAL
    table = server.tables["main", "sales", "orders"]
    assert (table.fields, table.comment, table.properties) == (fields, "c", {"a": "b"})


def test_an_external_table_shows_its_newest_definition(server: UnityServer) -> None:
    external(server)
    table = server.tables["main", "sales", "orders"]

    def follow(version: int, column: str, location: str = table.location) -> None:
        field = {"name": column, "type": "long", "nullable": True, "metadata": {}}
        update = TableUpdate(columns={"type": "struct", "fields": [field]})
        at = CommittedVersion(location=location, version=version, timestamp_ms=1)
        unity(server).follow(ORDERS, update, at)

    follow(4, "newer")
    follow(3, "older")
    follow(5, "elsewhere", "file:/another/table")
    assert [field["name"] for field in table.fields] == ["newer"]
    assert table.properties["delta.lastUpdateVersion"] == "4"
    server.fail("GET", TABLE, "change", change=lambda answer: {**answer, **_older(answer)})
    follow(6, "newest")
    assert [field["name"] for field in table.fields] == ["newest"]
    requests = len(server.requests)
    unity(server).follow(
        ORDERS, TableUpdate(), CommittedVersion(location="x", version=9, timestamp_ms=1)
    )
    assert len(server.requests) == requests


def _older(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of an answer with the etag of an older one."""
    return {"metadata": {**answer["metadata"], "etag": "etag-0"}}


def test_a_redirect_is_not_followed(server: UnityServer) -> None:
    external(server)
    server.fail("GET", TABLE, "302")
    with pytest.raises(CatalogRequestError, match="redirect"):
        unity(server, SECRET).load(ORDERS)
    assert len(server.requests) == 1


def test_a_page_of_another_server_is_no_answer(server: UnityServer) -> None:
    external(server)
    server.fail("GET", TABLE, "wrong", times=9, change=lambda _: "<html>login</html>")
    with pytest.raises(CatalogRequestError, match="cannot be used"):
        unity(server).load(ORDERS)


def test_a_server_without_the_api_is_named(server: UnityServer) -> None:
    with pytest.raises(CatalogRequestError, match=r"version 0\.5") as failed:
        UnityCatalog(
            name="main", url=f"{server.url}/elsewhere", tokens=fixed_token(None), send=_send
        ).load(ORDERS)
    assert failed.value.refusal is Refusal.INVALID


def _send(request: HttpRequest) -> Answer:
    return HttpTransport().send(request)


def test_a_server_that_hangs_has_a_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(CatalogRequestError) as failed:
            HttpTransport(timeout_s=0.05).send(HttpRequest(method="GET", url=url))
    assert failed.value.refusal is Refusal.NO_ANSWER


@pytest.mark.parametrize(
    ("status", "kind", "refusal"),
    [
        (409, "UpdateRequirementConflictException", Refusal.CHANGED),
        (429, "ResourceExhaustedException", Refusal.TOO_MANY_COMMITS),
        (429, None, Refusal.NO_ANSWER),
        (500, "CommitStateUnknownException", Refusal.NO_ANSWER),
        (400, "InvalidParameterValueException", Refusal.INVALID),
        (403, "PERMISSION_DENIED", Refusal.NOT_ALLOWED),
        (409, "Other", Refusal.INVALID),
    ],
)
def test_refusals_have_a_meaning(status: int, kind: str | None, refusal: Refusal) -> None:
    assert refusal_of(status, kind) is refusal


def test_failures_survive_pickling(server: UnityServer) -> None:
    with pytest.raises(CatalogRequestError) as failed:
        unity(server).load(ORDERS)
    again = pickle.loads(pickle.dumps(failed.value))
    assert (str(again), again.refusal) == (str(failed.value), failed.value.refusal)


# --- tokens and secrets ----------------------------------------------------------------------


def test_a_token_goes_with_every_request_and_into_no_text(
    server: UnityServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.tokens = {SECRET}
    external(server)
    catalog = unity(server, SECRET)
    assert catalog.load(ORDERS).table_id == "1"
    server.tokens = {"another"}
    with pytest.raises(CatalogRequestError, match="Check the token") as failed:
        catalog.load(ORDERS)
    assert failed.value.refusal is Refusal.NOT_ALLOWED
    shown = "".join(traceback.format_exception(failed.value))
    texts = [shown, repr(catalog), str(failed.value.details), caplog.text, repr(failed.value)]
    assert all(SECRET not in text for text in texts)
    assert "***" in str(failed.value), "the server repeats the token"


def test_secrets_are_in_no_text_of_a_configured_catalog(server: UnityServer) -> None:
    settings = {
        "spark.sql.catalog.main": CLASS,
        "spark.sql.catalog.main.uri": server.url,
        "spark.sql.catalog.main.auth.type": "oauth",
        "spark.sql.catalog.main.auth.oauth.uri": f"{server.url}/oauth/token",
        "spark.sql.catalog.main.auth.oauth.clientId": "me",
        "spark.sql.catalog.main.auth.oauth.clientSecret": SECRET,
        "spark.puredelta.catalog.main.storage.secret_access_key": SECRET,
    }
    found = find_catalog(settings, "main")
    assert SECRET not in repr(found)
    assert found is not None
    with pytest.raises(CatalogRequestError, match="gave no token") as failed:
        found.catalog.load(ORDERS)
    assert SECRET not in "".join(traceback.format_exception(failed.value))


def test_a_token_file_is_read_at_each_request(server: UnityServer, tmp_path: Path) -> None:
    external(server)
    file = tmp_path / "token"
    file.write_text("first\n")
    settings = {
        "spark.puredelta.catalog.main.uri": server.url,
        "spark.puredelta.catalog.main.token_file": str(file),
    }
    found = find_catalog(settings, "main")
    assert found is not None
    server.tokens = {"first"}
    assert found.catalog.load(ORDERS)
    file.write_text("second\n")
    server.tokens = {"second"}
    assert found.catalog.load(ORDERS)
    file.unlink()
    with pytest.raises(CatalogRequestError, match="token file"):
        found.catalog.load(ORDERS)
    assert token_from_file("/nowhere").renew() is False


def test_a_token_of_the_environment(server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    external(server)
    settings = {
        "spark.puredelta.catalog.main.uri": server.url,
        "spark.puredelta.catalog.main.token_env": "PUREDELTA_TEST_TOKEN",
    }
    found = find_catalog(settings, "main")
    assert found is not None
    server.tokens = {SECRET}
    with pytest.raises(CatalogRequestError, match="PUREDELTA_TEST_TOKEN is not set"):
        found.catalog.load(ORDERS)
    monkeypatch.setenv("PUREDELTA_TEST_TOKEN", SECRET)
    assert found.catalog.load(ORDERS)


def test_a_token_of_the_process_is_for_catalogs_without_a_setting(
    server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    external(server)
    server.tokens = {SECRET}
    settings = {"spark.puredelta.catalog.main.uri": server.url}
    found = find_catalog(settings, "main")
    assert found is not None
    with pytest.raises(CatalogRequestError, match="PUREDELTA_CATALOG_NAME_TOKEN"):
        found.catalog.load(ORDERS)
    monkeypatch.setenv("PUREDELTA_CATALOG_MAIN_TOKEN", SECRET)
    assert found.catalog.load(ORDERS)
    stated = find_catalog({**settings, "spark.sql.catalog.main.token": "another"}, "main")
    assert stated is not None
    with pytest.raises(CatalogRequestError):
        stated.catalog.load(ORDERS)


def test_client_credentials_are_renewed(server: UnityServer) -> None:
    external(server)
    server.clients, server.tokens = {"me": SECRET}, {"nobody has this"}
    now = [0.0]
    url = f"{server.url}/oauth/token"
    send = HttpTransport().send
    tokens = OAuthTokens(send, url=url, client_id="me", client_secret=SECRET, clock=lambda: now[0])
    catalog = UnityCatalog(name="main", url=server.url, tokens=tokens, send=send, sleep=no_wait)
    assert catalog.load(ORDERS)
    assert catalog.load(ORDERS)
    assert len(server.asked("POST", "/oauth/token")) == 1
    now[0] = 3541.0
    assert catalog.load(ORDERS)
    assert len(server.asked("POST", "/oauth/token")) == 2
    server.tokens = {"nobody has this"}  # the server has forgotten it before it expired
    assert catalog.load(ORDERS)
    assert len(server.asked("POST", "/oauth/token")) == 3
    assert SECRET not in repr(tokens)


# --- settings --------------------------------------------------------------------------------


def test_settings_of_the_connector_are_taken_unchanged(server: UnityServer) -> None:
    external(server)
    server.tokens = {SECRET}
    settings = {
        "spark.sql.catalog.main": CLASS,
        "spark.sql.catalog.main.uri": server.url + "/",
        "spark.sql.catalog.main.token": SECRET,
        "spark.sql.catalog.spark_catalog": CLASS,
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.puredelta.catalog.main.storage.endpoint": "http://minio:9000",
        "spark.puredelta.catalog.main.timeout_s": "5",
    }
    assert catalog_names(settings) == ("main",)
    found = find_catalog(settings, "main")
    assert found is not None
    assert found.catalog.load(ORDERS).table_id == "1"
    assert found.storage_options == {"endpoint": "http://minio:9000"}
    assert find_catalog(settings, "ice") is None
    with pytest.raises(InvalidRequestError, match=r"spark_catalog is set.*its own name"):
        find_catalog(settings, "spark_catalog")
    assert find_catalog({}, "spark_catalog") is None
    with_path = settings | {"spark.sql.catalog.main.uri": f"{server.url}/api/2.1/unity-catalog"}
    again = find_catalog(with_path, "main")
    assert again is not None
    assert again.catalog.load(ORDERS).table_id == "1"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spark.sql.catalog.main.uri": ""}, "is not set"),
        ({"spark.sql.catalog.main.uri": "http://uc.example.com"}, "plain HTTP"),
        ({"spark.sql.catalog.main.uri": "http://127.0.0.1.example.com"}, "plain HTTP"),
        ({"spark.sql.catalog.main.uri": "ftp://uc"}, "no address"),
        ({"spark.sql.catalog.main.uri": "https://user:pw@uc"}, "without user"),
        ({"spark.sql.catalog.main.uri": "https://uc:port"}, "no address"),
        ({"spark.sql.catalog.main.auth.type": "com.acme.Tokens"}, "a class of the connector"),
        ({"spark.sql.catalog.main.auth.type": "oauth"}, "auth.oauth.uri"),
        ({"spark.puredelta.catalog.main.timeout_s": "soon"}, "no number of seconds"),
        ({"spark.puredelta.catalog.main.tokenfile": "x"}, "is unknown"),
        ({"spark.puredelta.catalog.main.ca_file": "/nowhere.pem"}, "PEM"),
    ],
)
def test_wrong_settings_are_named(changes: dict[str, str], words: str) -> None:
    settings = {"spark.sql.catalog.main": CLASS, "spark.sql.catalog.main.uri": "https://uc"}
    with pytest.raises(InvalidRequestError, match=words) as wrong:
        find_catalog(settings | changes, "main")
    assert wrong.value.code is ErrorCode.INVALID_CONF_VALUE
    assert ":pw@" not in str(wrong.value)


def test_plain_http_may_be_allowed() -> None:
    settings = {
        "spark.sql.catalog.main": CLASS,
        "spark.sql.catalog.main.uri": "http://uc.example.com",
        "spark.puredelta.catalog.main.allow_http": "true",
    }
    assert find_catalog(settings, "main") is not None


# --- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    [
        "s3://bucket/a/../b",
        "s3://bucket/a/%2e%2e/b",
        "s3://bucket",
        "s3:///a",
        "/relative/../t",
        "relative",
        "http://server/t",
        "hdfs://server/t",
        "s3://user@bucket/t",
        "s3://bucket/t?x=1",
        "s3://bucket/t\n",
        "file://server/t",
        "file:/",
        "",
    ],
)
def test_locations_that_lead_elsewhere_are_refused(location: str) -> None:
    with pytest.raises(CatalogRequestError, match="cannot be used"):
        location_from(location, "main.sales.orders", allow_local=True)


@pytest.mark.parametrize(
    ("location", "meant"),
    [
        ("s3://bucket/a%20b/", "s3://bucket/a b"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("file:///data/t/", "file:/data/t"),
        ("/data/t", "file:/data/t"),
    ],
)
def test_locations_are_decoded(location: str, meant: str) -> None:
    assert location_from(location, "main.sales.orders", allow_local=True) == meant


def test_a_remote_catalog_names_no_local_disk() -> None:
    with pytest.raises(CatalogRequestError, match="local_files"):
        location_from("file:///etc", "main.sales.orders", allow_local=False)


def answer(**changes: Any) -> dict[str, Any]:
    metadata = {
        "table-type": "MANAGED",
        "table-uuid": "u",
        "location": "s3://b/t",
        "properties": {"delta.feature.catalogManaged": "supported", "empty": None},
    }
    whole = {"metadata": metadata, "commits": [], "latest-table-version": 0}
    given = {key: changes.pop(key) for key in list(changes) if key in metadata}
    return {**whole, "metadata": {**metadata, **given}, **changes}


def commit(version: Any, name: str | None = None) -> dict[str, Any]:
    return {
        "version": version,
        "timestamp": 1,
        "file-name": name or f"{version:020d}.a.json",
        "file-size": 1,
        "file-modification-timestamp": 1,
    }


def test_a_good_answer_is_taken() -> None:
    table = loaded_table(
        answer(**{"commits": [commit(2), commit(1)], "latest-table-version": 2}), ORDERS
    )
    assert [one.version for one in table.commits] == [1, 2]
    assert table.is_catalog_managed
    assert table.commits[0].path == f"_delta_log/_staged_commits/{1:020d}.a.json"


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": None},
        {"metadata": []},
        {"table-uuid": None},
        {"table-type": "VIEW"},
        {"properties": []},
        {"location": 7},
        {"latest-table-version": None},
        {"latest-table-version": "1"},
        {"latest-table-version": True},
        {"latest-table-version": -1},
        {"latest-table-version": 2**63},
        {"commits": [commit(1)], "latest-table-version": 2},
        {"commits": [commit(1), commit(3)], "latest-table-version": 3},
        {"commits": [commit(1), commit(1)], "latest-table-version": 1},
        {"commits": [commit(1, "../../x.json")], "latest-table-version": 1},
        {"commits": [commit(1, f"{1:020d}.a.json\n")], "latest-table-version": 1},
        {"commits": [{"version": 1}], "latest-table-version": 1},
        {"commits": ["x"], "latest-table-version": 1},
    ],
)
def test_wrong_answers_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(CatalogRequestError, match="cannot be used"):
        loaded_table(answer(**changes), ORDERS)


def test_keys_are_shown_nowhere() -> None:
    row = {
        "prefix": "s3://b/t",
        "operation": "READ",
        "config": {
            "s3.access-key-id": "id",
            "s3.secret-access-key": SECRET,
            "s3.session-token": SECRET,
            "unknown": "x",
        },
        "expiration-time-ms": 5,
    }
    [keys] = vended_keys({"storage-credentials": [row]}, "x")
    assert keys.options == {
        "access_key_id": "id",
        "secret_access_key": SECRET,
        "session_token": SECRET,
    }
    assert keys.expires_ms == 5
    assert SECRET not in repr(keys)


def test_keys_are_asked_for_by_operation(server: UnityServer) -> None:
    server.keys = lambda location: {"s3.access-key-id": location}
    external(server, location="s3://b/t")
    catalog = unity(server)
    [keys] = catalog.keys(catalog.load(ORDERS), KeyUse.READ)
    assert (keys.prefix, keys.options) == ("s3://b/t", {"access_key_id": "s3://b/t"})
    [keys] = catalog.keys_of_path("s3://b/new")
    assert keys.options == {"access_key_id": "s3://b/new"}
    server.root = "s3://b/managed"
    staged = catalog.stage(TableIdentifier("main", "sales", "new"))
    [keys] = catalog.keys_of_stage(staged)
    assert keys.prefix == staged.location


def test_nested_types_have_hyphens_and_metadata_has_none() -> None:
    schema = {
        "type": "struct",
        "fields": [
            {
                "name": "m",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": {"type": "array", "elementType": "long", "containsNull": False},
                    "valueContainsNull": True,
                },
                "nullable": True,
                "metadata": {"elementType": "kept"},
            }
        ],
    }
    text = json.dumps(type_json(schema))
    assert all(w in text for w in ("key-type", "value-contains-null", "element-type"))
    assert type_json(schema)["fields"][0]["metadata"] == {"elementType": "kept"}


def test_derived_properties_are_never_sent() -> None:
    update = TableUpdate(
        set_properties={"delta.feature.x": "supported", "delta.lastUpdateVersion": "1"},
        removed_properties=["clusteringColumns"],
    )
    assert list(update_json(update)) == []


def test_values_of_the_protocol_are_plain(server: UnityServer) -> None:
    orders = Orders.create(unity(server))
    table: LoadedTable = orders.table
    made = RatifiedCommit(
        version=1, timestamp_ms=5, file_name=f"{1:020d}.x.json", size_bytes=1, modified_ms=5
    )
    after = orders.catalog.ratify(table, made)
    assert after.latest_version == 1
    assert after.commits == (made,)
    again = orders.catalog.ratify(table, made)
    assert again.latest_version == 1
    orders.catalog.report_published(after, 1)
    assert orders.catalog.load(ORDERS).commits == ()


def test_a_busy_server_is_asked_later() -> None:
    waits: list[float] = []
    answers = iter([Answer(status=503, json=None), Answer(status=200, json={"schemas": []})])
    catalog = UnityCatalog(
        name="main",
        url="https://uc",
        tokens=fixed_token(None),
        send=lambda _: next(answers),
        sleep=waits.append,
    )
    started = time.monotonic()
    assert list(catalog.schemas()) == []
    assert len(waits) == 1
    assert time.monotonic() - started < 1
