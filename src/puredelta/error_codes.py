"""Error codes: delta-spark's error classes and SQLSTATEs.

E-01 to E-03 are their sources. The exceptions that carry them are `puredelta.errors`.
"""

# ruff: noqa: E501 - a code is a line

from __future__ import annotations

from enum import Enum


class ErrorCode(Enum):
    """Stable names for handlers and tests; never rename one.

    A row is delta-spark's error class and SQLSTATE, and the cause and the next step for the page
    of errors. `puredelta.error_messages` has the texts.
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
        "Iceberg cannot express the table, or the name in the catalog is that of another table.",
        "Change the column, value or setting that the message names, then export again.")
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
        "The catalog alone may do this to a catalog-managed table, or nobody.",
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
    UNSUPPORTED_STORE_ASSIGNMENT = ("DELTA_UNSUPPORTED_STORE_ASSIGNMENT", "0A000",
        "The setting asks for an unknown way to cast.",
        "Use ANSI, STRICT or LEGACY.")
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
