"""Spark's own SQL tests as queries that name no Delta table, with names that look like one.

``python -m benchmarks.spark_corpus DIRECTORY`` plans every query of the files ``*.sql`` below a
directory (``sql/core/src/test/resources/sql-tests/inputs`` of Apache Spark) twice, with and without
the activation, prints counts and every difference. Other statements only run, so that queries find
their tables. The second time the most frequent ``table.column`` of a file is called
``delta.`/x` ``, which is no table either.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta
from puredelta.protocol.schema.sql_lexer import (
    IDENTIFIERS,
    TokenKind,
    keywords,
    replaced,
    tokenize,
)
from puredelta.statements.parse.parse import split_statements

_QUERIES = keywords("SELECT WITH FROM VALUES TABLE (")
_NUMBERS = re.compile(
    r"(?<=CTERelationDef )\d+|(?<=CTERelationRef )\d+|#\d+L?|\[id=#?\d+\]|plan_id=\d+|id=\d+"
    r"|__auto_generated\w*"
)
_COMMENTED = re.compile(r"^--(?:SET|IMPORT|CONFIG_DIM|QUERY-DELIMITER).*$", re.MULTILINE)


def with_delta_names(text: str) -> str:
    """Return a file in which the most frequent ``table.column`` is called ``delta.`/x` ``."""
    tokens = tokenize(text)
    pairs = Counter(
        (one.text.lower(), other.text.lower())
        for one, dot, other in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if dot.means(".") and one.kind is other.kind is TokenKind.WORD
    )
    if not pairs:
        return text
    (table, column), _ = pairs.most_common(1)[0]
    names = {column: "`/x`", table: "delta"}
    return replaced(
        text,
        (
            (token.start, token.end, names[token.text.lower()])
            for token in tokens
            if token.kind in IDENTIFIERS and token.text.lower() in names
        ),
    )


def plan_of(spark: SparkSession, query: str) -> str:
    """Return the plan of a query without the numbers of this run, or the class of its error."""
    try:
        rows = spark.sql(query)
        plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001
        return _NUMBERS.sub("#", str(plan.toString()))
    except PySparkException as error:
        return f"{error.getCondition()} {type(error).__name__}"
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())


def differences(spark: SparkSession, text: str) -> Iterator[tuple[str, str, str] | None]:
    """Yield None for each query of a file that has one plan, or the query and its two plans."""
    for statement in split_statements(_COMMENTED.sub("", text)):
        tokens = tokenize(statement)
        if not tokens or tokens[0].text.upper() not in _QUERIES:
            with contextlib.suppress(Exception):  # many of Spark's tests are errors
                spark.sql(statement)
            continue
        plain = plan_of(spark, statement)
        puredelta.activate(spark)
        active = plan_of(spark, statement)
        puredelta.deactivate()
        yield None if plain == active else (statement, plain, active)


def main(directory: str) -> int:
    """Compare the plans of all files; 1 if some differ."""
    logging.disable(logging.CRITICAL)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        spark = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        files = sorted(Path(directory).rglob("*.sql"))
        for number, file in enumerate(files):
            text = file.read_text(encoding="utf-8")
            for kind, changed in (("as written", text), ("with names", with_delta_names(text))):
                if kind == "with names" and changed == text:
                    continue
                session = spark.newSession()
                database = f"corpus_{number}_{int(changed is text)}"
                session.sql(f"CREATE DATABASE {database}")
                session.sql(f"USE {database}")
                for found in differences(session, changed):
                    counts[kind] += 1
                    if found is not None:
                        counts[f"{kind}, different"] += 1
                        print(f"--- {file.name} ({kind})", *found, sep="\n", flush=True)
                session.sql(f"DROP DATABASE IF EXISTS spark_catalog.{database} CASCADE")
            print(f"{number + 1} of {len(files)}: {dict(counts)}", file=sys.stderr, flush=True)
    print(dict(counts))
    return int(any("different" in key for key in counts))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
