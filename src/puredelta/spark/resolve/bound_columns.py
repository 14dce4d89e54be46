"""Columns of a Connect client that are bound to a frame: ``source["x"]``, ``table.toDF()["id"]``.

Such a column is a name with the id of a node of the frame's plan, and only a plan with this node
has it. A statement reads its rows by other plans. So the client puts another name in the place of
a column that is bound to a node which shows the rows of the target, or of the source, as they are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.sql import Column, DataFrame

from puredelta.protocol.schema.sql_lexer import TokenCursor, may_hold_query
from puredelta.protocol.schema.sql_lexer import replaced as with_parts
from puredelta.spark.connect.messages import (
    EXPRESSION,
    QUALIFIER,
    Message,
    copy_of,
    every_message,
    kind_of,
)
from puredelta.spark.jvm.frames import analyzed_plan
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.session import is_connect

_TRANSPARENT = ("Filter", "Sort", "Limit", "Tail", "Offset", "Deduplicate", "Sample", "Hint")
"""Nodes of a client's plan above which an alias still holds."""
_ALIAS = "SubqueryAlias"
_SHOWN_BY = "_puredelta_shown_by"

Replaced = Callable[[int | None, str], str | None]
"""Returns another name for a column, by the id of the node that it is bound to, None for no node,
and its name; None: leave it as it is."""


def outer_alias(rows: DataFrame, *, default: str) -> str | None:
    """Return the alias of a DataFrame as its columns know it, or the default.

    Columns of one relation keep its name, if a classic session has selected some of them. The
    answer is None if they have the names of several relations, as those of a join, or if a client
    does not know them.
    """
    if is_connect(rows.sparkSession):
        return next(iter(outer_name(rows)[-1:]), None)
    shown = analyzed_plan(rows)
    while shown.kind in _TRANSPARENT:
        shown = shown.child()
    if shown.kind == _ALIAS:
        return shown.alias
    names = {name for column in shown.output() for name in column.qualifier()[-1:]}
    return None if len(names) > 1 else next(iter(names), default)


def under_alias(rows: DataFrame, alias: str | None) -> DataFrame:
    """Return the rows under an alias; None: as they are."""
    return rows if alias is None else rows.alias(alias)


def outer_name(rows: DataFrame) -> tuple[str, ...]:
    """Return the alias of a Connect frame, with its catalog and database if it has them."""
    for plan in _outer_plans(rows):
        if type(plan).__name__ == _ALIAS:
            return (*vars(plan).get(QUALIFIER, ()), str(plan._alias))  # noqa: SLF001 - no public way to ask for an alias
        if type(plan).__name__ not in _TRANSPARENT:
            break
    return ()


def outer_ids(rows: DataFrame) -> frozenset[int]:
    """Return the nodes that show columns as a Connect frame does, and those of `bind_to`."""
    plans = list(_outer_plans(rows))
    shown = {number for plan in plans for number in vars(plan).get(_SHOWN_BY, ())}
    return frozenset(shown | {plan._plan_id for plan in plans})  # noqa: SLF001 - as above


def bind_to(identity: DataFrame, rows: DataFrame) -> None:
    """Let columns that are bound to ``rows`` be columns of ``identity``, which has the same ones.

    Does nothing in a classic session, where both have the same attributes.
    """
    plans = list(_outer_plans(identity))
    if plans:
        vars(plans[-1]).setdefault(_SHOWN_BY, set()).update(outer_ids(rows))


def text_with_names(text: str, replaced: Replaced) -> str:
    """Return the text of an expression with other names for some columns of several parts."""
    return with_parts(text, _other_names(text, replaced))


def with_names(column: Column, client: Any, replaced: Replaced) -> Column:
    """Return a Column with other names for some of the columns in it, in its texts, too."""
    made: Any = column
    message = copy_of(made.to_plan(client))
    count = 0
    for part in _columns_in(message):
        if part.WhichOneof("expr_type") == "expression_string":
            others = list(_other_names(part.expression_string.expression, replaced))
            text = with_parts(part.expression_string.expression, others)
            part.expression_string.expression = text
            count += len(others)
            continue
        attribute = part.unresolved_attribute
        name = replaced(_node_of(attribute), attribute.unparsed_identifier)
        if name is not None:
            attribute.ClearField("plan_id")
            attribute.unparsed_identifier = name
            count += 1
    return _column_of(message, str(made._expr)) if count else column  # noqa: SLF001 - as above


def names_in(expression: str | Column, client: Any) -> Iterator[tuple[int | None, str]]:
    """Yield the names that these may replace, after the nodes that they are bound to."""
    if isinstance(expression, str):
        yield from ((None, name) for *_, name in _long_names(expression))
        return
    made: Any = expression
    for part in _columns_in(made.to_plan(client)):
        if part.WhichOneof("expr_type") == "expression_string":
            yield from names_in(part.expression_string.expression, client)
        else:
            attribute = part.unresolved_attribute
            yield _node_of(attribute), attribute.unparsed_identifier


def _other_names(text: str, other: Replaced) -> Iterator[tuple[int, int, str]]:
    for start, end, name in _long_names(text):
        if (given := other(None, name)) is not None:
            yield start, end, given


def _long_names(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the names with several parts in an expression: start, end and the quoted name.

    Nothing of a text with a query or a lambda function, which have names of their own.

    >>> list(_long_names("a.id = `b c`.d AND f.g(x) = 'a.b'"))
    [(0, 4, '`a`.`id`'), (7, 14, '`b c`.`d`')]
    """
    if may_hold_query(text) or "->" in text:
        return
    cursor = TokenCursor(text)
    while (token := cursor.peek()) is not None:
        parts = cursor.accept_name()
        if not parts:
            cursor.skip()
            continue
        last = cursor.peek(-1)
        if len(parts) > 1 and last is not None and not cursor.sees("("):
            yield token.start, last.end, quote_name(parts)
        while cursor.sees("."):
            cursor.skip(2)


def column_named(node: int | None, name: str) -> Column:
    """Return a column by its name, bound to a node or to none."""
    expressions: Any = importlib.import_module("pyspark.sql.connect.expressions")
    columns: Any = importlib.import_module("pyspark.sql.connect.column")
    made: Column = columns.Column(expressions.ColumnReference(name, node))
    return made


_texts: ContextVar[dict[str, object] | None] = ContextVar("puredelta_texts", default=None)


@contextmanager
def texts_bound_once() -> Iterator[None]:
    """Let each text of an expression mean the same tables everywhere inside the context."""
    token = _texts.set({}) if _texts.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _texts.reset(token)


def bound_texts() -> dict[str, object]:
    """Return what texts of expressions mean in this context, by text; it is added to."""
    known = _texts.get()
    return {} if known is None else known


def _columns_in(message: Message) -> Iterator[Message]:
    """Yield the columns and the texts in an expression."""
    for part in every_message(message):
        if kind_of(part) != EXPRESSION:
            continue
        match part.WhichOneof("expr_type"):
            case "expression_string":
                yield part
            case "unresolved_attribute" if not part.unresolved_attribute.is_metadata_column:
                yield part


def _node_of(attribute: Message) -> int | None:
    return int(attribute.plan_id) if attribute.HasField("plan_id") else None


def _column_of(message: Message, shown: str) -> Column:
    """Return a message as a Column."""
    expressions: Any = importlib.import_module("pyspark.sql.connect.expressions")
    columns: Any = importlib.import_module("pyspark.sql.connect.column")
    members = {"to_plan": lambda _, __: message, "__repr__": lambda _: shown}
    made: Column = columns.Column(type("Expression", (expressions.Expression,), members)())
    return made


def _outer_plans(rows: DataFrame) -> Iterator[Any]:
    """Yield the nodes of a client's plan that show the same columns, the outermost first."""
    plan: Any = vars(rows).get("_plan")
    while plan is not None:
        yield plan
        if type(plan).__name__ not in {_ALIAS, *_TRANSPARENT}:
            return
        plan = plan._child  # noqa: SLF001 - as above
