"""Entries of manifests as the bytes that pyiceberg's own encoder would write."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import struct
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyiceberg")
from pyiceberg import types as I
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.resolver import construct_writer
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DataFile,
    DataFileContent,
    FileFormat,
    construct_partition_summaries,
    data_file_with_partition,
)
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from puredelta.iceberg.avro import AvroHead, RawRecords, avro_schema, varints
from puredelta.iceberg.data_files import data_files, partition_value
from puredelta.iceberg.schema import iceberg_layout, partition_spec
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig
from tests.filled_table import SmallTable, column

KINDS: dict[str, DataType] = {
    "byte": BYTE, "short": SHORT, "integer": INTEGER, "long": LONG, "float": FLOAT,
    "double": DOUBLE, "date": DATE, "timestamp": TIMESTAMP, "ntz": TIMESTAMP_NTZ,
    "string": STRING, "binary": BINARY, "boolean": BOOLEAN, "decimal": DecimalType(10, 2),
    "wide": DecimalType(38, 18), "whole": DecimalType(38, 0),
}  # fmt: skip
PARTITIONS = {f"p {name}": kind for name, kind in KINDS.items()}
SCHEMA = StructType(tuple(column(name, kind) for name, kind in {**KINDS, **PARTITIONS}.items()))
PLAIN = StructType(tuple(column(name, kind) for name, kind in KINDS.items()))

times = st.datetimes(min_value=dt.datetime(1, 1, 2), max_value=dt.datetime(9999, 12, 30))  # noqa: DTZ001
bounds: dict[str, st.SearchStrategy[Any]] = {
    "byte": st.integers(-128, 127),
    "short": st.integers(-(1 << 15), (1 << 15) - 1),
    "integer": st.integers(-(1 << 33), 1 << 33),
    "long": st.integers(-(1 << 64), 1 << 64),
    "float": st.floats() | st.sampled_from([0.0, -0.0, 1e39, -1e39]),
    "double": st.floats() | st.sampled_from([0.0, -0.0]),
    "date": st.dates().map(str),
    "timestamp": times.map(lambda t: t.isoformat(timespec="milliseconds") + "Z"),
    "ntz": times.map(lambda t: t.isoformat(timespec="milliseconds")),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    "binary": st.text(max_size=3),
    "boolean": st.booleans(),
    "decimal": st.integers(-(10**11), 10**11).map(lambda n: n / 100),
    "wide": st.sampled_from([0, 1.5, -1.28, -0.000000000000000128, 10**19, -(10**20)]),
    "whole": st.sampled_from([-(1 << n) for n in (7, 8, 15, 63, 64, 126)])
    | st.integers(-(10**38), 10**38),
}
texts: dict[str, st.SearchStrategy[str]] = {
    "byte": bounds["byte"].map(str),
    "short": bounds["short"].map(str),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1).map(str),
    "long": st.integers(-(1 << 63), (1 << 63) - 1).map(str),
    "float": st.floats(width=32).map(lambda x: str(x).replace("inf", "Infinity")),
    "double": st.floats().map(lambda x: str(x).replace("inf", "Infinity")),
    "date": st.dates().map(str),
    "timestamp": times.map(lambda t: t.isoformat() + "Z"),
    "ntz": times.map(lambda t: t.isoformat(sep=" ")),
    "string": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100),
    "binary": st.text("abc\x00\x7f", min_size=1, max_size=100),
    "boolean": st.sampled_from(["true", "false"]),
    "decimal": st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: str(Decimal(n).scaleb(-2))),
    "wide": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: f"{n}e-18"),
    "whole": st.integers(-(10**38) + 1, 10**38 - 1).map(str),
}


def some_of(values: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={n: st.none() | v for n, v in values.items()})


def nothing_or(found: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | found


statistics = st.builds(
    lambda rows, low, high, nulls: {
        "numRecords": rows,
        **{
            name: values
            for name, values in (("minValues", low), ("maxValues", high), ("nullCount", nulls))
            if values is not None
        },
    },
    st.integers(0, 1 << 40) | st.integers(0, 100),
    nothing_or(some_of(bounds)),
    nothing_or(some_of(bounds)),
    nothing_or(some_of(dict.fromkeys(KINDS, st.integers(0, 300)))),
)
vectors = st.sampled_from(
    [
        None,
        DeletionVectorDescriptor(storage_type="u", path_or_inline="x" * 20, offset=1,
                                 size_bytes=34, cardinality=2, max_row_index=None),
    ]
)  # fmt: skip
adds = st.builds(
    Add,
    path=st.lists(st.sampled_from(["a", "é", "%20", "/", "x" * 99]), max_size=6).map("".join),
    partition_values=some_of({f"p {name}": value for name, value in texts.items()}),
    size_bytes=st.integers(0, 1 << 62),
    modified_ms=st.just(1),
    data_change=st.just(True),
    stats=statistics.map(json.dumps),
    deletion_vector=vectors,
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallTable, SmallTable]:
    root = tmp_path_factory.mktemp("encoding")
    partitioned = SmallTable(root / "p ä", SCHEMA, partitioned_by=tuple(PARTITIONS))
    return partitioned, SmallTable(root / "plain", PLAIN)


@settings(max_examples=60, deadline=None)
@given(files=st.lists(adds, min_size=1, max_size=6), is_partitioned=st.booleans())
def test_same_bytes_as_pyiceberg(
    tables: tuple[SmallTable, SmallTable], files: list[Add], is_partitioned: bool
) -> None:
    table = tables[0 if is_partitioned else 1]
    if not is_partitioned:
        files = [replace(file, partition_values={}) for file in files]
    config = table.config
    layout = iceberg_layout(config, {})
    spec = partition_spec(layout, [])
    wanted = one_by_one(files, config, table.log.root_uri)
    (found,) = data_files(FileTable.of(files), config, layout, table.log.store, 100)
    schema = Schema(*data_file_with_partition(spec.partition_type(layout.schema), 2).fields)
    assert found.records.to_pylist() == encoded(schema, wanted)
    assert found.rows.tolist() == [file.record_count for file in wanted]
    summaries = construct_partition_summaries(spec, layout.schema, [f.partition for f in wanted])
    assert [repr(one) for one in found.summaries] == [repr(one) for one in summaries]
    content = AvroHead(schema=avro_schema(schema, "file"), metadata={}).file(
        found.records, found.places
    )
    raw = RawRecords.read(content)
    assert raw.numbers(raw.places[0])[0].tolist() == found.rows.tolist()
    assert raw.slices(raw.starts, raw.ends).to_pylist() == found.records.to_pylist()


def encoded(schema: Schema, records: list[DataFile]) -> list[bytes]:
    """Return each record as pyiceberg writes it."""
    writer = construct_writer(schema)
    found = []
    for record in records:
        stream = io.BytesIO()
        writer.write(BinaryEncoder(stream), record)
        found.append(stream.getvalue())
    return found


def one_by_one(files: list[Add], config: TableConfig, root: str) -> list[DataFile]:
    """Return the descriptions of files, made value by value."""
    kinds = {(name,): kind for name, kind in KINDS.items()}
    layout = iceberg_layout(config, {})
    parsed = NOTHING_PARSED.parsed(FileTable.of(files), kinds).of(kinds)
    found = []
    for place, file in enumerate(files):
        rows = json.loads(file.stats or "")["numRecords"]
        nulls, low, high = {}, {}, {}
        for name in KINDS:
            number, leaf = layout.ids[name,], parsed.leaves[name,]
            count = leaf.null_count[place].as_py()
            is_exact = file.deletion_vector is None
            if count is not None and (is_exact or count in {0, rows}):
                nulls[number] = count
            for bounds, kept, zero in ((leaf.low, low, -0.0), (leaf.high, high, 0.0)):
                if bounds is not None and (packed := bound(bounds[place], name, zero)) is not None:
                    kept[number] = packed
        values = [
            partition_value(file.partition_values.get(one.name), one.type, one.name)
            for one in config.partition_schema.fields
        ]
        found.append(
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=absolute_uri(root, file.path).replace("file:/", "file:///", 1),
                file_format=FileFormat.PARQUET,
                partition=Record(*values),
                record_count=rows,
                file_size_in_bytes=file.size_bytes,
                value_counts=dict.fromkeys(nulls, rows) or None,
                null_value_counts=nulls or None,
                lower_bounds=low or None,
                upper_bounds=high or None,
            )
        )
    return found


FORMATS = {"byte": "<i", "short": "<i", "integer": "<i", "long": "<q", "float": "<f",
           "double": "<d", "date": "<i", "timestamp": "<q", "ntz": "<q"}  # fmt: skip


def bound(scalar: pa.Scalar, name: str, zero: float) -> bytes | None:
    if pa.types.is_date32(scalar.type):
        scalar = scalar.cast(pa.int32())
    value, kind = scalar.as_py(), KINDS[name]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    value = zero if isinstance(value, float) and value == 0 else value
    try:
        if isinstance(kind, DecimalType):
            return to_bytes(I.DecimalType(kind.precision, kind.scale), value)
        return struct.pack(FORMATS[name], value) if name in FORMATS else value.encode()
    except (struct.error, OverflowError, ValueError):
        return None


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=20))
def test_whole_numbers(numbers: list[int]) -> None:
    """Every number is read back, wherever it is."""
    schema = Schema(*DATA_FILE_TYPE[2].fields)
    records = varints(np.array(numbers, np.int64))
    raw = RawRecords.read(AvroHead(schema=avro_schema(schema, "x"), metadata={}).file(records, []))
    found, ends = raw.numbers(raw.starts)
    assert found.tolist() == numbers
    assert ends.tolist() == raw.ends.tolist()
