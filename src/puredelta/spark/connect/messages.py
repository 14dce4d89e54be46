"""Plans and settings of a Connect client as protobuf messages.

A client's frame is a message until it is sent. Messages are read by reflection and never by the
classes of one release of PySpark. PySpark's own modules for Connect are imported when they are
needed: only clients have what those modules import.
"""

from __future__ import annotations

import copy
import importlib
import logging
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import types as T

from puredelta.catalogs.transport import without_secrets

Message: TypeAlias = Any
"""A protobuf message."""

Pairs: TypeAlias = list[tuple[str, str | None]]
"""Settings and their values; None: there is none."""

RELATION = "spark.connect.Relation"
EXPRESSION = "spark.connect.Expression"
_KEPT = "_puredelta_kept"
_COLUMNS_OF_FRAME = "_cached_schema"
"""Where a client's frame keeps the server's answer."""
_COPIED_COLUMNS = "_cached_schema_serialized"
"""Where it keeps them as bytes; PySpark 4.0 does not."""


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


def session_of_client(client: Any) -> SparkSession | None:
    """Return the session of a Connect client, if it is the active one or the default one."""
    sessions: Any = importlib.import_module("pyspark.sql.connect.session").SparkSession
    for known in (sessions.getActiveSession(), getattr(sessions, "_default_session", None)):
        if known is not None and known.client is client:
            found: SparkSession = known
            return found
    return None


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


def with_plan(rows: DataFrame, message: Message, *, keep: object) -> DataFrame:
    """Return a frame under the names and ids of another one, whose plan is sent as a message.

    ``keep`` lives as long as the frame.
    """
    origin: Any = rows
    plan = copy.copy(origin._plan)  # noqa: SLF001
    known = type(plan)
    plan.__class__ = type(known.__name__, (known,), {"plan": lambda _, __: message})
    setattr(plan, _KEPT, (origin._plan, keep))  # noqa: SLF001
    made: DataFrame = type(origin)(plan, rows.sparkSession)
    return made


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


def query_relation(
    spark: SparkSession, text: str, args: object, tables: Mapping[str, DataFrame]
) -> Message:
    """Return a query that names ``tables``; ``args`` are values of its parameters.

    The server sees the tables as views that only this plan has.
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
    return relation


def named_rows(spark: SparkSession, name: str) -> DataFrame:
    """Return the rows of a name, in back-ticks, as the server alone understands it."""
    relation = new_relation()
    relation.read.named_table.unparsed_identifier = name
    return relation_rows(spark, relation)


QUALIFIER = "_puredelta_qualifier"
"""Where a plan of an alias keeps the catalog and the database of its name."""


def alias_rows(rows: DataFrame, parts: Sequence[str]) -> DataFrame:
    """Return rows whose columns may be called ``c.column``, ``b.c.column`` or ``a.b.c.column``.

    ``parts`` are ``a``, ``b`` and ``c``. PySpark's own alias has one part.
    """
    *qualifier, name = parts
    made: Any = rows.alias(name)
    if qualifier:
        plan = made._plan  # noqa: SLF001 - there is no public way
        known = type(plan)

        def with_qualifier(self: Any, client: Any) -> Message:
            message = known.plan(self, client)
            message.subquery_alias.qualifier.extend(qualifier)
            return message

        plan.__class__ = type(known.__name__, (known,), {"plan": with_qualifier})
        setattr(plan, QUALIFIER, tuple(qualifier))
    found: DataFrame = made
    return found


def cast_in_mode(value: Column, to: T.DataType, mode: str) -> Column:
    """Return a client's column cast as an ``ansi`` or a ``legacy`` session casts it.

    PySpark has a call for the third mode alone: ``try_cast``.
    """
    made: Any = value.cast(to)
    made._expr._eval_mode = mode  # noqa: SLF001 - there is no public way
    found: Column = made
    return found


def with_known_columns(rows: DataFrame, columns: T.StructType) -> DataFrame:
    """Return the same frame, which tells its columns without a request if it is a client's.

    It is no stream.
    """
    known = vars(rows)
    if _COLUMNS_OF_FRAME in known:  # else the session has a JVM
        known.update({_COLUMNS_OF_FRAME: columns, "isStreaming": False})
        if _COPIED_COLUMNS in known:  # each look at them is a copy
            known[_COPIED_COLUMNS] = pickle.dumps(columns)
    return rows


_without_origins: ContextVar[bool] = ContextVar("without origins", default=False)


@contextmanager
def without_origins() -> Iterator[None]:
    """Let PySpark note no line of code for the Columns that are made inside: it is this library's.

    A client notes it for each call, and tries to import IPython each time, which takes a third of
    its time in a MERGE where that is not installed.
    """
    utilities: Any = importlib.import_module("pyspark.errors.utils")
    original = getattr(utilities, _IS_NOTED, None)
    if original is not None and not hasattr(original, _KEPT):

        def is_noted() -> bool:
            return not _without_origins.get() and bool(original())

        setattr(is_noted, _KEPT, original)
        setattr(utilities, _IS_NOTED, is_noted)
    token = _without_origins.set(True)
    try:
        yield
    finally:
        _without_origins.reset(token)


_IS_NOTED = "is_debugging_enabled"


def with_known_rows(rows: DataFrame, known: Sequence[Row]) -> DataFrame:
    """Return the same frame of a client, whose ``collect`` sends nothing."""
    vars(rows)["collect"] = lambda: list(known)
    return rows


def with_more_columns(
    before: DataFrame, rows: DataFrame, more: Iterable[T.StructField]
) -> DataFrame:
    """Return the same frame, which is ``before`` with further columns, if those are known."""
    known = vars(before).get(_COLUMNS_OF_FRAME)
    return rows if known is None else with_known_columns(rows, T.StructType([*known, *more]))


def not_streaming(rows: DataFrame) -> DataFrame:
    """Return an equal frame that tells without a request that it is no stream."""
    known: DataFrame = object.__new__(type(rows))
    vars(known).update(vars(rows), isStreaming=False)
    return known


def empty_rows(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """Return a frame of no rows, without a request."""
    return with_known_columns(relation_rows(spark, empty_relation(schema)), schema)


def empty_relation(schema: T.StructType) -> Message:
    """Return a relation of no rows."""
    relation = new_relation()
    relation.local_relation.schema = schema.json()
    return relation


def local_rows(spark: SparkSession, table: pa.Table, schema: T.StructType) -> DataFrame:
    """Return the rows of an Arrow table as a frame of a Connect session, without a request.

    PySpark's ``createDataFrame`` asks for settings, some of which older servers do not have.
    """
    rows = relation_rows(spark, local_relation(table, schema))
    return with_known_columns(rows, schema)


def local_relation(table: pa.Table, schema: T.StructType) -> Message:
    """Return the rows of an Arrow table as a relation."""
    if not table.num_rows:  # a server of PySpark 4.0 refuses a stream without rows
        return empty_relation(schema)
    relation = new_relation()
    # The server refuses columns that may be NULL as ones that may not.
    pairs = zip(table.schema, schema.fields, strict=True)
    sent = pa.schema([column.with_nullable(field.nullable) for column, field in pairs])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, sent) as stream:
        stream.write_table(table.cast(sent))
    relation.local_relation.data = sink.getvalue().to_pybytes()
    if any(field.metadata or field.dataType not in _TYPES_OF_ARROW for field in schema.fields):
        relation.local_relation.schema = schema.json()
    return relation


_TYPES_OF_ARROW = (
    T.IntegerType(), T.LongType(), T.DoubleType(), T.BooleanType(), T.BinaryType(), T.StringType(),
    T.ArrayType(T.LongType()),
)  # fmt: skip
"""Types that a server knows by Arrow's. By a schema it would plan a query that casts the rows."""


# --- Settings, each request for any number of keys ------------------------------------------

_defaults: WeakKeyDictionary[SparkSession, dict[str, str | None]] = WeakKeyDictionary()
"""The values on the server of settings that a session has not made; they stay the same."""


def server_defaults(
    spark: SparkSession, keys: Iterable[str], made: Mapping[str, str]
) -> Mapping[str, str | None]:
    """Return the defaults of the server for those keys that are not among the settings made.

    None for a key that the server does not know. At most one request; each key is asked for once.
    """
    known = _defaults.setdefault(spark, {})
    wanted = [key for key in keys if key not in made]
    if new := [key for key in wanted if key not in known]:
        pairs = dict(_send(spark, lambda kinds: {"get_option": kinds.GetOption(keys=new)}))
        known.update({key: pairs.get(key) for key in new})
    return {key: known[key] for key in wanted}


@contextmanager
def settings_for_a_while(
    spark: SparkSession, settings: Mapping[str, str], made: Mapping[str, str]
) -> Iterator[None]:
    """Make settings, and put back those that were ``made``: two requests, or none if all hold."""
    before = {**server_defaults(spark, settings, made), **made}
    changed = {key: value for key, value in settings.items() if before.get(key) != value}
    try:
        change_settings(spark, changed)
        yield
    finally:
        change_settings(spark, {key: made.get(key) for key in changed})


def change_settings(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    """Make settings; None removes one. At most two requests."""
    made = {key: value for key, value in settings.items() if value is not None}
    removed = [key for key in settings if key not in made]
    if made:
        _send(spark, lambda kinds: {"set": kinds.Set(pairs=_pairs(made))})
    if removed:
        _send(spark, lambda kinds: {"unset": kinds.Unset(keys=removed)})


def _pairs(settings: Mapping[str, str]) -> list[Any]:
    kind = importlib.import_module("pyspark.sql.connect.proto").KeyValue
    return [kind(key=key, value=value) for key, value in settings.items()]


def _send(spark: SparkSession, make: Callable[[Any], Mapping[str, Any]]) -> Pairs:
    kinds = importlib.import_module("pyspark.sql.connect.proto").ConfigRequest
    answer: Pairs = client_of(spark).config(kinds.Operation(**make(kinds))).pairs
    return answer


_CLIENT_LOG = "pyspark.sql.connect.logging"
_SECRETS_MAX = 1_000
_LENGTH_MIN = 6
"""A shorter value, such as ``true``, is part of too many texts."""


class _WithoutSecrets(logging.Filter):
    """Stars in place of secrets, in the requests that a client logs at its level DEBUG."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, None] = {}
        """The newest secrets; keys are renewed for as long as a process lives."""

    def add(self, secrets: Iterable[str]) -> None:
        """Hide more secrets from now on."""
        known = {**self._known, **dict.fromkeys(s for s in secrets if len(s) >= _LENGTH_MIN)}
        self._known = dict.fromkeys(list(known)[-_SECRETS_MAX:])

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, without secrets."""
        said = record.getMessage()
        hidden = without_secrets(said, list(self._known))
        if hidden != said:
            record.msg, record.args = hidden, ()
        return True


_hidden = _WithoutSecrets()


def hide_in_log(secrets: Iterable[str]) -> None:
    """Keep keys of stores out of the log of a Connect client, which shows whole requests.

    The keys travel to workers inside these. Nothing happens in a process without such a client.
    """
    if _CLIENT_LOG in sys.modules:
        _hidden.add(secrets)
        logging.getLogger(_CLIENT_LOG).addFilter(_hidden)
