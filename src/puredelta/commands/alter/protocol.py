"""Raising a table's protocol: by versions, or by the name of a feature."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.commands.alter.properties import set_table_properties
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.table_operations import set_properties
from puredelta.protocol.features.properties import FEATURE_PREFIX
from puredelta.protocol.features.property_checks import PROTOCOL_VERSION_KEYS


def upgrade_protocol_versions(
    spark: SparkSession, log: TableLog, *, reader: int, writer: int
) -> int:
    """Support all that a pair of versions stands for; return the version made.

    Nothing is taken away: lower versions than the table's ask for nothing new.

    Raises:
        InvalidRequestError: a version does not exist, or reader version 3 comes without
            writer version 7.
    """
    versions = dict(zip(PROTOCOL_VERSION_KEYS, (str(reader), str(writer)), strict=True))
    return set_table_properties(spark, log, versions)


def add_feature_support(spark: SparkSession, log: TableLog, name: str) -> int:
    """Make the table support a feature, its name in any case; return the version made.

    Raises:
        InvalidRequestError: there is no such feature (UNSUPPORTED_FEATURES_IN_CONFIG).
        UnsupportedError: this library could not write the table any more.
    """
    asked = {FEATURE_PREFIX + name: "supported"}
    return set_table_properties(spark, log, asked, operation=set_properties(asked))
