"""What a template says of a file is what the columns say one by one."""

from __future__ import annotations

import io
from datetime import date, datetime, timezone
from decimal import Decimal
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.log.files.file_stats import StatsTemplate, TableStatistics
from puredelta.log.files.parquet_footer import schema_message
from puredelta.protocol.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    StructField,
    StructType,
)
from puredelta.worker.footers.chunk_shapes import Raw
from puredelta.worker.footers.footer_shapes import Group
from tests.log.files.test_file_stats import table_config

ROWS = 9
COLUMNS = {
    "l %s": (LONG, [10**18], [-3, 7]),
    'q"uote': (STRING, ["x"], [b"", b"a", b"a" * 32, b"a" * 33, "ü€".encode(), b"\xff", b'"\\\n']),
    "d": (DATE, [date(2020, 1, 1)], [-10, 0, 18000, 2**31 - 1]),
    "t": (TIMESTAMP, [datetime(2020, 1, 1, tzinfo=timezone.utc)], [0, 1_700_000_000_000_001]),
    "n": (DecimalType(9, 2), [Decimal("1.25")], [125, -7]),
    "f": (DOUBLE, [1.5], [0.0, -0.0, 2.5, float("inf"), float("nan")]),
    "b": (BINARY, [b"x"], [b"\x00"]),
}


def _schema(*names: str) -> StructType:
    return StructType(tuple(StructField(name, COLUMNS[name][0]) for name in names))


def _footer(*names: str) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(pa.table({name: COLUMNS[name][1] for name in names}), sink)
    return pq.read_metadata(sink)


def _random_chunk(random: Random, name: str) -> tuple[int | None, Raw | None, Raw | None]:
    nulls = random.choice([None, ROWS, 0, 0, 0, 0, 3])
    if random.random() < 0.1:
        return nulls, None, None
    return nulls, random.choice(COLUMNS[name][2]), random.choice(COLUMNS[name][2])


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("names", [tuple(COLUMNS), ("l %s", 'q"uote'), ("b",)])
def test_encoders_agree(names: tuple[str, ...], vectors: bool) -> None:
    random = Random(str(names))
    statistics = TableStatistics(table_config(_schema(*names), vectors=vectors))
    footer = _footer(*names)
    kind = statistics.kind(footer, schema_message(footer))
    encode = statistics.chunk_encoder(kind)
    for _ in range(500):
        groups = [Group(ROWS, *zip(*(_random_chunk(random, name) for name in names), strict=True))]
        assert encode(groups) == statistics.encode_chunks(kind, groups)


def test_usual_files_fill_every_gap() -> None:
    statistics = TableStatistics(table_config(_schema("l %s", 'q"uote'), vectors=False))
    footer = _footer("l %s", 'q"uote')
    kind = statistics.kind(footer, schema_message(footer))
    template = StatsTemplate.of(kind.plans, kind.names or (), prefix_length=32, tight_bounds=None)
    assert template is not None
    assert template.fill(Group(5, (0, 4), (1, b"a"), (2, b"b"))) == (
        '{"numRecords":5,"minValues":{"l %s":1,"q\\"uote":"a"},'
        '"maxValues":{"l %s":2,"q\\"uote":"b"},"nullCount":{"l %s":0,"q\\"uote":4}}'
    )
    assert template.fill(Group(5, (5, 0), (1, b"a"), (2, b"b"))) is None
    assert template.fill(Group(5, (0, 0), (None, b"a"), (None, b"b"))) is None


def test_a_column_that_is_in_no_chunk_has_no_template() -> None:
    statistics = TableStatistics(table_config(_schema("l %s", "d"), vectors=False))
    footer = _footer("l %s")
    kind = statistics.kind(footer, schema_message(footer))
    assert kind.names is not None
    assert StatsTemplate.of(kind.plans, kind.names, prefix_length=32, tight_bounds=None) is None
    groups = [Group(3, (0,), (1,), (2,))]
    assert statistics.chunk_encoder(kind)(groups) == statistics.encode_chunks(kind, groups)
