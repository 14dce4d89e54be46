"""New rows that are rows of the source as they are: Arrow writes them, with Spark's result."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.commands.dml.new_rows import plain_columns, stored_types
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.write import SPARK, WORKERS
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, Metadata, Protocol
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    LONG,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.write.writer_settings import WriterSettings
from tests.commands.dml.tables import (
    delete,
    insert,
    lay_table,
    merge,
    table_rows,
    update,
)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("b", pa.int8()),
        ("n", pa.int32()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("money", pa.decimal128(9, 2)),
        ("big", pa.decimal128(25, 5)),
        ("nest", pa.struct([("a", pa.int64()), ("at", pa.timestamp("us", "UTC"))])),
        ("many", pa.list_(pa.struct([("x", pa.float64()), ("s", pa.list_(pa.string()))]))),
        ("tags", pa.map_(pa.string(), pa.decimal128(9, 2))),
    ]
)
AT = dt.datetime(2021, 5, 17, 12, 30, 1, 5, tzinfo=dt.timezone.utc)


def row(key: int | None, seed: int) -> dict[str, Any]:
    """A row of every type; a seed that three divides gives NULLs."""
    values: list[Any] = [
        seed % 100,
        seed * 1000,
        seed / 4,
        float("nan") if seed == 1 else -seed / 8,
        f"text {seed}",
        bytes([seed % 256]),
        seed % 2 == 0,
        dt.date(2020, 1, 1) + dt.timedelta(days=seed),
        AT + dt.timedelta(microseconds=seed),
        AT.replace(tzinfo=None) + dt.timedelta(days=seed),
        Decimal(seed) / 4,
        Decimal(seed) * 10**15,
        {"a": None if seed % 2 else seed, "at": AT} if seed % 5 else {"a": None, "at": None},
        [{"x": seed / 8, "s": ["ä", None, ""]}, None, {"x": None, "s": None}][: seed % 4],
        [("a", Decimal(seed)), ("b", None)][: seed % 3],
    ]
    cells = [None] * len(values) if seed % 3 == 0 else values
    return {"id": key, **dict(zip(SCHEMA.names[1:], cells, strict=True))}


TARGET = [[row(n, n) for n in range(k, k + 10)] for k in (0, 10)]
SOURCE = [row(3, 301), row(50, 1), row(None, 77), row(12, 303), row(13, 304), row(60, 60)]


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> DataFrame:
    pq.write_table(pa.Table.from_pylist(SOURCE, SCHEMA), tmp_path / "source.parquet")
    return spark.read.parquet(str(tmp_path / "source.parquet"))


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., TableLog]:
    count = iter(range(100))

    def new(files: Any = TARGET, **more: Any) -> TableLog:
        return lay_table(tmp_path / f"table {next(count)}", SCHEMA, files, **more)

    return new


class Makers(list[str]):
    """What made the new rows of each statement."""

    def __call__(self, stage: str, outcome: Any) -> None:
        if stage == "8 write":
            self.append(outcome.made_by)


@pytest.fixture
def makers() -> Makers:
    return Makers()


def by_spark(settings: ExecutionSettings) -> ExecutionSettings:
    return replace(settings, writer=WriterSettings(codec=None))


def contents(spark: SparkSession, log: TableLog) -> list[str]:
    return sorted(repr(r) for r in table_rows(spark, log))


CLAUSES = {
    "upsert": (update(), insert()),
    "insert": (insert(),),
    "update": (update(),),
    "delete, update, insert": (delete("s.id = 12"), update(), insert()),
    "conditional update, insert": (update(condition="s.n > 302000"), insert()),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", CLAUSES)
@pytest.mark.parametrize("staged", [False, True])
def test_the_table_is_the_one_spark_would_have_written(
    spark: SparkSession,
    made: Callable[..., TableLog],
    source: DataFrame,
    makers: Makers,
    name: str,
    *,
    staged: bool,
) -> None:
    rows = source.where(F.lit(1) == 1).repartition(2) if staged else source
    log = made()
    outcome = merge(spark, log, rows, "t.id = s.id", *CLAUSES[name], observe=makers)
    other = made()
    expected = merge(
        spark, other, rows, "t.id = s.id", *CLAUSES[name], observe=makers, change=by_spark
    )
    assert makers == [WORKERS, SPARK]
    assert contents(spark, log) == contents(spark, other)
    assert outcome.rows == expected.rows
    assert stats(log) == stats(other)
    assert not [p for p in log_root(log).iterdir() if p.name.startswith("_puredelta")]


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("column", ["n", "flag", "day", "s"])
def test_partitions_are_those_spark_would_have_written(
    spark: SparkSession,
    made: Callable[..., TableLog],
    source: DataFrame,
    makers: Makers,
    column: str,
) -> None:
    def new() -> TableLog:
        return made([[row(n, n)] for n in range(1, 15)], partition_by=[column])

    log, clauses = new(), (update(), insert())
    outcome = merge(spark, log, source, "t.id = s.id", *clauses, observe=makers)
    other = new()
    expected = merge(spark, other, source, "t.id = s.id", *clauses, observe=makers, change=by_spark)
    assert makers == [WORKERS, SPARK]
    assert contents(spark, log) == contents(spark, other)
    assert outcome.rows == expected.rows
    assert partitions(log) == partitions(other)


def partitions(log: TableLog) -> list[Any]:
    """Return partition, directory and row count of the new files."""
    return sorted(
        (str(a.partition_values), a.path.split("/")[1], json.loads(a.stats or "")["numRecords"])
        for a in new_adds(log)
    )


def log_root(log: TableLog) -> Path:
    return Path(log.root_uri.removeprefix("file:"))


def nulls(counts: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of a column for each NULL in it, those within columns, too."""
    for name, count in counts.items():
        inner = f"{path}.{name}"
        yield from nulls(count, inner) if isinstance(count, dict) else [inner] * count


def stats(log: TableLog) -> Any:
    """Return what is known of all new files together: they may be cut otherwise."""
    found = [json.loads(add.stats or "{}") for add in log.snapshot().files.adds()]
    return (
        sum(one["numRecords"] for one in found),
        Counter(list(chain.from_iterable(nulls(one["nullCount"]) for one in found))),
        min(one["minValues"]["n"] for one in found if "n" in one["minValues"]),
        max(one["maxValues"]["n"] for one in found if "n" in one["maxValues"]),
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "case",
    [
        ({"delta.constraints.c": "n >= 0 OR n IS NULL"}, (update(), insert())),
        ({"delta.enableChangeDataFeed": "true"}, (update(), insert())),
        ({}, (update(), insert(condition="s.n > 0"))),
    ],
)
def test_what_asks_for_more_is_left_to_spark(
    spark: SparkSession,
    made: Callable[..., TableLog],
    source: DataFrame,
    makers: Makers,
    case: tuple[dict[str, str], tuple[Any, ...]],
) -> None:
    properties, clauses = case
    log = made(properties=properties, protocol={"minReaderVersion": 1, "minWriterVersion": 4})
    outcome = merge(spark, log, source, "t.id = s.id", *clauses, observe=makers)
    assert makers == [SPARK]
    assert outcome.rows.matched_updated == 3


@pytest.mark.sampled(2)
@pytest.mark.parametrize("update_few", [update(n="s.n"), update(n="s.n + 1", id="s.id")])
def test_beside_updates_in_place_workers_copy_the_inserted_rows(
    spark: SparkSession,
    made: Callable[..., TableLog],
    source: DataFrame,
    makers: Makers,
    update_few: Any,
) -> None:
    log, other, clauses = made(), made(), (update_few, insert())
    outcome = merge(spark, log, source, "t.id = s.id", *clauses, observe=makers)
    expected = merge(spark, other, source, "t.id = s.id", *clauses, observe=makers, change=by_spark)
    assert makers == [WORKERS, SPARK]
    assert contents(spark, log) == contents(spark, other)
    assert outcome.rows == expected.rows
    assert outcome.rows.matched_updated == 3


def test_settings_of_sparks_writer_are_left_to_spark(
    spark: SparkSession, made: Callable[..., TableLog], source: DataFrame, makers: Makers
) -> None:
    key = "spark.sql.files.maxRecordsPerFile"
    spark.conf.set(key, "2")
    try:
        log = made()
        merge(spark, log, source, "t.id = s.id", insert(), observe=makers)
    finally:
        spark.conf.unset(key)
    assert makers == [SPARK]
    assert [json.loads(a.stats or "")["numRecords"] for a in new_adds(log)] == [2, 1]


def test_what_arrow_cannot_copy_spark_writes(
    spark: SparkSession, made: Callable[..., TableLog], tmp_path: Path, makers: Makers
) -> None:
    old = {**row(70, 5), "day": dt.date(1500, 1, 1)}
    pq.write_table(pa.Table.from_pylist([old], SCHEMA), tmp_path / "source.parquet")
    log = made()
    source = spark.read.parquet(str(tmp_path / "source.parquet"))
    merge(spark, log, source, "t.id = s.id", insert(), observe=makers)
    (maker,) = makers
    assert maker.startswith(SPARK)
    assert "days from 1970" in maker
    (add,) = new_adds(log)
    assert json.loads(add.stats or "")["minValues"]["day"] == "1500-01-01"


@pytest.mark.parametrize(
    "case",
    [("ZSTD", ".zstd.parquet", "ZSTD"), ("uncompressed", ".c000.parquet", "UNCOMPRESSED")],
)
def test_files_bear_the_codec_of_the_table(
    spark: SparkSession,
    made: Callable[..., TableLog],
    source: DataFrame,
    makers: Makers,
    case: tuple[str, str, str],
) -> None:
    codec, suffix, stored = case
    log = made(properties={"delta.parquet.compression.codec": codec})
    merge(spark, log, source, "t.id = s.id", insert(), observe=makers)
    assert makers == [WORKERS]
    (add,) = new_adds(log)
    assert add.path.endswith(suffix)
    footer = pq.read_metadata(log_root(log) / add.path)
    assert footer.row_group(0).column(0).compression == stored
    assert footer.row_group(0).column(SCHEMA.names.index("money")).physical_type == "INT32"


def new_adds(log: TableLog) -> list[Add]:
    return [add for add in log.snapshot().files.adds() if "/" in add.path]


FLAT = StructType((StructField("id", LONG), StructField("d", DecimalType(7, 2))))
FLAT_STORED = [("id", pa.int64()), ("d", pa.decimal128(7, 2))]
ELEMENT = pa.field("element", pa.int64())
REQUIRED = StructType((StructField("id", LONG, nullable=False),))


@pytest.mark.parametrize(
    ("schema", "partitions", "properties", "stored"),
    [
        (FLAT, (), {}, {"id": pa.int64(), "d": pa.decimal128(7, 2)}),
        (FLAT, ("id",), {}, {"d": pa.decimal128(7, 2), "id": pa.int64()}),
        (FLAT, ("d",), {}, None),
        (FLAT, (), {"delta.constraints.c": "id > 0"}, None),
        (REQUIRED, (), {}, None),
        (StructType((StructField("s", FLAT),)), (), {}, {"s": pa.struct(FLAT_STORED)}),
        (StructType((StructField("l", ArrayType(LONG)),)), (), {}, {"l": pa.list_(ELEMENT)}),
        (StructType((StructField("l", ArrayType(LONG, contains_null=False)),)), (), {}, None),
        (StructType((StructField("m", MapType(LONG, VOID)),)), (), {}, None),
        (StructType((StructField("s", REQUIRED),)), (), {}, None),
        (StructType((StructField("v", VOID),)), (), {}, None),
    ],
)
def test_tables_whose_rows_are_only_stored(
    schema: StructType,
    partitions: tuple[str, ...],
    properties: dict[str, str],
    stored: dict[str, Any] | None,
) -> None:
    metadata = Metadata(
        id="x",
        schema_string=encode_schema(schema),
        partition_columns=partitions,
        configuration=properties,
    )
    config = TableConfig.of(Protocol(min_reader_version=1, min_writer_version=3), metadata)
    found = stored_types(config)
    assert found == stored
    assert list(found or ()) == list(stored or ())


def test_a_cast_is_no_plain_column() -> None:
    one: Any = object()
    other: Any = object()
    staged = {id(one): "s0"}
    assert plain_columns({"a": one, "b": one}, staged) == {"a": "s0", "b": "s0"}
    assert plain_columns({"a": one, "b": other}, staged) is None
