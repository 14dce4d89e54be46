"""What every written row must satisfy, checked by Spark inside the job that writes it.

NOT NULL (also of nested fields), ``char(n)``/``varchar(n)``, CHECK constraints and legacy
invariants become one guarded column: no extra pass, no Python per row. A row that breaks a
rule ends the job with the error of the reference, its values included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.protocol.table_config import TableConfig
from puredelta.protocol.types import ArrayType, DataType, MapType, StructType
from puredelta.spark.row_errors import row_error
from puredelta.spark.types import quoted

_SHOWN_CHARACTERS = 200
"""Of one value in a message."""

_CHAR_VARCHAR = re.compile(r"(char|varchar)\((\d+)\)", re.IGNORECASE)
_NAME = r"(?:`(?:[^`]|``)+`|[A-Za-z_]\w*)"
_TOKEN = re.compile(rf"'(?:[^'\\]|\\.)*'|(?P<reference>{_NAME}(?:\s*\.\s*{_NAME})*)")
"""A string literal, or what may be a column."""
_PART = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


@dataclass(frozen=True, slots=True)
class Check:
    """One rule: ``violated`` is TRUE for rows that break it, ``error`` raises for such a row."""

    violated: Column
    error: Column


def guarded(value: Column, checks: Sequence[Check]) -> Column:
    """Return ``value``, or the error of the first rule its row breaks.

    It is evaluated for exactly the rows that are written: the expression calls itself
    non-deterministic, so Spark moves it below no filter, limit or join.
    """
    if not checks:
        return value
    here = F.spark_partition_id() >= 0
    first, *others = checks
    cases = F.when(first.violated & here, first.error)
    for check in others:
        cases = cases.when(check.violated & here, check.error)
    return cases.otherwise(value)


def table_checks(config: TableConfig) -> list[Check]:
    """Return every rule of the table, over a frame with its columns by logical name.

    Raises:
        UnsupportedError: ``char(n)`` or ``varchar(n)`` inside of an array, map or struct.
    """
    return [
        *_not_null_checks(config.schema),
        *(_length_check(path, text) for path, text in config.char_varchar_columns.items()),
        *(_expression_check(name, sql, config) for name, sql in _expressions(config).items()),
    ]


def padded_columns(config: TableConfig) -> Mapping[str, int]:
    """Return the ``char(n)`` columns with their lengths: shorter values are filled with blanks."""
    found = {}
    for path, text in config.char_varchar_columns.items():
        kind, length = _char_or_varchar(path, text)
        if kind == "char":
            found[path[0]] = length
    return found


def _expressions(config: TableConfig) -> dict[str, str]:
    """CHECK constraints, then column invariants under the name the reference gives them."""
    invariants = {f"EXPRESSION({sql})": sql for sql in config.invariants.values()}
    return {**config.check_constraints, **invariants}


# --- NOT NULL -------------------------------------------------------------------------------


def _not_null_checks(schema: StructType) -> Iterator[Check]:
    for field in schema.fields:
        column = F.col(quoted(field.name))
        yield from _nullability(field.type, column, field.name, nullable=field.nullable)


def _nullability(
    data_type: DataType, column: Column, name: str, *, nullable: bool
) -> Iterator[Check]:
    """A required field of a struct that is NULL is missing, as in the reference (M-105)."""
    if not nullable:
        yield _null_check(column.isNull(), name)
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            inner = column.getField(field.name)
            yield from _nullability(
                field.type, inner, f"{name}.{field.name}", nullable=field.nullable
            )
        return
    for part, values, inner_type, inner_nullable in _elements(data_type, column):
        if _has_required(inner_type) or not inner_nullable:
            yield _null_check(
                F.coalesce(
                    F.exists(values, _breaks(inner_type, nullable=inner_nullable)),
                    _false(),
                ),
                f"{name}.{part}",
            )


def _elements(data_type: DataType, column: Column) -> Iterator[tuple[str, Column, DataType, bool]]:
    """Name, array of the values, their type and whether they may be NULL."""
    match data_type:
        case ArrayType(element, contains_null):
            yield "element", column, element, contains_null
        case MapType(key, value, value_contains_null):
            yield "key", F.map_keys(column), key, True
            yield "value", F.map_values(column), value, value_contains_null
        case _:
            return


def _breaks(data_type: DataType, *, nullable: bool) -> Callable[[Column], Column]:
    """Tell whether a value inside an array or map, or anything in it, is NULL and must not be.

    A NULL value is judged by itself: the fields it does not have break nothing.
    """

    def test(value: Column) -> Column:
        broken = _false() if nullable else value.isNull()
        if isinstance(data_type, StructType):
            for field in data_type.fields:
                inner = _breaks(field.type, nullable=field.nullable)(value.getField(field.name))
                broken = broken | (value.isNotNull() & inner)
        for _, values, inner_type, inner_nullable in _elements(data_type, value):
            if _has_required(inner_type) or not inner_nullable:
                inner = F.exists(values, _breaks(inner_type, nullable=inner_nullable))
                broken = broken | F.coalesce(inner, _false())
        return broken

    return test


def _has_required(data_type: DataType) -> bool:
    match data_type:
        case StructType(fields):
            return any(not f.nullable or _has_required(f.type) for f in fields)
        case ArrayType(element, contains_null):
            return not contains_null or _has_required(element)
        case MapType(key, value, value_contains_null):
            return not value_contains_null or _has_required(key) or _has_required(value)
        case _:
            return False


def _null_check(violated: Column, name: str) -> Check:
    return Check(
        violated,
        row_error(
            ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED,
            F.lit(f"NOT NULL constraint violated for column: {name}."),
            {"columnName": F.lit(name)},
        ),
    )


# --- char(n), varchar(n) --------------------------------------------------------------------


def _length_check(path: Sequence[str], text: str) -> Check:
    _, length = _char_or_varchar(path, text)
    column, name = _path_column(path), ".".join(path)
    return Check(
        F.coalesce(F.length(column) > length, _false()),
        row_error(
            ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT,
            F.concat(
                F.lit('Value "'),
                F.substring(column, 1, _SHOWN_CHARACTERS),
                F.lit(
                    '" exceeds char/varchar type length limitation. Failed check: '
                    f"(({name} IS NULL) OR (length({name}) <= {length}))."
                ),
            ),
            {"column": F.lit(name), "type": F.lit(text)},
        ),
    )


def _char_or_varchar(path: Sequence[str], text: str) -> tuple[str, int]:
    match = _CHAR_VARCHAR.fullmatch(text)
    if match is None or (match[1].lower() == "char" and len(path) > 1):
        raise UnsupportedError(
            f"Column {'.'.join(path)!r} has the type {text}: char and varchar inside of other "
            "types cannot be written yet. Make the column a string.",
            code=ErrorCode.UNSUPPORTED_DATA_TYPES,
            column=".".join(path),
            type=text,
        )
    return match[1].lower(), int(match[2])


# --- CHECK and invariants -------------------------------------------------------------------


def _expression_check(name: str, sql: str, config: TableConfig) -> Check:
    """NULL violates a constraint as FALSE does, unlike in SQL (M-104)."""
    shown = [
        F.concat(F.lit(f"\n - {'.'.join(path)} : "), _shown(_path_column(path)))
        for path in _referenced(sql, config.schema)
    ]
    message = F.lit(f"CHECK constraint {name} ({sql}) violated by row with values:")
    return Check(
        ~F.coalesce(F.expr(f"({sql})"), _false()),
        row_error(
            ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES,
            F.concat(message, *shown),
            {"constraintName": F.lit(name), "expression": F.lit(sql)},
        ),
    )


def _shown(column: Column) -> Column:
    text = F.substring(column.cast("string"), 1, _SHOWN_CHARACTERS)
    return F.coalesce(text, F.lit("null"))


def _path_column(path: Sequence[str]) -> Column:
    column = F.col(quoted(path[0]))
    for name in path[1:]:
        column = column.getField(name)
    return column


def _referenced(sql: str, schema: StructType) -> list[tuple[str, ...]]:
    """Return the columns and fields an expression names, in order of their first mention.

    For a message only: a name that is both a function and a column may be listed too much.
    """
    found: dict[tuple[str, ...], None] = {}
    for token in _TOKEN.finditer(sql):
        if token["reference"]:
            names = [a.replace("``", "`") or b for a, b in _PART.findall(token["reference"])]
            if path := _resolve(names, schema):
                found[path] = None
    return list(found)


def _false() -> Column:
    return F.lit(False)  # noqa: FBT003 - that is the value


def _resolve(names: Sequence[str], schema: StructType) -> tuple[str, ...]:
    path: tuple[str, ...] = ()
    level: DataType = schema
    for name in names:
        field = level.find_ignoring_case(name) if isinstance(level, StructType) else None
        if field is None:
            break
        path, level = (*path, field.name), field.type
    return path
