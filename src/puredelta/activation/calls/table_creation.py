"""``spark.catalog.createTable(name, ...)`` with format ``delta``."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import NewTable, create_registered
from puredelta.commands.definition.columns import stored_columns
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.catalog.catalog_entries import entry_name
from puredelta.sql.text.table_name import TableName

_PATH = "path"
_PROPERTY_PREFIX = "delta."


def create_named(
    spark: SparkSession,
    name: TableName,
    schema: T.StructType | None,
    *,
    description: str | None,
    options: Mapping[str, str],
) -> bool:
    """Create a table, or give the one at the option ``path`` a name; False if it is not ours.

    Raises:
        InvalidRequestError: the name is taken, neither columns nor a table are there to name, or
            the columns are not those of the table that is there.
    """
    entry = None if name.path is not None else entry_name(spark, name.parts)
    if entry is None:
        return False
    by_name = {key.lower(): value for key, value in options.items()}
    if schema is None and _PATH not in by_name:
        raise InvalidRequestError(
            f"Table schema is not provided. Pass the schema of {name}, or the path of a table.",
            code=ErrorCode.SCHEMA_NOT_PROVIDED,
            name=str(name),
        )
    definition = TableDefinition(
        columns=stored_columns(schema or T.StructType([])),
        description=description or None,
        properties={k: v for k, v in options.items() if k.lower().startswith(_PROPERTY_PREFIX)},
    )
    table = NewTable(name=entry, location=by_name.get(_PATH), definition=definition)
    create_registered(spark, table)
    return True
