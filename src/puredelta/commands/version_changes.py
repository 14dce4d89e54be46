"""Changed rows of any table, as the clause ``CHANGES`` and ``spark.read.changes`` return them.

A commit with a change data feed tells its changes itself. For any other commit the rows of the
files that it removed are paired with those that it added: by row ids where the table tracks its
rows, else by all of their values. Files that no commit of the range touched are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from puredelta.commands.changes import ChangeSettings, bound_of, find_commits
from puredelta.commands.compare import net_rows, repeated
from puredelta.commands.read_table import resolve_timestamp
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.carried_rows import (
    Deduplication,
    SortedChanges,
    WantedChanges,
    sort_changes,
)
from puredelta.log.changes.change_feed import ChangeFiles
from puredelta.log.changes.change_range import AtVersion, RangeBound
from puredelta.log.changes.stream_options import Option, illegal_option, read_flag
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.table.change_data import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ChangeType,
)
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.spark.scan.change_scan import scan_changes
from puredelta.spark.session.names import PREFIX, ROW_COMMIT_VERSION, ROW_ID, quote
from puredelta.spark.session.session import settings_of

OPTIONS = (
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
    "startingBoundInclusive",
    "endingBoundInclusive",
    "deduplicationMode",
    "computeUpdates",
    "keyColumns",
)
"""The options of ``spark.read.changes``; Spark's own, except for the last."""

_REMOVED, _ADDED = f"{PREFIX}removed", f"{PREFIX}added"
_OLDEST, _NEWEST = f"{PREFIX}oldest", f"{PREFIX}newest"
_PLACE, _LAST = f"{PREFIX}place", f"{PREFIX}last"
_WAS, _IS = f"{PREFIX}was", f"{PREFIX}is"
_SIGN = f"{PREFIX}sign"
_IMAGES = (ChangeType.UPDATE_PREIMAGE.value, ChangeType.UPDATE_POSTIMAGE.value)
_ADDS = (ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value)


def read_row_changes(
    spark: SparkSession, log: TableLog, options: Mapping[str, str], *, name: str
) -> DataFrame:
    """Return the rows that a range of versions changed, whether or not the table has a feed.

    The columns are those of the table, then ``_change_type``, ``_commit_version`` (long) and
    ``_commit_timestamp``. ``options`` are `OPTIONS`, with their names in any case; others have no
    effect. Both ends of the range belong to it unless ``startingBoundInclusive`` or
    ``endingBoundInclusive`` is false. An update is a ``delete`` and an ``insert``, and with
    ``computeUpdates`` an ``update_preimage`` and an ``update_postimage``. ``keyColumns`` (names,
    separated by commas) identify rows where the table has no row ids. ``name`` names the table in
    errors. The log of the range is read here, and no job runs.

    Raises:
        InvalidRequestError: an option is wrong (DELTA_ILLEGAL_OPTION, INVALID_CDC_OPTION...), or
            needs the identity of rows, which is unknown (DELTA_CHANGELOG_REQUIRES_ROW_TRACKING);
            errors of the range and its schemas as `puredelta.commands.changes.read_changes`.
    """
    known = {key.lower(): value for key, value in options.items()}

    def option(key: str) -> str | None:
        return known.get(key.lower())

    wanted = _wanted(option, name)
    start, end = (_bound(spark, option, which) for which in ("starting", "ending"))
    settings = ChangeSettings.parse(settings_of(spark))
    found = find_commits(log, start, end, settings, needs_feed=False)
    tracked = tracked_columns(found.read.config)
    files = sort_changes(found.commits, found.timestamps_ms, found.first, tracked, wanted)
    names = found.read.config.schema.names
    if unknown := [key for key in wanted.key_columns if key not in names]:
        raise InvalidRequestError(
            Message.COLUMN_NOT_FOUND_IN_SCHEMA_DIFF_KEYS, names=", ".join(names), column=unknown[0]
        )
    return _Frames(spark, found.read, wanted).of(files)


def _wanted(option: Option, name: str) -> WantedChanges:
    text = option("deduplicationMode") or Deduplication.DROP_CARRYOVERS.value
    modes = {mode.value.lower(): mode for mode in Deduplication}
    if text.lower() not in modes:
        raise InvalidRequestError(Message.INVALID_CDC_DEDUPLICATION_MODE, mode=text)
    mode, updates = modes[text.lower()], read_flag(option, "computeUpdates")
    if updates and mode is Deduplication.NONE:
        raise InvalidRequestError(Message.INVALID_CDC_UPDATES_WITH_CARRYOVERS, name=name)
    keys = tuple(key.strip() for key in (option("keyColumns") or "").split(",") if key.strip())
    if len(set(keys)) < len(keys):
        raise illegal_option("keyColumns", option("keyColumns") or "", "names a column twice")
    return WantedChanges(deduplication=mode, compute_updates=updates, key_columns=keys)


def _bound(spark: SparkSession, option: Option, which: str) -> RangeBound | None:
    """Return a bound that belongs to the range; versions and milliseconds are whole numbers."""
    bound = bound_of(
        option(f"{which}Version"),
        option(f"{which}Timestamp"),
        lambda instant: resolve_timestamp(spark, instant),
        which=which,
    )
    if bound is None or read_flag(option, f"{which}BoundInclusive", default=True):
        return bound
    step = 1 if which == "starting" else -1
    if isinstance(bound, AtVersion):
        return AtVersion(bound.version + step)
    return type(bound)(bound.timestamp_ms + step)


class _Frames:
    """The changed rows of sorted files, as one frame."""

    def __init__(self, spark: SparkSession, read: Snapshot, wanted: WantedChanges) -> None:
        self._spark = spark
        self._read = read
        self._wanted = wanted
        self._columns = [*read.config.schema.names, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP]

    def of(self, files: SortedChanges) -> DataFrame:
        """Return the rows of all files; no column is named twice."""
        ways: Sequence[tuple[ChangeFiles, Callable[[ChangeFiles], DataFrame]]] = (
            (files.by_row_id, self._by_row_id),
            (files.by_value, self._by_value),
            (files.updates_by_value, self._updates_by_value),
        )
        frames = [make(some) for some, make in ways if not some.are_none]
        if not files.exact.are_none or not frames:
            frames.insert(0, self._exact(files.exact))
        rows = reduce(DataFrame.union, frames)
        if self._wanted.deduplication is Deduplication.NET_CHANGES:
            keys = [quote(key) for key in self._wanted.key_columns] or [ROW_ID]
            rows = _net_changes(rows, keys, compute_updates=self._wanted.compute_updates)
        return rows.select(*map(quote, self._columns))

    def _exact(self, files: ChangeFiles) -> DataFrame:
        rows = scan_changes(self._spark, self._read, files)
        if self._is_net and not self._wanted.key_columns:  # no files, so no rows
            rows = rows.withColumn(ROW_ID, F.lit(None).cast("long"))
        if self._wanted.compute_updates:
            return rows
        kind = F.col(CHANGE_TYPE)
        halves = F.when(kind == _IMAGES[0], ChangeType.DELETE.value).when(
            kind == _IMAGES[1], ChangeType.INSERT.value
        )
        return rows.withColumn(CHANGE_TYPE, F.coalesce(halves, kind))

    @property
    def _is_net(self) -> bool:
        return self._wanted.deduplication is Deduplication.NET_CHANGES

    def _by_row_id(self, files: ChangeFiles) -> DataFrame:
        tracked = tracked_columns(self._read.config)
        rows = scan_changes(self._spark, self._read, files, tracked=tracked)
        paired = _paired(rows, [ROW_ID])
        window = Window.partitionBy(COMMIT_VERSION, ROW_ID)
        versions = {
            _OLDEST: F.min(ROW_COMMIT_VERSION).over(window),
            _NEWEST: F.max(ROW_COMMIT_VERSION).over(window),
        }
        carried = _is_pair() & (F.col(_OLDEST) == F.col(_NEWEST))
        rows = self._labelled(
            paired.withColumns(versions).where(~F.ifnull(carried, F.expr("false")))
        )
        kept = [*self._columns, ROW_ID] if self._is_net else self._columns
        return rows.select(*map(quote, kept))

    def _by_value(self, files: ChangeFiles) -> DataFrame:
        rows = self._uncarried(files)
        if not self._wanted.key_columns:
            return rows
        keys = [quote(key) for key in self._wanted.key_columns]
        return self._labelled(_paired(rows, keys)).select(*map(quote, self._columns))

    def _updates_by_value(self, files: ChangeFiles) -> DataFrame:
        before, after = _IMAGES
        return self._uncarried(files).withColumn(
            CHANGE_TYPE, F.when(_is_added(), after).otherwise(before)
        )

    def _uncarried(self, files: ChangeFiles) -> DataFrame:
        """Return the rows that one side of a commit has more often than the other."""
        rows = scan_changes(self._spark, self._read, files, strictly=True)
        schema = rows.select(*map(quote, self._read.config.schema.names)).schema
        sign = F.when(_is_added(), 1).otherwise(-1)
        net = net_rows(rows, sign, schema, COMMIT_VERSION, COMMIT_TIMESTAMP, sign_column=_SIGN)
        kind = F.when(F.col(_SIGN) > 0, ChangeType.INSERT.value).otherwise(ChangeType.DELETE.value)
        return repeated(net.withColumn(CHANGE_TYPE, kind), F.abs(_SIGN)).select(
            *map(quote, self._columns)
        )

    def _labelled(self, paired: DataFrame) -> DataFrame:
        if not self._wanted.compute_updates or self._is_net:  # the net changes are labelled last
            return paired
        before, after = _IMAGES
        kind = F.when(_is_pair(), F.when(_is_added(), after).otherwise(before))
        return paired.withColumn(CHANGE_TYPE, F.coalesce(kind, CHANGE_TYPE))


def _is_added() -> Column:
    return F.col(CHANGE_TYPE).isin(*_ADDS)


def _is_pair() -> Column:
    return (F.col(_REMOVED) == 1) & (F.col(_ADDED) == 1)


def _paired(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Add how often the commit of a row removed and added rows of the same identity."""
    window = Window.partitionBy(COMMIT_VERSION, *keys)
    added = _is_added().cast("int")
    return rows.withColumns(
        {_REMOVED: F.sum(1 - added).over(window), _ADDED: F.sum(added).over(window)}
    )


def _net_changes(rows: DataFrame, keys: Sequence[str], *, compute_updates: bool) -> DataFrame:
    """Keep the state of each row before its first change and after its last one."""
    by_row = Window.partitionBy(*keys)
    in_order = by_row.orderBy(COMMIT_VERSION, _is_added())
    whole = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    ordered = rows.withColumns(
        {
            _PLACE: F.row_number().over(in_order),
            _LAST: F.count(F.lit(1)).over(by_row),
            _WAS: ~F.first(_is_added()).over(whole),
            _IS: F.last(_is_added()).over(whole),
        }
    )
    first = F.col(_WAS) & (F.col(_PLACE) == 1)
    last = F.col(_IS) & (F.col(_PLACE) == F.col(_LAST))
    removed, added = ChangeType.DELETE.value, ChangeType.INSERT.value
    before, after = _IMAGES if compute_updates else (removed, added)
    kind = F.when(first, F.when(F.col(_IS), before).otherwise(removed)).otherwise(
        F.when(F.col(_WAS), after).otherwise(added)
    )
    return ordered.where(first | last).withColumn(CHANGE_TYPE, kind)
