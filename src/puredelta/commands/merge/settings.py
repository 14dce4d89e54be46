"""The session settings that only a MERGE depends on, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.type_widening import AutomaticWidening

_DELTA = "spark.databricks.delta."
_WIDENING = "typeWidening.allowAutomaticWidening"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSettings:
    """What the session says at the start of the command; the defaults are the reference's."""

    evolves_schema: bool = False
    """``schema.autoMerge.enabled``: every MERGE may add columns."""
    casts_follow_ansi_flag: bool = False
    """``updateAndMergeCastingFollowsAnsiEnabledFlag`` (M-61)."""
    automatic_widening: AutomaticWidening = AutomaticWidening.ALWAYS
    """``typeWidening.allowAutomaticWidening`` (M-53)."""
    refuses_void: bool = False
    """``createDataFrame.dropNullColumns``: a new column of type VOID is an error (M-56)."""

    @classmethod
    def of(cls, spark: SparkSession) -> MergeSettings:
        """Read the settings of ``spark``; runs no job."""
        return cls.parse(spark.conf.getAll)

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> MergeSettings:
        """Read them from text by key; what nobody has set may be missing.

        Raises:
            InvalidRequestError: a value that the setting does not have.

        >>> MergeSettings.parse({}).evolves_schema
        False
        """

        def flag(key: str) -> bool:
            return settings.get(f"{_DELTA}{key}", "false").strip().lower() == "true"

        return cls(
            evolves_schema=flag("schema.autoMerge.enabled"),
            casts_follow_ansi_flag=flag("updateAndMergeCastingFollowsAnsiEnabledFlag"),
            automatic_widening=_widening(settings.get(f"{_DELTA}{_WIDENING}")),
            refuses_void=flag("createDataFrame.dropNullColumns"),
        )


def _widening(text: str | None) -> AutomaticWidening:
    if text is None:
        return AutomaticWidening.ALWAYS
    try:
        return AutomaticWidening(text.strip().lower())
    except ValueError:
        known = ", ".join(mode.value for mode in AutomaticWidening)
        raise InvalidRequestError(
            f"{_DELTA}{_WIDENING} is {text!r}, but it must be one of {known}.",
            code=ErrorCode.INVALID_CONF_VALUE,
        ) from None
