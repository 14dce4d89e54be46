"""The catalog entry of a table whose directory the catalog owns, made before the table is.

Spark requires an empty directory for such an entry, so the entry comes first. It protects the name
while the table is made; it goes again if the table is not made. The directory never goes with
it, unless it is empty: a rival, whose catalog knows nothing of ours, may have its table there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.errors import CommitUnknownError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY
from puredelta.spark.catalog.catalog_entries import (
    EntryName,
    created_ms,
    default_location,
    register,
    unregister,
)
from puredelta.spark.session.open_log import open_log

logger = logging.getLogger(__name__)


@contextmanager
def managed_entry(
    spark: SparkSession, name: EntryName, columns: T.StructType, *, comment: str | None = None
) -> Iterator[TableLog]:
    """Make an entry, and yield where its table is to be; the entry goes if the block fails.

    It stays where the commit may have landed: its outcome is unknown, or somebody interrupted
    it when the log was there.

    Raises:
        pyspark.errors.AnalysisException: there is such a table, no such database, or something
            in its directory.
    """
    log = open_log(spark, default_location(spark, name))
    register(spark, name, columns, location=None, comment=comment)
    made_ms = created_ms(spark, name)
    try:
        yield log
    except CommitUnknownError:
        raise
    except BaseException as failure:
        if isinstance(failure, Exception) or not log.exists():
            _take_back(spark, name, log, made_ms=made_ms)
        raise


def _take_back(spark: SparkSession, name: EntryName, log: TableLog, *, made_ms: int) -> None:
    """Remove our entry, unless it is another one now, and the directory if it is empty."""
    try:
        if created_ms(spark, name) == made_ms:
            unregister(spark, name)
        log.store.delete_directory(LOG_DIRECTORY)
        parent, _, directory = log.root_uri.rpartition("/")
        log.store.at(f"{parent}/").delete_directory(directory)
    except Exception:
        logger.warning("The catalog entry of %s could not be removed", name, exc_info=True)
