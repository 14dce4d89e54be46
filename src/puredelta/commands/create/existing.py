"""Whether an existing table matches a definition, which CREATE OR REPLACE of a path requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from puredelta.commands.create.definition import PlannedTable, TableDefinition
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.features.column_mapping import without_mapping
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructField, StructType
from puredelta.protocol.table.clustering import clustering_columns

_MAPPING = "delta.columnMapping."


def require_same_definition(
    snapshot: Snapshot, table: PlannedTable, definition: TableDefinition
) -> None:
    """Check columns, partitioning, clustering, and properties where the definition has some.

    Raises:
        InvalidRequestError: something differs (CREATE_TABLE_SCHEME_MISMATCH,
            CREATE_TABLE_WITH_DIFFERENT_PARTITIONING, ..._CLUSTERING, ..._PROPERTY).
    """
    config = snapshot.config
    path = snapshot.root_uri
    differences = list(_differences(without_mapping(config.schema), definition.columns, ""))
    if differences:
        raise InvalidRequestError(
            f"The specified schema does not match the existing schema at {path}. Specified: "
            f"{simple_string(definition.columns)}. Existing: {simple_string(config.schema)}. "
            f"Differences: {'; '.join(differences)}. To replace the table, use replace().",
            code=ErrorCode.CREATE_TABLE_SCHEME_MISMATCH,
            path=path,
        )
    if table.config.partition_columns != config.partition_columns:
        raise _differs(
            ErrorCode.CREATE_TABLE_WITH_DIFFERENT_PARTITIONING,
            "partitioning",
            path,
            table.config.partition_columns,
            config.partition_columns,
        )
    clustered = tuple(map(".".join, clustering_columns(config, snapshot.domain_metadata)))
    wanted = tuple(map(".".join, table.clustering_columns))
    if clustered != wanted:
        raise _differs(
            ErrorCode.CREATE_TABLE_WITH_DIFFERENT_CLUSTERING,
            "clustering columns",
            path,
            wanted,
            clustered,
        )
    _require_same_properties(table.own_properties, config.metadata.configuration, path)


def _require_same_properties(
    specified: Mapping[str, str], existing: Mapping[str, str], path: str
) -> None:
    if not specified:
        return
    ours, theirs = _without_mapping(specified), _without_mapping(existing)
    if ours != theirs:
        raise _differs(
            ErrorCode.CREATE_TABLE_WITH_DIFFERENT_PROPERTY,
            "properties",
            path,
            tuple(f"{k}={v}" for k, v in sorted(ours.items())),
            tuple(f"{k}={v}" for k, v in sorted(theirs.items())),
        )


def _without_mapping(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if not key.startswith(_MAPPING)}


def _differs(
    code: ErrorCode, what: str, path: str, specified: tuple[str, ...], existing: tuple[str, ...]
) -> InvalidRequestError:
    return InvalidRequestError(
        f"The specified {what} do not match the existing {what} at {path}. Specified: "
        f"[{', '.join(specified)}]. Existing: [{', '.join(existing)}]. To replace the table, use "
        "replace().",
        code=code,
        path=path,
        specified=specified,
        existing=existing,
    )


def _differences(existing: DataType, specified: DataType, path: str) -> Iterator[str]:
    match (existing, specified):
        case StructType(), StructType():
            yield from _field_differences(existing, specified, path)
        case ArrayType(old, old_nulls), ArrayType(new, new_nulls) if old_nulls == new_nulls:
            yield from _differences(old, new, f"{path}.element")
        case MapType(old_key, old_value, old_nulls), MapType(key, value, nulls) if (
            old_nulls == nulls
        ):
            yield from _differences(old_key, key, f"{path}.key")
            yield from _differences(old_value, value, f"{path}.value")
        case _ if existing != specified:
            yield (
                f"specified type for {path} is {simple_string(specified)}, the existing one "
                f"{simple_string(existing)}"
            )
        case _:
            return


def _field_differences(existing: StructType, specified: StructType, path: str) -> Iterator[str]:
    prefix = f"{path}." if path else ""
    for field in specified.fields:
        if existing.find_ignoring_case(field.name) is None:
            yield f"specified schema has additional field {prefix}{field.name}"
    for field in existing.fields:
        other = specified.find_ignoring_case(field.name)
        if other is None:
            yield f"specified schema is missing field {prefix}{field.name}"
        else:
            yield from _one_field(field, other, prefix + field.name)


def _one_field(existing: StructField, specified: StructField, path: str) -> Iterator[str]:
    if existing.nullable != specified.nullable:
        words = {True: "nullable", False: "non-nullable"}
        yield (
            f"field {path} is {words[specified.nullable]} in specified schema but "
            f"{words[existing.nullable]} in existing schema"
        )
    if dict(existing.metadata) != dict(specified.metadata):
        yield (
            f"specified metadata for field {path} is {dict(specified.metadata)}, the existing "
            f"one {dict(existing.metadata)}"
        )
    yield from _differences(existing.type, specified.type, path)
