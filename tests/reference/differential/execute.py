"""Run one case on one implementation and say what came out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.write.parquet_job import temporary_settings
from tests.reference.differential.generate import Case, Clause, Column, quoted

ROW_METRICS = (
    "numSourceRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsMatchedUpdated",
    "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsMatchedDeleted",
    "numTargetRowsNotMatchedBySourceDeleted",
)


@dataclass(frozen=True)
class Outcome:
    """What a statement did to its table, comparable between implementations."""

    error_classes: tuple[str, ...]
    """Outermost first; empty when the statement succeeded."""
    error_text: str
    result: tuple[int, ...] | None
    rows: tuple[str, ...]
    schema: str
    committed: bool
    metrics: tuple[tuple[str, str | None], ...]
    changes: tuple[str, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Plain data, for keeping."""
        return asdict(self)

    @staticmethod
    def from_json(record: dict[str, Any]) -> Outcome:
        """The inverse of `to_json`."""
        return Outcome(**{key: _as_tuple(value) for key, value in record.items()})


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def rows_frame(spark: SparkSession, columns: tuple[Column, ...], rows: Any) -> DataFrame:
    """Rows of SQL text as a DataFrame of the declared types."""
    schema = ", ".join(f"{quoted(c.name)} {c.type}" for c in columns)
    if not rows:
        return spark.createDataFrame([], schema)
    names = ", ".join(quoted(c.name) for c in columns)
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    with temporary_settings(spark, {"spark.sql.ansi.enabled": "false"}):
        collected = spark.sql(f"SELECT * FROM VALUES {values} AS v({names})").collect()
    return spark.createDataFrame(collected, schema)


def create_table(spark: SparkSession, case: Case, path: str) -> None:
    """The case's table, written by the reference so that both sides start alike."""
    columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in case.target)
    parts = ", ".join(quoted(name) for name in case.partition_by)
    properties = ", ".join(f"'{k}' = '{v}'" for k, v in case.properties.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({columns}) USING delta"
        + (f" PARTITIONED BY ({parts})" if parts else "")
        + (f" TBLPROPERTIES ({properties})" if properties else "")
    )
    files = [rows_frame(spark, case.target, rows).coalesce(1) for rows in case.target_files if rows]
    if files:
        reduce(DataFrame.union, files).write.format("delta").mode("append").save(path)
    for number, check in enumerate(case.constraints):
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c{number} CHECK ({check})")


@dataclass(frozen=True)
class Content:
    """What a reader finds in a table."""

    rows: tuple[str, ...]
    schema: str


@dataclass(frozen=True)
class Reader:
    """How a table, and its change feed from a version on, is read after the statement."""

    table: Callable[[str], DataFrame]
    changes: Callable[[str, int], DataFrame]

    def content(self, path: str) -> Content:
        """Read the whole table."""
        table = self.table(path)
        return Content(as_text(table), table.schema.simpleString())


@dataclass(frozen=True)
class Implementation:
    """One of the two: its `DeltaTable`, its way to run SQL, and who reads what it wrote."""

    table_type: Any
    run_sql: Callable[[str], DataFrame]
    reader: Reader


def execute(
    spark: SparkSession, case: Case, path: str, by: Implementation, before: Content
) -> Outcome:
    """Run the statement on the table at ``path``, which holds ``before``."""
    version = last_version(path)
    result, classes, text = None, (), ""
    with temporary_settings(spark, case.conf):
        try:
            answer = _run(spark, case, path, by)
            if answer is not None:
                collected = answer.collect()
                result = tuple(collected[0]) if collected else ()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
            classes, text = error_classes(error), str(error)[:1500]
    committed = last_version(path) != version
    after = by.reader.content(path) if committed else before
    feed = committed and case.properties.get("delta.enableChangeDataFeed") == "true"
    return Outcome(
        error_classes=classes,
        error_text=text,
        result=result,
        rows=after.rows,
        schema=after.schema,
        committed=committed,
        metrics=_metrics(path) if committed else (),
        changes=_changes(by.reader.changes(path, version + 1)) if feed else None,
    )


def last_version(path: str) -> int:
    """The newest version of a table that has no checkpoint."""
    return len(_commits(path)) - 1


def _commits(path: str) -> list[Path]:
    return sorted(Path(path, "_delta_log").glob("*.json"))


def as_text(rows: DataFrame) -> tuple[str, ...]:
    """Every row as text, sorted: NaN, maps and binary then compare."""
    return tuple(sorted(str(tuple(_plain(value) for value in row)) for row in rows.collect()))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((str(k), _plain(v)) for k, v in value.items())
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value


def _metrics(path: str) -> tuple[tuple[str, str | None], ...]:
    lines = map(json.loads, _commits(path)[-1].read_text().splitlines())
    entry = next(line["commitInfo"] for line in lines if "commitInfo" in line)
    if entry["operation"] == "MERGE":
        names: tuple[str, ...] = ROW_METRICS
    else:
        names = ("numDeletedRows",) if entry["operation"] == "DELETE" else ("numUpdatedRows",)
    found = entry.get("operationMetrics") or {}
    return tuple((name, found.get(name)) for name in names)


def _changes(feed: DataFrame) -> tuple[str, ...]:
    return as_text(feed.drop("_commit_version", "_commit_timestamp"))


def _run(spark: SparkSession, case: Case, path: str, by: Implementation) -> DataFrame | None:
    source = rows_frame(spark, case.source, case.source_rows) if case.statement == "merge" else None
    if case.api == "sql":
        if source is not None:
            source.createOrReplaceTempView("differential_source")
        return by.run_sql(sql_text(case, path))
    table = by.table_type.forPath(spark, path)
    if case.statement == "delete":
        return _aliased(table).delete(case.condition)
    if case.statement == "update":
        pairs = dict(case.clauses[0].assignments or ())
        return _aliased(table).update(case.condition, set=pairs)
    builder = table.alias("t").merge(source.alias("s"), case.on)
    if case.evolve:
        builder = builder.withSchemaEvolution()
    for clause in case.clauses:
        builder = _add(builder, clause)
    return builder.execute()


def _aliased(table: Any) -> Any:
    return table.alias("t")


def _add(builder: Any, clause: Clause) -> Any:
    pairs = dict(clause.assignments or ())
    match clause.kind:
        case "matched_update" if clause.star:
            return builder.whenMatchedUpdateAll(clause.condition)
        case "matched_update":
            return builder.whenMatchedUpdate(clause.condition, set=pairs)
        case "matched_delete":
            return builder.whenMatchedDelete(clause.condition)
        case "not_matched_insert" if clause.star:
            return builder.whenNotMatchedInsertAll(clause.condition)
        case "not_matched_insert":
            return builder.whenNotMatchedInsert(clause.condition, values=pairs)
        case "not_matched_by_source_update":
            return builder.whenNotMatchedBySourceUpdate(clause.condition, set=pairs)
        case "not_matched_by_source_delete":
            return builder.whenNotMatchedBySourceDelete(clause.condition)
    raise ValueError(clause.kind)


def sql_text(case: Case, path: str) -> str:
    """The statement as SQL over ``delta.`path` `` and the view ``differential_source``."""
    where = "" if case.condition is None else f" WHERE {case.condition}"
    if case.statement == "delete":
        return f"DELETE FROM delta.`{path}` AS t{where}"
    if case.statement == "update":
        return f"UPDATE delta.`{path}` AS t SET {_pairs(case.clauses[0])}{where}"
    evolve = "WITH SCHEMA EVOLUTION " if case.evolve else ""
    text = f"MERGE {evolve}INTO delta.`{path}` AS t USING differential_source AS s ON {case.on}"
    return text + "".join(_when(clause) for clause in case.clauses)


def _pairs(clause: Clause) -> str:
    return ", ".join(f"{name} = {value}" for name, value in clause.assignments or ())


def _when(clause: Clause) -> str:
    condition = "" if clause.condition is None else f" AND {clause.condition}"
    words = {
        "matched": "MATCHED",
        "not_matched": "NOT MATCHED",
        "not_matched_by_source": "NOT MATCHED BY SOURCE",
    }
    kind, _, action = clause.kind.rpartition("_")
    head = f"\nWHEN {words[kind]}{condition} THEN "
    if action == "delete":
        return head + "DELETE"
    if action == "update":
        return head + "UPDATE SET " + ("*" if clause.star else _pairs(clause))
    if clause.star:
        return head + "INSERT *"
    names = ", ".join(name for name, _ in clause.assignments or ())
    values = ", ".join(value for _, value in clause.assignments or ())
    return f"{head}INSERT ({names}) VALUES ({values})"


def error_classes(error: BaseException) -> tuple[str, ...]:
    """The error classes of an exception and its causes, Java ones included, outermost first."""
    found: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < 20:
        condition = getattr(cause, "getCondition", lambda: None)()
        if condition:
            found.append(condition)
        found += re.findall(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", str(cause))
        found += _java_classes(getattr(cause, "_origin", None))
        cause = cause.__cause__
    named = list(dict.fromkeys(found))
    return tuple(named) or (type(error).__name__,)


def _java_classes(thrown: Any) -> list[str]:
    found: list[str] = []
    for _ in range(20):
        if thrown is None:
            break
        found += re.findall(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", str(thrown.getMessage()))
        if "getErrorClass" in dir(thrown) and thrown.getErrorClass():
            found.append(thrown.getErrorClass())
        thrown = thrown.getCause()
    return found
