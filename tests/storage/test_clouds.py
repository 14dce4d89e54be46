"""Commands on Azure and Google Cloud Storage, by obstore and Arrow: nothing of Hadoop is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.write.parquet_job import temporary_settings
from tests.servers import azure, gcs
from tests.storage.conftest import Place
from tests.storage.test_commands import (  # noqa: F401 - collected here, on other places
    test_a_directory_is_converted,
    test_a_write_that_fails_leaves_nothing,
    test_deletion_vectors_and_changes,
    test_files_are_compacted_cleaned_and_brought_back,
    test_rows_change,
    test_versions_and_streams,
)


@pytest.fixture(scope="module", params=["azure", "gcs"])
def cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, str]]]:
    """A server, as the root of its tables and the settings of a session."""
    if request.param == "gcs":
        with gcs.gcs() as endpoint:
            yield f"gs://{gcs.BUCKET}/commands", gcs.settings(endpoint)
        return
    if not azure.is_installed():
        pytest.skip("SERVERS_BIN has no azurite-blob: run scripts/servers")
    with azure.azurite(tmp_path_factory.mktemp("azure")) as endpoint:
        yield f"{azure.ROOT}/commands", azure.settings(endpoint)


@pytest.fixture
def place(spark: SparkSession, cloud: tuple[str, dict[str, str]]) -> Iterator[Place]:
    uri, settings = cloud
    with temporary_settings(spark, settings):
        yield Place(spark=spark, uri=uri)
