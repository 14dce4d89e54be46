"""Writes of a DataFrame into a table: create, append, overwrite, in one commit.

The order is part of the contract: first all checks that can refuse the write, then one Spark job
that writes files that no version names yet, then one commit that adds them to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from puredelta.commands.command import Command, command_on
from puredelta.commands.dml.spec import SOURCE, ReplaceBy
from puredelta.commands.new_table import (
    NOTHING_BUT_COLUMNS,
    NewTableProperties,
    plan_new_table,
)
from puredelta.commands.schema_change import (
    SchemaChange,
    config_for_rows,
    require_storable_types,
    resolve_columns,
)
from puredelta.commands.write.complete_rows import require_no_explicit_identity
from puredelta.commands.write.options import SaveMode, WriteOptions
from puredelta.commands.write.planned_write import (
    PlannedWrite,
    WriteOutcome,
    with_write_settings,
    write_capability,
)
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.commit.commit_checks import require_removable
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import Operation, WriteMode, write
from puredelta.protocol.features.property_checks import checked_properties
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.schema_checks import require_partition_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.bound_columns import outer_alias, under_alias
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.delta_conf import ALLOW_ARBITRARY_PROPERTIES
from puredelta.spark.session.names import require_no_helper_names
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import (
    from_spark,
    quoted,
    struct_as_nullable,
    without_table_metadata,
)

__all__ = ["WriteOutcome", "WriteRequest", "columns_of", "write_table"]

_RECORDED_MODE = {
    SaveMode.ERROR: WriteMode.ERROR_IF_EXISTS,
    SaveMode.APPEND: WriteMode.APPEND,
    SaveMode.OVERWRITE: WriteMode.OVERWRITE,
    SaveMode.IGNORE: WriteMode.IGNORE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """Further arguments of a write, beside its rows."""

    mode: SaveMode = SaveMode.ERROR
    partition_by: Sequence[str] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    created: NewTableProperties = NOTHING_BUT_COLUMNS
    """For a table that this write creates; an existing one keeps its own."""
    record: Callable[[TableConfig], Operation] | None = None
    """The operation in the history, if not WRITE."""
    check: Callable[[DataFrame], DataFrame] | None = None
    """Called with the rows after all other checks; returns the rows to write."""
    needs_partitions: bool = False
    """Whether the rows must have the columns that partition the table, as those of a DataFrame's
    writer. Otherwise a missing value is NULL. A default or a generated value serves in any case."""


def write_table(
    rows: DataFrame, log: TableLog, request: WriteRequest = WriteRequest()
) -> WriteOutcome:
    """Write ``rows`` into the table at ``log``, which is created if it does not exist.

    Runs one Spark job, none if there is nothing to do; another one if values of identity
    columns are to be generated. An append or overwrite without effect commits nothing, and
    neither does a write that its application (``txnAppId``, ``txnVersion``) has done before.
    With ``replaceWhere`` or ``partitionOverwriteMode=dynamic`` an overwrite replaces a part of
    the table.
    """
    planned = plan_write(rows, log, request)
    return WriteOutcome(version=None) if planned is None else planned.run()


def plan_write(rows: DataFrame, log: TableLog, request: WriteRequest) -> PlannedWrite | None:
    """Check and plan a write; None if there is nothing to do. Runs no Spark job.

    Raises the errors of `write_table` that occur before it writes.
    """
    mode = request.mode
    require_no_helper_names(rows.columns)
    existing = log.find_snapshot()
    if existing is not None and mode is SaveMode.IGNORE:
        return None
    if existing is not None and mode is SaveMode.ERROR:
        raise InvalidRequestError(Message.TABLE_ALREADY_EXISTS, path=log.root_uri)
    command = command_on(rows.sparkSession, log, existing, write_capability(mode))
    options = WriteOptions.parse(command.session.settings, request.options)
    config = _planned_config(command, columns_of(rows), request, options)
    options.require_allowed(config.partition_columns, overwrites=mode is SaveMode.OVERWRITE)
    command = with_write_settings(command, options)
    if options.replace_by is not None and mode is SaveMode.OVERWRITE:
        known = config if existing is None else existing.config
        by = _resolved(options.replace_by, rows, known, command.session)
        options = replace(options, replace_by=by)
    bound = command.bind(rows)
    if request.check is not None and not command.already_committed():
        bound = request.check(bound)
    return PlannedWrite(
        rows=bound,
        command=command,
        config=config,
        mode=mode,
        options=options,
        operation=_operation(request, options, config)
        if request.record is None
        else request.record(config),
    )


def _resolved(
    by: ReplaceBy, rows: DataFrame, config: TableConfig, session: SessionInfo
) -> ReplaceBy:
    """Return a comparison with the alias that the new rows have; runs no job.

    Raises:
        InvalidRequestError: the table or the rows have no such column
            (UNRESOLVED_REPLACE_USING_COLUMN), or a condition names none or two
            (REPLACE_ON_UNRESOLVED_COLUMNS, REPLACE_ON_AMBIGUOUS_COLUMNS).
    """
    if by.condition is not None:
        by = replace(by, source_alias=outer_alias(rows, default=SOURCE))
        _require_resolved(by, rows, config)
        return by
    for relation, names in (("table", config.schema.names), ("query", rows.columns)):
        known = {_folded(name, session) for name in names}
        for name in by.columns:
            if _folded(name, session) not in known:
                raise InvalidRequestError(
                    Message.UNRESOLVED_REPLACE_USING_COLUMN,
                    column=quoted(name),
                    relation=relation,
                    columns=", ".join(map(quoted, names)),
                )
    return by


_REPLACE_ON_ERRORS = {
    "UNRESOLVED_COLUMN": (Message.REPLACE_ON_UNRESOLVED_COLUMNS, "objectName"),
    "AMBIGUOUS_REFERENCE": (Message.REPLACE_ON_AMBIGUOUS_COLUMNS, "name"),
}
"""By the class of Spark: the error, and Spark's parameter with the name of the column."""


def _require_resolved(by: ReplaceBy, rows: DataFrame, config: TableConfig) -> None:
    """Let Spark analyze a condition as a filter over the table and the new rows."""
    table = table_identity(rows.sparkSession, config.schema).alias(by.target_alias)
    try:
        _ = table.crossJoin(under_alias(rows, by.source_alias)).where(by.text).schema
    except AnalysisException as error:
        known = _REPLACE_ON_ERRORS.get((error.getCondition() or "").partition(".")[0])
        if known is None:
            raise
        message, parameter = known
        names = (error.getMessageParameters() or {}).get(parameter, by.text)
        raise InvalidRequestError(message, columns=names) from error


def _folded(name: str, session: SessionInfo) -> str:
    return name if session.case_sensitive else name.lower()


def _planned_config(
    command: Command, schema: StructType, request: WriteRequest, options: WriteOptions
) -> TableConfig:
    """Return the new or existing table, if rows of the schema are allowed in it."""
    existing, case_sensitive = command.existing, command.session.case_sensitive
    if existing is None:
        created, settings = request.created, command.session.settings
        named = checked_properties(
            created.properties, allow_arbitrary=ALLOW_ARBITRARY_PROPERTIES.flag(settings)
        )
        return plan_new_table(
            settings,
            schema,
            resolve_columns(request.partition_by, schema, case_sensitive=case_sensitive),
            wanted=replace(created, properties={**options.properties, **named}),
        )
    overwrites = request.mode is SaveMode.OVERWRITE
    if overwrites and len(existing.files):
        require_removable(existing.config)
    require_no_explicit_identity(schema, existing.config)
    change = SchemaChange(
        merge=options.change.merge,
        overwrite=options.change.overwrite and overwrites and not options.replaces_rows,
    )
    if request.needs_partitions and not change.overwrite:
        filled = {*existing.config.generated_columns, *existing.config.column_defaults}
        wanted = [name for name in existing.config.partition_columns if name not in filled]
        require_partition_columns(schema, wanted)
    return config_for_rows(
        existing.config,
        schema,
        request.partition_by,
        change=change,
        case_sensitive=case_sensitive,
    )


def _operation(request: WriteRequest, options: WriteOptions, config: TableConfig) -> Operation:
    overwrites = request.mode is SaveMode.OVERWRITE
    return write(
        _RECORDED_MODE[request.mode],
        partition_by=request.partition_by,
        replaced=options.replaced if overwrites else None,
        merges_schema=options.change.merge,
        overwrites_schema=options.change.overwrite,
        overwrites_partitions=overwrites
        and options.replaces_partitions
        and bool(config.partition_columns),
    )


def columns_of(rows: DataFrame) -> StructType:
    """Return the rows' schema as a table's: everything nullable (as delta-spark).

    Raises:
        InvalidRequestError: there is no column, or one of a type no table can have.
    """
    plain = without_table_metadata(struct_as_nullable(rows.schema))
    schema = from_spark(plain)
    if not schema.fields:
        raise InvalidRequestError(Message.EMPTY_DATA)
    require_storable_types(schema)
    return schema
