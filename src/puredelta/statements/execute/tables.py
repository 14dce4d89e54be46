"""Execution of CREATE, REPLACE, CLONE, LIKE and INSERT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.create.as_select import (
    FirstRows,
    NewTable,
    create_table_as,
    definition_like,
)
from puredelta.commands.create.clone import (
    CloneRequest,
    clone_registered,
    clone_row,
    clone_table,
    nothing_to_replace,
)
from puredelta.commands.create.create_table import CreateMode, create_table
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import define_registered
from puredelta.commands.defined_columns import column, stored_columns
from puredelta.commands.dependent_rules import require_harmless
from puredelta.commands.read_table import snapshot_of
from puredelta.commands.write.insert import InsertRequest, PlannedInsert, plan_insert, value_columns
from puredelta.commands.write.options import effective_options
from puredelta.errors import (
    InvalidRequestError,
    Message,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.protocol.schema.sql_lexer import is_identifier, tokenize, unquoted
from puredelta.protocol.schema.types import StructField, StructType
from puredelta.spark.catalog.catalog_entries import entry_name
from puredelta.spark.catalog.unity_entries import creation_name, is_made_as_delta, is_name_taken
from puredelta.spark.jvm.statement_plans import (
    InsertInto,
    Query,
    SeveralInserts,
    StatedColumn,
    StatedTable,
)
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.session.catalogs import find_identifier
from puredelta.spark.session.names import FORMAT, is_delta, quote_name
from puredelta.spark.session.session import no_rows, settings_of
from puredelta.spark.session.storage import open_log
from puredelta.spark.session.types import struct_as_nullable, without_table_metadata
from puredelta.statements.execute.session_texts import StatementText
from puredelta.statements.execute.views import find_insert_location
from puredelta.statements.names.names import (
    find_catalog_name,
    find_location,
    find_log,
    find_other_format,
    is_view,
    require_table,
    resolve_name,
)
from puredelta.statements.names.views import TemporaryViews
from puredelta.statements.parse.changes_clause import without_changes_clauses
from puredelta.statements.parse.expression_text import has_default, with_defaults
from puredelta.statements.parse.statement import CloneStatement, LikeStatement, SparkParsedStatement
from puredelta.statements.parse.table_name import (
    ComputedName,
    TableName,
    TableReference,
    TimeTravel,
)


def insert(spark: SparkSession, statements: Sequence[InsertInto], *, text: StatementText) -> bool:
    """Execute one statement, or several over the same rows, each with a separate commit.

    All of them are checked before the first one is executed. ``text`` is the parsed text; it is
    parsed again after ``DEFAULT`` was replaced by values. False if no table is a Delta table.

    Raises:
        UnsupportedError: a clause that is not implemented, or some tables are no Delta tables.
        InvalidRequestError, pyspark.errors.AnalysisException: an error of `plan_insert`.
    """
    found = {s.name: find_insert_location(spark, TableName(s.name)) for s in statements}
    locations = {name: location for name, location in found.items() if location is not None}
    if not locations:
        return False
    others = [str(TableName(name)) for name in found if name not in locations]
    if others:
        raise UnsupportedError(
            Message.OPERATION_NOT_ALLOWED_SEVERAL_INSERTS,
            names=", ".join(others),
            tables=tuple(others),
        )
    for statement in statements:
        _require_possible_insert(statement)
    has_values = len(statements) == 1 and has_default(text.text)

    def planned(statement: InsertInto) -> PlannedInsert:
        log, request = open_log(spark, locations[statement.name]), _request(statement)
        query = statement.query
        if has_values:
            config = log.snapshot().config
            require_harmless(config, settings_of(spark))
            query = _query_with_defaults(text, value_columns(config, request))
        return plan_insert(_inserted_rows(text, query), log, request)

    first, *_ = [planned(statement) for statement in statements]
    first.run()
    for statement in statements[1:]:
        planned(statement).run()  # again: the one before may have changed what it reads
    return True


def _query_with_defaults(text: StatementText, columns: Sequence[StructField]) -> Query:
    """Return the query of the rows with each ``DEFAULT`` replaced by its value."""
    values = [str(column.metadata.get(CURRENT_DEFAULT, "NULL")) for column in columns]
    planned = text.replaced(with_defaults(text.text, values)).read()
    assert isinstance(planned, InsertInto)  # noqa: S101 - values do not make it another statement
    return planned.query


def _request(statement: InsertInto) -> InsertRequest:
    return InsertRequest(
        name=quote_name(statement.name),
        columns=statement.columns,
        partition=statement.partition,
        open_partition=statement.open_partition,
        by_name=statement.by_name,
        options=effective_options(statement.options),
        overwrite=statement.overwrite,
        replace_where=statement.replace_where,
        evolves=statement.evolves,
    )


def _inserted_rows(text: StatementText, query: Query) -> DataFrame:
    """Return the rows of the query, where ``DEFAULT`` may not be part of an expression."""
    try:
        return text.rows(query)
    except AnalysisException as error:
        unknown = (error.getMessageParameters() or {}).get("objectName", "")
        if unknown.strip("`").upper() != "DEFAULT":
            raise
        raise InvalidRequestError(Message.DEFAULT_PLACEMENT_INVALID) from error


def _require_possible_insert(statement: InsertInto) -> None:
    if statement.if_not_exists:
        raise UnsupportedError(Message.INSERT_PARTITION_SPEC_IF_NOT_EXISTS)
    if statement.beyond is not None:
        raise UnsupportedError(
            Message.TABLE_OPERATION_NOT_SUPPORTED_INSERT, beyond=statement.beyond
        )


_PROPERTY_PREFIX = "delta."


def create(spark: SparkSession, statement: StatedTable, *, text: StatementText) -> bool:
    """Execute the statement; False if it makes a table of another format."""
    if not is_made_as_delta(spark, statement.name, statement.provider):
        return False
    mode = CreateMode.of(
        creates=statement.creates,
        replaces=statement.replaces,
        if_not_exists=statement.if_not_exists,
    )
    path = TableName(statement.name).path
    name = None if path is not None else creation_name(spark, statement.name)
    if path is None and name is None:
        return False
    _require_possible_table(statement)
    definition = _definition(statement)
    if name is not None:
        if statement.if_not_exists and is_name_taken(spark, name):
            return True
        rows = _created_rows(text, statement)
        location = statement.location
        table = NewTable(name=name, location=location, definition=definition, rows=rows)
        define_registered(spark, table, mode=mode)
    elif path is not None:
        require_one_location(spark, path, statement.location)
        log, rows = open_log(spark, path), _created_rows(text, statement)
        if rows is None:
            create_table(spark, log, definition, mode=mode)
        else:
            create_table_as(FirstRows(rows=rows), log, definition, mode=mode)
    return True


def _created_rows(text: StatementText, statement: StatedTable) -> DataFrame | None:
    return None if statement.query is None else text.rows(statement.query)


def _definition(statement: StatedTable) -> TableDefinition:
    return TableDefinition(
        columns=StructType(tuple(map(_column, statement.columns))),
        partition_columns=statement.partition_by,
        clustering_columns=statement.cluster_by,
        properties={**_options(statement), **statement.properties},
        description=statement.comment,
    )


def _options(statement: StatedTable) -> dict[str, str]:
    """Return the table properties from OPTIONS.

    As in delta-spark: CREATE TABLE keeps every option twice, AS SELECT and the
    replacements keep only properties of Delta.
    """
    options = statement.options
    if statement.replaces or statement.query is not None:
        return {k: v for k, v in options.items() if k.lower().startswith(_PROPERTY_PREFIX)}
    return {**options, **{f"option.{key}": value for key, value in options.items()}}


def _column(definition: StatedColumn) -> StructField:
    return column(
        definition.name,
        definition.type,
        nullable=definition.nullable,
        generated_as=definition.generated_as,
        comment=definition.comment,
        default=definition.default,
    )


def _require_possible_table(statement: StatedTable) -> None:
    if statement.other_layout is not None:
        raise UnsupportedError(
            Message.OPERATION_NOT_ALLOWED_DETAIL_BUCKETS
            if statement.buckets
            else Message.OPERATION_NOT_ALLOWED_PARTITIONING,
            layout=statement.other_layout,
        )
    if statement.has_constraints:
        raise UnsupportedError(Message.TABLE_OPERATION_NOT_SUPPORTED_TABLE_CONSTRAINT)


def require_one_location(spark: SparkSession, path: str, location: str | None) -> None:
    """Require that a location stated beside a path is the same place.

    Raises:
        InvalidRequestError: it is another one (DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE).
    """
    if location is not None and not open_log(spark, path).is_at(location):
        raise InvalidRequestError(
            Message.AMBIGUOUS_PATHS_IN_CREATE_TABLE, identifier=path, location=location
        )


def concerns_delta(spark: SparkSession, statement: SparkParsedStatement, text: str) -> bool:
    """Tell from the parsed text whether a statement may make a Delta table, or insert into one."""
    name = statement.targets[0].name
    if statement.defines:
        tokens = tokenize(text)
        formats = [
            unquoted(name).lower()
            for using, name in pairwise(tokens)
            if using.means("USING") and is_identifier(name)
        ]
        is_format = FORMAT in formats if formats else is_delta(spark)
        return is_format or _in_catalog(spark, statement.targets[0].name)
    if isinstance(name, ComputedName):
        return True  # the name is computed later
    return find_insert_location(spark, name) is not None


def _in_catalog(spark: SparkSession, name: TableReference) -> bool:
    """Return whether a table belongs to a catalog that makes Delta tables by default."""
    return isinstance(name, TableName) and find_identifier(spark, name.parts) is not None


def _of_another_catalog(name: TableName) -> UnsupportedError:
    return UnsupportedError(Message.OPERATION_NOT_ALLOWED_OTHER_CATALOG, name=str(name))


def _clone_in_catalog(name: TableName) -> UnsupportedError:
    return UnsupportedError(Message.OPERATION_NOT_ALLOWED_CLONE_IN_CATALOG, name=str(name))


def create_or_insert(
    spark: SparkSession, statement: SparkParsedStatement, *, text: str, views: TemporaryViews
) -> DataFrame | None:
    """Execute a statement; None if it concerns no Delta table.

    A query inside may name tables by path.
    """
    named = StatementText.of(spark, statement, text, views)
    planned = named.read()
    match planned:
        case StatedTable():
            done = create(spark, planned, text=named)
        case InsertInto():
            done = insert(spark, (planned,), text=named)
        case SeveralInserts(inserts):
            done = insert(spark, inserts, text=named)
        case None:
            return None
        case _:
            assert_never(planned)
    return no_rows(spark) if done else None


_CONVERTED = frozenset({"parquet", "iceberg"})
"""Formats of tables that `CONVERT TO DELTA` converts."""


def clone(spark: SparkSession, statement: CloneStatement) -> DataFrame:
    """Execute ``SHALLOW CLONE`` and return its counts.

    Raises:
        TableNotFoundError: there is no Delta table to clone, or none to replace.
        InvalidRequestError: the target exists.
        UnsupportedError: the clone is a deep one, or its source is of another format.
    """
    name = resolve_name(spark, statement.source)
    source = _source(spark, name, statement.state)
    target = resolve_name(spark, statement.target)
    request = CloneRequest(
        shallow=statement.shallow,
        replace=statement.replaces,
        properties=statement.properties,
        source_name=find_catalog_name(spark, name),
    )
    mode = CreateMode.of(
        creates=statement.creates,
        replaces=statement.replaces,
        if_not_exists=statement.if_not_exists,
    )
    if target.path is None:
        if find_identifier(spark, target.parts) is not None:
            raise _clone_in_catalog(target)
        entry = entry_name(spark, target.parts)
        if entry is None:
            raise _of_another_catalog(target)
        location = statement.location
        done = clone_registered(spark, source, entry, request, mode=mode, location=location)
    else:
        done = _clone_to_path(spark, source, target.path, statement, request)
    return clone_row(spark, source if done else None)


def _clone_to_path(
    spark: SparkSession,
    source: Snapshot,
    path: str,
    statement: CloneStatement,
    request: CloneRequest,
) -> bool:
    log = open_log(spark, path)
    location = statement.location
    if location is not None and not log.is_at(location):
        raise InvalidRequestError(Message.CLONE_AMBIGUOUS_TARGET, location=location, path=path)
    exists = log.exists()
    if exists and statement.if_not_exists:
        return False
    if not exists and not statement.creates:
        raise nothing_to_replace(f"delta.`{path}`")
    clone_table(spark, source, log, request)
    return True


def _source(spark: SparkSession, name: TableName, state: TimeTravel | None) -> Snapshot:
    try:
        log = find_log(spark, name)
    except TableNotFoundError as missing:
        provider = "view" if is_view(spark, name) else find_other_format(spark, name)
        if provider is None:
            raise
        raise _unsupported_source(name, provider) from missing
    if state is None:
        return log.snapshot()
    return snapshot_of(spark, log, version=state.version, timestamp=state.timestamp)


def _unsupported_source(name: TableName, provider: str) -> UnsupportedError:
    converts = provider in _CONVERTED
    way_out = f", or make it a Delta table where it is: CONVERT TO DELTA {name}" if converts else ""
    return UnsupportedError(
        Message.CLONE_UNSUPPORTED_SOURCE, way_out=way_out, name=str(name), format=provider
    )


def create_like(spark: SparkSession, statement: LikeStatement, *, text: str) -> DataFrame | None:
    """Execute ``LIKE`` where the new table is a Delta table; None otherwise.

    Raises:
        pyspark.errors.ParseException: the text is wrong; the message has the position.
        TableNotFoundError: there is no Delta table at the source's path.
        InvalidRequestError: the target exists, or the definition is invalid.
    """
    target = resolve_name(spark, statement.target)
    if statement.provider is not None and not is_made_as_delta(
        spark, target.parts, statement.provider
    ):
        return None
    name = resolve_name(spark, statement.source)
    location = find_location(spark, name)
    if location is None and statement.provider is None:
        return None
    require_parsable(spark, without_changes_clauses(text))
    if location is not None:
        source = require_table(spark, location, name).snapshot()
        definition = definition_like(source, statement.properties)
    else:
        definition = _definition_of(spark, name, statement.properties)
    exists = CreateMode.CREATE_IF_NOT_EXISTS if statement.if_not_exists else CreateMode.CREATE
    if target.path is not None:
        create_table(spark, open_log(spark, target.path), definition, mode=exists)
        return no_rows(spark)
    entry = creation_name(spark, target.parts)
    if entry is None:
        raise _of_another_catalog(target)
    table = NewTable(name=entry, location=statement.location, definition=definition)
    define_registered(spark, table, mode=exists)
    return no_rows(spark)


def _definition_of(
    spark: SparkSession, name: TableName, properties: Mapping[str, str]
) -> TableDefinition:
    """Return the definition of a table of another format: columns and partitioning."""
    quoted = quote_name(name.parts)
    columns = stored_columns(without_table_metadata(struct_as_nullable(spark.table(quoted).schema)))
    listed = spark.catalog.listColumns(quoted)
    return TableDefinition(
        columns=columns,
        partition_columns=tuple(column.name for column in listed if column.isPartition),
        properties=properties,
    )
