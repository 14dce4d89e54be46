"""Rewrites that remove column mapping or type widening from a table.

One commit removes every file, adds the new ones, and removes names and ids from the schema. So
in every version files and schema agree, and a concurrent append conflicts: its files would use
the old names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.commands.alter.change import commit_change
from puredelta.commands.command import Command, next_command
from puredelta.commands.compaction import (
    Optimization,
    OptimizeSettings,
    described_as_wanted,
    require_all_rows,
)
from puredelta.commands.finish import discarded_on_failure, finish
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.commit.commit_request import CommitRequest, changed_definition
from puredelta.log.commit.row_ids import PRESERVED_TAG
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.files.parquet_footer import map_footers, read_end_of
from puredelta.log.files.value_order import stored_type
from puredelta.log.maintenance.compaction_plan import plan_rewrite
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import DomainMetadata, Metadata
from puredelta.protocol.actions.operations import REMOVE_COLUMN_MAPPING, drop_type_changes, reorg
from puredelta.protocol.features.column_mapping import (
    MAX_COLUMN_ID,
    field_id,
    physical_name,
    without_mapping,
)
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.features.properties import ColumnMappingMode, TableProperties
from puredelta.protocol.schema.schema_json import encode_schema, parse_schema
from puredelta.protocol.schema.traversal import fields_by_path, map_fields
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.protocol.table.clustering import clustering_columns, clustering_domain
from puredelta.protocol.table.iceberg_compat import require_iceberg_rules
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.protocol.table.schema_checks import INVALID_CHARACTERS
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session import delta_conf
from puredelta.spark.write.bin_rewrite import BinOptions, rewrite_bins
from puredelta.spark.write.written_files import WriteResult, discard
from puredelta.store.base import Store

MAPPING_MODE = "delta.columnMapping.mode"
FILE_SIZE_MAX = 128 * 1024 * 1024
"""Size limit of combined small files, so that a large table keeps many tasks busy."""


def remove_column_mapping(command: Command, *, keeps_property: bool) -> int:
    """Rewrite all rows under their columns' own names; return the version made.

    Rows keep their ids, deleted rows are left out, and the commit counts as no change of data.
    ``keeps_property``: the mode is then set to ``none``; otherwise it is unset.
    """
    snapshot = command.snapshot
    delta_conf.REFUSED_BY_MAPPING_REMOVAL.require_defaults(command.session.settings)
    definition = _without_mapping(snapshot.config, keeps_property=keeps_property)
    settings = OptimizeSettings.parse(command.session.settings)
    size = min(settings.limits.max_file_size, FILE_SIZE_MAX)
    old = list(snapshot.files.adds())
    partitioning = Partitioning.of(snapshot.config, command.session.time_zone)
    bins = plan_rewrite(old, replace(settings.limits, max_file_size=size), partitioning)
    written = WriteResult.nothing()
    if bins:
        written = rewrite_bins(
            command.spark,
            command.log.store,
            snapshot,
            bins,
            BinOptions(into=described_as_wanted(command, definition)),
        )
    discard_files = partial(discard, written, command.log.store)
    with discarded_on_failure(discard_files):
        if delta_conf.NUM_RECORDS_VALIDATION.flag(command.session.settings):
            require_all_rows(bins, written.num_rows)
        command.transaction.read_files(None, snapshot.files)
        request = CommitRequest(
            actions=(
                *changed_definition(snapshot.config, definition),
                *(replace(add, data_change=False) for add in written.adds),
                *(remove_file(add, data_change=False) for add in old),
                *_clustering(snapshot, definition),
            ),
            operation=REMOVE_COLUMN_MAPPING,
            metrics={"numOutputBytes": written.size_bytes},
            is_blind_append=False,
            tags={PRESERVED_TAG: "true"} if tracked_columns(snapshot.config) else None,
        )
    return finish(command, request, discard=discard_files).version


def has_mapping(metadata: Metadata) -> bool:
    """Tell whether files use other names than the table's columns, or may in future."""
    mode = TableProperties.of(metadata.configuration).column_mapping_mode
    schema = parse_schema(metadata.schema_string)
    return mode is not ColumnMappingMode.NONE or without_mapping(schema) != schema


def _without_mapping(config: TableConfig, *, keeps_property: bool) -> TableConfig:
    _require_plain_names(config)
    configuration = {
        key: value
        for key, value in config.metadata.configuration.items()
        if key not in (MAPPING_MODE, MAX_COLUMN_ID)
    }
    if keeps_property:
        configuration[MAPPING_MODE] = ColumnMappingMode.NONE.value
    metadata = replace(
        config.metadata,
        schema_string=encode_schema(without_mapping(config.schema)),
        configuration=configuration,
    )
    definition = TableConfig.of(config.protocol, metadata)
    require_iceberg_rules(config, definition)
    return definition


def _require_plain_names(config: TableConfig) -> None:
    wrong = [
        path
        for path, field in fields_by_path(config.schema)
        if set(field.name) & set(INVALID_CHARACTERS)
    ]
    if wrong:
        raise InvalidRequestError(
            Message.INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING,
            invalid_characters=INVALID_CHARACTERS,
            wrong=", ".join(wrong),
            columns=tuple(wrong),
        )


def _clustering(snapshot: Snapshot, definition: TableConfig) -> tuple[DomainMetadata, ...]:
    """Return the clustering columns under the names that files use from now on."""
    columns = clustering_columns(snapshot.config, snapshot.domain_metadata)
    return (clustering_domain(definition, columns),) if columns else ()


def remove_type_widening(command: Command) -> bool:
    """Rewrite files with other types than the table's, and remove the record of type changes.

    Returns whether anything had to be done. Only a table with a record of changes can have such
    files: their footers are read then, once each. Files added meanwhile are checked, too.
    """
    seen: set[str] = set()
    while True:
        command = next_command(command, Capability.MERGE)
        config, files = command.snapshot.config, command.snapshot.files
        if not widened_fields(config):
            return bool(seen)
        paths = files.rows["path"]
        unseen = files.select(pc.invert(pc.is_in(paths, pa.array(sorted(seen), paths.type))))
        narrow = _narrow_files(unseen, config, command.log.store)
        seen.update(unseen.rows["path"].to_pylist())
        if not len(narrow):
            _forget_changes(command)
            return True
        limits = OptimizeSettings.parse(command.session.settings).limits
        rewriting = Optimization(
            command=command,
            bins=plan_rewrite(
                narrow.adds(), limits, Partitioning.of(config, command.session.time_zone)
            ),
            operation=reorg(),
            num_considered=len(unseen),
        )
        seen.update(FileTable.of(rewriting.run().added).rows["path"].to_pylist())


def widened_fields(config: TableConfig) -> list[tuple[str, StructField]]:
    """Return the fields with a record of changed types, by their dotted paths."""
    return [item for item in fields_by_path(config.schema) if TYPE_CHANGES in item[1].metadata]


def _forget_changes(command: Command) -> None:
    snapshot = command.snapshot
    config = snapshot.config
    schema = map_fields(config.schema, _without_changes)
    metadata = replace(config.metadata, schema_string=encode_schema(schema))
    command.transaction.read_files(None, snapshot.files)
    commit_change(
        command,
        TableConfig.of(config.protocol, metadata),
        operation=drop_type_changes(widened_fields(config)),
    )


def _without_changes(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key != TYPE_CHANGES}
    return replace(field, metadata=kept)


def _narrow_files(files: FileTable, config: TableConfig, store: Store) -> FileTable:
    adds = list(files.adds())
    found = map_footers(
        range(len(adds)),
        lambda _, footer: holds_other_types(footer, config),
        read_end=lambda n, num_bytes: read_end_of(adds[n], store, num_bytes),
        name=lambda n: adds[n].path,
    )
    return files.take([n for n, other in enumerate(found) if other])


def holds_other_types(footer: pq.FileMetaData, config: TableConfig) -> bool:
    """Tell whether a widened column has another type in a file than in the table."""
    return _fields_differ(list(footer.schema.to_arrow_schema()), config.data_schema, config)


def _fields_differ(stored: Sequence[pa.Field], schema: StructType, config: TableConfig) -> bool:
    mode = config.column_mapping
    if mode is ColumnMappingMode.ID:
        by_id = {_stored_id(field): field.type for field in stored}
        types = [by_id.get(field_id(field)) for field in schema.fields]
    else:
        by_name = {field.name: field.type for field in stored}
        types = [by_name.get(physical_name(field, mode)) for field in schema.fields]
    return any(
        _differs(kind, field.type, config, widened=TYPE_CHANGES in field.metadata)
        for kind, field in zip(types, schema.fields, strict=True)
        if kind is not None
    )


def _stored_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if text is None else int(text)


def _differs(stored: pa.DataType, kind: DataType, config: TableConfig, *, widened: bool) -> bool:
    """Compare one type; ``widened``: the field has a record, of this type or of a part of it."""
    match kind:
        case StructType() if pa.types.is_struct(stored):
            inner = [stored.field(n) for n in range(stored.num_fields)]
            return _fields_differ(inner, kind, config)
        case ArrayType(element) if pa.types.is_list(stored):
            return _differs(stored.value_type, element, config, widened=widened)
        case MapType(key, value) if pa.types.is_map(stored):
            pairs = ((stored.key_type, key), (stored.item_type, value))
            return any(_differs(part, of, config, widened=widened) for part, of in pairs)
        case PrimitiveType() | DecimalType():
            return widened and stored != stored_type(kind)
        case _:
            return True  # not stored as Spark stores the type
