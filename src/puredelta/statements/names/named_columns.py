"""Columns that a query can need, and queries that name ``_metadata``.

Every identifier in the text counts as the name of a column, at any position. A query that shows
columns without naming them needs all of them.

In the plan of a ``_metadata`` query, the rows of each table replace its name, under the name or
alias in the text. Classic sessions only.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read_table import snapshot_of
from puredelta.protocol.schema.sql_lexer import (
    Token,
    TokenKind,
    is_identifier,
    keywords,
    mentions,
    tokenize,
    unquoted,
)
from puredelta.spark.catalog.catalog_entries import find_table
from puredelta.spark.catalog.relation_cache import cached_relations
from puredelta.spark.jvm.catalog import SESSION_CATALOG
from puredelta.spark.jvm.frames import analyzed_plan, frame_of
from puredelta.spark.jvm.plans import (
    NamedPart,
    Plan,
    named_parts,
    named_plan,
    parsed_plan,
    with_table_expressions,
)
from puredelta.spark.scan.row_tracking_scan import rows_with_row_ids
from puredelta.spark.scan.table_rows import find_origin, table_rows
from puredelta.spark.session.names import METADATA
from puredelta.spark.session.storage import open_log
from puredelta.statements.names.query_tables import with_views
from puredelta.statements.names.stored_views import with_stored_views
from puredelta.statements.names.views import TemplateFields
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.star_text import is_star

_SHOWS_ALL = keywords("TABLE PIVOT UNPIVOT NATURAL IDENTIFIER")
"""Keywords after which a query shows or computes names of columns that are not in its text."""
_COUNT_ROWS = ["COUNT", "(", "*", ")"]
_AFTER_COUNT = keywords(", AS FROM")
"""Tokens after a count that is not a window function."""
_PIPE = "|>"

_WITH_FROM = keywords("EXTRACT TRIM SUBSTRING SUBSTR OVERLAY")
"""Functions that may have a FROM between their brackets."""
_PATTERNS = "spark.sql.parser.quotedRegexColumnNames"
_BETWEEN_QUERIES = keywords("UNION EXCEPT MINUS INTERSECT")


def needed_columns(spark: SparkSession, text: str) -> frozenset[str] | None:
    """Return `named_columns` of a query whose plan may be unable to ask for columns; else None.

    None if back-ticked names are patterns in the session, since a name may then mean any column.
    None also if the query's frame can still name other columns, see `limits_columns`.
    """
    if not limits_columns(text):
        return None
    names = named_columns(text)
    has_patterns = str(spark.conf.get(_PATTERNS, "false")).lower() == "true"
    return None if has_patterns else names


def limits_columns(text: str) -> bool:
    """Tell whether later calls on a query's frame can name only columns of its result.

    Spark resolves the columns of ``where`` and ``orderBy`` below a projection, a limit or a join,
    and stops at an aggregate, which has only its keys, and at a union. Only an aggregate in
    ``where`` or ``orderBy``, as ``orderBy(max("b"))``, could name other columns of a text that
    groups: Spark then reports that it cannot find the column.

    >>> limits_columns("SELECT a FROM t")  # its frame takes .orderBy("b")
    False
    >>> limits_columns("SELECT a, max(b) FROM t GROUP BY a")
    True
    """
    tokens = tokenize(text)
    depth, in_list = 0, False
    for at, token in enumerate(tokens):
        if token.means("(") or token.means(")"):
            depth += 1 if token.means("(") else -1
        elif depth or token.kind is not TokenKind.WORD:
            continue
        elif token.means("SELECT"):
            in_list = True
        elif token.means("FROM"):
            in_list = False
        elif token.text.upper() in _BETWEEN_QUERIES:
            return True
        elif in_list and token.means("COUNT"):
            around = [other.text.upper() for other in tokens[at : at + 5]]
            if around[:-1] == _COUNT_ROWS and around[-1] in _AFTER_COUNT:
                return True
        elif not in_list and token.means("GROUP") and _means(tokens, at + 1, "BY"):
            return True
    return False


def _means(tokens: Sequence[Token], at: int, word: str) -> bool:
    return at < len(tokens) and tokens[at].means(word)


def named_columns(text: str) -> frozenset[str] | None:
    """Return all names in a query in lower case; None if it may need columns it does not name.

    >>> sorted(named_columns("SELECT t.a, count(*) FROM t GROUP BY ALL"))
    ['a', 'all', 'by', 'count', 'from', 'group', 'select', 't']
    >>> named_columns("SELECT *, a * 2 FROM t")
    """
    tokens = tokenize(text)
    if _PIPE in text or any(token.means(word) for token in tokens for word in _SHOWS_ALL):
        return None
    if any(is_star(tokens, at) for at in range(len(tokens))) or _lacks_select(tokens):
        return None
    return frozenset(unquoted(token).lower() for token in tokens if is_identifier(token))


def _lacks_select(tokens: Sequence[Token]) -> bool:
    """Tell whether some FROM has no SELECT before it, so that it shows whole rows."""
    open_selects = [0]  # by depth of brackets
    takes_from = [False]
    for at, token in enumerate(tokens):
        if token.means("("):
            caller = tokens[at - 1].text.upper() if at else ""
            open_selects.append(0)
            takes_from.append(caller in _WITH_FROM)
        elif token.means(")") and len(open_selects) > 1:
            open_selects.pop()
            takes_from.pop()
        elif token.means("SELECT"):
            open_selects[-1] = 1
        elif token.kind is TokenKind.WORD and token.text.upper() in _BETWEEN_QUERIES:
            open_selects[-1] = 0
        elif token.means("FROM") and not (takes_from[-1] or tokens[at - 1].means("DISTINCT")):
            if open_selects[-1] == 0:
                return True
            open_selects[-1] = 0
    return False


_QUERIES = keywords("SELECT WITH FROM (")


def run_metadata_query(spark: SparkSession, text: str) -> DataFrame | None:
    """Let Spark execute a query that names ``_metadata`` of Delta tables; None for other texts."""
    if not mentions(text, METADATA) or Cursor(text).word not in _QUERIES:
        return None
    frames = TemplateFields()
    named = with_views(spark, with_stored_views(spark, text, frames), frames)
    try:
        query = with_table_expressions(parsed_plan(spark, named))
    except ParseException:
        return None  # Spark raises the error itself
    replaced, left = [], []
    for part in named_parts(query):
        rows = _rows_of(spark, part, frames)
        if rows is None:
            left.append(part.name)
        else:
            replaced.append((part.part, rows))
    if not replaced:
        return None
    with cached_relations(spark, left):
        return frame_of(spark, query.with_replaced(replaced))


def _rows_of(spark: SparkSession, part: NamedPart, frames: TemplateFields) -> Plan | None:
    """Return the plan of a name's rows, one plan per name, since Spark joins by attribute ids."""
    name: tuple[str, ...] = part.name if part.alias is None else (part.alias,)
    known = frames.rows.get(part.name[0]) if len(part.name) == 1 else None
    if known is None:
        table = find_table(spark, part.name)
        if table is None:
            return None
        log, version, is_time_travel = open_log(spark, table.location), None, False
        if part.alias is None:
            name = (SESSION_CATALOG, table.database, table.name)
    else:
        plan = analyzed_plan(known)
        origin = find_origin(plan)
        if origin is None:  # changes, for example
            return named_plan(name[-1], plan)
        log, version, is_time_travel = (
            open_log(spark, origin.root_uri),
            origin.version,
            origin.is_time_travel,
        )
    snapshot = snapshot_of(spark, log, version=version)
    rows = rows_with_row_ids(spark, snapshot, time_travel=is_time_travel, name=name)
    if rows is not None:
        return analyzed_plan(rows)
    plain = table_rows(spark, snapshot, time_travel=is_time_travel)
    return named_plan(name[-1], analyzed_plan(plain), qualifier=name[:-1])
