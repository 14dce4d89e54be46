"""The statements of the recorded cases: their text asks for what the builder asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from puredelta.commands.dml.spec import MergeSpec
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import MergeStatement, SourceQuery, SourceTable, Target
from puredelta.statements.parse.table_name import TableName
from puredelta.tables import DeltaMergeBuilder
from tests.data_dir import find_data
from tests.statements.statements import merge_text

Case = dict[str, Any]

FILE = find_data("merge-cases", "visible.jsonl")
CASES: list[Case] = [] if FILE is None else [json.loads(line) for line in FILE.open()]
# SET of nothing, which only a builder can say (M-11).
SAYABLE = [c for c in CASES if all(k.get("assignments") != [] for k in c["clauses"])]
METHODS = {
    "matched_update": "whenMatchedUpdate",
    "matched_delete": "whenMatchedDelete",
    "not_matched_insert": "whenNotMatchedInsert",
    "not_matched_by_source_update": "whenNotMatchedBySourceUpdate",
    "not_matched_by_source_delete": "whenNotMatchedBySourceDelete",
}

pytestmark = pytest.mark.skipif(not CASES, reason="optional test data is absent")


def built(case: Case) -> MergeSpec:
    """What the builder makes of a case; it needs no session to take a statement down."""
    nothing: Any = None
    spec = MergeSpec(on=case["condition"], clauses=())
    builder = DeltaMergeBuilder(nothing, nothing, spec, target_rows=nothing, source_rows=nothing)
    if case.get("with_schema_evolution"):
        builder = builder.withSchemaEvolution()
    for clause in case["clauses"]:
        method = METHODS[clause["kind"]] + ("All" if clause.get("star") else "")
        arguments: dict[str, Any] = {"condition": clause["condition"]}
        if clause.get("assignments") is not None and not clause.get("star"):
            name = "values" if "insert" in clause["kind"] else "set"
            arguments[name] = dict(clause["assignments"])
        builder = getattr(builder, method)(**arguments)
    return builder._spec


def text_of(case: Case) -> str:
    target, source = case["target_alias"], case["source_alias"]
    relation = case.get("source_sql") or "updates"
    return merge_text(
        built(case),
        target="delta.`/table`" + ("" if target is None else f" AS {target}"),
        source=relation + ("" if source is None else f" AS {source}"),
    )


@pytest.mark.parametrize("case", SAYABLE, ids=lambda case: case["id"])
def test_text_and_builder_agree(case: Case) -> None:
    statement = parse(text_of(case))
    assert isinstance(statement, MergeStatement)
    assert statement.spec == built(case)
    assert statement.target == Target(
        name=TableName(("delta", "/table")), alias=case["target_alias"]
    )
    if "source_sql" in case:
        query = case["source_sql"].removeprefix("(").removesuffix(")")
        assert statement.source == SourceQuery(query=query, alias=case["source_alias"])
    else:
        name = TableName(("updates",))
        assert statement.source == SourceTable(name=name, alias=case["source_alias"])


def test_spark_parses_the_texts(spark: SparkSession) -> None:
    """All but those it refuses for what the reference's SQL refuses, too (M-08, M-09)."""
    for case in CASES:
        if case.get("api") != "sql":
            continue
        try:
            require_parsable(spark, text_of(case))
        except ParseException as error:
            expected = case["expect"]
            wanted = expected.get("delta_spark_error_sql") or expected["delta_spark_error"]
            assert error.getCondition() == wanted["class"]  # noqa: PT017 - only some fail
