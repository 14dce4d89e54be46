"""The settings of Spark that say how a Parquet file is read, and who follows each of them.

Spark's own reader follows them all. Arrow, which reads in Python workers and on the driver, knows
few: a file that Spark would read otherwise under the settings of the session is left to Spark, or
refused where Spark has no way to it. The table below names every setting of Spark's reader, and
every key of Hadoop's configuration by which the Parquet library reads; a test asks the running
Spark and its libraries for theirs, so that a new one has to be classified here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from puredelta.errors import Message, UnsupportedError
from puredelta.spark.session.delta_conf import DeltaConf
from puredelta.worker.wire import CHECKSUMS, INT96, OLD_TIMES


class Follower(Enum):
    """Who follows a setting, where rows of a data file depend on it."""

    ALL = "followed by Spark and by Arrow"
    SPARK = "with another value, Spark alone reads the files concerned"
    REFUSED = "followed by queries of Spark; commands refuse to run while it is set"
    SCAN = "fixed by the scans of a table"
    NONE = "no row depends on it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSetting:
    """One setting of the reader."""

    key: str
    follower: Follower
    reason: str
    """What it changes, or why it changes nothing."""
    usual: str = "false"
    """The value, in lower case, under which Arrow reads as Spark does; for `Follower.SPARK`."""
    columns: str | None = None
    """The columns that Spark alone reads with another value: a word of `puredelta.worker.wire`.
    ``None``: files of a source are staged, and files of a table are read as ever.
    """

    def value(self, settings: Mapping[str, str]) -> str | None:
        """Return what the session, or Hadoop's configuration by the session, made it."""
        return settings.get(self.key, settings.get(f"{_HADOOP_PREFIX}{self.key}"))

    def is_unusual(self, settings: Mapping[str, str]) -> bool:
        """Return whether the session made it something that Arrow does not follow."""
        found = self.value(settings)
        return found is not None and found.strip().lower() != self.usual


_HADOOP_PREFIX = "spark.hadoop."
_PARQUET = "spark.sql.parquet."
_FILES = "spark.sql.files."
CASE_SENSITIVE = "spark.sql.caseSensitive"
IGNORES_MISSING = "spark.sql.files.ignoreMissingFiles"
IGNORES_CORRUPT = "spark.sql.files.ignoreCorruptFiles"
FILTER_PUSHDOWN = "spark.sql.parquet.filterPushdown"


def _some(follower: Follower, reason: str, prefix: str, names: str) -> Iterator[ReaderSetting]:
    for name in names.split():
        yield ReaderSetting(key=f"{prefix}{name}", follower=follower, reason=reason)


_ONLY_SPARK = (
    ReaderSetting(
        key=f"{_PARQUET}int96TimestampConversion",
        follower=Follower.SPARK,
        reason="shifts INT96 timestamps of other writers by the zone of the session",
        columns=INT96,
    ),
    ReaderSetting(
        key=f"{_PARQUET}int96RebaseModeInRead",
        follower=Follower.SPARK,
        reason="moves old INT96 timestamps to another calendar, or refuses them",
        usual="corrected",
        columns=INT96,
    ),
    ReaderSetting(
        key=f"{_PARQUET}datetimeRebaseModeInRead",
        follower=Follower.SPARK,
        reason="moves old dates and timestamps to another calendar, or refuses them; a copy keeps "
        "what is stored",
        usual="corrected",
        columns=OLD_TIMES,
    ),
    ReaderSetting(
        key=f"{_PARQUET}fieldId.read.enabled",
        follower=Follower.SPARK,
        reason="finds columns of a source by the ids of fields; columns of a table are found as "
        "its column mapping says",
    ),
    *_some(
        Follower.SPARK,
        "leaves out files that are lost: queries follow it, and the log answers none of them then; "
        "commands never follow it",
        _FILES,
        "ignoreMissingFiles ignoreCorruptFiles",
    ),
)
_FOLLOWED_BY_ALL = (
    *_some(
        Follower.ALL,
        "decides whether names of columns in files may differ in case",
        "spark.sql.",
        "caseSensitive",
    ),
    *_some(
        Follower.ALL,
        "decides which instant a partition value without a zone is",
        "spark.sql.",
        "session.timeZone",
    ),
    *_some(
        Follower.ALL,
        "decides whether text of a char(n) is filled up with blanks",
        "spark.sql.",
        "readSideCharPadding",
    ),
)
_FIXED_BY_SCANS = (
    *_some(
        Follower.SCAN,
        "leaves files out by their names; scans read as with its default",
        _FILES,
        "ignoredPathSegmentRegex",
    ),
    *_some(
        Follower.SCAN,
        "is for columns that are found by id: scans of column mapping `id` set it",
        _PARQUET,
        "fieldId.read.ignoreMissing",
    ),
)
_OF_TYPES = (
    *_some(
        Follower.NONE,
        "decides a type where none is given: the log gives those of a table, CONVERT follows it",
        "spark.sql.",
        "parquet.binaryAsString parquet.int96AsTimestamp parquet.inferTimestampNTZ.enabled "
        "parquet.mergeSchema parquet.respectSummaryFiles "
        "parquet.reader.respectUnknownTypeAnnotation.enabled legacy.parquet.nanosAsLong",
    ),
    *_some(
        Follower.NONE,
        "decides what a struct is whose wanted fields a file lacks; commands copy whole columns",
        "spark.sql.legacy.parquet.",
        "returnNullStructIfAllFieldsMissing",
    ),
    *_some(
        Follower.NONE,
        "is of variants, which Spark alone reads",
        "spark.sql.",
        "parquet.ignoreVariantAnnotation parquet.variant.annotateLogicalType.enabled "
        "variant.allowReadingShredded variant.pushVariantIntoScan "
        "variant.pushVariantIntoScan.deferCastError "
        "variant.pushVariantIntoScan.pullOutExtractions",
    ),
)
_WITHOUT_ROWS = (
    *_some(
        Follower.NONE,
        "decides what Spark skips of a file, of which it tests the rest; columns of which rows "
        "would be missing are not tested there",
        _PARQUET,
        "filterPushdown filterPushdown.date filterPushdown.decimal "
        "filterPushdown.string.startsWith filterPushdown.stringPredicate filterPushdown.timestamp "
        "pushdown.inFilterThreshold recordLevelFilter.enabled",
    ),
    *_some(
        Follower.NONE,
        "is of another reader of Spark, which scans of tables do not use",
        _PARQUET,
        "aggregatePushdown",
    ),
    *_some(
        Follower.NONE,
        "decides how fast Spark decodes",
        _PARQUET,
        "columnarReaderBatchSize enableNestedColumnVectorizedReader "
        "enableNullTypeVectorizedReader enableVectorizedReader",
    ),
    *_some(
        Follower.NONE,
        "is of the writer",
        "spark.sql.",
        "parquet.compression.codec parquet.datetimeRebaseModeInWrite "
        "parquet.fieldId.write.enabled parquet.int96RebaseModeInWrite "
        "parquet.output.committer.class parquet.outputTimestampType parquet.writeLegacyFormat "
        "files.maxRecordsPerFile",
    ),
    *_some(
        Follower.NONE,
        "decides how files are shared out to tasks",
        _FILES,
        "maxPartitionBytes maxPartitionNum minPartitionNum openCostInBytes",
    ),
    *_some(
        Follower.NONE,
        "is of directories that are listed; the log names the files of a table",
        _FILES,
        "ignoreInvalidPartitionPaths",
    ),
    *_some(
        Follower.NONE,
        "is of files of other formats",
        _FILES,
        "archive.reader.enabled supportSecondOffsetFormat",
    ),
)
_OF_HADOOP = (
    ReaderSetting(
        key="parquet.page.verify-checksum.enabled",
        follower=Follower.SPARK,
        reason="refuses pages whose checksum is wrong",
        columns=CHECKSUMS,
    ),
    *(
        ReaderSetting(
            key=key,
            follower=Follower.REFUSED,
            reason="leaves rows out of every file that Spark reads",
            usual="",
        )
        for key in ("parquet.private.read.filter.predicate", "parquet.read.filter")
    ),
    *_some(
        Follower.NONE,
        "decides what is skipped of a file, as spark.sql.parquet.filterPushdown does",
        "parquet.",
        "filter.bloom.enabled filter.columnindex.enabled filter.dictionary.enabled "
        "filter.record-level.enabled filter.stats.enabled strings.signed-min-max.enabled",
    ),
    *_some(
        Follower.NONE,
        "is of records that fail to be made: those of Spark never do",
        "parquet.",
        "read.bad.record.threshold",
    ),
    *_some(
        Follower.NONE,
        "is set by Spark itself for each read",
        "parquet.",
        "read.schema read.support.class",
    ),
    *_some(
        Follower.NONE,
        "decides whether a file of another type is an error, which it is to Spark anyway",
        "parquet.",
        "strict.typing",
    ),
    *_some(
        Follower.NONE,
        "decides how bytes are transferred and decoded, or how much of them a footer may have",
        "parquet.",
        "decrypt.off-heap.buffer.enabled hadoop.vectored.io.enabled metadata.read.parallelism "
        "read.allocation.size thrift.string.size.limit",
    ),
    *_some(
        Follower.NONE,
        "is of an input format of Hadoop, which Spark does not use",
        "parquet.",
        "split.files task.side.metadata",
    ),
    *_some(
        Follower.NONE,
        "is of the keys of encrypted files, which Spark alone reads",
        "parquet.",
        "crypto.factory.class",
    ),
)
READER_SETTINGS: Mapping[str, ReaderSetting] = {
    one.key: one
    for one in (
        *_ONLY_SPARK,
        *_FOLLOWED_BY_ALL,
        *_FIXED_BY_SCANS,
        *_OF_TYPES,
        *_WITHOUT_ROWS,
        *_OF_HADOOP,
    )
}
"""Every setting of Spark's reader of Parquet files, by its key."""
_LEAVE_ROWS_OUT = tuple(one for one in READER_SETTINGS.values() if one.follower is Follower.REFUSED)


def require_every_row(settings: Mapping[str, str]) -> None:
    """Refuse settings by which Spark reads fewer rows of a file than it has.

    A command would lose the others, or miss rows that it has to change.

    Raises:
        UnsupportedError: there is one (UNSUPPORTED_SETTING).

    >>> require_every_row({"spark.hadoop.parquet.filter.stats.enabled": "false"})
    """
    for one in _LEAVE_ROWS_OUT:
        if one.is_unusual(settings):
            raise UnsupportedError(
                Message.UNSUPPORTED_SETTING_READER, setting=one.key, reason=one.reason
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """How a session reads data files, as far as Arrow is no substitute for Spark."""

    unusual: Mapping[str, str] = field(default_factory=dict)
    """Settings that Arrow does not follow, with their values as the user spelled them."""
    case_sensitive: bool = False
    ignores_missing: bool = False
    """Whether a file that is not there has no rows, and is no error: in queries, not in commands.
    """
    skips_row_groups: bool = True
    leaves_rows_out: bool = False
    """Whether Spark reads fewer rows of a file than it has."""

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> ReadSettings:
        """Read them from text by key; a setting that is not made may be missing.

        >>> ReadSettings.parse({"spark.sql.parquet.int96TimestampConversion": "true"}).only_spark
        ('int96',)
        """

        def flag(key: str, default: str = "false") -> bool:
            return settings.get(key, default).strip().lower() == "true"

        return cls(
            unusual={
                one.key: one.value(settings) or ""
                for one in READER_SETTINGS.values()
                if one.follower is Follower.SPARK and one.is_unusual(settings)
            },
            leaves_rows_out=any(one.is_unusual(settings) for one in _LEAVE_ROWS_OUT),
            case_sensitive=flag(CASE_SENSITIVE),
            ignores_missing=flag(IGNORES_MISSING),
            skips_row_groups=flag(FILTER_PUSHDOWN, "true"),
        )

    @property
    def only_spark(self) -> tuple[str, ...]:
        """The columns of files that only Spark reads, as words of `puredelta.worker.wire`.

        An INT96 timestamp becomes another kind of timestamp when Arrow copies it, which the mode
        for those is then asked of: so either mode concerns INT96.
        """
        named = {READER_SETTINGS[key].columns for key in self.unusual}
        words = named | {INT96} if OLD_TIMES in named else named
        return tuple(sorted(word for word in words if word is not None))

    @property
    def may_leave_rows_out(self) -> bool:
        """Whether queries of the session may have fewer rows than the log says."""
        ignores_files = IGNORES_MISSING in self.unusual or IGNORES_CORRUPT in self.unusual
        return ignores_files or self.leaves_rows_out

    def why_staged(self) -> str | None:
        """Say which setting keeps files of a source from being read where they are."""
        return next((f"{key} is {value}" for key, value in self.unusual.items()), None)


def log_may_answer(settings: Mapping[str, str], conf: DeltaConf) -> bool:
    """Return whether the log may answer, if ``conf`` says so: not where lost files have no rows."""
    return conf.flag(settings) and not ReadSettings.parse(settings).may_leave_rows_out
