"""Parsers of CREATE, REPLACE, ALTER, COMMENT ON, CACHE and INSERT.

Clauses that change no Delta table (``RENAME TO``, partitions, serdes) are left to Spark.
Of CREATE, CACHE and INSERT only the names of tables, clones and views are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NoReturn, TypeAlias

from puredelta.errors import Message, UnsupportedError
from puredelta.protocol.schema.sql_lexer import is_identifier
from puredelta.statements.parse.column_text import (
    read_column,
    read_columns,
    read_position,
    read_properties,
    read_property_keys,
    read_type,
)
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.literals import accept_text, read_text
from puredelta.statements.parse.statement import (
    AddCheck,
    AddColumns,
    AlterStatement,
    Change,
    ChangeColumns,
    CloneStatement,
    ClusterBy,
    ColumnAction,
    DropColumns,
    DropConstraint,
    DropFeature,
    LikeStatement,
    Rejected,
    RenameColumn,
    ReplaceColumns,
    SetLocation,
    SetProperties,
    SparkParsedStatement,
    SyncIdentity,
    TableInText,
    UnsetProperties,
    ViewLifetime,
    ViewStatement,
    read_or_reject,
)
from puredelta.statements.parse.table_name import TableReference, accept_time_travel, read_table

_Reader: TypeAlias = Callable[[Cursor], Change]


def read_alter(cursor: Cursor) -> AlterStatement | ViewStatement | Rejected | None:
    """Read ``ALTER TABLE table`` and one change, or ``COMMENT ON TABLE table IS text``.

    ``ALTER VIEW view AS query`` is the definition of a view.
    """
    if cursor.accept("ALTER", "VIEW"):
        cursor.skip(cursor.name_length())
        is_definition = any(cursor.sees(word) for word in ("AS", "SELECT", "WITH", "FROM"))
        return ViewStatement(lifetime=ViewLifetime.PERMANENT) if is_definition else None
    if not (cursor.accept("ALTER", "TABLE") or cursor.accept("COMMENT", "ON", "TABLE")):
        return None
    table = read_table(cursor)
    words = next((words for words in _CLAUSES if cursor.accept(*words)), None)
    if words is None:
        return None
    known_to_spark = words not in _UNKNOWN_TO_SPARK

    def read_change(cursor: Cursor) -> AlterStatement:
        change = _CLAUSES[words](cursor)
        known = known_to_spark and not isinstance(change, SyncIdentity)
        return AlterStatement(table=table, change=change, known_to_spark=known)

    return read_or_reject(cursor, read_change, table=table, known_to_spark=known_to_spark)


# --- properties and features ----------------------------------------------------------------


def _drop_feature(cursor: Cursor) -> DropFeature:
    quoted = accept_text(cursor)
    name = cursor.identifier() if quoted is None else quoted
    return DropFeature(name=name, truncate_history=cursor.accept("TRUNCATE", "HISTORY"))


def _cluster_by(cursor: Cursor) -> ClusterBy:
    if cursor.accept("NONE"):
        return ClusterBy(())
    return ClusterBy(tuple(cursor.items_in_brackets(Cursor.name, optional=False)))


# --- columns --------------------------------------------------------------------------------


def _drop_columns(cursor: Cursor) -> DropColumns:
    if_exists = cursor.accept("IF", "EXISTS")
    paths = cursor.items_in_brackets(Cursor.name, optional=True)
    return DropColumns(paths=tuple(paths), if_exists=if_exists)


def _change_columns(cursor: Cursor) -> ChangeColumns | SyncIdentity:
    cursor.accept("COLUMN")
    if cursor.sees("SYNC", "IDENTITY", ahead=cursor.name_length()):
        path = cursor.name()
        cursor.expect("SYNC", "IDENTITY")
        return SyncIdentity(path)
    if _is_whole_column(cursor):
        return ChangeColumns((_whole_column(cursor),))
    return ChangeColumns(tuple(cursor.items(_column_action)))


def _rename_column(cursor: Cursor) -> RenameColumn:
    path = cursor.name()
    cursor.expect("TO")
    return RenameColumn(path, cursor.identifier())


def _column_action(cursor: Cursor) -> ColumnAction:
    path = cursor.name()
    if cursor.accept("TYPE"):
        return ColumnAction(path=path, data_type=read_type(cursor))
    if cursor.accept("COMMENT"):
        return ColumnAction(path=path, comment=read_text(cursor))
    if cursor.accept("SET", "NOT", "NULL"):
        return ColumnAction(path=path, nullable=False)
    if cursor.accept("DROP", "NOT", "NULL"):
        return ColumnAction(path=path, nullable=True)
    if cursor.accept("DROP", "DEFAULT"):
        return ColumnAction(path=path, drops_default=True)
    if cursor.accept("SET", "DEFAULT"):
        return ColumnAction(path=path, default=read_expression(cursor, lambda at: at.sees(",")))
    return ColumnAction(path=path, position=read_position(cursor))


_ACTIONS = ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER")


def _is_whole_column(cursor: Cursor) -> bool:
    """Tell ``CHANGE name name type`` from ``ALTER name TYPE type``, for any names."""
    length = cursor.name_length()
    name, word, after = (cursor.peek(length + n) for n in (-1, 0, 1))
    if word is None or after is None or after.means(";"):
        return False
    if not any(word.means(action) for action in _ACTIONS):
        return True
    repeats = name is not None and name.text.upper() == word.text.upper()
    return repeats and not word.means("TYPE") and is_identifier(after)


def _whole_column(cursor: Cursor) -> ColumnAction:
    """Read ``name name type [COMMENT text] [FIRST | AFTER other]``, Hive's form.

    Spark's parser has refused another name and NOT NULL.
    """
    path = cursor.name()
    column = read_column(cursor)
    return ColumnAction(
        path=path, data_type=column.data_type, comment=column.comment, position=column.position
    )


# --- constraints ----------------------------------------------------------------------------


def _add_unnamed_constraint(cursor: Cursor) -> NoReturn:  # noqa: ARG001 - as the others
    raise UnsupportedError(Message.TABLE_OPERATION_NOT_SUPPORTED_UNNAMED_CONSTRAINT)


_OTHER_CONSTRAINTS = ("PRIMARY", "FOREIGN", "UNIQUE")


def _add_constraint(cursor: Cursor) -> AddCheck:
    name = cursor.identifier()
    if any(cursor.sees(word) for word in _OTHER_CONSTRAINTS):
        raise UnsupportedError(Message.TABLE_OPERATION_NOT_SUPPORTED_CONSTRAINT, constraint=name)
    if not cursor.sees("CHECK"):
        raise cursor.error(expected="CHECK")
    cursor.skip()
    condition = cursor.group()
    if not condition:
        raise cursor.error(expected="a condition in brackets before it")
    if cursor.sees("NOT", "ENFORCED"):
        raise UnsupportedError(Message.UNSUPPORTED_CONSTRAINT_CHARACTERISTIC, constraint=name)
    return AddCheck(name, condition)


_CLAUSES: Mapping[tuple[str, ...], _Reader] = MappingProxyType({
    ("SET", "TBLPROPERTIES"): lambda at: SetProperties(read_properties(at)),
    ("SET", "LOCATION"): lambda at: SetLocation(read_text(at)),
    ("UNSET", "TBLPROPERTIES"): lambda at: UnsetProperties(
        if_exists=at.accept("IF", "EXISTS"), keys=read_property_keys(at)
    ),
    ("ADD", "COLUMN"): lambda at: AddColumns(read_columns(at)),
    ("ADD", "COLUMNS"): lambda at: AddColumns(read_columns(at)),
    ("REPLACE", "COLUMNS"): lambda at: ReplaceColumns(read_columns(at)),
    ("ADD", "CONSTRAINT"): _add_constraint,
    ("ADD", "CHECK"): _add_unnamed_constraint,
    ("ADD", "PRIMARY", "KEY"): _add_unnamed_constraint,
    ("ADD", "FOREIGN", "KEY"): _add_unnamed_constraint,
    ("ADD", "UNIQUE"): _add_unnamed_constraint,
    ("ALTER",): _change_columns,
    ("CHANGE",): _change_columns,
    ("RENAME", "COLUMN"): _rename_column,
    ("DROP", "COLUMN"): _drop_columns,
    ("DROP", "COLUMNS"): _drop_columns,
    ("DROP", "CONSTRAINT"): lambda at: DropConstraint(
        if_exists=at.accept("IF", "EXISTS"), name=at.identifier()
    ),
    ("DROP", "FEATURE"): _drop_feature,
    ("CLUSTER", "BY"): _cluster_by,
    ("IS",): lambda at: SetProperties({"comment": "" if at.accept("NULL") else read_text(at)}),
})  # fmt: skip
_UNKNOWN_TO_SPARK = frozenset(
    {("ADD", "CONSTRAINT"), ("DROP", "CONSTRAINT"), ("DROP", "FEATURE"), ("CLUSTER", "BY")}
)
"""Clauses that only delta-spark has, or Spark only in newer releases."""


def read_create(
    cursor: Cursor,
) -> CloneStatement | LikeStatement | ViewStatement | SparkParsedStatement | Rejected | None:
    """Read ``CREATE [OR REPLACE]`` or ``REPLACE``; None if it makes no table and no view.

    Columns, partitions and the query of a table are left to Spark's parser.
    """
    start = cursor.start
    creates = cursor.accept("CREATE")
    replaces = cursor.accept("OR", "REPLACE") if creates else cursor.accept("REPLACE")
    lifetime = _lifetime(cursor)
    if creates and cursor.sees("VIEW"):
        return ViewStatement(lifetime=lifetime)
    cursor.accept("EXTERNAL")
    if lifetime is not ViewLifetime.PERMANENT or not cursor.accept("TABLE"):
        return None
    if_not_exists = not replaces and cursor.accept("IF", "NOT", "EXISTS")
    target = read_target(cursor)
    if not replaces and cursor.accept("LIKE"):
        return _like(cursor, target.name, if_not_exists=if_not_exists)
    shallow = cursor.accept("SHALLOW", "CLONE")
    if not (shallow or cursor.accept("DEEP", "CLONE") or cursor.accept("CLONE")):
        return SparkParsedStatement(defines=True, targets=(target,), start=start)

    def read_clone(cursor: Cursor) -> CloneStatement:
        return CloneStatement(
            target=target.name,
            source=read_table(cursor),
            shallow=shallow,
            creates=creates,
            replaces=replaces,
            if_not_exists=if_not_exists,
            state=accept_time_travel(cursor),
            properties=read_properties(cursor) if cursor.accept("TBLPROPERTIES") else {},
            location=read_text(cursor) if cursor.accept("LOCATION") else None,
        )

    return read_or_reject(cursor, read_clone, known_to_spark=False)


def read_cache(cursor: Cursor) -> ViewStatement | None:
    """Read ``CACHE [LAZY] TABLE`` and ``UNCACHE TABLE``."""
    cursor.skip()
    cursor.accept("LAZY")
    return ViewStatement(lifetime=ViewLifetime.SESSION) if cursor.sees("TABLE") else None


def read_target(cursor: Cursor) -> TableInText:
    """Read the name of a table, with its position in the text."""
    start = cursor.start
    return TableInText(name=read_table(cursor), start=start, end=cursor.end)


def _lifetime(cursor: Cursor) -> ViewLifetime:
    is_global = cursor.accept("GLOBAL")
    if not (cursor.accept("TEMP") or cursor.accept("TEMPORARY")):
        return ViewLifetime.PERMANENT
    return ViewLifetime.GLOBAL if is_global else ViewLifetime.SESSION


def _like(cursor: Cursor, target: TableReference, *, if_not_exists: bool) -> LikeStatement | None:
    """Read the rest of LIKE; None for ``STORED AS`` and ``ROW FORMAT``."""
    source = read_table(cursor)
    provider, location = None, None
    properties: Mapping[str, str] = {}
    while not (cursor.is_done or cursor.sees(";")):
        if provider is None and cursor.accept("USING"):
            provider = cursor.identifier()
        elif location is None and cursor.accept("LOCATION"):
            location = read_text(cursor)
        elif not properties and cursor.accept("TBLPROPERTIES"):
            properties = read_properties(cursor)
        else:
            return None
    cursor.expect_end()
    return LikeStatement(
        target=target,
        source=source,
        if_not_exists=if_not_exists,
        provider=provider,
        properties=properties,
        location=location,
    )


INSERTS = (
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("INSERT", "WITH", "SCHEMA", "EVOLUTION", "INTO"),
    ("INSERT", "WITH", "SCHEMA", "EVOLUTION", "OVERWRITE"),
)


def read_insert(cursor: Cursor) -> SparkParsedStatement | None:
    """Read up to the last target's name; None for a query that begins with FROM."""
    has_several = cursor.sees("FROM")
    if has_several:
        cursor.skip_to("INSERT")
    start = cursor.start
    targets = tuple(_targets(cursor, has_several=has_several))
    return SparkParsedStatement(defines=False, targets=targets, start=start) if targets else None


def _targets(cursor: Cursor, *, has_several: bool) -> Iterator[TableInText]:
    while not cursor.is_done:
        if any(cursor.accept(*words) for words in INSERTS):
            cursor.accept("TABLE")
            yield read_target(cursor)
        elif has_several:
            cursor.skip()
        if not has_several:
            return
        cursor.skip_to("INSERT")
