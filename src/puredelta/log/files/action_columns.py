"""Actions that lie in Arrow structs, under the names of the protocol, as columns under ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.files.file_table import DELETION_VECTOR_TYPE, DELETION_VECTOR_WIRE_NAMES


def struct_columns(
    structs: pa.ChunkedArray, schema: pa.Schema, wire_names: Mapping[str, str]
) -> dict[str, pa.ChunkedArray]:
    """Return the columns of ``schema``; those that the structs lack are null."""
    known = {field.name for field in structs.type}
    columns = {}
    for field in schema:
        name = wire_names[field.name]
        if name not in known:
            columns[field.name] = pa.chunked_array([pa.nulls(len(structs), field.type)])
        elif field.type == DELETION_VECTOR_TYPE:
            columns[field.name] = mapped(structs, name, _vectors, DELETION_VECTOR_TYPE)
        else:
            columns[field.name] = pc.cast(pc.struct_field(structs, name), field.type)
    return columns


def mapped(
    structs: pa.ChunkedArray,
    name: str,
    function: Callable[[pa.StructArray], pa.Array],
    result: pa.DataType,
) -> pa.ChunkedArray:
    """Apply a function to a field of the structs, which is a struct itself."""
    chunks = pc.struct_field(structs, name).chunks
    return pa.chunked_array([function(chunk) for chunk in chunks], type=result)


def _vectors(structs: pa.StructArray) -> pa.StructArray:
    """Give the fields of a deletion vector our names; a vector without a type is none."""
    known = {field.name for field in structs.type}
    children = [
        pc.cast(pc.struct_field(structs, name), field.type)
        if (name := DELETION_VECTOR_WIRE_NAMES[field.name]) in known
        else pa.nulls(len(structs), field.type)
        for field in DELETION_VECTOR_TYPE
    ]
    return pa.StructArray.from_arrays(
        children, fields=list(DELETION_VECTOR_TYPE), mask=pc.is_null(children[0])
    )
