"""Actions as Arrow columns, from checkpoints and from large commits.

Checkpoints and large commits arrive in this shape. A checkpoint may hold statistics only as
``stats_parsed`` and partition values only as ``partitionValues_parsed`` (X-34): typed columns,
which become the text that the log has elsewhere. Everything works on whole columns; rows are
handled in Python only where a text has control characters.

A commit of ten thousand files has tens of megabytes. Read action by action, it takes most of the
time of opening a table. Anything unusual (a broken line, an unknown key, a file that is named
twice) is left to `puredelta.log.replay.commit_files`, which is exact and names the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
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
from puredelta.log.replay.commit_files import parse_actions
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import Action, Add, FileActionKey, Remove

_CONTROL_CHARACTERS = r"[\x00-\x1f]"


def struct_columns(
    structs: pa.ChunkedArray, schema: pa.Schema, wire_names: Mapping[str, str]
) -> dict[str, pa.ChunkedArray]:
    """Return the columns of ``schema``; columns that the structs lack are null."""
    present = {field.name for field in structs.type}
    columns = {}
    for field in schema:
        name = wire_names[field.name]
        if name not in present:
            columns[field.name] = pa.chunked_array([pa.nulls(len(structs), field.type)])
        elif field.type == DELETION_VECTOR_TYPE:
            columns[field.name] = map_struct_field(structs, name, _vectors, DELETION_VECTOR_TYPE)
        else:
            columns[field.name] = pc.cast(pc.struct_field(structs, name), field.type)
    return columns


def map_struct_field(
    structs: pa.ChunkedArray,
    name: str,
    function: Callable[[pa.StructArray], pa.Array],
    result: pa.DataType,
) -> pa.ChunkedArray:
    """Apply a function to a field of the structs that is a struct itself."""
    chunks = pc.struct_field(structs, name).chunks
    return pa.chunked_array([function(chunk) for chunk in chunks], type=result)


def _vectors(structs: pa.StructArray) -> pa.StructArray:
    """Rename the fields of deletion vectors; a vector without a type becomes null."""
    present = {field.name for field in structs.type}
    children = [
        pc.cast(pc.struct_field(structs, name), field.type)
        if (name := DELETION_VECTOR_WIRE_NAMES[field.name]) in present
        else pa.nulls(len(structs), field.type)
        for field in DELETION_VECTOR_TYPE
    ]
    return pa.StructArray.from_arrays(
        children, fields=list(DELETION_VECTOR_TYPE), mask=pc.is_null(children[0])
    )


# --- typed columns as text -----------------------------------------------------------------


def stats_text(parsed: pa.Array) -> pa.Array:
    """Return ``stats_parsed`` as the JSON text of ``stats``, null where there is none.

    Names and nesting are kept. Types that statistics do not have are left out. Timestamps are
    truncated to milliseconds, as delta-spark writes them (X-65).
    """
    kind = parsed.type
    if pa.types.is_struct(kind):
        return _json_object(parsed)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return pc.cast(parsed, pa.string())
    if pa.types.is_floating(kind):
        return _json_number(parsed)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(_escaped(pc.cast(parsed, pa.string())))
    if pa.types.is_date(kind):
        return _quoted(pc.cast(parsed, pa.string()))
    if pa.types.is_timestamp(kind):
        floored = pc.floor_temporal(_without_zone(parsed), unit="millisecond")
        return _quoted(_iso(pc.cast(floored, pa.timestamp("ms")), utc=kind.tz is not None))
    return pa.nulls(len(parsed), pa.string())


def partition_values_maps(parsed: pa.StructArray) -> pa.MapArray:
    """Return ``partitionValues_parsed`` as the map of ``partitionValues`` (X-82, X-83)."""
    names = [field.name for field in parsed.type]
    rows, width = len(parsed), len(names)
    by_column = [_partition_text(pc.struct_field(parsed, [i])) for i in range(width)]
    row_major = np.arange(rows * width).reshape(width, rows).T.ravel()
    texts = pa.concat_arrays([*by_column, pa.array([], pa.string())])
    return pa.MapArray.from_arrays(
        pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(width)),
        pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(width), rows))),
        texts.take(pa.array(row_major)),
    )


def with_zone(values: pa.Array, path: str, instants: Collection[str]) -> pa.Array:
    """Return timestamps as instants where their path is one of ``instants``, nested ones, too."""
    if path in instants:
        return values.view(pa.timestamp(values.type.unit, tz="UTC"))
    if not pa.types.is_struct(values.type):
        return values
    children = [
        with_zone(pc.struct_field(values, [i]), f"{path}.{field.name}", instants)
        for i, field in enumerate(values.type)
    ]
    names = [field.name for field in values.type]
    return pa.StructArray.from_arrays(children, names=names, mask=pc.is_null(values))


def _json_object(values: pa.StructArray) -> pa.Array:
    members = []
    for index, field in enumerate(values.type):
        text = stats_text(pc.struct_field(values, [index]))
        if text.null_count < len(text):
            member = pc.binary_join_element_wise(f",{json.dumps(field.name)}:", text, "")
            members.append(pc.fill_null(member, ""))
    # Not null_handling="skip": Arrow then loses the rows in which every member is null.
    joined = pc.binary_join_element_wise(*members, pa.repeat("", len(values)), "")
    braced = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 1), "}", "")
    return pc.if_else(pc.is_valid(values), braced, pa.scalar(None, pa.string()))


def _json_number(values: pa.Array) -> pa.Array:
    """Return numbers as JSON; NaN and infinities become text, as in delta-spark (X-67)."""
    infinite = pc.if_else(pc.less(values, 0), '"-Infinity"', '"Infinity"')
    special = pc.if_else(pc.is_nan(values), '"NaN"', infinite)
    return pc.if_else(pc.is_finite(values), pc.cast(values, pa.string()), special)


def _escaped(texts: pa.Array) -> pa.Array:
    control = pc.match_substring_regex(texts, _CONTROL_CHARACTERS)
    slashes = pc.replace_substring(texts, "\\", "\\\\")
    escaped = pc.replace_substring(slashes, '"', '\\"')
    if not pc.any(control).as_py():
        return escaped
    mask = pc.fill_null(control, fill_value=False)
    rewritten = [json.dumps(t, ensure_ascii=False)[1:-1] for t in texts.filter(mask).to_pylist()]
    return pc.replace_with_mask(escaped, mask, pa.array(rewritten, pa.string()))


def _partition_text(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_timestamp(kind):
        micros = pc.cast(_without_zone(values), pa.timestamp("us"), safe=False)
        if kind.tz is not None:
            return _iso(micros, utc=True)
        return pc.cast(micros, pa.string())
    return pc.cast(values, pa.string())


def _without_zone(timestamps: pa.Array) -> pa.Array:
    """Return the same timestamps without a zone, as clock time in UTC."""
    return timestamps.view(pa.timestamp(timestamps.type.unit))


def _iso(timestamps: pa.Array, *, utc: bool) -> pa.Array:
    text = pc.replace_substring(pc.cast(timestamps, pa.string()), " ", "T")
    return pc.binary_join_element_wise(text, "Z", "") if utc else text


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


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
    """Yield the actions of a commit; the adds of a large commit may come as one table."""
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
