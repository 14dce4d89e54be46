"""A session that carries delta-spark, so that both implementations work on the same table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.reference)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Stock PySpark plus delta-spark's JAR and extension; puredelta needs neither."""
    delta = pytest.importorskip("delta", reason="delta-spark is installed by `make reference`")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where the reference runs

    from tests.reference.session_start import started_in_turn  # noqa: PLC0415

    scratch = tmp_path_factory.mktemp("reference")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("puredelta against delta-spark")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        # Compared like everything else: it has to be in the history of every operation.
        .config("spark.databricks.delta.commitInfo.userMetadata", "told by the session")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    session = started_in_turn(delta.configure_spark_with_delta_pip(builder))
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
