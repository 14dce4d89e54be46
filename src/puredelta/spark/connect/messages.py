"""Plans of a Connect client as protobuf messages.

A client's frame is a message until it is sent. Messages are read by reflection and never by the
classes of one release of PySpark. PySpark's own modules for Connect are imported when they are
needed: only clients have what those modules import.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

Message: TypeAlias = Any
"""A protobuf message."""

RELATION = "spark.connect.Relation"
EXPRESSION = "spark.connect.Expression"
_KEPT = "_puredelta_kept"


def kind_of(message: Message) -> str:
    """Return the full name of a message's type: ``spark.connect.Relation``."""
    return str(message.DESCRIPTOR.full_name)


def parts_of(message: Message) -> Iterator[Message]:
    """Yield the messages inside a message."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            kind = field.message_type.fields_by_name["value"]
            if kind.message_type is not None:
                yield from value.values()
        elif hasattr(value, "ListFields"):
            yield value
        else:
            yield from value


def every_message(message: Message) -> Iterator[Message]:
    """Yield a message and all messages inside of it; may be changed as they come."""
    pending = [message]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(parts_of(found))


def texts_of(message: Message) -> Iterator[str]:
    """Yield the texts in a message and all messages inside of it, but those of options."""
    for part in every_message(message):
        for field, value in part.ListFields():
            if field.type != field.TYPE_STRING:
                continue
            if isinstance(value, str):
                yield value
            else:
                yield from value


def copy_of(message: Message) -> Message:
    """Return an equal message."""
    made = type(message)()
    made.CopyFrom(message)
    return made


def new_relation() -> Message:
    """Return an empty message of a relation."""
    return importlib.import_module("pyspark.sql.connect.proto").Relation()


def client_of(spark: SparkSession) -> Any:
    """Return the client of a Connect session."""
    session: Any = spark
    return session.client


def plan_of(rows: DataFrame) -> Message:
    """Return the message that a Connect frame sends."""
    plan: Any = rows._plan  # noqa: SLF001 - there is no public way
    return plan.plan(client_of(rows.sparkSession))


def rows_of(plan: Message, like: DataFrame) -> DataFrame:
    """Return a plan as a frame of the session of ``like``, whose tables it may read."""
    origin: Any = like
    return relation_rows(like.sparkSession, plan, keep=origin._plan)  # noqa: SLF001


def relation_rows(spark: SparkSession, relation: Message, *, keep: object = None) -> DataFrame:
    """Return a relation as a frame.

    ``keep`` lives as long as the frame, or another one that is made of the frame.
    """
    plans: Any = importlib.import_module("pyspark.sql.connect.plan")
    frames: Any = importlib.import_module("pyspark.sql.connect.dataframe")
    plan = plans.CachedRelation(relation)
    setattr(plan, _KEPT, keep)
    made: DataFrame = frames.DataFrame(plan, spark)
    return made


def query_rows(
    spark: SparkSession, text: str, args: object, tables: Mapping[str, DataFrame]
) -> DataFrame:
    """Return the rows of a query that names ``tables``; ``args`` are values of its parameters.

    The server analyzes it now, and sees the tables as views that only this plan has.
    """
    query = new_relation()
    query.sql.query = text
    literal = importlib.import_module("pyspark.sql.connect.functions.builtin").lit
    client = client_of(spark)
    if isinstance(args, Mapping):
        for name, value in args.items():
            query.sql.named_arguments[name].CopyFrom(literal(value).to_plan(client))
    elif isinstance(args, Sequence):
        query.sql.pos_arguments.extend(literal(value).to_plan(client) for value in args)
    relation = query
    if tables:
        relation = new_relation()
        relation.with_relations.root.CopyFrom(query)
        for name, rows in tables.items():
            alias = relation.with_relations.references.add().subquery_alias
            alias.alias = name
            alias.input.CopyFrom(plan_of(rows))
    made = relation_rows(spark, relation, keep=tuple(tables.values()))
    _ = made.schema  # what is wrong is said now
    return made


def named_rows(spark: SparkSession, name: str) -> DataFrame:
    """Return the rows of a name, in back-ticks, as the server alone understands it."""
    relation = new_relation()
    relation.read.named_table.unparsed_identifier = name
    return relation_rows(spark, relation)


def local_rows(spark: SparkSession, table: pa.Table, schema: T.StructType) -> DataFrame:
    """Return the rows of an Arrow table as a frame of a Connect session, without a request.

    PySpark's ``createDataFrame`` asks for settings, some of which older servers do not have.
    """
    relation = new_relation()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    relation.local_relation.data = sink.getvalue().to_pybytes()
    relation.local_relation.schema = schema.json()
    return relation_rows(spark, relation)
