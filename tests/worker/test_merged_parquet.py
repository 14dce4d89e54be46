"""Many small Parquet files as one: every value as if its file were alone, or not added."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from puredelta.worker.small_files import FooterFile, FooterTemplate, MergedParquet

TABLE = pa.table(
    {
        "first": pa.array(range(300), pa.int16()),
        "group": pa.array([{"key": n, "text": [str(n)]} for n in range(300)]),
        "key": pa.array([None if n % 7 == 0 else n * 10**12 for n in range(300)]),
        "text": pa.array([None if n % 11 == 0 else f"text {n % 50}" for n in range(300)]),
        "list": pa.array([[n] * (n % 3) for n in range(300)]),
        "day": pa.array([dt.date(2020, 1, 1)] * 299 + [None]),
        "time": pa.array(
            [dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)] * 300, pa.timestamp("us", "UTC")
        ),
        "money": pa.array([decimal.Decimal(n) / 100 for n in range(300)], pa.decimal128(12, 2)),
        "real": pa.array([n / 3 for n in range(300)]),
        "flag": pa.array([n % 2 == 0 for n in range(300)]),
        "nothing": pa.array([None] * 300, pa.int32()),
        "bytes": pa.array([bytes([n % 256]) for n in range(300)]),
    }
)
NAMES = [name for name in TABLE.column_names if name not in ("group", "list")]
WRITERS: dict[str, dict[str, Any]] = {
    "usual": {},
    "plain": {"use_dictionary": False, "compression": "none"},
    "zstd, second pages": {"compression": "zstd", "data_page_version": "2.0"},
    "no statistics": {"write_statistics": False},
    "page index, many pages": {"write_page_index": True, "data_page_size": 64},
    "first version": {"version": "1.0"},
    "deltas": {"use_dictionary": False, "column_encoding": {"key": "DELTA_BINARY_PACKED"}},
    "checksums": {"write_page_checksum": True},
}


def written(path: Path, table: pa.Table, **options: Any) -> str:
    pq.write_table(table, path, **options)
    return str(path)


def merged(paths: Sequence[str], names: Sequence[str]) -> list[pa.Table]:
    """Read files that must all be added."""
    template = FooterTemplate.of(paths[0], set(names))
    assert template is not None
    files = MergedParquet(template)
    assert [path for path in paths if not files.add_path(path)] == []
    return [pa.table(columns, list(names)) for columns in files.read(names)]


def alone(path: str, names: Sequence[str]) -> pa.Table:
    return pq.ParquetFile(path).read(list(names)).select(list(names)).combine_chunks()


def assert_same(paths: Sequence[str], names: Sequence[str]) -> None:
    for path, found in zip(paths, merged(paths, names), strict=True):
        expected = alone(path, names)
        assert found.schema.types == expected.schema.types
        assert found.to_pydict() == expected.to_pydict()


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("names", [NAMES, ["key"], ["text", "first"]], ids=len)
def test_values_are_those_of_every_file_alone(
    tmp_path: Path, writer: str, names: list[str]
) -> None:
    slices = [TABLE, TABLE.slice(7, 1), TABLE.slice(100, 150), TABLE.slice(299)]
    paths = [
        written(tmp_path / str(n), table, **WRITERS[writer]) for n, table in enumerate(slices * 4)
    ]
    assert_same(paths, names)


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(-9, 9) | st.none(), st.text(max_size=9)), min_size=1, max_size=40
        )
    ),
    st.booleans(),
)
def test_any_rows_in_any_files(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[int | None, str]]],
    dictionary: bool,
) -> None:
    scratch = tmp_path_factory.mktemp("files")
    paths = []
    for n, rows in enumerate([[(1, "")], *files]):
        keys, values = zip(*rows, strict=True)
        table = pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.string())})
        paths.append(written(scratch / str(n), table, use_dictionary=dictionary and n % 2 == 0))
    assert_same(paths, ["v", "k"])


def test_files_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(2_000).selectExpr(
        "id",
        "cast(id AS string) AS text",
        "date_add(DATE '2020-01-01', cast(id AS int)) AS day",
        "cast(id / 7 AS decimal(20, 3)) AS money",
        "timestamp_seconds(id) AS time",
        "named_struct('id', id) AS group",
    )
    rows.repartition(12).write.parquet(str(tmp_path / "rows"))
    paths = sorted(map(str, (tmp_path / "rows").glob("*.parquet")))
    assert len(paths) == 12
    assert_same(paths, ["id", "text", "day", "money"])


def edited(change: Callable[[bytes], bytes]) -> Callable[[Path], str]:
    def write(path: Path) -> str:
        before = Path(written(path, TABLE)).read_bytes()
        after = change(before)
        assert after != before
        path.write_bytes(after)
        return str(path)

    return write


def laid(table: pa.Table, **options: Any) -> Callable[[Path], str]:
    return lambda path: written(path, table, **options)


PATH_OF_KEY = b"\x19\x18\x03key\x15"


def with_text(text: bytes) -> pa.Table:
    return TABLE.set_column(3, "text", pa.array([text.decode("latin-1")] * 300))


UNLIKE: dict[str, Callable[[Path], str]] = {
    "a column more": laid(TABLE.append_column("more", TABLE["key"])),
    "another type": laid(TABLE.set_column(2, "key", TABLE["key"].cast(pa.float64()))),
    "another order": laid(TABLE.select(TABLE.column_names[::-1])),
    "two row groups": laid(TABLE, row_group_size=200),
    "no rows": laid(TABLE.slice(0, 0)),
    "too many rows": laid(pa.concat_tables([TABLE, TABLE.slice(299)])),
    "a statistic that looks like a column": laid(with_text(PATH_OF_KEY)),
    "a statistic that looks like a column, and another codec": laid(
        with_text(PATH_OF_KEY + b"\x02\x16"), compression="zstd"
    ),
    "another codec": laid(TABLE, compression="zstd"),
    "another writer": edited(lambda content: content.replace(b"parquet-cpp", b"parquet-xxx")),
    "an encrypted footer": edited(lambda content: content[:-4] + b"PARE"),
    "a footer longer than the file": edited(
        lambda content: content[:-8] + (len(content) + 1).to_bytes(4, "little") + b"PAR1"
    ),
    "a column beyond the data": edited(lambda content: content[:4] + content[-7_000:]),
    "no column of that name": edited(lambda c: c.replace(PATH_OF_KEY, b"\x19\x18\x03KEY\x15")),
    "no Parquet": edited(lambda _: b"PAR1"),
    "nothing": edited(lambda _: b""),
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_a_file_that_is_unlike_the_first_is_not_added(tmp_path: Path, kind: str) -> None:
    like = [written(tmp_path / str(n), TABLE.slice(n)) for n in range(2)]
    template = FooterTemplate.of(like[0], {"key", "text"})
    assert template is not None
    files = MergedParquet(template, rows_max=300)
    assert files.add_path(like[0])
    assert not files.add_path(UNLIKE[kind](tmp_path / "unlike"))
    assert files.add_path(like[1])
    found = [pa.table(columns, ["key"]) for columns in files.read(["key"])]
    assert found == [alone(path, ["key"]) for path in like]


def test_a_first_file_whose_statistics_look_like_a_column_is_like_no_other(tmp_path: Path) -> None:
    path = written(tmp_path / "0", with_text(PATH_OF_KEY))
    assert FooterTemplate.of(path, {"key"}) is None
    assert FooterTemplate.of(path, {"text"}) is not None


def whole(tmp_path: Path, **metadata: str) -> str:
    name = f"{len(list(tmp_path.iterdir()))}.parquet"
    table = TABLE.select(["key", "text"]).replace_schema_metadata(metadata or None)
    return written(tmp_path / name, table, store_schema=bool(metadata))


@pytest.mark.parametrize("metadata", [{}, {"a": "1"}, {"a": "1", "b": "text"}], ids=len)
def test_whole_files_are_alike_if_they_say_the_same_of_themselves(
    tmp_path: Path, metadata: dict[str, str]
) -> None:
    template = FooterTemplate.of(whole(tmp_path, **metadata), None)
    assert template is not None
    files = MergedParquet(template)
    others: list[dict[str, str]] = [{}, {"a": "1"}, {"a": "2"}, {"a": "1", "b": "text"}, {"b": "1"}]
    assert [files.add_path(whole(tmp_path, **other)) for other in others] == [
        other == metadata for other in others
    ]
    file = files.opened()
    expected = pq.read_schema(tmp_path / "0.parquet")
    assert file.schema_arrow.equals(expected, check_metadata=True)
    found = pa.Table.from_batches(file.read(1_000))
    assert found.to_pydict() == TABLE.select(["key", "text"]).to_pydict()


def test_a_row_group_without_rows_is_not_added(tmp_path: Path) -> None:
    """Some writers leave one, with a page."""
    path = written(tmp_path / "one row", TABLE.select(["key"]).slice(1, 1))
    template = FooterTemplate.of(path, {"key"})
    assert template is not None
    content = Path(path).read_bytes()
    assert content.count(b"\x16\x02") >= 3  # numbers of rows and of values
    (tmp_path / "none").write_bytes(content.replace(b"\x16\x02", b"\x16\x00"))
    assert pq.read_metadata(tmp_path / "none").row_group(0).num_rows == 0
    assert not MergedParquet(template).add_path(str(tmp_path / "none"))


@pytest.mark.parametrize(
    "column",
    [
        TABLE["text"].dictionary_encode(),
        TABLE["text"].cast(pa.large_string()),
        pa.array([1] * 300, pa.duration("us")),
        TABLE["group"],
        TABLE["list"],
    ],
    ids=lambda column: str(column.type),
)
def test_types_that_parquet_alone_does_not_tell_are_not_merged(
    tmp_path: Path, column: pa.ChunkedArray
) -> None:
    path = written(tmp_path / "file", pa.table({"a": TABLE["key"], "b": column}))
    assert FooterTemplate.of(path, {"a", "b"}) is None
    assert FooterTemplate.of(path, {"a"}) is not None
    assert FooterTemplate.of(path, {"a", "absent"}) is None


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FooterFile.opened(str(tmp_path / "absent"))
    path = written(tmp_path / "file", TABLE)
    template = FooterTemplate.of(path, {"key"})
    assert template is not None
    files = MergedParquet(template)
    content = bytearray(Path(path).read_bytes())
    begin = pq.read_metadata(path).row_group(0).column(3).dictionary_page_offset
    content[begin : begin + 8] = b"\xff" * 8
    Path(path).write_bytes(content)
    assert files.add_path(path)
    with pytest.raises((OSError, pa.ArrowException)):
        list(files.read(["key"]))
