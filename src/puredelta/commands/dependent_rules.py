"""Rules of a table that read a column (M-55), and security checks of stored expressions.

Constraints and generation expressions are SQL text that names columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Action, Metadata, Protocol
from puredelta.protocol.features.feature_usage import GENERATION_EXPRESSION
from puredelta.protocol.features.properties import CONSTRAINT_PREFIX
from puredelta.protocol.schema.expression_names import referenced_paths
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.traversal import shape
from puredelta.protocol.schema.types import VOID, ArrayType, DataType, MapType, StructType
from puredelta.protocol.table.stored_expressions import (
    find_reflection,
    reaches_out,
    stored_expressions,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import ALLOW_REFLECTION

_Path = tuple[str, ...]


def require_same_types(config: TableConfig, update: StructType) -> None:
    """Refuse other types for columns that a CHECK constraint or a generated column reads.

    ``update`` may lack columns and have new ones. Any difference counts, a narrower type as
    well, as in delta-spark.

    Raises:
        InvalidRequestError: names the column and the rules.
    """
    constraints = {
        f"{CONSTRAINT_PREFIX}{name}": sql for name, sql in config.check_constraints.items()
    }
    if not constraints and not config.generated_columns:
        return
    for path, before, after in _changes(config.schema, update, ()):
        for message, rules in (
            (Message.CONSTRAINT_DATA_TYPE_MISMATCH, constraints),
            (Message.GENERATED_COLUMNS_DATA_TYPE_MISMATCH, config.generated_columns),
        ):
            if dependent := _reading(path, rules, config.schema):
                types = [simple_string(t).upper() for t in (before, after)]
                listed = "\n".join(f"{name} -> {sql}" for name, sql in dependent.items())
                raise InvalidRequestError(
                    message,
                    rules=listed,
                    column_name=".".join(path),
                    column_type=types[0],
                    data_type=types[1],
                )


def require_unreferenced(config: TableConfig, path: _Path) -> None:
    """Check that no rule of the table reads a column, its parents or its nested fields.

    A column's own generation expression does not count.

    Raises:
        InvalidRequestError: CONSTRAINT_DEPENDENT_COLUMN_CHANGE,
            GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE.
    """
    name = ".".join(path)
    constraints = _reading(path, config.check_constraints, config.schema)
    if constraints:
        raise InvalidRequestError(
            Message.CONSTRAINT_DEPENDENT_COLUMN_CHANGE,
            constraints=_listed(constraints),
            column=name,
        )
    generated = {
        field.name: str(field.metadata[GENERATION_EXPRESSION])
        for field in config.schema.fields
        if GENERATION_EXPRESSION in field.metadata and (field.name,) != path
    }
    dependent = _reading(path, generated, config.schema)
    if dependent:
        raise InvalidRequestError(
            Message.GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE,
            dependent=_listed(dependent),
            column=name,
        )


def _reading(path: _Path, rules: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the rules that read a column, its parents or its nested fields."""
    return {
        name: sql
        for name, sql in rules.items()
        if any(_overlap(path, read) for read in referenced_paths(sql, schema))
    }


def _overlap(one: _Path, other: _Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _listed(expressions: Mapping[str, str]) -> str:
    return "; ".join(f"{name} -> {sql}" for name, sql in expressions.items())


def _changes(
    before: DataType, after: DataType, path: _Path
) -> Iterator[tuple[_Path, DataType, DataType]]:
    """Yield columns and struct fields of different type; a field of one side only is no change."""
    match before, after:
        case StructType(fields), StructType():
            for field in fields:
                if (new := after.find_ignoring_case(field.name)) is not None:
                    yield from _changes(field.type, new.type, (*path, field.name))
        case ArrayType(element), ArrayType(new_element):
            if any(_changes(element, new_element, path)):
                yield path, before, after
        case MapType(key, value), MapType(new_key, new_value):
            if any(_changes(key, new_key, path)) or any(_changes(value, new_value, path)):
                yield path, before, after
        case _:
            if after != VOID and shape(before) != shape(after):
                yield path, before, after


def require_harmless(config: TableConfig, settings: Mapping[str, str]) -> None:
    """Refuse a table whose stored expressions access more than the row that is written.

    Call it before any of them reaches Spark: the analyzer evaluates some.
    """
    _require_harmless(stored_expressions(config), settings)


def require_harmless_change(
    actions: Iterable[Action], existing: Snapshot | None, settings: Mapping[str, str]
) -> None:
    """Refuse to store an unsafe expression; existing ones may stay."""
    given = list(actions)
    metadata = next((a for a in given if isinstance(a, Metadata)), None)
    protocol = next((a for a in given if isinstance(a, Protocol)), None)
    protocol = protocol or (None if existing is None else existing.protocol)
    if metadata is None or protocol is None:
        return
    known = frozenset(() if existing is None else stored_expressions(existing.config).values())
    after = stored_expressions(TableConfig.of(protocol, metadata))
    _require_harmless({k: sql for k, sql in after.items() if sql not in known}, settings)


def _require_harmless(expressions: Mapping[str, str], settings: Mapping[str, str]) -> None:
    for what, sql in expressions.items():
        if reaches_out(sql):
            raise InvalidRequestError(
                Message.UNSUPPORTED_EXPRESSION_QUERY, what=what, expression=sql
            )
        function = None if ALLOW_REFLECTION.read(settings) else find_reflection(sql)
        if function is not None:
            raise InvalidRequestError(
                Message.UNSUPPORTED_EXPRESSION_REFLECTION,
                what=what,
                allow_reflection_key=ALLOW_REFLECTION.key,
                expression=sql,
                function=function,
            )
