"""``{name}`` in statement text, as ``spark.sql(text, name=...)`` understands it."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.session.helper_columns import PREFIX
from puredelta.sql.relations.views import RowNames, with_fields
from puredelta.sql.text.literals import string_literal


class SqlTemplate(string.Formatter):
    """Fills the fields of a statement: rows get a name, text becomes a literal.

    Other values are written as Python writes them, as in ``spark.sql``.
    """

    def __init__(self, names: RowNames) -> None:
        self._names = names

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the SQL text of a field, and the key it was found by.

        Raises:
            InvalidRequestError: the value is a Column.
        """
        value, key = super().get_field(field_name, args, kwargs)
        match value:
            case DataFrame():
                return self._names.add(value), key
            case str():
                return string_literal(value), key
            case Column():
                raise InvalidRequestError(
                    f"The field {{{field_name}}} is a Column. Write the column's name in the text.",
                    code=ErrorCode.VALUE_NOT_PLAIN_COLUMN_REFERENCE,
                    field_name=field_name,
                )
            case _:
                return value, key


class TemplateFields:
    """Names for rows that become fields of a template, for ``spark.sql`` to fill."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}
        """By name; the keyword arguments of ``spark.sql``."""

    def add(self, rows: DataFrame) -> str:
        """Return the name of these rows, one for the same rows; it is no part of another's."""
        for name, known in self.rows.items():
            if known is rows:
                return name
        name = f"{PREFIX}rows_{len(self.rows)}_"
        self.rows[name] = rows
        return name

    def template(self, text: str) -> str:
        """Return text in which nothing but our names are fields."""
        return with_fields(text, self.rows)
