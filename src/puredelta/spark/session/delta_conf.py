"""Every session setting of delta-spark 4.4.0 and of this library, one row each.

Commands read settings through these rows only; ``docs/configuration.md`` is made of them. A
setting is honoured, it has no effect here and says why, or it is refused by the statements that
it would change. A name that is none of these is a warning, once.
"""

from __future__ import annotations

import difflib
import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from puredelta.errors import InvalidRequestError, Message, UnsupportedError

logger = logging.getLogger(__name__)

PREFIX = "spark.databricks.delta."
OWN_PREFIX = "spark.puredelta."
_OTHER_PREFIX = "spark.databricks.io."

T = TypeVar("T")


class Handling(Enum):
    """The treatment of a setting."""

    HONOURED = "honoured"
    WITHOUT_EFFECT = "without effect"
    REFUSED = "refused"


class Kind(Enum):
    """The type of a setting's text; delta-spark's own types."""

    FLAG = "boolean"
    NUMBER = "number"
    TEXT = "text"

    @classmethod
    def of(cls, default: str | None) -> Kind:
        """Return the kind that a default has."""
        if default in {"true", "false"}:
            return cls.FLAG
        return cls.NUMBER if _number(default) is not None else cls.TEXT


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaConf:
    """One setting; values are text, as Spark keeps them."""

    name: str
    """The key without its prefix."""
    default: str | None
    """delta-spark's; ``None`` is unset."""
    effect: str
    """What it does here, or why it does nothing or is refused."""
    handling: Handling = Handling.HONOURED
    prefix: str = PREFIX

    @property
    def key(self) -> str:
        """The whole key."""
        return self.name if self.name.startswith(_OTHER_PREFIX) else self.prefix + self.name

    @property
    def kind(self) -> Kind:
        """What its text is."""
        return Kind.of(self.default)

    def is_default(self, settings: Mapping[str, str]) -> bool:
        """Return whether it is unset or says what the default does, in whatever spelling.

        >>> [REPLACE_WHERE_CHECK.is_default({REPLACE_WHERE_CHECK.key: t}) for t in (" TRUE", "no")]
        [True, False]
        """
        text = settings.get(self.key)
        if text is None:
            return True
        number = _number(text.strip())
        if number is not None and number == _number(self.default):
            return True
        return text.strip().lower() == (self.default or "").lower()

    def text(self, settings: Mapping[str, str]) -> str | None:
        """Return its value among a session's settings, or the default."""
        return settings.get(self.key, self.default)

    def flag(self, settings: Mapping[str, str]) -> bool:
        """Return a setting that is true or false.

        >>> AUTO_MERGE.flag({"spark.databricks.delta.schema.autoMerge.enabled": " TRUE"})
        True
        """
        return (self.text(settings) or "").strip().lower() == "true"


def _without_effect(name: str, default: str | None, reason: str) -> DeltaConf:
    return DeltaConf(name=name, default=default, effect=reason, handling=Handling.WITHOUT_EFFECT)


def _without_effects(reason: str, defaults: Mapping[str, str | None]) -> tuple[DeltaConf, ...]:
    return tuple(_without_effect(name, default, reason) for name, default in defaults.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedConfs:
    """Settings that some statements refuse, unless they have their default."""

    statements: str
    confs: tuple[DeltaConf, ...]
    """``effect`` is what happens here whatever the setting says."""

    def require_defaults(self, settings: Mapping[str, str]) -> None:
        """Refuse a setting whose value would mean something else.

        Raises:
            UnsupportedError: there is one (UNSUPPORTED_SETTING).
        """
        for conf in self.confs:
            if not conf.is_default(settings):
                value = settings[conf.key]
                raise UnsupportedError(
                    Message.UNSUPPORTED_SETTING,
                    effect=conf.effect,
                    conf_default=conf.default,
                    setting=conf.key,
                    value=value,
                )


def _refused(statements: str, rows: Mapping[str, tuple[str | None, str]]) -> RefusedConfs:
    return RefusedConfs(
        statements=statements,
        confs=tuple(
            DeltaConf(name=name, default=default, effect=reason, handling=Handling.REFUSED)
            for name, (default, reason) in rows.items()
        ),
    )


@dataclass(frozen=True, slots=True)
class ConfType(Generic[T]):
    """The values that a setting of this library may have."""

    parse: Callable[[str], T]
    """From text in lower case without blanks at its ends; `ValueError` for no value."""
    expected: str = ""
    """The values in words."""


def _truth(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(text)
    return text == "true"


FLAG: ConfType[bool] = ConfType(_truth, "true or false")


def whole_number(expected: str, maximum: int | None = None) -> ConfType[int]:
    """Return the type of the whole numbers from 0 to a maximum."""

    def parse(text: str) -> int:
        if not text.isdecimal() or (maximum is not None and int(text) > maximum):
            raise ValueError(text)
        return int(text)

    return ConfType(parse, expected)


def port_or_off() -> ConfType[int]:
    """Return the type of port numbers and ``off``, which is `PORT_OFF`."""

    def parse(text: str) -> int:
        if text == "off":
            return PORT_OFF
        if not text.isdecimal() or int(text) > _PORT_MAX:
            raise ValueError(text)
        return int(text)

    return ConfType(parse, "a port number, 0 for any free port, or 'off'")


_PORT_MAX = 65_535
PORT_OFF = -1


def one_of(*words: str, expected: str) -> ConfType[str]:
    """Return the type of some words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return ConfType(parse, expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConf(DeltaConf, Generic[T]):
    """One setting of this library: its name, type, default and effect."""

    prefix: str = OWN_PREFIX
    type: ConfType[T]

    def read(self, settings: Mapping[str, str]) -> T:
        """Return the value among a session's settings, or the default.

        Raises:
            InvalidRequestError: the setting has no value of its type (INVALID_CONF_VALUE).

        Examples:
            >>> RETRIES.read({"spark.puredelta.retries": " 3 "}), RETRIES.read({})
            (3, 0)
        """
        text = (self.text(settings) or "").strip().lower()
        try:
            return self.type.parse(text)
        except ValueError:
            raise InvalidRequestError(
                Message.INVALID_CONF_VALUE_OWN,
                expected=self.type.expected,
                key=self.key,
                value=text,
            ) from None

    def is_set(self, settings: Mapping[str, str]) -> bool:
        """Return whether the session has it."""
        return self.key in settings


# what a statement means

AUTO_MERGE = DeltaConf(
    name="schema.autoMerge.enabled",
    default="false",
    effect="every MERGE and INSERT evolves the schema, every append has `mergeSchema`",
)
ALLOW_AUTOMATIC_WIDENING = DeltaConf(
    name="typeWidening.allowAutomaticWidening",
    default="always",
    effect="which types schema evolution widens: `always`, `same_family_type`, `never`",
)
ALTER_LOCATION_BYPASS = DeltaConf(
    name="alterLocation.bypassSchemaCheck",
    default="false",
    effect="`ALTER TABLE ... SET LOCATION` takes a table of other columns",
)
CASTS_FOLLOW_ANSI_FLAG = DeltaConf(
    name="updateAndMergeCastingFollowsAnsiEnabledFlag",
    default="false",
    effect="assigned values are cast as `spark.sql.ansi.enabled` says, whatever the store "
    "assignment policy",
)
STRUCTS_BY_NAME = DeltaConf(
    name="resolveMergeUpdateStructsByName.enabled",
    default="true",
    effect="structs are assigned field by field, by name; off: by position",
)
PRESERVE_NULL_STRUCTS = DeltaConf(
    name="merge.preserveNullSourceStructs",
    default="true",
    effect="a struct that is NULL and has to be cast stays NULL; off: it becomes a struct of NULLs",
)
PRESERVE_NULL_STRUCTS_STAR = DeltaConf(
    name="merge.preserveNullSourceStructs.updateStar",
    default="true",
    effect="the same for `UPDATE SET *` with schema evolution",
)
DROP_NULL_COLUMNS = DeltaConf(
    name="createDataFrame.dropNullColumns",
    default=None,
    effect="schema evolution refuses a new column of type VOID; unset: true on Spark 4.0 only",
)
# how it runs

REPARTITION_BEFORE_WRITE = DeltaConf(
    name="merge.repartitionBeforeWrite.enabled",
    default="true",
    effect="rows are brought together by partition before they are written",
)
MATERIALIZE_SOURCE = DeltaConf(
    name="merge.materializeSource",
    default="auto",
    effect="`auto`, `none`: a source that is nothing but Parquet files is read where it lies, any "
    "other is copied to files below the table's directory; `all` and anything else: every source "
    "is",
)
MERGE_DELETION_VECTORS = DeltaConf(
    name="merge.deletionVectors.persistent",
    default="true",
    effect="MERGE writes deletion vectors where the table has them enabled",
)
UPDATE_DELETION_VECTORS = DeltaConf(
    name="update.deletionVectors.persistent",
    default="true",
    effect="UPDATE writes deletion vectors where the table has them enabled",
)
DELETE_DELETION_VECTORS = DeltaConf(
    name="delete.deletionVectors.persistent",
    default="true",
    effect="DELETE writes deletion vectors where the table has them enabled",
)
NUM_RECORDS_VALIDATION = DeltaConf(
    name="numRecordsValidation.enabled",
    default="true",
    effect="the rows of the files are compared with the counts before every commit",
)
STATS_SKIPPING = DeltaConf(
    name="stats.skipping",
    default="true",
    effect="files are skipped by their statistics; off: by partition values alone",
)
METADATA_QUERY = DeltaConf(
    name="optimizeMetadataQuery.enabled",
    default="true",
    effect="`count`, `min` and `max` of whole tables or partitions are answered from the log where "
    "it is certain of them",
)
LIMIT_PUSHDOWN = DeltaConf(
    name="stats.limitPushdown.enabled",
    default="true",
    effect="a query with nothing but a LIMIT reads the first files that have so many rows",
)
STATS_COLLECT = DeltaConf(
    name="stats.collect",
    default="true",
    effect="files get statistics; off: `numRecords` alone, which costs nothing (delta-spark "
    "leaves that out, too), and of a CONVERT nothing, as there",
)

# overwriting

REPLACE_WHERE_CHECK = DeltaConf(
    name="replaceWhere.constraintCheck.enabled",
    default="true",
    effect="rows that the condition of `replaceWhere` does not hold for are an error",
)
REPLACE_WHERE_DATA_COLUMNS = DeltaConf(
    name="replaceWhere.dataColumns.enabled",
    default="true",
    effect="the condition of `replaceWhere` may name any column; off: the partition columns alone",
)
REPLACE_ON = DeltaConf(
    name="replaceOn.dataframe.writer.enabled",
    default="true",
    effect="the option `replaceOn` of an overwrite is allowed; off: it is an error",
)
REPLACE_USING = DeltaConf(
    name="replaceUsing.dataframe.writer.enabled",
    default="true",
    effect="the option `replaceUsing` of an overwrite is allowed; off: it is an error",
)
DYNAMIC_OVERWRITE = DeltaConf(
    name="dynamicPartitionOverwrite.enabled",
    default="true",
    effect="an overwrite may replace the partitions it has rows for (`partitionOverwriteMode`); "
    "off: such an overwrite is an error",
)

# OPTIMIZE

OPTIMIZE_MIN_FILE_SIZE = DeltaConf(
    name="optimize.minFileSize",
    default="1073741824",
    effect="OPTIMIZE brings smaller files together",
)
OPTIMIZE_MAX_FILE_SIZE = DeltaConf(
    name="optimize.maxFileSize",
    default="1073741824",
    effect="about the size up to which OPTIMIZE brings files together",
)
OPTIMIZE_MAX_DELETED_RATIO = DeltaConf(
    name="optimize.maxDeletedRowsRatio",
    default="0.05",
    effect="OPTIMIZE rewrites files of which a deletion vector hides a larger share",
)
CLUSTERING_MIN_CUBE_SIZE = DeltaConf(
    name="optimize.clustering.mergeStrategy.minCubeSize.threshold",
    default="107374182400",
    effect="files that were clustered together are left alone once they have so many bytes",
)
CLUSTERING_TARGET_CUBE_SIZE = DeltaConf(
    name="optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize",
    default="161061273600",
    effect="so many bytes of files are clustered together at most",
)
Z_ORDER_STATS_CHECK = DeltaConf(
    name="optimize.zorder.checkStatsCollection.enabled",
    default="true",
    effect="ZORDER BY refuses columns that get no statistics",
)
AUTO_COMPACT = DeltaConf(
    name="autoCompact.enabled",
    default=None,
    effect="small files are brought together after a write, MERGE, UPDATE or DELETE; unset: "
    "where the table's `delta.autoOptimize.autoCompact` says so",
)
AUTO_COMPACT_MAX_FILE_SIZE = DeltaConf(
    name="autoCompact.maxFileSize",
    default="134217728",
    effect="about the size up to which auto compaction brings files together",
)
AUTO_COMPACT_MIN_FILE_SIZE = DeltaConf(
    name="autoCompact.minFileSize",
    default=None,
    effect="smaller files are small ones; unset: half of `autoCompact.maxFileSize`",
)
AUTO_COMPACT_MIN_FILES = DeltaConf(
    name="autoCompact.minNumFiles",
    default="50",
    effect="auto compaction starts where a partition has so many small files",
)
AUTO_COMPACT_CHANGED_ONLY = DeltaConf(
    name="autoCompact.modifiedPartitionsOnly.enabled",
    default="true",
    effect="auto compaction looks at the partitions that the commit added files to, no others",
)
AUTO_COMPACT_MAX_PARTITIONS = DeltaConf(
    name="autoCompact.maxNumModifiedPartitions",
    default="128",
    effect="auto compaction after one commit works on so many partitions at most, unless "
    "`autoCompact.modifiedPartitionsOnly.enabled` is false: those with the most small files; "
    "delta-spark takes any",
)
AUTO_COMPACT_NOT_BLIND = DeltaConf(
    name="autoCompact.nonBlindAppend.enabled",
    default="false",
    effect="auto compaction does not follow a blind append",
)

OPTIMIZE_WRITE = DeltaConf(
    name="optimizeWrite.enabled",
    default=None,
    effect="rows are brought together before they are written, into few files of about "
    "`optimizeWrite.binSize`; unset: where the table's `delta.autoOptimize.optimizeWrite` says so",
)
OPTIMIZE_WRITE_BIN_SIZE = DeltaConf(
    name="optimizeWrite.binSize",
    default="512MB",
    effect="the size of a file of an optimized write, in bytes of shuffled rows",
)

# what is recorded

TXN_APP_ID = DeltaConf(
    name="write.txnAppId",
    default=None,
    effect="with `write.txnVersion`: a statement that this application has executed under this "
    "version, or a later one, does nothing",
)
TXN_VERSION = DeltaConf(name="write.txnVersion", default=None, effect="see `write.txnAppId`")
TXN_AUTO_RESET = DeltaConf(
    name="write.txnVersion.autoReset.enabled",
    default="false",
    effect="`write.txnVersion` is unset by the statement that uses it",
)
USER_METADATA = DeltaConf(
    name="commitInfo.userMetadata", default=None, effect="text that commits carry in the history"
)
SKIP_EMPTY_COMMITS = DeltaConf(
    name="skipRecordingEmptyCommits",
    default="true",
    effect="a statement that changes nothing makes no version; off: MERGE, UPDATE and DELETE do",
)
HISTORY_METRICS = DeltaConf(
    name="history.metricsEnabled",
    default="true",
    effect="commits carry `operationMetrics`",
)

# streams

TRACKING_OUTSIDE_CHECKPOINT = DeltaConf(
    name="streaming.allowSchemaLocationOutsideCheckpointLocation",
    default="false",
    effect="`schemaTrackingLocation` may lie anywhere, not only under the checkpoint of the query",
)
ALLOW_RENAME = DeltaConf(
    name="streaming.allowSourceColumnRename",
    default=None,
    effect="`always`: streams with `schemaTrackingLocation` go on after a column was renamed; "
    "followed by `.ckpt_` and the number in the error, for one stream, or for a version of it",
)
ALLOW_DROP = DeltaConf(
    name="streaming.allowSourceColumnDrop",
    default=None,
    effect="the same after a column was dropped",
)
ALLOW_RENAME_AND_DROP = DeltaConf(
    name="streaming.allowSourceColumnRenameAndDrop",
    default=None,
    effect="the same after either",
)
ALLOW_TYPE_CHANGE = DeltaConf(
    name="streaming.allowSourceColumnTypeChange",
    default=None,
    effect="the same after a type became wider",
)

# CONVERT TO DELTA

USE_METADATA_LOG = DeltaConf(
    name="convert.useMetadataLog",
    default="true",
    effect="the log of a streaming sink says which files count, not the listing",
)
IGNORE_CAST_FAILURE = DeltaConf(
    name="convert.partitionValues.ignoreCastFailure",
    default="false",
    effect="partition text that is not of its column's type becomes NULL",
)
USE_CATALOG_PARTITIONS = DeltaConf(
    name="convert.useCatalogPartitions",
    default="true",
    effect="the catalog says which partitions a table of it has, not the listing",
)
USE_CATALOG_SCHEMA = DeltaConf(
    name="convert.useCatalogSchema",
    default="true",
    effect="the catalog says which columns a table of it has, not the files",
)
CONVERT_METADATA_CHECK = DeltaConf(
    name="convert.metadataCheck.enabled",
    default="true",
    effect="the catalog and a log that is there already must agree on the properties",
)
READER_VERSION_DEFAULT = DeltaConf(
    name="properties.defaults.minReaderVersion",
    default="1",
    effect="the reader version of every new table, at least",
)
WRITER_VERSION_DEFAULT = DeltaConf(
    name="properties.defaults.minWriterVersion",
    default="2",
    effect="the writer version of every new table, at least",
)
PROPERTY_DEFAULTS = DeltaConf(
    name="properties.defaults.",
    default=None,
    effect="followed by a property without `delta.`: a property of every new table",
)
ASSUME_DROP_IF_EXISTS = DeltaConf(
    name="constraints.assumesDropIfExists.enabled",
    default="false",
    effect="`DROP CONSTRAINT` of a constraint that does not exist does nothing",
)
ALLOW_ARBITRARY_PROPERTIES = DeltaConf(
    name="allowArbitraryProperties.enabled",
    default="false",
    effect="table properties that begin with `delta.` and are not known are kept",
)

# VACUUM

VACUUM_RETENTION_CHECK = DeltaConf(
    name="retentionDurationCheck.enabled",
    default="true",
    effect="VACUUM refuses a shorter retention than the table's own",
)
VACUUM_IGNORE_WINDOW = DeltaConf(
    name="vacuum.retentionWindowIgnore.enabled",
    default="true",
    effect="a retention given to VACUUM that is shorter than the table's own is ignored",
)
VACUUM_LITE = DeltaConf(
    name="vacuum.lite.enabled",
    default="false",
    effect="VACUUM that says neither FULL nor LITE is `LITE`",
)
VACUUM_LOGGING = DeltaConf(
    name="vacuum.logging.enabled", default=None, effect="VACUUM is recorded in the history"
)

# the change data feed

CDF_OUT_OF_RANGE = DeltaConf(
    name="changeDataFeed.timestampOutOfRange.enabled",
    default="false",
    effect="a start beyond the newest version is an empty feed, an end beyond it the newest "
    "version",
)
CDF_UNSAFE_SCHEMA = DeltaConf(
    name="changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled",
    default="false",
    effect="changes are read across schema changes that may put values under wrong columns",
)
CDF_MAPPED_SCHEMA = DeltaConf(
    name="changeDataFeed.defaultSchemaModeForColumnMappingTable",
    default="endVersion",
    effect="under which schema changes of a table with column mapping are read: `endVersion`, "
    "`latest`, `legacy`",
)

_STAGED = (
    "the source is evaluated exactly once, into files below the table's directory, unless it is "
    "nothing but Parquet files"
)

WITHOUT_EFFECT = (
    _without_effect(
        "lastCommitVersionInSession",
        None,
        "not set: a command changes no setting of the session; its report and the history say the "
        "version",
    ),
    _without_effect(
        "checkLatestSchemaOnRead",
        "true",
        "always checked: a statement whose columns came, went or changed meanwhile is refused, and "
        "the error names them",
    ),
    _without_effect(
        "merge.optimizeInsertOnlyMerge.enabled",
        "true",
        "there is one plan: an insert-only MERGE is its cheap case",
    ),
    _without_effect(
        "merge.optimizeMatchedOnlyMerge.enabled", "true", "no row is joined only to be copied"
    ),
    _without_effect("merge.materializeSource.rddStorageLevel", "DISK_ONLY", "files, not blocks"),
    _without_effect(
        "merge.materializeSource.rddStorageLevelFirstRetry", "DISK_ONLY_2", "files, not blocks"
    ),
    _without_effect(
        "merge.materializeSource.rddStorageLevelRetry", "DISK_ONLY_3", "files, not blocks"
    ),
    _without_effect(
        "merge.materializeSource.maxAttempts", "4", "staged rows survive the loss of an executor"
    ),
    _without_effect(
        "merge.forceSourceMaterializationWithUnreadableFilesConfig",
        "true",
        "always: a source whose files may be missing is evaluated once",
    ),
    _without_effect(
        "merge.materializeCachedSource", "true", "always: a cached source is evaluated once"
    ),
    _without_effect("merge.failSourceCachedAfterMaterialization", "true", _STAGED),
    _without_effect(
        "merge.failIfSourceChanged",
        "false",
        "always: a statement fails if files change that it reads more than once",
    ),
    _without_effect("merge.skipOssResolutionWithStar", "true", "internal to delta-spark"),
    _without_effect(
        "merge.analysis.batchActionResolution.enabled", "true", "always in one analysis"
    ),
    _without_effect(
        "merge.emptySchemaTargetCheck.enabled",
        "true",
        "always checked: there is nothing to write into a table without columns",
    ),
    _without_effect(
        "merge.insert.fixCaseSensitiveDuplicateColumns",
        "true",
        "as in delta-spark 4.4.0: the first of two spellings of a column counts, and two are an "
        "error where the table fills columns",
    ),
    _without_effect(
        "schemaEvolution.merge.fixNestedStructAlignment",
        "true",
        "always fixed: without it new fields break rows that no clause assigns",
    ),
    _without_effect(
        "commandInvariantChecksUseUnreliable", "true", "counts are exact and always compared"
    ),
    _without_effect(
        "optimizeWrite.maxShufflePartitions",
        "2000",
        "Spark's own rebalancing has `spark.sql.shuffle.partitions` of them",
    ),
    _without_effect(
        "optimizeWrite.numShuffleBlocks", "50000000", "Spark's own rebalancing needs no bound"
    ),
    _without_effect(
        "optimize.repartition.enabled", "false", "one job writes all files, with one shuffle"
    ),
    _without_effect("optimize.maxThreads", "15", "one job writes all files"),
    _without_effect("optimize.batchSize", None, "one job and one commit"),
    _without_effect(
        "optimize.zorder.fastInterleaveBits.enabled", "false", "a place on the curve is one long"
    ),
    _without_effect(
        "autoCompact.reservePartitions.enabled",
        "true",
        "a compaction that loses a race is no error",
    ),
    _without_effect(
        "autoCompact.earlySkipPartitionTable.enabled", "true", "always: the log is at hand"
    ),
    _without_effect(
        "convertEmptyToNullForStringPartitionCol",
        "true",
        "always: the log cannot tell an empty partition value from NULL",
    ),
    _without_effect(
        "write.utcTimestampPartitionValues",
        "true",
        "always UTC: text without a zone means something else in another session",
    ),
    _without_effect(
        "import.batchSize.statsCollection", "50000", "statistics come from footers, without jobs"
    ),
    _without_effect("import.batchSize.schemaInference", "1000000", "unused in delta-spark, too"),
    *(
        _without_effect(name, default, "Iceberg tables are converted one way, see decision 0055")
        for name, default in (
            ("convert.iceberg.enabled", "true"),
            ("convert.iceberg.useNativePartitionValues", "true"),
            ("convert.iceberg.partitionEvolution.enabled", "false"),
            ("convert.iceberg.bucketPartition.enabled", "true"),
            ("collectStats.convertIceberg", "true"),
            ("collectStats.convertIceberg.decimal", "true"),
            ("collectStats.convertIceberg.date", "true"),
            ("collectStats.convertIceberg.timestamp", "true"),
        )
    ),
    *_without_effects(
        "there is one snapshot, made by Python from the log, and no Spark job for it",
        {
            "snapshotPartitions": None,
            "snapshotCache.storageLevel": "MEMORY_AND_DISK_SER",
            "snapshot.logging.maxFilesThreshold": "500000",
            "maxSnapshotLineageLength": "50",
            "delta.log.cacheSize": "10000",
            "delta.log.cacheRetentionMinutes": "3600000ms",
            "deltaLog.minorCompaction.useForReads": "true",
            "deltaLog.getChangeLogFiles.logGaps": "true",
            "deltaLog.getChangeLogFiles.failOnGapsInTests": "true",
            "history.maxKeysPerList": "1000",
            "history.threadPoolSize": "10",
            "includeTableIdInFileIndexComparison": "true",
            "alwaysCollectStats.enabled": "false",
            "command.fileMaterializationLimit.enabled": "true",
            "command.fileMaterializationLimit.softMax": "10000000",
            "internalUdfOptimization.enabled": "true",
        },
    ),
    *_without_effects(
        "the log is listed at every statement: a table is never older than its newest commit",
        {
            "stalenessLimit": "0ms",
        },
    ),
    *_without_effects(
        "a damaged checkpoint is gone around, and a listing that looks damaged is repeated",
        {
            "snapshotLoading.maxRetries": "2",
            "commit.inconsistentList.maxRetries": "3",
        },
    ),
    *_without_effects(
        "commits are put if absent: no lock is needed",
        {
            "commitLock.enabled": None,
        },
    ),
    *_without_effects(
        "a commit is tried a thousand times, and every lost answer is settled by its `txnId`",
        {
            "maxCommitAttempts": "10000000",
            "maxNonConflictCommitAttempts": "10",
            "commit.idempotencyCheck.enabled": "false",
        },
    ),
    *_without_effects(
        "a commit of another writer is judged by what it did; what cannot be judged is a conflict",
        {
            "featureEnablement.conflictResolution.enabled": "true",
            "conflictDetection.partitionLevelConcurrency.widenNonDeterministicPredicates": "on",
            "conflictDetection.allowReplaceTableToRemoveNewDomainMetadata": "true",
        },
    ),
    *_without_effects(
        "always checked before a commit: what breaks the protocol is an error",
        {
            "commitValidation.enabled": "true",
            "commitValidation.consistentDataChange.mode": "log",
            "partitionColumnValidity.enabled": "true",
            "partitionColumnChangeCheck": "log-only",
            "schema.typeCheck.enabled": "true",
            "tablePropertyConstraintsCheck.enabled": "true",
            "duplicateActionCheck.enabled": "true",
            "columnMapping.checkMaxColumnId": "true",
            "columnMapping.stripMetadata": "true",
            "columnMapping.disallowEnablingWhenColumnMappingMetadataAlreadyExists": "true",
            "deletionVectors.skipCommitCheck": "true",
            "emptyFileCheck.throwEnabled": "false",
            "nullPartitionCheck.throwEnabled": "false",
            "commandInvariantChecksThrow": "false",
            "vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility": "true",
            "typeWidening.bypassUnsupportedTypeChangeCheck": "false",
            "inCommitTimestamp.retainEnablementInfoFix.enabled": "true",
        },
    ),
    _without_effect(
        "deletionVectors.propagateCloseFailure",
        "true",
        "a deletion vector that cannot be written is an error, and nothing is committed",
    ),
    *_without_effects(
        "always checked: an expression that a table stores and that may do harm "
        "is an error ([security](security.md))",
        {
            "generatedColumn.validateOnWrite.enabled": "LOG_ONLY",
            "checkConstraints.validation.enabled": "LOG_ONLY",
        },
    ),
    *_without_effects(
        "always checked: an error says what depends on the column",
        {
            "alterTable.changeColumn.checkExpressions": "true",
            "changeColumn.checkDependentExpressionsUseV2": "true",
            "liquid.alterColumnAfter.statsSchemaCheck": "true",
            "alter.replaceColumns.safe.enabled": "true",
            "alterTable.bypassCharVarcharToStringFix": "false",
        },
    ),
    *_without_effects(
        "metrics cost nothing here: the history always has them",
        {
            "dmlMetricsFromMetadata.enabled": "true",
            "metrics.alwaysReportSomeZeroMetrics": "true",
            "replaceWhere.dataColumns.metrics.enabled": "true",
            "insertOverwrite.removeMetrics.enabled": "true",
            "commitStats.force": "false",
            "fileSizeHistogramMetrics.enabled": "true",
            "optimize.conditionalIncrementMetric.enabled": "true",
        },
    ),
    *_without_effects(
        "metrics for Unity Catalog are not sent",
        {
            "commitMetrics.enabled": "true",
            "commitMetrics.threadPoolSize": "20",
        },
    ),
    *_without_effects(
        "version checksum files are not written and not read "
        "([0027](decisions/0027-checksum-files.md))",
        {
            "writeChecksumFile.enabled": "true",
            "writeChecksumFile.histogramFollowsProtocol": "true",
            "versionChecksum.forcedValidationInterval": "400",
            "versionChecksum.forcedValidationMinTimeIntevalMinutes": "720",
            "incremental.commit.enabled": "true",
            "incremental.commit.verify": "false",
            "incremental.commit.forceVerifyInTests": "true",
            "checksum.mismatch.fatal": "true",
            "setTransactionsInCrc.writeOnCommit": "true",
            "setTransactionsInCrc.maxAllowed": "100",
            "domainMetadatasInCrc.maxAllowed": "10",
            "allFilesInCrc.thresholdNumFiles": "50",
            "allFilesInCrc.enabled": "true",
            "allFilesInCrc.verificationMode.enabled": "false",
            "allFilesInCrc.verificationMode.forceOnNonUTC.enabled": "true",
            "allFilesInCrc.thresholdIndexedCols": None,
            "readProtocolAndMetadataFromChecksum.enabled": "true",
            "checksumDVMetrics.enabled": "true",
            "checksumDeletedRecordCountsHistogramMetrics.enabled": "true",
        },
    ),
    _without_effect(
        "lastCheckpoint.suppressOptionalFields",
        "false",
        "the hint always has its optional fields, which readers pass over by the protocol",
    ),
    *_without_effects(
        "a checkpoint is one Parquet file, or a JSON file with one sidecar; the "
        "hint has no schema in it, and always a checksum",
        {
            "checkpointSchema.writeThresholdLength": "20000",
            "checkpointSchema.useFromCheckpointMetadata": "true",
            "lastCheckpoint.checksum.enabled": "true",
            "lastCheckpoint.nonFileActions.threshold": "30",
            "lastCheckpoint.sidecars.threshold": "30",
            "checkpoint.partSize": None,
            "checkpoint.dropBackReference.enabled": "true",
            "checkpointV2.threadpool.size": "32",
            "checkpointV2.topLevelFileFormat": None,
            "checkpointV2.exposeTableFeatureForTesting": "false",
        },
    ),
    *_without_effects(
        "the property `delta.checkpoint.writeStatsAsStruct` decides",
        {
            "statsAsStructInCheckpoint.forcedDisabled": None,
        },
    ),
    *_without_effects(
        "after a commit nothing raises: what fails is a warning",
        {
            "checkpoint.exceptionThrowing.enabled": "false",
            "postCommitHook.throwOnError": "false",
        },
    ),
    *_without_effects(
        "statistics are those of the table's schema, from footers; a bound that "
        "may be wrong is left out ([0006](decisions/0006-file-statistics.md))",
        {
            "stats.collect.using.tableSchema": "true",
            "collectStats.skipFloatingPointFromFooter": "true",
            "collectStats.useMultiThreadedStatsCollection": "true",
            "collectStats.numFilesPerPartition": "100",
            "collectStats.fallbackToInterpretedProjection": "true",
            "stats.limitPerVariant": "0",
            "variantShredding.collectVariantDataSkippingStats": "true",
            "variantShredding.guardVariantInStatsSchema.enabled": "true",
            "variantShredding.parseFooterForStats": "false",
            "deletionVectors.disableTightBoundOnFileCreationForDevOnly": "false",
        },
    ),
    *_without_effects(
        "a bound of a text is 32 characters long",
        {
            "spark.databricks.io.skipping.stringPrefixLength": "32",
        },
    ),
    *_without_effects(
        "only about speed: which files are skipped, never which rows are found",
        {
            "stats.limitPushdown.skipNonDeterministicFilters.enabled": "true",
            "skipping.partitionLikeFilters.enabled": "false",
            "skipping.partitionLikeDataSkippingFilesThreshold": "100",
            "skipping.partitionLikeDataSkipping.limitToClusteringColumns": "true",
            "skipping.partitionLikeDataSkipping.additionalSupportedExpressions": None,
            "skipping.enhancedIsNullPushdownExprs.enabled": "true",
            "skipping.enhancedIsNullPushdownExprs.maxDepth": "8",
            "generatedColumn.partitionFilterOptimization.enabled": "true",
            "deletionVectors.useMetadataRowIndex": "true",
        },
    ),
    *_without_effects(
        "only about the order of rows in files",
        {
            "spark.databricks.io.skipping.mdc.rangeId.max": "1000",
            "spark.databricks.io.skipping.mdc.addNoise": "true",
            "spark.databricks.io.skipping.mdc.sortWithinFiles": "false",
        },
    ),
    *_without_effects(
        "the log is at hand: nothing is counted between commits",
        {
            "autoCompact.recordPartitionStats.enabled": "true",
            "autoCompact.maxTablePartitionStats": "16384",
            "autoCompact.partitionStatsSize": "65536",
        },
    ),
    *_without_effects(
        "files are deleted by several threads, as many as the store takes",
        {
            "vacuum.parallelDelete.enabled": "false",
            "vacuum.parallelDelete.parallelism": None,
        },
    ),
    *_without_effects(
        "a version whose files VACUUM has removed is an error that names them; others can be read",
        {
            "vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "true",
        },
    ),
    *_without_effects(
        "files outside of the table's directory are never deleted",
        {
            "vacuum.relativize.ignoreError": "false",
        },
    ),
    *_without_effects(
        "always strict: a text that is no time is an error",
        {
            "timeTravel.parsing.strict": "true",
        },
    ),
    *_without_effects(
        "a directory without commits is no table, and a directory that cannot be read is an error",
        {
            "isDeltaTable.strictCheck": "true",
            "isDeltaTable.throwOnError": "true",
        },
    ),
    *_without_effects(
        "two paths in one CREATE TABLE are an error",
        {
            "legacy.allowAmbiguousPathsInCreateTable": "false",
        },
    ),
    *_without_effects(
        "NOT NULL inside of arrays and maps is refused, since no reader enforces it",
        {
            "constraints.allowUnenforcedNotNull.enabled": "false",
        },
    ),
    *_without_effects(
        "paths with colons always work",
        {
            "workAroundColonsInHadoopPaths.enabled": "true",
        },
    ),
    *_without_effects(
        "metadata of Spark's own and of type changes is not shown in schemas",
        {
            "schema.removeSparkInternalMetadata": "true",
            "typeWidening.removeSchemaMetadata": "true",
        },
    ),
    *_without_effects(
        "the catalog has a table's columns where it takes them; the log decides",
        {
            "catalog.update.enabled": "false",
            "catalog.update.threadPoolSize": "20",
            "catalog.update.longFieldTruncationThreshold": "4000",
            "hms.schema.forceAlterTableDataSchema": "false",
        },
    ),
    *_without_effects(
        "tables with coordinated commits are refused: see [support](support.md)",
        {
            "coordinatedCommits.getCommits.threadPoolSize": "5",
            "coordinatedCommits.ignoreMissingCoordinatorImplementation": "true",
            "coordinatedCommits.commitCoordinator.dynamodb.awsCredentialsProviderName": (
                "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"
            ),
            "coordinatedCommits.commitCoordinator.dynamodb.skipPathCheckEnabled": "false",
            "coordinatedCommits.commitCoordinator.dynamodb.readCapacityUnits": "5",
            "coordinatedCommits.commitCoordinator.dynamodb.writeCapacityUnits": "5",
            "coordinatedCommits.commitFilesIterator.backfillGapFix.enabled": "true",
        },
    ),
    _without_effect(
        "catalog.enableServerSidePlanning",
        "false",
        "the log names the files of a scan; no catalog is asked for them",
    ),
    *_without_effects(
        "the preview feature is not supported: a table that has it is refused",
        {
            "adaptiveMetadataTree.preview.enabled": "true",
            "amt.entriesPerLeaf": "50000",
            "amt.largeCommitActionsCountThresholdForInlineManifestCommit": "9223372036854775807",
            "amt.fullRewriteCheckpointIntervalMultiplier": "5",
            "skipRedirectFeature": "false",
            "enableTableRedirectFeature": "false",
        },
    ),
    *_without_effects(
        "a setting for delta-spark's own tests",
        {
            "tableFeatures.testFeatures.enabled": "true",
            "tableFeatures.dev.unsupportedTableFeatures.enabled": "false",
            "tableFeatures.dev.allowMetadataCleanupCheckpointExistenceCheck.disabled": "false",
            "tableFeatures.dev.fastDropFeature.DVDiscoveryInVacuum.disabled": "false",
            "rowTracking.ignoreSuspension": "false",
            "testOnly.dataFileNamePrefix": "",
            "testOnly.dvFileNamePrefix": "",
            "dummyFileManager.numOfFiles": "3",
            "dummyFileManager.prefix": ".s3-optimization-",
            "failOnPartitionValueParsingError": "false",
        },
    ),
    *_without_effects(
        "the log is cleaned only where the table's features allow it",
        {
            "tableFeatures.allowMetadataCleanupWhenAllProtocolsSupported": "true",
        },
    ),
    *_without_effects(
        "tombstones of deletion vectors are written in one commit, however many",
        {
            "tableFeatures.fastDropFeature.dvTombstoneCountThreshold": "10000",
        },
    ),
    *_without_effects(
        "all files get row ids in one commit",
        {
            "rowTracking.backfill.maxNumFiles": "22000",
            "backfill.maxNumFiles": "22000",
            "backfill.maxNumFilesFactor": "3.0",
        },
    ),
    *_without_effects(
        "each file has a deletion vector file of its own, or it is in the log",
        {
            "deletionVectors.packing.targetSize": "2097152b",
        },
    ),
    *_without_effects(
        "the rows that replace others are read once, as the source of a MERGE is",
        {
            "insertReplaceOnOrUsing.materializeSource": "auto",
        },
    ),
    *_without_effects(
        "partition values are compared as values, never as text",
        {
            "normalizePartitionValuesOnRead": "true",
            "dynamicPartitionOverwrite.parsePartitionValues": "true",
        },
    ),
    *_without_effects(
        "Iceberg metadata is written one way, see decision 0089; Hudi's is refused",
        {
            "uniform.iceberg.v3.enabled": "true",
            "uniform.iceberg.geospatial.enabled": "false",
            "uniform.iceberg.sync.convert.enabled": "false",
            "uniform.hudi.sync.convert.enabled": "false",
            "uniform.iceberg.retry.times": "3",
            "uniform.iceberg.include.base.converted.version": "true",
            "uniform.iceberg.maxActionsToConvertForCommitLarge": "1000000",
            "iceberg.maxPendingCommits": "100",
            "hudi.maxPendingCommits": "100",
            "iceberg.maxPendingActions": "100000",
            "typeWidening.allowUnsupportedIcebergTypeChanges": "false",
        },
    ),
    *_without_effects(
        "Iceberg tables are converted one way, see decision 0055",
        {
            "clone.iceberg.allowPartialStats": "true",
        },
    ),
    *_without_effects(
        "which of delta-spark's own connectors answers; there is one here",
        {
            "v2.enableMode": "AUTO",
            "changelogV2.enabled": "false",
            "requiredSparkConfsCheck.enabled": "true",
        },
    ),
    *_without_effects(
        "is of delta-spark's second connector for streams; there is one here",
        {
            "streaming.initialSnapshotMaxFiles": "100000",
            "streaming.distributedInitialSnapshot": "false",
        },
    ),
    *_without_effects(
        "always: such a stream stops with an error that says how to go on",
        {
            "streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled": "false",
            "streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled": "false",
            "streaming.unsafeReadOnPartitionColumnChanges.enabled": "false",
            "streaming.unsafeReadOnNullabilityChange.enabled": "false",
            "typeWidening.bypassStreamingTypeChangeCheck": "false",
            "streaming.offsetValidation.enabled": "true",
            "streaming.schemaValidationOnRestart.enabled": "true",
            "streaming.trailingCommitValidation.enabled": "true",
            "streaming.ignoreInternalMetadataForSchemaChange.enabled": "true",
            "streaming.schemaTracking.metadataPathCheck.enabled": "true",
            "tableFeatures.fastDropFeature.alwaysValidateProtocolInStreaming.enabled": "true",
        },
    ),
    *_without_effects(
        "changes that follow each other are one change of the schema",
        {
            "streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled": "true",
        },
    ),
    *_without_effects(
        "commits are read one after the other, whatever their size",
        {
            "streaming.logSizeInMemoryThreshold": "134217728",
        },
    ),
    *_without_effects(
        "names are always quoted",
        {
            "changeColumn.renameColumnEscapeName": "true",
            "streaming.sink.implicitCastEscapeColumnNames": "true",
        },
    ),
    *_without_effects(
        "the options for versions and those for changes exclude each other",
        {
            "changeDataFeed.allowTimeTravelOptionsForSchema": "false",
        },
    ),
    *_without_effects(
        "EXISTS in the condition of a DELETE is refused: use a MERGE",
        {
            "delete.allowExistsSubquery": "false",
        },
    ),
    *_without_effects(
        "spatial columns are supported",
        {
            "geo.preview.enabled": "false",
        },
    ),
    *_without_effects(
        "Delta Sharing is a connector of its own",
        {
            "spark.sql.delta.sharing.cdfEnableHistoricalProtocol": "false",
            "spark.sql.delta.sharing.cdfStreamingAutoResolveResponseFormat": "false",
            "spark.sql.delta.sharing.enableAutoResolveForCdf": "false",
            "spark.sql.delta.sharing.enableDeltaFormatBatch": "true",
            "spark.sql.delta.sharing.forceDeltaFormat": "false",
            "spark.sql.delta.sharing.streamingAutoResolveResponseFormat": "false",
            "spark.sql.delta.sharing.streamingConvertStartingTimestampToVersion": "false",
            "spark.sql.delta.sharing.streamingEnableHistoricalProtocol": "false",
        },
    ),
)

REFUSED_BY_WRITES = _refused(
    "statements that commit to a table",
    {
        "replaceWhere.dataColumnsWithCDF.enabled": (
            "true",
            (
                "the change data feed always has the rows that a `replaceWhere` on "
                "data columns removes"
            ),
        ),
        "insert.preserveNullSourceStructs": (
            "true",
            "a struct that is NULL is stored as NULL",
        ),
        "insert.byName.schemaEvolution.enabled": (
            "true",
            "INSERT BY NAME adds columns where the schema may evolve",
        ),
        "dml.insert.dfByName.allowImplicitCasts": (
            "true",
            "values are cast to the types of the table's columns",
        ),
        "generatedColumn.allowNullableIngest.enabled": (
            "true",
            "a generated column that rows lack is computed",
        ),
        "typeWidening.allowIntegralDecimalCoercion": (
            "true",
            "whole numbers and decimals widen to a decimal that holds both",
        ),
        "conflictChecker.enforceConcurrentFeatureEnablement.enabled": (
            "false",
            "a commit that enables a feature is a conflict only where it concerns what was written",
        ),
        "columnMapping.reuseColumnMetadataDuringOverwrite": (
            "true",
            "columns of the same name keep their ids and physical names",
        ),
        "write.dataFilesToSubdir": (
            "false",
            "data files go to the root of the table or to the directories of its partitions",
        ),
        "table.parquetV2.timestampOutputType": (
            "TIMESTAMP_MICROS",
            "timestamps are microseconds, whatever version of Parquet a table asks for",
        ),
        "identityColumn.enabled": (
            "true",
            "tables with identity columns are written",
        ),
        "variant.disableVariantTableFeatureForSpark40": (
            "false",
            "VARIANT columns are written on every Spark that has them",
        ),
    },
)
REFUSED_BY_DEFINITIONS = _refused(
    "statements that create or replace a table",
    {
        "columnMapping.reuseColumnMetadataDuringReplace": (
            "true",
            "columns of the same name keep their ids and physical names",
        ),
        "createEmptySchemaTable.enabled": (
            "true",
            "a table may be created without columns",
        ),
        "schema.removeExistsDefault": (
            "true",
            "`EXISTS_DEFAULT` is not stored: no row is older than the default",
        ),
        "legacy.storeOptionsAsProperties": (
            "false",
            "options of a writer do not become table properties, where they would show secrets",
        ),
        "deltaTableBuilder.forceTablePropertyLowerCase.enabled": (
            "false",
            "properties keep the case of their names",
        ),
        "replace.protocolDowngradeAllowed": (
            "false",
            "REPLACE keeps the protocol of the table",
        ),
        "clusteredTable.numClusteringColumnsLimit": (
            "4",
            "a table is clustered by at most 4 columns",
        ),
        "variant.forceUsePreviewTableFeature": (
            "false",
            "the feature is `variantType`",
        ),
        "variantShredding.forceUsePreviewTableFeature": (
            "true",
            "the feature is `variantShredding-preview`",
        ),
    },
)
REFUSED_BY_STREAMS = _refused(
    "streams from and into a table",
    {
        "streaming.schemaTracking.enabled": (
            "true",
            "`schemaTrackingLocation` is followed where it is given",
        ),
        "typeWidening.allowTypeChangeStreamingDeltaSource": (
            "true",
            "a stream goes on, or asks, after a type became wider",
        ),
        "typeWidening.enableStreamingSchemaTracking": (
            "false",
            "a stream without `schemaTrackingLocation` goes on after a type became wider",
        ),
        "streaming.createDataFrame.dropNullColumns": (
            "false",
            "VOID columns are part of the rows",
        ),
        "streaming.sink.implicitCastForTypeMismatchOnly": (
            "true",
            "columns are cast where their type differs, and no others",
        ),
    },
)
REFUSED_BY_CONVERT = _refused(
    "CONVERT TO DELTA of an Iceberg table",
    {
        "convert.iceberg.castTimeType": (
            "false",
            "an Iceberg column of type TIME is refused",
        ),
    },
)
REFUSED_BY_CLONE = _refused(
    "CLONE",
    {
        "clone.replaceEnabled": (
            "true",
            "CLONE may replace a table",
        ),
        "restore.protocolDowngradeAllowed": (
            "false",
            "the protocol of the target never becomes lower",
        ),
    },
)
REFUSED_BY_RESTORE = _refused(
    "RESTORE",
    {
        "restore.protocolDowngradeAllowed": (
            "false",
            "the protocol of the table never becomes lower",
        ),
    },
)
REFUSED_BY_DROP_COLUMN = _refused(
    "ALTER TABLE DROP COLUMN",
    {
        "alterTable.dropColumn.enabled": (
            "true",
            "columns may be dropped where column mapping is on",
        ),
    },
)
REFUSED_BY_DROP_FEATURE = _refused(
    "ALTER TABLE DROP FEATURE",
    {
        "tableFeatures.fastDropFeature.enabled": (
            "true",
            "a feature is dropped in one statement where that is possible",
        ),
        "tableFeatures.fastDropFeature.generateDVTombstones.enabled": (
            "true",
            "removed deletion vectors get tombstones, so that no older reader deletes their files",
        ),
    },
)
REFUSED_BY_MAPPING_REMOVAL = _refused(
    "removing column mapping",
    {
        "columnMapping.allowRemoval": (
            "true",
            "`delta.columnMapping.mode` may be set to `none`",
        ),
    },
)
REFUSED_BY_ROW_TRACKING = _refused(
    "enabling row tracking",
    {
        "rowTracking.backfill.enabled": (
            "true",
            "row tracking may be enabled on a table that has files",
        ),
    },
)
REFUSED_BY_SYNC_IDENTITY = _refused(
    "ALTER COLUMN SYNC IDENTITY",
    {
        "identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled": (
            "false",
            "the mark of an identity column never goes back",
        ),
    },
)
REFUSED_BY_FILE_SYSTEM_OPTIONS = _refused(
    "reads and writes with such options",
    {
        "loadFileSystemConfigsFromDataFrameOptions": (
            "true",
            "options of a reader or writer that begin with `fs.` or `dfs.` count",
        ),
    },
)
REFUSED_BY_PATHS_WITH_VERSIONS = _refused(
    "reads of such a path",
    {
        "timeTravel.resolveOnIdentifier.enabled": (
            "true",
            "a path that ends in `@v1` or `@` and a time names a version",
        ),
    },
)
REFUSED = (
    REFUSED_BY_WRITES,
    REFUSED_BY_DEFINITIONS,
    REFUSED_BY_STREAMS,
    REFUSED_BY_CONVERT,
    REFUSED_BY_CLONE,
    REFUSED_BY_RESTORE,
    REFUSED_BY_DROP_COLUMN,
    REFUSED_BY_DROP_FEATURE,
    REFUSED_BY_MAPPING_REMOVAL,
    REFUSED_BY_ROW_TRACKING,
    REFUSED_BY_SYNC_IDENTITY,
    REFUSED_BY_FILE_SYSTEM_OPTIONS,
    REFUSED_BY_PATHS_WITH_VERSIONS,
)
"""Settings that are refused where they would change what a statement does."""

HONOURED = tuple(
    value
    for value in list(globals().values())
    if isinstance(value, DeltaConf) and value.prefix == PREFIX
)
"""In the order in which they stand above."""

# settings of this library

ALLOW_REFLECTION = OwnConf(
    name="storedExpressions.allowReflection",
    type=FLAG,
    default="false",
    effect="CHECK constraints, invariants, generated columns and defaults may call `reflect`, "
    "`java_method` and `try_reflect`; off: writers refuse such a table ([security](security.md))",
)
BOUNDS_TELL_NAN = OwnConf(
    name="boundsTellNaN",
    type=FLAG,
    default="false",
    effect="queries take it that a file whose floating-point column has a maximum holds no NaN, "
    "and Spark tests conditions on such columns inside of files, too, as in delta-spark: fewer "
    "files and row groups are read. Right if delta-spark or this library wrote all files and "
    "conditions name no zero: others leave NaN out of bounds, and Spark takes -0.0 for another "
    "number than 0.0 there, so that rows would be missing. MERGE, UPDATE and DELETE never take it",
)
FLUSH_FILES = OwnConf(
    name="flushDataFiles",
    type=FLAG,
    default="true",
    effect="new data files are flushed to storage (`fsync`) before the commit that names them; "
    "off: a power cut may leave a version whose files are empty",
)
IO = OwnConf(
    name="io",
    type=one_of("auto", "spark", "arrow", expected="'auto', 'spark' or 'arrow'"),
    default="auto",
    effect="who reads and writes data files: `spark`, Spark's own reader and writer through the "
    "file systems of Hadoop; `arrow`, Arrow in Spark's Python workers; `auto`, Spark wherever it "
    "has a file system for the storage, else Arrow",
)
KEY_PORT = OwnConf(
    name="keys.port",
    type=port_or_off(),
    default="0",
    effect="port of the driver where workers of a classic session get newer storage keys of a "
    "catalog's table during a long job; `0`, any free port; `off`: a job has the keys of its "
    "start. If the port is in use, one of the next `spark.port.maxRetries` ports is taken, and a "
    "warning names it",
)
RETRIES = OwnConf(
    name="retries",
    type=whole_number("a number from 0 to 1000", 1_000),
    default="0",
    effect="how often a MERGE, an UPDATE, a DELETE or a `replaceWhere` on data columns runs again, "
    "on the newest version and after a pause, when another writer changed rows that it read; the "
    "source is evaluated once. A statement whose source reads the table itself, or whose table got "
    "another definition, is not run again",
)
PROGRESS = OwnConf(
    name="progress",
    type=one_of("auto", "on", "off", expected="auto, on or off"),
    default="auto",
    effect="a line on standard error that shows the stage and the tasks of a long statement: `on`; "
    "`off`; `auto`, in notebooks, and in a terminal where Spark shows no progress of its own "
    "(`spark.ui.showConsoleProgress`)",
)
OWN = (ALLOW_REFLECTION, BOUNDS_TELL_NAN, FLUSH_FILES, IO, KEY_PORT, PROGRESS, RETRIES)

# names and values of a session

_EVERY = {
    conf.key: conf
    for conf in (*HONOURED, *WITHOUT_EFFECT, *(c for group in REFUSED for c in group.confs))
}
_FAMILIES = tuple(
    conf.key
    for conf in (
        PROPERTY_DEFAULTS,
        ALLOW_RENAME,
        ALLOW_DROP,
        ALLOW_RENAME_AND_DROP,
        ALLOW_TYPE_CHANGE,
    )
)
"""What names of settings begin with that end in a name of the user."""


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuse values that are none, and warn of names that are none, once for each name.

    Raises:
        InvalidRequestError: a setting that is true or false is something else
            (INVALID_CONF_VALUE_TYPE).
    """
    for key, value in settings.items():
        if not key.startswith(PREFIX):
            continue
        conf = _EVERY.get(key)
        if conf is None:
            if not key.startswith(_FAMILIES):
                _warn_of_unknown(key)
        elif conf.kind is Kind.FLAG and value.strip().lower() not in {"true", "false"}:
            raise InvalidRequestError(Message.INVALID_CONF_VALUE_TYPE, setting=key, value=value)


@functools.cache
def _warn_of_unknown(key: str) -> None:
    names = {known.lower(): known for known in _EVERY}
    near = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0.9)
    hint = f" Did you mean {names[near[0]]}?" if near else ""
    logger.warning("%s is no setting of delta-spark 4.4.0, and has no effect.%s", key, hint)
