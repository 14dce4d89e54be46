"""The session settings that only reading changes depends on, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.session import delta_conf
from puredelta.spark.session.session import settings_of


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
        return cls.parse(settings_of(spark))

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> ChangeSettings:
        """Read them from text by key; what nobody has set may be missing.

        Raises:
            InvalidRequestError: there is no such schema mode (DELTA_ILLEGAL_OPTION).

        >>> ChangeSettings.parse({}).may_exceed_newest
        False
        """
        return cls(
            may_exceed_newest=delta_conf.CDF_OUT_OF_RANGE.flag(settings),
            checks_schema=not delta_conf.CDF_UNSAFE_SCHEMA.flag(settings),
            mapped_schema=_mapped_schema(delta_conf.CDF_MAPPED_SCHEMA.text(settings) or ""),
        )


def _mapped_schema(text: str) -> MappedSchema:
    try:
        return MappedSchema(text.strip().lower())
    except ValueError as unknown:
        raise InvalidRequestError(
            f"Invalid value {text!r} for the setting {delta_conf.CDF_MAPPED_SCHEMA.key}: use "
            "'endVersion', 'latest' or 'legacy'.",
            code=ErrorCode.INVALID_WRITE_OPTION,
            setting=delta_conf.CDF_MAPPED_SCHEMA.key,
            value=text,
        ) from unknown
