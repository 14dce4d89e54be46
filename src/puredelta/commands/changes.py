"""The change data feed of a table: rows changed by each commit of a range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read_table import TimestampArgument, parse_version, resolve_timestamp
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.change_feed import ChangeFiles, find_change_files
from puredelta.log.changes.change_range import (
    AtTime,
    AtVersion,
    ChangeRange,
    RangeBound,
    commit_times,
    last_metadata,
    require_readable_range,
    resolve_range,
)
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.table.schema_changes import TableShape
from puredelta.spark.scan.change_scan import scan_changes
from puredelta.spark.session import delta_conf
from puredelta.spark.session.session import settings_of


class MappedSchema(Enum):
    """The version whose schema is used to read changes of a table with column mapping."""

    END_VERSION = "endversion"
    LATEST = "latest"
    LEGACY = "legacy"
    """Also the newest version: the two differ only with time travel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """Session settings of the change data feed; the defaults are those of delta-spark."""

    may_exceed_newest: bool = False
    """``timestampOutOfRange.enabled``: a start beyond the newest version is an empty range."""
    checks_schema: bool = True
    """Off with ``unsafeBatchReadOnIncompatibleSchemaChanges.enabled``."""
    mapped_schema: MappedSchema = MappedSchema.END_VERSION
    """``defaultSchemaModeForColumnMappingTable``."""

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> ChangeSettings:
        """Parse the settings from text by key; a missing key means the default.

        >>> ChangeSettings.parse({}).may_exceed_newest
        False
        """
        return cls(
            may_exceed_newest=delta_conf.CDF_OUT_OF_RANGE.flag(settings),
            checks_schema=not delta_conf.CDF_UNSAFE_SCHEMA.flag(settings),
            mapped_schema=_mapped_schema(delta_conf.CDF_MAPPED_SCHEMA.text(settings) or ""),
        )


def read_changes(
    spark: SparkSession,
    log: TableLog,
    *,
    starting_version: int | str | None = None,
    starting_timestamp: TimestampArgument | None = None,
    ending_version: int | str | None = None,
    ending_timestamp: TimestampArgument | None = None,
) -> DataFrame:
    """Return the changed rows of a range of versions, both ends included.

    The columns are those of the table, then ``_change_type`` (``insert``,
    ``update_preimage``, ``update_postimage`` or ``delete``), ``_commit_version`` (long) and
    ``_commit_timestamp``. The schema is the newest version's; with column mapping it is that
    of the end of the range. A start by time means the first version from then on, an end by
    time the last one up to then; without an end the range ends at the newest version as
    of this call. The log of the range is read and checked here, and no job runs.

    Examples:
        >>> log = TableLog.open("/data/events")  # doctest: +SKIP
        >>> changes = read_changes(spark, log, starting_version=3)  # doctest: +SKIP
        >>> changes.filter("_change_type = 'delete'").count()  # doctest: +SKIP
        12
    """

    def millis(instant: TimestampArgument) -> int:
        return resolve_timestamp(spark, instant)

    start = bound_of(starting_version, starting_timestamp, millis, which="starting")
    end = bound_of(ending_version, ending_timestamp, millis, which="ending")
    settings = ChangeSettings.parse(settings_of(spark))
    found = find_changes(log, start, end, settings)
    return scan_changes(spark, found.read, found.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChanges:
    """The changes of a range of versions, found in the log alone."""

    read: Snapshot
    """The version whose columns the rows are read with."""
    files: ChangeFiles


def find_changes(
    log: TableLog, start: RangeBound | None, end: RangeBound | None, settings: ChangeSettings
) -> FoundChanges:
    """Return the files that hold the changes of a range; errors are those of `read_changes`."""
    found = find_commits(log, start, end, settings, needs_feed=True)
    files = find_change_files(found.commits, found.timestamps_ms)
    return FoundChanges(read=found.read, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCommits:
    """The commits of a range of versions; there is none if nothing changed."""

    read: Snapshot
    """The version whose columns the rows are read with."""
    commits: tuple[Commit, ...] = ()
    timestamps_ms: Mapping[int, int]
    """When each version was committed."""
    first: Metadata
    """The metadata in force at the first commit."""


def find_commits(
    log: TableLog,
    start: RangeBound | None,
    end: RangeBound | None,
    settings: ChangeSettings,
    *,
    needs_feed: bool,
) -> FoundCommits:
    """Return the commits of a range; errors as `read_changes`.

    Without ``needs_feed`` the change data feed may be off, and an end by time may be later than
    the newest version.
    """
    if start is None:
        raise InvalidRequestError(Message.NO_START_FOR_CDC_READ)
    listing = list_log(log.store)
    # The newest version of this listing, since both must describe the same versions.
    newest = log.snapshot(version=listing.latest_version)
    if not needs_feed and isinstance(end, AtTime) and end.timestamp_ms >= _time_of(newest):
        end = None
    chosen = resolve_range(
        log.store,
        listing,
        newest,
        start=start,
        end=end,
        may_exceed_newest=settings.may_exceed_newest,
    )
    if chosen is None:
        return FoundCommits(read=newest, timestamps_ms={}, first=newest.metadata)
    commits = log.commits_after(chosen.start - 1, through=chosen.end)
    first = _metadata_at_start(log, newest, commits)
    read = _read_snapshot(log, newest, chosen, first, settings.mapped_schema)
    shown = read if settings.checks_schema else None
    require_readable_range(commits, first, shown, needs_feed=needs_feed)
    times = commit_times(commits, listing)
    return FoundCommits(read=read, commits=commits, timestamps_ms=times, first=first)


def _time_of(snapshot: Snapshot) -> int:
    in_commit = snapshot.in_commit_timestamp_ms
    return snapshot.timestamp_ms if in_commit is None else in_commit


def bound_of(
    version: int | str | None,
    timestamp: TimestampArgument | None,
    millis: Callable[[TimestampArgument], int],
    *,
    which: str,
) -> RangeBound | None:
    """Return one bound of a range, None if none is given; ``which`` is starting or ending.

    Raises:
        InvalidRequestError: both forms of the bound are used (DELTA_MULTIPLE_CDC_BOUNDARY), or
            its value is no version or timestamp.
    """
    if version is not None and timestamp is not None:
        raise InvalidRequestError(
            Message.MULTIPLE_CDC_BOUNDARY,
            timestamp=timestamp,
            version=version,
            startingOrEnding=which,
        )
    if version is not None:
        return AtVersion(parse_version(version, Message.VERSION_INVALID))
    return None if timestamp is None else AtTime(millis(timestamp))


def _metadata_at_start(log: TableLog, newest: Snapshot, commits: Sequence[Commit]) -> Metadata:
    """Return the metadata in force at the first commit.

    Rebuilding an old version is expensive and often not needed: the commit may contain its own
    metadata, or the newest metadata may be older than the commit.
    """
    first, *later = commits
    own = last_metadata([first])
    if own is not None:
        return own
    if commits[-1].version == newest.version and last_metadata(later) is None:
        return newest.metadata
    return log.snapshot(version=first.version).metadata


def _read_snapshot(
    log: TableLog,
    newest: Snapshot,
    chosen: ChangeRange,
    first: Metadata,
    mapped_schema: MappedSchema,
) -> Snapshot:
    """Return the version whose schema is used to read the rows, chosen as by delta-spark."""
    if mapped_schema is not MappedSchema.END_VERSION or chosen.end == newest.version:
        return newest
    at_end = log.snapshot(version=chosen.end)
    modes = (
        newest.config.column_mapping,
        at_end.config.column_mapping,
        TableShape.of(first).column_mapping,
    )
    return at_end if any(mode is not ColumnMappingMode.NONE for mode in modes) else newest


def _mapped_schema(text: str) -> MappedSchema:
    try:
        return MappedSchema(text.strip().lower())
    except ValueError as unknown:
        raise InvalidRequestError(
            Message.INVALID_WRITE_OPTION_CHANGES_SCHEMA,
            setting=delta_conf.CDF_MAPPED_SCHEMA.key,
            value=text,
        ) from unknown
