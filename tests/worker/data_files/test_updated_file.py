"""New values of some columns: every row keeps its place, all other chunks are copied as bytes."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.worker.data_files.byte_ranges import byte_ranges
from puredelta.worker.data_files.rewrite_file import rewrite_with_values
from puredelta.worker.data_files.spliced_file import ParquetBytes
from puredelta.worker.data_files.update_rows import (
    UPDATE_ORDERS,
    UpdateOrder,
    update_stream,
)
from puredelta.worker.data_files.updated_file import FileUpdate, GroupRows
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from tests.worker.data_files.spliced_tables import (
    FAULTS,
    NAN,
    WRITERS,
    num_writes_that_matter,
    odd_table,
    rows_by_reader,
    rows_of,
)

KINDS = {
    "id": pa.int64(),
    "i": pa.int32(),
    "x": pa.float64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "long": pa.string(),
    "ts": pa.timestamp("us", "UTC"),
    "d": pa.decimal128(12, 2),
    "big": pa.decimal128(38, 4),
    "list": pa.list_(pa.field("element", pa.int64())),
    "st": pa.struct([("a", pa.float64()), ("b", pa.string())]),
    "added": pa.list_(pa.field("element", pa.string())),
}


def update_of(source: Path, number: int, num_updates: int) -> FileUpdate:
    return FileUpdate(
        ordinal=number,
        source=str(source),
        directory=str(source.parent),
        name_prefix="part",
        num_updates=num_updates,
    )


def rows_for(at: Sequence[int], values: pa.Table, number: int = 0) -> pa.RecordBatch:
    files, rows = pa.array([number] * len(at), pa.int32()), pa.array(at, pa.int64())
    columns = [column.combine_chunks() for column in values.columns]
    return pa.RecordBatch.from_arrays(
        [*columns, files, rows], [*values.column_names, "file", "row"]
    )


def updated(
    source: Path, at: Sequence[int], values: pa.Table, *, num_updates: int | None = None
) -> FileAnswer:
    batch = rows_for(at, values)
    task = update_of(source, 0, len(at) if num_updates is None else num_updates)
    order = UpdateOrder(files=(task,), schema=values.schema)
    (answer,) = answers(order, [batch.slice(0, 2), batch.slice(2)])
    return answer


def answers(order: UpdateOrder, batches: Sequence[pa.RecordBatch]) -> Iterator[FileAnswer]:
    for found in update_stream(UPDATE_ORDERS.encode(order), batches):
        for packed in found.column(0).to_pylist():
            yield FILE_ANSWERS.decode(pickle.loads(packed))


def with_values(table: pa.Table, at: Sequence[int], values: pa.Table) -> pa.Table:
    """Return the table as an update in Python makes it."""
    rows = table.to_pylist()
    for place, new in zip(at, values.to_pylist(), strict=True):
        rows[place] |= new
    fields = {f.name: f for f in table.schema} | {f.name: f for f in values.schema}
    return pa.Table.from_pylist(rows, pa.schema(list(fields.values())))


def chunks_of(path: Path) -> list[dict[tuple[bytes, ...], bytes]]:
    file, content = ParquetBytes.of(byte_ranges(str(path))), path.read_bytes()
    return [
        {chunk.path: content[slice(*chunk.span)] for chunk in group.chunks}
        for group in file.footer.groups
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("writer", list(WRITERS))
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_those_of_an_update_row_by_row(writer: str, seed: int, tmp_path: Path) -> None:
    draw = random.Random(f"{writer} {seed}")
    source = tmp_path / "old.parquet"
    num_rows = draw.choice([1, 9, 120]) if writer != "duckdb" else 5000
    WRITERS[writer](odd_table(draw, num_rows, nested=writer != "fastparquet"), source, draw)
    table = pq.read_table(source)
    present = [name for name in KINDS if name in table.column_names]
    names = draw.sample(present, draw.choice([1, 2])) + (["added"] if draw.random() < 0.3 else [])
    at = sorted(draw.sample(range(num_rows), min(num_rows, draw.choice([1, 5, num_rows]))))
    other = odd_table(draw, num_rows, nested=True).append_column(
        "added", pa.array([[None, "a"]] * num_rows, KINDS["added"])
    )
    schema = pa.schema([(name, KINDS[name]) for name in names])
    values = other.select(names).cast(schema).take(at)
    answer = updated(source, at, values)
    assert answer.refusal is None
    assert answer.name is not None
    new, wanted = tmp_path / answer.name, tmp_path / "wanted.parquet"
    assert (answer.physical_rows, answer.kept_rows) == (num_rows, num_rows)
    assert answer.size_bytes == new.stat().st_size
    pq.write_table(with_values(table, at, values), wanted)
    assert rows_of(new) == rows_of(wanted)
    for (reader, found), (_, due) in zip(rows_by_reader(new), rows_by_reader(wanted), strict=True):
        assert found == due, reader
    for before, after in zip(chunks_of(source), chunks_of(new), strict=True):
        for path, content in before.items():
            assert path[0].decode() in names or after[path] == content


def sample(path: Path, **options: Any) -> pa.Table:
    table = pa.table(
        {
            "id": pa.array(range(100), pa.int64()),
            "x": pa.array([n / 4 for n in range(100)]),
            "text": [f"t{n % 5}" for n in range(100)],
        }
    )
    pq.write_table(table, path, row_group_size=25, **options)
    return table


def test_only_changed_columns_of_changed_row_groups_are_encoded(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    sample(source, write_page_index=True)
    values = pa.table({"x": pa.array([None, -1.0], pa.float64())})
    answer = updated(source, [30, 99], values)
    assert answer.name is not None
    old, new = chunks_of(source), chunks_of(tmp_path / answer.name)
    differ = [
        (number, path)
        for number, chunks in enumerate(old)
        for path in chunks
        if chunks[path] != new[number][path]
    ]
    assert differ == [(1, (b"x",)), (3, (b"x",))]
    footer = pq.read_metadata(pa.BufferReader(answer.footer))
    changed = footer.row_group(1).column(1).statistics
    assert (changed.null_count, changed.min, changed.max) == (1, 6.25, 12.25)
    assert footer.row_group(3).column(1).statistics.min == -1.0
    assert all(footer.row_group(1).column(n).has_offset_index for n in range(3))
    assert answer.unread == (("x",),)


@pytest.mark.parametrize(
    ("at", "new", "encoded"),
    [
        ([30, 99], {"x": [7.5, 24.75], "text": ["t0", "t4"]}, []),
        ([30, 99], {"x": [7.5, 24.75], "text": ["t0", "other"]}, [(3, b"text")]),
        ([0, 1, 30], {"x": [-0.0, 0.25, None], "text": ["t0", "t1", "t0"]}, [(0, b"x"), (1, b"x")]),
        ([40], {"x": [float("nan")], "text": [None]}, [(1, b"text"), (1, b"x")]),
    ],
)
def test_columns_whose_new_values_are_the_old_ones_are_copied(
    tmp_path: Path, at: list[int], new: dict[str, list[Any]], encoded: list[tuple[int, bytes]]
) -> None:
    source = tmp_path / "old.parquet"
    table = sample(source)
    values = pa.table({"x": pa.array(new["x"], pa.float64()), "text": pa.array(new["text"])})
    values = values.cast(pa.schema([("x", pa.float64()), ("text", pa.string())]))
    answer = updated(source, at, values)
    assert answer.name is not None
    path = tmp_path / answer.name
    wanted = with_values(table, at, values)
    assert repr(pq.read_table(path).to_pylist()) == repr(wanted.to_pylist())
    assert answer.kept_rows == 100
    pairs = list(zip(chunks_of(source), chunks_of(path), strict=True))
    assert encoded == sorted(
        (number, name[0])
        for number, (before, after) in enumerate(pairs)
        for name in before
        if before[name] != after[name]
    )
    assert answer.unread == (("x",),)
    assert answer.nan_columns == ((("x",),) if new["x"] == new["x"][:1] else ())
    nan = [n for n, value in zip(at, new["x"], strict=True) if value != value]  # noqa: PLR0124
    assert all(
        not pq.read_metadata(path).row_group(n // 25).column(1).statistics.has_min_max for n in nan
    )


def test_a_column_that_the_file_lacks_is_added_in_every_row_group(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    sample(source)
    field = pa.field("new", pa.int32(), metadata={"PARQUET:field_id": "7"})
    values = pa.table([pa.array([5], pa.int32())], schema=pa.schema([field]))
    answer = updated(source, [30], values)
    assert answer.name is not None
    new = pq.read_table(tmp_path / answer.name)
    assert new.column_names == ["id", "x", "text", "new"]
    assert new["new"].to_pylist() == [5 if n == 30 else None for n in range(100)]
    assert pq.ParquetFile(tmp_path / answer.name).schema_arrow.field("new").metadata == {
        b"PARQUET:field_id": b"7"
    }
    for before, after in zip(chunks_of(source), chunks_of(tmp_path / answer.name), strict=True):
        assert before.items() <= after.items()


def test_a_wider_type_of_the_table_is_written_in_every_row_group(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(
        pa.table({"n": pa.array(range(20), pa.int32()), "z": range(20)}), source, row_group_size=10
    )
    answer = updated(source, [3], pa.table({"n": pa.array([1 << 40], pa.int64())}))
    assert answer.name is not None
    new = pq.read_table(tmp_path / answer.name)
    assert new.schema.field("n").type == pa.int64()
    assert new["n"].to_pylist() == [1 << 40 if n == 3 else n for n in range(20)]


def test_a_null_where_the_file_says_that_there_is_none(tmp_path: Path) -> None:
    """A chunk with definition levels under a required field is read as other values."""
    source = tmp_path / "old.parquet"
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("z", pa.int64())])
    table = pa.table([list(range(20)), list(range(20))], schema=schema)
    pq.write_table(table, source, row_group_size=10)
    for value in (None, 7):
        answer = updated(source, [3], pa.table({"n": pa.array([value], pa.int64())}))
        assert answer.name is not None
        assert pq.read_table(tmp_path / answer.name)["n"].to_pylist() == [
            value if n == 3 else n for n in range(20)
        ]
        for (reader, found), (_, due) in zip(
            flat(tmp_path / answer.name), flat(source), strict=True
        ):
            assert found == {**due, 3: value}, reader


def flat(path: Path) -> Iterator[tuple[str, dict[int, Any]]]:
    table = pq.read_table(path)
    yield "arrow", dict(zip(table["z"].to_pylist(), table["n"].to_pylist(), strict=True))
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        yield "duckdb", dict(connection.execute(f"SELECT z, n FROM '{path}'").fetchall())
    polars = pytest.importorskip("polars")
    yield "polars", dict(polars.read_parquet(path).select(["z", "n"]).rows())


def test_a_nan_is_reported_and_its_bounds_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    sample(source)
    answer = updated(source, [30], pa.table({"x": [NAN]}))
    assert answer.nan_columns == (("x",),)
    footer = pq.read_metadata(pa.BufferReader(answer.footer))
    assert not footer.row_group(1).column(1).statistics.has_min_max
    assert footer.row_group(0).column(1).statistics.has_min_max


def test_columns_of_types_that_only_spark_knows_are_copied(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    table = pa.table({"g": pa.array([b"\x01"] * 20), "n": range(20)})
    pq.write_table(table, source)
    content = source.read_bytes()
    answer = updated(source, [3], pa.table({"n": [99]}))
    assert answer.name is not None
    assert chunks_of(tmp_path / answer.name)[0][(b"g",)] in content


@pytest.mark.parametrize("mark", [b"org.apache.spark.legacyDateTime"])
def test_times_of_another_calendar_are_left_to_spark(mark: bytes, tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())], metadata={mark: b""})
    pq.write_table(pa.table([[0], [1]], schema=schema), source)
    times = pa.table({"ts": pa.array([5], pa.timestamp("us", "UTC"))})
    assert "hybrid calendar" in str(updated(source, [0], times).refusal)
    assert updated(source, [0], pa.table({"n": [5]})).refusal is None


def test_rows_that_do_not_fit_the_plan_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    sample(source)
    values = pa.table({"x": [1.0, 2.0]})
    assert "2 new rows instead of 3" in str(updated(source, [1, 2], values, num_updates=3).refusal)
    assert "none of those" in str(updated(source, [1, 1], values).refusal)
    assert "spelled otherwise" in str(updated(source, [1, 2], pa.table({"X": [1.0, 2.0]})).refusal)
    assert [path.name for path in tmp_path.iterdir()] == ["old.parquet"]
    # The job removes a file that no answer names.
    assert "after the last row" in str(updated(source, [1, 200], values, num_updates=1).refusal)
    source.write_bytes(b"PAR1 is no Parquet file")
    assert updated(source, [1, 2], values).refusal


def test_files_of_a_task_follow_each_other_in_any_batches(tmp_path: Path) -> None:
    sources = [tmp_path / f"old{n}.parquet" for n in range(3)]
    for source in sources:
        sample(source)
    draw = random.Random(5)
    chosen = [sorted(draw.sample(range(100), 20)) for _ in sources]
    parts = [
        rows_for(at, pa.table({"x": [float(-n) for n in at]}), number)
        for number, at in enumerate(chosen)
        if number != 1
    ]
    every = pa.Table.from_batches(parts).combine_chunks()
    order = UpdateOrder(
        files=tuple(update_of(source, n, 20) for n, source in enumerate(sources)),
        schema=pa.schema([("x", pa.float64())]),
    )
    found = list(answers(order, every.to_batches(max_chunksize=7)))
    assert [answer.ordinal for answer in found] == [0, 2]
    for answer in found:
        assert answer.name is not None
        values = pq.read_table(tmp_path / answer.name)["x"].to_numpy()
        assert np.flatnonzero(values < 0).tolist() == [n for n in chosen[answer.ordinal] if n]


@pytest.mark.parametrize("name", ["flag", "x", "d", "list"])
def test_a_changed_column_has_its_own_encodings_and_codec(name: str, tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    table = odd_table(random.Random(1), 120, nested=True)
    encodings = {
        "id": "DELTA_BINARY_PACKED",
        "x": "BYTE_STREAM_SPLIT",
        "d": "DELTA_BINARY_PACKED",
        "list.list.element": "DELTA_BINARY_PACKED",
    }
    pq.write_table(
        table,
        source,
        column_encoding=encodings,
        use_dictionary=["text"],
        store_decimal_as_integer=True,
        compression={**dict.fromkeys(table.column_names, "snappy"), "x": "gzip", "list": "zstd"},
    )
    values = table.select([name]).cast(pa.schema([(name, KINDS[name])])).slice(0, 1)
    answer = updated(source, [7], values)
    assert answer.refusal is None
    old = described(pq.read_metadata(source))
    assert described(pq.read_metadata(pa.BufferReader(answer.footer))) == old


def test_the_dictionary_of_an_empty_row_group_is_copied(tmp_path: Path) -> None:
    """Then a chunk has a dictionary page and no data page, whose place is 0."""
    source = tmp_path / "old.parquet"
    table = pa.table({"id": range(20), "text": ["a", "b"] * 10, "same": ["c"] * 20})
    with pq.ParquetWriter(source, table.schema, use_dictionary=["text"]) as writer:
        for start, length in ((0, 10), (10, 0), (10, 10)):
            writer.write_table(table.slice(start, length))
    answer = updated(source, [3, 12], pa.table({"same": ["x", "y"]}))
    assert answer.name is not None
    pages = []
    for path in (source, tmp_path / answer.name):
        chunk = pq.read_metadata(path).row_group(1).column(1)
        start = chunk.dictionary_page_offset
        pages.append(path.read_bytes()[start : start + chunk.total_compressed_size])
    assert pages[0] == pages[1] != b""
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(tmp_path / answer.name)["text"].to_list() == ["a", "b"] * 10


def described(footer: pq.FileMetaData) -> dict[str, Any]:
    """Return encodings and codec of the columns of a file."""
    chunks = [footer.row_group(0).column(n) for n in range(footer.num_columns)]
    return {c.path_in_schema: (set(c.encodings), c.compression) for c in chunks}


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_left_when_the_nth_write_goes_wrong(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "old.parquet"
    sample(source, write_page_index=True)
    values = pa.table({"x": [1.0, 2.0]})
    run = lambda: updated(source, [30, 99], values)  # noqa: E731
    assert num_writes_that_matter(run, fault, monkeypatch, tmp_path) > 5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("writer", list(WRITERS))
@pytest.mark.parametrize("seed", range(4))
def test_rows_get_values_while_others_leave(writer: str, seed: int, tmp_path: Path) -> None:
    draw = random.Random(f"{writer} {seed} leaving")
    source = tmp_path / "old.parquet"
    num_rows = draw.choice([2, 9, 120]) if writer != "duckdb" else 5000
    WRITERS[writer](odd_table(draw, num_rows, nested=writer != "fastparquet"), source, draw)
    table = pq.read_table(source)
    stored = pq.read_schema(source)
    names = [n for n in KINDS if n in table.column_names and stored.field(n).type == KINDS[n]][:3]
    many = draw.choice([2, min(9, num_rows), num_rows])
    touched = sorted(draw.sample(range(num_rows), many))
    at = sorted(draw.sample(touched, max(1, many // 2)))
    gone = sorted({*touched} - {*at})
    schema = pa.schema([(name, KINDS[name]) for name in names])
    values = odd_table(draw, num_rows, nested=True).select(names).cast(schema).take(at)
    answer = with_leaving(source, at, gone, values)
    assert answer.refusal is None
    assert (answer.physical_rows, answer.kept_rows) == (num_rows, num_rows - len(gone))
    assert answer.name is not None
    new, wanted = tmp_path / answer.name, tmp_path / "wanted.parquet"
    kept = [n for n in range(num_rows) if n not in gone]
    pq.write_table(with_values(table, at, values).take(kept), wanted)
    assert rows_of(new) == rows_of(wanted)
    for (reader, found), (_, due) in zip(rows_by_reader(new), rows_by_reader(wanted), strict=True):
        assert found == due, reader


def with_leaving(
    source: Path, at: Sequence[int], gone: Sequence[int], values: pa.Table, num_updates: int = -1
) -> FileAnswer:
    """Write a file again without some rows, and with new values in others."""
    places = np.array(at, np.int64)

    def of_group(rows: GroupRows) -> tuple[Any, pa.Table]:
        low, high = np.searchsorted(places, [rows.first_row, rows.end])
        return places[low:high], values.slice(low, high - low)

    update = replace(
        update_of(source, 0, len(at) if num_updates < 0 else num_updates),
        leaving=RowBitmap.of_rows(np.array(gone, np.int64)).packed(),
        touched=RowBitmap.of_rows(np.array(sorted([*at, *gone]), np.int64)).packed(),
    )
    return rewrite_with_values(update, values.schema, of_group)


def test_row_groups_without_a_change_are_copied_while_rows_leave(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    table = sample(source)
    values = pa.table({"x": pa.array([None, -1.0], pa.float64())})
    answer = with_leaving(source, [30, 99], [31], values)
    assert answer.name is not None
    assert answer.copied_groups == 2
    new = tmp_path / answer.name
    before, after = chunks_of(source), chunks_of(new)
    assert [one == other for one, other in zip(before, after, strict=True)] == [
        True,
        False,
        True,
        False,
    ]
    wanted = with_values(table, [30, 99], values)
    kept = [n for n in range(100) if n != 31]
    assert pq.read_table(new).to_pylist() == wanted.take(kept).to_pylist()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"x": pa.array([1], pa.int64())}, "stored in another way"),
        ({"y": pa.array([1.0])}, "stored in another way"),
        ({"text": pa.array([None], pa.string())}, "a NULL in column text"),
    ],
)
def test_what_only_another_schema_could_hold_is_refused(
    tmp_path: Path, values: dict[str, pa.Array], reason: str
) -> None:
    source = tmp_path / "old.parquet"
    schema = sample(source).schema
    place = schema.get_field_index("text")
    table = sample(source).cast(schema.set(place, schema.field("text").with_nullable(False)))
    pq.write_table(table, source)
    answer = with_leaving(source, [3], [4], pa.table(values))
    assert reason in (answer.refusal or "")
    assert list(tmp_path.iterdir()) == [source]


def test_other_numbers_of_rows_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    sample(source)
    values = pa.table({"x": [1.0, 2.0]})
    assert "1 new rows instead of 2" in str(with_leaving(source, [3, 400], [4], values).refusal)
    assert "2 new rows instead of 9" in str(with_leaving(source, [3, 4], [5], values, 9).refusal)
