"""High water marks of identity columns, kept in the table's schema (M-103)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from puredelta.protocol.features.filled_columns import (
    with_high_water_marks,
    without_high_water_marks,
)
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.table.table_config import TableConfig

_IDENTITY_UPDATE = "delta.identity.schemaUpdate"


def config_with_marks(config: TableConfig, marks: Mapping[str, int]) -> TableConfig:
    """Return the table with other high water marks of identity columns."""
    if not marks:
        return config
    schema = with_high_water_marks(config.schema, marks)
    metadata = dataclasses.replace(config.metadata, schema_string=encode_schema(schema))
    return TableConfig.of(config.protocol, metadata)


def identity_tags(before: TableConfig, after: TableConfig) -> Mapping[str, str] | None:
    """Return the commit's tag if high water marks are all that it changes of the table."""
    if before.protocol != after.protocol or before.metadata == after.metadata:
        return None
    unmarked = [
        dataclasses.replace(
            c.metadata, schema_string=encode_schema(without_high_water_marks(c.schema))
        )
        for c in (before, after)
    ]
    return {_IDENTITY_UPDATE: "true"} if unmarked[0] == unmarked[1] else None
