"""The adds of a large commit as columns, without an object for each of them.

A commit of ten thousand files is tens of megabytes, and read action by action it is most of
what opening a table costs. Whatever is unusual (a broken line, keys unknown here, a file that is
named twice) is left to `puredelta.log.replay.commit_files`, which is exact and names the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from puredelta.errors import CorruptTableError
from puredelta.log.files.action_columns import mapped, struct_columns
from puredelta.log.files.file_table import (
    DELETION_VECTOR_TYPE,
    DELETION_VECTOR_WIRE_NAMES,
    FILE_SCHEMA,
    FILE_WIRE_NAMES,
    TEXT_MAP,
    FileTable,
    file_key,
    file_keys,
)
from puredelta.log.replay.commit_files import parse_actions
from puredelta.log.replay.parsed_columns import partition_values_maps
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import Action, Add, Remove

LARGE_BYTES = 512 * 1024
"""Below this there is nothing to gain."""

_ADD = b'{"add":'
_BLOCK_BYTES_MIN = 4 * 1024 * 1024
_LINES_AT_ONCE = 8192
"""Parsed together: where they do not follow each other, their text is copied for it."""
_NEVER_NULL = ("path", "size_bytes", "modified_ms", "data_change")
_NEVER_NULL_IN_VECTORS = ("path_or_inline", "size_bytes", "cardinality")
_PLAIN = pa.schema([field for field in FILE_SCHEMA if field.type != TEXT_MAP])


class _UnsupportedLayoutError(Exception):
    """Something that is better read line by line."""


@dataclass(frozen=True, slots=True)
class CommitColumns:
    """One commit; no add has the key of another action, so that either part may come first."""

    adds: FileTable
    """Those in columns; some may be among the others."""
    others: Sequence[Action]


def parse_columns(content: bytes) -> CommitColumns | None:
    """Parse a large commit; ``None`` if it is small, holds few adds or anything unusual.

    A partition value that is left out is null here, which is what readers take it for (X-82).
    """
    if len(content) < LARGE_BYTES:
        return None
    adds: list[slice] = []
    others: list[slice] = []
    for line in _lines(content):
        (adds if content.startswith(_ADD, line.start) else others).append(line)
    if len(adds) < len(others):
        return None
    rest = _text(content, others)
    try:
        if not content.isascii():
            content.decode()  # Arrow takes text for granted
        parsed = CommitColumns(FileTable(_rows(content, adds)), list(parse_actions(rest, "")))
        _require_one_of_each(parsed)
    except (CorruptTableError, UnicodeDecodeError, pa.ArrowException, _UnsupportedLayoutError):
        return None
    return parsed


def _lines(content: bytes) -> Iterator[slice]:
    """Yield where lines are: to cut all of them out takes longer than to parse some."""
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        yield slice(start, end)
        start = end + 1
    yield slice(start, len(content))


def _text(content: bytes, lines: Sequence[slice]) -> bytes:
    return b"\n".join([content[line] for line in lines])


def _rows(content: bytes, adds: Sequence[slice]) -> pa.Table:
    """Return rows of `FILE_SCHEMA`; the first add tells which keys the maps of all have."""
    first = parse_action(content[adds[0]])
    if not isinstance(first, Add):
        raise _UnsupportedLayoutError
    kind = _add_type(first.partition_values, first.tags or ())
    runs = (adds[n : n + _LINES_AT_ONCE] for n in range(0, len(adds), _LINES_AT_ONCE))
    chunks = [chunk for run in runs for chunk in _structs(content, run, kind).chunks]
    structs = pa.chunked_array(chunks, kind)
    columns = struct_columns(structs, _PLAIN, FILE_WIRE_NAMES)
    for name in _NEVER_NULL:
        _require_no_null(columns[name])
    vectors = pc.drop_null(columns["deletion_vector"])
    if len(vectors) < len(pc.drop_null(pc.struct_field(structs, "deletionVector"))):
        raise _UnsupportedLayoutError  # without a type
    for name in _NEVER_NULL_IN_VECTORS:
        _require_no_null(pc.struct_field(vectors, name))
    columns["partition_values"] = _maps(structs, "partitionValues")
    columns["tags"] = pa.chunked_array([pa.nulls(len(structs), TEXT_MAP)])
    if first.tags is not None:
        columns["tags"] = _maps(structs, "tags", are_values_known=True)
    elif pc.struct_field(structs, "tags").null_count < len(structs):
        raise _UnsupportedLayoutError
    return pa.table(columns, schema=FILE_SCHEMA)


def _structs(content: bytes, lines: Sequence[slice], kind: pa.StructType) -> pa.ChunkedArray:
    """Parse lines, which must hold nothing but an add of known keys."""
    lengths = [line.stop - line.start for line in lines]
    longest, first, last = max(lengths), lines[0].start, lines[-1].stop
    if last - first == sum(lengths) + len(lines) - 1:  # they follow each other
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


def _maps(
    structs: pa.ChunkedArray, name: str, *, are_values_known: bool = False
) -> pa.ChunkedArray:
    """Turn objects into maps; a key that is left out looks like one whose value is null."""
    objects = pc.struct_field(structs, name)
    _require_no_null(objects)
    if are_values_known:
        for index in range(objects.type.num_fields):
            _require_no_null(pc.struct_field(objects, [index]))
    return mapped(structs, name, partition_values_maps, TEXT_MAP)


def _require_no_null(column: pa.ChunkedArray) -> None:
    if column.null_count:
        raise _UnsupportedLayoutError


def _require_one_of_each(parsed: CommitColumns) -> None:
    """Where a file is named twice the order of the actions matters, or somebody was wrong."""
    keys = file_keys(parsed.adds.rows)
    others = [file_key(a) for a in parsed.others if isinstance(a, Add | Remove)]
    twice = pc.count_distinct(keys).as_py() < len(keys)
    if twice or pc.any(pc.is_in(keys, value_set=pa.array(others, pa.string()))).as_py():
        raise _UnsupportedLayoutError
