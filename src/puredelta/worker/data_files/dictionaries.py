"""Which columns of a new file get a dictionary, inside a Spark worker.

A dictionary of a column whose values are nearly all different is as large as the column, and
making it takes more than half of the time of writing a file. Writers differ in what they do about
that: parquet-mr looks at the first rows, parquet-cpp only gives up at a megabyte.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_SAMPLE_ROWS = 20_000
"""What parquet-mr looks at: its first page (``parquet.page.row.count.limit``)."""
_GLANCE_ROWS = 2_000
_DIFFERENT_SHARE = 39 / 40
"""Where more of the first rows at a glance differ, a dictionary saves next to nothing."""
_SAVED_SHARE = 1 / 8
"""What a dictionary must save of a column that is there to be seen, to be worth its time."""
_PAGE_SHARE_MAX = 3 / 4
"""How much of a column of texts its dictionary may be."""
_VALUE_BYTES = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_INT32_DIGITS, _INT64_DIGITS = 9, 18
"""Up to how many digits a decimal is stored as an integer."""


def kept_dictionaries(footer: pq.FileMetaData) -> list[str]:
    """Return the columns whose dictionaries a file's writer kept to the end.

    What grew too large was given up, and the pages after it are PLAIN; trying again would only
    cost time. The first row group speaks for all.
    """
    return [chunk.path_in_schema for chunk in _kept(footer)]


def saving_dictionaries(footer: pq.FileMetaData) -> list[str]:
    """Return those of the kept dictionaries that make a file smaller: what its copy gets."""
    return [c.path_in_schema for c in _kept(footer) if _saves(c)]


def worthwhile_dictionaries(rows: pa.Table, *, kept: Sequence[str] = ()) -> list[str]:
    """Return the columns of a new file whose first rows a dictionary makes smaller.

    This is the rule of parquet-mr (``DictionaryValuesWriter.isCompressionSatisfying``), for files
    that get rows of several others: what small files say of their dictionaries is not true of all
    together. Columns within columns have one if they are among ``kept``.

    Examples:
        >>> rows = pa.table({"key": range(100), "kind": [1, 2] * 50})
        >>> worthwhile_dictionaries(rows, kept=["key"])
        ['kind']
    """
    first = rows.slice(0, _SAMPLE_ROWS)
    plain = [name for name in first.column_names if _is_plain(first[name].type)]
    chosen = [name for name in plain if _makes_smaller(first[name])]
    return [*chosen, *(path for path in kept if path not in plain)]


def _kept(footer: pq.FileMetaData) -> list[pq.ColumnChunkMetaData]:
    chunks = [footer.row_group(0).column(i) for i in range(footer.num_columns)]
    return [chunk for chunk in chunks if _is_kept(set(chunk.encodings))]


def _is_kept(encodings: set[str]) -> bool:
    if "PLAIN_DICTIONARY" in encodings:
        return "PLAIN" not in encodings
    return "RLE_DICTIONARY" in encodings  # here PLAIN may be the dictionary page itself


def _saves(chunk: pq.ColumnChunkMetaData) -> bool:
    value_bytes = _VALUE_BYTES.get(chunk.physical_type)
    if value_bytes is not None:
        plain = value_bytes * (chunk.num_values - _null_count(chunk))
        return bool(chunk.total_uncompressed_size < plain * (1 - _SAVED_SHARE))
    if not chunk.has_dictionary_page:
        return True
    page = chunk.data_page_offset - chunk.dictionary_page_offset
    return bool(page < chunk.total_compressed_size * _PAGE_SHARE_MAX)


def _null_count(chunk: pq.ColumnChunkMetaData) -> int:
    known = chunk.statistics
    return known.null_count if known is not None and known.has_null_count else 0


def _makes_smaller(column: pa.ChunkedArray) -> bool:
    values = column.drop_null()
    glance = values.slice(0, _GLANCE_ROWS)
    if len(pc.unique(glance)) > _DIFFERENT_SHARE * len(glance):
        return False
    kinds = pc.unique(values)
    place_bits = max(0, len(kinds) - 1).bit_length()
    encoded = _plain_bytes(kinds) + len(values) * place_bits / 8
    return encoded < _plain_bytes(values)


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether a column's values can be compared and measured here; flags need none."""
    if pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return True
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_decimal128(kind):
        return True
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _plain_bytes(values: pa.Array | pa.ChunkedArray) -> int:
    """Return what values that are not NULL take in a file one after the other."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return int(values.nbytes)  # with an offset of four bytes each, as long as their length
    if pa.types.is_decimal128(kind):
        small, middle = kind.precision <= _INT32_DIGITS, kind.precision <= _INT64_DIGITS
        return (4 if small else 8 if middle else 16) * len(values)
    return max(4, int(kind.bit_width) // 8) * len(values)
