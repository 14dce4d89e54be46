"""Constraints, and given values of generated columns, checked in the Spark job that writes rows.

NOT NULL (also of nested fields), ``char(n)``/``varchar(n)``, CHECK constraints, legacy
invariants and generation expressions become one guarded column: no extra pass, no Python per
row. A row that breaks a rule ends the job with delta-spark's error, which names its values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from puredelta.errors import ErrorCode
from puredelta.protocol.schema.char_varchar import Limited, parse_limits
from puredelta.protocol.schema.expression_names import referenced_paths
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.traversal import find_fields, types_by_path
from puredelta.protocol.schema.types import (
    BINARY,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
    is_spatial,
)
from puredelta.protocol.table.stored_expressions import in_brackets
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import quoted
from puredelta.spark.values.char_varchar import exceeds
from puredelta.spark.values.inserted_rows import generated_value
from puredelta.spark.values.row_errors import row_error

_SHOWN_CHARACTERS = 200
"""Of one value in a message."""


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


def as_stored(value: Column, data_type: DataType) -> Column:
    """Return what a table stores of a partition value: an empty text or binary is NULL (M-108)."""
    return F.when(F.length(value) > 0, value) if data_type in (STRING, BINARY) else value


def table_checks(config: TableConfig, *, computed: Collection[str] = ()) -> list[Check]:
    """Return every rule of the table, over a frame with its columns by logical name.

    Generated columns that were ``computed`` in every row need no check.
    """
    return [
        *_not_null_checks(config.schema),
        *_length_checks(config),
        *(_expression_check(name, sql, config) for name, sql in _expressions(config).items()),
        *(
            _generation_check(name, sql, config)
            for name, sql in config.generated_columns.items()
            if name not in computed
        ),
    ]


def _expressions(config: TableConfig) -> dict[str, str]:
    """CHECK constraints, then column invariants under the name delta-spark gives them."""
    invariants = {f"EXPRESSION({sql})": sql for sql in config.invariants.values()}
    return {**config.check_constraints, **invariants}


# --- NOT NULL -------------------------------------------------------------------------------


def _not_null_checks(schema: StructType) -> Iterator[Check]:
    for field in schema.fields:
        if field.nullable and not _has_required(field.type):
            continue  # a Column costs many round trips to the JVM
        column = F.col(quoted(field.name))
        yield from _nullability(field.type, column, field.name, nullable=field.nullable)


def _nullability(
    data_type: DataType, column: Column, name: str, *, nullable: bool
) -> Iterator[Check]:
    """A required field of a struct that is NULL is missing, as in delta-spark (M-105)."""
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
    """Return whether a value inside an array or map, or anything in it, is NULL and must not be.

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


def _length_checks(config: TableConfig) -> Iterator[Check]:
    for path, text in config.char_varchar_columns.items():
        column, name = _path_column(path), ".".join(path)
        violated = exceeds(parse_limits(text), column)
        if violated is None:
            continue
        yield Check(
            violated,
            row_error(
                ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT,
                F.concat(
                    F.lit('Value "'),
                    _value_text(column),
                    F.lit(
                        '" exceeds char/varchar type length limitation. Failed check: '
                        f"{_length_rule(name, text)}."
                    ),
                ),
                {"column": F.lit(name), "type": F.lit(text)},
            ),
        )


def _length_rule(name: str, text: str) -> str:
    limits = parse_limits(text)
    if isinstance(limits, Limited):
        return f"(({name} IS NULL) OR (length({name}) <= {limits.length}))"
    return f"{name} is {text}"


# --- CHECK and invariants -------------------------------------------------------------------


def _expression_check(name: str, sql: str, config: TableConfig) -> Check:
    """NULL violates a constraint as FALSE does, unlike in SQL (M-104)."""
    violated = ~F.coalesce(F.expr(in_brackets(sql)), _false())
    shown = _texts(config.schema, referenced_paths(sql, config.schema))
    return _rule_check(violated, f"{name} ({sql})", shown, constraintName=name, expression=sql)


def _generation_check(column: str, sql: str, config: TableConfig) -> Check:
    """A generated column must hold what its expression gives for the row (M-101)."""
    expected = generated_value(config, column)
    if column in config.partition_columns:
        expected = as_stored(expected, _type_at(config.schema, (column,)))
    given = F.col(quoted(column))
    if is_spatial(_type_at(config.schema, (column,))):
        given, expected = _binary(given), _binary(expected)
    violated = ~given.eqNullSafe(expected)
    kind, rule = "Generated Column", f"({column} <=> ({sql}))"
    shown = [(column,), *referenced_paths(sql, config.schema)]
    texts = _texts(config.schema, shown)
    return _rule_check(violated, f"{kind} {rule}", texts, constraintName=kind, expression=rule)


def _rule_check(violated: Column, rule: str, shown: Mapping[str, Column], **details: str) -> Check:
    """Return a check whose error shows the row's values, given as texts by their names."""
    values = [F.concat(F.lit(f"\n - {name} : "), text) for name, text in shown.items()]
    message = F.lit(f"CHECK constraint {rule} violated by row with values:")
    return Check(
        violated,
        row_error(
            ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES,
            F.concat(message, *values),
            {name: F.lit(text) for name, text in details.items()},
        ),
    )


def _texts(schema: StructType, paths: Sequence[Sequence[str]]) -> dict[str, Column]:
    """Return the values at some paths as texts: geometries, which have none, as binary."""
    shown = {}
    for path in paths:
        column, kind = _path_column(path), _type_at(schema, path)
        if is_spatial(kind):
            column = F.hex(_binary(column))
        elif any(is_spatial(inner) for _, inner in types_by_path(kind)):
            column = F.when(column.isNotNull(), F.lit(f"a {simple_string(kind)}"))
        shown[".".join(path)] = _value_text(column)
    return shown


def _type_at(schema: StructType, path: Sequence[str]) -> DataType:
    fields = find_fields(schema, path, ignores_case=True)
    return fields[-1].type if fields else STRING


def _binary(column: Column) -> Column:
    """Return geometries or geographies as well-known binary, which can be compared."""
    return F.call_function("st_asbinary", column)


def _value_text(column: Column) -> Column:
    text = F.substring(column.cast("string"), 1, _SHOWN_CHARACTERS)
    return F.coalesce(text, F.lit("null"))


def _path_column(path: Sequence[str]) -> Column:
    column = F.col(quoted(path[0]))
    for name in path[1:]:
        column = column.getField(name)
    return column


def _false() -> Column:
    return F.lit(False)  # noqa: FBT003 - that is the value
