"""Footers whose kind is known say what Arrow says of them, or are left to Arrow."""

from __future__ import annotations

import io
import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.log.files import file_stats as known_footers
from puredelta.log.files.file_stats import FooterSummary, KnownFooters, TableStatistics
from puredelta.log.files.parquet_footer import (
    FooterEnd,
    NoFooterError,
    parse_footer,
    schema_message,
    schema_text,
)
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DecimalType,
)
from puredelta.worker.footers import footer_shapes
from puredelta.worker.footers.chunk_shapes import Walk
from puredelta.worker.footers.thrift_compact import UnsupportedLayoutError
from tests.commands.convert.other_files import FROM_ARROW, random_table
from tests.log.files.test_file_stats import struct, table_config

SCHEMA = struct(
    i=INTEGER,
    l=LONG,
    f=FLOAT,
    d=DOUBLE,
    s=STRING,
    day=DATE,
    t=TIMESTAMP_NTZ,
    z=TIMESTAMP,
    dec=DecimalType(20, 3),
    b=BOOLEAN,
    absent=LONG,
)


def end_of(content: bytes) -> FooterEnd:
    length = int.from_bytes(content[-8:-4], "little") + 8
    return FooterEnd(content[-length:], len(content) - length)


def by_arrow(statistics: TableStatistics, end: FooterEnd) -> FooterSummary:
    footer = parse_footer(end)
    message = schema_message(footer)
    stats = statistics.encode(footer, message=message)
    return FooterSummary(schema_text(footer, message), stats, footer.num_rows)


@pytest.fixture(autouse=True, params=[0, 200])
def alike_min(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All chunks are read by one pattern from the first file on, or only after many."""
    monkeypatch.setattr(footer_shapes, "_ALIKE_MIN", request.param)


def parquet(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[FooterEnd]:
    """What Arrow is asked to parse."""
    asked: list[FooterEnd] = []

    def parse(end: FooterEnd) -> pq.FileMetaData:
        asked.append(end)
        return parse_footer(end)

    monkeypatch.setattr(known_footers, "parse_footer", parse)
    return asked


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", FROM_ARROW)
def test_every_program_is_understood_as_arrow_does(tmp_path: Path, program: str) -> None:
    random = Random(program)
    statistics = TableStatistics(table_config(SCHEMA, vectors=False))
    known = KnownFooters(statistics)
    for number in range(24):
        FROM_ARROW[program](random_table(random), tmp_path / f"{number}.parquet")
    for path in sorted(tmp_path.rglob("*.parquet")):
        end = end_of(path.read_bytes())
        assert known.describe(end) == by_arrow(statistics, end), path


def test_alike_files_are_parsed_once(parsed: list[bytes]) -> None:
    known = KnownFooters(TableStatistics(table_config(SCHEMA, vectors=False)))
    for number in range(50):
        table = pa.table(
            {"l": [number * 10**7, -number], "s": ["a" * number, "z"], "f": [1.0, 2.0], "i": [7, 8]}
        )
        text = known.describe(end_of(parquet(table))).stats
        assert text is not None
        said = json.loads(text)
        assert said["minValues"] == {"i": 7, "l": -number, "s": "a" * min(number, 32)}
        assert said["maxValues"] == {"i": 8, "l": number * 10**7, "s": "z"}
    assert len(parsed) < 6


def test_files_of_several_row_groups_are_parsed_once(parsed: list[FooterEnd]) -> None:
    """Each has another number of groups, and pandas' note of its rows, as those of pandas have."""
    statistics = TableStatistics(table_config(SCHEMA, vectors=False))
    known = KnownFooters(statistics)
    random = Random(7)
    for number in range(60):
        rows = [
            {
                "l": random.choice([None, random.randrange(10**9)]),
                "s": random.choice([None, "b" * random.randrange(200), "ü"]),
                "f": random.choice([1.5, float("nan")]),
                "i": None if number % 3 else random.randrange(99),
            }
            for _ in range(random.randint(1, 40))
        ]
        columns = pa.schema(
            [("l", pa.int64()), ("s", pa.string()), ("f", pa.float32()), ("i", pa.int32())]
        )
        table = pa.Table.from_pylist(rows, columns)
        table = table.replace_schema_metadata({"pandas": f'{{"stop": {len(rows)}}}'})
        end = end_of(parquet(table, row_group_size=random.choice([3, 9, 40])))
        assert known.describe(end) == by_arrow(statistics, end)
    assert len(parsed) < 15


def test_no_statistics_are_wanted(parsed: list[bytes]) -> None:
    known = KnownFooters(None)
    for number in range(9):
        found = known.describe(end_of(parquet(pa.table({"l": [number]}))))
        assert found.stats is None
        assert "int64 field_id=-1 l" in found.schema_text
    assert len(parsed) == 1


@pytest.mark.parametrize("vectors", [False, True])
def test_structs_lists_and_nulls(vectors: bool, parsed: list[bytes]) -> None:
    schema = struct(s=struct(x=LONG, y=STRING), l=ArrayType(LONG))
    statistics = TableStatistics(table_config(schema, vectors=vectors))
    known = KnownFooters(statistics)
    columns = pa.schema(
        [("s", pa.struct([("x", pa.int64()), ("y", pa.string())])), ("l", pa.list_(pa.int64()))]
    )
    random = Random(1)
    for _ in range(80):
        rows = [
            {
                "s": random.choice([None, {"x": random.choice([None, 5]), "y": "ü" * 50}]),
                "l": random.choice([None, [], [1, None], [2]]),
            }
            for _ in range(random.randint(1, 3))
        ]
        end = end_of(parquet(pa.Table.from_pylist(rows, columns)))
        assert known.describe(end) == by_arrow(statistics, end)
    assert len(parsed) < 60


def test_another_writer_and_another_schema_are_other_kinds() -> None:
    statistics = TableStatistics(table_config(SCHEMA, vectors=False))
    known = KnownFooters(statistics)
    tables = [
        pa.table({"d": [1.0], "l": [1]}),
        pa.table({"d": [1.0], "l": pa.array([1], pa.int32())}),
        pa.table({"d": [1.0], "l": [1]}).replace_schema_metadata({"k": "v"}),
        pa.table({"d": [1.0], "L": [1]}),
        pa.table({f"c{n}": [n] for n in range(40)}),
    ]
    ends = [
        end_of(parquet(table, **options))
        for _ in range(4)
        for table in tables
        for options in (
            {},
            {"version": "1.0"},
            {"compression": "none"},
            {"write_statistics": False},
        )
    ]
    for end in ends:
        assert known.describe(end) == by_arrow(statistics, end)


def test_damaged_footers_are_never_understood_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken for a known kind in spite of a damaged byte says what Arrow reads, too.

    Arrow is asked for these alone.
    """
    statistics = TableStatistics(table_config(SCHEMA, vectors=False))
    known = KnownFooters(statistics)
    table = pa.table({"l": [1, 300, 7], "s": ["abc", "b", "c"], "i": [1, None, None]})
    # Arrow's own copy of the schema is left out: Arrow refuses a damaged one, Spark reads none.
    end = end_of(parquet(table, row_group_size=2, store_schema=False))
    known.describe(end)

    def refuse(_end: FooterEnd) -> pq.FileMetaData:
        raise NoFooterError("not of a known kind")

    monkeypatch.setattr(known_footers, "parse_footer", refuse)
    random, recognized = Random(3), 0
    for _ in range(3000):
        content = bytearray(end.content)
        for _ in range(random.randint(1, 3)):
            content[random.randrange(len(content) - 8)] = random.randrange(256)
        damaged = FooterEnd(bytes(content), end.begins_at)
        try:
            found = known.describe(damaged)
        except NoFooterError:
            continue
        recognized += 1
        assert found == by_arrow(statistics, damaged), damaged
    assert 20 < recognized < 2000


def test_what_is_no_struct() -> None:
    for content in (b"\x1f\x00", b"\x1c" * 40, b"\x19\xfc\xff\xff\xff\xff\x07"):
        with pytest.raises((UnsupportedLayoutError, IndexError)):
            Walk(content).struct()
