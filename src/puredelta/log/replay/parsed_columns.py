"""Typed columns of a checkpoint turned back into the text the log uses elsewhere (X-34).

A writer may keep statistics only as ``stats_parsed`` and partition values only as
``partitionValues_parsed``. Everything here works on whole columns; a row is never touched
in Python, except text with control characters.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_CONTROL_CHARACTERS = r"[\x00-\x1f]"


def stats_text(parsed: pa.StructArray) -> pa.Array:
    """Write ``stats_parsed`` as the JSON text of ``stats``, null where there is none.

    Names and nesting are taken over. Types that have no place in statistics are left out.
    Timestamps keep milliseconds, cut off downward, as the reference writes them (X-65).
    """
    return _json_text(parsed)


def partition_values_maps(parsed: pa.StructArray) -> pa.MapArray:
    """Write ``partitionValues_parsed`` as the map of ``partitionValues`` (X-82, X-83)."""
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


def _json_text(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_struct(kind):
        return _json_object(values)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return pc.cast(values, pa.string())
    if pa.types.is_floating(kind):
        return _json_number(values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(_escaped(pc.cast(values, pa.string())))
    if pa.types.is_date(kind):
        return _quoted(pc.cast(values, pa.string()))
    if pa.types.is_timestamp(kind):
        floored = pc.floor_temporal(_without_zone(values), unit="millisecond")
        return _quoted(_iso(pc.cast(floored, pa.timestamp("ms")), utc=kind.tz is not None))
    return pa.nulls(len(values), pa.string())


def _json_object(values: pa.StructArray) -> pa.Array:
    members = []
    for index, field in enumerate(values.type):
        text = _json_text(pc.struct_field(values, [index]))
        if text.null_count < len(text):
            member = pc.binary_join_element_wise(f",{json.dumps(field.name)}:", text, "")
            members.append(pc.fill_null(member, ""))
    # Not null_handling="skip": Arrow then loses the rows in which every member is null.
    joined = pc.binary_join_element_wise(*members, pa.repeat("", len(values)), "")
    braced = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 1), "}", "")
    return pc.if_else(pc.is_valid(values), braced, pa.scalar(None, pa.string()))


def _json_number(values: pa.Array) -> pa.Array:
    """JSON has no NaN and no infinity: they are written as text, as the reference does (X-67)."""
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


def _without_zone(instants: pa.Array) -> pa.Array:
    """Reinterpret instants as wall clock time in UTC."""
    return instants.view(pa.timestamp(instants.type.unit))


def _iso(instants: pa.Array, *, utc: bool) -> pa.Array:
    text = pc.replace_substring(pc.cast(instants, pa.string()), " ", "T")
    return pc.binary_join_element_wise(text, "Z", "") if utc else text


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")
