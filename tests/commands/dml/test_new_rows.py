"""Stage 7: what makes the new rows, decided without Spark."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from puredelta.commands.dml.decide import Decision, FilePlan, plan_rows
from puredelta.commands.dml.new_rows import NewRows, new_rows
from puredelta.commands.dml.positions import RowPositions
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.staged_source import ColumnNames, SourceProfile
from puredelta.protocol.schema.predicates import TRUE
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.write.staging import StagedRows
from puredelta.spark.write.writer_settings import WriterSettings
from tests.commands.dml.statements import (
    by_source,
    context_of,
    insert,
    matched,
    rows,
    statement,
    update,
)
from tests.log.tables import add
from tests.spark.local_workers import LocalWorkers

ID: Any = object()
VALUE: Any = object()
COLUMNS = {"s0": ID, "s1": VALUE}
SCHEMA = StructType((StructField("id", LONG), StructField("v", LONG)))
WHOLE = {"id": ID, "v": VALUE}


def prepared(*clauses: Any, positions: RowPositions, **table: Any) -> NewRows:
    made = context_of(
        lambda config: replace(
            statement(*clauses, config=config),
            source_columns=tuple(SimpleNamespace(staged=s) for s in COLUMNS),  # type: ignore[arg-type]
            frames=SimpleNamespace(source_column=COLUMNS.__getitem__),  # type: ignore[arg-type]
        ),
        add("a.parquet"),
        settings=table.pop("settings", ExecutionSettings()),
        schema=SCHEMA,
        **table,
    )
    file = DataFile(uri="file:/s.parquet", size_bytes=10)
    staged = StagedRows(directory=None, files=(file,), group_rows=((4,),), columns={})
    source = replace(
        made.source,
        staged=staged,
        profile=SourceProfile(num_rows=4, size_bytes=10),
        names=ColumnNames(in_files={"s0": "key", "s1": "value"}),
    )
    classic: Any = LocalWorkers()
    command = replace(made.command, spark=classic)
    return of(replace(made, command=command, source=source), positions)


def of(context: StatementContext, positions: RowPositions) -> NewRows:
    plan = SearchPlan(
        candidates=context.snapshot.files,
        num_files=1,
        search=Search.INNER,
        read_predicate=TRUE,
    )
    row_plan = plan_rows(context.statement, positions, num_source_rows=context.source.num_rows)
    decision = Decision(positions=positions, rows=row_plan, files=FilePlan(), removes=())
    return new_rows(context, plan, decision)


UPSERT = RowPositions(matched=(rows(7),), matched_source=rows(2), source_of=(rows(2),))


def test_an_upsert_of_whole_rows_copies_rows_of_the_source() -> None:
    new = prepared(matched(update(WHOLE)), insert(WHOLE), positions=UPSERT)
    assert new.copy is not None
    assert (new.copy.include, new.copy.rows, new.copy.num_rows) == (False, {}, 4)
    assert [column[:2] for column in new.copy.columns] == [("key", "id"), ("value", "v")]
    assert new.frame is not None, "Spark may have to make them after all"


def test_only_updated_rows_are_copied_where_nothing_is_inserted() -> None:
    new = prepared(matched(update(WHOLE)), positions=UPSERT)
    assert new.copy is not None
    assert (new.copy.include, new.copy.num_rows) == (True, 1)


@pytest.mark.parametrize(
    ("clauses", "more"),
    [
        ((matched(update({"id": ID, "v": object()})),), {}),  # type: ignore[dict-item]
        ((matched(update(WHOLE, reads_target=True)),), {}),
        (
            (matched(update(WHOLE)),),
            {"settings": ExecutionSettings(writer=WriterSettings(codec=None))},
        ),
        ((matched(update(WHOLE)),), {"delta__constraints__c": "id > 0"}),
    ],
)
def test_anything_else_is_computed(clauses: Any, more: dict[str, Any]) -> None:
    new = prepared(*clauses, positions=UPSERT, **more)
    assert (new.copy, new.describe()) == (None, "computed by Spark")
    assert new.frame is not None


def test_a_delete_writes_nothing() -> None:
    context = context_of(lambda config: statement(by_source(), config=config), add("a.parquet"))
    new = of(context, RowPositions(by_source=(rows(1),), source_of=()))
    assert (new.frame, new.copy, new.describe()) == (None, None, "no new row")
