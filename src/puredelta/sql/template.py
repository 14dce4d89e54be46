"""``{name}`` in statement text, as ``spark.sql(text, name=...)`` understands it."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.sql.literals import string_literal
from puredelta.sql.views import TemporaryViews


class SqlTemplate(string.Formatter):
    """Fills the fields of a statement: rows become views, text becomes a literal.

    Other values are written as Python writes them, as in ``spark.sql``.
    """

    def __init__(self, views: TemporaryViews) -> None:
        self._views = views

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the SQL text of a field, and the key it was found by.

        Raises:
            InvalidRequestError: the value is a Column.
        """
        value, key = super().get_field(field_name, args, kwargs)
        match value:
            case DataFrame():
                return self._views.add(value), key
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
