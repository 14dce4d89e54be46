"""Column mapping leaves a table: its rows are written anew under the names that users see.

One commit removes every file, adds the new ones, and takes names and ids out of the schema. So
there is no version in which a file and the schema disagree, and a writer that appends meanwhile
conflicts: its files would have the old names inside.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from puredelta.commands.cleanup import discarded_on_failure
from puredelta.commands.command import Command
from puredelta.commands.compaction.optimization import described_as_wanted, require_all_rows
from puredelta.commands.compaction.settings import OptimizeSettings
from puredelta.commands.finish import finish
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.commit.commit_request import CommitRequest, changed_definition
from puredelta.log.commit.row_ids import PRESERVED_TAG
from puredelta.log.files.tombstones import remove_file
from puredelta.log.maintenance.file_bins import plan_rewrite
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import DomainMetadata, Metadata
from puredelta.protocol.actions.table_operations import REMOVE_COLUMN_MAPPING
from puredelta.protocol.features.column_mapping import MAX_COLUMN_ID, without_mapping
from puredelta.protocol.features.properties import ColumnMappingMode, TableProperties
from puredelta.protocol.schema.schema_json import encode_schema, parse_schema
from puredelta.protocol.schema.traversal import fields_by_path
from puredelta.protocol.table.clustering import clustering_columns, clustering_domain
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.protocol.table.schema_checks import INVALID_CHARACTERS
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session import delta_conf
from puredelta.spark.write.bin_rewrite import rewrite_bins
from puredelta.spark.write.written_files import WriteResult, discard

MAPPING_MODE = "delta.columnMapping.mode"
FILE_SIZE_MAX = 128 * 1024 * 1024
"""Small files are written together up to this size; so a large table keeps many tasks busy."""


def remove_column_mapping(command: Command, *, keeps_property: bool) -> int:
    """Write all rows anew under their columns' own names; return the version made.

    Rows keep their ids, deleted rows leave the files, nothing counts as a change of data.
    ``keeps_property``: the mode is then set to ``none``, else it is no longer set.

    Raises:
        InvalidRequestError: a name has characters that files cannot have without mapping
            (INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING).
        ConflictError: another writer added or removed rows, or changed the table. Nothing is left.
        DeltaError: the storage refused, or rows were lost on the way. Nothing is left.
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
            into=described_as_wanted(command, definition),
        )
    discard_files = partial(discard, written, command.log.store)
    with discarded_on_failure(discard_files):
        if delta_conf.NUM_RECORDS_VALIDATION.flag(command.session.settings):
            require_all_rows(bins, [written])
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
    """Tell whether files of a table have other names than its columns, or may get them."""
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
    return TableConfig.of(config.protocol, metadata)


def _require_plain_names(config: TableConfig) -> None:
    wrong = [
        path
        for path, field in fields_by_path(config.schema)
        if set(field.name) & set(INVALID_CHARACTERS)
    ]
    if wrong:
        raise InvalidRequestError(
            f"Found invalid character(s) among {INVALID_CHARACTERS!r} in the column names of your "
            f"schema. Invalid column names: {', '.join(wrong)}. Column mapping cannot be removed "
            "when there are invalid characters in the column names. Please rename the columns to "
            "remove the invalid characters and execute this command again.",
            code=ErrorCode.INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING,
            columns=tuple(wrong),
        )


def _clustering(snapshot: Snapshot, definition: TableConfig) -> tuple[DomainMetadata, ...]:
    """Name the clustering columns as files name them from now on."""
    columns = clustering_columns(snapshot.config, snapshot.domain_metadata)
    return (clustering_domain(definition, columns),) if columns else ()
