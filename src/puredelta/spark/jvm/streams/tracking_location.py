"""Where a stream may keep its log of schemas: with what else its query knows."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.jvm.classes import JVM_ERRORS
from puredelta.spark.jvm.hadoop.hadoop_files import qualified


def require_under(spark: SparkSession, location: str, checkpoint: str) -> None:
    """Require that a location is below the checkpoint of a query.

    Raises:
        InvalidRequestError: it is not (DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT).
    """
    top = qualified(spark, checkpoint).rstrip("/") + "/"
    try:
        is_under = qualified(spark, location).startswith(top)
    except JVM_ERRORS:  # it lies on a file system that Spark does not have
        is_under = False
    if not is_under:
        raise InvalidRequestError(
            f"Schema location '{location}' must be placed under checkpoint location "
            f"'{checkpoint}'. Set spark.databricks.delta.streaming."
            "allowSchemaLocationOutsideCheckpointLocation to true to lift this.",
            code=ErrorCode.STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT,
            location=location,
        )
