"""Properties and features that a catalog-managed table cannot lose, statement by statement.

The rules are those of delta-spark for in-commit timestamps, and those of the catalog for the
properties that it demands: it refuses a later change of the protocol without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from pyspark.sql import SparkSession

from puredelta.errors import DeltaError
from tests.servers.unity import REQUIRED, Table, UnityServer, unity_server
from tests.spark.catalogs.conftest import activated

T = "main.sales.orders"
needs_pyiceberg = pytest.mark.skipif(find_spec("pyiceberg") is None, reason="needs pyiceberg")
TIMESTAMPS = (
    "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
DEPENDENCIES = "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES"
OPERATION = "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"
DEMANDED = "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
OTHER = {"v2": "classic", "true": "false"}
FEATURES = ("catalogManaged", "inCommitTimestamp", "v2Checkpoint", "deletionVectors", "rowTracking")


def changed(key: str, value: str) -> str:
    return f"ALTER TABLE {T} SET TBLPROPERTIES ('{key}' = '{value}')"


def unset(key: str) -> str:
    return f"ALTER TABLE {T} UNSET TBLPROPERTIES IF EXISTS ('{key}')"


def replaced(key: str, value: str, *, name: str = T) -> str:
    return f"CREATE OR REPLACE TABLE {name} (id BIGINT) TBLPROPERTIES ('{key}' = '{value}')"


OTHERS = {key: text for key, text in REQUIRED.items() if key not in TIMESTAMPS}
ICEBERG = (
    f"ALTER TABLE {T} SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true', "
    "'delta.enableDeletionVectors' = 'false', 'delta.universalFormat.enabledFormats' = 'iceberg')"
)
REFUSED = [
    pytest.param(ICEBERG, OPERATION, marks=needs_pyiceberg),
    *((changed(key, "true" if "enable" in key else "3"), DEPENDENCIES) for key in TIMESTAMPS),
    (changed(TIMESTAMPS[0], "false"), DEPENDENCIES),
    (changed(TIMESTAMPS[0].upper(), "false"), DEPENDENCIES),
    *((unset(key), DEPENDENCIES) for key in TIMESTAMPS),
    *((changed(key, OTHER[text]), OPERATION) for key, text in OTHERS.items()),
    *((unset(key), OPERATION) for key in OTHERS),
    (changed("io.unitycatalog.tableId", "another"), OPERATION),
    (unset("io.unitycatalog.tableId"), OPERATION),
    *((f"ALTER TABLE {T} DROP FEATURE {name}", OPERATION) for name in FEATURES),
    *((replaced(key, OTHER[text]), DEMANDED) for key, text in REQUIRED.items()),
    *(
        (replaced(key, OTHER[text], name="main.sales.n"), DEMANDED)
        for key, text in REQUIRED.items()
    ),
    (replaced("io.unitycatalog.tableId", "another"), DEMANDED),
    (replaced("delta.feature.catalogManaged", "enabled"), "DELTA_UNSUPPORTED_FEATURE_STATUS"),
    (
        replaced("delta.feature.CATALOGMANAGED", "enabled", name="main.sales.n"),
        "DELTA_UNSUPPORTED_FEATURE_STATUS",
    ),
    (changed("clusteringColumns", "id"), "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
    (changed("delta.lastUpdateVersion", "7"), "DELTA_UNKNOWN_CONFIGURATION"),
]
ALLOWED = [
    changed("delta.checkpointPolicy", "v2"),
    changed("delta.enableRowTracking", "false"),
    changed("delta.enableChangeDataFeed", "true"),
    changed("delta.feature.catalogManaged", "supported"),
    changed("delta.minReaderVersion", "2"),
    unset("delta.feature.catalogManaged"),
    unset("delta.minReaderVersion"),
    replaced("delta.checkpointPolicy", "v2"),
]
"""What loses nothing; delta-spark commits each of these, too."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    with unity_server(f"file:{tmp_path_factory.mktemp('tables')}") as running:
        yield running


@pytest.fixture(scope="module")
def main(spark: SparkSession, server: UnityServer) -> Iterator[SparkSession]:
    with activated(spark, server):
        spark.sql(f"CREATE TABLE {T} (id BIGINT, note STRING)")
        yield spark


def state(server: UnityServer) -> tuple[list[str], int, dict[str, str]]:
    table: Table = server.tables["main", "sales", "orders"]
    return [name for *_, name in server.tables], table.latest, dict(table.properties)


@pytest.mark.spark
@pytest.mark.parametrize(("statement", "condition"), REFUSED)
def test_what_a_catalog_demands_stays(
    main: SparkSession, server: UnityServer, statement: str, condition: str
) -> None:
    before = state(server)
    with pytest.raises(DeltaError) as refused:
        main.sql(statement)
    assert refused.value.getCondition() == condition
    assert state(server) == before


@pytest.mark.spark
@pytest.mark.parametrize("statement", ALLOWED)
def test_what_loses_nothing_is_committed(
    main: SparkSession, server: UnityServer, statement: str
) -> None:
    _, version, before = state(server)
    main.sql(statement)
    _, now, after = state(server)
    assert now == version + 1
    for key, text in {**REQUIRED, "io.unitycatalog.tableId": ""}.items():
        assert after[key] == before[key]
        assert not text or after[key] == text
    assert all(
        after[f"delta.feature.{name}"] == "supported" for name in FEATURES if name != "rowTracking"
    )
