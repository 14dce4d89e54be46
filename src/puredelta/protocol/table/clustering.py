"""Clustering columns (domain ``delta.clustering``) and Z-cubes (section "Clustered Table").

The domain uses physical names, users use logical names. This module translates both ways, and
checks which columns may cluster a table.

The protocol says that ``clusteringProvider`` names who clustered a file (section "Clustered
Table"). Which files belong together, and by which columns, is in tags of delta-spark's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from puredelta.errors import CorruptTableError, InvalidRequestError, Message
from puredelta.protocol.actions.actions import Add, DomainMetadata
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.schema.schema_json import parse_json, simple_string
from puredelta.protocol.schema.traversal import find_fields
from puredelta.protocol.schema.types import (
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.protocol.table.stats import indexed_columns
from puredelta.protocol.table.table_config import TableConfig

CLUSTERING = "clustering"
"""The table feature."""
CLUSTERING_DOMAIN = "delta.clustering"
COLUMNS_MAX = 4

ColumnPath = tuple[str, ...]

_SKIPPABLE = frozenset(
    ("byte", "short", "integer", "long", "float", "double", "string", "date", "timestamp")
) | {"timestamp_ntz"}


def clustering_columns(
    config: TableConfig, domains: Mapping[str, DomainMetadata]
) -> tuple[ColumnPath, ...]:
    """Return the logical paths of the clustering columns; empty if there are none.

    Raises:
        CorruptTableError: the domain cannot be read, or a column of it does not exist.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None or domain.removed:
        return ()
    try:
        paths = parse_json(domain.configuration)["clusteringColumns"]
        return tuple(_logical_path(config, tuple(path)) for path in paths)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            Message.LOG_CORRUPTED_CLUSTERING_COLUMNS,
            clustering_domain=CLUSTERING_DOMAIN,
            configuration=domain.configuration,
            error=error,
        ) from error


def clustering_domain(config: TableConfig, columns: Sequence[ColumnPath]) -> DomainMetadata:
    """Return the action that makes these columns, logical paths, the clustering columns.

    >>> clustering_domain(config, [("s", "x")]).configuration  # doctest: +SKIP
    '{"clusteringColumns":[["s","x"]],"domainName":"delta.clustering"}'
    """
    paths = [list(config.physical_path(path)) for path in columns]
    text = json.dumps(
        {"clusteringColumns": paths, "domainName": CLUSTERING_DOMAIN},
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=text)


def resolve_clustering_columns(
    config: TableConfig, columns: Sequence[ColumnPath]
) -> tuple[ColumnPath, ...]:
    """Find columns in the schema, ignoring case, and check that they may cluster the table.

    Raises:
        InvalidRequestError: there are too many (CLUSTER_BY_INVALID_NUM_COLUMNS), one is
            unknown (COLUMN_NOT_FOUND_IN_SCHEMA), named twice (DUPLICATE_COLUMNS_FOUND), of a
            type without statistics (CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED), or not
            among the columns that get statistics (CLUSTERING_COLUMN_MISSING_STATS).
    """
    if len(columns) > COLUMNS_MAX:
        raise InvalidRequestError(
            Message.CLUSTER_BY_INVALID_NUM_COLUMNS,
            columns_max=COLUMNS_MAX,
            columns_count=len(columns),
            columns=tuple(map(".".join, columns)),
        )
    found = [_find(config.schema, path) for path in columns]
    _require_distinct([path for path, _ in found])
    _require_skippable(found)
    _require_statistics(config, [path for path, _ in found])
    return tuple(path for path, _ in found)


def _find(schema: StructType, wanted: ColumnPath) -> tuple[ColumnPath, DataType]:
    fields = find_fields(schema, wanted, ignores_case=True)
    if not fields:
        raise InvalidRequestError(
            Message.COLUMN_NOT_FOUND_IN_SCHEMA_CLUSTERING,
            schema=simple_string(schema),
            column=".".join(wanted),
        )
    return tuple(field.name for field in fields), fields[-1].type


def _require_distinct(paths: Sequence[ColumnPath]) -> None:
    twice = sorted(".".join(path) for path, count in Counter(paths).items() if count > 1)
    if twice:
        raise InvalidRequestError(
            Message.DUPLICATE_COLUMNS_FOUND_CLUSTERING, twice=", ".join(twice), columns=tuple(twice)
        )


def _require_skippable(found: Sequence[tuple[ColumnPath, DataType]]) -> None:
    wrong = {".".join(path): simple_string(kind) for path, kind in found if not _skippable(kind)}
    if wrong:
        listed = ", ".join(f"{name} : {kind.upper()}" for name, kind in wrong.items())
        raise InvalidRequestError(
            Message.CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED, listed=listed, columns=tuple(wrong)
        )


def _skippable(kind: DataType) -> bool:
    return isinstance(kind, DecimalType) or (
        isinstance(kind, PrimitiveType) and kind.name in _SKIPPABLE
    )


def _require_statistics(config: TableConfig, paths: Sequence[ColumnPath]) -> None:
    indexed = indexed_columns(config.data_schema, config.properties)
    missing = [".".join(path) for path in paths if path not in indexed]
    if missing:
        raise InvalidRequestError(
            Message.CLUSTERING_COLUMN_MISSING_STATS,
            missing=", ".join(missing),
            indexed=", ".join(".".join(path) for path in indexed),
            columns=tuple(missing),
        )


def _logical_path(config: TableConfig, physical: ColumnPath) -> ColumnPath:
    path: ColumnPath = ()
    level: DataType = config.schema
    for name in physical:
        field = _field_stored_as(level, name, config)
        path, level = (*path, field.name), field.type
    return path


def _field_stored_as(level: DataType, name: str, config: TableConfig) -> StructField:
    fields = level.fields if isinstance(level, StructType) else ()
    for field in fields:
        if physical_name(field, config.column_mapping) == name:
            return field
    raise KeyError(name)


LIQUID = "liquid"
"""The provider whose way of clustering delta-spark and this library share."""
_ID, _COLUMNS = "ZCUBE_ID", "ZCUBE_ZORDER_BY"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCube:
    """One run of clustering."""

    id: str
    columns: tuple[str, ...]
    """Logical names, as `column_name` spells them."""

    @property
    def tags(self) -> dict[str, str]:
        """The tags of each of its files."""
        columns = json.dumps(self.columns, separators=(",", ":"), ensure_ascii=False)
        return {_ID: self.id, _COLUMNS: columns}


def find_z_cube(add: Add) -> ZCube | None:
    """Return the cube that a file belongs to, ``None`` if its tags name none.

    >>> cube = ZCube(id="1", columns=("a", "s.x"))
    >>> file = Add(
    ...     path="f", partition_values={}, size_bytes=1, modified_ms=0, data_change=False,
    ...     tags=cube.tags,
    ... )
    >>> find_z_cube(file) == cube
    True
    """
    tags = add.tags or {}
    number, columns = tags.get(_ID), tags.get(_COLUMNS)
    if number is None or columns is None:
        return None
    try:
        names = parse_json(columns)
    except ValueError:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return ZCube(id=number, columns=tuple(names))


def column_name(path: Sequence[str]) -> str:
    """Return the name of a column, or of a field in structs, as delta-spark spells it.

    >>> column_name(("s", "odd.name"))
    's.`odd.name`'
    """
    return ".".join(f"`{part}`" if "." in part else part for part in path)
