"""New rows of a table, each value cast to the type of its column.

Spark has two sets of rules. Rows of an INSERT statement follow Spark's own for INSERT: types that
do not match may be an error before a job runs. Rows of ``df.writeTo(name)`` and of
``saveAsTable`` in mode append go by the names of columns, and are cast however Spark can cast
them: a value that does not fit is an error of its row. delta-spark does the same.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.protocol.table.table_config import CHAR_VARCHAR
from puredelta.spark.jvm.casts import inserted_rows
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import quoted, struct_as_nullable, without_table_metadata
from puredelta.spark.values.casters import caster_of
from puredelta.spark.values.store_assignment import StoreAssigner, Value, cast_mode, is_same_type

_NESTED = (T.StructType, T.ArrayType, T.MapType, T.NullType)


def stored_as(rows: DataFrame, columns: T.StructType, *, table: str, by_name: bool) -> DataFrame:
    """Return the rows of an INSERT with exactly these columns, by name or by position.

    ``table`` is what errors call the table. Text of a ``char(n)`` stays as it is given, as in every
    other way of writing: Spark would fill it up with blanks. Classic sessions only. Runs no job.

    Raises:
        pyspark.errors.AnalysisException: too many or too few columns, or a type that does not
            fit (INSERT_COLUMN_ARITY_MISMATCH, INCOMPATIBLE_DATA_FOR_TABLE).
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
    return inserted_rows(rows, unlimited, table=table, by_name=by_name)


def stored_by_name(rows: DataFrame, columns: T.StructType) -> DataFrame:
    """Return the rows with the table's ``columns`` that they have, cast where types differ.

    What the table does not have, and nested values, stay as they are; what the rows lack is
    not added. Runs no job.

    Raises:
        InvalidRequestError: the policy is STRICT and a cast could lose something.
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
