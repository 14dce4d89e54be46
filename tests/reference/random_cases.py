"""Random statements of `tests.reference.differential` as cases of the corpus."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from tests.corpus import case as corpus
from tests.corpus.values import encode_rows
from tests.reference.differential.execute import rows_frame, sql_text
from tests.reference.differential.generate import Case, Clause, make_case, quoted

_PATH = "PATH"


def random_case(spark: SparkSession, seed: int) -> corpus.Case:
    """The statement of a seed, without an outcome."""
    case = make_case(seed)
    is_text = case.api == "sql"
    return corpus.Case(
        id=f"random-{seed}",
        setup=_setup(spark, case),
        source=_source(spark, case) if case.statement == "merge" else None,
        settings=case.conf,
        statement=_text(case) if is_text else None,
        calls=None if is_text else _calls(case),
    )


def _setup(spark: SparkSession, case: Case) -> list[Any]:
    columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in case.target)
    parts = ", ".join(map(quoted, case.partition_by))
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in case.properties.items())
    create = (
        f"CREATE TABLE {{table}} ({columns}) USING delta"
        + (f" PARTITIONED BY ({parts})" if parts else "")
        + (f" TBLPROPERTIES ({properties})" if properties else "")
    )
    files = (encode_rows(rows_frame(spark, case.target, rows)) for rows in case.target_files)
    return [create, *filter(None, files)]


def _source(spark: SparkSession, case: Case) -> dict[str, Any]:
    columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in case.source)
    rows = encode_rows(rows_frame(spark, case.source, case.source_rows))
    return {"columns": columns, "rows": rows}


def _text(case: Case) -> str:
    text = sql_text(case, _PATH).replace(f"delta.`{_PATH}`", "{table}")
    return text.replace("differential_source", "updates").replace("\n", " ")


def _calls(case: Case) -> list[list[Any]]:
    if case.statement == "delete":
        return [["alias", "t"], ["delete", *_given(case.condition)]]
    if case.statement == "update":
        named = {"condition": case.condition, "set": dict(case.clauses[0].assignments or ())}
        return [["alias", "t"], ["update", {k: v for k, v in named.items() if v is not None}]]
    return [
        ["alias", "t"],
        ["merge", "s", case.on],
        *([["withSchemaEvolution"]] if case.evolve else []),
        *map(_call, case.clauses),
        ["execute"],
    ]


def _call(clause: Clause) -> list[Any]:
    name = "when" + "".join(word.capitalize() for word in clause.kind.split("_"))
    if clause.assignments is None:
        return [name + ("All" if clause.star else ""), *_given(clause.condition)]
    key = "values" if clause.kind == "not_matched_insert" else "set"
    named = {} if clause.condition is None else {"condition": clause.condition}
    return [name, {**named, key: dict(clause.assignments)}]


def _given(condition: str | None) -> list[str]:
    return [] if condition is None else [condition]
