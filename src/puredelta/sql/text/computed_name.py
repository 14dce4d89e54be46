"""Names that were computed: the text of a name, read as the parser reads it."""

from __future__ import annotations

from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.table_name import ComputedName, TableName


def parse_table_name(text: str) -> TableName:
    """Read a name that was computed.

    Raises:
        SqlSyntaxError: it is no name.
    """
    cursor = Cursor(text)
    name = cursor.table()
    cursor.expect_end()
    if isinstance(name, ComputedName):
        raise Cursor(text).error(expected="a name")
    return name
