"""The schema the table has after a MERGE: decided here, read everywhere else."""

from __future__ import annotations

from puredelta.commands.merge.clauses import MergeSpec
from puredelta.commands.merge.settings import MergeSettings
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.protocol.types import StructType


def final_schema(spec: MergeSpec, schema: StructType, settings: MergeSettings) -> StructType:
    """Return the table's schema after the MERGE.

    Raises:
        UnsupportedError: the statement or the session asks for schema evolution.
    """
    if spec.evolve_schema or settings.evolves_schema:
        raise UnsupportedError(
            "MERGE with schema evolution is not supported yet. Leave out WITH SCHEMA EVOLUTION "
            "(withSchemaEvolution()) and set spark.databricks.delta.schema.autoMerge.enabled to "
            "false.",
            code=ErrorCode.UNSUPPORTED_SCHEMA_EVOLUTION,
        )
    return schema
