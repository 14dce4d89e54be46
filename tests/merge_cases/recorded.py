"""Recorded MERGE statements with their outcomes, read from the optional data directory."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.tables import DeltaMergeBuilder
from tests.data_dir import find_data
from tests.merge_cases.target import Target
from tests.statements.statements import merge_text

CASES = find_data("merge-cases", "visible.jsonl")
_DECODE = find_data("merge-cases", "decode.py")
_ROW_COUNTS = ("Inserted", "Updated", "Deleted")


@functools.cache
def decoder() -> ModuleType:
    """The module that ships with the records: it knows how their rows are written."""
    spec = importlib.util.spec_from_file_location("merge_case_decoder", _DECODE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


_SAMPLE_EVERY = 24


def graded_cases() -> Iterator[Any]:
    """One parameter per binding record; ``make test`` takes one of 24."""
    if CASES is None:
        return
    graded = [record for record in decoder().read_cases(CASES) if record["graded"]]
    for n, record in enumerate(graded):
        marks = () if n % _SAMPLE_EVERY == 0 else pytest.mark.thorough
        yield pytest.param(RecordedCase(record), id=record["id"], marks=marks)


@dataclass(frozen=True)
class RecordedCase:
    record: dict[str, Any]

    @property
    def settings(self) -> dict[str, str]:
        return self.record["conf"] or {}

    @property
    def expected(self) -> dict[str, Any]:
        return self.record["expect"]

    def create(self, place: Target) -> None:
        """Lay the target: one file per list of rows where the record says so."""
        target = decoder().target_table(self.record)
        files = self.record.get("target_files")
        groups = [[target.rows[n] for n in file] for file in files] if files else [target.rows]
        place.create(
            target.schema,
            groups,
            partition_by=self.record["partition_by"] or (),
            properties=self.record.get("table_properties") or {},
        )

    def source(self, spark: SparkSession) -> DataFrame:
        source = decoder().source_table(self.record)
        rows = spark.createDataFrame(list(source.rows), source.schema)
        alias = self.record["source_alias"]
        return rows if alias is None else rows.alias(alias)

    def execute(self, target: Target) -> DataFrame:
        """Run the statement: a temporary view can be a target in SQL text only."""
        builder = self.builder(target)
        if not self.record.get("target_via_temp_view"):
            return builder.execute()
        view = self.record["target_alias"]
        target.table().toDF().createOrReplaceTempView(view)
        return puredelta.sql(
            target.spark,
            merge_text(
                builder._spec, target=view, source="{source} AS " + self.record["source_alias"]
            ),
            source=self.source(target.spark),
        )

    def builder(self, target: Target) -> DeltaMergeBuilder:
        source = self.source(target.spark)
        table = target.table()
        if self.record["target_alias"] is not None:
            table = table.alias(self.record["target_alias"])
        builder = table.merge(source, self.record["condition"])
        for clause in self.record["clauses"]:
            builder = self._with(builder, clause, source)
        return (
            builder.withSchemaEvolution() if self.record.get("with_schema_evolution") else builder
        )

    def _with(
        self, builder: DeltaMergeBuilder, clause: dict[str, Any], source: DataFrame
    ) -> DeltaMergeBuilder:
        condition = clause["condition"]
        star = clause.get("star", False)
        if star and clause.get("except_cols"):
            values = self._all_but(clause["except_cols"], source)
            star = False
        else:
            values = self._assignments(clause)
        match clause["kind"]:
            case "matched_update" if star:
                return builder.whenMatchedUpdateAll(condition)
            case "matched_update":
                return builder.whenMatchedUpdate(condition, values)
            case "matched_delete":
                return builder.whenMatchedDelete(condition)
            case "not_matched_insert" if star:
                return builder.whenNotMatchedInsertAll(condition)
            case "not_matched_insert":
                return builder.whenNotMatchedInsert(condition, values)
            case "not_matched_by_source_update":
                return builder.whenNotMatchedBySourceUpdate(condition, values)
            case "not_matched_by_source_delete":
                return builder.whenNotMatchedBySourceDelete(condition)
        raise AssertionError(clause["kind"])

    def _assignments(self, clause: dict[str, Any]) -> dict[str, str]:
        """As a dict: a column named a second time is qualified, which means the same."""
        values: dict[str, str] = {}
        for column, value in clause.get("assignments") or ():
            again = column in values
            values[f"{self.record['target_alias']}.{column}" if again else column] = value
        return values

    def _all_but(self, left_out: list[str], source: DataFrame) -> dict[str, str]:
        """Spell a star out; without evolution a star means the target's columns (M-40)."""
        alias = self.record["source_alias"]
        prefix = "" if alias is None else f"`{alias}`."
        evolves = self.record.get("with_schema_evolution")
        every = source.columns if evolves else self.record["target_columns"]
        return {f"`{c}`": f"{prefix}`{c}`" for c in every if c not in left_out}

    def row_metrics(self) -> dict[str, str]:
        """The counts of changed rows; counts of copied rows and files may be lower here."""
        given = {**self.expected.get("delta_spark_metrics", {}), **self.expected.get("metrics", {})}
        return {k: str(v) for k, v in given.items() if any(word in k for word in _ROW_COUNTS)}
