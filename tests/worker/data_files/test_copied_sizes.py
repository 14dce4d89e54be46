"""A copy without one row is no larger than its share, whatever made the old file small."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.worker.data_files.copy_rows import CopyOrder, RowGroups, copy_source_rows
from puredelta.worker.data_files.rewrite_file import RewriteTask, rewrite_together
from puredelta.worker.data_files.write_file import FileAnswer, write_file
from puredelta.worker.wire import LIMITS, Limits

duckdb = pytest.importorskip("duckdb", reason="writes files of its own kind")
fastparquet = pytest.importorskip("fastparquet", reason="writes files of its own kind")
pl = pytest.importorskip("polars", reason="writes files of its own kind")

ROWS = 6_000
GROWTH_MAX = 1.3
BOUNDS_BYTES = 8_192
"""The room of bounds in the footer and in pages, which not every writer gives."""
LONG = [str(n) * 3_000 for n in range(9)]

Writer = Callable[[pa.Table, Path], None]


def texts(kinds: int, length: int) -> pa.Array:
    """Return texts in no order, as many different ones as asked for."""
    some = random.Random(kinds * length)
    values = pa.array([some.randbytes(length // 2 + 1).hex()[:length] for _ in range(kinds)])
    return values.take(pa.array([some.randrange(kinds) for _ in range(ROWS)]))


def lists(values: pa.Array) -> pa.Array:
    """Return a list of three values for every third value."""
    return pa.ListArray.from_arrays(pa.array(np.arange(0, ROWS + 1, 3, dtype=np.int32)), values)


def thrice(column: pa.Array) -> pa.Array:
    return pa.concat_arrays([column] * 3)


FLAT: dict[str, Callable[[], pa.Array]] = {
    "few long texts": lambda: pa.array([LONG[n % 9] for n in range(ROWS)]),
    "a large dictionary": lambda: texts(400, 4_000),
    "half are different": lambda: texts(ROWS // 2, 32),
    "all are different": lambda: texts(ROWS * 50, 24),
    "long texts after short ones": lambda: pa.concat_arrays(
        [texts(600, 32)[:600], pa.array(LONG * 600)]
    ),
    "texts in order": lambda: pa.array([f"https://example.org/{n:09}" for n in range(ROWS)]),
    "binary": lambda: texts(40, 900).cast(pa.binary()),
    "numbers in order": lambda: pa.array(range(ROWS)),
    "few numbers": lambda: pa.array([n % 7 for n in range(ROWS)]),
    "numbers with NULLs": lambda: pa.array([n if n % 3 == 0 else None for n in range(ROWS)]),
    "fractions": lambda: pa.array([n / 7 for n in range(ROWS)]),
    "decimals": lambda: pa.array([Decimal(n % 90) for n in range(ROWS)], pa.decimal128(12, 2)),
    "long decimals": lambda: pa.array([Decimal(n % 90) for n in range(ROWS)], pa.decimal128(30, 2)),
    "days": lambda: pa.array([n // 40 for n in range(ROWS)], pa.int32()).cast(pa.date32()),
    "times": lambda: pa.array([n * 10**6 for n in range(ROWS)], pa.timestamp("us", "UTC")),
    "flags": lambda: pa.array([True] * ROWS),
}
NESTED: dict[str, Callable[[], pa.Array]] = {
    "lists of few texts": lambda: thrice(lists(texts(7, 300))),
    "lists of numbers in order": lambda: thrice(lists(pa.array(range(ROWS)))),
    "lists of lists": lambda: pa.array([[["w" * 300 + str(n % 5)]] for n in range(ROWS)]),
    "texts in structs": lambda: pa.array([{"a": "w" * 2_000 + str(n % 7)} for n in range(ROWS)]),
    "lists of structs": lambda: pa.array([[{"a": "w" * 300 + str(n % 7)}] for n in range(ROWS)]),
    "maps": lambda: pa.array(
        [[("k" * 200, "w" * 300 + str(n % 7))] for n in range(ROWS)],
        pa.map_(pa.string(), pa.string()),
    ),
}


def by_arrow(**options: Any) -> Writer:
    return lambda table, path: pq.write_table(table, path, **options)


def by_arrow_without_dictionaries(**encodings: str) -> Writer:
    """Write every leaf column in an encoding for its kind of values."""

    def write(table: pa.Table, path: Path) -> None:
        pq.write_table(table.slice(0, 1), path, store_decimal_as_integer=True)
        schema = pq.read_metadata(path).schema
        leaves = [schema.column(n) for n in range(len(schema))]
        chosen = {one.path: encodings.get(one.physical_type, "PLAIN") for one in leaves}
        options: dict[str, Any] = {"use_dictionary": False, "store_decimal_as_integer": True}
        pq.write_table(table, path, column_encoding=chosen, **options)

    return write


def by_duckdb(version: str) -> Writer:
    def write(table: pa.Table, path: Path) -> None:
        with duckdb.connect() as connection:
            connection.register("rows", table)
            connection.execute(f"COPY rows TO '{path}' (PARQUET_VERSION {version}, CODEC snappy)")

    return write


def by_polars(table: pa.Table, path: Path) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, compression="snappy")


def by_fastparquet(table: pa.Table, path: Path) -> None:
    fastparquet.write(str(path), table.to_pandas(), compression="SNAPPY")


NO_PANDAS = {"decimals", "long decimals", "days"}
DELTA = {
    **dict.fromkeys(("INT32", "INT64"), "DELTA_BINARY_PACKED"),
    **dict.fromkeys(("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"), "DELTA_BYTE_ARRAY"),
}
SPLIT = dict.fromkeys(
    ("INT32", "INT64", "FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY"), "BYTE_STREAM_SPLIT"
)
WRITERS: dict[str, tuple[Writer, Sequence[str]]] = {
    name: (writer, [*FLAT, *NESTED])
    for name, writer in {
        "arrow": by_arrow(),
        "arrow without compression": by_arrow(compression="none"),
        "arrow, large dictionaries": by_arrow(dictionary_pagesize_limit=64 << 20),
        "arrow, pages of version 2": by_arrow(data_page_version="2.0", compression="none"),
        "arrow, many row groups": by_arrow(row_group_size=500),
        "arrow, zstd": by_arrow(compression="zstd"),
        "arrow, names of its own": by_arrow(use_compliant_nested_type=False),
        "arrow, plain": by_arrow(use_dictionary=False),
        "arrow, differences": by_arrow_without_dictionaries(**DELTA),
        "arrow, bytes apart": by_arrow_without_dictionaries(**SPLIT),
        "arrow, decimals of fixed length": by_arrow(store_decimal_as_integer=False),
        "polars": by_polars,
        "duckdb": by_duckdb("V1"),
        "duckdb, version 2": by_duckdb("V2"),
    }.items()
} | {"fastparquet": (by_fastparquet, [name for name in FLAT if name not in NO_PANDAS])}


def laid(writer: str, directory: Path, *, files: int = 1, flat: bool = False) -> list[Path]:
    """Write files with a column of every kind that a writer has."""
    write, names = WRITERS[writer]
    rows = pa.table({name: made(name) for name in names if not flat or name in FLAT})
    paths = [directory / f"{n}.parquet" for n in range(files)]
    for n, path in enumerate(paths):
        write(rows.slice(n * ROWS // files, ROWS // files), path)
    return paths


@functools.cache
def made(name: str) -> pa.Array:
    """Return the values of a column."""
    return (FLAT | NESTED)[name]()


def sizes(paths: Iterable[Path]) -> Counter[str]:
    """Return the bytes of every column of some files."""
    found: Counter[str] = Counter()
    for footer in map(pq.read_metadata, paths):
        for group in (footer.row_group(n) for n in range(footer.num_row_groups)):
            for chunk in (group.column(n) for n in range(group.num_columns)):
                found[chunk.path_in_schema.split(".", 1)[0]] += chunk.total_compressed_size
    return found


def grown(old: Sequence[Path], answer: FileAnswer) -> dict[str, float]:
    """Return how much larger columns have become that are too large."""
    assert answer.refusal is None
    before, after = sizes(old), sizes([old[0].parent / str(answer.name)])
    ratios = {name: (after[name] - BOUNDS_BYTES) / before[name] for name in before}
    return {name: ratio for name, ratio in ratios.items() if ratio > GROWTH_MAX}


def rewritten(paths: Sequence[Path], limits: Limits = LIMITS) -> FileAnswer:
    """Copy files without the first row of the first one to one new file."""
    nothing, first = RowBitmap.of_rows(np.array([], np.int64)), RowBitmap.of_rows(np.array([0]))
    tasks = [
        RewriteTask(
            ordinal=n,
            source=str(path),
            directory=str(path.parent),
            name_prefix="copy",
            words=(nothing if n else first).words.tobytes(),
            bits=(nothing if n else first).bits.tobytes(),
        )
        for n, path in enumerate(paths)
    ]
    (answer,) = rewrite_together(tasks, limits)
    return answer


@pytest.mark.sampled(12)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_copy_is_as_small_as_the_file(writer: str, tmp_path: Path) -> None:
    paths = laid(writer, tmp_path)
    answer = rewritten(paths)
    assert not grown(paths, answer)
    rows = pq.read_table(paths[0])
    assert pq.read_table(tmp_path / str(answer.name)).equals(rows.slice(1).cast(rows.schema))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("writer", WRITERS)
def test_joint_copies_are_as_small_as_the_files(writer: str, flat: bool, tmp_path: Path) -> None:
    """Flat columns of small files are decoded together, others are not."""
    paths = laid(writer, tmp_path, files=4, flat=flat)
    assert not grown(paths, rewritten(paths))


OTHER_LISTS = ("arrow, names of its own", "polars")
"""Their lists have other names, or another type of Arrow, than Parquet asks for."""


@pytest.mark.parametrize("writer", ["arrow", *OTHER_LISTS, "duckdb"])
def test_copied_rows_of_a_source_are_as_small_as_the_source(writer: str, tmp_path: Path) -> None:
    paths = laid(writer, tmp_path, flat=writer in OTHER_LISTS)
    (answer,) = copy_source_rows(copied(paths[0]))
    assert not grown(paths, answer)


@pytest.mark.parametrize("writer", OTHER_LISTS)
def test_other_lists_of_a_source_are_left_to_spark(writer: str, tmp_path: Path) -> None:
    (path,) = laid(writer, tmp_path)
    (answer,) = copy_source_rows(copied(path))
    assert "is stored as" in str(answer.refusal)
    assert not list(tmp_path.glob("copy*"))


def copied(path: Path) -> CopyOrder:
    """Return the order to copy all rows of a file but the first."""
    footer = pq.read_metadata(path)
    first = RowBitmap.of_rows(np.array([0]))
    return CopyOrder(
        ordinal=0,
        sources=(
            RowGroups(
                path=str(path),
                groups=tuple(range(footer.num_row_groups)),
                first_row=0,
                words=first.words.tobytes(),
                bits=first.bits.tobytes(),
            ),
        ),
        include=False,
        columns=tuple((field.name, field.name, field.type) for field in pq.read_schema(path)),
        directory=str(path.parent),
        name_prefix="copy",
        codec=pq.read_metadata(path).row_group(0).column(0).compression.lower(),
    )


def test_no_dictionary_is_repeated_in_many_row_groups(tmp_path: Path) -> None:
    """Row groups are closed by decoded bytes: what a dictionary multiplies is left to Spark."""
    path = tmp_path / "a.parquet"
    by_arrow()(pa.table({"a": made("binary")}), path)
    limits = Limits(row_group_bytes=1 << 20, read_rows=500, coalesced_rows=500)
    (copy,) = copy_source_rows(dataclasses.replace(copied(path), limits=limits))
    for answer in (rewritten([path], limits), rewritten([path] * 2, limits), copy):
        assert "repeat dictionaries" in str(answer.refusal)
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]
    by_arrow(row_group_size=500)(pa.table({"a": made("binary")}), path)
    assert not grown([path], rewritten([path], limits))


def test_every_column_keeps_its_codec(tmp_path: Path) -> None:
    table = pa.table({"a": [[n] for n in range(ROWS)], "b": ["x" * 100] * ROWS})
    path = tmp_path / "a.parquet"
    by_arrow(
        compression={"a.list.item": "none", "b": "zstd"},
        use_dictionary=False,
        use_compliant_nested_type=False,
    )(table, path)
    answer = rewritten([path])
    assert not grown([path], answer)
    group = pq.read_metadata(tmp_path / str(answer.name)).row_group(0)
    assert [group.column(n).compression for n in (0, 1)] == ["UNCOMPRESSED", "ZSTD"]


def test_one_row_group_is_held_at_a_time(tmp_path: Path) -> None:
    held: list[int] = []

    def tables() -> Iterator[pa.Table]:
        for _ in range(4):
            held.append(pa.total_allocated_bytes())
            yield pa.table({"a": pa.array(np.arange(1 << 20)).cast(pa.float64())})

    write_file(
        copied_to(tmp_path),
        tables(),
        schema=pa.schema({"a": pa.float64()}),
        codec="none",
        options=lambda _: {"use_dictionary": False},
    )
    assert max(held) - held[0] < 8 << 20


def copied_to(directory: Path) -> RewriteTask:
    """Return an order of which only the place of the new file counts."""
    return RewriteTask(
        ordinal=0, source="", directory=str(directory), name_prefix="new", words=b"", bits=b""
    )
