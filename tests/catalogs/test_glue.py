"""The Glue Data Catalog, as moto has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

boto3 = pytest.importorskip("boto3")
botocore = pytest.importorskip("botocore")
moto = pytest.importorskip("moto")

from puredelta.catalogs.catalog import (  # noqa: E402
    CommittedVersion,
    DescribedSchema,
    TableCreation,
    TableIdentifier,
    TableKind,
    TableUpdate,
)
from puredelta.catalogs.failures import CatalogRequestError, Refusal  # noqa: E402
from puredelta.catalogs.glue import (  # noqa: E402
    GlueCatalog,
    glue_client,
    hive_type,
)
from puredelta.catalogs.settings import catalog_names, find_catalog  # noqa: E402
from puredelta.errors import InvalidRequestError  # noqa: E402

ORDERS = TableIdentifier("lake", "sales", "orders")
ID = {"type": "struct", "fields": [{"name": "id", "type": "long", "metadata": {"comment": "c"}}]}


@pytest.fixture
def glue() -> Iterator[Any]:
    with moto.mock_aws():
        yield boto3.client("glue", region_name="us-east-1")


@pytest.fixture
def lake(glue: Any) -> GlueCatalog:
    catalog = GlueCatalog(name="lake", client=lambda: glue)
    catalog.create_schema(DescribedSchema(name="Sales", comment="c", location="s3://lake/sales"))
    return catalog


HERE = CommittedVersion(location="s3a://lake/sales/t ä%41", version=1, timestamp_ms=1)


def create(catalog: GlueCatalog, name: TableIdentifier = ORDERS, **rest: Any) -> None:
    catalog.create(
        TableCreation(
            name=name,
            kind=TableKind.EXTERNAL,
            location=rest.pop("location", "s3a://lake/sales/t%20%C3%A4%2541"),
            definition=TableUpdate(columns=ID, comment="all orders"),
            timestamp_ms=1,
        )
    )


def test_an_entry_is_what_spark_athena_and_trino_look_for(lake: GlueCatalog, glue: Any) -> None:
    create(lake)
    row = glue.get_table(DatabaseName="sales", Name="orders")["Table"]
    assert row["TableType"] == "EXTERNAL_TABLE"
    assert row["Parameters"]["spark.sql.sources.provider"] == "delta"
    assert row["Parameters"]["table_type"] == "DELTA"
    assert row["Parameters"]["EXTERNAL"] == "TRUE"
    storage = row["StorageDescriptor"]
    assert storage["Location"] == "s3://lake/sales/t ä%41"
    assert storage["SerdeInfo"]["Parameters"]["path"] == storage["Location"]
    assert storage["Columns"] == [{"Name": "id", "Type": "bigint", "Comment": "c"}]
    assert row["PartitionKeys"] == []
    loaded = lake.load(TableIdentifier("lake", "SALES", "Orders"))
    assert (loaded.location, loaded.is_catalog_managed) == ("s3://lake/sales/t ä%41", False)


@pytest.mark.parametrize(
    ("parameters", "storage"),
    [
        (
            {"spark.sql.sources.provider": "DELTA"},
            {
                "Location": "s3://lake/x-__PLACEHOLDER__",
                "SerdeInfo": {"Parameters": {"path": "s3://lake/t"}},
            },
        ),
        ({"table_type": "delta", "EXTERNAL": "TRUE"}, {"Location": "s3://lake/t/"}),
        ({"classification": "delta"}, {"Location": "s3a://lake/t"}),
        ({"spark.sql.sources.provider": "delta", "location": "s3://lake/t"}, {}),
    ],
    ids=["spark", "athena", "crawler", "older"],
)
def test_entries_of_others_are_delta_tables(
    lake: GlueCatalog, glue: Any, parameters: dict[str, str], storage: dict[str, Any]
) -> None:
    entry = {"Name": "orders", "Parameters": parameters, "StorageDescriptor": storage}
    glue.create_table(DatabaseName="sales", TableInput=entry)
    assert lake.load(ORDERS).location.endswith("lake/t")
    assert [row.format for row in lake.tables("sales")] == ["delta"]


@pytest.mark.parametrize("location", ["", "s3://lake/x-__PLACEHOLDER__", "s3://lake/../t", "t"])
def test_locations_are_checked(lake: GlueCatalog, glue: Any, location: str) -> None:
    entry = {
        "Name": "orders",
        "Parameters": {"table_type": "DELTA"},
        "StorageDescriptor": {"Location": location},
    }
    glue.create_table(DatabaseName="sales", TableInput=entry)
    with pytest.raises(CatalogRequestError):
        lake.load(ORDERS)


def test_other_formats_are_named(lake: GlueCatalog, glue: Any) -> None:
    entry = {
        "Name": "orders",
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [{"Name": "day", "Type": "date"}],
        "StorageDescriptor": {
            "Location": "s3://lake/p",
            "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
            "Columns": [{"Name": "id", "Type": "bigint"}],
        },
    }
    glue.create_table(DatabaseName="sales", TableInput=entry)
    with pytest.raises(CatalogRequestError, match="parquet") as refused:
        lake.load(ORDERS)
    assert refused.value.refusal is Refusal.OTHER_FORMAT
    described = lake.describe(ORDERS)
    assert (described.format, described.kind) == ("parquet", "EXTERNAL")
    assert described.columns == (("id", "bigint"), ("day", "date"))


def test_columns_follow_and_the_rest_of_the_entry_stays(lake: GlueCatalog, glue: Any) -> None:
    create(lake)
    row = glue.get_table(DatabaseName="sales", Name="orders")["Table"]
    wider = {"type": "struct", "fields": [*ID["fields"], {"name": "note", "type": "string"}]}  # type: ignore[misc]
    elsewhere = replace(HERE, location="s3://lake/another")
    lake.follow(ORDERS, TableUpdate(columns={"type": "struct", "fields": []}), elsewhere)
    lake.follow(ORDERS, TableUpdate(columns=wider), HERE)
    lake.follow(ORDERS, TableUpdate(set_properties={"a": "b"}), HERE)
    after = glue.get_table(DatabaseName="sales", Name="orders")["Table"]
    names = [column["Name"] for column in after["StorageDescriptor"]["Columns"]]
    assert names == ["id", "note"]
    shown = {"delta.lastUpdateVersion": "1", "delta.lastCommitTimestamp": "1"}
    assert after["Parameters"] == {**row["Parameters"], **shown}
    for key in ("Description", "TableType"):
        assert after[key] == row[key]
    lake.follow(ORDERS, TableUpdate(comment="other"), HERE)
    assert lake.describe(ORDERS).comment == "other"


def test_listings_go_page_by_page() -> None:
    pages = {
        None: {"TableList": [{"Name": "a"}], "NextToken": "1"},
        "1": {"TableList": [], "NextToken": "2"},
        "2": {"TableList": [{"Name": "b"}]},
    }

    class Client:
        def get_tables(self, *, DatabaseName: str, NextToken: str | None = None) -> Any:  # noqa: N803
            assert DatabaseName == "sales"
            return pages[NextToken]

    catalog = GlueCatalog(name="lake", client=Client)
    assert [row.name.table for row in catalog.tables("Sales")] == ["a", "b"]


def test_databases(lake: GlueCatalog) -> None:
    assert list(lake.schemas()) == ["sales"]
    assert lake.schema("sales").comment == "c"
    assert lake.default_location(ORDERS) == "s3://lake/sales/orders"
    lake.create_schema(DescribedSchema(name="bare"))
    with pytest.raises(InvalidRequestError, match="LOCATION"):
        lake.default_location(TableIdentifier("lake", "bare", "t"))
    with pytest.raises(CatalogRequestError) as taken:
        lake.create_schema(DescribedSchema(name="bare"))
    assert taken.value.refusal is Refusal.EXISTS
    create(lake)
    with pytest.raises(CatalogRequestError, match="not empty"):
        lake.drop_schema("sales", cascade=False)
    lake.drop_schema("sales", cascade=True)
    lake.drop_schema("bare", cascade=False)
    with pytest.raises(CatalogRequestError) as missing:
        lake.schema("bare")
    assert missing.value.refusal is Refusal.NOT_FOUND


def test_what_glue_cannot_is_refused(lake: GlueCatalog) -> None:
    create(lake)
    with pytest.raises(CatalogRequestError, match="other name"):
        lake.rename(ORDERS, "more")
    with pytest.raises(CatalogRequestError, match="LOCATION"):
        lake.stage(ORDERS)
    lake.drop(ORDERS)
    with pytest.raises(CatalogRequestError) as missing:
        lake.load(ORDERS)
    assert missing.value.refusal is Refusal.NOT_FOUND


@pytest.mark.parametrize(
    ("code", "refusal", "step"),
    [
        ("AccessDeniedException", Refusal.NOT_ALLOWED, "glue:GetTable"),
        ("ExpiredTokenException", Refusal.NOT_ALLOWED, "profile"),
        ("ThrottlingException", Refusal.NO_ANSWER, "try again"),
    ],
)
def test_refusals_are_one_sentence_with_the_next_step(
    code: str, refusal: Refusal, step: str
) -> None:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - beside the optional import

    class Client:
        def get_table(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": code, "Message": "no."}}, "GetTable")

    with pytest.raises(CatalogRequestError, match=step) as refused:
        GlueCatalog(name="lake", client=Client).load(ORDERS)
    assert refused.value.refusal is refusal
    assert "GetTable in catalog lake" in str(refused.value)


def test_no_keys_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nothing")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nothing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    catalog = GlueCatalog(name="lake", client=lambda: glue_client(region="us-east-1"))
    with pytest.raises(CatalogRequestError, match="no AWS credentials"):
        catalog.load(ORDERS)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(InvalidRequestError, match="region"):
        glue_client()
    with pytest.raises(InvalidRequestError, match="profile"):
        glue_client(profile="nobody")


def test_settings_make_a_catalog() -> None:
    prefix = "spark.puredelta.catalog.lake"
    settings = {f"{prefix}.type": "glue", f"{prefix}.region": "us-east-1"}
    assert catalog_names(settings) == ("lake",)
    found = find_catalog(settings, "lake")
    assert found is not None
    assert found.catalog.name == "lake"
    with pytest.raises(InvalidRequestError, match="unity or glue"):
        find_catalog({f"{prefix}.type": "hive"}, "lake")
    with pytest.raises(InvalidRequestError, match="unknown"):
        find_catalog({**settings, f"{prefix}.secret": "x"}, "lake")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("byte", "tinyint"),
        ("decimal(38, 10)", "decimal(38,10)"),
        ("variant", "string"),
        ("interval day to second", "string"),
        ({"type": "map", "keyType": "string", "valueType": "short"}, "map<string,smallint>"),
        (
            {"type": "struct", "fields": [{"name": "a", "type": "date"}]},
            "struct<a:date>",
        ),
        ({"type": "udt"}, "string"),
    ],
)
def test_types_have_names_of_hive(kind: Any, expected: str) -> None:
    assert hive_type(kind) == expected


class Refusing:
    """A client whose calls of one action are refused for some times."""

    def __init__(self, glue: Any, action: str, code: str, times: int) -> None:
        self.glue, self.action, self.code, self.times = glue, action, code, times

    def __getattr__(self, name: str) -> Any:
        def call(**given: Any) -> Any:
            if name == self.action and self.times > 0:
                self.times -= 1
                error = {"Error": {"Code": self.code, "Message": "m"}}
                raise botocore.exceptions.ClientError(error, name)
            return getattr(self.glue, name)(**given)

        return call


def columns_of(glue: Any) -> list[str]:
    row = glue.get_table(DatabaseName="sales", Name="orders")["Table"]
    return [column["Name"] for column in row["StorageDescriptor"]["Columns"]]


def definition(*names: str) -> TableUpdate:
    fields = [{"name": name, "type": "long", "metadata": {}} for name in names]
    return TableUpdate(columns={"type": "struct", "fields": fields})


def test_an_entry_that_another_client_has_changed_is_read_again(
    lake: GlueCatalog, glue: Any
) -> None:
    create(lake)
    for code in ("ConcurrentModificationException", "VersionMismatchException"):
        client = Refusing(glue, "update_table", code, 2)
        catalog = replace(lake, client=lambda client=client: client)
        catalog.follow(ORDERS, definition("id", code.lower()), HERE)
        assert columns_of(glue) == ["id", code.lower()]
        client.times = 99
        with pytest.raises(CatalogRequestError) as refused:
            catalog.follow(ORDERS, definition("id"), HERE)
        assert refused.value.refusal is Refusal.CHANGED


def test_an_older_version_changes_nothing(lake: GlueCatalog, glue: Any) -> None:
    create(lake)
    lake.follow(ORDERS, definition("id", "newer"), replace(HERE, version=6))
    lake.follow(ORDERS, definition("id", "older"), replace(HERE, version=5))
    assert columns_of(glue) == ["id", "newer"]
    lake.follow(ORDERS, definition("id", "newest"), replace(HERE, version=7))
    assert columns_of(glue) == ["id", "newest"]
    again = replace(HERE, version=0, timestamp_ms=2)
    lake.follow(ORDERS, definition("id"), again)
    assert columns_of(glue) == ["id"], "another log at the same place"


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("Throttling", Refusal.NO_ANSWER),
        ("ThrottlingException", Refusal.NO_ANSWER),
        ("TooManyRequestsException", Refusal.NO_ANSWER),
        ("ServiceUnavailable", Refusal.NO_ANSWER),
        ("ExpiredToken", Refusal.NOT_ALLOWED),
        ("InvalidClientTokenId", Refusal.NOT_ALLOWED),
        ("Unknown", Refusal.INVALID),
    ],
)
def test_refusals_have_their_next_step(
    lake: GlueCatalog, glue: Any, code: str, refusal: Refusal
) -> None:
    client = Refusing(glue, "get_table", code, 1)
    with pytest.raises(CatalogRequestError) as refused:
        replace(lake, client=lambda: client).load(ORDERS)
    assert refused.value.refusal is refusal


def test_an_entry_without_a_location_is_described(lake: GlueCatalog, glue: Any) -> None:
    for number, entry in enumerate(
        (
            {},
            {"TargetTable": {"CatalogId": "1", "DatabaseName": "d", "Name": "n"}},
            {"Parameters": {"spark.sql.sources.provider": "delta"}},
            {"StorageDescriptor": {"Location": "s3://lake/x-__PLACEHOLDER__"}},
        )
    ):
        glue.create_table(DatabaseName="sales", TableInput={"Name": f"odd{number}", **entry})
        name = TableIdentifier("lake", "sales", f"odd{number}")
        assert lake.describe(name).location is None
        with pytest.raises(CatalogRequestError):
            lake.load(name)
    assert len(list(lake.tables("sales"))) == 4
