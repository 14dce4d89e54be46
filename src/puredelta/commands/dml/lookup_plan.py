"""The plan of a lookup of keys: whether workers find the pairs of a statement, and what they hold.

A lookup of keys needs an ON condition with equality of plain columns, with equality of expressions
of one column of the target, or with a column of the target between plain columns of the source;
Arrow must decide all other conditions as Spark does.
It is worth its cost as long as every task can hold the source's keys. Without source rows, as in
an UPDATE or a DELETE, the conditions alone find rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from puredelta.commands.dml.resolve.conditions import range_pair
from puredelta.commands.dml.resolve.resolved_statement import (
    ComputedPair,
    EquiPair,
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedCondition,
    ResolvedStatement,
)
from puredelta.commands.dml.source_texts import SourceTexts
from puredelta.commands.dml.staged_source import ColumnNames
from puredelta.log.files.value_order import stored_type
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.predicates import And, Predicate
from puredelta.protocol.schema.types import (
    DATE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.arrow_predicate import Translation
from puredelta.spark.offload.arrow_values import NotInTableError, value_of
from puredelta.spark.offload.key_lookup import KeyLookup
from puredelta.spark.offload.workers import WorkerMemory
from puredelta.worker.expressions import ALWAYS, Expression, InputColumn, with_columns
from puredelta.worker.lookup.conditions import NO_CLAUSE, ResidualConditions
from puredelta.worker.lookup.lookup_read import is_text
from puredelta.worker.lookup.lookup_request import KeyColumn, Searched
from puredelta.worker.lookup.range_index import KeyRange, covers_max

_ROW_BYTES = 64
"""Bytes of a source row in a task: its key, its position, and the memory of sorting them."""
_VALUE_BYTES = 16
_LISTED_BYTES = 64
"""Bytes of a key's text in Arrow's hash table, beside the text itself."""
_KEY_COPIES = 4
"""Copies of a key's text in a task at one time: the text as read, two in the hash table, which
grows by doubling, and one among the distinct values."""
_READ_COPIES = 2
"""Copies of a text that conditions read: a second one exists while it is read."""
_GUESSED_TEXT_BYTES = 64
"""Estimated bytes of a text in a source that has not been read."""
_READ_TEXT_MAX = 1 << 30
"""Bytes of a text column for conditions in one part: one array, with offsets of 32 bits."""


def plan_lookup(
    statement: ResolvedStatement,
    num_source_rows: int,
    names: ColumnNames,
    memory: WorkerMemory,
    *,
    texts: SourceTexts | None = None,
    ansi: bool = True,
) -> KeyLookup | None:
    """Return the plan of a key lookup, ``None`` if Spark has to join.

    ``names`` are those of source columns inside the source's files, whose ``texts`` are measured
    if they decide. Without source rows conditions decide of each row by itself; ``ansi`` is the
    mode of what they compute.
    """
    config = statement.config
    # Files have columns under the names and types of the table before the statement.
    if statement.schema_evolves or config.column_mapping is ColumnMappingMode.ID:
        return None
    if not num_source_rows:
        return _plan_without_source(statement, names, ansi=ansi)
    found = _searched(statement, num_source_rows, names, ansi=ansi)
    if found is None:
        return None
    searched, rest = found
    conditions = None
    if not _has_one_clause(statement, rest):
        conditions = _conditions_of(statement, rest, names, ansi=ansi)
        if conditions is None:
            return None
    # The rows unmatched in all parts are known at the end only.
    parts_max = 1 if statement.not_matched_by_source else memory.parts_max
    held = HeldSource.of(
        num_source_rows,
        keys=source_keys(statement, searched, names),
        read={} if conditions is None else dict(conditions.source_columns),
        texts=texts,
    )
    planned = held.in_parts(memory.task_max, parts_max)
    if planned is None:
        return None
    parts, task_bytes = planned
    return KeyLookup(
        keys=searched.keys,
        within=searched.within,
        conditions=conditions,
        clause=0 if statement.matched else NO_CLAUSE,
        task_bytes=task_bytes,
        parts=parts,
    )


def _plan_without_source(
    statement: ResolvedStatement, names: ColumnNames, *, ansi: bool
) -> KeyLookup | None:
    conditions = _conditions_of(statement, (), names, ansi=ansi)
    if conditions is None or not conditions.target_columns:
        return None
    return KeyLookup(keys=(), conditions=conditions)


def _searched(
    statement: ResolvedStatement, num_source_rows: int, names: ColumnNames, *, ansi: bool
) -> tuple[Searched, tuple[Predicate, ...]] | None:
    """Return the columns that find pairs, and what else ON asks of columns of both sides."""
    parts, config = statement.on.parts, statement.config
    if parts.pairs:
        if not all(_is_plain(pair, config) for pair in parts.pairs):
            return None
        keys = tuple(
            KeyColumn(
                target=pair.target.path[0],
                source=names.in_file(pair.source.path[0]),
                null_safe=pair.null_safe,
            )
            for pair in parts.pairs
        )
        return Searched(keys=keys), parts.other
    if computed := statement.on.computed:
        with suppress(NotInTableError):
            keys = tuple(_computed_key(pair, config, names, ansi=ansi) for pair in computed)
            used = [pair.conjunct for pair in computed]
            return Searched(keys=keys), tuple(one for one in parts.other if one not in used)
    found = range_pair(parts)
    if found is None:
        return None
    pair, rest = found
    if pair.target.path[0] in _inexact_columns(config):
        return None
    if len(pair.bounds) == 1 and num_source_rows**2 > covers_max(num_source_rows):
        return None  # every range is in as many parts as there are ranges
    within = KeyRange(
        target=pair.target.path[0],
        low=None if pair.low is None else names.in_file(pair.low.path[0]),
        high=None if pair.high is None else names.in_file(pair.high.path[0]),
        low_open=pair.low_open,
        high_open=pair.high_open,
    )
    return Searched(keys=(), within=within), rest


def _computed_key(
    pair: ComputedPair, config: TableConfig, names: ColumnNames, *, ansi: bool
) -> KeyColumn:
    """Return the key of an expression of one column of the target.

    Raises:
        NotInTableError: Spark has to compute it, or to compare its values.
    """
    value = value_of(pair.target, ansi=ansi)
    if len(value.columns) != 1:
        raise NotInTableError("a key of several columns of the target")
    ((name, read_as),) = value.columns.items()
    if name in _inexact_columns(config) or pa.types.is_nested(read_as) or read_as == pa.null():
        raise NotInTableError("a key of values that are not those that are stored")
    kind = pair.source.type
    is_number = kind in INTEGRAL and pa.types.is_integer(value.kind)
    is_same = _is_compared(kind) and kind is not None and stored_type(kind) == value.kind
    if not (is_number or is_same):
        raise NotInTableError(f"a key of type {value.kind}")
    return KeyColumn(
        target=name,
        source=names.in_file(pair.source.path[0]),
        null_safe=pair.null_safe,
        value=value.expression,
        read_as=read_as,
    )


def source_keys(
    statement: ResolvedStatement, searched: Searched, names: ColumnNames
) -> list[tuple[str, DataType | None]]:
    """Return the source's columns that find pairs, with their types."""
    on = statement.on
    found = range_pair(on.parts)
    refs = [pair.source for pair in on.parts.pairs] + [pair.source for pair in on.computed]
    refs += [] if found is None else found[0].bounds
    types = {names.in_file(ref.path[0]): ref.type for ref in refs}
    return [(name, types[name]) for name in searched.source_names]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSource:
    """The memory of a task for a source."""

    num_rows: int
    num_values: int
    """Of a row."""
    key_texts: tuple[str, ...]
    """Text columns of the key, by their names inside the source's files."""
    read_texts: tuple[str, ...]
    """Columns that conditions and values read, texts and nested ones."""
    texts: SourceTexts | None

    @classmethod
    def of(
        cls,
        num_rows: int,
        *,
        keys: Sequence[tuple[str, DataType | None]],
        read: Mapping[str, pa.DataType],
        texts: SourceTexts | None,
    ) -> HeldSource:
        """Describe a source by its columns: keys, and those that conditions read."""
        return cls(
            num_rows=num_rows,
            num_values=len(keys) + len(read),
            key_texts=tuple(name for name, kind in keys if kind == STRING),
            read_texts=tuple(
                name for name, kind in read.items() if is_text(kind) or pa.types.is_nested(kind)
            ),
            texts=texts,
        )

    def in_parts(self, task_max: int, parts_max: int) -> tuple[int, int] | None:
        """Return the least number of parts that each fit into a task, and the bytes of one.

        ``None`` if no part is small enough. Long texts may be close together, so the largest part
        decides.
        """
        whole = self.task_bytes(1, task_max * parts_max)
        least = max(1, -(-whole // max(1, task_max)))
        for parts in range(least, parts_max + 1):
            size = whole if parts == 1 else self.task_bytes(parts, task_max * parts_max)
            if size <= task_max:
                return parts, size
        return None

    def task_bytes(self, parts: int, bytes_max: int) -> int:
        """Return a task's bytes for the largest part; counting stops above ``bytes_max``."""
        row_bytes = _ROW_BYTES + self.num_values * _VALUE_BYTES
        row_bytes += len(self.key_texts) * (_LISTED_BYTES - _VALUE_BYTES)
        # A column may be compared with several of the table: each of them lists its values.
        copies = _KEY_COPIES * max(map(self.key_texts.count, self.key_texts), default=1)
        keys = self._text_bytes(self.key_texts, parts, bytes_max // copies)
        read = self._text_bytes(self.read_texts, parts, bytes_max // _READ_COPIES)
        if read > _READ_TEXT_MAX:
            return bytes_max + 1
        rows = -(-self.num_rows * row_bytes // parts)
        return rows + keys * copies + read * _READ_COPIES

    def _text_bytes(self, names: Sequence[str], parts: int, bytes_max: int) -> int:
        if not names:
            return 0
        if self.texts is None:
            return -(-self.num_rows * len(names) * _GUESSED_TEXT_BYTES // parts)
        return self.texts.largest_part(
            tuple(dict.fromkeys(names)), parts=parts, bytes_max=bytes_max
        )


def _has_one_clause(statement: ResolvedStatement, rest: Sequence[Predicate]) -> bool:
    """Tell whether all pairs that are found, and no other rows, are for the same clause."""
    parts = statement.on.parts
    if parts.target_only or parts.source_only or rest or statement.not_matched_by_source:
        return False
    return not statement.matched or statement.matched[0].condition is None


def _conditions_of(
    statement: ResolvedStatement, rest: Sequence[Predicate], names: ColumnNames, *, ansi: bool
) -> ResidualConditions | None:
    """Translate the conditions beside keys or a range, ``rest`` those of both sides; ``None`` if
    Arrow might decide differently.
    """
    found = _residual_conditions(statement, rest, names)
    if found is None:
        with suppress(NotInTableError):
            found = _computed_conditions(statement, rest, names, ansi=ansi)
    return found


def _residual_conditions(
    statement: ResolvedStatement, rest: Sequence[Predicate], names: ColumnNames
) -> ResidualConditions | None:
    """Translate conditions that only compare plain columns; ``None``: they do more."""
    parts = statement.on.parts
    translation = Translation(inexact=_inexact_columns(statement.config))
    on = translation.expression(And((*parts.target_only, *parts.source_only, *rest)))
    matched = _conditions(translation, statement.matched)
    by_source = _conditions(translation, statement.not_matched_by_source)
    if on is None or matched is None or by_source is None:
        return None
    return ResidualConditions(
        on=on,
        matched=matched,
        by_source=by_source,
        target_columns=tuple(translation.target.items()),
        source_columns=tuple(
            (names.in_file(staged), kind) for staged, kind in translation.source.items()
        ),
    )


def _conditions(
    translation: Translation, clauses: Sequence[MatchedClause | NotMatchedBySourceClause]
) -> tuple[Expression, ...] | None:
    found: list[Expression] = []
    for clause in clauses:
        condition = clause.condition
        known = ALWAYS if condition is None else translation.expression(condition.predicate)
        if known is None:
            return None
        found.append(known)
    return tuple(found)


def _computed_conditions(
    statement: ResolvedStatement, rest: Sequence[Predicate], names: ColumnNames, *, ansi: bool
) -> ResidualConditions:
    """Translate conditions by the table of functions.

    Raises:
        NotInTableError: Spark has to decide.
    """
    target: dict[str, pa.DataType] = {}
    source: dict[str, pa.DataType] = {}

    def placed(column: InputColumn) -> InputColumn:
        columns = target if column.side == "target" else source
        return InputColumn(column.side, list(columns).index(str(column.name)))

    def translated(condition: ResolvedCondition | None) -> Expression:
        if condition is None:
            return ALWAYS
        if condition.tree is None:
            raise NotInTableError("a condition that is no plain expression, or is sent by Connect")
        value = value_of(condition.tree, ansi=ansi)
        if value.kind != pa.bool_():
            raise NotInTableError(f"a condition of type {value.kind}")
        target.update(value.columns)
        source.update(value.source)
        return with_columns(value.expression, placed)

    parts = statement.on.parts
    asks_more = bool(parts.target_only or parts.source_only or rest)
    conditions = ResidualConditions(
        on=translated(statement.on) if asks_more else ALWAYS,
        matched=tuple(translated(clause.condition) for clause in statement.matched),
        by_source=tuple(translated(clause.condition) for clause in statement.not_matched_by_source),
        target_columns=tuple(target.items()),
        source_columns=tuple((names.in_file(staged), kind) for staged, kind in source.items()),
    )
    if pa.null() in (*target.values(), *source.values()):
        raise NotInTableError("a column without a type")
    if not _inexact_columns(statement.config).isdisjoint(target):
        raise NotInTableError("a column whose values are not those that are stored")
    return conditions


def _inexact_columns(config: TableConfig) -> frozenset[str]:
    """Return columns whose values differ from the stored ones, or are text with another reading.

    Partition values are text: a timestamp in some time zone, or a float, which Spark parses to the
    nearest float and Python to the nearest double.
    """
    as_text = {
        field.name
        for field in config.partition_schema.fields
        if field.type in (TIMESTAMP, TIMESTAMP_NTZ, FLOAT)
    }
    return frozenset(config.padded_columns).union(as_text)


def _is_plain(pair: EquiPair, config: TableConfig) -> bool:
    """Tell whether equal values have equal bytes, stored as they are read."""
    target, source = pair.target, pair.source
    if len(target.path) > 1 or len(source.path) > 1:
        return False
    if target.path[0] in _inexact_columns(config):
        return False
    if target.type in INTEGRAL and source.type in INTEGRAL:
        return True
    return target.type == source.type and _is_compared(target.type)


def _is_compared(kind: DataType | None) -> bool:
    """Tell whether equal values of a type, other than whole numbers, have equal bytes."""
    return kind in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ) or isinstance(kind, DecimalType)
