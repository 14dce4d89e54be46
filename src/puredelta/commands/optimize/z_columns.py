"""The columns of a ZORDER BY, found in the schema and checked."""

from __future__ import annotations

from collections.abc import Sequence

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.features.properties import parse_columns
from puredelta.protocol.schema.types import DataType, StructField, StructType, is_spatial
from puredelta.protocol.table.stats import indexed_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import Z_ORDER_STATS_CHECK

ColumnPath = tuple[str, ...]


def resolve_z_columns(
    names: Sequence[str],
    config: TableConfig,
    *,
    case_sensitive: bool,
    checks_statistics: bool,
) -> tuple[tuple[ColumnPath, DataType], ...]:
    """Return the paths of columns, or fields of structs, by their names, with their types.

    Raises:
        InvalidRequestError: one partitions the table (ZORDERING_ON_PARTITION_COLUMN), does not
            exist (ZORDERING_COLUMN_DOES_NOT_EXIST), or gets no statistics, so that ordering by
            it would be of no use (ZORDERING_ON_COLUMN_WITHOUT_STATS).
    """
    partitioned = {name.lower() for name in config.partition_columns}
    indexed = indexed_columns(config.data_schema, config.properties)
    found: list[tuple[ColumnPath, DataType]] = []
    without: list[str] = []
    for name in names:
        if name.lower() in partitioned:
            raise InvalidRequestError(
                f"{name} is a partition column. Z-Ordering can only be performed on data columns",
                code=ErrorCode.ZORDERING_ON_PARTITION_COLUMN,
                column=name,
            )
        path, kind = _find(name, config.data_schema, case_sensitive=case_sensitive)
        if is_spatial(kind) or not any(leaf[: len(path)] == path for leaf in indexed):
            without.append(name)
        found.append((path, kind))
    if without and checks_statistics:
        raise InvalidRequestError(
            f"Z-Ordering on [{', '.join(without)}] will be ineffective, because we currently do "
            "not collect stats for these columns. You can disable this check by setting "
            f"SET {Z_ORDER_STATS_CHECK.key} = false",
            code=ErrorCode.ZORDERING_ON_COLUMN_WITHOUT_STATS,
            columns=tuple(without),
        )
    return tuple(found)


def _find(name: str, schema: StructType, *, case_sensitive: bool) -> tuple[ColumnPath, DataType]:
    path: ColumnPath = ()
    level: DataType = schema
    for part in _parts(name):
        field: StructField | None = None
        if isinstance(level, StructType):
            field = level.find(part) if case_sensitive else level.find_ignoring_case(part)
        if field is None:
            raise _missing(name)
        path, level = (*path, field.name), field.type
    return path, level


def _parts(name: str) -> ColumnPath:
    try:
        (path,) = parse_columns(name)
    except ValueError as error:
        raise _missing(name) from error
    return path


def _missing(name: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Z-Ordering column {name} does not exist in data schema.",
        code=ErrorCode.ZORDERING_COLUMN_DOES_NOT_EXIST,
        column=name,
    )
