"""New rows of a table: values cast to column types, and columns that the table fills.

Values are cast in any way that Spark allows, and one that does not fit is an error of its row, as
in delta-spark. Rows of an INSERT match columns by position or name, and structs in them follow
Spark's rules for INSERT: types that do not match may be an error before a job runs. Rows of
``df.writeTo(name)`` and of ``saveAsTable`` in mode append match columns by name.

Filled columns are Spark expressions over rows of the table. An identity value is a function of
the row's position in staged files (M-102). A staged row keeps its position in every retry, so no
value is lost or given twice. Positions have no gaps, so values have none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate, zip_longest

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.protocol.features.generated_columns import Identity
from puredelta.protocol.table.stored_expressions import in_brackets
from puredelta.protocol.table.table_config import CHAR_VARCHAR, TableConfig
from puredelta.spark.jvm.casts import inserted_rows
from puredelta.spark.session.session import SessionInfo, is_connect
from puredelta.spark.session.types import (
    as_nullable,
    holds_struct,
    quoted,
    struct_as_nullable,
    to_spark_type,
    without_table_metadata,
)
from puredelta.spark.values.casters import caster_of
from puredelta.spark.values.connect_inserts import stored_on_client
from puredelta.spark.values.store_assignment import (
    CastMode,
    StoreAssigner,
    Value,
    cast_mode,
    is_same_type,
)

_NESTED = (T.StructType, T.ArrayType, T.MapType, T.NullType)


def stored_as(rows: DataFrame, columns: T.StructType, *, table: str, by_name: bool) -> DataFrame:
    """Return the rows of an INSERT with exactly these columns, by name or by position.

    ``table`` is what errors call the table. Text of a ``char(n)`` stays as it is given, as in every
    other way of writing: Spark would fill it up with blanks. By the policy ``ANSI`` a value is cast
    in any way that Spark allows, text to a date, too, as in delta-spark; Spark's own tables take
    fewer types. By ``STRICT`` only a cast that loses nothing is allowed. Runs no job.
    """
    plain = without_table_metadata(struct_as_nullable(columns))
    unlimited = T.StructType(
        [
            T.StructField(
                f.name,
                f.dataType,
                f.nullable,
                {key: value for key, value in f.metadata.items() if key != CHAR_VARCHAR},
            )
            for f in plain.fields
        ]
    )
    rows = _with_casts(rows, unlimited, by_name=by_name)
    store = stored_on_client if is_connect(rows.sparkSession) else inserted_rows
    return store(rows, unlimited, table=table, by_name=by_name)


def has_fields_of(given: T.DataType, wanted: T.DataType) -> bool:
    """Return whether a value has all fields of another type under their names, with their types.

    They may have another order, and there may be more of them.
    """
    match given, wanted:
        case T.StructType(), T.StructType():
            known = {f.name: f.dataType for f in given.fields}
            return all(
                f.name in known and has_fields_of(known[f.name], f.dataType) for f in wanted.fields
            )
        case T.ArrayType(), T.ArrayType():
            return has_fields_of(given.elementType, wanted.elementType)
        case T.MapType(), T.MapType():
            keys = has_fields_of(given.keyType, wanted.keyType)
            return keys and has_fields_of(given.valueType, wanted.valueType)
        case _:
            return is_same_type(given, wanted)


def with_new_fields(given: T.StructType, wanted: T.StructType, *, by_name: bool) -> T.StructType:
    """Return columns with the fields that only the given rows have, at every depth.

    They follow a struct's own fields. Without ``by_name`` they are the last ones of their struct.

    >>> wanted = T.StructType([T.StructField("a", T.LongType())])
    >>> given = T.StructType([T.StructField("z", T.DateType()), *wanted])
    >>> with_new_fields(given, wanted, by_name=True).simpleString()
    'struct<a:bigint,z:date>'
    """
    if by_name:
        known = {f.name.lower(): f for f in given.fields}
        same = [known.pop(f.name.lower(), f) for f in wanted.fields]
        new = [f for f in given.fields if f.name.lower() in known]
    else:
        same = [*given.fields, *wanted.fields[len(given.fields) :]]
        new = given.fields[len(wanted.fields) :]
    types = (
        _wider(f.dataType, to.dataType, by_name=by_name)
        for f, to in zip(same, wanted.fields, strict=False)
    )
    own = [
        T.StructField(to.name, wide, to.nullable, to.metadata)
        for to, wide in zip(wanted.fields, types, strict=True)
    ]
    return T.StructType([*own, *new])


def _wider(given: T.DataType, wanted: T.DataType, *, by_name: bool) -> T.DataType:
    match given, wanted:
        case T.StructType(), T.StructType():
            return with_new_fields(given, wanted, by_name=by_name)
        case T.ArrayType(), T.ArrayType():
            element = _wider(given.elementType, wanted.elementType, by_name=by_name)
            return T.ArrayType(element, wanted.containsNull)
        case T.MapType(), T.MapType():
            key = _wider(given.keyType, wanted.keyType, by_name=by_name)
            value = _wider(given.valueType, wanted.valueType, by_name=by_name)
            return T.MapType(key, value, wanted.valueContainsNull)
        case _:
            return wanted


def _with_casts(rows: DataFrame, columns: T.StructType, *, by_name: bool) -> DataFrame:
    """Return the rows with values of their columns' types, structs apart, where these differ."""
    assigner = _assigner(rows)
    if assigner.mode not in {CastMode.CHECKED, CastMode.UP_CAST}:
        return rows
    given, wanted = rows.schema.fields, columns.fields
    if by_name:
        known = {field.name.lower(): field for field in wanted}
        pairs = [(f, known.get(f.name.lower())) for f in given]
    else:
        pairs = [*zip_longest(given, wanted[: len(given)])]
    is_strict = assigner.mode is CastMode.UP_CAST
    differ = [
        to is not None
        and (
            _is_stored_by_cast(f.dataType, to.dataType)
            or (is_strict and isinstance(f.dataType, T.NullType))  # Spark would refuse it
        )
        for f, to in pairs
    ]
    if not any(differ):
        return rows
    names = [f.name for f in given]
    if len({name.lower() for name in names}) < len(names):  # two may have one name
        names = [f"c{n}" for n in range(len(given))]
    values = [(F.col(quoted(name)), f, to) for name, (f, to) in zip(names, pairs, strict=True)]
    return rows.toDF(*names).select(
        *(
            (
                assigner.assign(
                    Value(column=value, type=f.dataType, sql=quoted(f.name)),
                    to.dataType,
                    column=to.name,
                )
                if is_cast and to is not None
                else value
            ).alias(f.name)
            for (value, f, to), is_cast in zip(values, differ, strict=True)
        )
    )


_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
"""From the narrowest to the widest."""


def _is_stored_by_cast(given: T.DataType, to: T.DataType) -> bool:
    """Tell whether a value has another type, and no struct is matched field by field.

    Spark widens whole numbers by itself, and a cast more takes a tenth of a small INSERT.
    """
    if type(given) in _WHOLE and type(to) in _WHOLE[_WHOLE.index(type(given)) :]:
        return False
    differs = not is_same_type(given, to) and not isinstance(given, T.NullType)
    return differs and not holds_struct(to)


def stored_by_name(rows: DataFrame, columns: T.StructType) -> DataFrame:
    """Return the rows with the table's ``columns`` that they have, cast where types differ.

    What the table does not have, and nested values, stay as they are; what the rows lack is
    not added. Runs no job.
    """
    known = {field.name.lower(): field.dataType for field in columns.fields}
    wanted = [known.get(f.name.lower(), f.dataType) for f in rows.schema.fields]
    given = rows.schema.fields
    if not any(_is_cast(f.dataType, to) for f, to in zip(given, wanted, strict=True)):
        return rows
    assigner = _assigner(rows)
    return rows.select(
        *(
            assigner.assign(
                Value(column=F.col(quoted(f.name)), type=f.dataType, sql=quoted(f.name)),
                to,
                column=f.name,
            ).alias(f.name)
            if _is_cast(f.dataType, to)
            else F.col(quoted(f.name))
            for f, to in zip(given, wanted, strict=True)
        )
    )


def _is_cast(given: T.DataType, to: T.DataType) -> bool:
    return not (is_same_type(given, to) or isinstance(given, _NESTED) or isinstance(to, _NESTED))


def _assigner(rows: DataFrame) -> StoreAssigner:
    session = SessionInfo.of(rows.sparkSession)
    caster = caster_of(rows.sparkSession, session)
    return StoreAssigner(caster=caster, mode=cast_mode(session, follows_ansi_flag=False))


def generated_value(config: TableConfig, column: str) -> Column:
    """Return what a generated column holds (M-101), over rows with the table's columns by name."""
    return _typed(config.generated_columns[column], config, column)


def default_value(config: TableConfig, column: str) -> Column:
    """Return the default of a column (M-100); it refers to no row."""
    return _typed(config.column_defaults[column], config, column)


def _typed(sql: str, config: TableConfig, column: str) -> Column:
    field = next(f for f in config.schema.fields if f.name == column)
    return F.expr(in_brackets(sql)).cast(as_nullable(to_spark_type(field.type)))


def identity_value(identity: Identity, row_counts: Sequence[int], *, file: str, row: str) -> Column:
    """Return the value that belongs to the row at (``file``, ``row``).

    ``row_counts`` are those of all staged files in order; each row of them, whether it is
    inserted or not, has a value of its own.
    """
    identity.last_of(max(1, sum(row_counts)))
    return F.lit(identity.next_value) + F.lit(identity.step) * _ordinal(row_counts, file, row)


def _ordinal(row_counts: Sequence[int], file: str, row: str) -> Column:
    """Return the 0-based number of a row over all files."""
    if len(row_counts) <= 1:
        return F.col(row)
    offsets = json.dumps([0, *accumulate(row_counts)])
    before = F.from_json(F.lit(offsets), "array<bigint>")  # folded to a literal once
    return F.get(before, F.col(file)) + F.col(row)
