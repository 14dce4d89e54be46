"""Views over Delta tables: definitions, CACHE TABLE AS, and temporary views as targets (M-31).

A temporary view reads its tables again on each use. A permanent view keeps its text, see
`puredelta.statements.names.stored_views`.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dml.spec import Clause, Star, Update, operation_name
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.catalog_entries import find_relation
from puredelta.spark.catalog.relation_cache import (
    cached_relations,
    find_relations,
    named_relations,
)
from puredelta.spark.catalog.table_views import (
    Shown,
    ViewOrigin,
    find_inserted_table,
    leaves_of_view,
    path_view,
    shown_view,
)
from puredelta.spark.jvm.catalog import ViewEntry
from puredelta.spark.jvm.stored_text import define_view, relation_places, view_query
from puredelta.spark.scan.table_rows import PlanOrigin, scanned_table
from puredelta.spark.session.catalogs import current_namespace, find_identifier
from puredelta.spark.session.names import display_name, parse_name
from puredelta.statements.execute.namespaces import view_name
from puredelta.statements.names.names import find_location, is_view
from puredelta.statements.names.query_tables import with_views
from puredelta.statements.names.stored_views import with_stored_views
from puredelta.statements.names.views import Again, KeptFunctions, TemporaryViews
from puredelta.statements.parse.statement import (
    MergeStatement,
    RowStatement,
    ViewLifetime,
    ViewStatement,
)
from puredelta.statements.parse.table_name import TableName


def create_in_session(
    spark: SparkSession, statement: ViewStatement, *, text: str
) -> DataFrame | None:
    """Execute the definition of a view that Spark cannot resolve; None for any other view.

    Such a view is over a table at a path, a version of a table, the changes of one, or another such
    view. Spark finds tables of the catalog itself, unless a version of them is chosen.
    """
    if statement.lifetime is ViewLifetime.PERMANENT:
        return _create_stored(spark, text)
    names = _TablesOfView(is_global=statement.lifetime is ViewLifetime.GLOBAL)
    named = with_views(spark, with_stored_views(spark, text, names), names)
    if not names.is_used:
        return None
    with cached_relations(spark, named_relations(spark, named)):
        return spark.sql(named)


def _create_stored(spark: SparkSession, text: str) -> DataFrame:
    """Let Spark keep the text unchanged, and take the columns of its present meaning."""
    query = view_query(spark, text)
    _require_whole_names(spark, text, query)
    _require_no_cycle(spark, text, query)
    with TemporaryViews() as shown:
        named = with_views(spark, with_stored_views(spark, query, shown), shown)
        with cached_relations(spark, named_relations(spark, named)):
            return define_view(spark, text, spark.sql(named))


def _require_whole_names(spark: SparkSession, text: str, query: str) -> None:
    """Refuse short names of a catalog of this library: they mean something else later."""
    if current_namespace(spark) is None:
        return
    for parts in (place.name for place in relation_places(spark, query)):
        found = find_identifier(spark, parts)
        if found is not None and len(parts) < len(found.parts):
            raise UnsupportedError(
                Message.OPERATION_NOT_ALLOWED_SHORT_NAME_IN_VIEW,
                name=str(view_name(text)),
                short=display_name(parts),
                table=str(found),
            )


def _require_no_cycle(spark: SparkSession, text: str, query: str) -> None:
    """Refuse a view that contains itself, which Spark does not see below rows of Delta tables."""
    below = {(view.database, view.name) for view in find_relations(
        spark, named_relations(spark, query)).views}  # fmt: skip
    named = view_name(text)
    name = None if named is None else find_relation(spark, named.parts)
    if isinstance(name, ViewEntry) and (name.database, name.name) in below:
        raise InvalidRequestError(
            Message.OPERATION_NOT_ALLOWED_RECURSIVE_VIEW, database=name.database, view=name.name
        )


class _TablesOfView:
    """Names for tables that last as long as the view that names them."""

    def __init__(self, *, is_global: bool) -> None:
        self._is_global = is_global
        self.kept: list[KeptFunctions] = []
        self.is_used = False

    def add(self, rows: DataFrame, again: Again | None = None) -> str:
        """Return the name of a view of these rows."""
        self.is_used = True
        if again is None:
            return path_view(rows, is_global=self._is_global)
        return shown_view(again.key, rows, again.rows, is_global=self._is_global)


def find_insert_location(spark: SparkSession, name: TableName) -> str | None:
    """Return the location of a Delta table, which may have the name of a view of its frame.

    Raises:
        InvalidRequestError: the view shows a chosen version
            (DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION).
    """
    location = find_location(spark, name)
    if location is not None:
        return location
    table = find_inserted_table(spark, name.parts)
    if table is not None and table.is_time_travel:
        raise _historical(table, name)
    return None if table is None else table.root_uri


def _historical(table: PlanOrigin, name: TableName) -> InvalidRequestError:
    return InvalidRequestError(
        Message.FAILED_SCAN_WITH_HISTORICAL_VERSION,
        name=name,
        root_uri=table.root_uri,
        historical_version=table.version,
        view=str(name),
    )


def require_no_view(spark: SparkSession, name: TableName, operation: str) -> None:
    """Refuse a view as the target of a statement, unless Spark has an answer that is right.

    Of a view over a Delta table Spark would say that the table cannot be changed; DELETE of a view
    over other rows is INTERNAL_ERROR there.

    Raises:
        InvalidRequestError: it is a view (DELTA_UNSUPPORTED_SOURCE).
    """
    if not is_view(spark, name):
        return
    shown = leaves_of_view(spark, name.parts)
    if shown is not None:
        if any(leaf.kind == "DataSourceV2Relation" for leaf in shown):
            return  # another source, which may change its rows
        if operation != "DELETE" and not any(map(scanned_table, shown)):
            return
    raise InvalidRequestError(Message.UNSUPPORTED_SOURCE, operation=operation, view=str(name))


def target_operation(statement: RowStatement) -> str:
    """Return the name of a statement in errors."""
    return "MERGE" if isinstance(statement, MergeStatement) else operation_name(statement.spec)


def require_whole_table(
    view: ViewOrigin, name: TableName, operation: str, *, log: TableLog
) -> None:
    """Refuse a view that shows less than the table: hidden values could be lost.

    Errors have the classes of delta-spark. Only where delta-spark loses hidden values, or has an
    internal error, does this function refuse with DELTA_UNEXPECTED_PARTIAL_SCAN.

    Raises:
        UnsupportedError: the view filters, computes or renames, or leaves out columns
            (DELTA_UNEXPECTED_PARTIAL_SCAN).
        InvalidRequestError: the view shows a chosen version, by number or time
            (DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION), or a MERGE has a view with more or fewer
            columns (DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS).
    """
    if view.table.is_time_travel:
        raise _historical(view.table, name)
    config = log.snapshot().config
    table, chooses = config.schema, view.shown is Shown.COLUMNS
    as_it_is = chooses and view.columns == table.names
    if config.generated_columns and not as_it_is and operation != "DELETE":  # M-31
        raise InvalidRequestError(
            Message.OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS,
            root_uri=view.root_uri,
            operation=operation,
        )
    is_whole = view.shown is not Shown.FILTERED
    if operation == "MERGE" and is_whole and len(view.columns) != len(table.names):
        raise InvalidRequestError(
            Message.SCHEMA_CHANGE_SINCE_ANALYSIS_VIEW,
            view=str(name),
            columns=", ".join(view.columns),
            root_uri=view.root_uri,
        )
    if not chooses or not view.has_columns(table.names):
        raise UnsupportedError(
            Message.UNEXPECTED_PARTIAL_SCAN,
            operation=operation,
            name=name,
            root_uri=view.root_uri,
            view=str(name),
        )


def require_whole_columns(clauses: Iterable[Clause], qualifier: str) -> None:
    """Refuse a MERGE through a view that assigns a field inside a column, as in delta-spark.

    Raises:
        InvalidRequestError: a clause assigns one (DELTA_MERGE_UNEXPECTED_ASSIGNMENT_KEY).
    """
    for clause in clauses:
        if isinstance(clause.action, Update) and clause.action.assignments is not Star.STAR:
            for assignment in clause.action.assignments:
                _require_whole_column(assignment.column, qualifier)


def _require_whole_column(column: str, qualifier: str) -> None:
    parts = parse_name(column)
    if len(parts) > 1 and parts[0].lower() == qualifier.lower():
        parts = parts[1:]
    if len(parts) > 1:
        raise InvalidRequestError(Message.MERGE_UNEXPECTED_ASSIGNMENT_KEY, key=display_name(parts))
