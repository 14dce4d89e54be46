"""Session settings of a statement that changes rows, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from puredelta.commands.file_options import parse_bytes
from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.features.type_widening import AutomaticWidening
from puredelta.spark.offload.workers import WorkerSettings
from puredelta.spark.session import delta_conf
from puredelta.spark.session.read_settings import ReadSettings
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.write.writer_settings import WriterSettings

_BROADCAST_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits:
    """Limits on the source rows that the driver reads."""

    rows_max: int = 200_000
    """Source rows up to which the driver reads the keys."""
    values_max: int = 2_000
    """Values kept as objects; whole numbers need none and have no limit."""
    bytes_max: int = 16 * 1024 * 1024
    """Bytes of these values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """The session's settings for the execution of statements (S-01)."""

    broadcast_bytes_max: int = 10 * 1024 * 1024
    """``spark.sql.autoBroadcastJoinThreshold``; negative: never broadcast."""
    rebalance: bool = True
    """``merge.repartitionBeforeWrite.enabled`` (M-140)."""
    skips_empty_commits: bool = True
    """``skipRecordingEmptyCommits``: a statement without changes makes no version."""
    checks_row_counts: bool = True
    """``numRecordsValidation.enabled`` (M-94)."""
    skips_by_statistics: bool = True
    """``stats.skipping``."""
    collects_statistics: bool = True
    """``stats.collect``."""
    writer: WriterSettings = field(default_factory=WriterSettings)
    """Options of the file writer, and whether Spark writes all files."""
    must_stage: str | None = None
    """The setting that forbids reading a source in place, if there is one."""
    key_limits: KeyLimits = KeyLimits()
    retries: int = 0
    """``spark.puredelta.retries``: number of second runs of a statement after conflicts (X-29b)."""
    workers: WorkerSettings = field(default_factory=WorkerSettings)
    """The permitted uses of Python workers."""

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> ExecutionSettings:
        """Parse the settings from text by key; a missing key means the default.

        >>> ExecutionSettings.parse({}).broadcast_bytes_max
        10485760
        """
        return cls(
            broadcast_bytes_max=parse_bytes(settings.get(_BROADCAST_THRESHOLD, "10MB")),
            rebalance=delta_conf.REPARTITION_BEFORE_WRITE.flag(settings),
            skips_empty_commits=delta_conf.SKIP_EMPTY_COMMITS.flag(settings),
            checks_row_counts=delta_conf.NUM_RECORDS_VALIDATION.flag(settings),
            skips_by_statistics=delta_conf.STATS_SKIPPING.flag(settings),
            collects_statistics=delta_conf.STATS_COLLECT.flag(settings),
            writer=WriterSettings.parse(settings),
            must_stage=why_staged(settings),
            retries=delta_conf.RETRIES.read(settings),
            workers=WorkerSettings.parse(settings),
        )


def why_staged(settings: Mapping[str, str]) -> str | None:
    """Return the setting that requires every source to be staged, ``None`` for none (M-150, M-151).

    >>> why_staged({"spark.sql.files.ignoreMissingFiles": "true"})
    'spark.sql.files.ignoreMissingFiles is true'
    """
    materialize = delta_conf.MATERIALIZE_SOURCE
    value = (materialize.text(settings) or "").strip()
    if value.lower() not in {"auto", "none"}:
        return f"{materialize.key} is {value}"
    return ReadSettings.parse(settings).why_staged()


def persistent_vectors(settings: Mapping[str, str], command: str) -> bool:
    """Tell whether ``merge``, ``update`` or ``delete`` may write deletion vectors (M-130).

    ``settings`` are those that were set. The table has its own property; both must agree.
    """
    conf = {
        "merge": delta_conf.MERGE_DELETION_VECTORS,
        "update": delta_conf.UPDATE_DELETION_VECTORS,
        "delete": delta_conf.DELETE_DELETION_VECTORS,
    }[command]
    return conf.flag(settings)


_DROPS_NULL_COLUMNS = "4.0."
"""Spark 4.0, where a VOID column is dropped unless the session keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSettings:
    """Session settings of MERGE at the start of the command; the defaults are delta-spark's."""

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
        """Parse the settings from text by key; a missing key means the default.

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
            Message.INVALID_CONF_VALUE_TYPE_WIDENING, conf_key=conf.key, text=text, known=known
        ) from None
