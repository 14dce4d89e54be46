"""An activated session with a catalog of its own for the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

import puredelta
from puredelta.spark.write.parquet_job import temporary_settings
from tests.servers.unity import UnityServer

PREFIX = "spark.sql.catalog.main"


@contextmanager
def activated(spark: SparkSession, server: UnityServer, **more: str) -> Iterator[SparkSession]:
    """Yield the session, activated, with the settings of the connector for a server."""
    settings = {
        PREFIX: "io.unitycatalog.spark.UCSingleCatalog",
        f"{PREFIX}.uri": server.url,
        **{f"{PREFIX}.{key}": text for key, text in more.items()},
    }
    with temporary_settings(spark, settings):
        puredelta.activate(spark)
        try:
            yield spark
        finally:
            puredelta.deactivate()
