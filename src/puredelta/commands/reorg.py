"""REORG TABLE ... APPLY (PURGE): removal of deleted rows and dropped columns from data files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command, start_command
from puredelta.commands.compaction import Optimization, OptimizeOutcome, OptimizeSettings
from puredelta.commands.optimize import files_where
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.parquet_footer import map_footers, read_end_of
from puredelta.log.maintenance.compaction_plan import plan_rewrite
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import reorg
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructType
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.ui_metrics import shown_in_ui
from puredelta.store.base import Store


def run_reorg(spark: SparkSession, log: TableLog, predicates: Sequence[str] = ()) -> DataFrame:
    """Execute a REORG and return the row ``path, metrics`` of an OPTIMIZE."""
    with shown_in_ui(spark, f"REORG delta.`{log.root_uri}`") as shown:
        outcome = purge(start_command(spark, log, Capability.MERGE), predicates)
        shown.report({"numAddedFiles": len(outcome.added), "numRemovedFiles": len(outcome.removed)})
    return outcome.row(spark)


def purge(command: Command, predicates: Sequence[str] = ()) -> OptimizeOutcome:
    """Rewrite files with a deletion vector, or with columns that the table has dropped.

    Every other file stays. One Spark job writes all files; nothing is committed where there is
    nothing to do. Only a table with column mapping can have dropped columns: their footers are
    read then.
    """
    command.log.require_unmanaged("REORG")
    snapshot = command.snapshot
    considered = files_where(command.spark, snapshot, predicates)
    settings = OptimizeSettings.parse(command.session.settings)
    partitioning = Partitioning.of(snapshot.config, command.session.time_zone)
    wanted = _files_to_purge(considered, snapshot.config, command.log.store)
    return Optimization(
        command=command,
        bins=plan_rewrite(wanted.adds(), settings.limits, partitioning),
        operation=reorg(predicates=predicates),
        num_considered=len(considered),
    ).run()


def _files_to_purge(files: FileTable, config: TableConfig, store: Store) -> FileTable:
    adds = list(files.adds())
    chosen = {n for n, add in enumerate(adds) if add.deletion_vector is not None}
    if config.column_mapping is not ColumnMappingMode.NONE:
        rest = [n for n in range(len(adds)) if n not in chosen]
        drops = map_footers(
            rest,
            lambda _, footer: holds_dropped_columns(footer, config),
            read_end=lambda n, num_bytes: read_end_of(adds[n], store, num_bytes),
            name=lambda n: adds[n].path,
        )
        chosen |= {n for n, holds in zip(rest, drops, strict=True) if holds}
    return files.take(sorted(chosen))


def holds_dropped_columns(footer: pq.FileMetaData, config: TableConfig) -> bool:
    """Tell whether a file has a column, or a field of a struct, that its table lacks."""
    stored = footer.schema.to_arrow_schema()
    return _has_more([stored.field(n) for n in range(len(stored))], config.schema, config)


def _has_more(stored: Sequence[pa.Field], schema: StructType, config: TableConfig) -> bool:
    fields = {physical_name(field, config.column_mapping): field.type for field in schema.fields}
    return any(
        field.name not in fields or _holds_more(field.type, fields[field.name], config)
        for field in stored
    )


def _holds_more(stored: pa.DataType, kind: DataType, config: TableConfig) -> bool:
    match kind:
        case StructType() if pa.types.is_struct(stored):
            inner = [stored.field(n) for n in range(stored.num_fields)]
            return _has_more(inner, kind, config)
        case ArrayType(element) if pa.types.is_list(stored):
            return _holds_more(stored.value_type, element, config)
        case MapType(key, value) if pa.types.is_map(stored):
            pairs = ((stored.key_type, key), (stored.item_type, value))
            return any(_holds_more(inner, of, config) for inner, of in pairs)
        case _:
            return False
