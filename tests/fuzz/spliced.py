"""``python -m tests.fuzz.spliced --examples 300``: files made of chunks of other files, as all
readers see them.

A file of odd shape gets new values in some columns, or loses some rows, by copied chunks. Every
reader has to find the rows and the answers to conditions that it finds in the same rows written
whole: Arrow, DuckDB, Polars, fastparquet, delta-rs, and Spark's vectorized and row readers.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.worker.data_files.rewrite_file import RewriteTask, rewrite_together
from tests.worker.data_files.spliced_tables import WRITERS, odd_table
from tests.worker.data_files.test_updated_file import KINDS, updated, with_values

_CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
_VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
_FLAT = ("id", "i", "x", "flag", "text", "long", "nothing", "same", "d")
"""Columns of which DuckDB and fastparquet make the same Python values from any file."""
_CONDITIONS = ("text = 't3'", "same = 'other'", "id >= 57", "i IS NULL", "x < 0")


def write_by_arrow(table: pa.Table, path: Path, draw: Random) -> None:
    """Write with any codec, encoding, version of pages, index, Bloom filter and empty groups."""
    plain = draw.random() < 0.5
    required = draw.random() < 0.3
    fields = [
        f.with_nullable(not (required and table[f.name].null_count == 0)) for f in table.schema
    ]
    table = table.cast(pa.schema(fields))
    options: dict[str, Any] = {
        "compression": draw.choice(_CODECS),
        "data_page_version": draw.choice(["1.0", "2.0"]),
        "write_page_index": draw.random() < 0.5,
        "write_page_checksum": draw.random() < 0.3,
        "store_schema": draw.random() < 0.5,
        "store_decimal_as_integer": draw.random() < 0.5,
        "data_page_size": draw.choice([64, 1 << 20]),
        "dictionary_pagesize_limit": draw.choice([128, 1 << 20]),
        "use_dictionary": plain and ["text", "same"],
    }
    if plain:
        options["column_encoding"] = {
            "id": "DELTA_BINARY_PACKED",
            "long": draw.choice(["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]),
            "x": "BYTE_STREAM_SPLIT",
        }
    if draw.random() < 0.3:
        options["bloom_filter_options"] = {"text": {"ndv": 64}, "id": {"ndv": 1024}}
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        first = 0
        while first < table.num_rows:
            if draw.random() < 0.1:
                writer.write_table(table.slice(first, 0))
            count = draw.choice([1, 7, 40, 1000])
            writer.write_table(table.slice(first, count))
            first += count


def write_by_spark(spark: SparkSession, table: pa.Table, path: Path, draw: Random) -> None:
    """Write with Bloom filters, small pages and row groups, and either version of pages."""
    options = {
        "compression": draw.choice(["uncompressed", "snappy", "gzip", "zstd", "lz4_raw"]),
        "parquet.writer.version": draw.choice(["PARQUET_1_0", "PARQUET_2_0"]),
        "parquet.bloom.filter.enabled": draw.choice(["true", "false"]),
        "parquet.block.size": "20000",
        "parquet.page.size": draw.choice(["100", "1000000"]),
        "parquet.block.size.row.check.min": "10",
        "parquet.block.size.row.check.max": "20",
    }
    scratch = path.with_suffix(".spark")
    frame = spark.createDataFrame(table).drop("nothing").coalesce(1)
    frame.write.options(**options).parquet(str(scratch))
    (written,) = scratch.glob("*.parquet")
    shutil.move(written, path)
    shutil.rmtree(scratch)


def _by_arrow(path: Path) -> Iterator[object]:
    yield pq.read_table(path).to_pylist()
    yield [b.num_rows for b in pq.ParquetFile(path).iter_batches(batch_size=3, columns=["id"])]


def _by_duckdb(path: Path) -> Iterator[object]:
    import duckdb  # noqa: PLC0415

    names = [name for name in pq.read_schema(path).names if name in _FLAT]
    with duckdb.connect() as connection:
        yield connection.execute(f"SELECT {', '.join(names)} FROM '{path}'").fetchall()
        for condition in _conditions(names):
            query = f"SELECT count(*), sum(id) FROM '{path}' WHERE {condition}"
            yield connection.execute(query).fetchall()


def _by_polars(path: Path) -> Iterator[object]:
    import polars as pl  # noqa: PLC0415

    yield pl.read_parquet(path).drop("m", strict=False).to_dicts()
    yield pl.scan_parquet(path).filter(pl.col("text") == "t3").select("id").collect().to_dicts()
    yield pl.scan_parquet(path).filter(pl.col("id") >= 57).select("id").collect().to_dicts()


def _by_fastparquet(path: Path) -> Iterator[object]:
    import fastparquet  # noqa: PLC0415

    names = [n for n in pq.read_schema(path).names if n in ("id", "x", "text", "same")]
    frame = fastparquet.ParquetFile(str(path)).to_pandas(names)
    if list(frame["id"]) != pq.read_table(path, columns=["id"])["id"].to_pylist():
        raise ValueError("fastparquet reads deltas of 64 bits as other numbers")
    yield frame.to_csv()


def _by_delta_rs(path: Path) -> Iterator[object]:
    import deltalake  # noqa: PLC0415

    table = path.with_suffix(".table")
    table.mkdir()
    shutil.copy(path, table)
    deltalake.convert_to_deltalake(str(table))
    names = [n for n in pq.read_schema(path).names if n in (*_FLAT, "list", "st", "deep")]
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(table)))
    yield pa.table(query.execute(f"SELECT {', '.join(names)} FROM t ORDER BY id")).to_pylist()
    for condition in _conditions(names):
        found = query.execute(f"SELECT count(*) c, sum(id) s FROM t WHERE {condition}")
        yield pa.table(found).to_pylist()
    shutil.rmtree(table)


READERS: dict[str, Callable[[Path], Iterator[object]]] = {
    "arrow": _by_arrow,
    "duckdb": _by_duckdb,
    "polars": _by_polars,
    "fastparquet": _by_fastparquet,
    "deltalake": _by_delta_rs,
}


def spark_readers(spark: SparkSession) -> dict[str, Callable[[Path], Iterator[object]]]:
    """Return Spark's two readers of Parquet files."""

    def reader(vectorized: str) -> Callable[[Path], Iterator[object]]:
        def read(path: Path) -> Iterator[object]:
            with _set(spark, _VECTORIZED, vectorized):
                frame = spark.read.parquet(str(path))
                yield frame.orderBy("id").collect()
                counts = [F.count_if(F.expr(c)) for c in _conditions(frame.columns)]
                yield frame.agg(*counts).collect()
                for condition in _conditions(frame.columns)[:2]:
                    yield frame.where(condition).agg(F.sum("id")).collect()

        return read

    return {"spark vectorized": reader("true"), "spark rows": reader("false")}


@contextmanager
def _set(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before)


def _conditions(names: list[str]) -> list[str]:
    return [condition for condition in _CONDITIONS if condition.split()[0] in names]


def compared(seed: int, directory: Path, spark: SparkSession | None) -> str:
    """Splice a file of a seed and compare it; return how it was made.

    Raises:
        AssertionError: a reader finds other rows.
    """
    draw = Random(seed)
    source, wanted = directory / "old.parquet", directory / "wanted.parquet"
    writer = draw.choice(["arrow", "arrow", *WRITERS, *(["spark"] if spark else [])])
    num_rows = draw.choice([1, 9, 120, 600]) if writer != "duckdb" else 5000
    table = odd_table(draw, num_rows, nested=writer != "fastparquet")
    if writer == "spark" and spark is not None:
        write_by_spark(spark, table, source, draw)
    elif writer == "arrow":
        write_by_arrow(table, source, draw)
    else:
        WRITERS[writer](table, source, draw)
    table = pq.read_table(source)
    how = draw.choice(["updated", "copied"])
    if how == "updated":
        new, rows = _updated(source, table, draw)
    else:
        new, rows = _copied(source, table, draw)
    if new is None:
        return f"{writer}: no file"
    pq.write_table(rows, wanted)
    for name, reader in {**READERS, **(spark_readers(spark) if spark else {})}.items():
        _compare(name, reader, (source, new, wanted))
    return f"{writer}: {how}"


def _compare(
    name: str, reader: Callable[[Path], Iterator[object]], files: tuple[Path, Path, Path]
) -> None:
    """Compare what a reader finds, unless the old file has what it does not know."""
    source, new, wanted = files
    try:
        list(reader(source))
        due = repr(list(reader(wanted)))
    except Exception:  # noqa: BLE001 - of an encoding or a type that a reader lacks
        return
    found = repr(list(reader(new)))
    assert found == due, f"{name}:\n{found[:2000]}\nis not\n{due[:2000]}"


def _updated(source: Path, table: pa.Table, draw: Random) -> tuple[Path | None, pa.Table]:
    present = [name for name in KINDS if name in table.column_names and name != "id"]
    names = draw.sample(present, min(len(present), draw.choice([1, 2, 3])))
    at = sorted(draw.sample(range(len(table)), draw.randint(1, min(len(table), 9))))
    schema = pa.schema([(name, KINDS[name]) for name in names])
    values = odd_table(draw, len(at), nested=True).select(names).cast(schema)
    answer = updated(source, at, values)
    assert answer.refusal is None, answer.refusal
    assert answer.name is not None
    return source.parent / answer.name, with_values(table, at, values)


def _copied(source: Path, table: pa.Table, draw: Random) -> tuple[Path | None, pa.Table]:
    dropped = sorted({draw.randrange(len(table)) for _ in range(3)})
    words, bits = RowBitmap.of_rows(np.array(dropped, np.int64)).packed()
    task = RewriteTask(
        ordinal=0,
        source=str(source),
        directory=str(source.parent),
        name_prefix="part",
        words=words,
        bits=bits,
    )
    (answer,) = rewrite_together([task])
    assert answer.refusal is None, answer.refusal
    kept = np.ones(len(table), np.bool_)
    kept[dropped] = False
    assert answer.kept_rows == kept.sum()
    name = answer.name
    return None if name is None else source.parent / name, table.filter(pa.array(kept))


def run(spark: SparkSession | None, examples: int, seed: int) -> Counter[str]:
    """Compare the files of some seeds; print violations with their seeds."""
    counts: Counter[str] = Counter()
    for number in range(seed, seed + examples):
        with tempfile.TemporaryDirectory() as directory:
            try:
                counts[compared(number, Path(directory), spark)] += 1
            except Exception:  # noqa: BLE001 - that is what is looked for
                counts["VIOLATION"] += 1
                print(f"seed {number}\n{traceback.format_exc()}", flush=True)  # noqa: T201
    return counts


def main() -> int:
    """Return 1 if a reader found other rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-spark", action="store_true")
    options = parser.parse_args()
    spark = None
    if not options.without_spark:
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
    started = time.monotonic()
    counts = run(spark, options.examples, options.seed)
    for result, number in sorted(counts.items()):
        print(f"{number:8}  {result}")  # noqa: T201
    print(f"{options.examples} files in {time.monotonic() - started:.0f} s")  # noqa: T201
    if spark is not None:
        spark.stop()
    return 1 if "VIOLATION" in counts else 0


if __name__ == "__main__":
    sys.exit(main())
