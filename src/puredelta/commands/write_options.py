"""How a write was asked for: its mode, and its options by Spark's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession

from puredelta.commands.write_schema import SchemaChange
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.delta_conf import AUTO_MERGE, HISTORY_METRICS, STATS_COLLECT, USER_METADATA

_PROPERTY_PREFIX = "delta."
_OPTIONS = ("mergeSchema", "overwriteSchema", "userMetadata")


class SaveMode(Enum):
    """What to do about a table that is already there; Spark's words."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"
    IGNORE = "ignore"

    @classmethod
    def parse(cls, text: str) -> SaveMode:
        """Read a mode, also under the other names Spark has for ``error``.

        Raises:
            InvalidRequestError: no such mode.
        """
        name = {"errorifexists": "error", "default": "error"}.get(text.lower(), text.lower())
        try:
            return cls(name)
        except ValueError:
            raise InvalidRequestError(
                f"There is no write mode {text!r}. Use one of "
                f"{', '.join(mode.value for mode in cls)}.",
                code=ErrorCode.INVALID_WRITE_OPTION,
                mode=text,
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of one write."""

    change: SchemaChange
    user_metadata: str | None
    records_metrics: bool
    """``history.metricsEnabled``."""
    collects_statistics: bool
    """``stats.collect``."""
    properties: Mapping[str, str]
    """``delta.*`` options: properties of the table if this write creates it."""

    @classmethod
    def of(cls, spark: SparkSession, options: Mapping[str, object]) -> WriteOptions:
        """Read options (names in any case), with the session's settings as their defaults.

        Raises:
            InvalidRequestError: an option this library does not have.
        """
        known = {name.lower(): name for name in _OPTIONS}
        settings = spark.conf.getAll
        given: dict[str, str] = {}
        properties: dict[str, str] = {}
        for key, value in options.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if key.lower() in known:
                given[known[key.lower()]] = text
            elif key.startswith(_PROPERTY_PREFIX):
                properties[key] = text
            else:
                raise InvalidRequestError(
                    f"There is no write option {key!r}. Options are {', '.join(_OPTIONS)} and "
                    "table properties (delta.*).",
                    code=ErrorCode.INVALID_WRITE_OPTION,
                    option=key,
                )
        return cls(
            change=SchemaChange(
                merge=_flag("mergeSchema", given.get("mergeSchema") or AUTO_MERGE.text(settings)),
                overwrite=_flag("overwriteSchema", given.get("overwriteSchema", "false")),
            ),
            user_metadata=given.get("userMetadata") or USER_METADATA.text(settings),
            records_metrics=HISTORY_METRICS.flag(settings),
            collects_statistics=STATS_COLLECT.flag(settings),
            properties=properties,
        )


def _flag(option: str, text: str | None) -> bool:
    if text is not None and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    raise InvalidRequestError(
        f"The write option {option!r} is true or false, not {text!r}.",
        code=ErrorCode.INVALID_WRITE_OPTION,
        option=option,
    )
