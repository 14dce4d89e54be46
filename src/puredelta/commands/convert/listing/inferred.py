"""Partition columns as the names of directories suggest them, with the reason for each type.

A type is chosen only if every value of the column is written as that type's values are written:
text that would change, such as ``007``, stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from puredelta.commands.convert.listing.partitions import is_log_spelling, parse_levels
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    StructField,
    StructType,
)
from puredelta.spark.session.identifiers import quote

INFER = "infer"
"""What stands for the partition columns where the names of directories are to say."""

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredColumn:
    """A partition column that nobody has declared."""

    name: str
    type: DataType
    reason: str


def inferred_schema(columns: Iterable[InferredColumn]) -> StructType:
    """Return the columns as a schema."""
    return StructType(tuple(StructField(column.name, column.type) for column in columns))


def infer_partitions(paths: Iterable[str], root_uri: str) -> tuple[InferredColumn, ...]:
    """Return the partition columns of files, outermost first; none where no directory names one.

    Raises:
        InvalidRequestError: two files lie below directories of other columns
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
        f"The partition columns cannot be inferred: other files have {list(expected)}, but "
        f"{list(parsed)} is parsed from the file name {uri}. Convert the directories apart.",
        code=ErrorCode.UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME,
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
    return lambda text: _WHOLE.fullmatch(text) is not None and is_log_spelling(text, data_type)


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
    """Return the columns as DDL text, which a conversion takes.

    >>> shown_ddl([InferredColumn(name="day", type=DATE, reason="all 2 values are a date")])
    'day date'
    """
    return ", ".join(f"{_name(c.name)} {simple_string(c.type)}" for c in columns)


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else quote(name)
