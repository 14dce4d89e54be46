"""Every exception the library raises on purpose.

The class says what a caller should *do*; ``code`` says exactly what happened, in the
reference's words (error class and SQLSTATE of delta-spark, requirements 1.13, 2.2, 3.2)::

    DeltaError
    +-- ConflictError         another writer won: rebuild on the new version and retry
    |   +-- ConcurrentWriteException, MetadataChangedException, ProtocolChangedException,
    |       ConcurrentAppendException, ConcurrentDeleteReadException,
    |       ConcurrentDeleteDeleteException, ConcurrentTransactionException
    +-- UnsupportedError      the table needs something this library does not implement
    +-- InvalidRequestError   the caller must change the request        (also ValueError)
    +-- TableNotFoundError    there is no table here                    (also LookupError)
    +-- CorruptTableError     the log or a file breaks the protocol
    +-- CommitUnknownError    the outcome of the commit could not be established

The conflict classes carry the names of ``delta.exceptions``, so that an existing
``except`` clause keeps working once its import names ``puredelta.exceptions``.
"""

from __future__ import annotations

from enum import Enum


class ErrorCode(Enum):
    """Stable names for handlers and tests; append only, never rename.

    ``value`` is the pair (error class, SQLSTATE) that delta-spark uses.
    """

    # the log and the protocol
    TABLE_NOT_FOUND = ("DELTA_TABLE_NOT_FOUND", "42P01")
    MISSING_DELTA_TABLE = ("DELTA_MISSING_DELTA_TABLE", "42P01")
    TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF = (
        "DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
        "0AKDC",
    )
    PATH_DOES_NOT_EXIST = ("DELTA_PATH_DOES_NOT_EXIST", "42K03")
    VERSION_NOT_FOUND = ("DELTA_VERSION_NOT_FOUND", "22003")
    TIMESTAMP_GREATER_THAN_COMMIT = ("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "42816")
    TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION = (
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "42816",
    )
    ONE_OF_IN_TIME_TRAVEL = ("DELTA_ONEOF_IN_TIMETRAVEL", "42601")
    LOG_FILE_NOT_FOUND = ("DELTA_LOG_FILE_NOT_FOUND", "42K03")
    VERSIONS_NOT_CONTIGUOUS = ("DELTA_VERSIONS_NOT_CONTIGUOUS", "KD00C")
    STATE_RECOVER_ERROR = ("DELTA_STATE_RECOVER_ERROR", "XXKDS")
    TRUNCATED_TRANSACTION_LOG = ("DELTA_TRUNCATED_TRANSACTION_LOG", "42K03")
    LOG_CORRUPTED = ("DELTA_LOG_CORRUPTED", "KD00C")
    CHECKPOINT_NON_EXIST_TABLE = ("DELTA_CHECKPOINT_NON_EXIST_TABLE", "42K03")
    DELETION_VECTOR_INVALID = ("DELTA_DELETION_VECTOR_INVALID", "XXKDS")
    DELETION_VECTOR_CHECKSUM_MISMATCH = ("DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH", "XXKDS")
    DELETION_VECTOR_SIZE_MISMATCH = ("DELTA_DELETION_VECTOR_SIZE_MISMATCH", "XXKDS")
    DELETION_VECTOR_CARDINALITY_MISMATCH = ("DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH", "XXKDS")
    INVALID_PROTOCOL_VERSION = ("DELTA_INVALID_PROTOCOL_VERSION", "KD004")
    UNSUPPORTED_FEATURES_FOR_READ = ("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "56038")
    UNSUPPORTED_FEATURES_FOR_WRITE = ("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE", "56038")
    UNSUPPORTED_STORAGE = ("DELTA_UNSUPPORTED_STORAGE", "0AKDC")
    UNKNOWN_COLUMN_MAPPING_MODE = ("DELTA_UNKNOWN_COLUMN_MAPPING_MODE", "42KD1")
    INVALID_TABLE_PROPERTY = ("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED", "0A000")
    READ_FEATURE_PROTOCOL_REQUIRES_WRITE = ("DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE", "KD004")
    FEATURES_REQUIRE_MANUAL_ENABLEMENT = ("DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT", "56038")

    # reading
    READ_TABLE_WITHOUT_COLUMNS = ("DELTA_READ_TABLE_WITHOUT_COLUMNS", "428GU")
    TIMESTAMP_INVALID = ("DELTA_TIMESTAMP_INVALID", "42816")
    VERSION_INVALID = ("DELTA_VERSION_INVALID", "42815")
    UNSUPPORTED_DATA_TYPES = ("DELTA_UNSUPPORTED_DATA_TYPES", "0AKDC")
    UNSUPPORTED_DATA_FILE = ("DELTA_UNSUPPORTED_DATA_FILE", "0AKDC")
    FILE_NOT_FOUND = ("DELTA_FILE_NOT_FOUND", "42K03")
    RESERVED_COLUMN_NAME = ("DELTA_RESERVED_COLUMN_NAME", "42939")
    COLUMN_NOT_FOUND_IN_SCHEMA = ("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "42703")
    UNSUPPORTED_ON_CONNECT = ("DELTA_UNSUPPORTED_ON_CONNECT", "0AKDC")

    # change data feed
    NO_START_FOR_CDC_READ = ("DELTA_NO_START_FOR_CDC_READ", "42601")
    MULTIPLE_CDC_BOUNDARY = ("DELTA_MULTIPLE_CDC_BOUNDARY", "42614")
    CDC_READ_NULL_RANGE_BOUNDARY = ("DELTA_CDC_READ_NULL_RANGE_BOUNDARY", "22004")
    CDC_START_VERSION_AFTER_LATEST = ("DELTA_CDC_START_VERSION_AFTER_LATEST", "22003")
    INVALID_CDC_RANGE = ("DELTA_INVALID_CDC_RANGE", "22003")
    MISSING_CHANGE_DATA = ("DELTA_MISSING_CHANGE_DATA", "KD002")
    CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE = (
        "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
        "0AKDC",
    )
    CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA = (
        "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
        "0AKDC",
    )
    REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA = (
        "DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
        "XXKDS",
    )
    TABLE_ALREADY_CONTAINS_CDC_COLUMNS = ("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", "42711")
    RESERVED_CDC_COLUMNS_ON_WRITE = ("RESERVED_CDC_COLUMNS_ON_WRITE", "42939")

    # commits
    CONCURRENT_WRITE = ("DELTA_CONCURRENT_WRITE", "2D521")
    METADATA_CHANGED = ("DELTA_METADATA_CHANGED", "2D521")
    PROTOCOL_CHANGED = ("DELTA_PROTOCOL_CHANGED", "2D521")
    CONCURRENT_APPEND = ("DELTA_CONCURRENT_APPEND", "2D521")
    CONCURRENT_DELETE_READ = ("DELTA_CONCURRENT_DELETE_READ", "2D521")
    CONCURRENT_DELETE_DELETE = ("DELTA_CONCURRENT_DELETE_DELETE", "2D521")
    CONCURRENT_TRANSACTION = ("DELTA_CONCURRENT_TRANSACTION", "2D521")
    DUPLICATE_DOMAIN_METADATA = ("DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR", "42601")
    CONFLICTING_DOMAIN_METADATA = ("DELTA_CONCURRENT_DOMAIN_METADATA", "2D521")
    DUPLICATE_ACTIONS_FOUND = ("DELTA_DUPLICATE_ACTIONS_FOUND", "2D521")
    MAX_COMMIT_RETRIES_EXCEEDED = ("DELTA_MAX_COMMIT_RETRIES_EXCEEDED", "40000")
    COMMIT_STATE_UNKNOWN = ("DELTA_COMMIT_STATE_UNKNOWN", "XXKDS")
    NUM_RECORDS_MISMATCH = ("DELTA_NUM_RECORDS_MISMATCH", "XXKDS")
    CANNOT_MODIFY_APPEND_ONLY = ("DELTA_CANNOT_MODIFY_APPEND_ONLY", "42809")
    INVALID_PARTITIONING_SCHEMA = ("DELTA_INVALID_PARTITIONING_SCHEMA", "XXKDS")
    METADATA_ABSENT = ("DELTA_METADATA_ABSENT", "XXKDS")
    DOMAIN_METADATA_NOT_SUPPORTED = ("DELTA_DOMAIN_METADATA_NOT_SUPPORTED", "0A000")
    ADDING_DELETION_VECTORS_DISALLOWED = ("DELTA_ADDING_DELETION_VECTORS_DISALLOWED", "0A000")
    ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED = (
        "DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED",
        "42000",
    )
    DELETION_VECTOR_MISSING_NUM_RECORDS = ("DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS", "2D521")
    ROW_ID_ASSIGNMENT_WITHOUT_STATS = ("DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS", "22000")

    # schemas and writes
    DUPLICATE_COLUMNS_FOUND = ("DELTA_DUPLICATE_COLUMNS_FOUND", "42711")
    INVALID_CHARACTERS_IN_COLUMN_NAMES = ("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", "42K05")
    FAILED_TO_MERGE_FIELDS = ("DELTA_FAILED_TO_MERGE_FIELDS", "22005")
    MERGE_INCOMPATIBLE_DATATYPE = ("DELTA_MERGE_INCOMPATIBLE_DATATYPE", "42K09")
    MERGE_INCOMPATIBLE_DECIMAL_TYPE = ("DELTA_MERGE_INCOMPATIBLE_DECIMAL_TYPE", "42806")
    SCHEMA_MISMATCH = ("DELTA_METADATA_MISMATCH", "42KDG")
    PARTITION_COLUMN_NOT_FOUND = ("DELTA_PARTITION_COLUMN_NOT_FOUND", "42703")
    ALL_COLUMNS_PARTITIONED = ("DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", "428FT")
    INVALID_PARTITION_COLUMN_TYPE = ("DELTA_INVALID_PARTITION_COLUMN_TYPE", "42996")
    TABLE_ALREADY_EXISTS = ("DELTA_PATH_EXISTS", "42K04")
    NOT_NULL_CONSTRAINT_VIOLATED = ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502")
    VIOLATE_CONSTRAINT_WITH_VALUES = ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001")
    EXCEED_CHAR_VARCHAR_LIMIT = ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "22001")
    CAST_OVERFLOW_IN_TABLE_WRITE = ("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "22003")
    WRITE_FAILED = ("DELTA_WRITE_FAILED", "58030")
    EMPTY_DATA = ("DELTA_EMPTY_DATA", "428GU")
    INVALID_WRITE_OPTION = ("DELTA_ILLEGAL_OPTION", "42616")
    MISSING_NOT_NULL_COLUMN_VALUE = ("DELTA_MISSING_NOT_NULL_COLUMN_VALUE", "23502")

    # CONVERT TO DELTA
    MISSING_PROVIDER_FOR_CONVERT = ("DELTA_MISSING_PROVIDER_FOR_CONVERT", "0AKDC")
    CONVERT_NON_PARQUET_TABLE = ("DELTA_CONVERT_NON_PARQUET_TABLE", "0AKDC")
    MISSING_ICEBERG_CLASS = ("DELTA_MISSING_ICEBERG_CLASS", "56038")
    EMPTY_DIRECTORY = ("DELTA_EMPTY_DIRECTORY", "42K03")
    CONVERSION_UNSUPPORTED_COLUMN_MAPPING = ("DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING", "0AKDC")
    CONVERT_ROW_TRACKING_WITHOUT_STATS = (
        "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS",
        "22000",
    )
    FAILED_MERGE_SCHEMA_FILE = ("DELTA_FAILED_MERGE_SCHEMA_FILE", "42KDA")
    FAILED_INFER_SCHEMA = ("DELTA_FAILED_INFER_SCHEMA", "42KD9")
    FAILED_READ_FILE_FOOTER = ("DELTA_FAILED_READ_FILE_FOOTER", "KD001")
    INVALID_PARTITION_COLUMN_NAME = ("DELTA_INVALID_PARTITION_COLUMN_NAME", "42996")
    UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME = (
        "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
        "KD009",
    )
    UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME = (
        "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
        "KD009",
    )
    FAILED_CAST_PARTITION_VALUE = ("DELTA_FAILED_CAST_PARTITION_VALUE", "22018")
    PARQUET_TYPE_ILLEGAL = ("PARQUET_TYPE_ILLEGAL", "42846")
    PARSE_SYNTAX_ERROR = ("PARSE_SYNTAX_ERROR", "42601")

    # MERGE INTO
    MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW = (
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        "21506",
    )
    MERGE_MISSING_WHEN = ("DELTA_MERGE_MISSING_WHEN", "42601")
    NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION = (
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        "42601",
    )
    NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION = (
        "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
        "42601",
    )
    NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION = (
        "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
        "42601",
    )
    MERGE_UNRESOLVED_EXPRESSION = ("DELTA_MERGE_UNRESOLVED_EXPRESSION", "42601")
    MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT = (
        "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT",
        "42601",
    )
    MERGE_UNEXPECTED_ASSIGNMENT_KEY = ("DELTA_MERGE_UNEXPECTED_ASSIGNMENT_KEY", "22005")
    MERGE_ADD_VOID_COLUMN = ("DELTA_MERGE_ADD_VOID_COLUMN", "42K09")
    MERGE_INTO_EMPTY_SCHEMA_TARGET = ("DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET", "428GU")
    UPDATE_SCHEMA_MISMATCH_EXPRESSION = ("DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", "42846")
    CONFLICT_SET_COLUMN = ("DELTA_CONFLICT_SET_COLUMN", "42701")
    MISSING_SET_COLUMN = ("DELTA_MISSING_SET_COLUMN", "42703")
    UNSUPPORTED_FIELD_UPDATE_NON_STRUCT = ("DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT", "0AKDC")
    UNSUPPORTED_NESTED_FIELD_IN_OPERATION = ("DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION", "0AKDC")
    DUPLICATE_COLUMNS_ON_INSERT = ("DELTA_DUPLICATE_COLUMNS_ON_INSERT", "42701")
    UNSUPPORTED_SUBQUERY = ("DELTA_UNSUPPORTED_SUBQUERY", "0AKDC")
    AGGREGATION_NOT_SUPPORTED = ("DELTA_AGGREGATION_NOT_SUPPORTED", "42903")
    NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED = (
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        "0AKDC",
    )
    INVALID_IDEMPOTENT_WRITES_OPTIONS = ("DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "42616")
    SCHEMA_CHANGE_SINCE_ANALYSIS = ("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", "KD007")
    CANNOT_UP_CAST_DATATYPE = ("CANNOT_UP_CAST_DATATYPE", "42846")
    DATATYPE_MISMATCH_CAST = ("DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "42K09")
    CAST_INVALID_INPUT = ("CAST_INVALID_INPUT", "22018")
    AMBIGUOUS_REFERENCE = ("AMBIGUOUS_REFERENCE", "42704")
    FIELD_NOT_FOUND = ("FIELD_NOT_FOUND", "42704")
    INVALID_EXTRACT_BASE_FIELD_TYPE = ("INVALID_EXTRACT_BASE_FIELD_TYPE", "42000")
    INVALID_ATTRIBUTE_NAME_SYNTAX = ("INVALID_ATTRIBUTE_NAME_SYNTAX", "42604")
    UNSUPPORTED_NESTED_FIELD_IN_UPDATE = ("DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE", "0A000")
    UNSUPPORTED_EXPR_FOR_OPERATOR = ("UNSUPPORTED_EXPR_FOR_OPERATOR", "42K0E")
    JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE = ("JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "42K0E")
    UNSUPPORTED_STORE_ASSIGNMENT = ("DELTA_UNSUPPORTED_STORE_ASSIGNMENT", "0A000")
    UNSUPPORTED_SCHEMA_EVOLUTION = ("DELTA_UNSUPPORTED_SCHEMA_EVOLUTION", "0A000")
    OPERATION_NOT_ALLOWED = ("DELTA_OPERATION_NOT_ALLOWED", "0AKDC")
    VALUE_NOT_PLAIN_COLUMN_REFERENCE = ("VALUE_NOT_PLAIN_COLUMN_REFERENCE", "42601")
    FILTER_NOT_BOOLEAN = ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "42K09")
    INVALID_CONF_VALUE = ("INVALID_CONF_VALUE.OUT_OF_RANGE_OF_OPTIONS", "22022")
    CONSTRAINT_DATA_TYPE_MISMATCH = ("DELTA_CONSTRAINT_DATA_TYPE_MISMATCH", "42K09")
    GENERATED_COLUMNS_DATA_TYPE_MISMATCH = (
        "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
        "42K09",
    )

    @property
    def error_class(self) -> str:
        """The reference's error class, for example ``DELTA_CONCURRENT_APPEND``."""
        return self.value[0]

    @property
    def sqlstate(self) -> str:
        """The SQLSTATE that belongs to the error class."""
        return self.value[1]


class DeltaError(Exception):
    """Base of the tree.

    ``str(error)`` reads ``[ERROR_CLASS] message SQLSTATE: 12345`` as Spark prints it;
    ``message`` is the text alone and ``details`` the values it names. The ``get...``
    methods are those of PySpark's own exceptions, so handlers need not care which
    library raised.
    """

    def __init__(self, message: str, *, code: ErrorCode, **details: object) -> None:
        super().__init__(f"[{code.error_class}] {message} SQLSTATE: {code.sqlstate}")
        self.message = message
        self.code = code
        self.details = details

    def __reduce__(self) -> tuple[object, ...]:
        """Keep code and details when an executor pickles the exception."""
        return (_rebuild, (type(self), self.message, self.code, self.details))

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        """Return the error class, as ``PySparkException.getCondition`` does."""
        return self.code.error_class

    def getErrorClass(self) -> str:  # noqa: N802 - PySpark's older name
        """Return the error class, as ``PySparkException.getErrorClass`` does."""
        return self.code.error_class

    def getSqlState(self) -> str:  # noqa: N802 - PySpark's name
        """Return the SQLSTATE, as ``PySparkException.getSqlState`` does."""
        return self.code.sqlstate

    def getMessage(self) -> str:  # noqa: N802 - PySpark's name
        """Return the full text, as ``PySparkException.getMessage`` does."""
        return str(self)

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        """Return the named values of the message as text."""
        return {name: str(value) for name, value in self.details.items()}


def _rebuild(
    kind: type[DeltaError], message: str, code: ErrorCode, details: dict[str, object]
) -> DeltaError:
    return kind(message, code=code, **details)


class ConflictError(DeltaError):
    """Another writer committed first and the two commits cannot both stand."""


class ConcurrentWriteException(ConflictError):
    """A table was created at the version this commit wanted (C-59)."""


class MetadataChangedException(ConflictError):
    """The winning commit changed the table's metadata."""


class ProtocolChangedException(ConflictError):
    """The winning commit changed the table's protocol."""


class ConcurrentAppendException(ConflictError):
    """The winning commit added files this operation should have read."""


class ConcurrentDeleteReadException(ConflictError):
    """The winning commit removed a file this operation read."""


class ConcurrentDeleteDeleteException(ConflictError):
    """The winning commit removed a file this operation removes."""


class ConcurrentTransactionException(ConflictError):
    """The winning commit advanced an application id this operation read."""


class UnsupportedError(DeltaError):
    """The table or the request needs something this library does not implement."""


class InvalidRequestError(DeltaError, ValueError):
    """The caller must change the request."""


class TableNotFoundError(DeltaError, LookupError):
    """There is no Delta table, version or path here."""


class CorruptTableError(DeltaError):
    """The log or a file of the table breaks the protocol."""


class CommitUnknownError(DeltaError):
    """The store neither confirmed nor denied the commit."""
