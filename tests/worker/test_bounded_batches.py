"""Batches have a bounded number of decoded bytes, whatever the dictionaries of a file hold."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.read_rows import OpenFile
from puredelta.worker.wire import LIMITS

LONG = pa.array([str(n) * 20_000 for n in range(10)])
PREFIX = random.Random(1).randbytes(8).hex()
SHORT = pa.array([PREFIX + str(n) for n in range(400_000)])
ROWS = 40_000


def long_texts() -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([n % 10 for n in range(ROWS)], pa.int32()), LONG)


def written(path: Path, *groups: pa.Array) -> OpenFile:
    """Write a file of a row group for each array of texts, as texts without Arrow's schema."""
    schema = pa.schema({"t": groups[0].type})
    with pq.ParquetWriter(path, schema, store_schema=False) as writer:
        for group in groups:
            writer.write_table(pa.table({"t": group.cast(schema.field("t").type)}))
    return OpenFile(str(path))


@pytest.mark.parametrize("groups", [[0], [0, 1]], ids=["alone", "with a dictionary given up"])
def test_long_texts_of_a_dictionary_come_in_small_batches(
    groups: list[int], tmp_path: Path
) -> None:
    file = written(tmp_path / "a.parquet", long_texts(), SHORT)
    num_rows = 0
    for batch in file.read(LIMITS.lookup_rows, groups=groups):
        assert batch.schema.field("t").type == pa.string()
        assert batch.nbytes <= LIMITS.read_bytes + (1 << 20)
        num_rows += batch.num_rows
    assert num_rows == ROWS + (len(SHORT) if len(groups) > 1 else 0)


@pytest.mark.thorough
def test_beside_a_dictionary_of_arrow_batches_have_few_rows(tmp_path: Path) -> None:
    """pandas writes categories so; 40,000 rows of the other column would be a batch of 0.8 GB."""
    table = pa.table({"kind": long_texts(), "t": long_texts().cast(pa.string())})
    pq.write_table(table, tmp_path / "a.parquet")
    sizes = [batch.num_rows for batch in OpenFile(str(tmp_path / "a.parquet")).read(131_072)]
    assert sum(sizes) == ROWS
    assert max(sizes) <= 8_192


def test_maps_of_long_texts_are_divided_too(tmp_path: Path) -> None:
    rows = 8_000
    keys, values = LONG.take(pa.array([n % 10 for n in range(rows)])), pa.array(range(rows))
    maps = pa.MapArray.from_arrays(pa.array(range(rows + 1), pa.int32()), keys, values)
    pq.write_table(pa.table({"m": maps}), tmp_path / "a.parquet")
    batches = list(OpenFile(str(tmp_path / "a.parquet")).read(131_072))
    assert max(batch.nbytes for batch in batches) <= LIMITS.read_bytes + (1 << 20)
    assert pa.Table.from_batches(batches)["m"].to_pylist() == maps.to_pylist()


def test_a_column_chunk_is_not_held_whole(tmp_path: Path) -> None:
    values = pa.array([random.Random(n).randbytes(50_000).hex() for n in range(400)])
    path = tmp_path / "a.parquet"
    options = {"use_dictionary": False, "compression": "none", "write_batch_size": 1}
    pq.write_table(pa.table({"t": values}), path, **options)
    del values
    before = pa.total_allocated_bytes()
    batches = OpenFile(str(path)).read(10)
    assert next(batches).num_rows == 10
    assert pa.total_allocated_bytes() - before < path.stat().st_size / 4
