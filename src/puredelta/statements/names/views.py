"""Rows under a name that SQL text can use, for the length of one statement.

Statements of a command get temporary views. A query of Spark gets ``{name}`` fields, which also
work over Connect, where text is resolved when it runs.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import Self

from puredelta.protocol.schema.sql_lexer import mentions
from puredelta.spark.connect.messages import query_relation, relation_rows, with_known_columns
from puredelta.spark.scan.kept_answers import keep_answers
from puredelta.spark.scan.late_answers import columns_of_query
from puredelta.spark.scan.late_scan import metadata_rows, table_of
from puredelta.spark.session.names import METADATA, PREFIX, quote_name
from puredelta.statements.parse.star_text import with_hidden_column


class KeptFunctions(Protocol):
    """Functions that a Connect server keeps for a text, see `kept_names`."""

    functions: Mapping[str, str]
    """The functions that others take the place of, by the names of these."""


class RowNames(Protocol):
    """Source of names for rows in SQL text."""

    kept: list[KeptFunctions]
    """What a Connect server keeps for the text."""

    def add(self, rows: DataFrame, again: Again | None = None) -> str:
        """Return the name of these rows.

        ``again`` provides newer rows for a view that outlives the statement.
        """
        ...


@dataclass(frozen=True, slots=True)
class Again:
    """A later request for the same rows."""

    key: str
    """Equal for equal rows."""
    rows: Callable[[SparkSession], DataFrame]


class TemporaryViews:
    """Temporary views with unique names, dropped on leaving the context."""

    def __init__(self) -> None:
        self._views: list[tuple[str, DataFrame]] = []
        self.kept: list[KeptFunctions] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name, rows in self._views:
            rows.sparkSession.catalog.dropTempView(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all views."""
        return tuple(name for name, _ in self._views)

    def add(self, rows: DataFrame, again: Again | None = None) -> str:  # noqa: ARG002
        """Return the name of a view of these rows; the same rows have one view."""
        for name, known in self._views:
            if known is rows:
                return name
        name = f"__puredelta_view_{uuid.uuid4().hex}"
        rows.createTempView(name)
        self._views.append((name, rows))
        return name

    def table(self, spark: SparkSession, parts: Sequence[str]) -> DataFrame:
        """Return the rows of a table or view, which may be one of these."""
        for name, rows in self._views:
            if (name,) == tuple(parts):
                return rows
        return spark.table(quote_name(parts))

    def query(self, spark: SparkSession, text: str) -> DataFrame:
        """Return the rows of a query that may name these views."""
        return spark.sql(text)

    def fields(self, text: str) -> dict[str, DataFrame]:
        """Return the rows of these views that a text names, by name."""
        return {name: rows for name, rows in self._views if name in text}


class References:
    """Names for rows that a Connect client sends along with its text.

    A name is used by no other statement: for the time of its analysis the server makes a view.
    """

    def __init__(self, rows: Mapping[str, DataFrame] | None = None) -> None:
        self.rows: dict[str, DataFrame] = dict(rows or {})
        """By name."""
        self.kept: list[KeptFunctions] = []

    def add(self, rows: DataFrame, again: Again | None = None) -> str:  # noqa: ARG002
        """Return the name of these rows, one for equal rows."""
        for name, known in self.rows.items():
            if known is rows:
                return name
        name = f"{PREFIX}rows_{uuid.uuid4().hex}"
        self.rows[name] = rows
        return name

    def query(
        self, spark: SparkSession, text: str, args: object = None, *, is_closed: bool = False
    ) -> DataFrame:
        """Return the rows of a query that may have these names; ``args`` are its parameters.

        The server analyzes it now. ``is_closed``: it names nothing else that may change.
        """
        used = {name: rows for name, rows in self.rows.items() if name in text}
        if mentions(text, METADATA):
            text, used = _with_metadata(text, used)
        relation = query_relation(spark, text, args, used)
        found = relation_rows(spark, relation, keep=(*used.values(), *self.kept))
        answers = keep_answers(spark, relation, table_of) if is_closed and not self.kept else None
        if answers is not None and answers.columns is not None:
            return with_known_columns(found, answers.columns)
        columns = None if self.kept else columns_of_query(relation)
        if columns is not None:
            return with_known_columns(found, columns)
        columns_now = found.schema  # what is wrong is said now
        if answers is not None:
            answers.columns = columns_now
        if not self.kept:
            return found
        names = [_with_functions(name, self.kept) for name in found.columns]
        return found if names == found.columns else found.toDF(*names)


def _with_metadata(text: str, rows: Mapping[str, DataFrame]) -> tuple[str, dict[str, DataFrame]]:
    """Return a query and its rows, those of tables with ``_metadata``, which no star shows.

    The rows of a name are a view, and a view has no hidden columns.
    """
    more = {name: found for name, one in rows.items() if (found := metadata_rows(one)) is not None}
    hidden = with_hidden_column(text, METADATA, more)
    return (text, dict(rows)) if hidden is None else (hidden, {**rows, **more})


def _with_functions(name: str, kept: Iterable[KeptFunctions]) -> str:
    """Return the name that Spark gives a column, with the functions that the user has named."""
    for one in kept:
        for other, function in one.functions.items():
            name = name.replace(other, function)
    return name


class TemplateFields:
    """Names for rows that become fields of a template, for ``spark.sql`` to fill."""

    def __init__(self) -> None:
        self.kept: list[KeptFunctions] = []
        self.rows: dict[str, Any] = {}
        """By name; the keyword arguments of ``spark.sql``."""

    def add(self, rows: DataFrame, again: Again | None = None) -> str:  # noqa: ARG002
        """Return the name of these rows, one for equal rows.

        A server makes a view of it for a moment: no other statement of the session has the name.
        """
        for name, known in self.rows.items():
            if known is rows:
                return name
        name = f"{PREFIX}rows_{uuid.uuid4().hex}"
        self.rows[name] = rows
        return name

    def query(self, spark: SparkSession, text: str) -> DataFrame:
        """Return the rows of a query that may have these names."""
        return spark.sql(self.template(text), **self.rows)

    def fields(self, text: str) -> dict[str, DataFrame]:
        """Return the rows that a text names, by name."""
        return {name: rows for name, rows in self.rows.items() if name in text}

    def template(self, text: str) -> str:
        """Return text in which only these names are fields."""
        escaped = text.replace("{", "{{").replace("}", "}}")
        for name in self.rows:
            escaped = escaped.replace(name, f"{{{name}}}")
        return escaped
