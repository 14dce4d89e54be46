"""Reading footers: errors that name the file, order, bounded look-ahead."""

from __future__ import annotations

import gc
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.files.parquet_footer import (
    ParquetWriter,
    map_footers,
    schema_message,
    spark_schema_json,
)
from puredelta.store.base import FileEnd
from tests.log.footer_files import read_end, read_footer


def parquet(rows: int = 3, *, wide: int = 0, metadata=None) -> bytes:
    table = pa.table(
        {"c": list(range(rows))} | {"w" * 90 + str(i): [1] * rows for i in range(wide)}
    )
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return sink.getvalue()


def test_nothing_but_the_end_is_needed():
    content = parquet()
    length = int.from_bytes(content[-8:-4], "little") + 8
    only_end = bytes(len(content) - length) + content[-length:]
    assert read_footer(content).equals(read_footer(only_end))


def test_a_footer_longer_than_the_first_read():
    content = parquet(wide=400)
    asked = []

    def read(content: bytes, num_bytes: int) -> FileEnd:
        asked.append(num_bytes)
        return read_end(content, num_bytes)

    (footer,) = map_footers([content], lambda _, f: f, read_end=read)
    assert footer.num_columns == 401
    length = int.from_bytes(content[-8:-4], "little") + 8
    assert length > 64 * 1024
    assert asked == [64 * 1024, length]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "magic bytes"),
        (b"PAR1", "magic bytes"),
        (b"id,name\n1,x\n" * 20, "magic bytes"),
        (parquet()[:-5], "magic bytes"),
        (parquet()[:-8] + b"\xff\xff\xff\x0fPAR1", "footer of"),
        (b"\0" * 100 + (50).to_bytes(4, "little") + b"PAR1", "Could not read footer"),
        (parquet()[:-4] + b"PARE", "encrypted"),
    ],
)
def test_what_is_no_parquet_file_is_named(content, reason):
    found = map_footers(
        [content], lambda _, f: f, read_end=read_end, name=lambda _: "dir/f.parquet"
    )
    with pytest.raises(CorruptTableError, match=reason) as caught:
        list(found)
    assert caught.value.code is ErrorCode.FAILED_READ_FILE_FOOTER
    assert "Could not read footer for file: dir/f.parquet" in caught.value.message


def test_a_missing_file_is_missing():
    def read(source: str, num_bytes: int) -> FileEnd:
        raise FileNotFoundError(source, num_bytes)

    with pytest.raises(FileNotFoundError):
        list(map_footers(["absent"], lambda _, f: f, read_end=read))


def test_a_footer_that_nobody_holds_is_gone():
    """Those of thousands of files would otherwise wait for the garbage collector."""

    def held() -> int:
        return sum(isinstance(found, pq.FileMetaData) for found in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = held()
        for _ in range(3):
            schema_message(read_footer(parquet()))
        assert held() == before
    finally:
        gc.enable()


def test_footers_come_in_order_and_lazily():
    files = [parquet(n) for n in range(200)]
    taken = []

    def sources():
        for number in range(200):
            taken.append(number)
            yield number

    results = map_footers(
        sources(),
        lambda n, footer: (n, footer.num_rows),
        read_end=lambda n, num_bytes: read_end(files[n], num_bytes),
        threads=2,
    )
    assert next(results) == (0, 0)
    assert len(taken) <= 24
    assert list(results) == [(n, n) for n in range(1, 200)]


def test_who_wrote_a_file():
    assert ParquetWriter.of(read_footer(parquet())).name == "parquet-cpp-arrow"
    assert not ParquetWriter.of(read_footer(parquet())).hybrid_calendar
    for version, hybrid in (("2.4.8", True), ("3.0.0", False), ("4.1.0-SNAPSHOT", False)):
        footer = read_footer(parquet(metadata={"org.apache.spark.version": version}))
        assert ParquetWriter.of(footer).hybrid_calendar is hybrid


def test_the_schema_spark_left():
    key = "org.apache.spark.sql.parquet.row.metadata"
    assert spark_schema_json(read_footer(parquet(metadata={key: "{}"}))) == "{}"
    assert spark_schema_json(read_footer(parquet())) is None


def test_files_that_cannot_be_read_may_be_left_out():
    found = map_footers(
        [parquet(), b"no", parquet(5)],
        lambda _, f: f.num_rows,
        read_end=read_end,
        recover=lambda _, error: error.code,
    )
    assert list(found) == [3, ErrorCode.FAILED_READ_FILE_FOOTER, 5]
