"""``ALTER TABLE ...`` and ``COMMENT ON TABLE ... IS ...`` into an `AlterStatement`.

In two steps: the head says whether it is ours.

Clauses that are no change of a Delta table (``RENAME TO``, ``SET LOCATION``, partitions,
serdes) are none of ours and have no head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn, TypeAlias

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.sql.parse.alter_statement import (
    AddCheck,
    AddColumns,
    AlterStatement,
    Change,
    ChangeColumns,
    ClusterBy,
    ColumnAction,
    DropColumns,
    DropConstraint,
    DropFeature,
    RenameColumn,
    ReplaceColumns,
    SetProperties,
    SyncIdentity,
    UnsetProperties,
)
from puredelta.sql.text.column_text import (
    read_column,
    read_columns,
    read_path,
    read_paths,
    read_place,
    read_type,
)
from puredelta.sql.text.cursor import Cursor, is_identifier
from puredelta.sql.text.expression import read_expression
from puredelta.sql.text.property_text import read_properties, read_property_keys
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import TableReference
from puredelta.sql.text.text_literal import accept_text, read_text

_Reader: TypeAlias = Callable[[Cursor], Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterHead:
    """``ALTER TABLE name`` or ``COMMENT ON TABLE name`` and the words that say what to change."""

    table: TableReference
    words: tuple[str, ...]
    rest: Cursor

    @property
    def is_known_to_spark(self) -> bool:
        """Whether every Spark's parser reads such statements."""
        return self.words not in _UNKNOWN_TO_SPARK and not _is_sync(self.rest)


def parse_alter_head(text: str) -> AlterHead | None:
    """Read how a statement begins; None if it is no ALTER TABLE of ours.

    >>> parse_alter_head("ALTER TABLE t DROP FEATURE x").words
    ('DROP', 'FEATURE')
    """
    cursor = Cursor(text)
    if not (cursor.accept("ALTER", "TABLE") or cursor.accept("COMMENT", "ON", "TABLE")):
        return None
    try:
        table = cursor.table()
    except SqlSyntaxError:
        return None  # Spark's own parser says it best
    words = next((words for words in _CLAUSES if cursor.accept(*words)), None)
    return None if words is None else AlterHead(table=table, words=words, rest=cursor)


def parse_alter_rest(head: AlterHead) -> AlterStatement:
    """Read a statement behind its head.

    Raises:
        SqlSyntaxError: it goes on as something else.
        UnsupportedError: a constraint that Delta tables do not have.
    """
    change = _CLAUSES[head.words](head.rest)
    head.rest.expect_end()
    return AlterStatement(table=head.table, change=change)


# --- properties and features ----------------------------------------------------------------


def _set_properties(cursor: Cursor) -> SetProperties:
    return SetProperties(read_properties(cursor))


def _unset_properties(cursor: Cursor) -> UnsetProperties:
    if_exists = cursor.accept("IF", "EXISTS")
    return UnsetProperties(keys=read_property_keys(cursor), if_exists=if_exists)


def _comment(cursor: Cursor) -> SetProperties:
    return SetProperties({"comment": "" if cursor.accept("NULL") else read_text(cursor)})


def _drop_feature(cursor: Cursor) -> DropFeature:
    name = accept_text(cursor)
    if name is None:
        name = cursor.identifier()
    return DropFeature(name=name, truncate_history=cursor.accept("TRUNCATE", "HISTORY"))


def _cluster_by(cursor: Cursor) -> ClusterBy:
    if cursor.accept("NONE"):
        return ClusterBy(())
    cursor.expect("(")
    columns = read_paths(cursor)
    cursor.expect(")")
    return ClusterBy(columns)


# --- columns --------------------------------------------------------------------------------


def _add_columns(cursor: Cursor) -> AddColumns:
    return AddColumns(read_columns(cursor))


def _drop_columns(cursor: Cursor) -> DropColumns:
    if_exists = cursor.accept("IF", "EXISTS")
    in_brackets = cursor.accept("(")
    paths = read_paths(cursor)
    if in_brackets:
        cursor.expect(")")
    return DropColumns(paths=paths, if_exists=if_exists)


def _rename_column(cursor: Cursor) -> RenameColumn:
    path = read_path(cursor)
    cursor.expect("TO")
    return RenameColumn(path, cursor.identifier())


def _replace_columns(cursor: Cursor) -> ReplaceColumns:
    return ReplaceColumns(read_columns(cursor))


def _change_columns(cursor: Cursor) -> ChangeColumns | SyncIdentity:
    is_sync = _is_sync(cursor)
    cursor.accept("COLUMN")
    if is_sync:
        return _sync_identity(cursor)
    if _is_whole_column(cursor):
        return ChangeColumns((_whole_column(cursor),))
    columns = [_column_action(cursor)]
    while cursor.accept(","):
        columns.append(_column_action(cursor))
    return ChangeColumns(tuple(columns))


def _column_action(cursor: Cursor) -> ColumnAction:
    path = read_path(cursor)
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
    return ColumnAction(path=path, place=read_place(cursor))


def _is_sync(cursor: Cursor) -> bool:
    """Tell whether ``[COLUMN] name SYNC IDENTITY`` goes on; nothing is stepped over."""
    ahead = 2 if cursor.sees("COLUMN") else 1
    while (dot := cursor.peek(ahead)) is not None and dot.means("."):
        ahead += 2
    sync, identity = cursor.peek(ahead), cursor.peek(ahead + 1)
    if sync is None or identity is None:
        return False
    return sync.means("SYNC") and identity.means("IDENTITY")


def _sync_identity(cursor: Cursor) -> SyncIdentity:
    path = read_path(cursor)
    cursor.expect("SYNC")
    cursor.expect("IDENTITY")
    return SyncIdentity(path)


_ACTIONS = ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER")


def _is_whole_column(cursor: Cursor) -> bool:
    """Tell ``CHANGE name name type`` from ``ALTER name TYPE type``, whatever the names are."""
    ahead = 1
    while (dot := cursor.peek(ahead)) is not None and dot.means("."):
        ahead += 2
    word, behind = cursor.peek(ahead), cursor.peek(ahead + 1)
    if word is None or behind is None or behind.means(";"):
        return False
    if not any(word.means(action) for action in _ACTIONS):
        return True
    name = cursor.peek(ahead - 1)
    repeats = name is not None and name.text.upper() == word.text.upper()
    return repeats and not word.means("TYPE") and is_identifier(behind)


def _whole_column(cursor: Cursor) -> ColumnAction:
    """Read ``name name type [COMMENT text] [FIRST | AFTER other]``, as Hive has it.

    Spark's parser has refused another name and NOT NULL.
    """
    path = read_path(cursor)
    column = read_column(cursor)
    return ColumnAction(
        path=path, data_type=column.data_type, comment=column.comment, place=column.place
    )


# --- constraints ----------------------------------------------------------------------------


def _add_unnamed_constraint(cursor: Cursor) -> NoReturn:  # noqa: ARG001 - as the others
    raise UnsupportedError(
        "A constraint without a name is not supported. Delta tables have named CHECK constraints: "
        "ALTER TABLE ... ADD CONSTRAINT name CHECK (condition).",
        code=ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
    )


_OTHER_CONSTRAINTS = ("PRIMARY", "FOREIGN", "UNIQUE")


def _add_constraint(cursor: Cursor) -> AddCheck:
    name = cursor.identifier()
    if any(cursor.sees(word) for word in _OTHER_CONSTRAINTS):
        raise UnsupportedError(
            f"The constraint {name} is not supported: Delta tables have CHECK constraints only.",
            code=ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
            constraint=name,
        )
    if not cursor.sees("CHECK"):
        raise cursor.error(expected="CHECK")
    cursor.skip()
    condition = cursor.group()
    if not condition:
        raise cursor.error(expected="a condition in brackets before it")
    if cursor.sees("NOT", "ENFORCED"):
        raise UnsupportedError(
            f"The constraint {name} cannot be NOT ENFORCED: every writer checks CHECK constraints.",
            code=ErrorCode.UNSUPPORTED_CONSTRAINT_CHARACTERISTIC,
            constraint=name,
        )
    return AddCheck(name, condition)


def _drop_constraint(cursor: Cursor) -> DropConstraint:
    if_exists = cursor.accept("IF", "EXISTS")
    return DropConstraint(name=cursor.identifier(), if_exists=if_exists)


_CLAUSES: Mapping[tuple[str, ...], _Reader] = MappingProxyType({
    ("SET", "TBLPROPERTIES"): _set_properties,
    ("UNSET", "TBLPROPERTIES"): _unset_properties,
    ("ADD", "COLUMN"): _add_columns,
    ("ADD", "COLUMNS"): _add_columns,
    ("REPLACE", "COLUMNS"): _replace_columns,
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
    ("DROP", "CONSTRAINT"): _drop_constraint,
    ("DROP", "FEATURE"): _drop_feature,
    ("CLUSTER", "BY"): _cluster_by,
    ("IS",): _comment,
})  # fmt: skip
_UNKNOWN_TO_SPARK = frozenset(
    {("ADD", "CONSTRAINT"), ("DROP", "CONSTRAINT"), ("DROP", "FEATURE"), ("CLUSTER", "BY")}
)
"""Clauses that are delta-spark's own, or Spark's only in newer releases."""
