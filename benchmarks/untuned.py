"""Merges, updates and deletes that nobody tuned, beside delta-spark and a copy by Arrow.

``python -m benchmarks.untuned [SHAPE ...]`` (how titles begin): 3 million rows of 12 columns in 24
files, whose ids are in no order (``PUREDELTA_BENCH_ROWS``), the same rows in 37 partitions, and a
tenth as many rows of 200 columns. The copy decodes and encodes all files of the table, with one
thread. Engines take turns, each statement on a table of its own with the same files; rows are
compared by DuckDB, which reads the files of the newest version. Other choices are those of
`benchmarks.options`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from types import MappingProxyType

import duckdb

from benchmarks.bench import Bench, Try, run
from benchmarks.engines import ENGINES, Engine
from benchmarks.options import PREFIX, Options
from benchmarks.replay import active_files
from benchmarks.report import Measurement
from benchmarks.requests import copy_request, sql_request
from benchmarks.rows import Totals

WIDE = 199
CHANGES, SCHEMA = 100, "spark.databricks.delta.schema.autoMerge.enabled"
ALL = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
MOST = ", ".join(f"{name} = s.{name}" for name in ["v1", "v3", "v4", "code", "day", "part", "nest"])
TWO = "WHEN MATCHED THEN UPDATE SET v1 = s.v1, v3 = s.v3"
SEVERAL = """WHEN MATCHED AND s.v1 > 0.7 THEN DELETE
WHEN MATCHED AND s.v1 > 0.3 THEN UPDATE SET v1 = s.v1, v4 = t.v4 + s.v4
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.v1 > 0.5 THEN INSERT *"""
NEWEST = """(SELECT id, v1, v3 FROM
(SELECT *, row_number() OVER (PARTITION BY id ORDER BY seq DESC) AS n FROM s) WHERE n = 1)"""


@dataclass(frozen=True, slots=True)
class Shape:
    """A statement; ``{}`` is its table, ``s`` its source."""

    title: str
    text: str
    source: str | None = None
    table: str = "plain"

    @property
    def key(self) -> str:
        """What other statements do not share."""
        return f"{self.table} {self.source} {self.text}"

    @property
    def evolves(self) -> bool:
        return self.source == "nested"


def _merge(title: str, rest: str, source: str = "one", table: str = "plain") -> Shape:
    """Return a MERGE; ``rest`` begins with the condition."""
    return Shape(title, f"MERGE INTO {{}} t USING s ON {rest}", source, table)


SHAPES = (
    _merge("upsert by long", f"t.id = s.id {ALL}"),
    _merge("upsert by timestamp", f"t.ts = s.ts {ALL}"),
    _merge("upsert by decimal", f"t.amount = s.amount {ALL}"),
    _merge("upsert by text", f"t.txt = s.txt {ALL}"),
    _merge("upsert by text of any length", f"t.code = s.code {ALL}"),
    _merge("upsert by date and long", f"t.day = s.day AND t.id = s.id {ALL}"),
    _merge("upsert by text and int", f"t.txt = s.txt AND t.grp = s.grp {ALL}"),
    _merge("upsert, NULL equals NULL", f"t.id <=> s.id {ALL}"),
    _merge("upsert, names in other cases", f"T.ID = S.Id {ALL}"),
    _merge("upsert by long, key is text in the source", f"t.id = s.key {ALL}", "keys"),
    _merge("upsert by lower(text)", f"lower(t.txt) = lower(s.txt) {ALL}"),
    _merge("upsert, target condition in ON", f"t.id = s.id AND t.grp < 900 {TWO}"),
    _merge(
        "upsert, newer rows only",
        f"t.id = s.id {ALL}".replace("D THEN U", "D AND s.v1 > t.v1 THEN U"),
    ),
    _merge("upsert into partitions", f"t.id = s.id {ALL}", table="parts"),
    _merge(
        "upsert into partitions, named in ON",
        f"t.part = s.part AND t.id = s.id {ALL}",
        table="parts",
    ),
    _merge("insert only by text", "t.txt = s.txt WHEN NOT MATCHED THEN INSERT *"),
    _merge("several conditional clauses", f"t.id = s.id {SEVERAL}"),
    _merge(
        "not matched by source, delete",
        f"t.id = s.id {ALL} WHEN NOT MATCHED BY SOURCE AND t.grp = 7 THEN DELETE",
    ),
    _merge(
        "not matched by source, update",
        f"t.id = s.id {ALL} "
        "WHEN NOT MATCHED BY SOURCE AND t.day < DATE '1990-06-01' THEN UPDATE SET v3 = 'gone'",
    ),
    _merge("source as large as the target", f"t.id = s.id {ALL}", "all"),
    _merge(
        "full synchronisation", f"t.id = s.id {ALL} WHEN NOT MATCHED BY SOURCE THEN DELETE", "most"
    ),
    _merge(
        "duplicates, a condition chooses",
        f"t.id = s.id AND s.seq = 2 {TWO}",
        "twice",
    ),
    Shape(
        "source is a query",
        f"MERGE INTO {{}} t USING {NEWEST} s ON t.id = s.id {TWO} "
        "WHEN NOT MATCHED THEN INSERT (id, v1, v3) VALUES (s.id, s.v1, s.v3)",
        "twice",
    ),
    _merge("few keys, two columns", f"t.grp = s.grp {TWO}", "few"),
    _merge("few keys, most columns", f"t.grp = s.grp WHEN MATCHED THEN UPDATE SET {MOST}", "few"),
    _merge(
        "range, update",
        "t.id BETWEEN s.lo AND s.hi WHEN MATCHED THEN UPDATE SET v4 = s.v4, v3 = 'x'",
        "ranges",
    ),
    _merge("range, delete", "t.id >= s.lo AND t.id < s.hi WHEN MATCHED THEN DELETE", "ranges"),
    _merge("evolution of a field", f"t.id = s.id {ALL}", "nested"),
    Shape("update of a quarter", "UPDATE {} SET v1 = v1 * 2, v3 = 'x' WHERE id % 4 = 1"),
    Shape("update of a column of all rows", "UPDATE {} SET v1 = v1 + 1"),
    Shape(
        "update by text functions",
        "UPDATE {} SET v3 = concat(v3, '-', upper(substr(txt, 1, 3))) WHERE grp % 50 = 3",
    ),
    Shape("delete of 1 %", "DELETE FROM {} WHERE id % 100 = 1"),
    Shape("delete by a pattern", "DELETE FROM {} WHERE txt LIKE 'a1%'"),
    Shape(
        "one column of 200, update", "UPDATE {} SET c1 = c1 + 1 WHERE id % 100 = 1", table="wide"
    ),
    _merge(
        "one column of 200, merge",
        "t.id = s.id WHEN MATCHED THEN UPDATE SET c1 = s.v4",
        "some",
        "wide",
    ),
)


class Tables:
    """Tables and sources, laid once by Spark through puredelta."""

    def __init__(self, bench: Bench, directory: Path, rows: int) -> None:
        self._bench = bench
        self.directory = directory
        if not (directory / "done").exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            self._lay(rows)
            (directory / "done").touch()

    def _lay(self, rows: int) -> None:
        columns = _columns(rows)
        base = f"(SELECT id * 7919 % {rows} AS id FROM range(0, {rows}, 1, 24))"
        self._table("plain", f"SELECT {columns} FROM {base}")
        spread = f"SELECT /*+ REPARTITION(24) */ {columns} FROM {base}"
        self._table("parts", spread, "PARTITIONED BY (part)")
        kinds = ["CAST(id * 31 % 1000003 AS BIGINT)", "CAST(id % 9973 AS DECIMAL(12, 2))"]
        kinds.append("CONCAT('text ', id * 17 % 4999)")
        wide = ", ".join(f"{kinds[n % 3]} AS c{n}" for n in range(1, WIDE + 1))
        self._table("wide", f"SELECT id, {wide} FROM range(0, {rows // 10}, 1, 8)")
        keys = f"CASE WHEN id % 10 = 0 THEN {rows} + id ELSE id * 97 % {rows} END AS id"
        changed = f"(SELECT {keys} FROM range({rows // CHANGES}))"
        one = f"SELECT {columns} FROM {changed}"
        everything = f"SELECT {columns} FROM range(0, {rows}, 1, 4)"
        wider = columns.replace("AS STRING)) AS nest", "AS STRING), 'c', 1) AS nest")
        low, length = f"id * {rows // 300}", rows // 30_000
        sources = {
            "one": one,
            "all": everything,
            "most": f"{everything} WHERE id % 100 > 0",
            "few": f"SELECT {columns} FROM (SELECT id * 3 AS id FROM range(5))",
            "some": f"SELECT id * 97 % {rows // 10} AS id, id AS v4 FROM range({rows // 1000})",
            "keys": f"SELECT CAST(id AS STRING) AS key, * FROM ({one})",
            "twice": f"SELECT *, 1 AS seq FROM ({one}) UNION ALL SELECT *, 2 AS seq FROM ({one})",
            "ranges": f"SELECT {low} AS lo, {low} + {length} AS hi, id AS v4 FROM range(300)",
            "nested": f"SELECT {wider} FROM {changed}",
        }
        for name, text in sources.items():
            where = f"INSERT OVERWRITE DIRECTORY '{self.directory / name}' USING parquet"
            self._run(f"{where} {text}")

    def _table(self, name: str, text: str, clause: str = "") -> None:
        self._run(f"CREATE TABLE delta.`{self.directory / name}` USING delta {clause} AS {text}")

    def _run(self, text: str) -> None:
        answer = self._bench.ask(ENGINES["puredelta"], sql_request(text))
        if "error" in answer:
            raise SystemExit(f"{text}: {answer['error']}")


def _columns(rows: int) -> str:
    """Return the columns, which follow from the id."""
    return f"""id,
timestamp_micros(1600000000000000 + (id * 7919 % {rows}) * 1000003) AS ts,
date_add(DATE '1990-01-01', CAST(id % 10000 AS INT)) AS day,
CAST(id * 7919 % {rows} AS DECIMAL(20, 2)) AS amount,
md5(CAST(id AS STRING)) AS txt, CAST(id % 1000 AS INT) AS grp, CAST(id % 37 AS INT) AS part,
named_struct('a', id, 'b', CAST(id AS STRING)) AS nest,
pmod(xxhash64(id), 1000003) / 1000003 AS v1,
concat(substr(md5(CAST(id + 1 AS STRING)), 1, CAST(id % 23 AS INT)), '-', id) AS code,
CAST(hash(id) AS STRING) AS v3, CAST(hash(id, 1) AS BIGINT) AS v4"""


class Statements:
    """Attempts of engines, and the rows that the first of them left."""

    def __init__(self, bench: Bench, tables: Tables) -> None:
        self._bench = bench
        self._tables = tables
        self._numbers = count()
        self._kept = tables.directory / "rows.json"

    def measure(self, shape: Shape) -> Iterator[list[Measurement]]:
        """Let every engine execute a statement in turn."""
        return self._bench.repeat(
            shape.title, self._bench.options.engines, partial(self._one, shape)
        )

    def _one(self, shape: Shape, engine: Engine) -> Try:
        table = self._tables.directory / shape.table
        # Engines know tables by path: no two of them have one.
        copy = self._bench.scratch / f"table-{next(self._numbers)}"
        try:
            if not engine.merges:
                first, *others = (file.path for file in active_files(table))
                answer = self._bench.ask(engine, copy_request(others, first, copy))
                return Try(answer, answer.get("error"))
            shutil.copytree(table, copy, copy_function=os.link)
            views = {"s": self._tables.directory / shape.source} if shape.source else {}
            settings = {SCHEMA: str(shape.evolves).lower(), "spark.sql.shuffle.partitions": "4"}
            request = sql_request(shape.text.format(f"delta.`{copy}`"), views, settings)
            answer = self._bench.ask(engine, request)
            return Try(answer, answer.get("error") or self._differs(shape, engine, copy))
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _differs(self, shape: Shape, engine: Engine, copy: Path) -> str | None:
        """Compare rows with those of the engine that was first."""
        kept = json.loads(self._kept.read_text()) if self._kept.exists() else {}
        found = rows_of(copy)
        first = kept.setdefault(shape.key, [engine.name, found.rows, found.checksum])
        self._kept.write_text(json.dumps(kept))
        expected = Totals(*first[1:])
        return None if found == expected else f"{found}, but {first[0]} left {expected}"


def rows_of(table: Path) -> Totals:
    """Add up the rows of the newest version, as DuckDB reads them."""
    by_partition: dict[str, list[str]] = defaultdict(list)
    for file in active_files(table):
        values: Mapping[str, str | None] = file.add.get("partitionValues") or {}
        by_partition[json.dumps(values)].append(str(file.path))
    result = Totals()
    for values, paths in by_partition.items():
        result += totals_of(paths, json.loads(values))
    return result


def totals_of(
    paths: Sequence[str],
    partition: Mapping[str, str | None] = MappingProxyType({}),
    *,
    where: str = "true",
) -> Totals:
    """Add up a hash of each row of Parquet files, over all columns in the order of names."""
    with duckdb.connect(config={"threads": 2}) as connection:
        files = connection.read_parquet(list(paths), union_by_name=True, hive_partitioning=False)
        kinds = dict(zip(files.columns, map(str, files.types), strict=True))
        terms = {
            name: f'epoch_us("{name}")' if kind.startswith("TIMESTAMP") else f'"{name}"'
            for name, kind in kinds.items()
        }
        terms |= {name: f"'{value}'" for name, value in partition.items()}
        hashed = ", ".join(terms[name] for name in sorted(terms))
        sums = files.filter(where).aggregate(f"count(*), sum(hash({hashed}))")
        [(rows, checksum)] = sums.fetchall()
    return Totals(rows, int(checksum or 0) % 2**64)


def main() -> None:
    rows = int(os.environ.get(f"{PREFIX}ROWS", "3000000"))
    options = Options.of(os.environ, engines="puredelta,delta-spark,arrow-copy")
    name = os.environ.get(f"{PREFIX}NAME", "untuned")
    options = replace(options, size=f"of {rows:,} rows", name=name)
    wanted = [shape for shape in SHAPES if any(map(shape.title.startswith, sys.argv[1:] or [""]))]
    bench = Bench(options)
    try:
        tables = Tables(bench, options.directory / f"untuned-{rows}", rows)
        run(options, wanted, Statements(bench, tables).measure)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
