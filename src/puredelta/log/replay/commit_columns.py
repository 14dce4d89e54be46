"""The adds of a large commit as columns, without an object for each add.

A commit of ten thousand files has tens of megabytes. Read action by action, it takes most of the
time of opening a table. Anything unusual (a broken line, an unknown key, a file that is named
twice) is left to `puredelta.log.replay.commit_files`, which is exact and names the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from puredelta.errors import CorruptTableError
from puredelta.log.files.file_table import (
    DELETION_VECTOR_TYPE,
    DELETION_VECTOR_WIRE_NAMES,
    FILE_SCHEMA,
    FILE_WIRE_NAMES,
    TEXT_MAP,
    FileTable,
    file_keys,
)
from puredelta.log.replay.action_columns import (
    map_struct_field,
    partition_values_maps,
    struct_columns,
)
from puredelta.log.replay.commit_files import parse_actions
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import Action, Add, Remove
from puredelta.protocol.actions.file_action_key import FileActionKey

LARGE_BYTES = 512 * 1024
"""Smaller commits are read action by action: columns would gain nothing."""

_ADD = b'{"add":'
_BLOCK_BYTES_MIN = 4 * 1024 * 1024
LINES_AT_ONCE = 8192
"""How many lines are parsed together; lines that are not adjacent are copied for that."""
_NEVER_NULL = ("path", "size_bytes", "modified_ms", "data_change")
NEVER_NULL_IN_VECTORS = ("path_or_inline", "size_bytes", "cardinality")
_PLAIN = pa.schema([field for field in FILE_SCHEMA if field.type != TEXT_MAP])


class _UnsupportedLayoutError(Exception):
    """The commit must be read line by line."""


@dataclass(frozen=True, slots=True)
class CommitColumns:
    """One commit; every file is named once, so the order of the two parts does not matter."""

    adds: FileTable
    """The adds that were parsed as columns; others may contain further adds."""
    others: Sequence[Action]


def parse_commit(
    content: bytes, source: str, *, large_bytes: int = LARGE_BYTES
) -> Iterator[Action | FileTable]:
    """Yield the actions of a commit; the adds of a large commit may come as one table.

    Raises:
        CorruptTableError: as `parse_actions`, to which ``source`` names the commit.
    """
    columns = parse_columns(content) if len(content) >= large_bytes else None
    if columns is None:
        yield from list(parse_actions(content, source))
    else:
        yield from columns.others
        yield columns.adds


def parse_columns(content: bytes, *, lines_at_once: int = LINES_AT_ONCE) -> CommitColumns | None:
    """Parse a commit of many adds; ``None`` if it has few of them or anything unusual.

    A missing partition value becomes null, which has the same meaning (X-82).
    """
    adds: list[slice] = []
    others: list[slice] = []
    for line in _lines(content):
        (adds if content.startswith(_ADD, line.start) else others).append(line)
    if len(adds) < len(others):
        return None
    rest = _text(content, others)
    try:
        if not content.isascii():
            content.decode()  # raises if it is no text, which Arrow does not check
        files = FileTable(_rows(content, adds, lines_at_once))
        parsed = CommitColumns(files, list(parse_actions(rest, "")))
        _require_one_of_each(parsed)
    except (CorruptTableError, UnicodeDecodeError, pa.ArrowException, _UnsupportedLayoutError):
        return None
    return parsed


def _lines(content: bytes) -> Iterator[slice]:
    """Yield the positions of lines: cutting out all lines takes longer than parsing some."""
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        yield slice(start, end)
        start = end + 1
    yield slice(start, len(content))


def _text(content: bytes, lines: Sequence[slice]) -> bytes:
    return b"\n".join([content[line] for line in lines])


def _rows(content: bytes, adds: Sequence[slice], lines_at_once: int) -> pa.Table:
    """Return rows of `FILE_SCHEMA`; all maps must have the keys of those of the first add."""
    first = parse_action(content[adds[0]])
    if not isinstance(first, Add):
        raise _UnsupportedLayoutError
    kind = _add_type(first.partition_values, first.tags or ())
    runs = (adds[n : n + lines_at_once] for n in range(0, len(adds), lines_at_once))
    chunks = [chunk for run in runs for chunk in _structs(content, run, kind).chunks]
    structs = pa.chunked_array(chunks, kind)
    columns = struct_columns(structs, _PLAIN, FILE_WIRE_NAMES)
    for name in _NEVER_NULL:
        _require_no_null(columns[name])
    vectors = pc.drop_null(columns["deletion_vector"])
    if len(vectors) < len(pc.drop_null(pc.struct_field(structs, "deletionVector"))):
        raise _UnsupportedLayoutError  # a vector without a type
    for name in NEVER_NULL_IN_VECTORS:
        _require_no_null(pc.struct_field(vectors, name))
    columns["partition_values"] = _maps(structs, "partitionValues")
    columns["tags"] = pa.chunked_array([pa.nulls(len(structs), TEXT_MAP)])
    if first.tags is not None:
        columns["tags"] = _maps(structs, "tags", requires_values=True)
    elif pc.struct_field(structs, "tags").null_count < len(structs):
        raise _UnsupportedLayoutError
    return pa.table(columns, schema=FILE_SCHEMA)


def _structs(content: bytes, lines: Sequence[slice], kind: pa.StructType) -> pa.ChunkedArray:
    """Parse lines; each must be an add with known keys and nothing else."""
    lengths = [line.stop - line.start for line in lines]
    longest, first, last = max(lengths), lines[0].start, lines[-1].stop
    if last - first == sum(lengths) + len(lines) - 1:  # the lines are adjacent
        text = pa.py_buffer(content).slice(first, last - first)
    else:
        text = pa.py_buffer(_text(content, lines))
    table = pj.read_json(
        pa.BufferReader(text),
        read_options=pj.ReadOptions(block_size=max(_BLOCK_BYTES_MIN, longest + 2)),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("add", kind)]), unexpected_field_behavior="error"
        ),
    )
    if table.num_rows != len(lines):
        raise _UnsupportedLayoutError
    _require_no_null(table["add"])
    return table["add"]


def _add_type(partition_values: Iterable[str], tags: Iterable[str]) -> pa.StructType:
    vector = [(DELETION_VECTOR_WIRE_NAMES[f.name], f.type) for f in DELETION_VECTOR_TYPE]
    return pa.struct(
        [
            *((FILE_WIRE_NAMES[f.name], f.type) for f in _PLAIN if f.name != "deletion_vector"),
            ("deletionVector", pa.struct(vector)),
            ("partitionValues", pa.struct([(key, pa.string()) for key in partition_values])),
            ("tags", pa.struct([(key, pa.string()) for key in tags])),
        ]
    )


def _maps(structs: pa.ChunkedArray, name: str, *, requires_values: bool = False) -> pa.ChunkedArray:
    """Turn objects into maps; a missing key cannot be told from a null value."""
    objects = pc.struct_field(structs, name)
    _require_no_null(objects)
    if requires_values:
        for index in range(objects.type.num_fields):
            _require_no_null(pc.struct_field(objects, [index]))
    return map_struct_field(structs, name, partition_values_maps, TEXT_MAP)


def _require_no_null(column: pa.ChunkedArray) -> None:
    if column.null_count:
        raise _UnsupportedLayoutError


def _require_one_of_each(parsed: CommitColumns) -> None:
    """Refuse a file that is named twice: then the order of the actions matters."""
    keys = file_keys(parsed.adds.rows)
    others = [FileActionKey.of(a).encoded for a in parsed.others if isinstance(a, Add | Remove)]
    twice = pc.count_distinct(keys).as_py() < len(keys)
    if twice or pc.any(pc.is_in(keys, value_set=pa.array(others, pa.string()))).as_py():
        raise _UnsupportedLayoutError
