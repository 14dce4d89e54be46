"""A table of many types and generated conditions over it, for tests of what a query reads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

NUM_ROWS = 240
NUM_FILES = 8

_COLUMNS = """
    id,
    cast(id DIV 3 AS int) AS i,
    cast(id % 100 AS tinyint) AS tiny,
    cast(id - 100 AS smallint) AS small,
    cast(IF(id % 50 = 7, 'NaN', id / 4) AS float) AS f,
    IF(id BETWEEN 60 AND 89, double('NaN'), id * 1.5D - 90) AS d,
    cast(id / 8 AS decimal(12, 3)) AS dec,
    concat('k', lpad(string(id), 4, '0')) AS s,
    concat(repeat('x', 28), lpad(string(id), 6, '0'), 'tail') AS long_text,
    IF(id < 90, NULL, concat('v', id)) AS seldom,
    IF(id % 5 = 0, NULL, id) AS mostly,
    date_add(DATE'2024-02-20', cast(id DIV 4 AS int)) AS dt,
    timestamp_micros(1700000000000000 + id * 1234567891) AS ts,
    cast(timestamp_micros(1700000000000000 + id * 987654321) AS timestamp_ntz) AS tn,
    id >= 120 AS flag,
    encode(string(id), 'utf-8') AS bin,
    named_struct('a', cast(id AS int), 'in', named_struct('c', concat('n', id DIV 30))) AS st,
    IF(id % 3 = 0, NULL, named_struct('x', id)) AS maybe,
    array(id) AS arr,
    cast(id DIV 60 AS int) AS p_int,
    IF(id DIV 120 = 1, NULL, 'a b/c') AS p_text,
    date_add(DATE'2024-02-28', cast(id DIV 80 AS int)) AS p_day
"""
PARTITIONED_BY = ("p_int", "p_text", "p_day")

_NUMBERS = ("id", "i", "tiny", "small", "f", "d", "dec", "mostly", "st.a", "maybe.x", "p_int")
_NUMBER_VALUES = ("-5", "0", "1", "7", "29.5", "30", "59", "60.125", "100", "119", "1e3")
_TEXTS = ("s", "long_text", "seldom", "st.in.c", "p_text")
_TEXT_VALUES = ("k0000", "k01", "k0100", "v9", "v200", "n2", "n", "a b/c", "x" * 28 + "000119tail")
_DAYS = ("dt", "p_day")
_DAY_VALUES = ("2024-02-28", "2024-02-29", "2024-03-01", "2024-03-20", "2025-01-01")
_INSTANTS = ("ts", "tn")
_INSTANT_VALUES = (
    "2023-11-14 22:13:20",
    "2023-11-15 10:00:00.123456",
    "2023-11-16 00:00:00",
    "2023-11-17 08:13:47.6171",
)
_COMPARISONS = ("=", "<", "<=", ">", ">=", "<>", "<=>")
_ALL = (*_NUMBERS, *_TEXTS, *_DAYS, *_INSTANTS, "flag", "bin", "st", "maybe", "arr")


def many_types(spark: SparkSession) -> DataFrame:
    """Return the rows, in as many parts as the table is to have files."""
    return spark.range(0, NUM_ROWS, 1, NUM_FILES).selectExpr(*_split(_COLUMNS))


def _split(text: str) -> list[str]:
    return [line.strip().rstrip(",") for line in text.strip().splitlines()]


def conditions(count: int, *, seed: int) -> Iterator[str]:
    """Yield generated conditions over the table, as SQL."""
    rng = random.Random(seed)
    for _ in range(count):
        yield _condition(rng, rng.choice((0, 0, 1, 1, 2)))


def _condition(rng: random.Random, depth: int) -> str:
    if depth:
        kind = rng.choice(("AND", "AND", "OR", "NOT"))
        if kind == "NOT":
            return f"NOT ({_condition(rng, depth - 1)})"
        return f"({_condition(rng, depth - 1)}) {kind} ({_condition(rng, depth - 1)})"
    kind = rng.choice(("number", "number", "text", "day", "instant", "null", "odd"))
    match kind:
        case "number":
            return _about(rng, rng.choice(_NUMBERS), _NUMBER_VALUES, "{}")
        case "text":
            column = rng.choice(_TEXTS)
            text = rng.choice(_TEXT_VALUES)
            return rng.choice(
                (
                    _about(rng, column, _TEXT_VALUES, "'{}'"),
                    f"{column} LIKE '{text[: rng.randint(1, len(text))]}%'",
                    f"startswith({column}, '{text[:3]}')",
                    f"{column} LIKE '{text[:2]}%{text[-1]}'",
                )
            )
        case "day":
            return _about(rng, rng.choice(_DAYS), _DAY_VALUES, "DATE'{}'")
        case "instant":
            column = rng.choice(_INSTANTS)
            kind = "TIMESTAMP" if column == "ts" else "TIMESTAMP_NTZ"
            return _about(rng, column, _INSTANT_VALUES, kind + "'{}'")
        case "null":
            return f"{rng.choice(_ALL)} IS {rng.choice(('', 'NOT '))}NULL"
    return rng.choice(
        (
            "flag",
            "NOT flag",
            "flag = true",
            f"cast(ts AS date) {rng.choice(_COMPARISONS)} DATE'2023-11-16'",
            f"cast(i AS bigint) {rng.choice(_COMPARISONS)} 29",
            f"cast(id AS double) {rng.choice(_COMPARISONS)} 119.5D",
            f"cast(id AS decimal(21, 1)) {rng.choice(_COMPARISONS)} 119.5",
            f"cast(f AS double) {rng.choice(_COMPARISONS)} 29.25D",
            "d = double('NaN')",
            "d > 1e6",
            "f < float('NaN')",
            f"id % 7 = {rng.randint(0, 6)}",
            "year(dt) = 2024",
            "upper(s) = 'K0001'",
            "coalesce(seldom, 'v9') = 'v9'",
            "i = tiny",
            "st IS NOT NULL AND st.a < 30",
            "p_text = 'a b/c' AND p_int = 1",
            "p_text IS NULL OR id < 30",
            "array_contains(arr, 5)",
            "bin = X'3132'",
        )
    )


def _about(rng: random.Random, column: str, values: tuple[str, ...], literal: str) -> str:
    one, other = (literal.format(v) for v in sorted(rng.sample(values, 2)))
    match rng.choice(("compare", "compare", "compare", "in", "in many", "between")):
        case "in":
            null = rng.choice(("", "", ", NULL"))
            return f"{column} IN ({one}, {other}{null})"
        case "in many":
            many = ", ".join(literal.format(v) for v in values)
            return f"{column} IN ({many}, {', '.join([one] * 8)})"
        case "between":
            return f"{column} BETWEEN {one} AND {other}"
    return f"{column} {rng.choice(_COMPARISONS)} {one}"


def files_read(rows: DataFrame) -> int:
    """Return how many files Spark's plan of a frame reads; runs no job."""
    frame: Any = rows
    execution = frame._jdf.queryExecution()
    execution.toRdd()
    leaves = execution.executedPlan().collectLeaves()
    metrics = [leaves.apply(n).metrics() for n in range(leaves.size())]
    return sum(
        int(metric.apply("numFiles").value()) for metric in metrics if metric.contains("numFiles")
    )


KINDS = {
    "equal": "id = 100",
    "less": "id < 30",
    "at least": "i >= 70",
    "between": "id BETWEEN 35 AND 40",
    "in": "id IN (1, 239)",
    "in many": "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "text": "s = 'k0100'",
    "prefix": "s LIKE 'k000%'",
    "startswith": "startswith(s, 'k023')",
    "null": "seldom IS NULL",
    "not null": "seldom IS NOT NULL",
    "not": "NOT (id >= 30)",
    "or": "id = 1 OR s = 'k0239'",
    "boolean": "flag",
    "decimal": "dec > 29.5",
    "double": "d < -80",
    "date": "dt = DATE'2024-03-01'",
    "timestamp": "ts < TIMESTAMP'2023-11-15 10:00:00'",
    "struct field": "st.a < 30",
    "day of a timestamp": "cast(ts AS date) = DATE'2023-11-16'",
    "cast": "cast(i AS bigint) = 29",
    "computed": "id + 0 = 2 + 3",
    "two columns": "i = tiny AND id > 200",
    "nothing": "upper(s) = 'K0001'",
}
"""Kinds of conditions, each by an example over the table, which is not partitioned."""
FILES_AND_ROWS: dict[str, tuple[int, int]] = {
    "equal": (1, 1),
    "less": (1, 30),
    "at least": (1, 30),
    "between": (1, 6),
    "in": (2, 2),
    "in many": (1, 12),
    "text": (1, 1),
    "prefix": (1, 10),
    "startswith": (1, 10),
    "null": (3, 90),
    "not null": (5, 150),
    "not": (1, 30),
    "or": (2, 2),
    "boolean": (8, 120),
    "decimal": (1, 3),
    "double": (2, 7),
    "date": (1, 4),
    "timestamp": (2, 49),
    "struct field": (1, 30),
    "day of a timestamp": (3, 70),
    "cast": (1, 3),
    "computed": (1, 1),
    "two columns": (2, 0),
    "nothing": (8, 1),
}
"""For each of them the files, of 8, that a query reads, and the rows of its answer. Times are
those of America/New_York."""
