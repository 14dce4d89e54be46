"""Type widening leaves a table: files with narrower types are written anew, and the record goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.commands.alter.change import commit_change
from puredelta.commands.command import Command, next_command
from puredelta.commands.compaction.optimization import Optimization
from puredelta.commands.compaction.settings import OptimizeSettings
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stored_types import stored_type
from puredelta.log.footers.parquet_footer import map_footers, read_end_of
from puredelta.log.maintenance.file_bins import plan_rewrite
from puredelta.protocol.actions.table_operations import drop_type_changes, reorg
from puredelta.protocol.features.column_mapping import field_id, physical_name
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.schema_json import encode_schema
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
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store


def remove_type_widening(command: Command) -> bool:
    """Leave no file with other types than the table's, and no record of changes.

    Returns whether there was anything to do. Only a table with a record of changes can have such
    files: their footers are read then, once each. Files that come meanwhile are looked at, too.

    Raises:
        ConflictError: another writer deleted one of the files, or changed the table.
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
    """Tell whether a column of a file has another type than the table's, where it was widened."""
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
            return True  # stored in another way than Spark does
