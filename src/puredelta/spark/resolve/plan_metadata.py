"""Row ids in ``_metadata`` for the plans of a Connect client.

A classic session hides ``_metadata`` as a column above the scan of a table that tracks rows. A
server hides only what its own scan knows of a file. So where a plan names ``_metadata`` above such
a table, its scan shows one column more, under a name of this library. The operators above name that
column instead, and it is dropped where it would be shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from puredelta.protocol.schema.sql_lexer import (
    TokenKind,
    is_identifier,
    replaced,
    tokenize,
    unquoted,
)
from puredelta.spark.connect.messages import (
    EXPRESSION,
    RELATION,
    Message,
    copy_of,
    kind_of,
    parts_of,
    texts_of,
)
from puredelta.spark.session.names import METADATA, METADATA_OF_ROW, parse_name, quote, quote_name

_MENTIONED = re.compile(METADATA, re.IGNORECASE)

_ONE_INPUT = frozenset(
    {
        *("filter", "sort", "limit", "offset", "tail", "sample", "hint", "drop", "subquery_alias"),
        *("repartition", "repartition_by_expression", "collect_metrics"),
        *("with_columns", "with_columns_renamed"),
    }
)
"""Operators that hand on the columns of their one input."""
_ONLY_LEFT = frozenset({"LEFT_SEMI", "LEFT_ANTI"})

_NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})

Scans = Callable[[Message], bool]
"""Lets the scan of a table that tracks rows show the column; False for any other relation."""


def mentions_metadata(message: Message) -> bool:
    """Return whether a text in a message may name ``_metadata``."""
    return any(map(_MENTIONED.search, texts_of(message)))


def show_metadata(outer: Message, scans: Scans) -> None:
    """Let the operators of a plan that name ``_metadata`` find ids of rows in it."""
    _Walk(scans).close(outer)


class _Walk:
    def __init__(self, scans: Scans) -> None:
        self._scans = scans
        self._aliases: set[str] = set()

    def close(self, relation: Message) -> None:
        """Walk through a relation, which shows its own columns alone."""
        if not self._shows(relation):
            return
        inner = copy_of(relation)
        relation.Clear()
        relation.drop.input.CopyFrom(inner)
        relation.drop.column_names.append(METADATA_OF_ROW)

    def _shows(self, relation: Message) -> bool:
        """Walk through a relation; return whether it shows the column."""
        if self._scans(relation):
            return True
        kind = relation.WhichOneof("rel_type")
        if kind is None:
            return False
        operator = getattr(relation, kind)
        if kind in _ONE_INPUT:
            is_shown = self._shows(operator.input)
            if kind == "subquery_alias":
                self._aliases.add(operator.alias.lower())
            if is_shown:
                self._rename(operator)
            return is_shown
        if kind in {"project", "aggregate"}:
            return self._shows_some(operator, kind)
        if kind == "join":
            return self._joined(operator)
        if kind == "with_relations":
            for reference in operator.references:
                is_view = reference.WhichOneof("rel_type") == "subquery_alias"
                self.close(reference.subquery_alias.input if is_view else reference)
            return self._shows(operator.root)
        for inner in _relations(operator):
            self.close(inner)
        return False

    def _shows_some(self, operator: Message, kind: str) -> bool:
        if not self._shows(operator.input):
            return False
        columns = list(_expressions(operator))
        for column in columns:
            self._named(column)
        self._rename(operator)
        return kind == "project" and any(
            column.WhichOneof("expr_type") == "unresolved_star" for column in columns
        )

    def _joined(self, operator: Message) -> bool:
        left, right = self._shows(operator.left), self._shows(operator.right)
        if left or right:
            self._rename(operator)
        kind = type(operator).JoinType.Name(operator.join_type).removeprefix("JOIN_TYPE_")
        return left or (right and kind not in _ONLY_LEFT)

    def _named(self, column: Message) -> None:
        """Keep the name of a column that is ``_metadata`` itself."""
        kind = column.WhichOneof("expr_type")
        if kind == "unresolved_attribute":
            parts = parse_name(column.unresolved_attribute.unparsed_identifier)
            if self._place(parts) == len(parts) - 1:
                inner = copy_of(column)
                column.Clear()
                column.alias.expr.CopyFrom(inner)
                column.alias.name.append(METADATA)
        elif kind == "expression_string":
            tokens = tokenize(column.expression_string.expression)
            if tokens and is_identifier(tokens[-1]) and len(tokens) in {1, 3}:
                parts = tuple(unquoted(token) for token in tokens[::2] if is_identifier(token))
                if self._place(parts) == len(parts) - 1:
                    column.expression_string.expression += f" AS {METADATA}"

    def _rename(self, message: Message) -> None:
        """Rename ``_metadata`` in the expressions of an operator, not in those of its inputs."""
        for part in _expressions(message):
            kind = part.WhichOneof("expr_type")
            if kind == "unresolved_attribute":
                self._rename_attribute(part.unresolved_attribute)
            elif kind == "expression_string":
                text = part.expression_string.expression
                part.expression_string.expression = self._renamed(text)
            else:
                self._rename(part)

    def _rename_attribute(self, attribute: Message) -> None:
        parts = parse_name(attribute.unparsed_identifier)
        at = self._place(parts)
        if at is not None:
            attribute.unparsed_identifier = quote_name(
                (*parts[:at], METADATA_OF_ROW, *parts[at + 1 :])
            )
            attribute.ClearField("is_metadata_column")

    def _place(self, parts: tuple[str, ...]) -> int | None:
        """Return which part of a name is ``_metadata``: the first, or the one after an alias."""
        if parts and parts[0].lower() == METADATA:
            return 0
        has_alias = len(parts) > 1 and parts[0].lower() in self._aliases
        return 1 if has_alias and parts[1].lower() == METADATA else None

    def _renamed(self, text: str) -> str:
        """Return SQL text with the other name for ``_metadata``."""
        tokens = tokenize(text)
        found = []
        for at, token in enumerate(tokens):
            if token.kind not in _NAMES or unquoted(token).lower() != METADATA:
                continue
            is_after_dot = at > 1 and tokens[at - 1].means(".")
            qualifier = unquoted(tokens[at - 2]).lower() if is_after_dot else None
            is_renamed_already = at > 0 and tokens[at - 1].means("AS")
            if not is_renamed_already and (qualifier is None or qualifier in self._aliases):
                found.append((token.start, token.end, quote(METADATA_OF_ROW)))
        return replaced(text, found)


def _relations(message: Message) -> Iterator[Message]:
    """Yield the outermost relations inside a message."""
    for part in parts_of(message):
        if kind_of(part) == RELATION:
            yield part
        else:
            yield from _relations(part)


def _expressions(message: Message) -> Iterator[Message]:
    """Yield the outermost expressions inside a message, those of its relations aside."""
    for part in parts_of(message):
        if kind_of(part) == EXPRESSION:
            yield part
        elif kind_of(part) != RELATION:
            yield from _expressions(part)
