"""Written files as actions of a commit.

Spark's writer partitions by a text *copy* of each column, made here, and the text comes
back with the listing of the job's directory. So the spelling in the log (X-83) does not depend
on the session's time zone or on how Spark would write odd values.

Where a file system takes ``p=A`` for ``p=a`` the directories of both values would be one, and the
listing would give one of them to the rows of both. There a text that could be meant goes by the
digits of its bytes, which no other text has in any spelling.

Statistics come from the footers, partition values from the directories. A job that wrote
change rows beside rows of the table left two kinds of files, each below a helper directory. They
are moved to where the protocol wants them, so that the path of a data file has no directories
but those of partition columns.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as F

from puredelta.log.files.file_stats import TableStatistics
from puredelta.log.files.leaf_values import might_contain_nan
from puredelta.log.files.parquet_footer import ParquetWriter
from puredelta.protocol.actions.actions import Add, AddChangeFile
from puredelta.protocol.actions.log_paths import CHANGE_DATA_DIRECTORY
from puredelta.protocol.actions.paths import decode_path, encode_path
from puredelta.protocol.schema.partition_values import (
    HIVE_NULL,
    encode_partition_value,
    unescape_partition_text,
)
from puredelta.protocol.schema.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
)
from puredelta.protocol.table.change_data import change_file, change_file_path
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.names import IS_CHANGE
from puredelta.spark.session.types import to_spark_type
from puredelta.spark.write.parquet_job import ParquetJob, unseen
from puredelta.store.base import NameRule, Store, StoredFile
from puredelta.worker.data_files.write_file import FileAnswer
from puredelta.worker.data_files.write_rows import CHANGES, DATA


def keep_answered(
    store: Store, found: Iterable[StoredFile], answers: Mapping[str, FileAnswer]
) -> None:
    """Delete what attempts have left that failed or lost; ``found`` is a listing, ``answers`` say
    what lies under which path.

    Every attempt's file has a name of its own, so names count and directories do not: where a file
    system takes ``p=A`` for ``p=a`` the listing does not spell a path as its worker did.
    """
    files = {file.name: file for file in found}
    for path, answer in answers.items():
        file = files.pop(posixpath.basename(path), None)
        if file is None or file.size_bytes != answer.size_bytes:
            _require_whole(store, path, answer.size_bytes)
    for left in files.values():
        with contextlib.suppress(OSError):
            store.delete(left.path)


def _require_whole(store: Store, path: str, size_bytes: int) -> None:
    """Look at a file itself: the listing of a network's file system may be a minute old."""
    try:
        seen = f"{store.read_end(path, 0).size_bytes} bytes"
    except FileNotFoundError:
        seen = "no such file"
    if seen != f"{size_bytes} bytes":
        raise unseen(f"{store.root_uri}/{path}", f"{size_bytes} bytes", seen)


def added_file(
    answer: FileAnswer,
    path: str,
    partition_values: Mapping[str, str | None],
    statistics: TableStatistics,
    *,
    before: Sequence[Add] = (),
) -> Add:
    """Return the action that adds a file; ``path`` is relative to the table root, unescaped.

    ``before`` are the files from which values were copied without being read.
    """
    footer = pq.read_metadata(pa.BufferReader(answer.footer))
    unproven = {leaf for old in before for leaf in _unproven_leaves(answer, footer, old)}
    return Add(
        path=encode_path(path),
        partition_values=partition_values,
        size_bytes=answer.size_bytes,
        modified_ms=answer.modified_ms,
        data_change=True,
        stats=statistics.encode(footer, nan_leaves=(*answer.nan_columns, *unproven)),
        tags=statistics.file_tags,
    )


def _unproven_leaves(
    answer: FileAnswer, footer: pq.FileMetaData, before: Add
) -> Iterator[tuple[str, ...]]:
    """Yield the float columns that may hold a NaN unseen: the old file had no bounds of them, and
    bounds of its writer leave a NaN out.
    """
    if not answer.unread or not might_contain_nan("DOUBLE", ParquetWriter.of(footer)):
        return
    bounds = json.loads(before.stats or "{}").get("maxValues") or {}
    for path in answer.unread:
        found = bounds
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if found is None:
            yield path


_MICRO_DIGITS = 6
_DIGITS = "%"
"""Before the digits of a text. A text with this character goes by its digits, too."""
_AMBIGUOUS = rf"[A-Z{_DIGITS}]|[^\x00-\x7f]|[. ]$|^{HIVE_NULL.lower()}"
"""Texts that some other text may be taken for; Windows drops blanks and full stops at the end."""


def partition_text(value: Column, data_type: DataType, names: NameRule = NameRule.EXACT) -> Column:
    """Return the text that stands for the value in a directory name; NULL stays NULL.

    The empty string becomes NULL, as a partition value always does (M-108).
    """
    if data_type == STRING:
        # Spark would read the name of its own NULL directory as NULL: make it longer.
        text = F.when(value.startswith(HIVE_NULL), F.concat(value, F.lit("_"))).otherwise(value)
        if names is NameRule.EXACT:
            return text
        digits = F.concat(F.lit(_DIGITS), F.lower(F.hex(value)))
        return F.when(value.rlike(_AMBIGUOUS), digits).otherwise(text)
    if data_type == BINARY:
        return F.hex(value)
    if data_type in (FLOAT, DOUBLE):
        # -0.0 is 0.0 wherever Spark compares them: one value has one text.
        value = F.when(value == 0, F.lit(0).cast(to_spark_type(data_type))).otherwise(value)
    if data_type == TIMESTAMP:
        # The time in UTC, computed without any time zone.
        origin = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        value = F.timestamp_add("MICROSECOND", F.unix_micros(value), origin)
    return value.cast("string")


def log_value(
    text: str | None, data_type: DataType, names: NameRule = NameRule.EXACT
) -> str | None:
    """Return the spelling of the log for an unescaped directory text, ``None`` for NULL.

    >>> log_value("2020-01-01 10:11:12.5", TIMESTAMP)
    '2020-01-01T10:11:12.500000Z'
    """
    if text is None or text in {"", HIVE_NULL}:
        return None
    match data_type:
        case DecimalType():
            return f"{Decimal(text):f}"
        case _ if data_type == STRING and names is NameRule.FOLDED and text.startswith(_DIGITS):
            return bytes.fromhex(text.removeprefix(_DIGITS)).decode()
        case _ if data_type == STRING:
            return text[:-1] if text.startswith(HIVE_NULL) else text
        case _ if data_type == TIMESTAMP:
            seconds, _, fraction = text.partition(".")
            return f"{seconds.replace(' ', 'T')}.{fraction.ljust(_MICRO_DIGITS, '0')}Z"
        case _ if data_type == BINARY:
            return encode_partition_value(bytes.fromhex(text), data_type)
        case _:
            return text


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """Data files, and change files, that exist and belong to no version yet."""

    directories: tuple[str, ...]
    """Relative to the table root; all data files are in them and nothing else is. Change
    files are in directories of these names below ``_change_data``.
    """
    adds: tuple[Add, ...]
    num_rows: int
    """Of the data files."""
    changes: tuple[AddChangeFile, ...] = ()
    num_changes: int = 0
    """Rows of the change files."""

    @classmethod
    def nothing(cls) -> WriteResult:
        """Return the result of a write that did not happen."""
        return cls(directories=(), adds=(), num_rows=0)

    @classmethod
    def together(cls, *results: WriteResult) -> WriteResult:
        """Return the files of several writes as those of one."""
        return cls(
            directories=tuple(name for one in results for name in one.directories),
            adds=tuple(add for one in results for add in one.adds),
            num_rows=sum(one.num_rows for one in results),
            changes=tuple(change for one in results for change in one.changes),
            num_changes=sum(one.num_changes for one in results),
        )

    @property
    def size_bytes(self) -> int:
        """Of all data files."""
        return sum(add.size_bytes for add in self.adds)


def discard(result: WriteResult, store: Store) -> None:
    """Remove the files of a write that will not be committed, as far as storage lets us."""
    trees = list(result.directories) if result.adds else []
    if result.changes:
        trees += [f"{CHANGE_DATA_DIRECTORY}/{name}" for name in result.directories]
    for tree in trees:
        with contextlib.suppress(OSError):
            store.delete_tree(tree)


def describe_files(
    job: ParquetJob, directory: str, config: TableConfig, store: Store
) -> WriteResult:
    """Return the actions for the data files of a job; files without rows are deleted (M-83)."""
    return _data_files(job, job.files, _Describer(directory, config, store))


def _data_files(job: ParquetJob, files: Sequence[StoredFile], describer: _Describer) -> WriteResult:
    directory, store = describer.directory, describer.store
    described = describer.described(job, files)
    if not described:
        store.delete_tree(directory)
    return WriteResult(
        directories=(directory,),
        adds=tuple(add for add, _ in described),
        num_rows=sum(rows for _, rows in described),
    )


def describe_with_changes(
    job: ParquetJob, directory: str, config: TableConfig, store: Store
) -> WriteResult:
    """Do the same for a job whose files lie below a directory per value of `IS_CHANGE`.

    Data files move up, change files below ``_change_data`` (M-122).
    """
    kinds = {kind: f"{directory}/{IS_CHANGE}={kind}/" for kind in ("false", "true")}
    moved: dict[str, list[StoredFile]] = {kind: [] for kind in kinds}
    for kind, tree in kinds.items():
        for file in job.files:
            if file.path.startswith(tree):
                path = f"{directory}/{file.path.removeprefix(tree)}"
                path = change_file_path(path) if kind == "true" else path
                store.move(file.path, path)
                moved[kind].append(dataclasses.replace(file, path=path))
        store.delete_tree(tree)
    changes = f"{CHANGE_DATA_DIRECTORY}/{directory}"
    recorded = _Describer(changes, config, store).described(job, moved["true"])
    return dataclasses.replace(
        _data_files(job, moved["false"], _Describer(directory, config, store)),
        changes=tuple(change_file(add, path=decode_path(add.path)) for add, _ in recorded),
        num_changes=sum(rows for _, rows in recorded),
    )


def describe_answers(
    written: Mapping[str, FileAnswer], directory: str, config: TableConfig, names: NameRule
) -> WriteResult:
    """Return the actions for files that workers have written, by path; nothing is read."""
    statistics = TableStatistics(config)
    kinds = [field.type for field in config.partition_schema.fields]
    adds: dict[int, list[Add]] = {DATA: [], CHANGES: []}
    num_rows = {DATA: 0, CHANGES: 0}
    for path, answer in written.items():
        texts = [log_value(t, k, names) for t, k in zip(answer.partition, kinds, strict=True)]
        values = dict(zip(config.physical_partition_columns, texts, strict=True))
        adds[answer.ordinal].append(added_file(answer, path, values, statistics))
        num_rows[answer.ordinal] += answer.kept_rows
    return WriteResult(
        directories=(directory,),
        adds=tuple(adds[DATA]),
        num_rows=num_rows[DATA],
        changes=tuple(change_file(add, path=decode_path(add.path)) for add in adds[CHANGES]),
        num_changes=num_rows[CHANGES],
    )


class _Describer:
    """Describes the files that a job has left in one directory."""

    def __init__(self, directory: str, config: TableConfig, store: Store) -> None:
        self.directory, self.store = directory, store
        self._config, self._names = config, store.name_rule()
        self._statistics = TableStatistics(config)

    def described(self, job: ParquetJob, files: Sequence[StoredFile]) -> list[tuple[Add, int]]:
        """Return every file that has rows, with their number; delete the others.

        Of encrypted files the log gets the number of rows: bounds would show what they hide.
        """
        every = job.described(files, self.store, by_footer=self._by_footer, by_count=self._by_count)
        for file, (_, rows) in zip(files, every, strict=True):
            if not rows:
                self.store.delete(file.path)
        return [(add, rows) for add, rows in every if rows]

    def _by_footer(self, file: StoredFile, footer: pq.FileMetaData) -> tuple[Add, int]:
        return self._add(file, self._statistics.encode(footer)), footer.num_rows

    def _by_count(self, file: StoredFile, num_rows: int) -> tuple[Add, int]:
        return self._add(file, self._statistics.encode_count(num_rows)), num_rows

    def _add(self, file: StoredFile, stats: str) -> Add:
        return Add(
            path=encode_path(file.path),
            partition_values=_partition_values(file, self.directory, self._config, self._names),
            size_bytes=file.size_bytes,
            modified_ms=file.modified_ms,
            data_change=True,
            stats=stats,
            tags=self._statistics.file_tags,
        )


def _partition_values(
    file: StoredFile, directory: str, config: TableConfig, names: NameRule
) -> dict[str, str | None]:
    """Read the partition of a file back from its directories, by physical name (X-82)."""
    fields = config.partition_schema.fields
    parents = file.path.removeprefix(f"{directory}/").split("/")[:-1]
    return {
        physical: log_value(unescape_partition_text(parent.partition("=")[2]), field.type, names)
        for physical, field, parent in zip(
            config.physical_partition_columns, fields, parents, strict=True
        )
    }
