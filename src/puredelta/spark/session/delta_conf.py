"""Every session setting of delta-spark that the commands here could meet, one row each.

Commands read settings through these rows only; ``docs/configuration.md`` is made of them.
A setting that has no effect here says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "spark.databricks.delta."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaConf:
    """One setting; values are text, as Spark keeps them."""

    name: str
    """The key without its prefix."""
    default: str | None
    """delta-spark's; ``None`` is unset."""
    effect: str
    """What it does here, or why it does nothing."""
    is_honoured: bool = True
    prefix: str = PREFIX

    @property
    def key(self) -> str:
        """The whole key."""
        return self.prefix + self.name

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
    return DeltaConf(name=name, default=default, effect=reason, is_honoured=False)


# what a statement means

AUTO_MERGE = DeltaConf(
    name="schema.autoMerge.enabled",
    default="false",
    effect="every MERGE evolves the schema, every append has `mergeSchema`",
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
DYNAMIC_OVERWRITE = DeltaConf(
    name="dynamicPartitionOverwrite.enabled",
    default="true",
    effect="an overwrite may replace the partitions it has rows for (`partitionOverwriteMode`); "
    "off: it replaces everything",
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
        "commandInvariantChecksUseUnreliableThrow", "false", "a count that is wrong always fails"
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
    _without_effect("autoCompact.maxNumModifiedPartitions", "128", "all partitions go in one job"),
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
)

HONOURED = tuple(
    value
    for value in list(globals().values())
    if isinstance(value, DeltaConf) and value.prefix == PREFIX
)
"""In the order in which they stand above."""

# settings of this library

ALLOW_REFLECTION = DeltaConf(
    name="storedExpressions.allowReflection",
    default="false",
    effect="CHECK constraints, invariants, generated columns and defaults may call `reflect`, "
    "`java_method` and `try_reflect`; off: writers refuse such a table ([security](security.md))",
    prefix="spark.puredelta.",
)
BOUNDS_TELL_NAN = DeltaConf(
    name="boundsTellNaN",
    default="false",
    effect="queries take it that a file whose floating-point column has a maximum holds no NaN, as "
    "delta-spark does: fewer files are read where values above a constant are wanted. Right if "
    "delta-spark or this library wrote all files; others leave NaN out of bounds, and then rows "
    "with NaN would be missing. MERGE, UPDATE and DELETE never take it",
    prefix="spark.puredelta.",
)
FLUSH_FILES = DeltaConf(
    name="flushDataFiles",
    default="true",
    effect="new data files are flushed to storage (`fsync`) before the commit that names them; "
    "off: a power cut may leave a version whose files are empty",
    prefix="spark.puredelta.",
)
IO = DeltaConf(
    name="io",
    default="auto",
    effect="who reads and writes data files: `spark`, Spark's own reader and writer through the "
    "file systems of Hadoop; `arrow`, Arrow in Spark's Python workers; `auto`, Spark wherever it "
    "has a file system for the storage, else Arrow",
    prefix="spark.puredelta.",
)
RETRIES = DeltaConf(
    name="retries",
    default="0",
    effect="how often a MERGE, an UPDATE, a DELETE or a `replaceWhere` on data columns runs again, "
    "on the newest version and after a pause, when another writer changed rows that it read; the "
    "source is evaluated once. A statement whose source reads the table itself, or whose table got "
    "another definition, is not run again",
    prefix="spark.puredelta.",
)
PROGRESS = DeltaConf(
    name="progress",
    default="auto",
    effect="a line on standard error that shows the stage and the tasks of a long statement: `on`; "
    "`off`; `auto`, in notebooks, and in a terminal where Spark shows no progress of its own "
    "(`spark.ui.showConsoleProgress`)",
    prefix="spark.puredelta.",
)
OWN = (ALLOW_REFLECTION, BOUNDS_TELL_NAN, FLUSH_FILES, IO, PROGRESS, RETRIES)
