"""The table of errors: delta-spark's error classes and SQLSTATEs, then the texts of messages.

A raise passes a row of `Message` and the values: ``InvalidRequestError(Message.EMPTY_DATA)``. The
name of a row is the name of its code; where a code has several texts, the case follows. Parameters
are those of `str.format`; they are also the ``details`` of the error. E-01 to E-03 are the sources
of the codes. The exceptions that carry both are `puredelta.errors`.
"""

# ruff: noqa: E501 - a code is a line
# ruff: noqa: ISC004 - a row is a code and a text

from __future__ import annotations

from enum import Enum
from string import Formatter


class ErrorCode(Enum):
    """Stable names for handlers and tests; never rename one.

    A row is delta-spark's error class and SQLSTATE, and the cause and the next step for the page
    of errors. `Message` has the texts.
    """

    # fmt: off
    # the log and the protocol
    TABLE_NOT_FOUND = ("DELTA_TABLE_NOT_FOUND", "42P01",
        "The directory has no Delta log.",
        "Check the path; Parquet files become a table by CONVERT TO DELTA.")
    MISSING_DELTA_TABLE = ("DELTA_MISSING_DELTA_TABLE", "42P01",
        "The name or path is not a Delta table.",
        "Check the spelling and the current database; convert Parquet files first.")
    TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF = ("DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF", "0AKDC",
        "`hadoopConf` of `forPath` has keys that are no settings of a file system.",
        "Pass keys that begin with `fs.` or `dfs.` only.")
    PATH_DOES_NOT_EXIST = ("DELTA_PATH_DOES_NOT_EXIST", "42K03",
        "There is nothing at the path.",
        "Check the path; a path without a scheme is one of the default file system.")
    VERSION_NOT_FOUND = ("DELTA_VERSION_NOT_FOUND", "22003",
        "The version was never there, or its commits have expired.",
        "Choose a version of `DESCRIBE HISTORY`.")
    TIMESTAMP_GREATER_THAN_COMMIT = ("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "42816",
        "The time is after the newest version.",
        "Use a time at or before the one that the message names.")
    TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION = ("DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "42816",
        "The time is before the oldest version that can be rebuilt.",
        "Use a later time; `delta.logRetentionDuration` decides how long the log is kept.")
    ONE_OF_IN_TIME_TRAVEL = ("DELTA_ONEOF_IN_TIMETRAVEL", "42601",
        "A version and a time were given, or neither.",
        "Give one of both.")
    LOG_FILE_NOT_FOUND = ("DELTA_LOG_FILE_NOT_FOUND", "42K03",
        "A required log file is missing.",
        "Restore it from a backup, or read a version that does not need it.")
    VERSIONS_NOT_CONTIGUOUS = ("DELTA_VERSIONS_NOT_CONTIGUOUS", "KD00C",
        "A commit between two others is missing.",
        "Restore the file that the message names.")
    STATE_RECOVER_ERROR = ("DELTA_STATE_RECOVER_ERROR", "XXKDS",
        "The log has no protocol or no metadata.",
        "Restore the missing commits; a new table cannot be told from a broken one.")
    TRUNCATED_TRANSACTION_LOG = ("DELTA_TRUNCATED_TRANSACTION_LOG", "42K03",
        "The oldest commits are gone and no complete checkpoint replaces them.",
        "Restore the file that the message names, or read a newer version.")
    LOG_CORRUPTED = ("DELTA_LOG_CORRUPTED", "KD00C",
        "A log file violates the protocol.",
        "Restore the file and line that the message names from a backup.")
    DELETION_VECTOR_INVALID = ("DELTA_DELETION_VECTOR_INVALID", "XXKDS",
        "A deletion vector is missing or invalid.",
        "Restore its file, or RESTORE the table to a version before it.")
    DELETION_VECTOR_CHECKSUM_MISMATCH = ("DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH", "XXKDS",
        "The bytes of a deletion vector have changed.",
        "Restore its file from a backup.")
    DELETION_VECTOR_SIZE_MISMATCH = ("DELTA_DELETION_VECTOR_SIZE_MISMATCH", "XXKDS",
        "A deletion vector has another size than the log says.",
        "Restore its file from a backup.")
    DELETION_VECTOR_CARDINALITY_MISMATCH = ("DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH", "XXKDS",
        "A deletion vector deletes another number of rows than the log says.",
        "Restore its file from a backup.")
    INVALID_PROTOCOL_VERSION = ("DELTA_INVALID_PROTOCOL_VERSION", "KD004",
        "The table needs a newer protocol than this version knows.",
        "Install a newer puredelta, or use the engine that wrote it.")
    UNSUPPORTED_FEATURES_FOR_READ = ("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "56038",
        "The table uses a feature that cannot be read here.",
        "Read it with an engine that has it, or drop the feature there.")
    UNSUPPORTED_FEATURES_FOR_WRITE = ("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE", "56038",
        "The table uses a feature that cannot be written here.",
        "Write with an engine that has it; reading may work.")
    STORAGE_ACCESS_DENIED = ("DELTA_STORAGE_ACCESS_DENIED", "42501",
        "The storage does not let this session read or write a file.",
        "Grant its user or key access to the path in the message, then run the statement again.")
    STORAGE_FAILED = ("DELTA_STORAGE_FAILED", "58030",
        "The storage failed while a statement used it.",
        "Mend the cause in the message; look at the history before you run a write again.")
    UNSUPPORTED_STORAGE = ("DELTA_UNSUPPORTED_STORAGE", "0AKDC",
        "The storage cannot be reached, or cannot keep two writers apart.",
        "Follow the message; [storage](storage.md) lists what is safe.")
    INVALID_TABLE_PROPERTY = ("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED", "0A000",
        "A table property has an invalid value.",
        "Set a value that the message lists.")
    READ_FEATURE_PROTOCOL_REQUIRES_WRITE = ("DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE", "KD004",
        "A protocol has reader features without writer features.",
        "Upgrade both versions: reader 3 needs writer 7.")
    FEATURES_REQUIRE_MANUAL_ENABLEMENT = ("DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT", "42000",
        "The change needs a table feature that is not turned on by use.",
        "Set `delta.feature.NAME` = `supported` first.")

    # reading
    READ_TABLE_WITHOUT_COLUMNS = ("DELTA_READ_TABLE_WITHOUT_COLUMNS", "428GU",
        "The table has no columns yet.",
        "Write rows, or add columns.")
    TIMESTAMP_INVALID = ("DELTA_TIMESTAMP_INVALID", "42816",
        "The text is no timestamp.",
        "Write it as `2025-01-31 12:00:00`.")
    TIME_TRAVEL_INVALID_BEGIN_VALUE = ("DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "42604",
        "The version to read is not a whole number.",
        "Give a whole number, 0 or more.")
    VERSION_INVALID = ("DELTA_VERSION_INVALID", "42815",
        "A version is not a whole number.",
        "Give a whole number, 0 or more.")
    COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE = ("DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE", "22005",
        "An array or map has values without a type.",
        "Cast it, for example `CAST(NULL AS INT)`.")
    STRUCT_ALL_VOID_FIELDS = ("DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS", "428GU",
        "A struct has only fields without a type.",
        "Cast one of them, or leave the struct out.")
    TABLE_ALL_VOID_COLUMNS = ("DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS", "428GU",
        "No column of the table has a type.",
        "Cast one of them.")
    NON_PARTITION_COLUMN_ABSENT = ("DELTA_NON_PARTITION_COLUMN_ABSENT", "KD005",
        "Only partition columns have a type.",
        "Cast another column.")
    UNSUPPORTED_DATA_TYPES = ("DELTA_UNSUPPORTED_DATA_TYPES", "0AKDC",
        "A column has a type that a Delta table cannot hold.",
        "Cast the column.")
    GEOSPATIAL_NOT_SUPPORTED = ("DELTA_GEOSPATIAL_NOT_SUPPORTED", "0AKDC",
        "A column is GEOMETRY or GEOGRAPHY, and this PySpark or pyarrow is older than these types, does not know the coordinate reference system; or every value has a reference system of its own.",
        "Use PySpark 4.2 or newer, give all values one SRID, or store `ST_AsBinary` of them as BINARY.")
    UNSUPPORTED_DATA_FILE = ("DELTA_UNSUPPORTED_DATA_FILE", "0AKDC",
        "A data file does not fit its entry in the log.",
        "Write the file again with its engine, or remove its rows.")
    FILE_NOT_FOUND = ("DELTA_FILE_NOT_FOUND", "42K03",
        "A data file of the version is missing.",
        "Restore it; `puredelta doctor TABLE` lists all that are missing.")
    RESERVED_COLUMN_NAME = ("DELTA_RESERVED_COLUMN_NAME", "42939",
        "A column has a name that is kept for internal ones.",
        "Rename the column.")
    COLUMN_NOT_FOUND_IN_SCHEMA = ("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "42703",
        "The table has no such column.",
        "Use one of the columns that the message lists.")
    COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE = ("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE", "0AKDC",
        "`delta.dataSkippingStatsColumns` names a column whose type has no statistics.",
        "Name numbers, text, dates and timestamps only.")
    COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN = ("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN", "0AKDC",
        "`delta.dataSkippingStatsColumns` names a partition column.",
        "Leave it out: files are skipped by its values anyway.")
    DUPLICATE_DATA_SKIPPING_COLUMNS = ("DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS", "42701",
        "`delta.dataSkippingStatsColumns` names a column twice.",
        "Name it once.")
    SOURCE_TABLE_IGNORE_CHANGES = ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "0A000",
        "A commit changed rows that a stream has read.",
        "Set `skipChangeCommits`, read the change data feed, or start a new query.")
    SOURCE_IGNORE_DELETE = ("DELTA_SOURCE_IGNORE_DELETE", "0A000",
        "A commit deleted rows that a stream has read.",
        "Set `ignoreDeletes` or `skipChangeCommits`.")
    SCHEMA_CHANGED_WITH_VERSION = ("DELTA_SCHEMA_CHANGED_WITH_VERSION", "KD007",
        "The schema changed while a stream was reading.",
        "Start the query again.")
    STREAMING_INCOMPATIBLE_SCHEMA_CHANGE = ("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG", "42KD4",
        "A column was renamed, dropped or retyped in the commits that a stream reads.",
        "Give the stream a `schemaTrackingLocation`, or start a new query from a version after the change.")
    STREAMING_METADATA_EVOLUTION = ("DELTA_STREAMING_METADATA_EVOLUTION", "22000",
        "A stream with a `schemaTrackingLocation` reached a change of the table and recorded it.",
        "Make the DataFrame again and restart the query.")
    STREAMING_CANNOT_CONTINUE_POST_SCHEMA_EVOLUTION = ("DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION", "KD002",
        "A column was renamed or dropped, or its type became wider, and no option allows the stream to continue.",
        "Adapt the stream's target if necessary, then set the option that the message names.")
    STREAMING_SCHEMA_LOCATION_CONFLICT = ("DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT", "22000",
        "Two streams have one `schemaTrackingLocation`.",
        "Give each its own, or a `streamingSourceTrackingId`.")
    STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT = ("DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT", "22000",
        "A `schemaTrackingLocation` is outside of the checkpoint of the query.",
        "Put it under the checkpoint.")
    STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED = ("DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED", "22000",
        "An entry of a stream's schema log is missing or damaged.",
        "Restore it, or begin with a new checkpoint.")
    STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED = ("DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED", "22000",
        "An entry of a stream's schema log has an invalid schema.",
        "Restore it, or begin with a new checkpoint.")
    STREAMING_SCHEMA_LOG_INCOMPATIBLE_TABLE_ID = ("DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID", "22000",
        "A stream's schema log belongs to another table.",
        "Use another `schemaTrackingLocation`.")
    STREAMING_SCHEMA_LOG_INIT_FAILED = ("DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA", "22000",
        "The first batch of a stream's schema log has rows of several schemas.",
        "Begin with a new checkpoint.")
    STREAMING_SCHEMA_MISMATCH_ON_RESTART = ("DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART", "KD007",
        "A stream's DataFrame is older than the last change that the stream recorded.",
        "Make the DataFrame again.")
    STARTING_VERSION_AND_TIMESTAMP_BOTH_SET = ("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET", "42613",
        "A stream has two starts.",
        "Give one of both.")
    DIFFERENT_TABLE_READ_BY_STREAM = ("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "55019",
        "The checkpoint belongs to another table, or the table was recreated.",
        "Use a new checkpoint location.")
    SCHEMA_NOT_SET = ("DELTA_SCHEMA_NOT_SET", "KD008",
        "A stream was asked for a table without columns.",
        "Write rows first, or add columns.")
    INVALID_SOURCE_OFFSET_FORMAT = ("DELTA_INVALID_SOURCE_OFFSET_FORMAT", "XXKDS",
        "The checkpoint of a stream has no offset of Delta.",
        "Restore the checkpoint, or use a new one.")
    INVALID_SOURCE_VERSION = ("DELTA_INVALID_SOURCE_VERSION", "XXKDS",
        "The checkpoint of a stream has an offset of an unknown format.",
        "Use a new checkpoint location.")
    INVALID_FORMAT_FROM_SOURCE_VERSION = ("DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION", "XXKDS",
        "The checkpoint of a stream was written by a newer release.",
        "Install a newer puredelta, or use a new checkpoint.")
    MISSING_FILES_UNEXPECTED_VERSION = ("DELTA_MISSING_FILES_UNEXPECTED_VERSION", "42K03",
        "Commits that a stream has not read yet are missing.",
        "Use a new checkpoint, or set `failOnDataLoss` to `false` and lose their rows.")
    LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE = ("DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE", "42K03",
        "The start version of a stream is no longer readable.",
        "Use a new checkpoint location.")
    UNSUPPORTED_OUTPUT_MODE = ("DELTA_UNSUPPORTED_OUTPUT_MODE", "0AKDC",
        "A stream cannot be written in this mode.",
        "Use `append` or `complete`, or `foreachBatch` with a MERGE.")
    UNSUPPORTED_ON_CONNECT = ("DELTA_UNSUPPORTED_ON_CONNECT", "0AKDC",
        "A client of Spark Connect cannot do this.",
        "Use a path, or a classic session.")

    # change data feed
    NO_START_FOR_CDC_READ = ("DELTA_NO_START_FOR_CDC_READ", "42601",
        "The change data feed needs a start.",
        "Give `startingVersion` or `startingTimestamp`.")
    MULTIPLE_CDC_BOUNDARY = ("DELTA_MULTIPLE_CDC_BOUNDARY", "42614",
        "A bound of the feed is given by version and by time.",
        "Give one of both.")
    CDC_READ_NULL_RANGE_BOUNDARY = ("DELTA_CDC_READ_NULL_RANGE_BOUNDARY", "22004",
        "A bound of the feed is NULL.",
        "Give a version or a time.")
    CDC_START_VERSION_AFTER_LATEST = ("DELTA_CDC_START_VERSION_AFTER_LATEST", "22003",
        "The feed should start after the newest version.",
        "Start earlier, or wait.")
    INVALID_CDC_RANGE = ("DELTA_INVALID_CDC_RANGE", "22003",
        "The feed ends before it starts.",
        "Swap the bounds.")
    MISSING_CHANGE_DATA = ("DELTA_MISSING_CHANGE_DATA", "KD002",
        "Some version of the range had no change data feed.",
        "Start after it was turned on; the message names the version.")
    CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE = ("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE", "0AKDC",
        "The schema changed within the range of the feed.",
        "Read the parts before and after the change apart.")
    CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA = ("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA", "0AKDC",
        "Columns of the range cannot be read with the chosen schema.",
        "Choose another range or `columnMapping` mode of the feed.")
    UNSUPPORTED_EXPRESSION = ("DELTA_UNSUPPORTED_EXPRESSION", "0A000",
        "An expression is not possible at this place.",
        "Compute it beforehand and pass the value.")
    WRONG_NUM_ARGS = ("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", "42605",
        "A function was given too many or too few arguments.",
        "See [SQL](sql.md).")
    REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA = ("DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA", "XXKDS",
        "A removed file lacks metadata for its change rows.",
        "Start the feed after the version that the message names.")
    CHANGELOG_REQUIRES_ROW_TRACKING = ("DELTA_CHANGELOG_REQUIRES_ROW_TRACKING", "0AKDE",
        "An option of `CHANGES` needs the identity of rows, which the table does not record.",
        "Set `delta.enableRowTracking` for later versions, or name unique columns in the option `keyColumns`.")
    INVALID_CDC_DEDUPLICATION_MODE = ("INVALID_CDC_OPTION.INVALID_DEDUPLICATION_MODE", "42K03",
        "The option `deduplicationMode` of `CHANGES` has an unknown value.",
        "Use `none`, `dropCarryovers` or `netChanges`.")
    INVALID_CDC_UPDATES_WITH_CARRYOVERS = ("INVALID_CDC_OPTION.UPDATE_DETECTION_REQUIRES_CARRY_OVER_REMOVAL", "42K03",
        "`CHANGES` shall compute updates, and keep rows that were only carried into another file.",
        "Use `dropCarryovers` or `netChanges`, or leave `computeUpdates` out.")
    UNSUPPORTED_CHANGES = ("UNSUPPORTED_FEATURE.CHANGE_DATA_CAPTURE", "0A000",
        "A stream cannot read `CHANGES` of a Delta table.",
        "Stream the change data feed with the option `readChangeFeed`, or read `CHANGES` as a batch.")
    TABLE_ALREADY_CONTAINS_CDC_COLUMNS = ("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", "42711",
        "The table has columns with the names of the feed's.",
        "Rename them before turning the feed on.")
    RESERVED_CDC_COLUMNS_ON_WRITE = ("RESERVED_CDC_COLUMNS_ON_WRITE", "42939",
        "The rows have columns with the names of the feed's.",
        "Drop or rename `_change_type`, `_commit_version`, `_commit_timestamp`.")

    # commits
    CONCURRENT_WRITE = ("DELTA_CONCURRENT_WRITE", "2D521",
        "Another writer made the table first.",
        "Run the statement again on the existing table.")
    METADATA_CHANGED = ("DELTA_METADATA_CHANGED", "2D521",
        "Another writer changed schema or properties meanwhile.",
        "Run the statement again.")
    PROTOCOL_CHANGED = ("DELTA_PROTOCOL_CHANGED", "2D521",
        "Another writer changed the protocol meanwhile.",
        "Run the statement again.")
    CONCURRENT_APPEND = ("DELTA_CONCURRENT_APPEND", "2D521",
        "Another writer added files that this statement should have read.",
        "Run it again; conditions on partitions or keys keep writers apart.")
    CONCURRENT_DELETE_READ = ("DELTA_CONCURRENT_DELETE_READ", "2D521",
        "Another writer removed a file that this statement has read.",
        "Run it again.")
    CONCURRENT_DELETE_DELETE = ("DELTA_CONCURRENT_DELETE_DELETE", "2D521",
        "Another writer removed a file that this statement removes.",
        "Run it again.")
    CONCURRENT_TRANSACTION = ("DELTA_CONCURRENT_TRANSACTION", "2D521",
        "Two runs of one application id committed at once.",
        "Let one query use one id; the batch may be committed already.")
    DUPLICATE_DOMAIN_METADATA = ("DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR", "42601",
        "A commit names a metadata domain twice.",
        "Report it: a command does not do that.")
    CONFLICTING_DOMAIN_METADATA = ("DELTA_CONCURRENT_DOMAIN_METADATA", "2D521",
        "Another writer changed the same metadata domain.",
        "Run the statement again.")
    DUPLICATE_ACTIONS_FOUND = ("DELTA_DUPLICATE_ACTIONS_FOUND", "2D521",
        "A commit would name a file twice.",
        "Report it, with the statement.")
    MAX_COMMIT_RETRIES_EXCEEDED = ("DELTA_MAX_COMMIT_RETRIES_EXCEEDED", "40000",
        "Other writers won every attempt.",
        "Try later, or commit less often.")
    COMMIT_STATE_UNKNOWN = ("DELTA_COMMIT_STATE_UNKNOWN", "XXKDS",
        "The storage did not say whether the commit is there.",
        "Look at the history for it before running anything again.")
    NUM_RECORDS_MISMATCH = ("DELTA_NUM_RECORDS_MISMATCH", "XXKDS",
        "Rows were lost or doubled between old and new files; nothing was committed.",
        "Report it, with the statement and the log.")
    CANNOT_MODIFY_APPEND_ONLY = ("DELTA_CANNOT_MODIFY_APPEND_ONLY", "42809",
        "The table only takes appends.",
        "Unset `delta.appendOnly` if rows may change.")
    INVALID_PARTITIONING_SCHEMA = ("DELTA_INVALID_PARTITIONING_SCHEMA", "XXKDS",
        "The log's partition columns are not columns of the table.",
        "Restore the metadata from a backup.")
    METADATA_ABSENT = ("DELTA_METADATA_ABSENT", "XXKDS",
        "A commit would make a table without metadata.",
        "Report it: a command does not do that.")
    DOMAIN_METADATA_NOT_SUPPORTED = ("DELTA_DOMAIN_METADATA_NOT_SUPPORTED", "0A000",
        "The protocol lacks metadata domains.",
        "Add the feature `domainMetadata`.")
    ADDING_DELETION_VECTORS_DISALLOWED = ("DELTA_ADDING_DELETION_VECTORS_DISALLOWED", "0A000",
        "The protocol lacks deletion vectors.",
        "Set `delta.enableDeletionVectors` = `true`.")
    ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED = ("DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED", "42000",
        "Bounds of a file with a deletion vector were said to be exact.",
        "Report it: a command does not do that.")
    DELETION_VECTOR_MISSING_NUM_RECORDS = ("DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS", "2D521",
        "A file with a deletion vector lacks its row count.",
        "Rewrite the file with OPTIMIZE, or by its engine.")
    ROW_ID_ASSIGNMENT_WITHOUT_STATS = ("DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS", "22000",
        "Rows cannot get ids, since a file lacks its row count.",
        "Collect statistics, or turn row tracking off.")

    # schemas and writes
    DUPLICATE_COLUMNS_FOUND = ("DELTA_DUPLICATE_COLUMNS_FOUND", "42711",
        "A column is there twice, case ignored.",
        "Rename or drop one.")
    INVALID_CHARACTERS_IN_COLUMN_NAMES = ("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", "42K05",
        "A name has characters that Parquet files cannot have here.",
        "Rename, or turn column mapping on (`delta.columnMapping.mode` = `name`).")
    FAILED_TO_MERGE_FIELDS = ("DELTA_FAILED_TO_MERGE_FIELDS", "22005",
        "A column of the rows does not fit the table's.",
        "Cast it to the type that the message names.")
    MERGE_INCOMPATIBLE_DATATYPE = ("DELTA_MERGE_INCOMPATIBLE_DATATYPE", "42K09",
        "Two types cannot become one.",
        "Cast the column.")
    MERGE_INCOMPATIBLE_DECIMAL_TYPE = ("DELTA_MERGE_INCOMPATIBLE_DECIMAL_TYPE", "42806",
        "Two decimals cannot become one.",
        "Cast to the table's precision and scale.")
    SCHEMA_MISMATCH = ("DELTA_METADATA_MISMATCH", "42KDG",
        "The rows have other columns than the table.",
        "Select the table's columns, or set `mergeSchema` or `overwriteSchema`.")
    NON_PARTITION_COLUMN = ("NON_PARTITION_COLUMN", "42000",
        "A column is no partition column.",
        "Use one of the partition columns that the message lists.")
    PARTITION_COLUMN_NOT_FOUND = ("DELTA_PARTITION_COLUMN_NOT_FOUND", "42703",
        "The rows lack a partition column.",
        "Add the column.")
    ALL_COLUMNS_PARTITIONED = ("DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", "428FT",
        "Every column would be a partition column.",
        "Leave at least one column out.")
    INVALID_PARTITION_COLUMN_TYPE = ("DELTA_INVALID_PARTITION_COLUMN_TYPE", "42996",
        "A column of this type, or a value, cannot partition a table.",
        "Partition by another column.")
    TABLE_ALREADY_EXISTS = ("DELTA_PATH_EXISTS", "42K04",
        "There is a table already.",
        "Use mode `append`, `overwrite` or `ignore`, or CREATE OR REPLACE.")
    NOT_NULL_CONSTRAINT_VIOLATED = ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502",
        "A row has NULL where the column may not.",
        "Filter or fill such rows.")
    VIOLATE_CONSTRAINT_WITH_VALUES = ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001",
        "A row breaks a CHECK constraint; the message has its values.",
        "Correct the row, or drop the constraint.")
    EXCEED_CHAR_VARCHAR_LIMIT = ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "22001",
        "A text is longer than its column.",
        "Shorten it, or widen the column.")
    CAST_OVERFLOW_IN_TABLE_WRITE = ("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "22003",
        "A value does not fit the column's type.",
        "Correct the value, or change the type.")
    WRITE_FAILED = ("DELTA_WRITE_FAILED", "58030",
        "Spark or a worker could not write; nothing was committed.",
        "Read the cause at the end of the message.")
    EMPTY_DATA = ("DELTA_EMPTY_DATA", "428GU",
        "The rows have no columns.",
        "Select columns.")
    INVALID_WRITE_OPTION = ("DELTA_ILLEGAL_OPTION", "42616",
        "An option does not exist, or its value is invalid.",
        "Use one that the message lists.")
    CANNOT_VACUUM_LITE = ("DELTA_CANNOT_VACUUM_LITE", "55000",
        "VACUUM LITE needs commits that have been removed.",
        "Run VACUUM FULL once.")
    INVALID_INVENTORY_SCHEMA = ("DELTA_INVALID_INVENTORY_SCHEMA", "42000",
        "The inventory of a VACUUM lacks a column, or one has another type.",
        "Give it the columns that the message names.")
    DATA_CHANGE_FALSE = ("DELTA_DATA_CHANGE_FALSE", "0AKDE",
        "A write with `dataChange=false` would create or change the definition of a table.",
        "Leave the option out, or change the table first.")
    REPLACE_WHERE_WITHOUT_DATA_CHANGE = ("DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET", "42613",
        "`replaceWhere` on data columns deletes rows, and `dataChange=false` says that none change.",
        "Name partition columns only, or leave the option out.")
    REPLACE_WHERE_MISMATCH = ("DELTA_REPLACE_WHERE_MISMATCH", "44000",
        "New rows do not fulfil `replaceWhere`.",
        "Filter them, or widen the condition.")
    REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE = ("DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE", "42613",
        "`replaceWhere` and dynamic partitions exclude each other.",
        "Use one of both.")
    OVERWRITE_BY_FILTER_WITH_REPLACE_BY = ("DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING", "42613",
        "`replaceWhere` excludes `replaceOn` and `replaceUsing`.",
        "Use one of them.")
    DYNAMIC_OVERWRITE_WITH_REPLACE_BY = ("DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING", "42613",
        "Dynamic partitions exclude `replaceOn` and `replaceUsing`.",
        "Use one of them.")
    INCOMPATIBLE_DATAFRAME_OPTIONS = ("DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS", "42613",
        "`replaceOn` and `replaceUsing` exclude each other, `overwriteSchema` and `dataChange=false`.",
        "Leave one of the options out.")
    REPLACE_ON_UNRESOLVED_COLUMNS = ("DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION", "42703",
        "The condition of `replaceOn` names a column that neither the table nor the new rows have.",
        "Correct the name; `targetAlias` names the table, `df.alias` the new rows.")
    REPLACE_ON_AMBIGUOUS_COLUMNS = ("DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION", "42702",
        "The condition of `replaceOn` names a column that both sides have.",
        "Write the alias before it; `targetAlias` names the table, `df.alias` the new rows.")
    REPLACE_BY_CONSTRAINT_VIOLATION = ("DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION", "44000",
        "A new row of `replaceOn` or `replaceUsing` breaks a rule of the table.",
        "Correct the row that the message shows.")
    DEFINITION_WITH_REPLACE_BY = ("DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING", "42000",
        "`replaceOn` and `replaceUsing` change rows of a table, and do not define one.",
        "Leave the option out, or overwrite the existing table.")
    UNRESOLVED_REPLACE_USING_COLUMN = ("UNRESOLVED_INSERT_REPLACE_USING_COLUMN", "42703",
        "A column of `replaceUsing` is not in the table or not in the new rows.",
        "Name a column of both.")
    OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE = ("DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE", "42613",
        "`overwriteSchema` needs all rows to be replaced.",
        "Leave dynamic partitions off.")
    UNSUPPORTED_SOURCE = ("DELTA_UNSUPPORTED_SOURCE", "0AKDD",
        "The target of MERGE, UPDATE or DELETE is a view.",
        "Name the table of the view.")
    UNEXPECTED_PARTIAL_SCAN = ("DELTA_UNEXPECTED_PARTIAL_SCAN", "KD00A",
        "The target of MERGE, UPDATE or DELETE is a view that shows a part of a table.",
        "Name the table of the view.")
    ONLY_OPERATION = ("DELTA_ONLY_OPERATION", "0AKDD",
        "RESTORE names a view.",
        "Name the table of the view.")
    TABLE_ONLY_OPERATION = ("DELTA_TABLE_ONLY_OPERATION", "0AKDD",
        "table_changes names a view.",
        "Name the table of the view.")
    EXPECT_TABLE_NOT_VIEW = ("EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809",
        "A statement about tables names a view.",
        "Name the table of the view.")
    UNSUPPORTED_TIME_TRAVEL_VIEWS = ("DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS", "0AKDC",
        "Views have no versions.",
        "Name the table of the view.")
    UNSUPPORTED_SCHEMA_DURING_READ = ("DELTA_UNSUPPORTED_SCHEMA_DURING_READ", "0AKDC",
        "A schema was given for reading a Delta table.",
        "Leave it out: the table has its own.")
    MISSING_NOT_NULL_COLUMN_VALUE = ("DELTA_MISSING_NOT_NULL_COLUMN_VALUE", "23502",
        "An INSERT gives no value to a NOT NULL column.",
        "Give one, or a default.")

    # OPTIMIZE
    NON_PARTITION_COLUMN_REFERENCE = ("DELTA_NON_PARTITION_COLUMN_REFERENCE", "42P10",
        "The condition may only name partition columns.",
        "Use the columns that the message lists.")
    FAILED_RECOGNIZE_PREDICATE = ("DELTA_FAILED_RECOGNIZE_PREDICATE", "42601",
        "A condition cannot be read.",
        "Write it as in WHERE.")
    UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES = ("DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES", "0AKDC",
        "A condition on partitions has a subquery.",
        "Run it first and write its values.")
    ZORDERING_ON_PARTITION_COLUMN = ("DELTA_ZORDERING_ON_PARTITION_COLUMN", "42P10",
        "Z-order by a partition column does nothing.",
        "Leave the column out.")
    ZORDERING_COLUMN_DOES_NOT_EXIST = ("DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", "42703",
        "The table lacks the column.",
        "Use one of its columns.")
    ZORDERING_ON_COLUMN_WITHOUT_STATS = ("DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS", "KD00D",
        "The column gets no statistics, so its order has no effect.",
        "Name it in `delta.dataSkippingStatsColumns`.")
    CLUSTERING_WITH_PARTITION_PREDICATE = ("DELTA_CLUSTERING_WITH_PARTITION_PREDICATE", "0A000",
        "OPTIMIZE of a clustered table takes no WHERE.",
        "Leave WHERE out.")
    CLUSTERING_WITH_ZORDER_BY = ("DELTA_CLUSTERING_WITH_ZORDER_BY", "42613",
        "A clustered table is not Z-ordered.",
        "Leave ZORDER BY out.")
    OPTIMIZE_FULL_NOT_SUPPORTED = ("DELTA_OPTIMIZE_FULL_NOT_SUPPORTED", "42601",
        "FULL is for clustered tables.",
        "Leave FULL out, or ALTER TABLE ... CLUSTER BY.")

    # CONVERT TO DELTA
    MISSING_PROVIDER_FOR_CONVERT = ("DELTA_MISSING_PROVIDER_FOR_CONVERT", "0AKDC",
        "CONVERT does not know what to convert.",
        "Write ``parquet.`/path` `` or a table's name.")
    CONVERT_NON_PARQUET_TABLE = ("DELTA_CONVERT_NON_PARQUET_TABLE", "0AKDC",
        "The table is of another format than Parquet.",
        "Read it with Spark and write it as Delta.")
    MISSING_ICEBERG_CLASS = ("DELTA_MISSING_ICEBERG_CLASS", "56038",
        "pyiceberg is not installed.",
        "`pip install 'puredelta[iceberg]'`.")
    EMPTY_DIRECTORY = ("DELTA_EMPTY_DIRECTORY", "42K03",
        "There are no Parquet files to convert.",
        "Check the path.")
    CONVERSION_UNSUPPORTED_COLUMN_MAPPING = ("DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING", "0AKDC",
        "Column mapping cannot be turned on by a conversion.",
        "Convert first, then set the property.")
    CONVERT_ROW_TRACKING_WITHOUT_STATS = ("DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS", "22000",
        "Row tracking needs row counts.",
        "Leave NO STATISTICS out.")
    FAILED_MERGE_SCHEMA_FILE = ("DELTA_FAILED_MERGE_SCHEMA_FILE", "42KDA",
        "The files have schemas that do not fit each other.",
        "Rewrite the file that the message names.")
    FAILED_INFER_SCHEMA = ("DELTA_FAILED_INFER_SCHEMA", "42KD9",
        "No file shows a schema.",
        "Check the files.")
    FAILED_READ_FILE = ("FAILED_READ_FILE.NO_HINT", "KD001",
        "A data file of the table is damaged or cannot be opened.",
        "Bring the file back, grant access, or RESTORE an older version.")
    FAILED_READ_FILE_NOT_EXIST = ("FAILED_READ_FILE.FILE_NOT_EXIST", "KD001",
        "A data file that the log names is not there.",
        "Bring the file back, or RESTORE a version that does not need it.")
    FAILED_READ_FILE_FOOTER = ("DELTA_FAILED_READ_FILE_FOOTER", "KD001",
        "A file is no Parquet, or is damaged.",
        "Remove or rewrite the file that the message names.")
    INVALID_PARTITION_COLUMN_NAME = ("DELTA_INVALID_PARTITION_COLUMN_NAME", "42996",
        "A directory names a column that cannot be one.",
        "Rename the directory.")
    UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME = ("DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME", "KD009",
        "Directories have more or fewer partition columns than were named.",
        'Pass them all, such as `"month INT"`.')
    UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME = ("DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME", "KD009",
        "Directories have another partition column than was named.",
        "Pass the names in the order of the directories.")
    FAILED_CAST_PARTITION_VALUE = ("DELTA_FAILED_CAST_PARTITION_VALUE", "22018",
        "A directory's value does not have the named type.",
        "Name another type, or correct the directory.")
    UNEXPECTED_PARTITION_SCHEMA_FROM_USER = ("DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER", "KD009",
        "The named partition columns are not the catalog's.",
        "Omit them, or name the catalog's.")
    CONVERSION_NO_PARTITION_FOUND = ("DELTA_CONVERSION_NO_PARTITION_FOUND", "42KD6",
        "The catalog knows no partition of the table.",
        "`MSCK REPAIR TABLE` first.")
    CONVERT_METASTORE_METADATA_MISMATCH = ("DELTA_CONVERT_METASTORE_METADATA_MISMATCH", "42K03",
        "Catalog and log disagree on properties.",
        "Make them equal, or set the setting that the message names.")
    UNIVERSAL_FORMAT_VIOLATION = ("DELTA_UNIVERSAL_FORMAT_VIOLATION", "KD00E",
        "Iceberg cannot express the table, it asks for Iceberg metadata without IcebergCompat, or the name in the catalog is that of another table.",
        "Change the column, value or setting that the message names, then export again.")
    ICEBERG_COMPAT_CHANGE_VERSION_NEED_REWRITE = ("DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE", "KD00E",
        "Data files of the table do not keep the rules of the version.",
        "`REORG TABLE ... APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))` writes them again.")
    ICEBERG_COMPAT_VERSION_NOT_SUPPORTED = ("DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED", "KD00E",
        "There is no such version of IcebergCompat, or it is no part of the protocol yet.",
        "Choose version 1 or 2.")
    ICEBERG_COMPAT_DELETION_VECTORS_NOT_PURGED = ("DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_NOT_PURGED", "KD00E",
        "Data files of the table have deletion vectors.",
        "`REORG TABLE ... APPLY (PURGE)`, or `APPLY (UPGRADE UNIFORM (...))`.")
    ICEBERG_COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED = ("DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED", "KD00E",
        "Deletion vectors and IcebergCompat exclude each other.",
        "Set `delta.enableDeletionVectors` to false.")
    ICEBERG_COMPAT_FILES_NOT_ICEBERG_COMPAT = ("DELTA_ICEBERG_COMPAT_VIOLATION.FILES_NOT_ICEBERG_COMPAT", "KD00E",
        "A commit adds a file without a row count.",
        "Write its rows again, or restore another version.")
    ICEBERG_COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES = ("DELTA_ICEBERG_COMPAT_VIOLATION.REPLACE_TABLE_CHANGE_PARTITION_NAMES", "KD00E",
        "A partitioned table would be replaced by one with other partition columns.",
        "Keep the names of the partition columns, or set `delta.enableIcebergCompatV<n>` to false.")
    ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE = ("DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE", "KD00E",
        "Iceberg's readers, or version 1, do not know the type.",
        "Choose another type; version 2 has arrays and maps.")
    ICEBERG_COMPAT_UNSUPPORTED_TYPE_WIDENING = ("DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_TYPE_WIDENING", "KD00E",
        "Iceberg does not widen the one type to the other.",
        "Keep the type of the column.")
    ICEBERG_COMPAT_VERSION_MUTUAL_EXCLUSIVE = ("DELTA_ICEBERG_COMPAT_VIOLATION.VERSION_MUTUAL_EXCLUSIVE", "KD00E",
        "Two versions of IcebergCompat are enabled.",
        "Set the older one to false in the same statement.")
    ICEBERG_COMPAT_WRONG_REQUIRED_TABLE_PROPERTY = ("DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY", "KD00E",
        "IcebergCompat needs column mapping.",
        "Set `delta.columnMapping.mode` to name, too.")
    UNIVERSAL_FORMAT_CONVERSION_FAILED = ("DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED", "KD00E",
        "The Iceberg metadata of the table is damaged, or other exporters were faster.",
        "Follow the message: remove the folder `_iceberg`, or export again.")
    PARTITION_SCHEMA_IN_ICEBERG_TABLES = ("DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES", "42613",
        "Iceberg knows its partition columns itself.",
        "Leave them out.")
    UNSUPPORTED_ICEBERG_TABLE = ("DELTA_UNSUPPORTED_ICEBERG_TABLE", "0AKDC",
        "The Iceberg table has a feature without a Delta counterpart.",
        "Follow the message in Iceberg first.")
    WRONG_STATISTICS = ("DELTA_WRONG_STATISTICS", "KD00C",
        "A file's statistics are not those of its rows.",
        "Convert with NO STATISTICS, and report the writer of the file.")
    CATALOG_REQUEST_FAILED = ("DELTA_CATALOG_REQUEST_FAILED", "58030",
        "A catalog refused a request, did not answer it, or answered what no catalog may answer.",
        "The message names the request and the reason; check address, token and grants.")
    CATALOG_MANAGED_TABLE_BY_PATH = ("DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED", "KD00G",
        "A catalog-managed table was named by its path, where newer commits may be missing.",
        "Name the table by its catalog: `catalog.schema.table`.")
    UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION = ("DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION", "0AKDC",
        "Only its catalog may do this to a catalog-managed table, or the operation does not exist for such tables.",
        "Leave it to the catalog.")
    CATALOG_IS_BEHIND = ("DELTA_CATALOG_IS_BEHIND", "XXKDS",
        "A catalog no longer knows commits that it has ratified, for example after its database was restored from a backup.",
        "Write nothing; the administrator of the catalog must restore the missing commits.")
    CATALOG_ENTRY_NOT_UPDATED = ("DELTA_CATALOG_ENTRY_NOT_UPDATED", "XXKDS",
        "The log is written and valid, but the catalog entry was not updated.",
        "Correct the entry as the message says; do not repeat the statement.")
    SCHEMA_NOT_FOUND = ("SCHEMA_NOT_FOUND", "42704",
        "The catalog has no such database.",
        "Check the spelling, or create it: CREATE SCHEMA.")
    SCHEMA_ALREADY_EXISTS = ("SCHEMA_ALREADY_EXISTS", "42P06",
        "The catalog has a database of the name.",
        "Choose another name, or say IF NOT EXISTS.")
    CATALOG_NOT_FOUND = ("CATALOG_NOT_FOUND", "42P08",
        "The session has no catalog of the name.",
        "Check the spelling and the setting `spark.sql.catalog.NAME`.")
    INVALID_SCHEMA_OR_RELATION_NAME = ("INVALID_SCHEMA_OR_RELATION_NAME", "42602",
        "Spark's catalog takes no such name: letters of ASCII, digits and `_` only.",
        "Name the table differently, or by its path.")
    EXCEED_LIMIT_LENGTH = ("EXCEED_LIMIT_LENGTH", "54006",
        "A text is too long for the catalog.",
        "Shorten it.")
    REQUIRES_SINGLE_PART_NAMESPACE = ("REQUIRES_SINGLE_PART_NAMESPACE", "42K05",
        "A name has too many parts.",
        "Write `database.table`.")
    PATH_NOT_FOUND = ("PATH_NOT_FOUND", "42K03",
        "There is nothing at the path.",
        "Check the path.")
    PARQUET_TYPE_ILLEGAL = ("PARQUET_TYPE_ILLEGAL", "42846",
        "A Parquet file has a type that Spark does not know.",
        "Write the file with another type.")
    PARSE_SYNTAX_ERROR = ("PARSE_SYNTAX_ERROR", "42601",
        "The statement is wrong at the place that the message shows.",
        "See [SQL](sql.md).")
    DUPLICATE_KEY = ("DUPLICATE_KEY", "23505",
        "A property or option is there twice.",
        "Leave one out.")
    DESC_TABLE_COLUMN_NESTED = ("UNSUPPORTED_FEATURE.DESC_TABLE_COLUMN_NESTED", "0A000",
        "DESCRIBE shows top-level columns.",
        "Name the column.")

    # MERGE INTO
    MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW = ("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "21506",
        "Several source rows want to change one row of the target; the message names keys.",
        "Make the source unique by key, or narrow the conditions.")
    MERGE_SOURCE_CHANGED = ("DELTA_MERGE_SOURCE_CHANGED", "25000",
        "Files of the source changed while the statement read them.",
        "Run it again when no writer changes them.")
    MERGE_MISSING_WHEN = ("DELTA_MERGE_MISSING_WHEN", "42601",
        "A MERGE has no clause.",
        "Add a WHEN.")
    NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION = ("DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION", "42601",
        "A WHEN MATCHED without condition precedes another.",
        "Move it to the end.")
    NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION = ("DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION", "42601",
        "A WHEN NOT MATCHED without condition precedes another.",
        "Move it to the end.")
    NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION = ("DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION", "42601",
        "A WHEN NOT MATCHED BY SOURCE without condition precedes another.",
        "Move it to the end.")
    MERGE_UNRESOLVED_EXPRESSION = ("DELTA_MERGE_UNRESOLVED_EXPRESSION", "42601",
        "A name is a column of neither side.",
        "Use a column that the message lists; name the sides with aliases.")
    MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT = ("DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT", "42601",
        "A column belongs to another frame.",
        "Use columns of the source or the target.")
    MERGE_UNEXPECTED_ASSIGNMENT_KEY = ("DELTA_MERGE_UNEXPECTED_ASSIGNMENT_KEY", "22005",
        "The left side of an assignment is no column.",
        "Assign to a column or a field of it.")
    MERGE_ADD_VOID_COLUMN = ("DELTA_MERGE_ADD_VOID_COLUMN", "42K09",
        "A new column has no type.",
        "Cast it.")
    MERGE_INTO_EMPTY_SCHEMA_TARGET = ("DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET", "428GU",
        "The target has no columns.",
        "Add columns, or allow schema evolution.")
    UPDATE_SCHEMA_MISMATCH_EXPRESSION = ("DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", "42846",
        "A value has a type that the column cannot take.",
        "Cast it.")
    CONFLICT_SET_COLUMN = ("DELTA_CONFLICT_SET_COLUMN", "42701",
        "A column is assigned twice.",
        "Assign it once.")
    UNSUPPORTED_NESTED_FIELD_IN_OPERATION = ("DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION", "0AKDC",
        "A field inside an array or map cannot be changed alone.",
        "Assign the whole column.")
    DUPLICATE_COLUMNS_ON_INSERT = ("DELTA_DUPLICATE_COLUMNS_ON_INSERT", "42701",
        "An INSERT names a column twice.",
        "Name it once.")
    UNSUPPORTED_SUBQUERY = ("DELTA_UNSUPPORTED_SUBQUERY", "0AKDC",
        "A subquery is not possible here.",
        "Join it into the source, or run it first.")
    AGGREGATION_NOT_SUPPORTED = ("DELTA_AGGREGATION_NOT_SUPPORTED", "42903",
        "An aggregate or window function is not possible here.",
        "Compute it in the source.")
    NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED = ("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", "0AKDC",
        "A condition gives another answer each time.",
        "Compute it in the source.")
    INVALID_IDEMPOTENT_WRITES_OPTIONS = ("DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "42616",
        "`txnAppId` and `txnVersion` belong together.",
        "Set both.")
    SCHEMA_CHANGE_SINCE_ANALYSIS = ("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", "KD007",
        "The table's columns changed since the object was made.",
        "Make the `DeltaTable` or frame again.")
    FAILED_SCAN_WITH_HISTORICAL_VERSION = ("DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION", "KD002",
        "An old version cannot be changed.",
        "Name the table without a version.")
    CANNOT_UP_CAST_DATATYPE = ("CANNOT_UP_CAST_DATATYPE", "42846",
        "A value might not fit the column.",
        "Cast it.")
    CAST_INVALID_INPUT = ("CAST_INVALID_INPUT", "22018",
        "A text is no value of the column's type.",
        "Correct it, or use `try_cast`.")
    AMBIGUOUS_REFERENCE = ("AMBIGUOUS_REFERENCE", "42704",
        "A name means several columns.",
        "Qualify it with an alias.")
    FIELD_NOT_FOUND = ("FIELD_NOT_FOUND", "42704",
        "A struct lacks the field.",
        "Use one that the message lists.")
    INVALID_EXTRACT_BASE_FIELD_TYPE = ("INVALID_EXTRACT_BASE_FIELD_TYPE", "42000",
        "A field is taken from a value that is no struct.",
        "Correct the path.")
    INVALID_ATTRIBUTE_NAME_SYNTAX = ("INVALID_ATTRIBUTE_NAME_SYNTAX", "42601",
        "A text is no column name.",
        "Put odd names into backquotes.")
    UNSUPPORTED_NESTED_FIELD_IN_UPDATE = ("DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE", "0A000",
        "This field cannot be updated alone.",
        "Assign the whole column.")
    UNSUPPORTED_EXPR_FOR_OPERATOR = ("UNSUPPORTED_EXPR_FOR_OPERATOR", "42K0E",
        "An expression is not possible in this clause.",
        "Compute it beforehand.")
    DEFAULT_PLACEMENT_INVALID = ("DEFAULT_PLACEMENT_INVALID", "42608",
        "DEFAULT is inside an expression.",
        "Write it alone.")
    INVALID_NON_DETERMINISTIC_EXPRESSIONS = ("INVALID_NON_DETERMINISTIC_EXPRESSIONS", "42K0E",
        "An expression gives another answer each time.",
        "Compute it in the source.")
    JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE = ("JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "42K0E",
        "ON is no condition.",
        "Write a comparison.")
    OPERATION_NOT_ALLOWED_DETAIL = ("DELTA_OPERATION_NOT_ALLOWED_DETAIL", "0AKDC",
        "The statement is not possible for Delta tables.",
        "See [SQL](sql.md).")
    INVALID_DEFAULT_VALUE = ("INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION", "42623",
        "The default of a column names something that does not exist.",
        "Use constants and functions of Spark.")
    INSERT_TOO_MANY_DATA_COLUMNS = ("INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS", "21S01",
        "An INSERT has more values than the table has columns.",
        "Leave columns out, or list the columns to fill.")
    INSERT_NOT_ENOUGH_DATA_COLUMNS = ("INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS", "21S01",
        "An INSERT has fewer values than the table has columns.",
        "Add columns, or list the columns to fill.")
    INSERT_AMBIGUOUS_COLUMN = ("INCOMPATIBLE_DATA_FOR_TABLE.AMBIGUOUS_COLUMN_NAME", "KD000",
        "Two columns of an INSERT BY NAME have one name.",
        "Give the columns different names.")
    INSERT_NO_DATA = ("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA", "KD000",
        "A column of the table has no value in an INSERT BY NAME.",
        "Add the column to the data.")
    INSERT_EXTRA_COLUMNS = ("INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS", "KD000",
        "An INSERT BY NAME has columns that the table lacks.",
        "Leave the columns out, or write WITH SCHEMA EVOLUTION.")
    INSERT_STRUCT_MISSING_FIELDS = ("INCOMPATIBLE_DATA_FOR_TABLE.STRUCT_MISSING_FIELDS", "KD000",
        "A struct in an INSERT lacks fields that the column has.",
        "Add the fields to the data.")
    INSERT_EXTRA_STRUCT_FIELDS = ("INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_STRUCT_FIELDS", "KD000",
        "A struct in an INSERT has fields that the column lacks.",
        "Leave the fields out of the data.")
    INSERT_CANNOT_SAFELY_CAST = ("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST", "KD000",
        "A column does not take values of the type in an INSERT.",
        "Cast the values in the query.")
    INSERT_PARTITION_SPEC_IF_NOT_EXISTS = ("UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS", "0A000",
        "IF NOT EXISTS is not possible in PARTITION.",
        "Leave it out.")
    OVERWRITE_BY_SUBQUERY = ("UNSUPPORTED_FEATURE.OVERWRITE_BY_SUBQUERY", "0A000",
        "A condition of REPLACE WHERE has a subquery.",
        "Run the subquery first, and write its values into the condition.")
    UNSUPPORTED_CONSTRAINT_CHARACTERISTIC = ("UNSUPPORTED_CONSTRAINT_CHARACTERISTIC", "0A000",
        "A constraint has a word that has no effect here.",
        "Leave the word out.")
    TABLE_OPERATION_NOT_SUPPORTED = ("UNSUPPORTED_FEATURE.TABLE_OPERATION", "0A000",
        "The table cannot do this.",
        "Follow the message.")
    SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN = ("DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN", "42P10",
        "A column of SHOW PARTITIONS is no partition column.",
        "Name partition columns as the table spells them.")
    SHOW_PARTITION_IN_NON_PARTITIONED_TABLE = ("DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE", "42809",
        "The table has no partitions.",
        "Nothing to show.")
    COLUMN_ALREADY_EXISTS = ("COLUMN_ALREADY_EXISTS", "42711",
        "The table has the column.",
        "Choose another name.")
    OPERATION_NOT_ALLOWED = ("DELTA_OPERATION_NOT_ALLOWED", "0AKDC",
        "The statement is not possible for this table.",
        "Follow the message.")
    VALUE_NOT_PLAIN_COLUMN_REFERENCE = ("VALUE_NOT_PLAIN_COLUMN_REFERENCE", "42601",
        "A column is required here, and the expression is not one.",
        "Name a column.")
    FILTER_NOT_BOOLEAN = ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "42K09",
        "A condition is no boolean.",
        "Write a comparison.")
    INVALID_CONF_VALUE_TYPE = ("INVALID_CONF_VALUE.TYPE_MISMATCH", "22022",
        "A boolean setting has another value.",
        "Set it to true or false, or unset it.")
    UNSUPPORTED_SETTING = ("DELTA_UNSUPPORTED_SETTING", "0A000",
        "An unsupported setting of delta-spark would change the statement.",
        "Unset it, or set its default.")
    DYNAMIC_PARTITION_OVERWRITE_DISABLED = ("DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED", "0A000",
        "The session forbids an overwrite of partitions.",
        "Set `spark.databricks.delta.dynamicPartitionOverwrite.enabled` to true, or overwrite with `replaceWhere`.")
    INVALID_CONF_VALUE = ("INVALID_CONF_VALUE.OUT_OF_RANGE_OF_OPTIONS", "22022",
        "A setting has an invalid value.",
        "Set a value that the message lists; [configuration](configuration.md).")
    CONSTRAINT_DATA_TYPE_MISMATCH = ("DELTA_CONSTRAINT_DATA_TYPE_MISMATCH", "42K09",
        "A column of a CHECK constraint would change its type.",
        "Drop the constraint first.")
    GENERATED_COLUMNS_DATA_TYPE_MISMATCH = ("DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH", "42K09",
        "The source of a generated column would change its type.",
        "Cast to its present type.")

    IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED = ("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", "42808",
        "Identity columns are not updated.",
        "Leave the column out.")
    IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED = ("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", "42808",
        "The column is GENERATED ALWAYS.",
        "Leave the column out of the rows.")
    IDENTITY_COLUMN_INCONSISTENT_METADATA = ("DELTA_IDENTITY_COLUMN_INCONSISTENT_METADATA", "42000",
        "An identity column's start, step and mark do not fit.",
        "`ALTER TABLE ... SYNC IDENTITY`.")
    ARITHMETIC_OVERFLOW = ("ARITHMETIC_OVERFLOW", "22003",
        "A result is outside of its type.",
        "Cast to a wider type.")
    OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS = ("DELTA_OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS_NOT_SUPPORTED", "0A000",
        "A view of a table with generated columns cannot be changed.",
        "Name the table.")

    # definitions of tables and their properties
    UNKNOWN_CONFIGURATION = ("DELTA_UNKNOWN_CONFIGURATION", "F0000",
        "There is no such table property.",
        "Check its spelling.")
    CANNOT_MODIFY_TABLE_PROPERTY = ("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", "42939",
        "This property is not set by hand.",
        "Leave it out.")
    CANNOT_CHANGE_PROVIDER = ("DELTA_CANNOT_CHANGE_PROVIDER", "42939",
        "A table keeps its format.",
        "Make a new one.")
    CANNOT_CHANGE_LOCATION = ("DELTA_CANNOT_CHANGE_LOCATION", "42601",
        "A table keeps its location.",
        "Make a new one, or clone it.")
    ADD_CONSTRAINTS = ("DELTA_ADD_CONSTRAINTS", "0A000",
        "Constraints are no properties.",
        "`ALTER TABLE ... ADD CONSTRAINT`.")
    CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES = (
        "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES", "42616",
        "The commits of a catalog-managed table are ordered by in-commit timestamps.",
        "Leave their three properties out of the statement.")
    UNSET_NON_EXISTENT_PROPERTY = ("DELTA_UNSET_NON_EXISTENT_PROPERTY", "42616",
        "The table does not have the property.",
        "Write IF EXISTS.")
    UNSUPPORTED_FEATURES_IN_CONFIG = ("DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", "56038",
        "A property names a feature that does not exist.",
        "Check its spelling; [protocol coverage](protocol-coverage.md).")
    UNSUPPORTED_FEATURE_STATUS = ("DELTA_UNSUPPORTED_FEATURE_STATUS", "0AKDE",
        "A feature's property is neither `supported` nor `enabled`.",
        "Set `supported`.")
    ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION = ("DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION", "55000",
        "Row tracking is enabled and suspended at once.",
        "Set one of both.")
    CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE = ("DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED", "42000",
        "Clustering is no property.",
        "Write CLUSTER BY.")
    ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE = ("DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED", "42000",
        "Clustering is no property.",
        "`ALTER TABLE ... CLUSTER BY`.")
    ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE = ("DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED", "42000",
        "A partitioned table is not clustered.",
        "Make a new table with CLUSTER BY.")
    CLUSTER_BY_INVALID_NUM_COLUMNS = ("DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", "54000",
        "Too many clustering columns.",
        "Name four at most.")
    CLUSTER_BY_WITH_PARTITIONED_BY = ("DELTA_CLUSTER_BY_WITH_PARTITIONED_BY", "42613",
        "A table is clustered or partitioned.",
        "Use one of both.")
    CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED = ("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", "0A000",
        "A column of this type has no order.",
        "Cluster by another.")
    CLUSTERING_COLUMNS_MISMATCH = ("DELTA_CLUSTERING_COLUMNS_MISMATCH", "42P10",
        "`clusterBy` of a writer differs from the table's clustering columns.",
        "Leave `clusterBy` out, or ALTER TABLE ... CLUSTER BY first.")
    CLUSTERING_COLUMN_MISSING_STATS = ("DELTA_CLUSTERING_COLUMN_MISSING_STATS", "22000",
        "A clustering column gets no statistics.",
        "Name it in `delta.dataSkippingStatsColumns`.")
    CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE = ("DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE", "42000",
        "A clustered table would become partitioned.",
        "Drop it and make a new one.")
    CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION = ("DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION", "42601",
        "A builder has neither name nor place.",
        "Call `tableName` or `location`.")
    CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH = ("DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH", "0AKDC",
        "The path in the name is not the location.",
        "Give one of both.")
    SET_LOCATION_SCHEMA_MISMATCH = ("DELTA_SET_LOCATION_SCHEMA_MISMATCH", "42KD7",
        "The table at the new location has other columns or partitions.",
        "Choose another location, or set `spark.databricks.delta.alterLocation.bypassSchemaCheck`.")
    CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER = ("DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER", "42613",
        "The location of a table named by its path is fixed.",
        "Name a table of the catalog.")
    CREATE_TABLE_SCHEME_MISMATCH = ("DELTA_CREATE_TABLE_SCHEME_MISMATCH", "42KD7",
        "The existing table has other columns.",
        "Leave the columns out, or REPLACE.")
    CREATE_TABLE_WITH_DIFFERENT_PARTITIONING = ("DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING", "42KD7",
        "The existing table has other partitions.",
        "Leave them out, or REPLACE.")
    CREATE_TABLE_WITH_DIFFERENT_PROPERTY = ("DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY", "42KD7",
        "The existing table has other properties.",
        "Leave them out, or ALTER TABLE.")
    CREATE_TABLE_WITH_DIFFERENT_CLUSTERING = ("DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING", "42KD7",
        "The existing table has another clustering.",
        "Leave it out, or ALTER TABLE.")
    CREATE_TABLE_WITH_NON_EMPTY_LOCATION = ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "42601",
        "There are files at the location.",
        "Choose another, or convert them.")
    SCHEMA_NOT_PROVIDED = ("DELTA_SCHEMA_NOT_PROVIDED", "42908",
        "A new table has no columns.",
        "Name columns, or use AS SELECT.")
    TABLE_OR_VIEW_ALREADY_EXISTS = ("TABLE_OR_VIEW_ALREADY_EXISTS", "42P07",
        "The catalog has the name.",
        "Use IF NOT EXISTS or another name.")
    TABLE_OR_VIEW_NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "42P01",
        "The catalog lacks the name.",
        "Check its spelling and the current database.")
    TABLE_LOCATION_MISMATCH = ("DELTA_TABLE_LOCATION_MISMATCH", "42613",
        "The catalog's table is elsewhere.",
        "Use its location, or another name.")
    NOT_A_DELTA_TABLE = ("DELTA_NOT_A_DELTA_TABLE", "0AKDD",
        "The statement needs a Delta table.",
        "Convert it first.")
    ILLEGAL_USAGE = ("DELTA_ILLEGAL_USAGE", "42601",
        "An option is not possible with this call.",
        "Leave it out.")
    REPLACE_WHERE_IN_OVERWRITE = ("DELTA_REPLACE_WHERE_IN_OVERWRITE", "42613",
        "`replaceWhere` belongs to mode `overwrite`.",
        "Set the mode.")
    AMBIGUOUS_PATHS_IN_CREATE_TABLE = ("DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE", "42613",
        "Two paths are given.",
        "Give one.")
    NESTED_NOT_NULL_CONSTRAINT = ("DELTA_NESTED_NOT_NULL_CONSTRAINT", "0AKDC",
        "NOT NULL inside an array or map is not checked.",
        "Leave it out, or set the setting that the message names.")
    INVALID_GENERATED_COLUMN_REFERENCES = ("DELTA_INVALID_GENERATED_COLUMN_REFERENCES", "42621",
        "A generated column is computed from none, or from another generated one.",
        "Use plain columns.")
    GENERATED_COLUMNS_EXPR_TYPE_MISMATCH = ("DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", "42K09",
        "A generated column's expression has another type.",
        "Cast it.")
    UNSUPPORTED_EXPRESSION_GENERATED_COLUMN = ("UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "42621",
        "A generated column calls a function that is not built in.",
        "Write the expression without it.")
    NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN = ("DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN", "42621",
        "The expression gives another answer each time.",
        "Use one that does not.")
    AGGREGATE_IN_GENERATED_COLUMN = ("DELTA_AGGREGATE_IN_GENERATED_COLUMN", "42621",
        "The expression has an aggregate.",
        "Use one of a single row.")
    IDENTITY_COLUMNS_ILLEGAL_STEP = ("DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP", "42611",
        "The step is 0.",
        "Choose another.")
    IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE = ("DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", "428H2",
        "Identity columns are BIGINT.",
        "Change the type.")
    IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED = ("DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED", "42601",
        "An identity column cannot partition.",
        "Partition by another.")
    IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED = ("DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED", "429BQ",
        "An identity column cannot be replaced.",
        "Leave it as it is.")
    IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN = ("DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN", "429BQ",
        "The column is no identity column.",
        "Name one.")
    UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP = ("DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP", "0AKDC",
        "The columns cannot become these.",
        "Add or drop columns one by one.")
    IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED = ("DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED", "429BQ",
        "An identity column cannot be changed so.",
        "Leave it as it is.")
    WRONG_COLUMN_DEFAULTS_FEATURE_NOT_ENABLED = ("WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED", "0AKDE",
        "The table has no column defaults.",
        "Set `delta.feature.allowColumnDefaults` = `supported`.")
    WRONG_COLUMN_DEFAULTS_ADD_COLUMN = ("WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED", "0AKDC",
        "A new column cannot have a default for existing rows.",
        "Add it, then set the default.")

    # ALTER TABLE
    FIELD_ALREADY_EXISTS = ("FIELD_ALREADY_EXISTS", "42710",
        "The struct has the field.",
        "Choose another name.")
    INVALID_FIELD_NAME = ("INVALID_FIELD_NAME", "42000",
        "The path contains a value that is no struct.",
        "Correct the path.")
    UNRESOLVED_COLUMN = ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703",
        "There is no such column.",
        "Use one that the message lists.")
    UNSUPPORTED_RENAME_COLUMN = ("DELTA_UNSUPPORTED_RENAME_COLUMN", "0AKDC",
        "Columns are renamed with column mapping only.",
        "Set `delta.columnMapping.mode` = `name`.")
    UNSUPPORTED_DROP_COLUMN = ("DELTA_UNSUPPORTED_DROP_COLUMN", "0AKDC",
        "Columns are dropped with column mapping only.",
        "Set `delta.columnMapping.mode` = `name`.")
    UNSUPPORTED_DROP_PARTITION_COLUMN = ("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN", "0AKDC",
        "A partition column stays.",
        "Make a new table.")
    UNSUPPORTED_DROP_CLUSTERING_COLUMN = ("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN", "0AKDC",
        "A clustering column stays.",
        "ALTER TABLE ... CLUSTER BY others first.")
    UNSUPPORTED_DROP_NESTED_COLUMN = ("DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE", "0AKDC",
        "A field of this place cannot be dropped.",
        "Drop the column.")
    DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA = ("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", "0AKDC",
        "The last column stays.",
        "Drop the table.")
    UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP = ("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", "0AKDC",
        "The type cannot become this one.",
        "Add a column, or turn type widening on.")
    UNSUPPORTED_COMMENT_MAP_ARRAY = ("DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY", "0AKDC",
        "The inside of a map or array has no comment.",
        "Comment the column.")
    INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING = ("DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING", "42K05",
        "Without column mapping a name may not have these characters.",
        "Rename the columns first.")
    UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE = ("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", "0AKDC",
        "The mode cannot become this one.",
        "Only `none` to `name`, and either of the mapped ones to `none`.")
    CONSTRAINT_ALREADY_EXISTS = ("DELTA_CONSTRAINT_ALREADY_EXISTS", "42710",
        "The constraint's name is taken.",
        "Choose another, or drop it first.")
    CONSTRAINT_DOES_NOT_EXIST = ("DELTA_CONSTRAINT_DOES_NOT_EXIST", "42704",
        "There is no such constraint.",
        "Write IF EXISTS.")
    CONSTRAINT_DEPENDENT_COLUMN_CHANGE = ("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "42K09",
        "A CHECK constraint uses the column.",
        "Drop the constraint first.")
    GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE = ("DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE", "42K09",
        "A generated column uses the column.",
        "Drop that column first.")
    INVALID_CONSTRAINT_NAME = ("DELTA_INVALID_CONSTRAINT_NAME", "42939",
        "The constraint's name is kept for internal ones.",
        "Choose another.")
    NEW_CHECK_CONSTRAINT_VIOLATION = ("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", "23512",
        "Existing rows break the new constraint.",
        "Correct them first.")
    NON_BOOLEAN_CHECK_CONSTRAINT = ("DELTA_NON_BOOLEAN_CHECK_CONSTRAINT", "42621",
        "A CHECK is no condition.",
        "Write a comparison.")
    NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT = ("DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT", "42621",
        "A CHECK gives another answer each time.",
        "Use one that does not.")
    AGGREGATE_IN_CHECK_CONSTRAINT = ("DELTA_AGGREGATE_IN_CHECK_CONSTRAINT", "42621",
        "A CHECK has an aggregate.",
        "Use a condition of a single row.")

    # protocol upgrades and downgrades
    FEATURE_DROP_FEATURE_NOT_PRESENT = ("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "55000",
        "The table lacks the feature.",
        "Nothing to drop.")
    FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY = ("DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY", "42000",
        "A property was named, no feature.",
        "Name the feature.")
    FEATURE_DROP_NONREMOVABLE_FEATURE = ("DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "0AKDC",
        "The feature cannot be dropped.",
        "Copy the rows to a new table.")
    FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE = ("DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", "0AKDC",
        "The feature is unknown here.",
        "Drop it with an engine that has it.")
    FEATURE_DROP_DEPENDENT_FEATURE = ("DELTA_FEATURE_DROP_DEPENDENT_FEATURE", "55000",
        "Another feature needs it.",
        "Drop that one first.")
    FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED = ("DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED", "42000",
        "The feature needs no truncation of the history.",
        "Leave TRUNCATE HISTORY out.")
    FEATURE_DROP_CHECKPOINT_PROTECTION_NEEDS_TRUNCATION = ("DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION", "55000",
        "Old versions still need the feature.",
        "Add TRUNCATE HISTORY.")
    FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT = ("DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD", "22KD0",
        "Old versions with the feature are less than a day old.",
        "Wait, then drop it again.")
    FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD = ("DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD", "22KD0",
        "The feature is now unused, but older versions use it.",
        "Wait until they have expired, then drop it again; or leave TRUNCATE HISTORY out.")
    FEATURE_DROP_HISTORICAL_VERSIONS_EXIST = ("DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", "22KD0",
        "Older versions still use the feature.",
        "Wait until they have expired, then drop it again; or leave TRUNCATE HISTORY out.")
    FEATURE_DROP_CONFLICT_REVALIDATION_FAIL = ("DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL", "40000",
        "Another writer used the feature meanwhile.",
        "Run the statement again.")
    FEATURE_DROP_CHECKPOINT_FAILED = ("DELTA_FEATURE_DROP_CHECKPOINT_FAILED", "22KD0",
        "A checkpoint that the drop needs could not be written.",
        "Run the statement again.")
    CANNOT_DROP_CHECK_CONSTRAINT_FEATURE = ("DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", "0AKDE",
        "The table has CHECK constraints.",
        "Drop them first.")

    # VACUUM, RESTORE, CLONE, GENERATE
    VACUUM_RETENTION_PERIOD_NEGATIVE = ("DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE", "22003",
        "The retention is negative.",
        "Give 0 hours or more.")
    VACUUM_RETENTION_PERIOD_TOO_SHORT = ("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "22003",
        "The retention is shorter than the table's: files of running writers might be deleted.",
        "Give a longer one, or turn the check off if no writer is active.")
    CANNOT_RESTORE_TABLE_VERSION = ("DELTA_CANNOT_RESTORE_TABLE_VERSION", "22003",
        "The version to restore does not exist.",
        "Choose one of `DESCRIBE HISTORY`.")
    CANNOT_RESTORE_TIMESTAMP_EARLIER = ("DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER", "22003",
        "The time to restore is before the oldest version.",
        "Choose a later one.")
    CANNOT_RESTORE_TIMESTAMP_GREATER = ("DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER", "22003",
        "The time to restore is after the newest version.",
        "Choose an earlier one.")
    UNSUPPORTED_DEEP_CLONE = ("DELTA_UNSUPPORTED_DEEP_CLONE", "0A000",
        "Only shallow clones are made.",
        "`CREATE TABLE ... AS SELECT` copies rows.")
    TABLE_NAME_ALREADY_EXISTS = ("DELTA_TABLE_ALREADY_EXISTS", "42P07",
        "The catalog has the clone's name.",
        "Use IF NOT EXISTS or REPLACE.")
    CLONE_UNSUPPORTED_SOURCE = ("DELTA_CLONE_UNSUPPORTED_SOURCE", "0AKDC",
        "The source of a clone is Parquet, Iceberg or another format.",
        "CONVERT TO DELTA the source, or copy its rows by `CREATE TABLE ... AS SELECT`.")
    CLONE_AMBIGUOUS_TARGET = ("DELTA_CLONE_AMBIGUOUS_TARGET", "42613",
        "A clone has two targets.",
        "Give one.")
    CANNOT_REPLACE_MISSING_TABLE = ("DELTA_CANNOT_REPLACE_MISSING_TABLE", "42P01",
        "There is no table to replace.",
        "Use CREATE OR REPLACE.")
    INVALID_CLONE_PATH = ("DELTA_INVALID_CLONE_PATH", "22KD1",
        "A clone's path is not absolute.",
        "Write the whole path.")
    UNSUPPORTED_NON_EMPTY_CLONE = ("DELTA_UNSUPPORTED_NON_EMPTY_CLONE", "0AKDC",
        "The clone's target has files.",
        "Choose another, or REPLACE.")
    TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED = ("DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED", "0AKDC",
        "TRUNCATE takes whole tables.",
        "DELETE with a condition.")
    UNSUPPORTED_GENERATE_MODE = ("DELTA_MODE_NOT_SUPPORTED", "0AKDC",
        "There is no such mode.",
        "Use `symlink_format_manifest`.")
    UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING = ("DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING", "0AKDC",
        "Readers of manifests know no column mapping.",
        "Leave manifests off.")
    MANIFEST_WITH_DELETION_VECTORS = ("DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS", "0A000",
        "Readers of manifests know no deletion vectors.",
        "REORG TABLE ... APPLY (PURGE) first.")

    # recipes
    SOURCE_KEY_NOT_UNIQUE = ("DELTA_SOURCE_KEY_NOT_UNIQUE", "21000",
        "The source has several rows of one key; the message names the key.",
        "Make keys unique, or pass `on_duplicate_source`.")
    SOURCE_SEQUENCE_AMBIGUOUS = ("DELTA_SOURCE_SEQUENCE_AMBIGUOUS", "21000",
        "Different rows of one key have one sequence.",
        "Order them by more columns.")
    SOURCE_SEQUENCE_IS_NULL = ("DELTA_SOURCE_SEQUENCE_IS_NULL", "22004",
        "A row has no sequence.",
        "Leave such rows out, or give them one.")
    SOURCE_OUTSIDE_SCOPE = ("DELTA_SOURCE_OUTSIDE_SCOPE", "44000",
        "A row of a snapshot is outside of the scope.",
        "Filter the source, or widen the scope.")
    SOURCE_IS_EMPTY = ("DELTA_SOURCE_IS_EMPTY", "02000",
        "A snapshot has no rows, so all of its scope would be deleted.",
        "Pass `allow_empty=True` if that is intended.")
    EXPECTATION_VIOLATED = ("DELTA_EXPECTATION_VIOLATED", "44000",
        "Rows violate an expectation with `fail`; the message has their number and examples.",
        "Correct the rows, or let the expectation drop them.")
    INVALID_ARGUMENT = ("DELTA_INVALID_ARGUMENT", "42616",
        "An argument is invalid; the message names it and the allowed values.",
        "Change it.")
    # fmt: on

    def __init__(self, error_class: str, sqlstate: str, cause: str, next_step: str) -> None:
        self.error_class = error_class
        """The error class of delta-spark, for example ``DELTA_CONCURRENT_APPEND``."""
        self.sqlstate = sqlstate
        """The SQLSTATE that belongs to the error class."""
        self.cause = cause
        self.next_step = next_step


class Message(Enum):
    """Texts of errors. Names may change; codes and texts are what users see."""

    # protocol/actions
    DELETION_VECTOR_CARDINALITY_MISMATCH_BITMAP = (
        ErrorCode.DELETION_VECTOR_CARDINALITY_MISMATCH,
        "{descriptor} holds {bitmap_count} positions, the log says {cardinality}.",
    )
    DELETION_VECTOR_CHECKSUM_MISMATCH = (
        ErrorCode.DELETION_VECTOR_CHECKSUM_MISMATCH,
        "{descriptor} has the CRC-32 {data:#010x}, its file says {crc:#010x}: the file is damaged.",
    )
    DELETION_VECTOR_INVALID = (
        ErrorCode.DELETION_VECTOR_INVALID,
        "{descriptor} is invalid: {problem}.",
    )
    DELETION_VECTOR_SIZE_MISMATCH = (
        ErrorCode.DELETION_VECTOR_SIZE_MISMATCH,
        "{descriptor} has {size} bytes, the log says {size_bytes}.",
    )
    LOG_CORRUPTED_LINE = (
        ErrorCode.LOG_CORRUPTED,
        "{problem}: {line}",
    )

    # protocol/features
    ARITHMETIC_OVERFLOW_IDENTITY = (
        ErrorCode.ARITHMETIC_OVERFLOW,
        "The identity column {column} has no {num_values} values left: they start at "
        "{next_value} with step {step} and would leave the range of BIGINT.",
    )
    CANNOT_MODIFY_TABLE_PROPERTY = (
        ErrorCode.CANNOT_MODIFY_TABLE_PROPERTY,
        "The Delta table configuration {property} cannot be specified by the user",
    )
    COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN = (
        ErrorCode.COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN,
        "Data skipping is not supported for partition column '{column}': files are skipped "
        "by its values anyway. Leave it out of delta.dataSkippingStatsColumns.",
    )
    COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE = (
        ErrorCode.COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE,
        "Data skipping is not supported for column '{column}' of type {type}. Leave it out "
        "of delta.dataSkippingStatsColumns, which takes numbers, text, dates and timestamps.",
    )
    COLUMN_NOT_FOUND_IN_SCHEMA_STATISTICS = (
        ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA,
        "Couldn't find column {column}, which delta.dataSkippingStatsColumns names, in: {schema}.",
    )
    DUPLICATE_DATA_SKIPPING_COLUMNS = (
        ErrorCode.DUPLICATE_DATA_SKIPPING_COLUMNS,
        "Duplicated data skipping columns found: {twice}. Name each once in "
        "delta.dataSkippingStatsColumns.",
    )
    FEATURES_REQUIRE_MANUAL_ENABLEMENT = (
        ErrorCode.FEATURES_REQUIRE_MANUAL_ENABLEMENT,
        "The changed schema needs table features that the table does not list and that are not "
        "added unasked, because older readers could not open it any more: {listed}. Enable "
        "them first: ALTER TABLE ... SET TBLPROPERTIES ({properties}), or write to a new table.",
    )
    IDENTITY_COLUMN_INCONSISTENT_METADATA = (
        ErrorCode.IDENTITY_COLUMN_INCONSISTENT_METADATA,
        "Inconsistent IDENTITY metadata for column {column} detected: start is {start}, step "
        "is {step}, allowExplicitInsert is {explicit}.",
    )
    INVALID_PROTOCOL_VERSION = (
        ErrorCode.INVALID_PROTOCOL_VERSION,
        "The table needs reader version {reader_version} and writer version "
        "{writer_version}, but puredelta supports reader versions up to {reader_version_max} "
        "and writer versions up to {writer_version_max}.",
    )
    INVALID_TABLE_PROPERTY_FEATURE = (
        ErrorCode.INVALID_TABLE_PROPERTY,
        "The table property '{feature_prefix}{requested}' names no table feature that "
        "puredelta knows.",
    )
    INVALID_TABLE_PROPERTY_RETENTION = (
        ErrorCode.INVALID_TABLE_PROPERTY,
        "The table property delta.logRetentionDuration({log}) needs to be greater than or "
        "equal to delta.deletedFileRetentionDuration({files}).",
    )
    INVALID_TABLE_PROPERTY_VALUE = (
        ErrorCode.INVALID_TABLE_PROPERTY,
        "The table property {property!r} cannot be {value!r}: it {error}.",
    )
    INVALID_TABLE_PROPERTY_VECTORS_AND_MANIFESTS = (
        ErrorCode.INVALID_TABLE_PROPERTY,
        "Persistent deletion vectors and incremental symlink manifest generation are "
        "mutually exclusive: delta.enableDeletionVectors and "
        "delta.compatibility.symlinkFormatManifest.enabled cannot both be true.",
    )
    INVALID_TABLE_PROPERTY_VERSION = (
        ErrorCode.INVALID_TABLE_PROPERTY,
        "The table property {property!r} cannot be '{value}': it needs to be one of {versions}.",
    )
    INVALID_TABLE_PROPERTY_VERSION_RANGE = (
        ErrorCode.INVALID_TABLE_PROPERTY,
        "The table property {property!r} cannot be {text!r}: it needs to be between 1 and "
        "{highest}.",
    )
    LOG_CORRUPTED_COLUMN_MAPPING = (
        ErrorCode.LOG_CORRUPTED,
        "Column mapping is on, but column {column!r} has no {key!r} in its metadata.",
    )
    LOG_CORRUPTED_DUPLICATE_NAMES = (
        ErrorCode.LOG_CORRUPTED,
        "Column mapping gives the {what} {twice} to several columns of ({names}).",
    )
    LOG_CORRUPTED_PROTOCOL = (
        ErrorCode.LOG_CORRUPTED,
        "The table's protocol action contradicts itself: {problem}.",
    )
    OPERATION_NOT_ALLOWED_PROPERTY = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "The table property {property} cannot be set: {not_implemented} is not implemented.",
    )
    READ_FEATURE_PROTOCOL_REQUIRES_WRITE_TABLE = (
        ErrorCode.READ_FEATURE_PROTOCOL_REQUIRES_WRITE,
        "The table's protocol has reader version {reader}, which needs writer version "
        "{writer_version_max}, but its writer version is {writer}.",
    )
    READ_FEATURE_PROTOCOL_REQUIRES_WRITE_UPGRADE = (
        ErrorCode.READ_FEATURE_PROTOCOL_REQUIRES_WRITE,
        "Unable to upgrade only the reader protocol version to use table features. Writer "
        "protocol version must be at least {writer_version_max} to proceed.",
    )
    ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION_BOTH = (
        ErrorCode.ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION,
        "Illegal table state was detected. Table properties `delta.enableRowTracking` and "
        "`delta.rowTrackingSuspended` are both set to true. The issue can be resolved by "
        "disabling any of the two table properties.",
    )
    UNKNOWN_CONFIGURATION = (
        ErrorCode.UNKNOWN_CONFIGURATION,
        "Unknown configuration was specified: {property}. To disable this check, set "
        "{arbitrary_properties_key}=true in the Spark session configuration.",
    )
    UNSUPPORTED_FEATURES_FOR_READ = (
        ErrorCode.UNSUPPORTED_FEATURES_FOR_READ,
        "puredelta cannot {action} this table because of its reader {noun} {listed}.",
    )
    UNSUPPORTED_FEATURES_FOR_WRITE = (
        ErrorCode.UNSUPPORTED_FEATURES_FOR_WRITE,
        "puredelta cannot {action} this table because of its writer {noun} {listed}.",
    )
    UNSUPPORTED_FEATURES_IN_CONFIG = (
        ErrorCode.UNSUPPORTED_FEATURES_IN_CONFIG,
        "Table features configured in the following Spark configs or Delta table properties "
        "are not recognized: {unknown}.",
    )
    UNSUPPORTED_FEATURE_STATUS = (
        ErrorCode.UNSUPPORTED_FEATURE_STATUS,
        'Expecting the status for table feature {feature} to be "supported", but got "{status}".',
    )

    # protocol/table: IcebergCompat
    ICEBERG_COMPAT_CHANGE_VERSION_NEED_REWRITE = (
        ErrorCode.ICEBERG_COMPAT_CHANGE_VERSION_NEED_REWRITE,
        "The validation of IcebergCompatV{version} has failed. Changing to IcebergCompatV{version} "
        "requires rewriting the table: {path} {lacks}. Please run REORG TABLE APPLY (UPGRADE "
        "UNIFORM (ICEBERG_COMPAT_VERSION = {version})).",
    )
    ICEBERG_COMPAT_VERSION_NOT_SUPPORTED = (
        ErrorCode.ICEBERG_COMPAT_VERSION_NOT_SUPPORTED,
        "The validation of IcebergCompatV{version} has failed. IcebergCompatVersion = {version} is "
        "not supported. Supported versions are between 1 and {maxVersion}",
    )
    ICEBERG_COMPAT_DELETION_VECTORS_NOT_PURGED = (
        ErrorCode.ICEBERG_COMPAT_DELETION_VECTORS_NOT_PURGED,
        "The validation of IcebergCompatV{version} has failed. IcebergCompatV{version} requires "
        "Deletion Vectors to be completely purged from the table, and {path} has one. Please run "
        "the REORG TABLE APPLY (PURGE) command.",
    )
    ICEBERG_COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED = (
        ErrorCode.ICEBERG_COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED,
        "The validation of IcebergCompatV{version} has failed. IcebergCompatV{version} requires "
        "Deletion Vectors to be disabled on the table first. Then run REORG PURGE command to purge "
        "the Deletion Vectors on the table.",
    )
    ICEBERG_COMPAT_FILES_NOT_ICEBERG_COMPAT = (
        ErrorCode.ICEBERG_COMPAT_FILES_NOT_ICEBERG_COMPAT,
        "The validation of IcebergCompatV{version} has failed. IcebergCompatV{version} requires a "
        "row count of every file, and {path} has none. Write its rows again.",
    )
    ICEBERG_COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES = (
        ErrorCode.ICEBERG_COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES,
        "The validation of IcebergCompatV{version} has failed. IcebergCompatV{version} doesn't "
        "support replacing partitioned tables with a differently-named partition spec, because "
        "Iceberg-Spark 1.1.0 doesn't. Prev Partition Spec: {prevPartitionSpec} New Partition Spec: "
        "{newPartitionSpec}",
    )
    ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE = (
        ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE,
        "The validation of IcebergCompatV{version} has failed. IcebergCompatV{version} does not "
        "support the data type {dataType} in your schema. Your schema: {schema}",
    )
    ICEBERG_COMPAT_UNSUPPORTED_TYPE_WIDENING = (
        ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_TYPE_WIDENING,
        "The validation of IcebergCompatV{version} has failed. IcebergCompatV{version} is "
        "incompatible with a type change applied to this table: Field {fieldPath} was changed from "
        "{prevType} to {newType}.",
    )
    ICEBERG_COMPAT_VERSION_MUTUAL_EXCLUSIVE = (
        ErrorCode.ICEBERG_COMPAT_VERSION_MUTUAL_EXCLUSIVE,
        "The validation of IcebergCompatV{version} has failed. Only one IcebergCompat version can "
        "be enabled, please explicitly disable all other IcebergCompat versions that are not "
        "needed.",
    )
    ICEBERG_COMPAT_WRONG_REQUIRED_TABLE_PROPERTY = (
        ErrorCode.ICEBERG_COMPAT_WRONG_REQUIRED_TABLE_PROPERTY,
        "The validation of IcebergCompatV{version} has failed. IcebergCompatV{version} requires "
        "table property '{key}' to be set to '{requiredValue}'. Current value: '{actualValue}'.",
    )
    UNIVERSAL_FORMAT_VIOLATION_ICEBERG_COMPAT_REQUIRED = (
        ErrorCode.UNIVERSAL_FORMAT_VIOLATION,
        "The validation of Universal Format ({format}) has failed: Requires IcebergCompat to be "
        "explicitly enabled in order for Universal Format (Iceberg) to be enabled on an existing "
        "table. Supported versions are IcebergCompatV1 and IcebergCompatV2.",
    )

    # protocol/schema
    COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE = (
        ErrorCode.COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE,
        "Found nested NullType in column {column} which is of {complex}. Delta doesn't "
        "support writing NullType in complex types. Cast it to another type.",
    )
    DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA = (
        ErrorCode.DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA,
        "Cannot drop column from a schema with a single column. Schema: {struct}.",
    )
    FIELD_ALREADY_EXISTS_ADD = (
        ErrorCode.FIELD_ALREADY_EXISTS,
        "Cannot add column, because `{column}` already exists in {schema}.",
    )
    FIELD_ALREADY_EXISTS_REPLACE = (
        ErrorCode.FIELD_ALREADY_EXISTS,
        "Cannot rename column, because `{column}` already exists in {schema}.",
    )
    FIELD_NOT_FOUND_PLACED = (
        ErrorCode.FIELD_NOT_FOUND,
        "No such struct field `{field}` in {names}: {field_name} cannot be placed after it.",
    )
    INVALID_FIELD_NAME = (
        ErrorCode.INVALID_FIELD_NAME,
        "Field name `{field}` is invalid: `{parent}` is not a struct but {found}.{hint}{shown}",
    )
    LOG_CORRUPTED_CHAR_VARCHAR = (
        ErrorCode.LOG_CORRUPTED,
        "A column of the table is described as {type!r}, which cannot be read from character "
        "{position} on.",
    )
    LOG_CORRUPTED_SCHEMA = (
        ErrorCode.LOG_CORRUPTED,
        "The schema in the table's metadata cannot be read: {problem}: {shown}",
    )
    STRUCT_ALL_VOID_FIELDS = (
        ErrorCode.STRUCT_ALL_VOID_FIELDS,
        "The Delta table is not writable because parts of the schema are not supported. "
        "Reason: The column {column} is a struct where all fields have VOID type. Cast one "
        "of them to another type.",
    )
    UNRESOLVED_COLUMN_FOUND = (
        ErrorCode.UNRESOLVED_COLUMN,
        "A column or field with name `{column}` cannot be resolved. There are: {names}.",
    )
    UNSUPPORTED_DATA_TYPES_USER_DEFINED = (
        ErrorCode.UNSUPPORTED_DATA_TYPES,
        "The schema holds the user-defined type {type!r}, which this library does not read",
    )
    UNSUPPORTED_DROP_NESTED_COLUMN = (
        ErrorCode.UNSUPPORTED_DROP_NESTED_COLUMN,
        "Can only drop nested columns from StructType. Found {parent} at {path}.",
    )

    # protocol/table
    ALL_COLUMNS_PARTITIONED = (
        ErrorCode.ALL_COLUMNS_PARTITIONED,
        "Cannot use all columns for partition columns ({resolved}): a table needs at least "
        "one more.",
    )
    CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED = (
        ErrorCode.CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED,
        "CLUSTER BY is not supported because the following column(s): {listed} don't support "
        "data skipping.",
    )
    CLUSTERING_COLUMN_MISSING_STATS = (
        ErrorCode.CLUSTERING_COLUMN_MISSING_STATS,
        "Clustering requires clustering columns to have stats. Couldn't find clustering "
        "column(s) '{missing}' in stats schema: {indexed}. Name them in "
        "delta.dataSkippingStatsColumns, or raise delta.dataSkippingNumIndexedCols.",
    )
    CLUSTER_BY_INVALID_NUM_COLUMNS = (
        ErrorCode.CLUSTER_BY_INVALID_NUM_COLUMNS,
        "CLUSTER BY supports up to {columns_max} clustering columns, but the table has "
        "{columns_count} clustering columns. Please remove the extra clustering columns.",
    )
    COLUMN_NOT_FOUND_IN_SCHEMA_CLUSTERING = (
        ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA,
        "Couldn't find column {column} in: {schema}. A table is clustered by columns and by "
        "fields of structs.",
    )
    DUPLICATE_COLUMNS_FOUND_CLUSTERING = (
        ErrorCode.DUPLICATE_COLUMNS_FOUND,
        "Found duplicate column(s): {twice}. The duplicate was found in CLUSTER BY.",
    )
    DUPLICATE_COLUMNS_FOUND_PARTITIONING = (
        ErrorCode.DUPLICATE_COLUMNS_FOUND,
        "Found duplicate column(s) in the partition columns: {names}.",
    )
    DUPLICATE_COLUMNS_FOUND_SCHEMA = (
        ErrorCode.DUPLICATE_COLUMNS_FOUND,
        "Found duplicate column(s) in the schema: {twice}. Names may not differ in upper and "
        "lower case only; rename or drop the others.",
    )
    FAILED_TO_MERGE_FIELDS = (
        ErrorCode.FAILED_TO_MERGE_FIELDS,
        "Failed to merge fields '{current}' and '{update}': {reason}",
    )
    INVALID_CHARACTERS_IN_COLUMN_NAMES = (
        ErrorCode.INVALID_CHARACTERS_IN_COLUMN_NAMES,
        "Found invalid character(s) among {invalid_characters!r} in the column names of your "
        "schema. Invalid column names: {names}. Use other characters, or enable column "
        "mapping ('delta.columnMapping.mode' = 'name').",
    )
    INVALID_PARTITION_COLUMN_TYPE_SCHEMA = (
        ErrorCode.INVALID_PARTITION_COLUMN_TYPE,
        "Using column {column} of type {type} as a partition column is not supported.",
    )
    LOG_CORRUPTED_CLUSTERING_COLUMNS = (
        ErrorCode.LOG_CORRUPTED,
        "The domain {clustering_domain} holds {configuration!r}, which names no columns of "
        "the table: {error}.",
    )
    LOG_CORRUPTED_INVARIANT = (
        ErrorCode.LOG_CORRUPTED,
        "Column {column!r} has the invariant {text!r}, which cannot be read.",
    )
    LOG_CORRUPTED_PARTITION_COLUMNS = (
        ErrorCode.LOG_CORRUPTED,
        "The table is partitioned by ({columns}), but its schema has the columns ({names}): "
        "{problem}.",
    )
    LOG_CORRUPTED_ROW_TRACKING_COLUMNS = (
        ErrorCode.LOG_CORRUPTED,
        "The table tracks rows (delta.enableRowTracking) but its property {property} is "
        "missing, so it is unknown which column of a data file holds the ids.",
    )
    MERGE_INCOMPATIBLE_DATATYPE = (
        ErrorCode.MERGE_INCOMPATIBLE_DATATYPE,
        "Failed to merge incompatible data types {current} and {update}",
    )
    MERGE_INCOMPATIBLE_DECIMAL_TYPE = (
        ErrorCode.MERGE_INCOMPATIBLE_DECIMAL_TYPE,
        "Failed to merge decimal types with incompatible {differing}",
    )
    PARTITION_COLUMN_NOT_FOUND = (
        ErrorCode.PARTITION_COLUMN_NOT_FOUND,
        "Partition column {column!r} not found in schema: {names}.",
    )
    RESERVED_CDC_COLUMNS_ON_WRITE_CHANGE_COLUMNS = (
        ErrorCode.RESERVED_CDC_COLUMNS_ON_WRITE,
        "The write contains the columns {columns}, whose names the change data feed needs "
        "for itself. Rename or drop them, or set delta.enableChangeDataFeed to false first.",
    )
    TABLE_ALREADY_CONTAINS_CDC_COLUMNS = (
        ErrorCode.TABLE_ALREADY_CONTAINS_CDC_COLUMNS,
        "The change data feed cannot be enabled: the table has the columns {columns}, whose "
        "names the feed needs for itself. Rename or drop them.",
    )

    # protocol/schema: values of columns
    FAILED_CAST_PARTITION_VALUE_LOG = (
        ErrorCode.FAILED_CAST_PARTITION_VALUE,
        "Failed to cast partition value `{value}` to {type}.",
    )
    INVALID_PARTITION_COLUMN_TYPE_BINARY = (
        ErrorCode.INVALID_PARTITION_COLUMN_TYPE,
        "The binary partition value {value} (hex) is no UTF-8 and cannot be written into the log.",
    )
    INVALID_PARTITION_COLUMN_TYPE_NESTED = (
        ErrorCode.INVALID_PARTITION_COLUMN_TYPE,
        "A column of type {data_type} cannot partition a table.",
    )

    # store
    INVALID_WRITE_OPTION_STORAGE = (
        ErrorCode.INVALID_WRITE_OPTION,
        "{option!r} is no option of object storage. Options are those of obstore, such as "
        "'region', 'endpoint' or 'aws_access_key_id', and Hadoop's, such as "
        "'fs.s3a.endpoint'.",
    )
    PATH_DOES_NOT_EXIST_BUCKET = (
        ErrorCode.PATH_DOES_NOT_EXIST,
        "{path} names no {missing}. Write {example}.",
    )
    PATH_DOES_NOT_EXIST_CHARACTER = (
        ErrorCode.PATH_DOES_NOT_EXIST,
        "{path!r} is not the location of a table: object names have no control characters, "
        "and nothing lies above a bucket.",
    )
    PATH_DOES_NOT_EXIST_EMPTY = (
        ErrorCode.PATH_DOES_NOT_EXIST,
        "{path!a} is not the location of a table. Pass a path or a URI.",
    )
    PATH_DOES_NOT_EXIST_FILE_URI = (
        ErrorCode.PATH_DOES_NOT_EXIST,
        "{path} is not absolute. Write file:///path, or a plain path for a relative one.",
    )
    PATH_DOES_NOT_EXIST_HDFS = (
        ErrorCode.PATH_DOES_NOT_EXIST,
        "{path} names no name node. Write hdfs://name-node:8020/path: no setting of the "
        "session is in reach where this is read.",
    )
    UNSUPPORTED_STORAGE_CLIENT = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} cannot be reached with these settings: {error}. Set Hadoop's (fs.s3a.*, "
        "fs.azure.*, fs.gs.*) or spark.puredelta.storage.*.",
    )
    UNSUPPORTED_STORAGE_CONDITIONAL_PUTS = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "The store of {path} takes a second object of one name although it was asked not to "
        "(If-None-Match), so a commit cannot be made atomic there. Use a store with "
        "conditional puts (Amazon S3, Azure, GCS, MinIO, R2), or a newer version of this "
        "one. The table can be read.",
    )
    UNSUPPORTED_STORAGE_DELETE = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} can only be read here",
    )
    UNSUPPORTED_STORAGE_FILE_URI = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} names the host {authority!r}. Mount its directory and pass the path, or "
        "write three slashes: file:///path.",
    )
    UNSUPPORTED_STORAGE_HARD_LINKS = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "The file system of {parent} has no hard links, so a commit cannot be made atomic "
        "there. If it is a mounted bucket or share (s3fs, gcsfuse, /dbfs, SMB), name the "
        "store itself: s3a://bucket/path, gs://bucket/path or "
        "abfss://container@account.dfs.core.windows.net/path. Else put the table on a file "
        "system that has them (ext4, XFS, APFS, NTFS, NFS).",
    )
    UNSUPPORTED_STORAGE_HDFS_NODE = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} lies on other storage than the table. Open the table with a session.",
    )
    UNSUPPORTED_STORAGE_READ_ONLY = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} can only be read here: it is reached over HTTP, by which nothing is created "
        "unless it exists. Activate a classic session (puredelta.activate), which has "
        "Hadoop's client for {scheme}://.",
    )
    UNSUPPORTED_STORAGE_UNREACHABLE = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "Tables on {scheme!r} storage cannot be reached: {path}: {why}. Put Hadoop's client "
        "for it on the class path (spark.jars.packages), give credentials as "
        "spark.puredelta.storage.*, or mount the storage and pass a path or a file: "
        "URI{hint}.",
    )

    # catalogs
    INVALID_CONF_VALUE_CATALOG = (
        ErrorCode.INVALID_CONF_VALUE,
        "The setting {key} {problem}.",
    )
    INVALID_CONF_VALUE_NO_BOTO3 = (
        ErrorCode.INVALID_CONF_VALUE,
        "A Glue catalog needs boto3: pip install 'puredelta[glue]'.",
    )
    INVALID_CONF_VALUE_GLUE = (
        ErrorCode.INVALID_CONF_VALUE,
        "The Glue catalog cannot be used: {error}. Check the settings region, profile and endpoint "
        "of the catalog.",
    )
    CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION_DATABASE = (
        ErrorCode.CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION,
        "Database {database} has no location, so table {table} needs a LOCATION, or the option "
        "path.",
    )
    INVALID_CONF_VALUE_CERTIFICATES = (
        ErrorCode.INVALID_CONF_VALUE,
        "The certificates in {path} cannot be used: {error}. Name a PEM file.",
    )

    # log/changes
    CDC_START_VERSION_AFTER_LATEST = (
        ErrorCode.CDC_START_VERSION_AFTER_LATEST,
        "Start version {start} for change data feed exceeds the latest table version {latest}.",
    )
    CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA = (
        ErrorCode.CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA,
        "Retrieving table changes between version {start} and {end} failed because of an "
        "incompatible data schema. The read schema is {schema_string} at version "
        "{read_version}, but version {start} has an incompatible one. Read the versions that "
        "share a schema separately.",
    )
    CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE = (
        ErrorCode.CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE,
        "Retrieving table changes between version {start} and {end} failed because of an "
        "incompatible schema change. The read schema is {schema_string} at version "
        "{read_version}, but version {incompatible_version} changed the schema in an "
        "incompatible way. If possible, query the changes from version {start} to {version} "
        "and from version {incompatible_version} to {end} separately.",
    )
    DIFFERENT_TABLE_READ_BY_STREAM = (
        ErrorCode.DIFFERENT_TABLE_READ_BY_STREAM,
        "The streaming query was reading from an unexpected Delta table (id = '{table_id}'). "
        "It used to read from another Delta table (id = '{checkpoint_id}') according to "
        "checkpoint. Please revert your change or delete your streaming query checkpoint to "
        "restart from scratch.",
    )
    FAILED_READ_FILE_FOOTER_CHANGES = (
        ErrorCode.FAILED_READ_FILE_FOOTER,
        "The data file {file} cannot be read by Arrow: {failure}. If it is damaged, restore "
        "it from a copy, or restore the table to a version without it; if it is encrypted, "
        "read the table in an activated session that has the keys.",
    )
    CHANGELOG_REQUIRES_ROW_TRACKING = (
        ErrorCode.CHANGELOG_REQUIRES_ROW_TRACKING,
        "The option {option} of CHANGES needs the identity of rows, and version {version} has "
        "none: the table did not track its rows then (delta.enableRowTracking). Name unique "
        "columns in the option keyColumns, or leave {option} out.",
    )
    INVALID_CDC_RANGE = (
        ErrorCode.INVALID_CDC_RANGE,
        "CDC range from start {start} to end {end} was invalid. End cannot be before start.",
    )
    INVALID_FORMAT_FROM_SOURCE_VERSION = (
        ErrorCode.INVALID_FORMAT_FROM_SOURCE_VERSION,
        "Unsupported format of the offsets in this checkpoint. Expected version "
        "{with_barrier} at most, found {version}. Please upgrade.",
    )
    INVALID_SOURCE_OFFSET_FORMAT = (
        ErrorCode.INVALID_SOURCE_OFFSET_FORMAT,
        "The stored source offset format is invalid: {given}. Restore the checkpoint, or "
        "begin with a fresh checkpoint directory.",
    )
    INVALID_SOURCE_VERSION = (
        ErrorCode.INVALID_SOURCE_VERSION,
        "sourceVersion({version}) is invalid in an offset of this checkpoint. Begin with a "
        "fresh checkpoint directory.",
    )
    INVALID_WRITE_OPTION_STREAM = (
        ErrorCode.INVALID_WRITE_OPTION,
        "Invalid value '{value}' for option '{option}', {explanation}",
    )
    INVALID_WRITE_OPTION_STREAM_START = (
        ErrorCode.INVALID_WRITE_OPTION,
        "Invalid value '{value}' for option 'startingVersion', must be greater than or equal "
        "to zero, or '{latest}'.",
    )
    LOG_FILE_NOT_FOUND_CHANGES = (
        ErrorCode.LOG_FILE_NOT_FOUND,
        "The changes of version {version} of {path} cannot be read: its commit is not in the "
        "log. The oldest one that is has version {earliest}.",
    )
    LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE = (
        ErrorCode.LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE,
        "If you never deleted it, it's likely your query is lagging behind: version "
        "{version} of {root_uri}, with which the stream began, cannot be read now ({why}). "
        "Please delete its checkpoint to restart from scratch.",
    )
    MISSING_CHANGE_DATA = (
        ErrorCode.MISSING_CHANGE_DATA,
        "Error getting change data for range [{start} , {end}] as change data was not "
        "recorded for version [{version}]. If you've enabled change data feed on this table, "
        "use `DESCRIBE HISTORY` to see when it was first enabled. Otherwise, to start "
        "recording change data, set the table property delta.enableChangeDataFeed to true.",
    )
    MISSING_FILES_UNEXPECTED_VERSION = (
        ErrorCode.MISSING_FILES_UNEXPECTED_VERSION,
        "The stream from your Delta table was expecting to process data from version "
        "{version}, but the earliest available version in the _delta_log directory is "
        "{earliest}. The files in the transaction log may have been deleted due to log "
        "cleanup. Begin with a fresh checkpoint directory, or set the option "
        "'failOnDataLoss' to 'false' to continue, which loses the rows between. The table is "
        "{root_uri}.",
    )
    OPERATION_NOT_ALLOWED_STREAM_OPTION = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "withEventTimeOrder is not supported: the files of a table come in the order of "
        "their times. Leave the option out, and give the watermark of the query enough time, "
        "or sort what is there with a batch query first.",
    )
    OPERATION_NOT_ALLOWED_STREAM_TRACKING = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "{tracking} is not supported by the Python data source, which serves Spark Connect: "
        "Spark does not tell it which batches are done. Use a classic session, or leave the "
        "option out. A column that is added needs a restart of the query only; after a "
        "rename, a drop or a change of a type begin with a fresh checkpoint directory and "
        "startingVersion behind the change.",
    )
    REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA = (
        ErrorCode.REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA,
        "Version {version} removed {file} without saying its size and partition values "
        "(extendedFileMetadata), so the rows it deleted cannot be read. Read the changes "
        "before and after this version separately.",
    )
    SCHEMA_CHANGED_WITH_VERSION_FILES = (
        ErrorCode.SCHEMA_CHANGED_WITH_VERSION,
        "Detected schema change in version {version}: the stream read {older}, that version "
        "has {newer}. The change of a type cannot be followed. Begin with a fresh checkpoint "
        "directory and a later version.",
    )
    SCHEMA_CHANGED_WITH_VERSION_METADATA = (
        ErrorCode.SCHEMA_CHANGED_WITH_VERSION,
        "Detected schema change in version {version}: the stream reads {older}, that version "
        "has {newer}. Please try restarting the query. If the change lies behind the place "
        "where the query began, begin with a fresh checkpoint directory and a later version.",
    )
    SOURCE_IGNORE_DELETE = (
        ErrorCode.SOURCE_IGNORE_DELETE,
        "Detected deleted data (for example {remove_path}) from streaming source at version "
        "{version}. This is currently not supported. If you'd like to ignore deletes, set "
        "the option 'ignoreDeletes' to 'true'. The source table can be found at path {path}.",
    )
    SOURCE_TABLE_IGNORE_CHANGES = (
        ErrorCode.SOURCE_TABLE_IGNORE_CHANGES,
        "Detected {what} in the source table at version {version}. This is currently not "
        "supported. If this is going to happen regularly and you are okay to skip changes, "
        "set the option 'skipChangeCommits' to 'true'. If you would like the data update to "
        "be reflected, please restart this query with a fresh checkpoint directory. The "
        "source table can be found at path {path}.",
    )
    STARTING_VERSION_AND_TIMESTAMP_BOTH_SET = (
        ErrorCode.STARTING_VERSION_AND_TIMESTAMP_BOTH_SET,
        "Please either provide 'startingVersion' or 'startingTimestamp', not both.",
    )
    STREAMING_CANNOT_CONTINUE_POST_SCHEMA_EVOLUTION = (
        ErrorCode.STREAMING_CANNOT_CONTINUE_POST_SCHEMA_EVOLUTION,
        "We've detected one or more non-additive schema change(s) ({changes}) between Delta "
        "version {previous_version} and {version} in the Delta streaming source. Changes: "
        "{changes_shown}. Please check if you want to manually propagate the schema "
        "change(s) to the sink table before we proceed with stream processing using the "
        "finalized schema at version {version}. Then allow them for this series of changes "
        "by {options} or {here}, for this stream by {always}, or for all streams by "
        "{everywhere}.",
    )
    STREAMING_INCOMPATIBLE_SCHEMA_CHANGE = (
        ErrorCode.STREAMING_INCOMPATIBLE_SCHEMA_CHANGE,
        "Streaming read is not supported on tables with read-incompatible schema changes (a "
        "renamed or dropped column): the stream reads {older}, version {version} has "
        "{newer}. Please provide a 'schemaTrackingLocation' to enable non-additive schema "
        "evolution for Delta stream processing, or begin with a fresh checkpoint directory, "
        "from a version behind the change or without one.",
    )
    STREAMING_METADATA_EVOLUTION = (
        ErrorCode.STREAMING_METADATA_EVOLUTION,
        "The schema, table configuration or protocol of your Delta table has changed during "
        "streaming, at version {version}. The schema or metadata tracking log at "
        "'{location}' has been updated. Please restart the stream with a new DataFrame to "
        "continue processing using the updated metadata. Updated schema: {schema}. Updated "
        "table configurations: {properties}. Updated table protocol: {protocol}.",
    )
    STREAMING_SCHEMA_LOCATION_CONFLICT_LOCATION_CONFLICT = (
        ErrorCode.STREAMING_SCHEMA_LOCATION_CONFLICT,
        "Detected conflicting schema location '{location}'. Another stream may be reusing "
        "the same schema location, which is not allowed. Please provide a new unique "
        "`schemaTrackingLocation` path or `streamingSourceTrackingId` as a reader option for "
        "one of the streams from this table.",
    )
    STREAMING_SCHEMA_LOCATION_CONFLICT_OTHER_SOURCE = (
        ErrorCode.STREAMING_SCHEMA_LOCATION_CONFLICT,
        "Detected conflicting schema location '{location}': the Delta source metadata path "
        "used for execution '{here}' is different from the one persisted for previous "
        "processing '{known}'. Please check if the schema location has been reused across "
        "different streaming sources. Pick a new `schemaTrackingLocation` or use "
        "`streamingSourceTrackingId` to distinguish between streaming sources.",
    )
    STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED_INCOMPLETE = (
        ErrorCode.STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED,
        "Incomplete log file in the Delta streaming source schema log at '{location}'. The "
        "schema log may have been corrupted. Please pick a new schema location.",
    )
    STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED_PREVIOUS = (
        ErrorCode.STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED,
        "Incomplete log file in the Delta streaming source schema log at '{location}': entry "
        "{number} is gone, which says what changed. Please pick a new schema location.",
    )
    STREAMING_SCHEMA_LOG_INCOMPATIBLE_TABLE_ID = (
        ErrorCode.STREAMING_SCHEMA_LOG_INCOMPATIBLE_TABLE_ID,
        "Detected incompatible Delta table id when trying to read Delta stream. Persisted "
        "table id: {recorded}, Table id: {table_id}. The schema log at '{location}' might "
        "have been reused. Please pick a new schema location.",
    )
    STREAMING_SCHEMA_LOG_INIT_FAILED = (
        ErrorCode.STREAMING_SCHEMA_LOG_INIT_FAILED,
        "We could not initialize the Delta streaming source schema log at '{location}' "
        "because we detected an incompatible schema or protocol change while serving a "
        "streaming batch from table version {first} to {last}. Begin with a fresh checkpoint "
        "directory.",
    )
    STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED = (
        ErrorCode.STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED,
        "Failed to parse the schema from the Delta streaming source schema log at "
        "'{location}'. The schema log may have been corrupted. Please pick a new schema "
        "location.",
    )
    STREAMING_SCHEMA_MISMATCH_ON_RESTART = (
        ErrorCode.STREAMING_SCHEMA_MISMATCH_ON_RESTART,
        "The streaming query's schema does not match the current table schema. Query schema "
        "(from analysis): {read}. Current table schema: {recorded}, as the schema log at "
        "'{location}' has it since version {version}. Please create a new streaming "
        "DataFrame to pick up the current schema.",
    )
    UNSUPPORTED_TIME_TRAVEL_VIEWS_STREAM = (
        ErrorCode.UNSUPPORTED_TIME_TRAVEL_VIEWS,
        "Cannot time travel views, subqueries, streams or change data feed queries ({name}). "
        "Use startingVersion or startingTimestamp.",
    )

    # log/commit
    ADDING_DELETION_VECTORS_DISALLOWED = (
        ErrorCode.ADDING_DELETION_VECTORS_DISALLOWED,
        "The current operation attempted to add a deletion vector to a table that does not "
        "permit the creation of new deletion vectors ({path}). Set "
        "delta.enableDeletionVectors=true to permit it.",
    )
    ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED = (
        ErrorCode.ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED,
        "All operations that add deletion vectors should set the tightBounds column in "
        "statistics to false: {path}.",
    )
    ARITHMETIC_OVERFLOW_ROW_IDS = (
        ErrorCode.ARITHMETIC_OVERFLOW,
        "The {rows} rows of the new file {path} have no row IDs left: the log says that IDs "
        "up to {high_water_mark} are taken, of {row_id_max}. If that is wrong, write "
        "its rows to a new table.",
    )
    CANNOT_MODIFY_APPEND_ONLY_FILES = (
        ErrorCode.CANNOT_MODIFY_APPEND_ONLY,
        "{append_only} The operation wanted to remove {count} file(s), {first} first.",
    )
    CANNOT_MODIFY_APPEND_ONLY_OPERATION = (
        ErrorCode.CANNOT_MODIFY_APPEND_ONLY,
        "{append_only} Rows of this table cannot be updated or deleted.",
    )
    COMMIT_STATE_UNKNOWN = (
        ErrorCode.COMMIT_STATE_UNKNOWN,
        "The commit of version {version} to {root_uri} may or may not have landed: the store "
        "did not say, and {path} could not be read back in {reads_to_settle_max} tries. Look "
        "for txnId {txn_id} in that file: if it is there the commit is done, otherwise run "
        "the operation again.",
    )
    CONCURRENT_WRITE_CREATION_CONFLICT = (
        ErrorCode.CONCURRENT_WRITE,
        "A concurrent {operation} created the table {tableName} (version {version}) since "
        "this operation found no table there, and {reason}. Nothing was committed. Look at "
        "the table that is there now and run the operation again if it still applies.",
    )
    DELETION_VECTOR_MISSING_NUM_RECORDS = (
        ErrorCode.DELETION_VECTOR_MISSING_NUM_RECORDS,
        "It is invalid to commit files with deletion vectors that are missing the numRecords "
        "statistic: {path}.",
    )
    DOMAIN_METADATA_NOT_SUPPORTED = (
        ErrorCode.DOMAIN_METADATA_NOT_SUPPORTED,
        "Detected DomainMetadata action(s) for domains {domainNames}, but the table feature "
        "domainMetadata is not enabled.",
    )
    DUPLICATE_ACTIONS_FOUND_COMMIT = (
        ErrorCode.DUPLICATE_ACTIONS_FOUND,
        "File operation '{actionType}' for path {path} was specified several times. It "
        "conflicts with {other} {conflictingPath}. It is not valid for multiple file "
        "operations with the same path to exist in a single commit.",
    )
    DUPLICATE_DOMAIN_METADATA = (
        ErrorCode.DUPLICATE_DOMAIN_METADATA,
        "Internal error: two DomainMetadata actions within the same transaction have the "
        "same domain {domainName}",
    )
    INVALID_ARGUMENT_COMMIT_TEXT = (
        ErrorCode.INVALID_ARGUMENT,
        "A text of this commit is no Unicode, since half of a surrogate pair is alone in it: "
        "...{shown!a}. Leave the character out, or write the whole pair.",
    )
    INVALID_PARTITIONING_SCHEMA = (
        ErrorCode.INVALID_PARTITIONING_SCHEMA,
        "The AddFile contains partitioning schema different from the table's partitioning "
        "schema: expected {neededPartitioning}, actual {specifiedPartitioning} for {path}.",
    )
    LOG_CORRUPTED_ROW_TRACKING = (
        ErrorCode.LOG_CORRUPTED,
        "The domain {row_tracking_domain} holds {text!r}, which does not say which row ids "
        "are taken: {problem}.",
    )
    MAX_COMMIT_RETRIES_EXCEEDED_ATTEMPTS = (
        ErrorCode.MAX_COMMIT_RETRIES_EXCEEDED,
        "This commit to {table} has failed as it has been tried {numAttempts} times but did "
        "not succeed: other writers committed each version first. Commit started at version: "
        "{startVersion}. Commit failed at version: {failVersion}. Number of actions "
        "attempted to commit: {numActions}. Please run the operation again when fewer "
        "writers are active.",
    )
    MAX_COMMIT_RETRIES_EXCEEDED_NOT_LISTED = (
        ErrorCode.MAX_COMMIT_RETRIES_EXCEEDED,
        "This commit to {table} has failed: version {failVersion} exists already, but no "
        "listing of the log shows it, so what it changed cannot be read. A cache of "
        "directories, as NFS clients have it, may be out of date: please run the operation "
        "again.",
    )
    METADATA_ABSENT = (
        ErrorCode.METADATA_ABSENT,
        "Couldn't find Metadata while committing the first version of the Delta table: the "
        "{missing} action is missing.",
    )
    METADATA_CHANGED_GONE = (
        ErrorCode.METADATA_CHANGED,
        "The Delta table {tableName} has been changed by a concurrent update: the table of "
        "which this operation had read version {readVersion} is there no more. Nothing was "
        "committed. Look at what is there now and run the operation again if it still applies.",
    )
    METADATA_CHANGED_REPLACED = (
        ErrorCode.METADATA_CHANGED,
        "The Delta table {tableName} has been changed by a concurrent update: the table of "
        "which this operation had read version {readVersion} was replaced: what is there now "
        "is version {version} of another one, or of an older copy. Nothing was committed. Look "
        "at what is there now and run the operation again if it still applies.",
    )
    ROW_ID_ASSIGNMENT_WITHOUT_STATS = (
        ErrorCode.ROW_ID_ASSIGNMENT_WITHOUT_STATS,
        "Cannot assign row IDs without row count statistics: the table tracks rows and the "
        "new file {path} has no row count. Write it with statistics (numRecords is enough).",
    )
    STATE_RECOVER_ERROR_NO_METADATA = (
        ErrorCode.STATE_RECOVER_ERROR,
        "The {operation} of the table could not be recovered: a concurrent "
        "{operation_or_commit} wrote version {version} without it. Nothing was committed.",
    )

    # log/files
    DELETION_VECTOR_CARDINALITY_MISMATCH_STATISTICS = (
        ErrorCode.DELETION_VECTOR_CARDINALITY_MISMATCH,
        "The deletion vector of {path} deletes more rows than the file has by its "
        "statistics: {deletion_vector}, {stats}.",
    )
    FAILED_READ_FILE_FOOTER_DATA_FILE = (
        ErrorCode.FAILED_READ_FILE_FOOTER,
        "Could not read footer for file: {file} ({reason}). {what}",
    )
    FILE_NOT_FOUND_DELETION_VECTOR = (
        ErrorCode.FILE_NOT_FOUND,
        "The deletion vector file {path} is missing: it is unknown which rows are deleted. "
        "Restore the file.",
    )
    LOG_CORRUPTED_ACTION_COLUMN = (
        ErrorCode.LOG_CORRUPTED,
        "The log holds file actions whose {column!r} is not a value of its type: {error}.",
    )
    NUM_RECORDS_MISMATCH_ROW_COUNTS = (
        ErrorCode.NUM_RECORDS_MISMATCH,
        "Failed to validate the number of records in {operation}: {problems_shown}. Added "
        "{numAddedRecords} records and removed {numRemovedRecords} records. Nothing was "
        "committed. This is a bug: please report it with the statement.",
    )

    # log/maintenance
    CONCURRENT_DELETE_READ = (
        ErrorCode.CONCURRENT_DELETE_READ,
        "A VACUUM of {tableName} has started and not ended. It may be deleting files that "
        "the old version needs. Nothing was committed. Please run the statement again when "
        "the VACUUM has ended; one that has died is waited for {running_max} hours after its "
        "start.",
    )

    # log/replay
    LOG_CORRUPTED_STAGED_SIZE = (
        ErrorCode.LOG_CORRUPTED,
        "{path} has {size} bytes, and the catalog has ratified a commit of {ratified}: the file is "
        "damaged. Nothing was read or published. Restore the file from a copy of the storage.",
    )
    CATALOG_MANAGED_TABLE_BY_PATH = (
        ErrorCode.CATALOG_MANAGED_TABLE_BY_PATH,
        "Path-based access is not allowed for the catalog-managed table at {path}: its newest "
        "commits are known to the catalog alone. Name the table as catalog.schema.table.",
    )
    DUPLICATE_ACTIONS_FOUND_FILES = (
        ErrorCode.DUPLICATE_ACTIONS_FOUND,
        "The file {path} follows {last_path}: files of a new table are listed by path, each once.",
    )
    LOG_CORRUPTED_FILE = (
        ErrorCode.LOG_CORRUPTED,
        "{root_uri}/{path_shown} cannot be read as a checkpoint: {why}. If the commits "
        "before it are still there, remove it.",
    )
    LOG_FILE_NOT_FOUND_READ = (
        ErrorCode.LOG_FILE_NOT_FOUND,
        "{root_uri}/{path_shown} is part of the table's log and is missing. Restore it, or "
        "read a version that does not need it.",
    )
    ONE_OF_IN_TIME_TRAVEL_LOG = (
        ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        "Please either provide a timestamp or a version for time travel, not both: version "
        "{version}, timestamp {timestamp_ms}.",
    )
    PATH_DOES_NOT_EXIST_LOADED = (
        ErrorCode.PATH_DOES_NOT_EXIST,
        "{path} doesn't exist, or is not a Delta table. Check the path.",
    )
    STATE_RECOVER_ERROR_LOG = (
        ErrorCode.STATE_RECOVER_ERROR,
        "The {operation} of the Delta table {path} could not be recovered while "
        "reconstructing version {version}: no file of its log holds one. Did you manually "
        "delete files in the _delta_log directory?",
    )
    TABLE_NOT_FOUND_LOG = (
        ErrorCode.TABLE_NOT_FOUND,
        "Delta table {path} doesn't exist: there is no commit in its {log_directory}. Check "
        "the path, write a DataFrame there, or convert a Parquet directory.",
    )
    TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION = (
        ErrorCode.TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION,
        "The provided timestamp ({time}) is before the earliest version available to {path} "
        "({oldest}). Please use a timestamp at or after {oldest}.",
    )
    TIMESTAMP_GREATER_THAN_COMMIT = (
        ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT,
        "Timestamp {time} is after the latest version of {path} ({newest}). Use a timestamp "
        "at or before {newest}.",
    )
    TRUNCATED_TRANSACTION_LOG = (
        ErrorCode.TRUNCATED_TRANSACTION_LOG,
        "{path}/{gap}: Unable to reconstruct state at version {version} as the transaction "
        "log has been truncated: this file is missing and no complete checkpoint replaces "
        "it. Restore it, or read a version that is still there.",
    )
    VERSIONS_NOT_CONTIGUOUS = (
        ErrorCode.VERSIONS_NOT_CONTIGUOUS,
        "Versions ({gap}, {next_version}) of {path} are not contiguous. A gap in the delta "
        "log between versions {gap} and {next_version} was detected while trying to load "
        "version {version}. Restore {gap_shown}.",
    )
    VERSION_NOT_FOUND_LOG = (
        ErrorCode.VERSION_NOT_FOUND,
        "Cannot time travel Delta table {path} to version {version}. Available versions: "
        "[{earliest}, {latest}].",
    )

    # log/managed
    CATALOG_IS_BEHIND = (
        ErrorCode.CATALOG_IS_BEHIND,
        "The catalog has lost commits of {table}: {problem}. Perhaps its database was restored "
        "from a backup. Nothing was committed. Write nothing to the table until its "
        "administrator has restored the commits; a new process reads what the catalog names.",
    )
    CATALOG_IS_BEHIND_OTHER_COMMIT = (
        ErrorCode.CATALOG_IS_BEHIND,
        "{path} is not the commit that the catalog has ratified as version {version} "
        "({file_name}): a program has written it without the catalog, or the catalog was "
        "restored from a backup. Nothing was reported as published. Compare both files before "
        "the table is written again.",
    )
    COMMIT_STATE_UNKNOWN_NEW_TABLE = (
        ErrorCode.COMMIT_STATE_UNKNOWN,
        "The table {table} may or may not be created: the catalog did not answer, or not in a "
        "way that can be understood. Look whether the name is there before the statement is "
        "run again.",
    )
    COMMIT_STATE_UNKNOWN_RATIFIED = (
        ErrorCode.COMMIT_STATE_UNKNOWN,
        "The commit of version {version} to {table} may or may not be ratified: the catalog "
        "did not answer. Look at the history of {table}: if version {version} has the txnId "
        "{txn_id} the commit is done, otherwise run the operation again.",
    )
    TABLE_OR_VIEW_ALREADY_EXISTS_MEANWHILE = (
        ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS,
        "Cannot create table or view {name} because it already exists: another writer has "
        "created it meanwhile. Choose a different name, or write to the table.",
    )
    UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION = (
        ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION,
        "{operation} is not allowed on the catalog-managed table {table}: its catalog "
        "maintains files and log, and a client that rewrites or removes them may take what "
        "others still need. Leave it to the catalog.",
    )
    UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION_TAKEN = (
        ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION,
        "{subject} cannot be taken from a catalog-managed table: its catalog could no longer "
        "find the table or order its commits. Leave it as it is, or copy the rows into a table "
        "of another kind.",
    )
    UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION_ICEBERG = (
        ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION,
        "A catalog-managed table with {property} = iceberg cannot be written here: each of its "
        "commits has to bring Iceberg metadata along, which puredelta does not write for a "
        "catalog. Nothing was written. Unset the property, or write with delta-spark.",
    )
    UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION_DEMANDED = (
        ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION,
        "{property} = {demanded} cannot be taken from a catalog-managed table: its catalog demands "
        "the property, and would refuse each later change of the table's protocol. Leave it as it "
        "is, or copy the rows into a table of another kind.",
    )

    # inspection
    INVALID_WRITE_OPTION_SCRIPT = (
        ErrorCode.INVALID_WRITE_OPTION,
        "{path} is no Python: {error}.",
    )
    UNSUPPORTED_FEATURES_FOR_READ_COLUMN = (
        ErrorCode.UNSUPPORTED_FEATURES_FOR_READ,
        "Column {column!r} has a type that only Spark reads: {data_type}. Read the table "
        "with puredelta.read(spark, path).",
    )
    VERSION_NOT_FOUND_DIFF = (
        ErrorCode.VERSION_NOT_FOUND,
        "Version {version} is not before version {newer}. Write the older one first.",
    )

    # iceberg
    UNIVERSAL_FORMAT_CONVERSION_FAILED_METADATA = (
        ErrorCode.UNIVERSAL_FORMAT_CONVERSION_FAILED,
        "The file {path} is no metadata of Iceberg: {error}. Remove the folder {directory} of the "
        "table, which has nothing else, and export again.",
    )
    UNIVERSAL_FORMAT_CONVERSION_FAILED_RACE = (
        ErrorCode.UNIVERSAL_FORMAT_CONVERSION_FAILED,
        "Failed to convert the newest version of {path} to the universal format {format}: other "
        "exporters were faster {attempts} times. Export again.",
    )
    UNIVERSAL_FORMAT_VIOLATION_COLUMN = (
        ErrorCode.UNIVERSAL_FORMAT_VIOLATION,
        "The validation of Universal Format ({format}) has failed: the column {column} {reason}. "
        "Nothing was exported. Export a table without the column, or with another type.",
    )
    UNIVERSAL_FORMAT_VIOLATION_NAME = (
        ErrorCode.UNIVERSAL_FORMAT_VIOLATION,
        "The validation of Universal Format ({format}) has failed: {name} is the table at "
        "{location} in the catalog, not {path}. Choose another name, or drop that table.",
    )
    UNIVERSAL_FORMAT_VIOLATION_PARTITION = (
        ErrorCode.UNIVERSAL_FORMAT_VIOLATION,
        "The validation of Universal Format ({format}) has failed: the partition value {value!r} "
        "of the column {column} is no value of its type, or a time without a zone. Nothing was "
        "exported. Write the rows of this partition again.",
    )

    # spark/catalog
    CATALOG_ENTRY_NOT_UPDATED = (
        ErrorCode.CATALOG_ENTRY_NOT_UPDATED,
        "The table is written, {path}, but the catalog has no entry {name} for it: {refused}. "
        "Do not write its rows again: give it the name with CREATE TABLE {name} USING delta "
        "LOCATION '{path}' when the catalog allows it.",
    )
    CATALOG_ENTRY_NOT_UPDATED_UNITY = (
        ErrorCode.CATALOG_ENTRY_NOT_UPDATED,
        "The table is written, {path}, but the catalog has no entry {name} for it: {refused} "
        "Do not write its rows again: give it the name with CREATE TABLE {name} USING delta "
        "LOCATION '{path}' when the catalog allows it.",
    )
    INVALID_SCHEMA_OR_RELATION_NAME = (
        ErrorCode.INVALID_SCHEMA_OR_RELATION_NAME,
        "`{name}` is not a valid name for tables/schemas. Valid names only contain alphabet "
        "characters, numbers and _. Name the table differently, or by its path: delta.`/path`.",
    )
    OPERATION_NOT_ALLOWED_OTHER_CATALOG_CLASS = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "The table {table} belongs to {session_catalog}, which is {catalog} in this session "
        "({setting}). Tables by name need Spark's own session catalog: start the session "
        "without this setting, or name the table by its path: delta.`/path`.",
    )
    OPERATION_NOT_ALLOWED_TWO_LOCATIONS = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "The catalog's description of {table} names {number} locations: its comment, a "
        "property or a column looks like another one. Name the table by its path, "
        "delta.`/path`, and change that text.",
    )
    SCHEMA_NOT_FOUND = (
        ErrorCode.SCHEMA_NOT_FOUND,
        "The schema `{catalog}`.`{schema}` cannot be found. Verify its spelling, or create it "
        "in the catalog.",
    )
    SCHEMA_NOT_FOUND_SESSION = (
        ErrorCode.SCHEMA_NOT_FOUND,
        "The schema `{catalog}`.`{name}` cannot be found. Verify the spelling, or create it: "
        "CREATE SCHEMA.",
    )

    # spark/jvm
    INVALID_ARGUMENT_UNICODE = (
        ErrorCode.INVALID_ARGUMENT,
        "{text!a}: the last character is half of a surrogate pair, and no Unicode. Leave it "
        "out, or write the whole pair.",
    )
    STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT = (
        ErrorCode.STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT,
        "Schema location '{location}' must be placed under checkpoint location "
        "'{checkpoint}'. Set "
        "spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation to "
        "true to lift this.",
    )
    STORAGE_ACCESS_DENIED = (
        ErrorCode.STORAGE_ACCESS_DENIED,
        "The storage refuses access: {reason}. Grant it to the user or the key of this session, "
        "then run the statement again.",
    )
    STORAGE_FAILED = (
        ErrorCode.STORAGE_FAILED,
        "The storage of the table failed: {reason}. Mend the cause, and look at the history of the "
        "table before you run a write again.",
    )
    UNSUPPORTED_STORAGE_CREATION = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} cannot be written to: it is not known of {scheme!r} storage that of several "
        "writers of one name exactly one succeeds, so commits could be lost. The table can "
        "be read. Write to a table on HDFS, an object store or a mounted file system.",
    )
    UNSUPPORTED_STORAGE_HADOOP_VERSION = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} cannot be written to: this version of Hadoop's client does not know "
        "conditional puts. Use hadoop-aws 3.4.2 or newer, or give credentials as "
        "spark.puredelta.storage.*.",
    )

    # spark/offload
    NUM_RECORDS_MISMATCH_COPY = (
        ErrorCode.NUM_RECORDS_MISMATCH,
        "{num_rows} rows of the source were to be written and {num_rows_shown} were. Nothing "
        "was committed. This is a bug or a file that changed while it was read.",
    )
    NUM_RECORDS_MISMATCH_REWRITE = (
        ErrorCode.NUM_RECORDS_MISMATCH,
        "A copy of data files is not complete: {problem}. Nothing was committed. This is a bug "
        "or a file that changed while it was read.",
    )

    # spark/scan
    COLUMN_NOT_FOUND_IN_SCHEMA_SCAN = (
        ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA,
        "The table has no column {column!r}, only {names}.",
    )
    FAILED_CAST_PARTITION_VALUE_DECIMAL = (
        ErrorCode.FAILED_CAST_PARTITION_VALUE,
        "The log has the value {value!r} for the partition column {column!r}, which is no "
        "{data_type}.",
    )
    FAILED_CAST_PARTITION_VALUE_SCAN = (
        ErrorCode.FAILED_CAST_PARTITION_VALUE,
        "A partition value in the log is not of its column's type ({types}): {malformed}",
    )
    FILE_NOT_FOUND_ON_SERVER = (
        ErrorCode.FILE_NOT_FOUND,
        "The Spark server does not list the file {path} of the table. It may have been "
        "removed, or the server does not see the storage.",
    )
    LOG_CORRUPTED_SMALL_FILE = (
        ErrorCode.LOG_CORRUPTED,
        "The log says that {path} has {size_bytes} bytes; no Parquet file is that small, and "
        "Spark would skip it.",
    )
    READ_TABLE_WITHOUT_COLUMNS = (
        ErrorCode.READ_TABLE_WITHOUT_COLUMNS,
        "You are trying to read a Delta table that does not have any columns. Write some new "
        "data with the option `mergeSchema = true` to be able to read the table.",
    )
    UNSUPPORTED_DATA_FILE_COLON = (
        ErrorCode.UNSUPPORTED_DATA_FILE,
        "Spark's local file system cannot open a file name with a colon: {path}. Rewrite the "
        "file under another name.",
    )
    UNSUPPORTED_DATA_FILE_HIDDEN = (
        ErrorCode.UNSUPPORTED_DATA_FILE,
        "Spark ignores files whose name starts with '_' or '.', so the rows of {path} would "
        "be missing. Rewrite the file under another name.",
    )
    UNSUPPORTED_ON_CONNECT_FRAME_GONE = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "The plan reads a Delta table by a frame that is gone. Read the table again.",
    )

    # spark/session
    FAILED_READ_FILE = (
        ErrorCode.FAILED_READ_FILE,
        "A data file that the log of the table names cannot be read: {path}{reason}. The table is "
        "unchanged. Bring the file back or grant access to it, or RESTORE the table to a "
        "version that does not need it. Files disappear when something else than a command on "
        "the table deletes them, or when VACUUM keeps less than queries need.",
    )
    FAILED_READ_FILE_NOT_EXIST = (
        ErrorCode.FAILED_READ_FILE_NOT_EXIST,
        "A data file that the log of the table names is not there, or is no file: {path}. The "
        "table is unchanged. Bring the file back or grant access to it, or RESTORE the table "
        "to a version that does not need it. Files disappear when something else than a "
        "command on the table deletes them, or when VACUUM keeps less than queries need.",
    )
    GEOSPATIAL_NOT_SUPPORTED_ARROW = (
        ErrorCode.GEOSPATIAL_NOT_SUPPORTED,
        "Arrow cannot hold the values of column {column} of type {type}, and Spark itself has "
        "no way to the storage of this table.",
    )
    GEOSPATIAL_NOT_SUPPORTED_SYSTEMS = (
        ErrorCode.GEOSPATIAL_NOT_SUPPORTED,
        "PySpark {pyspark_version} does not know the coordinate system or the algorithm of "
        "these columns: {listed}. It knows SRID 0, 3857 and 4326 (OGC:CRS84), and the "
        "algorithm spherical.",
    )
    GEOSPATIAL_NOT_SUPPORTED_VERSIONS = (
        ErrorCode.GEOSPATIAL_NOT_SUPPORTED,
        "Columns of geometry and geography need PySpark 4.2 and pyarrow 20, or newer; here "
        "are PySpark {pyspark_version} and pyarrow {pa_version}: {listed}. Use newer ones "
        "for this table, or leave these columns out of a new one.",
    )
    INVALID_ATTRIBUTE_NAME_SYNTAX = (
        ErrorCode.INVALID_ATTRIBUTE_NAME_SYNTAX,
        "Syntax error in the column name {attribute_name!r}: back-ticks come in pairs and "
        "quote a whole part; double one that is part of the name.",
    )
    INVALID_CONF_VALUE_OWN = (
        ErrorCode.INVALID_CONF_VALUE,
        "{key} is {value!r}: set it to {expected}.",
    )
    INVALID_CONF_VALUE_TYPE = (
        ErrorCode.INVALID_CONF_VALUE_TYPE,
        "The value {value!r} in the config {setting} is invalid. It should be a 'boolean' "
        "value: set it to true or false, or unset it.",
    )
    RESERVED_COLUMN_NAME = (
        ErrorCode.RESERVED_COLUMN_NAME,
        "The column names {columns} start with {prefix!r}, which is reserved for columns "
        "that puredelta adds while it works. Rename them.",
    )
    TABLE_OR_VIEW_NOT_FOUND_IN_CATALOG = (
        ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
        "The table or view {table} cannot be found in catalog {catalog}. Verify the spelling "
        "of schema and table; the server compares letters exactly.",
    )
    TABLE_OR_VIEW_NOT_FOUND_NO_CATALOG = (
        ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
        "The session has no catalog {catalog}. Set spark.sql.catalog.{catalog}.",
    )
    UNSUPPORTED_DATA_TYPES_ARROW = (
        ErrorCode.UNSUPPORTED_DATA_TYPES,
        "Arrow cannot hold the values of column {column} of type {type}, and Spark itself has "
        "no way to the storage of this table.",
    )
    UNSUPPORTED_DATA_TYPES_PYSPARK = (
        ErrorCode.UNSUPPORTED_DATA_TYPES,
        "This version of PySpark cannot represent the schema {schema}: {unknown}",
    )
    UNSUPPORTED_SETTING = (
        ErrorCode.UNSUPPORTED_SETTING,
        "The setting {setting} is {value!r}, and that is not supported: {effect}. Unset it, "
        "or set it to its default, {conf_default}.",
    )
    UNSUPPORTED_SETTING_READER = (
        ErrorCode.UNSUPPORTED_SETTING,
        "The setting {setting} {reason}, and a command would lose the others. Unset it in the "
        "session and in Hadoop's configuration.",
    )
    UNSUPPORTED_STORAGE_DEFAULT_FILE_SYSTEM = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} names no file system, so the server takes it for a path on {default} "
        "(fs.defaultFS), relative to a directory that a client cannot know. Write the whole "
        "location, such as {default_shown}/{path}.",
    )
    UNSUPPORTED_STORAGE_NO_FILE_SYSTEM = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "{path} cannot be reached: neither Spark nor its Python workers have a file system for "
        "{scheme!r}. Put Hadoop's client for it on the class path (spark.jars.packages), or "
        "read a version of the table whose files are elsewhere.",
    )
    UNSUPPORTED_STORAGE_OTHER_DISK = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "Spark does not see {path} ({num_bytes} bytes) as this program does, so no "
        "engine could read the table: the driver or an executor (over Spark Connect: the server) has "
        "another disk there. Nothing was written. {way_out}",
    )
    WRITE_FAILED_OTHER_DISK = (
        ErrorCode.WRITE_FAILED,
        "The Spark server does not see {path}, where this client writes the log of the table: "
        "it has another disk there. Nothing was written. {way_out}",
    )

    CATALOG_NOT_FOUND = (
        ErrorCode.CATALOG_NOT_FOUND,
        "The session has no catalog {catalog}. Set spark.sql.catalog.{catalog}.",
    )
    OPERATION_NOT_ALLOWED_UNLOADED_CATALOG = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Spark executes this statement itself, and catalog {catalog} is one that it cannot load: "
        "the JAR of its connector is not here, and this library has the tables of {catalog} "
        "without it. Queries, the statements of docs/sql.md and spark.catalog know its names.",
    )

    # spark/catalog
    OPERATION_NOT_ALLOWED_OTHER_FORMAT = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Table {name} cannot be made with format {format}: in a catalog that Spark cannot load "
        "only Delta tables are made. Leave the format out, or write to a path.",
    )
    OPERATION_NOT_ALLOWED_READ_IN_CATALOG = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Table {name} cannot be read: its format is {format}. Tables of formats delta, {formats} "
        "can.",
    )

    # sources of statements
    MERGE_SOURCE_CHANGED = (
        ErrorCode.MERGE_SOURCE_CHANGED,
        "Cannot perform Merge because the source dataset is not deterministic: its file "
        "{path} was changed, replaced or removed while the statement read it. Nothing was "
        "committed. Run the statement again when no other program writes to the source; or set "
        "spark.databricks.delta.merge.materializeSource to all, so that the source is copied "
        "first, which takes longer but reads each file only once.",
    )

    # spark/values
    CANNOT_UP_CAST_DATATYPE = (
        ErrorCode.CANNOT_UP_CAST_DATATYPE,
        "Cannot up cast {expression} from {source_type} to {target_type}. Add an explicit "
        "cast to the value, or set spark.sql.storeAssignmentPolicy to ANSI.",
    )
    CAST_OVERFLOW_IN_TABLE_WRITE = (
        ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE,
        "Failed to write a value of {source_type} type into the {target_type} type column "
        "`{quoted_name}` due to an overflow. Use `try_cast` on the input value to tolerate "
        "overflow and return NULL instead. If necessary, set spark.sql.storeAssignmentPolicy "
        'to "LEGACY" to bypass this error.',
    )
    UPDATE_SCHEMA_MISMATCH_EXPRESSION = (
        ErrorCode.UPDATE_SCHEMA_MISMATCH_EXPRESSION,
        "Cannot cast {given} to {wanted}. All nested columns must match.",
    )

    # spark/write
    INVALID_CONF_VALUE_CODEC = (
        ErrorCode.INVALID_CONF_VALUE,
        "Arrow, which writes the data files of {root_uri}, has no codec {value!r}. Set the "
        "option compression, or {key}, to one of {codecs}.",
    )
    NON_PARTITION_COLUMN_ABSENT_VOID = (
        ErrorCode.NON_PARTITION_COLUMN_ABSENT,
        "A data file needs a column, but the only columns of the table that do not partition "
        "it are void: {columns}. Cast one to another type.",
    )
    TABLE_ALL_VOID_COLUMNS_WRITE = (
        ErrorCode.TABLE_ALL_VOID_COLUMNS,
        "A data file needs a column, but the only columns of the table that do not partition "
        "it are void: {columns}. Cast one to another type.",
    )
    UNSUPPORTED_STORAGE_ENCRYPTION = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "The session asks for encrypted Parquet files ({only_spark}), and Arrow, which "
        "writes the data files of {path}, does not encrypt. Add the JAR of a Hadoop file "
        "system for this storage and set {io_key} to 'spark'.",
    )
    WRITE_FAILED_EXECUTORS = (
        ErrorCode.WRITE_FAILED,
        "The data could not be written to {path}: {reason}. The table is unchanged and what "
        "was written has been removed. Shorten the value, or do not partition by that column.",
    )
    WRITE_FAILED_MISSING_MODULE = (
        ErrorCode.WRITE_FAILED,
        "Spark's Python workers lack {missing}, so the data could not be written to {path}. "
        "The table is unchanged and what was written has been removed. Install it for the "
        "Python of the workers (PYSPARK_PYTHON), then retry.",
    )
    WRITE_FAILED_STORAGE = (
        ErrorCode.WRITE_FAILED,
        "The data could not be written to {path}: {reason}. The table is unchanged and what "
        "was written has been removed. Free space or grant access, then retry.",
    )
    WRITE_FAILED_UNSEEN = (
        ErrorCode.WRITE_FAILED,
        "Executors have written {written} to {path}, but the driver sees {there}: executors "
        "do not see the directory that the driver sees. Nothing was committed. Mount the "
        "same file system at that path on the driver and on every executor (over Spark "
        "Connect: on the client and on the server, too), then retry.",
    )
    WRITE_FAILED_WORKER_PATHS = (
        ErrorCode.WRITE_FAILED,
        "Workers could not write data files to {path}: {reason}. Nothing was committed. Give "
        "the workers access to the storage, then retry.",
    )

    # commands
    CANNOT_RESTORE_TABLE_VERSION = (
        ErrorCode.CANNOT_RESTORE_TABLE_VERSION,
        "Cannot restore table to version {version}. Available versions: [{first}, {latest}].",
    )
    CANNOT_VACUUM_LITE = (
        ErrorCode.CANNOT_VACUUM_LITE,
        "VACUUM LITE cannot delete all eligible files as some files are not referenced by "
        "the Delta log: its first commit is version {version}, and nothing is known of what "
        "was removed from version {first} on. Please run VACUUM FULL.",
    )
    CLUSTERING_WITH_PARTITION_PREDICATE = (
        ErrorCode.CLUSTERING_WITH_PARTITION_PREDICATE,
        "OPTIMIZE command for Delta table with clustering doesn't support partition "
        "predicates. Please remove the predicates: {predicates_shown}.",
    )
    CLUSTERING_WITH_ZORDER_BY = (
        ErrorCode.CLUSTERING_WITH_ZORDER_BY,
        "OPTIMIZE command for Delta table with clustering cannot specify ZORDER BY. Please "
        "remove ZORDER BY ({z_order_by}).",
    )
    COLUMN_NOT_FOUND_IN_SCHEMA_DIFF_KEYS = (
        ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA,
        "keys names {column!r}, which is no column. There are: {names}.",
    )
    CONCURRENT_WRITE_OWN_READS = (
        ErrorCode.CONCURRENT_WRITE,
        "A concurrent transaction has written new data since the rows to be written were "
        "read from the table itself. {again}",
    )
    DESC_TABLE_COLUMN_NESTED = (
        ErrorCode.DESC_TABLE_COLUMN_NESTED,
        "DESC TABLE COLUMN does not support nested column: {column}.",
    )
    FILE_NOT_FOUND_RESTORE = (
        ErrorCode.FILE_NOT_FOUND,
        "Not all files from version {version} are available in file system. Missed files "
        "(top {named_max} files): {missing}. Please use more recent version or timestamp for "
        "{purpose}. To disable check update option {ignore_missing_setting}.",
    )
    INVALID_ARGUMENT_DIFF_TYPES = (
        ErrorCode.INVALID_ARGUMENT,
        "The column {column!r} has the type {old_type} in one of the versions and "
        "{field_type} in the other. Compare versions on one side of that change.",
    )
    INVALID_CONF_VALUE_FILE_OPTION = (
        ErrorCode.INVALID_CONF_VALUE,
        "{key} is {value!r}: set it to {wanted}.",
    )
    INVALID_IDEMPOTENT_WRITES_OPTIONS = (
        ErrorCode.INVALID_IDEMPOTENT_WRITES_OPTIONS,
        "txnAppId is {app_id!r} and txnVersion is {version!r}: set both, the version to a "
        "whole number, or neither. They are options of a write, or the session settings "
        "{txn_app_id_key} and {txn_version_key}.",
    )
    INVALID_INVENTORY_SCHEMA = (
        ErrorCode.INVALID_INVENTORY_SCHEMA,
        "The schema for the specified INVENTORY does not contain all of the required fields. "
        "Required fields are: {expected}. It has {schema}.",
    )
    INVALID_WRITE_OPTION_CHANGES_SCHEMA = (
        ErrorCode.INVALID_WRITE_OPTION,
        "Invalid value {value!r} for the setting {setting}: use 'endVersion', 'latest' or "
        "'legacy'.",
    )
    INVALID_WRITE_OPTION_NUMBER_OF_ROWS = (
        ErrorCode.INVALID_WRITE_OPTION,
        "{option} is a whole number of rows, not {value!r}.",
    )
    INVALID_WRITE_OPTION_OPTIMIZE_SETTING = (
        ErrorCode.INVALID_WRITE_OPTION,
        "The setting {setting} cannot be {value_shown!r}: it {need}.",
    )
    MANIFEST_WITH_DELETION_VECTORS = (
        ErrorCode.MANIFEST_WITH_DELETION_VECTORS,
        "Symlink manifest generation is unsupported while deletion vectors are present in "
        "the table {path}. In order to produce a version of the table without deletion "
        "vectors, rewrite its files.",
    )
    INVALID_CDC_DEDUPLICATION_MODE = (
        ErrorCode.INVALID_CDC_DEDUPLICATION_MODE,
        "Invalid `deduplicationMode`: '{mode}'. Expected one of: none, dropCarryovers, netChanges.",
    )
    INVALID_CDC_UPDATES_WITH_CARRYOVERS = (
        ErrorCode.INVALID_CDC_UPDATES_WITH_CARRYOVERS,
        "`computeUpdates` cannot be used with `deduplicationMode=none` on {name}: rows that were "
        "only carried into another file would look like updates. Set `deduplicationMode` to "
        "dropCarryovers or netChanges.",
    )
    MULTIPLE_CDC_BOUNDARY = (
        ErrorCode.MULTIPLE_CDC_BOUNDARY,
        "Multiple {startingOrEnding} arguments provided for CDC read. Please provide one of "
        "either {startingOrEnding}Timestamp ({timestamp!r}) or {startingOrEnding}Version "
        "({version!r}).",
    )
    NO_START_FOR_CDC_READ = (
        ErrorCode.NO_START_FOR_CDC_READ,
        "No startingVersion or startingTimestamp provided for CDC read. Pass one of them.",
    )
    NUM_RECORDS_MISMATCH_OPTIMIZE = (
        ErrorCode.NUM_RECORDS_MISMATCH,
        "OPTIMIZE wrote {num_rows} rows of files that hold {known} by their statistics. "
        "Nothing was committed. The statistics are wrong, or this is a bug.",
    )
    ONE_OF_IN_TIME_TRAVEL_READ = (
        ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        "Please either provide 'timestamp' or 'version' for time travel, not both: version "
        "{version!r}, timestamp {timestamp!r}.",
    )
    OPTIMIZE_FULL_NOT_SUPPORTED = (
        ErrorCode.OPTIMIZE_FULL_NOT_SUPPORTED,
        "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns.",
    )
    SCHEMA_CHANGE_SINCE_ANALYSIS = (
        ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS,
        "The rows to be written read columns of the table itself that are gone or have "
        "another type now. {again}",
    )
    SCHEMA_NOT_SET = (
        ErrorCode.SCHEMA_NOT_SET,
        "Table schema is not set. Write data into {root_uri} before it is streamed.",
    )
    SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN = (
        ErrorCode.SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN,
        "Non-partitioning column(s) [{columns}] are specified for SHOW PARTITIONS. The table is "
        "partitioned by [{partition_columns}].",
    )
    SHOW_PARTITION_IN_NON_PARTITIONED_TABLE = (
        ErrorCode.SHOW_PARTITION_IN_NON_PARTITIONED_TABLE,
        "SHOW PARTITIONS is not allowed on a table that is not partitioned: {table}",
    )
    TIMESTAMP_INVALID_TEXT = (
        ErrorCode.TIMESTAMP_INVALID,
        "The provided timestamp ({timestamp!r}) cannot be converted to a valid timestamp.",
    )
    UNSUPPORTED_GENERATE_MODE = (
        ErrorCode.UNSUPPORTED_GENERATE_MODE,
        "Specified mode '{mode}' is not supported. Supported modes are: {symlink_manifest}",
    )
    UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING = (
        ErrorCode.UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING,
        "Manifest generation is not supported for tables that leverage column mapping, as "
        "external readers cannot read these Delta tables.",
    )
    UNSUPPORTED_STORAGE_ARBITER = (
        ErrorCode.UNSUPPORTED_STORAGE,
        "The setting {setting} names {arbiter}: other writers of {path} may ask DynamoDB who "
        "has made a version, and would replace commits of this library, which does not. "
        "Unset it once every writer of the table puts its commits conditionally "
        "(If-None-Match); reading is safe.",
    )
    VACUUM_RETENTION_PERIOD_NEGATIVE = (
        ErrorCode.VACUUM_RETENTION_PERIOD_NEGATIVE,
        "Retention period for Vacuum can't be less than 0 hours, but is {hours}.",
    )
    VACUUM_RETENTION_PERIOD_TOO_SHORT = (
        ErrorCode.VACUUM_RETENTION_PERIOD_TOO_SHORT,
        "The specified VACUUM retention period is too low and may corrupt this Delta table "
        "if any writes are in progress. If no operations (insert, upsert, delete, optimize) "
        "are running, you can disable this safety check by setting: "
        "{vacuum_retention_check_key} = false. Otherwise, use a retention period of at least "
        "{least_hours} hours.",
    )
    TIME_TRAVEL_INVALID_BEGIN_VALUE = (
        ErrorCode.TIME_TRAVEL_INVALID_BEGIN_VALUE,
        "versionAsOf needs to be a valid begin value: {version!r} is not a valid version. Pass a "
        "whole number.",
    )
    VERSION_INVALID = (
        ErrorCode.VERSION_INVALID,
        "The provided version ({version!r}) is not a valid version. Pass a whole number.",
    )
    ZORDERING_COLUMN_DOES_NOT_EXIST = (
        ErrorCode.ZORDERING_COLUMN_DOES_NOT_EXIST,
        "Z-Ordering column {column} does not exist in data schema.",
    )
    ZORDERING_ON_COLUMN_WITHOUT_STATS = (
        ErrorCode.ZORDERING_ON_COLUMN_WITHOUT_STATS,
        "Z-Ordering on [{without}] will be ineffective, because we currently do not collect "
        "stats for these columns. You can disable this check by setting SET "
        "{z_order_stats_check_key} = false",
    )
    ZORDERING_ON_PARTITION_COLUMN = (
        ErrorCode.ZORDERING_ON_PARTITION_COLUMN,
        "{column} is a partition column. Z-Ordering can only be performed on data columns",
    )

    CANNOT_RESTORE_TABLE_VERSION_REVERT_DEFINITION = (
        ErrorCode.CANNOT_RESTORE_TABLE_VERSION,
        "Cannot revert version {version}: rows would come back, but {problem}. Versions that "
        "changed the table since: {later}. RESTORE the whole table, or insert the rows of the "
        "version before.",
    )
    CANNOT_RESTORE_TABLE_VERSION_REVERT_NOTHING = (
        ErrorCode.CANNOT_RESTORE_TABLE_VERSION,
        "Cannot revert version {version}: it changed no file that is left. Columns and properties "
        "are changed back with ALTER TABLE.",
    )
    CANNOT_RESTORE_TABLE_VERSION_REVERT_RANGE = (
        ErrorCode.CANNOT_RESTORE_TABLE_VERSION,
        "Cannot revert version {version}. Versions 1 to {latest} can be reverted.",
    )
    CONCURRENT_WRITE_REVERT = (
        ErrorCode.CONCURRENT_WRITE,
        "Cannot revert version {version}: version {later} ({operation}) has touched the file "
        "{path} since. Revert version {later} first, or RESTORE the whole table.",
    )

    # commands/alter
    ADD_CONSTRAINTS = (
        ErrorCode.ADD_CONSTRAINTS,
        "Please use ALTER TABLE ADD CONSTRAINT to add CHECK constraints.",
    )
    AGGREGATE_IN_CHECK_CONSTRAINT = (
        ErrorCode.AGGREGATE_IN_CHECK_CONSTRAINT,
        "Found {expression} in a CHECK constraint. Aggregate expressions are not allowed in "
        "CHECK constraints.",
    )
    ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE = (
        ErrorCode.ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE,
        "ALTER TABLE CLUSTER BY cannot be applied to a partitioned table.",
    )
    ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE = (
        ErrorCode.ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE,
        "Cannot enable {clustering} table feature using ALTER TABLE SET TBLPROPERTIES. "
        "Please use CREATE OR REPLACE TABLE CLUSTER BY to create a Delta table with "
        "clustering.",
    )
    CANNOT_CHANGE_LOCATION = (
        ErrorCode.CANNOT_CHANGE_LOCATION,
        "Cannot change the 'location' of the Delta table using SET TBLPROPERTIES.",
    )
    CANNOT_CHANGE_PROVIDER = (
        ErrorCode.CANNOT_CHANGE_PROVIDER,
        "'provider' is a reserved table property, and cannot be altered.",
    )
    CANNOT_DROP_CHECK_CONSTRAINT_FEATURE = (
        ErrorCode.CANNOT_DROP_CHECK_CONSTRAINT_FEATURE,
        "Cannot drop the CHECK constraints table feature. The following constraints must be "
        "dropped first: {names}.",
    )
    CONSTRAINT_ALREADY_EXISTS = (
        ErrorCode.CONSTRAINT_ALREADY_EXISTS,
        "Constraint '{name}' already exists. Please delete the old constraint first. Old "
        "constraint: {old}",
    )
    CONSTRAINT_DOES_NOT_EXIST = (
        ErrorCode.CONSTRAINT_DOES_NOT_EXIST,
        "Cannot drop nonexistent constraint {name} from table delta.`{root_uri}`. To avoid "
        "throwing an error, provide the parameter IF EXISTS or set the SQL session "
        "configuration {assume_drop_if_exists_key} to true.",
    )
    FEATURE_DROP_CHECKPOINT_FAILED = (
        ErrorCode.FEATURE_DROP_CHECKPOINT_FAILED,
        "Dropping {feature} failed due to a failure in checkpoint creation. Please try again "
        "later.",
    )
    FEATURE_DROP_CHECKPOINT_PROTECTION_NEEDS_TRUNCATION = (
        ErrorCode.FEATURE_DROP_CHECKPOINT_PROTECTION_NEEDS_TRUNCATION,
        "Could not drop the Checkpoint Protection feature. This feature can only be dropped "
        "by truncating history (truncateHistory=True).",
    )
    FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT = (
        ErrorCode.FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT,
        "The operation did not succeed because there are still traces of dropped features in "
        "the table history: it begins with version {oldest_version}, and versions before "
        "{protected_before} used them. CheckpointProtection cannot be dropped until these "
        "historical versions have expired (delta.logRetentionDuration).",
    )
    FEATURE_DROP_CONFLICT_REVALIDATION_FAIL_DOWNGRADE = (
        ErrorCode.FEATURE_DROP_CONFLICT_REVALIDATION_FAIL,
        "Cannot drop {feature} because a concurrent transaction enabled it again. Please try "
        "the operation again.",
    )
    FEATURE_DROP_CONFLICT_REVALIDATION_FAIL_USED_AGAIN = (
        ErrorCode.FEATURE_DROP_CONFLICT_REVALIDATION_FAIL,
        "Cannot drop {feature} because a concurrent transaction {what}. Please try the "
        "operation again.",
    )
    FEATURE_DROP_DEPENDENT_FEATURE = (
        ErrorCode.FEATURE_DROP_DEPENDENT_FEATURE,
        "Cannot drop table feature `{feature}` because some other features ({needed_by}) in "
        "this table depends on `{feature}`. Consider dropping them first before dropping "
        "this feature.",
    )
    FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY = (
        ErrorCode.FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY,
        "Cannot drop `{property}` from this table because this is a delta table property and "
        "not a table feature.",
    )
    FEATURE_DROP_FEATURE_NOT_PRESENT = (
        ErrorCode.FEATURE_DROP_FEATURE_NOT_PRESENT,
        "Cannot drop {feature} from this table because it is not currently present in the "
        "table's protocol.",
    )
    FEATURE_DROP_HISTORICAL_VERSIONS_EXIST = (
        ErrorCode.FEATURE_DROP_HISTORICAL_VERSIONS_EXIST,
        "Cannot drop {feature} because the Delta log contains historical versions that use "
        "the feature. Please wait until the history retention period {command} has passed "
        "since the feature was last active, and repeat this command; or drop it without "
        "TRUNCATE HISTORY.",
    )
    FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED = (
        ErrorCode.FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED,
        "The particular feature does not require history truncation: {feature}.",
    )
    FEATURE_DROP_NONREMOVABLE_FEATURE = (
        ErrorCode.FEATURE_DROP_NONREMOVABLE_FEATURE,
        "Cannot drop {feature} because dropping this feature is not supported.",
    )
    FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE = (
        ErrorCode.FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE,
        "Cannot drop {feature} because it is no feature that puredelta knows.",
    )
    FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD = (
        ErrorCode.FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD,
        "Dropping {feature} was partially successful. The feature is now no longer used in "
        "the current version of the table. However, the feature is still present in "
        "historical versions of the table. The table feature cannot be dropped from the "
        "table protocol until these historical versions have expired. To drop the table "
        "feature from the protocol, please wait for the historical versions to expire, and "
        "then repeat this command: {command}. Without TRUNCATE HISTORY it can be dropped now.",
    )
    IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED = (
        ErrorCode.IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED,
        "ALTER TABLE ALTER COLUMN is not supported for IDENTITY columns: {column}.",
    )
    IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN = (
        ErrorCode.IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN,
        "ALTER TABLE ALTER COLUMN SYNC IDENTITY cannot be called on non IDENTITY columns: "
        "{column}.",
    )
    IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED = (
        ErrorCode.IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED,
        "ALTER TABLE REPLACE COLUMNS is not supported for tables with IDENTITY columns.",
    )
    INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING = (
        ErrorCode.INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING,
        "Found invalid character(s) among {invalid_characters!r} in the column names of your "
        "schema. Invalid column names: {wrong}. Column mapping cannot be removed when there "
        "are invalid characters in the column names. Please rename the columns to remove the "
        "invalid characters and execute this command again.",
    )
    INVALID_CONSTRAINT_NAME = (
        ErrorCode.INVALID_CONSTRAINT_NAME,
        "Cannot use {name} as the name of a CHECK constraint. This name is reserved.",
    )
    MISSING_DELTA_TABLE_NEW_LOCATION = (
        ErrorCode.MISSING_DELTA_TABLE,
        "{table} is not a Delta table, which the new location of one has to be. Copy or "
        "clone the table to it first.",
    )
    NEW_CHECK_CONSTRAINT_VIOLATION = (
        ErrorCode.NEW_CHECK_CONSTRAINT_VIOLATION,
        "{num_rows} rows in delta.`{root_uri}` violate the new CHECK constraint ({expression})",
    )
    NON_BOOLEAN_CHECK_CONSTRAINT = (
        ErrorCode.NON_BOOLEAN_CHECK_CONSTRAINT,
        "CHECK constraint '{name}' ({expression}) should be a boolean expression.",
    )
    NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT = (
        ErrorCode.NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT,
        "Found {expression} in a CHECK constraint. A CHECK constraint cannot use a "
        "nondeterministic expression.",
    )
    OPERATION_NOT_ALLOWED_DOMAIN_METADATA = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "The table has metadata of the domain(s) {domain_metadata}, which would be lost.",
    )
    OPERATION_NOT_ALLOWED_NOT_NULL = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Operation not allowed: `NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for "
        "Delta tables: {required}. The rows there are have no value for it.",
    )
    ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION_SUSPENDED = (
        ErrorCode.ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION,
        "Row tracking cannot be enabled while it is suspended. Set the table property "
        "delta.rowTrackingSuspended to false first.",
    )
    SET_LOCATION_SCHEMA_MISMATCH = (
        ErrorCode.SET_LOCATION_SCHEMA_MISMATCH,
        "The schema of the new Delta location is different than the current table "
        "schema.\noriginal schema: {original}, partitioned by {partition_columns}\ndestination "
        "schema: {destination}, partitioned by {partition_columns_shown}\nIf this is "
        "intended, set {alter_location_bypass_key} to true.",
    )
    UNRESOLVED_COLUMN_CONSTRAINT = (
        ErrorCode.UNRESOLVED_COLUMN,
        "CHECK constraint '{name}' ({expression}) names a column that does not exist. There "
        "are: {names}.",
    )
    CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES = (
        ErrorCode.CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES,
        "Cannot override or unset in-commit timestamp table properties because this table is "
        'catalog-managed. Remove "delta.enableInCommitTimestamps", '
        '"delta.inCommitTimestampEnablementVersion", and '
        '"delta.inCommitTimestampEnablementTimestamp" from the TBLPROPERTIES clause and then retry '
        "the command.",
    )
    UNSET_NON_EXISTENT_PROPERTY = (
        ErrorCode.UNSET_NON_EXISTENT_PROPERTY,
        "Attempted to unset non-existent property '{property}' in table {root_uri}.",
    )
    UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP = (
        ErrorCode.UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP,
        "ALTER TABLE CHANGE COLUMN is not supported for changing column {column} from {old} "
        "to {new}. Types become wider where 'delta.enableTypeWidening' is true; fields of "
        "structs are added and dropped one by one.",
    )
    UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP = (
        ErrorCode.UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP,
        "Unsupported ALTER TABLE REPLACE COLUMNS operation. Reason: {what}. State every "
        "column the table has with its type, or use ALTER TABLE DROP COLUMN and ALTER COLUMN "
        "TYPE.",
    )
    UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE_PROPERTY = (
        ErrorCode.UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE,
        "Changing column mapping mode from '{old_mode}' to '{new_mode}' is not supported.",
    )
    UNSUPPORTED_COMMENT_MAP_ARRAY = (
        ErrorCode.UNSUPPORTED_COMMENT_MAP_ARRAY,
        "Can't add a comment to {column}. Adding a comment to a map key/value or array "
        "element is not supported.",
    )
    UNSUPPORTED_DROP_CLUSTERING_COLUMN = (
        ErrorCode.UNSUPPORTED_DROP_CLUSTERING_COLUMN,
        "Dropping clustering columns ({wanted}) is not allowed.",
    )
    UNSUPPORTED_DROP_COLUMN = (
        ErrorCode.UNSUPPORTED_DROP_COLUMN,
        "DROP COLUMN is not supported for your Delta table. Please enable Column Mapping on "
        "your Delta table with mapping mode 'name': ALTER TABLE table_name SET TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name').",
    )
    UNSUPPORTED_DROP_PARTITION_COLUMN = (
        ErrorCode.UNSUPPORTED_DROP_PARTITION_COLUMN,
        "Dropping partition columns ({partitions}) is not allowed.",
    )
    UNSUPPORTED_RENAME_COLUMN = (
        ErrorCode.UNSUPPORTED_RENAME_COLUMN,
        "Column rename is not supported for your Delta table. Please enable Column Mapping on "
        "your Delta table with mapping mode 'name': ALTER TABLE table_name SET TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name').",
    )
    WRONG_COLUMN_DEFAULTS_ADD_COLUMN = (
        ErrorCode.WRONG_COLUMN_DEFAULTS_ADD_COLUMN,
        "Failed to execute the command because DEFAULT values are not supported when adding "
        "new columns to previously existing Delta tables; please add the column {column} "
        "without a default value first, then run a second ALTER TABLE ALTER COLUMN SET "
        "DEFAULT command to apply for future inserted rows instead.",
    )
    WRONG_COLUMN_DEFAULTS_FEATURE_NOT_ENABLED_ALTER = (
        ErrorCode.WRONG_COLUMN_DEFAULTS_FEATURE_NOT_ENABLED,
        "Failed to execute ALTER TABLE command because it assigned a column DEFAULT value to "
        "{column}, but the corresponding table feature was not enabled. Please retry the "
        "command again after executing ALTER TABLE tableName SET "
        "TBLPROPERTIES('delta.feature.{defaults_feature}' = 'supported').",
    )

    # commands/convert
    CATALOG_ENTRY_NOT_UPDATED_CONVERT = (
        ErrorCode.CATALOG_ENTRY_NOT_UPDATED,
        "The files of {name} are a Delta table now, {path}, but the entry of {name} in the "
        "catalog is still that of a Parquet table: {reason}. Write nothing to {name} by its "
        "name until you have run CONVERT TO DELTA {name} again, which changes the entry "
        "alone, or puredelta.undo_convert, which makes it a Parquet table again.",
    )
    CATALOG_ENTRY_NOT_UPDATED_UNDO = (
        ErrorCode.CATALOG_ENTRY_NOT_UPDATED,
        "The catalog does not change the entry of {entry} back, so it and the Delta table "
        "{path} stay as they are: {refused}",
    )
    CONCURRENT_WRITE_CATALOG_ENTRY = (
        ErrorCode.CONCURRENT_WRITE,
        "The entry of {full_name} in the catalog was changed while the table was converted. "
        "Nothing was changed; convert it again.",
    )
    CONCURRENT_WRITE_CONVERTED_FILES = (
        ErrorCode.CONCURRENT_WRITE,
        "Files of {path} were written or removed while it was converted: {shown}. Nothing "
        "was changed; convert it again when no other program writes there.",
    )
    CONCURRENT_WRITE_ICEBERG = (
        ErrorCode.CONCURRENT_WRITE,
        "The Iceberg table {path} was written while it was converted: there is {newest} now. "
        "Nothing was changed; convert it again when no other program writes there.",
    )
    CONCURRENT_WRITE_UNDO = (
        ErrorCode.CONCURRENT_WRITE,
        "{path} was written to meanwhile, so its conversion cannot be undone.",
    )
    CONVERSION_NO_PARTITION_FOUND = (
        ErrorCode.CONVERSION_NO_PARTITION_FOUND,
        'Found no partition information in the catalog for table {table}. Have you run "MSCK '
        'REPAIR TABLE" on your table to discover partitions?',
    )
    CONVERSION_UNSUPPORTED_COLUMN_MAPPING = (
        ErrorCode.CONVERSION_UNSUPPORTED_COLUMN_MAPPING,
        "The configuration '{config}' cannot be set to `{mode}` when using CONVERT TO DELTA.",
    )
    CONVERT_METASTORE_METADATA_MISMATCH = (
        ErrorCode.CONVERT_METASTORE_METADATA_MISMATCH,
        "You are trying to convert a table which already has a delta log where the table "
        "properties in the catalog don't match the configuration in the delta log.\nTable "
        "properties in catalog: {catalog}\nDelta configuration: {log}\nTo merge the "
        "configurations, those of the catalog over those of the log, set "
        "{convert_metadata_check_key} to false.",
    )
    CONVERT_NON_PARQUET_TABLE_ENTRY = (
        ErrorCode.CONVERT_NON_PARQUET_TABLE,
        "CONVERT TO DELTA only supports parquet tables, but you are trying to convert a "
        "{source_name} source: {table}",
    )
    CONVERT_NON_PARQUET_TABLE_PATH = (
        ErrorCode.CONVERT_NON_PARQUET_TABLE,
        "CONVERT TO DELTA only supports parquet tables, but you are trying to convert a "
        "{source_name} source: `{provider}`.`{name}`",
    )
    CONVERT_ROW_TRACKING_WITHOUT_STATS = (
        ErrorCode.CONVERT_ROW_TRACKING_WITHOUT_STATS,
        "Cannot enable row tracking without collecting statistics.\nIf you want to enable row "
        "tracking, do the following:\n  1. Enable statistics collection: set "
        "spark.databricks.delta.stats.collect to true.\n  2. Convert with collect_stats=True.\n\n"
        "If you do not want to collect statistics, disable row tracking:\n  1. Unset "
        "{prefix}feature.rowTracking.\n  2. Unset {prefix}enableRowTracking.",
    )
    EMPTY_DIRECTORY = (
        ErrorCode.EMPTY_DIRECTORY,
        "No file found in the directory: {directory}. CONVERT TO DELTA takes a directory "
        "with Parquet files; names that begin with '_' or '.' are hidden.",
    )
    EXCEED_LIMIT_LENGTH = (
        ErrorCode.EXCEED_LIMIT_LENGTH,
        "Exceeds char/varchar type length limitation: {limit}. The value {text!r} of the "
        "partition column {column} {declared} has {text_count} characters: {path}",
    )
    FAILED_CAST_PARTITION_VALUE_CONVERT = (
        ErrorCode.FAILED_CAST_PARTITION_VALUE,
        "Failed to cast partition value `{value}` to {data_type}, the type declared for the "
        "partition column `{column}`, from parsing the file name: {path}",
    )
    FAILED_INFER_SCHEMA = (
        ErrorCode.FAILED_INFER_SCHEMA,
        "Failed to infer schema from the given list of files: none of them has a column.",
    )
    FAILED_MERGE_SCHEMA_FILE = (
        ErrorCode.FAILED_MERGE_SCHEMA_FILE,
        "Failed to merge schema of file {file}:\n{schema_text}\n{reason} Rewrite the file, or "
        "convert it apart from the others.",
    )
    FAILED_READ_FILE_FOOTER_CONVERT = (
        ErrorCode.FAILED_READ_FILE_FOOTER,
        "Could not read footer for file: {file}. Neither Arrow nor Spark reads it. {what}",
    )
    INVALID_PARTITION_COLUMN_NAME = (
        ErrorCode.INVALID_PARTITION_COLUMN_NAME,
        "Found partition columns having invalid character(s) among {invalid_characters!r}: "
        "{column!r}. Please change the name to your partition columns.",
    )
    INVALID_PARTITION_COLUMN_TYPE_CONVERT = (
        ErrorCode.INVALID_PARTITION_COLUMN_TYPE,
        "{given!r} is no list of partition columns. Write names and types: 'day date'.",
    )
    LOG_CORRUPTED_SINK_LOG = (
        ErrorCode.LOG_CORRUPTED,
        "The streaming sink's log {path}/{sink_log_directory} cannot be used: {problem}. To "
        "convert all files that lie in the directory, set "
        "spark.databricks.delta.convert.useMetadataLog to false.",
    )
    MISSING_DELTA_TABLE_UNDO = (
        ErrorCode.MISSING_DELTA_TABLE,
        "{table} is not a Delta table.",
    )
    MISSING_ICEBERG_CLASS = (
        ErrorCode.MISSING_ICEBERG_CLASS,
        "Iceberg class was not found. Please ensure Delta Iceberg support is installed: pip "
        "install 'puredelta[iceberg]' ({missing}).",
    )
    MISSING_PROVIDER_FOR_CONVERT_PATH = (
        ErrorCode.MISSING_PROVIDER_FOR_CONVERT,
        "CONVERT TO DELTA only supports parquet tables. Please rewrite your target as "
        "parquet.`{path}` if it's a parquet directory.",
    )
    MISSING_PROVIDER_FOR_CONVERT_TABLE = (
        ErrorCode.MISSING_PROVIDER_FOR_CONVERT,
        "CONVERT TO DELTA only supports parquet tables. Please rewrite your target as "
        "parquet.`{location}` if it's a parquet directory.",
    )
    NOT_NULL_CONSTRAINT_VIOLATED = (
        ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED,
        "NOT NULL constraint violated for column: {column}. The partition column is declared "
        "NOT NULL, but it is NULL for the file {path}.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_LATE_DEFAULT = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "The column {column} was added to the table with the default {default}, which Spark "
        "shows for the rows of the file {file}, written before. A Delta table would show "
        "NULL: rewrite the file (INSERT OVERWRITE of its partition or table) before you "
        "convert.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_OTHER_FILES = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "{path} is a Delta table already, and {others_count} Parquet file(s) have been "
        "written to it since that it does not know: {shown}. Their rows would be lost. Call "
        "puredelta.undo_convert for {full_name} and convert it again, or move the files away.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_OUTSIDE = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "Fail to relativize path {location} against base path {root_uri}: the partition "
        "{partition} of {table} lies outside of the table's directory. Move its files to "
        "{root_uri}/{partition} and set its location (ALTER TABLE ... SET LOCATION), or drop "
        "the partition from the catalog.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_SHARED_DIRECTORY = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "Two partitions of {table} share the directory {root_uri}/{path}, so their files "
        "cannot be told apart. Drop one of them from the catalog.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_UNDO = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "The conversion of {path} cannot be undone: {reason}. The table stays as it is; to "
        "get Parquet files of it, write its rows: df.write.parquet(path).",
    )
    OPERATION_NOT_ALLOWED_DETAIL_VERIFY = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "There are no statistics to verify: convert with statistics, or without verify=True.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_VIEW = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "Operation not allowed: `Converting a view to a Delta table` is not supported for "
        "Delta tables: {table}",
    )
    PARQUET_TYPE_ILLEGAL = (
        ErrorCode.PARQUET_TYPE_ILLEGAL,
        "Spark cannot read the schema of the file {file}, so it cannot be part of a table: "
        "{reason} {way_out}",
    )
    PARSE_SYNTAX_ERROR = (
        ErrorCode.PARSE_SYNTAX_ERROR,
        "{identifier!r} is not the name of a table. Name a table of the catalog, or a "
        "Parquet directory as parquet.`/path`, with backticks around the path.",
    )
    PARTITION_SCHEMA_IN_ICEBERG_TABLES = (
        ErrorCode.PARTITION_SCHEMA_IN_ICEBERG_TABLES,
        "Partition schema cannot be specified when converting Iceberg tables. It is "
        "automatically inferred.",
    )
    PATH_DOES_NOT_EXIST_CONVERT = (
        ErrorCode.PATH_DOES_NOT_EXIST,
        "{path} doesn't exist",
    )
    PATH_NOT_FOUND_ICEBERG = (
        ErrorCode.PATH_NOT_FOUND,
        "There is no Iceberg table at {path}. Name the directory of a table or its metadata "
        "file, absolutely: iceberg.`/path/metadata/v3.metadata.json`.",
    )
    PATH_NOT_FOUND_RELATIVE = (
        ErrorCode.PATH_NOT_FOUND,
        "Path does not exist: {path}. The path of {provider}.`{path}` must be absolute.",
    )
    REQUIRES_SINGLE_PART_NAMESPACE = (
        ErrorCode.REQUIRES_SINGLE_PART_NAMESPACE,
        "{session_catalog} requires a single-part namespace, but got identifier "
        "{identifier}. CONVERT TO DELTA takes tables of {session_catalog} only.",
    )
    TABLE_NOT_FOUND_CONVERTED = (
        ErrorCode.TABLE_NOT_FOUND,
        "`{path}` is not a Delta table. If it is a directory of Parquet files, convert "
        "parquet.`{path}`.",
    )
    TABLE_OR_VIEW_NOT_FOUND_CONVERT = (
        ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
        "The table or view {table} cannot be found ({place}). Verify the spelling and "
        "correctness of the schema and catalog. CONVERT TO DELTA takes tables of "
        "{session_catalog}, no temporary views, and directories: parquet.`/path`.",
    )
    TABLE_OR_VIEW_NOT_FOUND_UNDO = (
        ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
        "The table or view {table} cannot be found. Verify the spelling and correctness of "
        "the schema and catalog.",
    )
    UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME = (
        ErrorCode.UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME,
        "Expecting {num_expected} partition column(s): {expected}, but found {num_parsed} "
        "partition column(s): {parsed} from parsing the file name: {path}{hint}",
    )
    UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME_EMPTY = (
        ErrorCode.UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME,
        "Empty partition column {half} in '{directory}', from parsing the file name: {path}. "
        "Hive spells an absent value {hive_null}.",
    )
    UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME_INFERRED = (
        ErrorCode.UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME,
        "The partition columns cannot be inferred: other files have {expected_columns}, but "
        "{parsed_columns} is parsed from the file name {path}. Convert the directories apart.",
    )
    UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME_OTHER = (
        ErrorCode.UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME,
        "Expecting partition column `{expected_column}`, but found partition column "
        "`{parsed_column}` from parsing the file name: {path}",
    )
    UNEXPECTED_PARTITION_SCHEMA_FROM_USER = (
        ErrorCode.UNEXPECTED_PARTITION_SCHEMA_FROM_USER,
        "CONVERT TO DELTA was called with a partition schema different from the partition "
        "schema inferred from the catalog, please avoid providing the schema so that the "
        "partition schema can be chosen from the catalog.\n\ncatalog partition "
        "schema:\n{catalog_partitions}\nprovided partition schema:\n{provided_partitions}",
    )
    UNSUPPORTED_DATA_FILE_ENCODING = (
        ErrorCode.UNSUPPORTED_DATA_FILE,
        "The name of {file_path!a} in {path} is no UTF-8, so Spark cannot open the file. "
        "Rename it, or the directory it is in.",
    )
    UNSUPPORTED_DATA_TYPES_CONVERT = (
        ErrorCode.UNSUPPORTED_DATA_TYPES,
        "Found columns using unsupported data types: [{columns}] in {found_in}. A Delta "
        "table cannot hold them: cast the columns to another type and rewrite the file.",
    )
    UNSUPPORTED_DATA_TYPES_ICEBERG = (
        ErrorCode.UNSUPPORTED_DATA_TYPES,
        "The Iceberg table cannot become a Delta table: its column {column} {reason}, which "
        "no Delta table can have over the same files. Drop the column in Iceberg, or write "
        "the rows to a new table.",
    )
    UNSUPPORTED_ICEBERG_TABLE_DELETES = (
        ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        "Rows are deleted that the file {path} does not have: it has {record_count}, and row "
        "{positions} is deleted.",
    )
    UNSUPPORTED_ICEBERG_TABLE_FIELD_IDS = (
        ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        "The Iceberg table cannot become a Delta table: the column {column} of the file "
        "{path} has no id, Iceberg finds it by its name (schema.name-mapping.default). "
        "Rewrite the table's data files in Iceberg (rewrite_data_files), then convert it "
        "again.",
    )
    UNSUPPORTED_ICEBERG_TABLE_FILE = (
        ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        "The file {path} of the Iceberg table {reason}.",
    )
    UNSUPPORTED_ICEBERG_TABLE_METADATA = (
        ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        "The file {path} is no metadata of an Iceberg table that pyiceberg can read: {error}",
    )
    UNSUPPORTED_ICEBERG_TABLE_METADATA_FILES = (
        ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        "{path} has metadata of an Iceberg table, but only its catalog knows which file is "
        "the newest that was committed. Name that file (in pyiceberg: "
        "table.metadata_location), probably iceberg.`{path}/metadata/{newest}`.",
    )
    UNSUPPORTED_ICEBERG_TABLE_MISSING_COLUMN = (
        ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        "The Iceberg table cannot become a Delta table: the file {path} lacks the column "
        "{column}, which its partition knows, and not all files are partitioned by it. "
        "Rewrite the file in Iceberg (rewrite_data_files), then convert it again.",
    )
    UNSUPPORTED_ICEBERG_TABLE_REASON = (
        ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        "The Iceberg table cannot become a Delta table: it {reason}. Rewrite its data files "
        "in Iceberg (rewrite_data_files), then convert it again.",
    )
    UNSUPPORTED_ON_CONNECT_CONVERT_TABLE = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "CONVERT TO DELTA of the table {table} needs a classic session: Spark would remove its "
        "files with its entry, because the table is managed or has the property "
        "external.table.purge. Copy it instead: CREATE TABLE other USING delta AS SELECT * FROM "
        "{table}.",
    )
    UNSUPPORTED_ON_CONNECT_UNDO = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "The entry {table} can be made one of Parquet files again only in a classic session. "
        "Nothing was changed.",
    )
    WRONG_STATISTICS = (
        ErrorCode.WRONG_STATISTICS,
        "The statistics that files of {path} hold are wrong:\n{shown}\nNothing was changed. "
        "Rewrite the files: every reader, Spark too, skips rows by what they say.",
    )

    # commands/create
    AGGREGATE_IN_GENERATED_COLUMN = (
        ErrorCode.AGGREGATE_IN_GENERATED_COLUMN,
        "Found {expression}. A generated column cannot use an aggregate expression: {column}.",
    )
    CANNOT_REPLACE_MISSING_TABLE = (
        ErrorCode.CANNOT_REPLACE_MISSING_TABLE,
        "Table {table} cannot be replaced as it does not exist. Use CREATE OR REPLACE TABLE "
        "to create the table.",
    )
    CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE = (
        ErrorCode.CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE,
        "Replacing a clustered Delta table with a partitioned table is not allowed.",
    )
    CLUSTER_BY_WITH_PARTITIONED_BY = (
        ErrorCode.CLUSTER_BY_WITH_PARTITIONED_BY,
        "Clustering and partitioning cannot both be specified. Please remove partitionedBy "
        "if you want to create a Delta table with clustering.",
    )
    CREATE_TABLE_SCHEME_MISMATCH = (
        ErrorCode.CREATE_TABLE_SCHEME_MISMATCH,
        "The specified schema does not match the existing schema at {path}. Specified: "
        "{columns}. Existing: {schema}. Differences: {differences}. To replace the table, "
        "use replace().",
    )
    CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE = (
        ErrorCode.CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE,
        "Cannot enable {clustering} table feature using TBLPROPERTIES. Please use CREATE OR "
        "REPLACE TABLE CLUSTER BY to create a Delta table with clustering.",
    )
    CREATE_TABLE_WITH_DIFFERENT_CLUSTERING = (
        ErrorCode.CREATE_TABLE_WITH_DIFFERENT_CLUSTERING,
        "The specified clustering columns do not match the existing clustering columns at "
        "{path}. Specified: [{specified_list}]. Existing: [{existing_list}]. To replace the "
        "table, use replace().",
    )
    CREATE_TABLE_WITH_DIFFERENT_PARTITIONING = (
        ErrorCode.CREATE_TABLE_WITH_DIFFERENT_PARTITIONING,
        "The specified partitioning do not match the existing partitioning at {path}. "
        "Specified: [{specified_list}]. Existing: [{existing_list}]. To replace the table, use "
        "replace().",
    )
    CREATE_TABLE_WITH_DIFFERENT_PROPERTY = (
        ErrorCode.CREATE_TABLE_WITH_DIFFERENT_PROPERTY,
        "The specified properties do not match the existing properties at {path}. Specified: "
        "[{specified_list}]. Existing: [{existing_list}]. To replace the table, use replace().",
    )
    CREATE_TABLE_WITH_NON_EMPTY_LOCATION_CLONE = (
        ErrorCode.CREATE_TABLE_WITH_NON_EMPTY_LOCATION,
        "Cannot create table (`delta`.`{table}`). The associated location ('{path}') is not "
        "empty. Clone to another place, or replace the table that is there.",
    )
    CREATE_TABLE_WITH_NON_EMPTY_LOCATION_CREATE = (
        ErrorCode.CREATE_TABLE_WITH_NON_EMPTY_LOCATION,
        "Cannot create table ({name}). The associated location ('{path}') is not empty and "
        "also not a Delta table. Convert its Parquet files, or use another location.",
    )
    GENERATED_COLUMNS_EXPR_TYPE_MISMATCH = (
        ErrorCode.GENERATED_COLUMNS_EXPR_TYPE_MISMATCH,
        "The expression type of the generated column {column} is {found}, but the column "
        "type is {wanted}. Cast the expression.",
    )
    ILLEGAL_USAGE_OVERWRITE_SCHEMA = (
        ErrorCode.ILLEGAL_USAGE,
        "overwriteSchema is not allowed when replacing a Delta table: a replacement always "
        "takes the columns of the rows. Leave the option out, or overwrite the rows alone.",
    )
    INVALID_CLONE_PATH = (
        ErrorCode.INVALID_CLONE_PATH,
        "The target location for CLONE needs to be an absolute path or table name. Use an "
        "absolute path instead of {path}.",
    )
    INVALID_GENERATED_COLUMN_REFERENCES = (
        ErrorCode.INVALID_GENERATED_COLUMN_REFERENCES,
        "A generated column cannot use a non-existent column or another generated column: "
        "{column} is generated as {expression}.",
    )
    INVALID_TABLE_PROPERTY_DEMANDED = (
        ErrorCode.INVALID_TABLE_PROPERTY,
        "The catalog demands {key} = {demanded} of its managed tables, and the statement says "
        "{value}. Leave the property out, or give the table a LOCATION of its own.",
    )
    UNSUPPORTED_EXPRESSION_GENERATED_COLUMN = (
        ErrorCode.UNSUPPORTED_EXPRESSION_GENERATED_COLUMN,
        "Cannot create generated column {column} with generation expression {expression} because "
        "failed to resolve {function} to a built-in function. Sessions without that function "
        "could not write the table.",
    )
    NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN = (
        ErrorCode.NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN,
        "Found {expression}. A generated column cannot use a non deterministic expression: "
        "{column}.",
    )
    NOT_A_DELTA_TABLE = (
        ErrorCode.NOT_A_DELTA_TABLE,
        "{name} is not a Delta table. Please drop this table first if you would like to "
        "recreate it with Delta Lake.",
    )
    SCHEMA_NOT_PROVIDED_COLUMNS = (
        ErrorCode.SCHEMA_NOT_PROVIDED,
        "Table schema is not provided. Please provide the schema (column definition) of the "
        "table when using REPLACE table and an AS SELECT query is not provided.",
    )
    TABLE_LOCATION_MISMATCH = (
        ErrorCode.TABLE_LOCATION_MISMATCH,
        "The location of the existing table {name} is {known}. It doesn't match the specified "
        "location {location}.",
    )
    TABLE_NAME_ALREADY_EXISTS = (
        ErrorCode.TABLE_NAME_ALREADY_EXISTS,
        "Table {name_shown} already exists.",
    )
    TABLE_OR_VIEW_ALREADY_EXISTS = (
        ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS,
        "Cannot create table or view {name} because it already exists. Choose a different "
        "name, drop or replace the existing object, or add the IF NOT EXISTS clause "
        "(createIfNotExists) to tolerate pre-existing objects.",
    )
    TABLE_OR_VIEW_NOT_FOUND_REPLACE = (
        ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
        "The table or view {name} cannot be found: there is nothing to replace. Create it, "
        "or use createOrReplace.",
    )
    UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION_LOCATION = (
        ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION,
        "Only a table whose location the catalog chooses can be catalog-managed: leave the "
        "LOCATION out, or the property delta.feature.catalogManaged.",
    )
    UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE_CLONE = (
        ErrorCode.UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE,
        "Changing column mapping mode from '{current}' to '{wanted}' is not supported.",
    )
    UNSUPPORTED_DEEP_CLONE = (
        ErrorCode.UNSUPPORTED_DEEP_CLONE,
        "Deep clone is not supported by this Delta version. Make a shallow clone, or write "
        "the rows of the table to a new one.",
    )
    UNSUPPORTED_NON_EMPTY_CLONE = (
        ErrorCode.UNSUPPORTED_NON_EMPTY_CLONE,
        "The clone destination table is non-empty ({path}). Please truncate the table or "
        "delete its rows before running CLONE.",
    )
    WRONG_COLUMN_DEFAULTS_FEATURE_NOT_ENABLED_CREATE = (
        ErrorCode.WRONG_COLUMN_DEFAULTS_FEATURE_NOT_ENABLED,
        "Failed to execute CREATE TABLE command because it assigned a column DEFAULT value "
        "to {names}, but the corresponding table feature was not enabled. Please retry the "
        "command with the table property '{feature_prefix}{defaults_feature}' = 'supported'.",
    )

    # commands: definitions of tables
    CONSTRAINT_DATA_TYPE_MISMATCH = (
        ErrorCode.CONSTRAINT_DATA_TYPE_MISMATCH,
        "Column {column_name} has data type {column_type} and cannot be altered to data type "
        "{data_type} because this column is referenced by the following check constraint(s):\n"
        "{rules}",
    )
    CONSTRAINT_DEPENDENT_COLUMN_CHANGE = (
        ErrorCode.CONSTRAINT_DEPENDENT_COLUMN_CHANGE,
        "Cannot alter column {column} because this column is referenced by the following "
        "check constraint(s): {constraints}. Drop them first.",
    )
    GENERATED_COLUMNS_DATA_TYPE_MISMATCH = (
        ErrorCode.GENERATED_COLUMNS_DATA_TYPE_MISMATCH,
        "Column {column_name} has data type {column_type} and cannot be altered to data type "
        "{data_type} because this column is referenced by the following generated column(s):\n"
        "{rules}",
    )
    GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE = (
        ErrorCode.GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE,
        "Cannot alter column {column} because this column is referenced by the following "
        "generated column(s): {dependent}.",
    )
    GEOSPATIAL_NOT_SUPPORTED_MIXED = (
        ErrorCode.GEOSPATIAL_NOT_SUPPORTED,
        "A column of a table has one coordinate reference system, but every value of these "
        "has its own: {mixed}. Give all values the same, for example by `ST_SetSrid(value, "
        "4326)`, or store ST_AsBinary and ST_Srid of them.",
    )
    IDENTITY_COLUMNS_ILLEGAL_STEP = (
        ErrorCode.IDENTITY_COLUMNS_ILLEGAL_STEP,
        "IDENTITY column step cannot be 0: {column}.",
    )
    IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED = (
        ErrorCode.IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED,
        "PARTITIONED BY IDENTITY column {column} is not supported.",
    )
    IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE = (
        ErrorCode.IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE,
        "DataType {field_type} is not supported for IDENTITY columns: make {column} a BIGINT.",
    )
    NESTED_NOT_NULL_CONSTRAINT = (
        ErrorCode.NESTED_NOT_NULL_CONSTRAINT,
        "The {part} type of the field {column} contains a NOT NULL constraint. Delta does "
        "not support NOT NULL constraints nested within arrays or maps: {data_type}.",
    )
    SCHEMA_MISMATCH_COLUMNS = (
        ErrorCode.SCHEMA_MISMATCH,
        "A metadata mismatch was detected when writing to the Delta table.\n- A schema "
        "mismatch detected when writing to the Delta table (Table ID: {id}). Not in the "
        "table, or wider than there: {extra}.\nTo enable schema migration, set the option "
        "mergeSchema to true (or the session setting "
        "spark.databricks.delta.schema.autoMerge.enabled). To keep the table's schema, drop "
        "or cast these columns.\nTable schema: {schema}\nData schema: {rows}",
    )
    SCHEMA_MISMATCH_PARTITIONING = (
        ErrorCode.SCHEMA_MISMATCH,
        "A metadata mismatch was detected when writing to the Delta table.\n- Partition "
        "columns do not match the partition columns of the table.\nGiven: {wanted}\nTable: "
        "{partition_columns}\nLeave partition_by out to keep the table's. To change it, "
        "overwrite the table with the option overwriteSchema.",
    )
    UNSUPPORTED_DATA_TYPES_COLUMNS = (
        ErrorCode.UNSUPPORTED_DATA_TYPES,
        "Found columns using unsupported data types: [{wrong}]. Cast them to a type that "
        "Delta tables have.",
    )
    UNSUPPORTED_EXPRESSION_QUERY = (
        ErrorCode.UNSUPPORTED_EXPRESSION,
        "The {what} of the table is no expression over one row: {expression}. Queries in it "
        "would read tables of everybody who writes to this one. Remove it with ALTER TABLE.",
    )
    UNSUPPORTED_EXPRESSION_REFLECTION = (
        ErrorCode.UNSUPPORTED_EXPRESSION,
        "The {what} of the table calls {function}, which runs code in the JVM of everybody "
        "who writes to the table: {expression}. Remove it with ALTER TABLE, or, if you trust "
        "all who may write to the table, set {allow_reflection_key} to true.",
    )

    # commands/dml
    AGGREGATION_NOT_SUPPORTED = (
        ErrorCode.AGGREGATION_NOT_SUPPORTED,
        "Aggregate functions are not supported in the {operation} (condition = {predicate}).",
    )
    AMBIGUOUS_REFERENCE = (
        ErrorCode.AMBIGUOUS_REFERENCE,
        "Reference `{name}` is ambiguous, could be: [{reference_names}].",
    )
    CONFLICT_SET_COLUMN = (
        ErrorCode.CONFLICT_SET_COLUMN,
        "There is a conflict from these SET columns: [{column_list}].",
    )
    DEFAULT_PLACEMENT_INVALID_UPDATE = (
        ErrorCode.DEFAULT_PLACEMENT_INVALID,
        "A DEFAULT keyword could not be directly assigned to a target column because it was "
        "part of an expression: {expression}. `SET column = DEFAULT` is allowed.",
    )
    DUPLICATE_COLUMNS_ON_INSERT = (
        ErrorCode.DUPLICATE_COLUMNS_ON_INSERT,
        "Duplicate column names in INSERT clause: {repeated}.",
    )
    FAILED_RECOGNIZE_PREDICATE = (
        ErrorCode.FAILED_RECOGNIZE_PREDICATE,
        "Cannot recognize the predicate '{predicate}'",
    )
    FIELD_NOT_FOUND_DESCEND = (
        ErrorCode.FIELD_NOT_FOUND,
        "No such struct field {field} in {listed} (column {written}).",
    )
    FILTER_NOT_BOOLEAN = (
        ErrorCode.FILTER_NOT_BOOLEAN,
        'Cannot resolve "{sql_expr}" due to data type mismatch: Filter expression "{sql_expr}" '
        "of type {type} is not a boolean.",
    )
    FILTER_NOT_BOOLEAN_MERGE = (
        ErrorCode.FILTER_NOT_BOOLEAN,
        'The {words} {condition} of MERGE has the invalid type {type}, expected "BOOLEAN".',
    )
    IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED_CLAUSE = (
        ErrorCode.IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED,
        "Providing values for GENERATED ALWAYS AS IDENTITY column {written} is not supported.",
    )
    IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED = (
        ErrorCode.IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED,
        "UPDATE on IDENTITY column {written} is not supported.",
    )
    INVALID_CONF_VALUE_TYPE_WIDENING = (
        ErrorCode.INVALID_CONF_VALUE,
        "{conf_key} is {text!r}, but it must be one of {known}.",
    )
    INVALID_EXTRACT_BASE_FIELD_TYPE = (
        ErrorCode.INVALID_EXTRACT_BASE_FIELD_TYPE,
        'Can\'t extract a value from "{base}". Need a complex type [STRUCT, ARRAY, MAP] but '
        'got "{kind}".',
    )
    INVALID_NON_DETERMINISTIC_EXPRESSIONS = (
        ErrorCode.INVALID_NON_DETERMINISTIC_EXPRESSIONS,
        "The operator expects a deterministic expression, but the actual expression is "
        '"{sql_exprs}".',
    )
    JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE = (
        ErrorCode.JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE,
        'The {words} {condition} of MERGE has the invalid type {type}, expected "BOOLEAN".',
    )
    MERGE_ADD_VOID_COLUMN = (
        ErrorCode.MERGE_ADD_VOID_COLUMN,
        "Cannot add column `{new_column}` with type VOID. Please explicitly specify a "
        "non-void type.",
    )
    MERGE_INTO_EMPTY_SCHEMA_TARGET = (
        ErrorCode.MERGE_INTO_EMPTY_SCHEMA_TARGET,
        "Cannot MERGE INTO a table with no columns. The target table must have columns, or "
        "schema evolution must be enabled.",
    )
    MERGE_MISSING_WHEN = (
        ErrorCode.MERGE_MISSING_WHEN,
        "There must be at least one WHEN clause in a MERGE statement.",
    )
    MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT = (
        ErrorCode.MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT,
        "Resolved attribute(s) {missing_attributes} missing from {columns} in the {clause} of "
        "MERGE. Take columns from the DataFrames that are merged, or name them through their "
        "aliases.",
    )
    MERGE_UNRESOLVED_EXPRESSION = (
        ErrorCode.MERGE_UNRESOLVED_EXPRESSION,
        "Cannot resolve {sql_expr} in {clause} given columns {cols}.{hint}",
    )
    MERGE_UNRESOLVED_EXPRESSION_COLUMN = (
        ErrorCode.MERGE_UNRESOLVED_EXPRESSION,
        "Cannot resolve {sql_expr} in {clause} given columns {cols}.",
    )
    MERGE_UNRESOLVED_EXPRESSION_DEFAULT = (
        ErrorCode.MERGE_UNRESOLVED_EXPRESSION,
        "Cannot resolve DEFAULT as a value of {written}: columns have defaults, fields "
        "inside of them have none.",
    )
    MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW = (
        ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW,
        "Cannot perform Merge as multiple source rows matched and attempted to modify the "
        "same target row in the Delta table in possibly conflicting ways. By SQL semantics "
        "of Merge, when multiple source rows match on the same target row, the result may be "
        "ambiguous as it is unclear which source row should be used to update or delete the "
        "matching target row. You can preprocess the source table to eliminate the "
        "possibility of multiple matches. For example, the target row {shown}. Nothing was "
        "changed.",
    )
    NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED = (
        ErrorCode.NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED,
        "Non-deterministic functions are not supported in the {operation} (condition = "
        "{expression}).",
    )
    NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION = (
        ErrorCode.NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
        "When there are more than one MATCHED clauses in a MERGE statement, only the last "
        "MATCHED clause can omit the condition.",
    )
    NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION = (
        ErrorCode.NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
        "When there are more than one NOT MATCHED BY SOURCE clauses in a MERGE statement, only "
        "the last NOT MATCHED BY SOURCE clause can omit the condition.",
    )
    NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION = (
        ErrorCode.NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
        "When there are more than one NOT MATCHED clauses in a MERGE statement, only the last "
        "NOT MATCHED clause can omit the condition.",
    )
    NON_PARTITION_COLUMN_REFERENCE = (
        ErrorCode.NON_PARTITION_COLUMN_REFERENCE,
        "Predicate references non-partition column '{column}'. Only the partition columns "
        "may be referenced: [{partition_columns}]",
    )
    NUM_RECORDS_MISMATCH_CHANGES = (
        ErrorCode.NUM_RECORDS_MISMATCH,
        "{operation} wrote {num_changes} change rows where {due} were due. Nothing was "
        "committed. This is a bug.",
    )
    NUM_RECORDS_MISMATCH_INSERTS = (
        ErrorCode.NUM_RECORDS_MISMATCH,
        "{operation} wrote {num_rows} rows where {num_updates} updates and {wanted} inserts "
        "were due. Nothing was committed. This is a bug.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_EXPLAIN_MODE = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "There is no mode {mode!r} of explain. Use 'plan', which runs no Spark job, or "
        "'source', which evaluates the source; dry_run() goes on to the counts.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_PREVIEW_LIMIT = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "The limit of a preview is {limit!r}: give a whole number of rows, 1 or more.",
    )
    RESERVED_CDC_COLUMNS_ON_WRITE_PREVIEW = (
        ErrorCode.RESERVED_CDC_COLUMNS_ON_WRITE,
        "A preview has the columns {change_type} and {clause_column}, but the table has "
        "{taken} already. Use dry_run() for the counts.",
    )
    SCHEMA_CHANGE_SINCE_ANALYSIS_CHANGES = (
        ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS,
        "The schema of your Delta table has changed in an incompatible way since your "
        "DataFrame or DeltaTable object was created. Please redefine your DataFrame or "
        "DeltaTable object. {changes}It was {known} and is {current}.",
    )
    UNSUPPORTED_EXPR_FOR_OPERATOR = (
        ErrorCode.UNSUPPORTED_EXPR_FOR_OPERATOR,
        "A query operator contains one or more unsupported expressions. Consider to rewrite it "
        "to avoid window functions, aggregate functions, and generator functions. Invalid "
        "expressions: [{invalid_expressions}].",
    )
    UNSUPPORTED_EXPR_FOR_OPERATOR_CLAUSE = (
        ErrorCode.UNSUPPORTED_EXPR_FOR_OPERATOR,
        "Aggregate and window functions are not supported in the {clause} of MERGE: "
        "{invalid_expressions}. Compute the value in the source first.",
    )
    UNSUPPORTED_NESTED_FIELD_IN_OPERATION = (
        ErrorCode.UNSUPPORTED_NESTED_FIELD_IN_OPERATION,
        "Nested field is not supported in the INSERT clause of MERGE operation (field = "
        "{field_name}).",
    )
    UNSUPPORTED_NESTED_FIELD_IN_UPDATE = (
        ErrorCode.UNSUPPORTED_NESTED_FIELD_IN_UPDATE,
        "Cannot resolve {value} in target columns in {clause} given columns {displayed} - "
        "Updating nested fields is only supported for StructType.",
    )
    UNSUPPORTED_SUBQUERY = (
        ErrorCode.UNSUPPORTED_SUBQUERY,
        "Subqueries are not supported in the {operation} (condition = {cond}).",
    )
    UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES = (
        ErrorCode.UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES,
        "Subquery is not supported in partition predicates.",
    )
    UNSUPPORTED_SUBQUERY_USE_MERGE = (
        ErrorCode.UNSUPPORTED_SUBQUERY,
        "Subqueries are not supported in the {operation} (condition = {cond}). A MERGE can "
        "look at other tables.",
    )

    # commands/write
    COLUMN_ALREADY_EXISTS = (
        ErrorCode.COLUMN_ALREADY_EXISTS,
        "A column is named twice in the column list {columns_shown}.",
    )
    DATA_CHANGE_FALSE = (
        ErrorCode.DATA_CHANGE_FALSE,
        "Cannot change table metadata because the 'dataChange' option is set to false. "
        "Attempted operation: '{attempted}'. Leave the option out, or change the table first.",
    )
    DYNAMIC_PARTITION_OVERWRITE_DISABLED = (
        ErrorCode.DYNAMIC_PARTITION_OVERWRITE_DISABLED,
        "Dynamic partition overwrite mode is specified by session config or write options, "
        "but it is disabled by `{setting}=false`.",
    )
    EMPTY_DATA = (
        ErrorCode.EMPTY_DATA,
        "Data used in creating the Delta table doesn't have any columns.",
    )
    EXPECTATION_VIOLATED = (
        ErrorCode.EXPECTATION_VIOLATED,
        "Rows are not as expected. Broken: {shown}. Nothing was written.",
    )
    IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED_WRITE = (
        ErrorCode.IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED,
        "Providing values for GENERATED ALWAYS AS IDENTITY column {col_name} is not "
        "supported. Leave it out.",
    )
    INVALID_ARGUMENT_EXPECTATION = (
        ErrorCode.INVALID_ARGUMENT,
        "The expectation {expectation!r} must be a condition, as SQL text or a Column, not {type}.",
    )
    INVALID_ARGUMENT_EXPECTATION_ACTION = (
        ErrorCode.INVALID_ARGUMENT,
        "The expectation {expectation!r} has the action {given!r}. Use 'warn', 'drop' or 'fail'.",
    )
    INVALID_WRITE_OPTION_FLAG = (
        ErrorCode.INVALID_WRITE_OPTION,
        "The write option {option!r} is true or false, not {text!r}.",
    )
    INVALID_WRITE_OPTION_MODE = (
        ErrorCode.INVALID_WRITE_OPTION,
        "There is no write mode {mode!r}. Use one of {modes}.",
    )
    INVALID_WRITE_OPTION_NULL_PARTITIONS = (
        ErrorCode.INVALID_WRITE_OPTION,
        "Invalid value {given!r} for option '{option}', this option should be specified only "
        "in Dynamic Partition Overwrite mode.",
    )
    INVALID_WRITE_OPTION_PARTITION_OVERWRITE_MODE = (
        ErrorCode.INVALID_WRITE_OPTION,
        "The write option 'partitionOverwriteMode' is static or dynamic, not {mode!r}.",
    )
    INVALID_WRITE_OPTION_UNKNOWN = (
        ErrorCode.INVALID_WRITE_OPTION,
        "There is no write option {option!r}. Options are {write_options}, table properties "
        "(delta.*), and settings of Parquet's writer (parquet.*).",
    )
    MISSING_NOT_NULL_COLUMN_VALUE = (
        ErrorCode.MISSING_NOT_NULL_COLUMN_VALUE,
        "Column {column}, which has a NOT NULL constraint, is missing from the data being "
        "written into the table.",
    )
    NON_PARTITION_COLUMN = (
        ErrorCode.NON_PARTITION_COLUMN,
        "PARTITION clause cannot contain the non-partition column: `{column}`. The table is "
        "partitioned by {partition_columns}.",
    )
    OPERATION_NOT_ALLOWED_PREVIEW_WRITE = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Only a write with replaceWhere has a preview: what others write are the rows as "
        "they are. Use dry_run_write for counts.",
    )
    OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE = (
        ErrorCode.OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE,
        "'overwriteSchema' cannot be used in dynamic partition overwrite mode.",
    )
    REPLACE_WHERE_WITHOUT_DATA_CHANGE = (
        ErrorCode.REPLACE_WHERE_WITHOUT_DATA_CHANGE,
        "'replaceWhere' cannot be used with data filters when 'dataChange' is set to false. "
        "Filters: {replaceWhere}. Name partition columns only, or leave dataChange out.",
    )
    OVERWRITE_BY_FILTER_WITH_REPLACE_BY = (
        ErrorCode.OVERWRITE_BY_FILTER_WITH_REPLACE_BY,
        "Overwrite by filter is incompatible with the `replaceOn`/`replaceUsing` option.",
    )
    DYNAMIC_OVERWRITE_WITH_REPLACE_BY = (
        ErrorCode.DYNAMIC_OVERWRITE_WITH_REPLACE_BY,
        "Dynamic partition overwrite is incompatible with the `replaceOn`/`replaceUsing` option.",
    )
    DEFINITION_WITH_REPLACE_BY = (
        ErrorCode.DEFINITION_WITH_REPLACE_BY,
        "DataFrame Writer V2 create()/replace()/createOrReplace() cannot be used with the "
        "`replaceOn` or `replaceUsing` option for Delta tables.",
    )
    REPLACE_ON_UNRESOLVED_COLUMNS = (
        ErrorCode.REPLACE_ON_UNRESOLVED_COLUMNS,
        "Column(s) {columns} cannot be resolved in the condition of INSERT REPLACE ON.",
    )
    REPLACE_ON_AMBIGUOUS_COLUMNS = (
        ErrorCode.REPLACE_ON_AMBIGUOUS_COLUMNS,
        "Column(s) {columns} are ambiguous in the condition of INSERT REPLACE ON. Consider "
        "specifying an alias for these columns.",
    )
    REPLACE_BY_CONSTRAINT_VIOLATION = (
        ErrorCode.REPLACE_BY_CONSTRAINT_VIOLATION,
        "Written data violates a table constraint during REPLACE ON/USING '{expression}'.\n"
        "{violation}",
    )
    UNRESOLVED_REPLACE_USING_COLUMN = (
        ErrorCode.UNRESOLVED_REPLACE_USING_COLUMN,
        "Column {column} cannot be resolved in {relation}. Did you mean one of the following? "
        "[{columns}].",
    )
    INCOMPATIBLE_DATAFRAME_OPTIONS = (
        ErrorCode.INCOMPATIBLE_DATAFRAME_OPTIONS,
        "The `{first}` option cannot be used with the `{second}` option for Delta tables.",
    )
    INVALID_WRITE_OPTION_REPLACE_USING = (
        ErrorCode.INVALID_WRITE_OPTION,
        "{value!r} is no list of columns for the option replaceUsing. Write names with commas "
        "between them, for example: id, `a day`.",
    )
    REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE = (
        ErrorCode.REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE,
        "A 'replaceWhere' expression and 'partitionOverwriteMode'='dynamic' cannot both be "
        "set in the DataFrameWriter options.",
    )
    TABLE_ALREADY_EXISTS = (
        ErrorCode.TABLE_ALREADY_EXISTS,
        "Cannot write to already existent path {path} without setting OVERWRITE = 'true': a "
        "Delta table is there. Use mode 'append' or 'overwrite'.",
    )
    UNRESOLVED_COLUMN_WRITE = (
        ErrorCode.UNRESOLVED_COLUMN,
        "The table has no column {column!r}, only {names}.",
    )

    # spark/resolve
    INVALID_DEFAULT_VALUE_UNRESOLVED = (
        ErrorCode.INVALID_DEFAULT_VALUE,
        "Failed to execute {statement} command because the destination column or variable "
        "`{column}` has a DEFAULT value {expression}, which fails to resolve as a valid "
        "expression. A default names no columns.",
    )

    # spark/values
    INSERT_TOO_MANY_DATA_COLUMNS = (
        ErrorCode.INSERT_TOO_MANY_DATA_COLUMNS,
        "Cannot write to {table}, the reason is too many data columns: the table takes {wanted}, "
        "the data has {given}. Leave columns out, or list the columns to fill.",
    )
    INSERT_NOT_ENOUGH_DATA_COLUMNS = (
        ErrorCode.INSERT_NOT_ENOUGH_DATA_COLUMNS,
        "Cannot write to {table}, the reason is not enough data columns: the table takes {wanted}, "
        "the data has {given}. Add columns, or list the columns to fill.",
    )
    INSERT_AMBIGUOUS_COLUMN = (
        ErrorCode.INSERT_AMBIGUOUS_COLUMN,
        "Cannot write incompatible data for the table {table}: ambiguous column name in the input "
        "data `{column}`. Give the columns different names.",
    )
    INSERT_NO_DATA = (
        ErrorCode.INSERT_NO_DATA,
        "Cannot write incompatible data for the table {table}: cannot find data for the output "
        "column `{column}`. Add the column to the data.",
    )
    INSERT_EXTRA_COLUMNS = (
        ErrorCode.INSERT_EXTRA_COLUMNS,
        "Cannot write incompatible data for the table {table}: cannot write extra columns "
        "{columns}. Leave the columns out, or write WITH SCHEMA EVOLUTION.",
    )
    INSERT_STRUCT_MISSING_FIELDS = (
        ErrorCode.INSERT_STRUCT_MISSING_FIELDS,
        "Cannot write incompatible data for the table {table}: the struct {column} misses fields "
        "{fields}. Add the fields to the data.",
    )
    INSERT_EXTRA_STRUCT_FIELDS = (
        ErrorCode.INSERT_EXTRA_STRUCT_FIELDS,
        "Cannot write incompatible data for the table {table}: cannot write extra fields {fields} "
        "to the struct {column}. Leave the fields out of the data.",
    )
    INSERT_CANNOT_SAFELY_CAST = (
        ErrorCode.INSERT_CANNOT_SAFELY_CAST,
        "Cannot write incompatible data for the table {table}: cannot safely cast {column} "
        "{source_type} to {target_type}. Cast the values in the query.",
    )

    # statements/execute
    OPERATION_NOT_ALLOWED_CLAUSE = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Operation not allowed: CREATE TABLE with `{clause}` is not supported for Delta tables "
        "over Spark Connect. Leave the clause out, or call DeltaTable.create(spark).",
    )
    AMBIGUOUS_PATHS_IN_CREATE_TABLE = (
        ErrorCode.AMBIGUOUS_PATHS_IN_CREATE_TABLE,
        "CREATE TABLE contains two different locations: {identifier} and {location}. You can "
        "remove the LOCATION clause from the CREATE TABLE statement.",
    )
    CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER = (
        ErrorCode.CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER,
        "Cannot change the location of a path based table: {table_shown}. Name a table of "
        "the catalog.",
    )
    CLONE_AMBIGUOUS_TARGET = (
        ErrorCode.CLONE_AMBIGUOUS_TARGET,
        "Two paths were provided as the CLONE target so it is ambiguous which to use. An "
        "external location for CLONE was provided at {location} at the same time as the path "
        "{path}.",
    )
    CLONE_UNSUPPORTED_SOURCE = (
        ErrorCode.CLONE_UNSUPPORTED_SOURCE,
        "Unsupported clone source {name}, whose format is {format}: only Delta tables are "
        "cloned. Write its rows to a new table{way_out}.",
    )
    DEFAULT_PLACEMENT_INVALID = (
        ErrorCode.DEFAULT_PLACEMENT_INVALID,
        "A DEFAULT keyword in a MERGE, INSERT, UPDATE, or SET VARIABLE command could not be "
        "directly assigned to a target column because it was part of an expression. Write the "
        "keyword alone.",
    )
    FAILED_SCAN_WITH_HISTORICAL_VERSION = (
        ErrorCode.FAILED_SCAN_WITH_HISTORICAL_VERSION,
        "Expect a full scan of the latest version of the Delta source, but found a "
        "historical scan of version {historical_version}: the view {name} shows a version "
        "that was asked for. Name the table itself: delta.`{root_uri}`.",
    )
    INSERT_PARTITION_SPEC_IF_NOT_EXISTS = (
        ErrorCode.INSERT_PARTITION_SPEC_IF_NOT_EXISTS,
        "INSERT with IF NOT EXISTS in the PARTITION spec is not supported.",
    )
    MERGE_UNEXPECTED_ASSIGNMENT_KEY = (
        ErrorCode.MERGE_UNEXPECTED_ASSIGNMENT_KEY,
        "Unexpected assignment key: {key}. Through a view only whole columns can be "
        "assigned; name the table itself to assign a field.",
    )
    OPERATION_NOT_ALLOWED_CATALOG_LOCATION = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "The catalog decides about the location of {table}. Drop the table, which keeps the "
        "files of an external one, and create it with the other LOCATION.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_BUCKETS = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "Operation not allowed: `Bucketing` ({layout}) is not supported for Delta tables. "
        "Partition by a generated column, or use CLUSTER BY.",
    )
    OPERATION_NOT_ALLOWED_DETAIL_EXPLAINED = (
        ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        "Only MERGE, UPDATE, DELETE, OPTIMIZE, VACUUM, RESTORE and CONVERT TO DELTA on Delta "
        "tables can be explained or tried here, not {shown!r}.",
    )
    OPERATION_NOT_ALLOWED_PARTITIONING = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Operation not allowed: `Partitioning by expressions` ({layout}) is not supported for "
        "Delta tables. Partition by a generated column, or use CLUSTER BY.",
    )
    OPERATION_NOT_ALLOWED_OTHER_CATALOG = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "The name {name} belongs to another catalog than the session's. Name a table of the "
        "session catalog, or a path: delta.`/path`.",
    )
    SCHEMA_CHANGE_SINCE_ANALYSIS_VIEW = (
        ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS,
        "The view {view} has other columns than its table ({columns}), so it cannot be the target "
        "of a MERGE. Name the table itself: delta.`{root_uri}`.",
    )
    UNEXPECTED_PARTIAL_SCAN = (
        ErrorCode.UNEXPECTED_PARTIAL_SCAN,
        "{operation} of the view {name} is not possible: a view may be a target only if it "
        "shows every column of a table under its own name and nothing else. Name the table "
        "itself: delta.`{root_uri}`.",
    )
    OPERATION_NOT_ALLOWED_PREVIEW = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Only MERGE, UPDATE and DELETE change rows that could be shown. Use dry_run for the "
        "files that other statements change.",
    )
    OPERATION_NOT_ALLOWED_RECURSIVE_VIEW = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Recursive view {database}.{view} detected: its query shows itself.",
    )
    OPERATION_NOT_ALLOWED_SEVERAL_INSERTS = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Several INSERTs behind one FROM must all be into Delta tables, and these are not: "
        "{names}. Write one statement for each.",
    )
    OPERATION_NOT_ALLOWED_SHOW_CREATE_TABLE = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Operation not allowed: `SHOW CREATE TABLE` is not supported for Delta tables. "
        "DESCRIBE TABLE EXTENDED and SHOW TBLPROPERTIES say what the table is.",
    )
    OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS = (
        ErrorCode.OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS,
        "{operation} command on a temp view referring to a Delta table that contains "
        "generated columns is not supported. Please run the {operation} command on the Delta "
        "table directly: delta.`{root_uri}`.",
    )
    TABLE_OPERATION_NOT_SUPPORTED_INSERT = (
        ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
        "INSERT with {beyond} is not supported. Use df.write with the option replaceUsing or "
        "replaceOn, REPLACE WHERE, or a MERGE.",
    )
    OVERWRITE_BY_SUBQUERY = (
        ErrorCode.OVERWRITE_BY_SUBQUERY,
        "The feature is not supported: INSERT OVERWRITE with a subquery condition. Run the "
        "subquery first, and write its values into the condition of REPLACE WHERE.",
    )
    TABLE_OPERATION_NOT_SUPPORTED_TABLE_CONSTRAINT = (
        ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
        "Constraints between the columns of CREATE TABLE are not supported for Delta tables. "
        "Add them behind: ALTER TABLE ... ADD CONSTRAINT name CHECK (condition).",
    )
    UNSUPPORTED_ON_CONNECT_SCRIPT = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "A script that changes a Delta table or names delta.`/path` needs a classic session: a "
        "Spark Connect client does not interpret scripts. Call its statements one by one.",
    )
    UNSUPPORTED_SOURCE = (
        ErrorCode.UNSUPPORTED_SOURCE,
        "{operation} of {view} is not possible: it is a view. Name the table whose rows it shows.",
    )
    TABLE_ONLY_OPERATION = (
        ErrorCode.TABLE_ONLY_OPERATION,
        "{operation} is possible for tables only, and {view} is a view. Name the table whose rows "
        "it shows.",
    )
    ONLY_OPERATION = (
        ErrorCode.ONLY_OPERATION,
        "{operation} is possible for Delta tables only, and {view} is a view. Name the table whose "
        "rows it shows.",
    )
    EXPECT_TABLE_NOT_VIEW = (
        ErrorCode.EXPECT_TABLE_NOT_VIEW,
        "'{operation}' expects a table but {view} is a view. Name the table whose rows it shows.",
    )
    UNSUPPORTED_ON_CONNECT_FUNCTION = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "The function {function} reads a Delta table, and the server does not say enough of the "
        "function to run it with the rows of the table. Write its query in the place of the call.",
    )
    UNSUPPORTED_ON_CONNECT_VERSIONS = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "A client of PySpark {client} cannot send rows to a server of Spark {server}: it asks for "
        "settings as newer servers have them. Install the client of the server: "
        "pip install 'pyspark[connect]=={server}'.",
    )
    UNSUPPORTED_ON_CONNECT_VIEW = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "A view over delta.`/path`, a version or changes of a table, CACHE TABLE of such a query, "
        "and a permanent or global view over tables of a catalog need a classic session. Name the "
        "table in each query, or give the rows that are there now a name: "
        "df.createOrReplaceTempView(name).",
    )
    OPERATION_NOT_ALLOWED_OTHER_SCHEMA = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Table {table} cannot move to {new_name}. Name a table in {namespace}, where it is.",
    )
    TABLE_OR_VIEW_ALREADY_EXISTS_RENAME = (
        ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS,
        "Table {name} already exists. Choose another name, or drop the table that has it.",
    )
    SCHEMA_ALREADY_EXISTS = (
        ErrorCode.SCHEMA_ALREADY_EXISTS,
        "Cannot create schema {schema} because it already exists. Choose a different name, drop "
        "the existing schema, or add IF NOT EXISTS.",
    )
    SCHEMA_NOT_FOUND_IN_CATALOG = (
        ErrorCode.SCHEMA_NOT_FOUND,
        "The schema {schema} cannot be found. {step}",
    )
    OPERATION_NOT_ALLOWED_BY_SPARK = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "{statement} is a statement of Spark, and the current catalog {catalog} is not one that "
        "Spark can load. Write the whole name in {session_catalog}, or call SET CATALOG "
        "{session_catalog} first.",
    )
    OPERATION_NOT_ALLOWED_CONVERT_IN_CATALOG = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Table {table} cannot be converted: it is {kind} and of format {format}. External tables "
        "of Parquet files can. Copy the rows into another table instead.",
    )
    OPERATION_NOT_ALLOWED_CLONE_IN_CATALOG = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "A clone cannot be {name}: catalogs have no shallow clones, whose files belong to another "
        "table. Copy the rows instead: CREATE TABLE {name} AS and a query.",
    )
    OPERATION_NOT_ALLOWED_VIEW_IN_CATALOG = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "View {name} cannot be stored in a catalog that Spark cannot load. Create it in "
        "spark_catalog, where it may name tables with all three parts, or create a TEMPORARY one.",
    )
    OPERATION_NOT_ALLOWED_SHORT_NAME_IN_VIEW = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "View {name} would be stored with the short name {short}, which means {table} only while "
        "that catalog is the current one. Name the table with all three parts.",
    )

    # statements/names
    UNSUPPORTED_CHANGES = (
        ErrorCode.UNSUPPORTED_CHANGES,
        "A stream cannot read CHANGES of the Delta table {name}. Stream its change data feed with "
        "the option readChangeFeed, or read CHANGES as a batch.",
    )
    CDC_READ_NULL_RANGE_BOUNDARY = (
        ErrorCode.CDC_READ_NULL_RANGE_BOUNDARY,
        "CDC read start/end parameters cannot be null. Please provide a valid version or "
        "timestamp.",
    )
    MISSING_DELTA_TABLE_NAME = (
        ErrorCode.MISSING_DELTA_TABLE,
        "{name} is not a Delta table.{hint}",
    )
    MISSING_DELTA_TABLE_TARGET = (
        ErrorCode.MISSING_DELTA_TABLE,
        "{name} is not a Delta table, which the statement needs. Convert it first: CONVERT "
        "TO DELTA {name}.",
    )
    TABLE_OR_VIEW_NOT_FOUND_NAME = (
        ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
        "The table or view {name} cannot be found. Verify the spelling and correctness of "
        "the schema and catalog.{hint}",
    )
    UNSUPPORTED_EXPRESSION_TYPE = (
        ErrorCode.UNSUPPORTED_EXPRESSION,
        "Unsupported expression type({expType}) for {causedBy}. The supported types are "
        "[{supported}].",
    )
    VALUE_NOT_PLAIN_COLUMN_REFERENCE = (
        ErrorCode.VALUE_NOT_PLAIN_COLUMN_REFERENCE,
        "The field {{{field_name}}} is a Column. Write the column's name in the text.",
    )
    WRONG_NUM_ARGS = (
        ErrorCode.WRONG_NUM_ARGS,
        "The `{functionName}` requires [2, 3] parameters but the actual number is "
        "{actualNum}: the table, the first version or moment, and perhaps the last.",
    )

    # statements/parse
    OPERATION_NOT_ALLOWED_INVENTORY = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Operation not allowed: Inventory option is not compatible with LITE. Use FULL, or "
        "leave the inventory out.",
    )
    TABLE_OPERATION_NOT_SUPPORTED_CONSTRAINT = (
        ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
        "The constraint {constraint} is not supported: Delta tables have CHECK constraints only.",
    )
    TABLE_OPERATION_NOT_SUPPORTED_UNNAMED_CONSTRAINT = (
        ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
        "A constraint without a name is not supported. Delta tables have named CHECK "
        "constraints: ALTER TABLE ... ADD CONSTRAINT name CHECK (condition).",
    )
    TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED = (
        ErrorCode.TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED,
        "Operation not allowed: TRUNCATE TABLE on Delta tables does not support partition "
        "predicates; use DELETE to delete specific partitions or rows.",
    )
    UNSUPPORTED_CONSTRAINT_CHARACTERISTIC = (
        ErrorCode.UNSUPPORTED_CONSTRAINT_CHARACTERISTIC,
        "The constraint {constraint} cannot be NOT ENFORCED: every writer checks CHECK "
        "constraints.",
    )
    UNSUPPORTED_DATA_TYPES_PARAMETER = (
        ErrorCode.UNSUPPORTED_DATA_TYPES,
        "A parameter of type {data_type} cannot be used in this statement: {value!r}.",
    )

    # tables
    CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH = (
        ErrorCode.CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH,
        "Creating path-based Delta table with a different location isn't supported. "
        "Identifier: {name}, Location: {location}",
    )
    CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION = (
        ErrorCode.CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION,
        "Table name or location has to be specified. Call tableName() or location().",
    )
    INVALID_ARGUMENT_NUMBER = (
        ErrorCode.INVALID_ARGUMENT,
        "{argument} is {value!r}, which is no number. Pass a number, or leave it out.",
    )
    MISSING_DELTA_TABLE_FOR_NAME = (
        ErrorCode.MISSING_DELTA_TABLE,
        "{table} is not a Delta table: the catalog has no table or view of this name. Check "
        "its spelling and the current database.",
    )
    OPERATION_NOT_ALLOWED_BUILDER_CATALOG = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "The name {name} belongs to another catalog than {session_catalog}. Name a table of "
        "the session catalog, or give the table a location() alone.",
    )
    TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF = (
        ErrorCode.TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF,
        "Currently DeltaTable.forPath only supports hadoop configuration keys starting with "
        "[fs.,dfs.] but got {odd}. Leave them out.",
    )

    # recipes
    MISSING_DELTA_TABLE_RECIPE = (
        ErrorCode.MISSING_DELTA_TABLE,
        "{table_shown} is not a Delta table. Pass create=True to have it created, or check "
        "the path or name.",
    )
    SOURCE_IS_EMPTY = (
        ErrorCode.SOURCE_IS_EMPTY,
        "The source has no rows, so every row of the scope would be deleted. Pass "
        "allow_empty=True if the snapshot is meant to be empty.",
    )
    SOURCE_KEY_NOT_UNIQUE = (
        ErrorCode.SOURCE_KEY_NOT_UNIQUE,
        "The source has {rows} rows of the key {keys}{make_unique}",
    )
    SOURCE_OUTSIDE_SCOPE = (
        ErrorCode.SOURCE_OUTSIDE_SCOPE,
        "{before}{keys}{after}",
    )

    # activation
    CLUSTERING_COLUMNS_MISMATCH = (
        ErrorCode.CLUSTERING_COLUMNS_MISMATCH,
        "The provided clustering columns do not match the existing table's.\n- provided: "
        "{cluster_by}\n- existing: {known}\nLeave clusterBy out, or change the table by ALTER "
        "TABLE ... CLUSTER BY first.",
    )
    ILLEGAL_USAGE_UPDATE_ALL = (
        ErrorCode.ILLEGAL_USAGE,
        "whenNotMatchedBySource().updateAll() is not possible: there is no row of the source "
        "to take the values from. Use update({{column: value}}).",
    )
    INVALID_WRITE_OPTION_DELTA_MODULE = (
        ErrorCode.INVALID_WRITE_OPTION,
        "The module 'delta' is there already{release}, and delta_module=True never replaces "
        "it. Uninstall it (pip uninstall delta-spark), or import puredelta.tables instead.",
    )
    INVALID_WRITE_OPTION_NOT_SUPPORTED = (
        ErrorCode.INVALID_WRITE_OPTION,
        "The write option {option}={value!r} is not supported: {reason}.",
    )
    ONE_OF_IN_TIME_TRAVEL_OPTIONS = (
        ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel, not both.",
    )
    ONE_OF_IN_TIME_TRAVEL_PATH = (
        ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        "Please choose the version in the path or by an option, not both: {path}.",
    )
    OPERATION_NOT_ALLOWED_CHECKPOINT = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        'checkpointLocation must be specified either through option("{checkpoint}", ...) or '
        'SparkSession.conf.set("{checkpoints}", ...)',
    )
    OPERATION_NOT_ALLOWED_LAYOUT = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "{layout} is not supported when a DataFrame writer writes a Delta table. Use "
        "partitionBy or clusterBy.",
    )
    OPERATION_NOT_ALLOWED_NOT_ACTIVATED = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "{what} with format 'delta' is not possible in a session that is not activated. {activate}",
    )
    OPERATION_NOT_ALLOWED_NO_PATH = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "'path' is not specified: name the table's directory in load(path) or save(path).",
    )
    OPERATION_NOT_ALLOWED_NO_PATH_TO_LOAD = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "'path' is not specified: name the table's directory in load(path). Tables of the "
        "catalog are read by activated sessions only, and there not by a subquery of F.expr: "
        "write it in selectExpr, filter or spark.sql. {activate}",
    )
    OPERATION_NOT_ALLOWED_ONE_PATH = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Only one path can be given for format 'delta', not {listed}. Read each table by "
        "itself and combine the rows with union.",
    )
    OPERATION_NOT_ALLOWED_PARTITION_EXPRESSION = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "Partitioning by expressions is not supported: {column}. Add the value as a column of "
        "its own, or create the table with a generated column.",
    )
    OPERATION_NOT_ALLOWED_REPLACE_WHERE = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "writeTo(...).replace() and createOrReplace() replace a table as a whole: the option "
        "replaceWhere is not supported there. To replace the rows of a condition use "
        "writeTo(...).overwrite(condition), or df.write with mode('overwrite').",
    )
    OPERATION_NOT_ALLOWED_STREAM_NOT_ACTIVATED = (
        ErrorCode.OPERATION_NOT_ALLOWED,
        "writeStream with format 'delta' is not possible in a session that is not activated. "
        "Call puredelta.activate(spark) first, or write with foreachBatch and "
        "puredelta.write or a MERGE, with txnAppId and txnVersion to be safe against "
        "repetition.",
    )
    REPLACE_WHERE_IN_OVERWRITE = (
        ErrorCode.REPLACE_WHERE_IN_OVERWRITE,
        "You can't use replaceWhere in conjunction with an overwrite by filter: leave the "
        "option out, or call append().",
    )
    SCHEMA_NOT_PROVIDED_NAME = (
        ErrorCode.SCHEMA_NOT_PROVIDED,
        "Table schema is not provided. Pass the schema of {name_shown}, or the path of a table.",
    )
    TIMESTAMP_INVALID_NOT_ACTIVATED = (
        ErrorCode.TIMESTAMP_INVALID,
        "{option} is {timestamp!r}: without activation it must be an ISO 8601 timestamp with "
        "its offset, such as 2025-01-31T12:00:00+00:00. {activate}",
    )
    UNSUPPORTED_ON_CONNECT_OVERWRITE = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "The condition {condition} has no text that the Spark server finds equal to it. Write it "
        "as SQL: expr('...'), or df.write with mode('overwrite') and option('replaceWhere', "
        "'...').",
    )
    UNSUPPORTED_ON_CONNECT_WRITE_STREAM = (
        ErrorCode.UNSUPPORTED_ON_CONNECT,
        "The Python of the Spark server could not start to write the stream. It needs Spark "
        "Connect's packages (pip install 'pyspark[connect]' on the server), and Spark gives it "
        "ten seconds. Nothing was written. If it has the packages, start the query again when the "
        "server is less busy.",
    )
    UNSUPPORTED_OUTPUT_MODE = (
        ErrorCode.UNSUPPORTED_OUTPUT_MODE,
        "Data source delta does not support {mode} output mode. Use append or complete, or "
        "foreachBatch with a MERGE.",
    )
    UNSUPPORTED_SCHEMA_DURING_READ_OTHER = (
        ErrorCode.UNSUPPORTED_SCHEMA_DURING_READ,
        "Delta does not support specifying the schema at read time, and the table's own is "
        "not (or no longer) {schema}. Load the table again.",
    )
    UNSUPPORTED_SCHEMA_DURING_READ_SCHEMA_GIVEN = (
        ErrorCode.UNSUPPORTED_SCHEMA_DURING_READ,
        "Delta does not support specifying the schema at read time. Leave schema(...) out: a "
        "table knows its columns.",
    )
    UNSUPPORTED_TIME_TRAVEL_VIEWS_CHANGES = (
        ErrorCode.UNSUPPORTED_TIME_TRAVEL_VIEWS,
        "Cannot time travel views, subqueries, streams or change data feed queries. With "
        "readChangeFeed use startingVersion or startingTimestamp.",
    )
    UNSUPPORTED_TIME_TRAVEL_VIEWS_STREAM_READER = (
        ErrorCode.UNSUPPORTED_TIME_TRAVEL_VIEWS,
        "Cannot time travel views, subqueries, streams or change data feed queries. Use "
        "startingVersion or startingTimestamp.",
    )

    # cli
    INVALID_WRITE_OPTION_CATALOG_OF_ICEBERG = (
        ErrorCode.INVALID_WRITE_OPTION,
        "iceberg {action}: --catalog and --name belong to register, which needs both.",
    )
    INVALID_WRITE_OPTION_DEEP_WITHOUT_TABLE = (
        ErrorCode.INVALID_WRITE_OPTION,
        "--deep checks a table. Name one: puredelta doctor TABLE --deep.",
    )
    INVALID_WRITE_OPTION_RESUME = (
        ErrorCode.INVALID_WRITE_OPTION,
        "The file {path} does not hold the work of a deep check. Name another file, or a new one.",
    )
    INVALID_WRITE_OPTION_KEYS_WITHOUT_ROWS = (
        ErrorCode.INVALID_WRITE_OPTION,
        "--keys is for the rows that differ. Add --rows.",
    )
    INVALID_WRITE_OPTION_REVERT_VERSION = (
        ErrorCode.INVALID_WRITE_OPTION,
        "Name the commit to revert: --version N (puredelta history TABLE lists them).",
    )
    INVALID_WRITE_OPTION_NO_SQL = (
        ErrorCode.INVALID_WRITE_OPTION,
        "Give a statement, or a file of statements with --file.",
    )
    INVALID_WRITE_OPTION_NO_SQL_FILE = (
        ErrorCode.INVALID_WRITE_OPTION,
        "{path} is no file of SQL. For an upsert give --source and --keys.",
    )
    INVALID_WRITE_OPTION_NO_STATEMENT = (
        ErrorCode.INVALID_WRITE_OPTION,
        "There is no statement in it.",
    )
    INVALID_WRITE_OPTION_UPSERT = (
        ErrorCode.INVALID_WRITE_OPTION,
        "An upsert needs both --source and --keys, such as --source new.parquet --keys id.",
    )
    ONE_OF_IN_TIME_TRAVEL_RESTORE = (
        ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        "Give either --version or --timestamp.",
    )

    def __init__(self, code: ErrorCode, template: str) -> None:
        self.code = code
        self.template = template

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters.

        >>> sorted(Message.INVALID_CDC_RANGE.parameters)
        ['end', 'start']
        """
        named = Formatter().parse(self.template)
        return frozenset(name for _, name, _, _ in named if name is not None)

    def text(self, values: dict[str, object]) -> str:
        """Return the text with the values of all parameters, among others."""
        return self.template.format_map(values)
