"""The session settings that only a MERGE depends on, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.features.type_widening import AutomaticWidening
from puredelta.spark.session import delta_conf
from puredelta.spark.session.session import SessionInfo

_DROPS_NULL_COLUMNS = "4.0."
"""Spark 4.0, where a VOID column is dropped unless the session says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSettings:
    """What the session says at the start of the command; the defaults are delta-spark's."""

    evolves_schema: bool = False
    """``schema.autoMerge.enabled``: every MERGE may add columns."""
    casts_follow_ansi_flag: bool = False
    """``updateAndMergeCastingFollowsAnsiEnabledFlag`` (M-61)."""
    automatic_widening: AutomaticWidening = AutomaticWidening.ALWAYS
    """``typeWidening.allowAutomaticWidening`` (M-53)."""
    refuses_void: bool = False
    """``createDataFrame.dropNullColumns``: a new column of type VOID is an error (M-56)."""
    structs_by_name: bool = True
    """``resolveMergeUpdateStructsByName.enabled`` (M-44)."""
    keeps_null_structs: bool = True
    """``merge.preserveNullSourceStructs`` (M-45)."""
    keeps_null_structs_in_star: bool = True
    """``merge.preserveNullSourceStructs.updateStar``, and the one above (M-45)."""

    @classmethod
    def of(cls, session: SessionInfo) -> MergeSettings:
        """Read the settings of a session."""
        return cls.parse(session.settings, spark_version=session.spark_version)

    @classmethod
    def parse(cls, settings: Mapping[str, str], *, spark_version: str = "") -> MergeSettings:
        """Read them from text by key; a key that is not set may be missing.

        Raises:
            InvalidRequestError: a value that the setting does not have.

        >>> MergeSettings.parse({}).evolves_schema
        False
        """
        keeps_null_structs = delta_conf.PRESERVE_NULL_STRUCTS.flag(settings)
        void = delta_conf.DROP_NULL_COLUMNS
        return cls(
            evolves_schema=delta_conf.AUTO_MERGE.flag(settings),
            casts_follow_ansi_flag=delta_conf.CASTS_FOLLOW_ANSI_FLAG.flag(settings),
            automatic_widening=_widening(settings),
            refuses_void=spark_version.startswith(_DROPS_NULL_COLUMNS)
            if void.text(settings) is None
            else void.flag(settings),
            structs_by_name=delta_conf.STRUCTS_BY_NAME.flag(settings),
            keeps_null_structs=keeps_null_structs,
            keeps_null_structs_in_star=keeps_null_structs
            and delta_conf.PRESERVE_NULL_STRUCTS_STAR.flag(settings),
        )


def _widening(settings: Mapping[str, str]) -> AutomaticWidening:
    conf = delta_conf.ALLOW_AUTOMATIC_WIDENING
    text = conf.text(settings) or ""
    try:
        return AutomaticWidening(text.strip().lower())
    except ValueError:
        known = ", ".join(mode.value for mode in AutomaticWidening)
        raise InvalidRequestError(
            f"{conf.key} is {text!r}, but it must be one of {known}.",
            code=ErrorCode.INVALID_CONF_VALUE,
        ) from None
