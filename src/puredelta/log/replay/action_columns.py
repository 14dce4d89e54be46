"""Actions that are Arrow structs under the names of the protocol, as columns under our names.

Checkpoints and large commits arrive in this shape. A checkpoint may hold statistics only as
``stats_parsed`` and partition values only as ``partitionValues_parsed`` (X-34): typed columns,
which become the text that the log has elsewhere. Everything works on whole columns; rows are
handled in Python only where a text has control characters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.files.file_table import DELETION_VECTOR_TYPE, DELETION_VECTOR_WIRE_NAMES

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
