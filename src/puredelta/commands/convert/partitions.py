"""Partition values and types from directory names (C-40 to C-48).

Names, order and types of declared columns are the caller's, and every directory must agree
with them. Each directory is checked once, however many files it holds.

An inferred type is chosen only if every value of the column is written in that type's spelling:
text that would change, such as ``007``, stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timezone
from typing import TypeAlias

from puredelta.errors import CorruptTableError, DeltaError, InvalidRequestError, Message
from puredelta.protocol.schema.char_varchar import Limited, limits_of
from puredelta.protocol.schema.partition_values import (
    HIVE_NULL,
    parse_partition_value,
    unescape_partition_text,
)
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.protocol.table.schema_checks import (
    INVALID_CHARACTERS,
    require_no_duplicates,
    require_partition_type,
)
from puredelta.protocol.table.table_config import CHAR_VARCHAR
from puredelta.spark.session.names import quote
from puredelta.spark.session.types import to_spark_type

PartitionValues: TypeAlias = Mapping[str, str | None]

CastText: TypeAlias = Callable[[DataType, Sequence[str]], Mapping[str, str | None]]
"""Casts texts to a type as Spark does, and back to text; ``None`` for text that is no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDirectory:
    """The levels ``name=value`` of one directory, and a file in it for messages."""

    levels: tuple[tuple[str, str | None], ...]
    file_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRules:
    """The caller's declarations about the partitions."""

    columns: tuple[StructField, ...]
    cast: CastText
    case_sensitive: bool = False
    ignore_cast_failure: bool = False


def require_partition_columns(columns: StructType) -> None:
    """Refuse columns that cannot partition any table, before a directory is listed (X-07, C-36).

    Raises:
        InvalidRequestError: a name twice (DELTA_DUPLICATE_COLUMNS_FOUND), a type that is not
            atomic (DELTA_INVALID_PARTITION_COLUMN_TYPE), or a character that names may not
            have (DELTA_INVALID_PARTITION_COLUMN_NAME).
    """
    require_no_duplicates(columns)
    for column in columns.fields:
        require_partition_type(column)
        if set(column.name) & set(INVALID_CHARACTERS):
            raise InvalidRequestError(
                Message.INVALID_PARTITION_COLUMN_NAME,
                invalid_characters=INVALID_CHARACTERS,
                column=column.name,
            )


def read_partitions(
    paths: Iterable[str], root_uri: str, rules: PartitionRules
) -> Mapping[str, PartitionValues]:
    """Return the `partition_values` of every directory among ``paths`` (relative to the root)."""
    directories: dict[str, PartitionDirectory] = {}
    for path in paths:
        directory = path.rpartition("/")[0]
        if directory not in directories:
            uri = f"{root_uri}/{path}"
            found = PartitionDirectory(levels=parse_levels(directory, uri), file_uri=uri)
            _require_count(found, rules.columns)
            directories[directory] = found
    return partition_values(directories, rules)


def partition_values(
    directories: Mapping[str, PartitionDirectory], rules: PartitionRules
) -> Mapping[str, PartitionValues]:
    """Return the partition values of directories that have a level for each column.

    Text that is a value of its column in the log's spelling (X-83) is kept exactly (C-44, C-45).
    Another spelling that Spark understands, such as ``yes`` for a boolean, is stored in the
    log's spelling, since most readers would fail on it. Text that is no value stops the
    conversion; with ``ignore_cast_failure`` it is NULL, as delta-spark reads it.
    """
    canonical = _canonical_texts(directories.values(), rules)
    for found in directories.values():
        _require_names(found, rules)
        _require_lengths(found, rules.columns)
    return {
        directory: _values(found, rules.columns, canonical)
        for directory, found in directories.items()
    }


def _values(
    found: PartitionDirectory,
    columns: Sequence[StructField],
    canonical: Mapping[tuple[str, str], str | None],
) -> PartitionValues:
    values: dict[str, str | None] = {}
    for column, (_, text) in zip(columns, found.levels, strict=True):
        value = None if text is None else canonical.get((column.name, text), text)
        if value is None and not column.nullable:
            raise InvalidRequestError(
                Message.NOT_NULL_CONSTRAINT_VIOLATED, column=column.name, path=found.file_uri
            )
        values[column.name] = value
    return values


def parse_levels(directory: str, file_uri: str) -> tuple[tuple[str, str | None], ...]:
    """Return the pairs of column and value in a directory's path, outermost first.

    Levels are read from the inside out: plain directories below the partitions are skipped,
    one above them ends the search. Hive's ``%XX`` is decoded in both halves (C-42), and
    Hive's default partition is NULL (C-43).

    >>> parse_levels("year=2024/place=a%2Fb", "")
    (('year', '2024'), ('place', 'a/b'))
    """
    levels: list[tuple[str, str | None]] = []
    for segment in reversed(directory.split("/")):
        escaped_name, equals, escaped_value = segment.partition("=")
        if equals:
            name, value = (
                unescape_partition_text(escaped_name),
                unescape_partition_text(escaped_value),
            )
            if not name or not value:
                raise _empty("value" if name else "name", segment, file_uri)
            levels.append((name, None if value == HIVE_NULL else value))
        elif levels:
            break
    return tuple(reversed(levels))


def _require_count(found: PartitionDirectory, columns: Sequence[StructField]) -> None:
    if len(found.levels) == len(columns):
        return
    expected = [column.name for column in columns]
    parsed = [name for name, _ in found.levels]
    raise InvalidRequestError(
        Message.UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME,
        num_expected=len(expected),
        expected=_listed(expected),
        num_parsed=len(parsed),
        parsed=_listed(parsed),
        hint="" if expected else _wanted(parsed),
        expected_columns=expected,
        parsed_columns=parsed,
        path=found.file_uri,
    )


def _wanted(parsed: Sequence[str]) -> str:
    example = ", ".join(f"{name} STRING" for name in parsed)
    return (
        f". Pass names and types of the partition columns, such as '{example}' (PARTITIONED BY), "
        "or 'infer' to convertToDelta."
    )


def _require_names(found: PartitionDirectory, rules: PartitionRules) -> None:
    for column, (name, _) in zip(rules.columns, found.levels, strict=True):
        same = name == column.name
        if not same and not (name.lower() == column.name.lower() and not rules.case_sensitive):
            raise InvalidRequestError(
                Message.UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME_OTHER,
                expected_column=column.name,
                parsed_column=name,
                path=found.file_uri,
            )


def _require_lengths(found: PartitionDirectory, columns: Sequence[StructField]) -> None:
    """Refuse text that is too long for a ``char(n)`` or ``varchar(n)`` column."""
    for column, (_, text) in zip(columns, found.levels, strict=True):
        declared = column.metadata.get(CHAR_VARCHAR)
        limits = limits_of(declared)
        if text is not None and isinstance(limits, Limited) and len(text) > limits.length:
            raise InvalidRequestError(
                Message.EXCEED_LIMIT_LENGTH,
                text=text,
                declared=declared,
                text_count=len(text),
                column=column.name,
                limit=limits.length,
                path=found.file_uri,
            )


def _canonical_texts(
    directories: Iterable[PartitionDirectory], rules: PartitionRules
) -> Mapping[tuple[str, str], str | None]:
    """Return the texts to store in the place of the original texts, by column and text.

    Python recognises the log's spelling; only the rest is shown to Spark, each text once.
    """
    examples: dict[tuple[int, str], PartitionDirectory] = {}
    for found in directories:
        for index, (_, text) in enumerate(found.levels):
            if text is not None:
                examples.setdefault((index, text), found)
    odd: dict[int, list[str]] = {}
    for index, text in examples:
        if not is_log_spelling(text, rules.columns[index].type):
            odd.setdefault(index, []).append(text)
    canonical: dict[tuple[str, str], str | None] = {}
    for index, texts in odd.items():
        column = rules.columns[index]
        spellings = rules.cast(column.type, texts)
        for text in texts:
            spelling = spellings.get(text)
            if spelling is None and not rules.ignore_cast_failure:
                raise _cast_failure(text, column, examples[index, text])
            canonical[column.name, text] = spelling
    return canonical


def _cast_failure(text: str, column: StructField, found: PartitionDirectory) -> DeltaError:
    data_type = repr(to_spark_type(column.type)).removesuffix("()")
    return InvalidRequestError(
        Message.FAILED_CAST_PARTITION_VALUE_CONVERT,
        value=text,
        data_type=data_type,
        column=column.name,
        path=found.file_uri,
    )


def _empty(half: str, segment: str, file_uri: str) -> DeltaError:
    return InvalidRequestError(
        Message.UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME_EMPTY,
        half=half,
        hive_null=HIVE_NULL,
        directory=segment,
        path=file_uri,
    )


def _listed(names: Iterable[str]) -> str:
    return "[" + ", ".join(f"`{name}`" for name in names) + "]"


_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]+(?:\.([0-9]+))?")
_FLOAT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"

_SPELLINGS: Mapping[str, re.Pattern[str]] = {
    "string": re.compile(r".*", re.DOTALL),
    "binary": re.compile(r".*", re.DOTALL),
    "byte": _WHOLE,
    "short": _WHOLE,
    "integer": _WHOLE,
    "long": _WHOLE,
    "float": _FLOAT,
    "double": _FLOAT,
    "boolean": re.compile(r"true|false"),
    "date": re.compile(_DATE),
    "timestamp": re.compile(rf"{_DATE} {_TIME}|{_DATE}T{_TIME}Z"),
    "timestamp_ntz": re.compile(rf"{_DATE} {_TIME}"),
}


def is_log_spelling(text: str, data_type: DataType) -> bool:
    """Return whether every reader accepts ``text`` as a value of the type.

    >>> is_log_spelling("007", PrimitiveType("byte")), is_log_spelling("300", PrimitiveType("byte"))
    (True, False)
    """
    return _is_plain(text, data_type) and _is_value(text, data_type)


def _is_plain(text: str, data_type: DataType) -> bool:
    match data_type:
        case DecimalType(_, scale):
            match = _FRACTION.fullmatch(text)
            return match is not None and len(match[1] or "") <= scale
        case PrimitiveType(name):
            spelling = _SPELLINGS.get(name)
            return spelling is not None and spelling.fullmatch(text) is not None
        case _:
            return False


def _is_value(text: str, data_type: DataType) -> bool:
    """Return whether a well-spelled value is in range; month 13 and the byte 300 are not."""
    try:
        parse_partition_value(text, data_type, timezone.utc)
    except CorruptTableError:
        return False
    return True


INFER = "infer"
"""The placeholder for partition columns that are to be inferred from directory names."""

_WHOLE_AS_WRITTEN = re.compile(r"-?(?:0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredColumn:
    """A partition column inferred from directory names, with the reason for its type."""

    name: str
    type: DataType
    reason: str


def inferred_schema(columns: Iterable[InferredColumn]) -> StructType:
    """Return the columns as a schema."""
    return StructType(tuple(StructField(column.name, column.type) for column in columns))


def infer_partitions(paths: Iterable[str], root_uri: str) -> tuple[InferredColumn, ...]:
    """Return the partition columns of files, outermost first; none where no directory names one.

    Raises:
        InvalidRequestError: two files are below directories of different columns
            (DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME).
    """
    found: dict[str, str] = {}
    for path in paths:
        found.setdefault(path.rpartition("/")[0], path)
    values: dict[str, dict[str, None]] = {}
    names: tuple[str, ...] | None = None
    for directory, path in found.items():
        uri = f"{root_uri}/{path}"
        levels = parse_levels(directory, uri)
        here = tuple(name for name, _ in levels)
        names = here if names is None else names
        if [name.lower() for name in here] != [name.lower() for name in names]:
            raise _disagree(names, here, uri)
        for name, (_, text) in zip(names, levels, strict=True):
            known = values.setdefault(name, {})
            if text is not None:
                known[text] = None
    return tuple(_column(name, tuple(values[name])) for name in names or ())


def _disagree(expected: Sequence[str], parsed: Sequence[str], uri: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME_INFERRED,
        expected_columns=list(expected),
        parsed_columns=list(parsed),
        path=uri,
    )


def _column(name: str, texts: Sequence[str]) -> InferredColumn:
    if not texts:
        return InferredColumn(name=name, type=STRING, reason="all values are NULL")
    for data_type, what, fits in _CANDIDATES:
        if all(fits(text) for text in texts):
            counted = "the only value is" if len(texts) == 1 else f"all {len(texts)} values are"
            return InferredColumn(name=name, type=data_type, reason=f"{counted} {what}")
    odd = [text for text in texts if not any(fits(text) for *_, fits in _CANDIDATES)]
    reason = f"{odd[0]!r} is text" if odd else "the values are of several types"
    if odd and re.fullmatch(r"-?0[0-9]+", odd[0]):
        reason = f"{odd[0]!r} has a leading zero that a number would lose"
    return InferredColumn(name=name, type=STRING, reason=reason)


def _whole(data_type: DataType) -> Callable[[str], bool]:
    return lambda text: (
        _WHOLE_AS_WRITTEN.fullmatch(text) is not None and is_log_spelling(text, data_type)
    )


def _written(data_type: DataType) -> Callable[[str], bool]:
    return lambda text: is_log_spelling(text, data_type)


_CANDIDATES: tuple[tuple[DataType, str, Callable[[str], bool]], ...] = (
    (INTEGER, "a whole number in the range of INT", _whole(INTEGER)),
    (LONG, "a whole number in the range of BIGINT", _whole(LONG)),
    (DATE, "a date", _written(DATE)),
    (TIMESTAMP, "a timestamp", _written(TIMESTAMP)),
    (BOOLEAN, "true or false", _written(BOOLEAN)),
)


def shown_ddl(columns: Iterable[InferredColumn]) -> str:
    """Return the columns as DDL text, in the form that a conversion accepts.

    >>> shown_ddl([InferredColumn(name="day", type=DATE, reason="all 2 values are a date")])
    'day date'
    """
    return ", ".join(f"{_name(c.name)} {simple_string(c.type)}" for c in columns)


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else quote(name)
