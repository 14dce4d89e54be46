"""Where a stream may keep its log of schemas: with what else its query knows."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.jvm.hadoop.hadoop_files import qualified


def require_under(spark: SparkSession, location: str, checkpoint: str) -> None:
    """Require that a location is below the checkpoint of a query.

    Raises:
        InvalidRequestError: it is not (DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT).
    """
    below, top = (qualified(spark, each).rstrip("/") + "/" for each in (location, checkpoint))
    if not below.startswith(top):
        raise InvalidRequestError(
            f"Schema location '{location}' must be placed under checkpoint location "
            f"'{checkpoint}'. Set spark.databricks.delta.streaming."
            "allowSchemaLocationOutsideCheckpointLocation to true to lift this.",
            code=ErrorCode.STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT,
            location=location,
        )
