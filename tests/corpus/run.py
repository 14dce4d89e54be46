"""Runs a case on one implementation and says what came out, as plain JSON."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.write.parquet_job import temporary_settings
from tests.corpus.case import Case
from tests.corpus.values import Json, decode_rows, encode_rows, ordered, schema_text

METRICS = {
    "MERGE": (
        "numSourceRows",
        "numTargetRowsInserted",
        "numTargetRowsUpdated",
        "numTargetRowsMatchedUpdated",
        "numTargetRowsNotMatchedBySourceUpdated",
        "numTargetRowsDeleted",
        "numTargetRowsMatchedDeleted",
        "numTargetRowsNotMatchedBySourceDeleted",
    ),
    "UPDATE": ("numUpdatedRows",),
    "DELETE": ("numDeletedRows",),
    "WRITE": ("numOutputRows",),
}
"""Counts of rows that depend on the statement alone, not on how files were laid out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An implementation of Delta: delta-spark where cases are recorded, puredelta elsewhere."""

    open: Callable[[str], Any]
    """The ``DeltaTable`` at a location."""
    run_sql: Callable[[str], DataFrame]
    read: Callable[[str], DataFrame]
    """The table at a location."""
    append: Callable[[DataFrame, str], object]
    changes: Callable[[str, int], DataFrame]
    """The change data feed of the table at a location from a version on."""
    explain: Callable[[Exception], dict[str, Any]]
    """Error class and SQLSTATE of what a statement raised."""


class Place(Protocol):
    """Where the tables of cases are, each a copy of a base that was made for several cases."""

    def new(self, directory: Path) -> str:
        """Return the location of a base that is to be made."""

    def named(self, text: str, location: str) -> str:
        """Return a statement with the name of the table at a location in the place of {table}."""

    def copy(self, base: str, name: str) -> str:
        """Return the location of a copy of a base."""

    def last_commit(self, location: str) -> tuple[int, str]:
        """Return the newest version and the content of its commit file."""

    def remove(self, location: str) -> None:
        """Remove a copy."""


class LocalBases:
    """The part of a place whose bases are made in a local directory, and named by their path."""

    def new(self, directory: Path) -> str:
        """Return the location of a base that is to be made."""
        directory.mkdir(exist_ok=True)
        return tempfile.mkdtemp(prefix="base-", dir=directory) + "/table"

    def named(self, text: str, location: str) -> str:
        """Return a statement with the path of a table in the place of {table}."""
        return text.replace("{table}", f"delta.`{location}`")


@dataclass(frozen=True, slots=True)
class LocalPlace(LocalBases):
    """Tables below a local directory."""

    directory: Path

    def copy(self, base: str, name: str) -> str:
        """Return the location of the copy."""
        shutil.copytree(base, self.directory / name)
        return str(self.directory / name)

    def last_commit(self, location: str) -> tuple[int, str]:
        """Return the newest version and the content of its commit file."""
        newest = max((Path(location) / "_delta_log").glob("*.json"))
        return int(newest.stem), newest.read_text()

    def remove(self, location: str) -> None:
        """Remove a copy."""
        shutil.rmtree(location)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Runs cases; tables that are made alike are made once, below a directory, and copied."""

    spark: SparkSession
    directory: Path
    engine: Engine
    place: Place
    _bases: dict[str, str] = field(default_factory=dict)
    _unchanged: dict[str, dict[str, Json]] = field(default_factory=dict)

    def outcome(self, case: Case) -> dict[str, Any]:
        """Run the statement of a case on a copy of its table."""
        path = self.place.copy(self._base(case.setup), f"table-{case.id}")
        try:
            for text in case.prepare:
                self.engine.run_sql(self.place.named(text, path)).collect()
            return self._outcome_at(case, path)
        finally:
            self.place.remove(path)

    def _outcome_at(self, case: Case, path: str) -> dict[str, Any]:
        version, _ = self.place.last_commit(path)
        result: list[Json] = []
        error: Exception | None = None
        source = self._source(case, path)
        with temporary_settings(self.spark, case.settings):
            try:
                answer = self._execute(case, path, source)
                result = [] if answer is None else [list(row) for row in answer.collect()]
            except Exception as raised:  # noqa: BLE001 - whatever it is, it is the outcome
                error = raised
        last, commit = self.place.last_commit(path)
        commits = last - version
        if error is not None:
            outcome: dict[str, Any] = {"error": self.engine.explain(error)}
            if commits != 0:
                outcome["commits"] = commits
            return outcome
        outcome = {"result": result, **self._content(case, path, changed=commits > 0)}
        outcome |= {"commits": commits}
        if commits:
            outcome |= _history(commit)
        if commits and case.has_feed:
            feed = self.engine.changes(path, version + 1)
            outcome["changes"] = encode_rows(feed.drop("_commit_version", "_commit_timestamp"))
        return outcome

    def _content(self, case: Case, path: str, *, changed: bool) -> dict[str, Json]:
        if changed or case.read is not None:
            return self._read(case.read, path)
        key = json.dumps(case.setup)
        if key not in self._unchanged:
            self._unchanged[key] = self._read(None, path)
        return self._unchanged[key]

    def _read(self, query: str | None, path: str) -> dict[str, Json]:
        if query is None:
            rows = self.engine.read(path)
        else:
            rows = self.engine.run_sql(self.place.named(query, path))
        return {"schema": schema_text(rows.schema), "rows": encode_rows(rows)}

    def _base(self, setup: list[Any]) -> str:
        key = json.dumps(setup)
        if key not in self._bases:
            base = self.place.new(self.directory)
            for step in setup:
                if isinstance(step, str):
                    self.engine.run_sql(self.place.named(step, base)).collect()
                else:
                    schema = self.engine.read(base).schema
                    rows = self.spark.createDataFrame(decode_rows(step, schema), schema)
                    self.engine.append(rows.coalesce(1), base)
            self._bases[key] = base
        return self._bases[key]

    def _source(self, case: Case, path: str) -> DataFrame | None:
        if case.source is None:
            return None
        if isinstance(case.source, str):
            source = self.engine.run_sql(self.place.named(case.source, path))
        else:
            schema = self.spark.createDataFrame([], case.source["columns"]).schema
            rows = decode_rows(case.source["rows"], schema)
            source = self.spark.createDataFrame(rows, schema)
        source.createOrReplaceTempView("updates")
        return source

    def _execute(self, case: Case, path: str, source: DataFrame | None) -> DataFrame | None:
        if case.statement is not None:
            return self.engine.run_sql(self.place.named(case.statement, path))
        assert case.calls is not None, "a case has a statement or calls"
        at: Any = self.engine.open(path)
        for name, *arguments in case.calls:
            if name == "sql":
                self.engine.run_sql(self.place.named(arguments[0], path)).collect()
            elif name == "merge":
                assert source is not None, "the source of a merge by calls"
                at = at.merge(source.alias(arguments[0]), arguments[1])
            else:
                at = getattr(at, name)(*_positional(arguments), **_named(arguments))
        return at


def _positional(arguments: list[Any]) -> list[Any]:
    return [argument for argument in arguments if not isinstance(argument, dict)]


def _named(arguments: list[Any]) -> dict[str, Any]:
    return next((argument for argument in arguments if isinstance(argument, dict)), {})


def _history(commit: str) -> dict[str, Json]:
    lines = map(json.loads, commit.splitlines())
    entry = next(line["commitInfo"] for line in lines if "commitInfo" in line)
    found = entry.get("operationMetrics") or {}
    names = METRICS.get(entry["operation"], ())
    return {
        "operation": entry["operation"],
        "metrics": {name: int(found[name]) for name in names if name in found},
    }


__all__ = ["METRICS", "Engine", "LocalBases", "LocalPlace", "Place", "Run", "ordered"]
