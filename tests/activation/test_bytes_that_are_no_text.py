"""Bytes that are no UTF-8, in each place that has texts, and each statement that meets them.

Rows are those that Spark sees, or an error of this library names the file. An error of Python
alone would name nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from shutil import rmtree
from typing import TypeAlias

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.errors import DeltaError, ErrorCode
from puredelta.tables import DeltaTable

Row: TypeAlias = tuple[str, str, int]
"""Key and value in hexadecimal digits, and a number."""

_LATIN, _TORN = "FF41", "C328"
_REPLACED = {_LATIN: "EFBFBD41", _TORN: "EFBFBD28"}
"""What partitions have instead, as in Spark."""
_LOG = "_delta_log"
_FIRST = f"{0:020}"


def _text(digits: str) -> str:
    return f"CAST(unhex('{digits}') AS STRING)"


def _rows(spark: SparkSession, path: Path, *, place: str) -> None:
    """Lay a table of one file per partition; its keys or values are no UTF-8."""
    first, second = (_text(_LATIN), _text(_TORN)) if place != "plain" else ("'f1'", "'f2'")
    key, value = ("k", "v") if place != "value" else ("v", "k")
    spark.sql(
        f"SELECT {first} {key}, 'one' {value}, 1 n UNION ALL SELECT {second}, 'two', 2 "
        "UNION ALL SELECT 'zz', 'three', 3"
    ).select("k", "v", "n").coalesce(1).write.format("delta").partitionBy(
        *(["k"] if place == "partition" else [])
    ).save(str(path))


def _key(spark: SparkSession, path: Path) -> None:
    _rows(spark, path, place="key")


def _value(spark: SparkSession, path: Path) -> None:
    _rows(spark, path, place="value")


def _partition(spark: SparkSession, path: Path) -> None:
    _rows(spark, path, place="partition")


def _path(spark: SparkSession, path: Path) -> None:
    """Give the file a name of Latin-1, which the log spells with an escape."""
    _rows(spark, path, place="key")
    (file,) = path.rglob("*.parquet")
    name = b"caf\xe9.parquet".decode(errors="surrogateescape")
    file.rename(f"{file.parent}/{name}")
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    commit = path / _LOG / f"{_FIRST}.json"
    commit.write_text(commit.read_text().replace(file.name, "caf%E9.parquet"))


def _checkpoint(spark: SparkSession, path: Path) -> None:
    """Damage a path in a checkpoint; the commits are still there."""
    _rows(spark, path, place="key")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    spark.range(1).selectExpr("'w' k", "'four' v", "4 n").write.format("delta").mode("append").save(
        str(path)
    )
    (checkpoint,) = sorted((path / _LOG).glob("*.checkpoint.parquet"))[-1:]
    content = checkpoint.read_bytes()
    assert b"part-00000" in content
    checkpoint.write_bytes(content.replace(b"part-00000", b"part-0000\xff"))


def _checkpoint_alone(spark: SparkSession, path: Path) -> None:
    _checkpoint(spark, path)
    for commit in (path / _LOG).glob("*.json"):
        commit.unlink()


def _statistics(spark: SparkSession, path: Path) -> None:
    """Put bytes of Latin-1 into the statistics of a commit."""
    _rows(spark, path, place="plain")
    commit = path / _LOG / f"{_FIRST}.json"
    content = commit.read_bytes()
    assert b'\\"f1\\"' in content
    commit.write_bytes(content.replace(b'\\"f1\\"', b'\\"f\xff\\"'))
    (path / _LOG / f"{_FIRST}.crc").unlink(missing_ok=True)


def _escaped_statistics(spark: SparkSession, path: Path) -> None:
    """Put half of a surrogate pair into the statistics of a commit, which is valid JSON."""
    _rows(spark, path, place="plain")
    commit = path / _LOG / f"{_FIRST}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = line["add"]["stats"].replace('"f1"', '"f\\ud800"')
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / _LOG / f"{_FIRST}.crc").unlink(missing_ok=True)


PLACES: Mapping[str, Callable[[SparkSession, Path], None]] = {
    "key": _key,
    "value": _value,
    "partition": _partition,
    "path": _path,
    "checkpoint": _checkpoint,
    "checkpoint-alone": _checkpoint_alone,
    "statistics": _statistics,
    "escaped-statistics": _escaped_statistics,
}


def _expected(place: str) -> list[Row]:
    rows = [(_LATIN, "one", 1), (_TORN, "two", 2), (b"zz".hex().upper(), "three", 3)]
    if place == "partition":
        rows = [(_REPLACED.get(key, key), value, n) for key, value, n in rows]
    if place.endswith("statistics"):
        rows = [
            (key, value, n)
            for (_, value, n), key in zip(rows, ("6631", "6632", "7A7A"), strict=True)
        ]
    if place.startswith("checkpoint"):
        rows.append(("77", "four", 4))
    found = [(key, value.encode().hex().upper(), n) for key, value, n in rows]
    return [(v, k, n) for k, v, n in found] if place == "value" else found


def _contents(spark: SparkSession, path: Path) -> list[Row]:
    rows = spark.read.format("delta").load(str(path)).selectExpr("hex(k)", "hex(v)", "n")
    return sorted(map(tuple, rows.collect()), key=lambda row: row[2])


def _where(place: str) -> str:
    """Return a condition on the column that has such texts: it is true of the first row."""
    column = "v" if place == "value" else "k"
    kept = _REPLACED[_LATIN] if place == "partition" else _LATIN
    return f"{column} = {_text('6631' if place.endswith('statistics') else kept)}"


def _query(spark: SparkSession, path: Path, place: str) -> list[Row]:
    table = spark.read.format("delta").load(str(path))
    assert [row.n for row in table.where(_where(place)).collect()] == [1]
    assert table.groupBy("k", "v").count().count() == len(_expected(place))
    return _expected(place)


def _update(spark: SparkSession, path: Path, place: str) -> list[Row]:
    spark.sql(f"UPDATE delta.`{path}` SET n = n - 10 WHERE {_where(place)}").collect()
    (k, v, _), *others = _expected(place)
    return [(k, v, -9), *others]


def _delete(spark: SparkSession, path: Path, place: str) -> list[Row]:
    spark.sql(f"DELETE FROM delta.`{path}` WHERE {_where(place)}").collect()
    return _expected(place)[1:]


def _merge(spark: SparkSession, path: Path, place: str) -> list[Row]:
    """Update by both columns, and insert a row with such texts."""
    rows = spark.createDataFrame(
        [(k, v, -n) for k, v, n in _expected(place)[:2]] + [("F0", "F1", 100)],
        "k string, v string, n int",
    )
    source = rows.select(*(F.expr(f"CAST(unhex({c}) AS STRING) {c}") for c in "kv"), "n")
    merge = DeltaTable.forPath(spark, str(path)).alias("t")
    merge = merge.merge(source.alias("s"), "t.k = s.k AND t.v = s.v")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    changed = [(k, v, -n if n < 3 else n) for k, v, n in _expected(place)]
    return [*changed, ("EFBFBD" if place == "partition" else "F0", "F1", 100)]


def _optimize(spark: SparkSession, path: Path, place: str) -> list[Row]:
    if not place.startswith("checkpoint"):
        spark.sql(f"OPTIMIZE delta.`{path}`").collect()
        order = "v" if place == "partition" else "k, v"
        spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY ({order})").collect()
    else:
        spark.sql(f"OPTIMIZE delta.`{path}`").collect()
    return _expected(place)


def _convert(spark: SparkSession, path: Path, place: str) -> list[Row]:
    rmtree(path / _LOG)
    by = " PARTITIONED BY (k STRING)" if place == "partition" else ""
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`{by}").collect()
    return _expected(place)


def _stream(spark: SparkSession, path: Path, place: str) -> list[Row]:
    copied = path.with_name("copied")
    writer = spark.readStream.format("delta").load(str(path)).writeStream.format("delta")
    options = {"checkpointLocation": str(path.with_name("progress"))}
    query = writer.options(**options).trigger(availableNow=True).start(str(copied))
    query.awaitTermination()
    assert _contents(spark, copied) == sorted(_expected(place), key=lambda row: row[2])
    return _expected(place)


STATEMENTS: Mapping[str, Callable[[SparkSession, Path, str], Sequence[Row]]] = {
    "query": _query,
    "MERGE": _merge,
    "UPDATE": _update,
    "DELETE": _delete,
    "OPTIMIZE": _optimize,
    "CONVERT": _convert,
    "stream": _stream,
}


_NO_TEXT_IN_LOG = ("checkpoint-alone", "statistics")
_REFUSED: Mapping[tuple[str, str], ErrorCode] = {
    **{
        (place, statement): ErrorCode.LOG_CORRUPTED
        for place, statement in product(_NO_TEXT_IN_LOG, STATEMENTS)
        if statement != "CONVERT"  # it reads no log
    },
    **{("path", statement): ErrorCode.FAILED_READ_FILE_NOT_EXIST for statement in STATEMENTS},
    ("path", "CONVERT"): ErrorCode.UNSUPPORTED_DATA_FILE,
}
"""What neither Spark nor a reader of the log can read."""
CASES = list(product(PLACES, STATEMENTS))
SAMPLE = [
    ("key", "DELETE"),
    ("value", "stream"),
    ("partition", "UPDATE"),
    ("path", "MERGE"),
    ("checkpoint", "query"),
    ("checkpoint-alone", "OPTIMIZE"),
    ("statistics", "query"),
    ("escaped-statistics", "UPDATE"),
]


def require_rows_or_file(spark: SparkSession, directory: Path, place: str, statement: str) -> None:
    path = directory / "t"
    PLACES[place](spark, path)
    refused = _REFUSED.get((place, statement))
    if refused is None:
        expected = STATEMENTS[statement](spark, path, place)
        assert _contents(spark, path) == sorted(expected, key=lambda row: row[2])
        return
    with pytest.raises((DeltaError, StreamingQueryException)) as caught:
        STATEMENTS[statement](spark, path, place)
    message = str(caught.value)
    assert ("caf" if place == "path" else _FIRST[:-1]) in message, message
    if isinstance(caught.value, DeltaError):
        assert caught.value.code is refused
    else:  # Spark puts it into its own error of a query that failed
        assert statement == "stream"
        assert refused.error_class.split(".")[0] in message


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("place", "statement"), SAMPLE)
def test_rows_are_those_of_spark_or_the_file_is_named(
    active: SparkSession, tmp_path: Path, place: str, statement: str
) -> None:
    """The search of a MERGE ended with UnicodeEncodeError for a file whose name is no UTF-8."""
    require_rows_or_file(active, tmp_path, place, statement)


@pytest.mark.thorough
@pytest.mark.parametrize(("place", "statement"), [c for c in CASES if c not in SAMPLE])
def test_the_same_in_every_place(
    active: SparkSession, tmp_path: Path, place: str, statement: str
) -> None:
    require_rows_or_file(active, tmp_path, place, statement)
