"""The session settings that only reading changes depends on, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, InvalidRequestError

_PREFIX = "spark.databricks.delta.changeDataFeed."
_MAPPED_SCHEMA = f"{_PREFIX}defaultSchemaModeForColumnMappingTable"


class MappedSchema(Enum):
    """Under which version's schema changes of a table with column mapping are read."""

    END_VERSION = "endversion"
    LATEST = "latest"
    LEGACY = "legacy"
    """The newest, too: without time travel it means the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """What the session says when changes are asked for; the defaults are the reference's."""

    may_exceed_newest: bool = False
    """``timestampOutOfRange.enabled``: a start beyond the newest version is an empty range."""
    checks_schema: bool = True
    """Off with ``unsafeBatchReadOnIncompatibleSchemaChanges.enabled``."""
    mapped_schema: MappedSchema = MappedSchema.END_VERSION
    """``defaultSchemaModeForColumnMappingTable``."""

    @classmethod
    def of(cls, spark: SparkSession) -> ChangeSettings:
        """Read the settings of ``spark``; runs no job."""
        return cls.parse(spark.conf.getAll)

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> ChangeSettings:
        """Read them from text by key; what nobody has set may be missing.

        Raises:
            InvalidRequestError: there is no such schema mode (DELTA_ILLEGAL_OPTION).

        >>> ChangeSettings.parse({}).may_exceed_newest
        False
        """

        def flag(key: str) -> bool:
            return settings.get(f"{_PREFIX}{key}", "false").strip().lower() == "true"

        unsafe = flag("unsafeBatchReadOnIncompatibleSchemaChanges.enabled")
        return cls(
            may_exceed_newest=flag("timestampOutOfRange.enabled"),
            checks_schema=not unsafe,
            mapped_schema=_mapped_schema(settings.get(_MAPPED_SCHEMA, "endVersion")),
        )


def _mapped_schema(text: str) -> MappedSchema:
    try:
        return MappedSchema(text.strip().lower())
    except ValueError as unknown:
        raise InvalidRequestError(
            f"Invalid value {text!r} for the setting {_MAPPED_SCHEMA}: use 'endVersion', 'latest' "
            "or 'legacy'.",
            code=ErrorCode.INVALID_WRITE_OPTION,
            setting=_MAPPED_SCHEMA,
            value=text,
        ) from unknown
