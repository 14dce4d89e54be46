"""The session settings that only a MERGE depends on, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

_DELTA = "spark.databricks.delta."


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSettings:
    """What the session says at the start of the command; the defaults are the reference's."""

    evolves_schema: bool = False
    """``schema.autoMerge.enabled``: every MERGE may add columns."""
    casts_follow_ansi_flag: bool = False
    """``updateAndMergeCastingFollowsAnsiEnabledFlag`` (M-61)."""

    @classmethod
    def of(cls, spark: SparkSession) -> MergeSettings:
        """Read the settings of ``spark``; runs no job."""
        return cls.parse(spark.conf.getAll)

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> MergeSettings:
        """Read them from text by key; what nobody has set may be missing.

        >>> MergeSettings.parse({}).evolves_schema
        False
        """

        def flag(key: str) -> bool:
            return settings.get(f"{_DELTA}{key}", "false").strip().lower() == "true"

        return cls(
            evolves_schema=flag("schema.autoMerge.enabled"),
            casts_follow_ansi_flag=flag("updateAndMergeCastingFollowsAnsiEnabledFlag"),
        )
