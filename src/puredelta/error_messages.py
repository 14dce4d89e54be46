"""Messages of errors, one row each: the error code, and the text with named parameters.

A raise passes the row and the values: ``InvalidRequestError(Message.EMPTY_DATA)``. The name of a
row is the name of its code; where a code has several texts, the case follows. Parameters are those
of `str.format`; they are also the ``details`` of the error. `ErrorCode` has the SQLSTATE.
"""

# ruff: noqa: ISC004 - a row is a code and a text

from __future__ import annotations

from enum import Enum
from string import Formatter

from puredelta.error_codes import ErrorCode


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
    UNSUPPORTED_FEATURES_IN_CONFIG = (
        ErrorCode.UNSUPPORTED_FEATURES_IN_CONFIG,
        "Table features configured in the following Spark configs or Delta table properties "
        "are not recognized: {unknown}.",
    )
    UNSUPPORTED_FEATURE_STATUS = (
        ErrorCode.UNSUPPORTED_FEATURE_STATUS,
        'Expecting the status for table feature {feature} to be "supported", but got "{status}".',
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
        "No such struct field `{field}` in {names}: {field_name} cannot be placed behind it.",
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

    # protocol/values
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
        "has {newer}. The change of a type cannot be followed. Begin with a fresh "
        "checkpoint directory and a later version.",
    )
    SCHEMA_CHANGED_WITH_VERSION_METADATA = (
        ErrorCode.SCHEMA_CHANGED_WITH_VERSION,
        "Detected schema change in version {version}: the stream reads {older}, that "
        "version has {newer}. Please try restarting the query. If the change lies "
        "behind the place where the query began, begin with a fresh checkpoint directory and "
        "a later version.",
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
        "{newer}. Please provide a 'schemaTrackingLocation' to enable non-additive "
        "schema evolution for Delta stream processing, or begin with a fresh checkpoint "
        "directory, from a version behind the change or without one.",
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
        "table id: {recorded}, Table id: {recorded}. The schema log at '{location}' "
        "might have been reused. Please pick a new schema location.",
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
        "(from analysis): {read}. Current table schema: {recorded}, as the schema log "
        "at '{location}' has it since version {version}. Please create a new streaming "
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
        "up to {high_water_mark} are taken, of {row_id_max}. If that is wrong, write the "
        "table anew.",
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
    ROW_ID_ASSIGNMENT_WITHOUT_STATS = (
        ErrorCode.ROW_ID_ASSIGNMENT_WITHOUT_STATS,
        "Cannot assign row IDs without row count statistics: the table tracks rows and the "
        "new file {path} has no row count. Write it with statistics (numRecords is enough).",
    )
    STATE_RECOVER_ERROR_NO_METADATA = (
        ErrorCode.STATE_RECOVER_ERROR,
        "The {operation} of the table could not be recovered: a concurrent {operation_or_commit} "
        "wrote version {version} without it. Nothing was committed.",
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
        "The provided timestamp ({time}) is before the earliest version "
        "available to {path} ({oldest}). Please use a timestamp at or after {oldest}.",
    )
    TIMESTAMP_GREATER_THAN_COMMIT = (
        ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT,
        "Timestamp {time} is after the latest version of {path} ({newest}). "
        "Use a timestamp at or before {newest}.",
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

    # inspection
    INVALID_WRITE_OPTION_SCRIPT = (
        ErrorCode.INVALID_WRITE_OPTION,
        "{path} is no Python: {error}.",
    )
    UNSUPPORTED_FEATURES_FOR_READ = (
        ErrorCode.UNSUPPORTED_FEATURES_FOR_READ,
        "Column {column!r} has a type that only Spark reads: {data_type}. Read the table "
        "with puredelta.read(spark, path).",
    )
    VERSION_NOT_FOUND_DIFF = (
        ErrorCode.VERSION_NOT_FOUND,
        "Version {version} is not before version {newer}. Write the older one first.",
    )

    def __init__(self, code: ErrorCode, template: str) -> None:
        self.code = code
        self.template = template

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters.

        >>> sorted(Message.ACTIVE_SPARK_SESSION_NOT_FOUND.parameters)
        []
        """
        named = Formatter().parse(self.template)
        return frozenset(name for _, name, _, _ in named if name is not None)

    def text(self, values: dict[str, object]) -> str:
        """Return the text with the values of all parameters, among others."""
        return self.template.format_map(values)
