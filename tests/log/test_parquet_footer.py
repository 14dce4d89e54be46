"""Reading footers: errors that name the file, order, bounded look-ahead."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.parquet_footer import (
    ParquetWriter,
    map_footers,
    read_footer,
    spark_schema_json,
)


def parquet(rows: int = 3, *, wide: int = 0, metadata=None) -> bytes:
    table = pa.table(
        {"c": list(range(rows))} | {"w" * 90 + str(i): [1] * rows for i in range(wide)}
    )
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return sink.getvalue()


def test_every_kind_of_source(tmp_path):
    content = parquet()
    (tmp_path / "f").write_bytes(content)
    length = int.from_bytes(content[-8:-4], "little") + 8
    with (tmp_path / "f").open("rb") as file:
        for source in (str(tmp_path / "f"), content, content[-length:], file):
            assert read_footer(source).num_rows == 3
        assert not file.closed


def test_a_footer_longer_than_the_first_read():
    content = parquet(wide=400)
    assert int.from_bytes(content[-8:-4], "little") > 64 * 1024
    assert read_footer(io.BytesIO(content)).num_columns == 401


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
    for source in (io.BytesIO(content), content):
        with pytest.raises(CorruptTableError, match=r"dir/f\.parquet") as caught:
            read_footer(source, name="dir/f.parquet")
        assert caught.value.code is ErrorCode.FAILED_READ_FILE_FOOTER
        assert "Could not read footer for file: dir/f.parquet" in caught.value.message
    with pytest.raises(CorruptTableError, match=reason):
        read_footer(io.BytesIO(content))


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_footer(str(tmp_path / "absent"))


def test_footers_come_in_order_and_lazily():
    files = [parquet(n) for n in range(200)]
    taken = []

    def sources():
        for number in range(200):
            taken.append(number)
            yield number

    results = map_footers(
        sources(), lambda n, footer: (n, footer.num_rows), open_source=files.__getitem__, threads=2
    )
    assert next(results) == (0, 0)
    assert len(taken) <= 24
    assert list(results) == [(n, n) for n in range(1, 200)]


def test_opened_files_are_closed_whatever_happens():
    opened = []

    def open_source(content):
        opened.append(io.BytesIO(content))
        return opened[-1]

    files = [parquet(), b"no", parquet()]
    with pytest.raises(CorruptTableError, match="number 2"):
        list(
            map_footers(
                files, lambda _, f: f, open_source=open_source, name=lambda c: f"number {len(c)}"
            )
        )
    assert opened
    assert all(file.closed for file in opened)


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
        open_source=lambda c: c,
        recover=lambda _, error: error.code,
    )
    assert list(found) == [3, ErrorCode.FAILED_READ_FILE_FOOTER, 5]
