"""``puredelta sql``."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from puredelta.cli.context import Context
from puredelta.cli.session.start import spark_session
from puredelta.cli.session.statements import split_statements
from puredelta.errors import ErrorCode, InvalidRequestError


def run(context: Context, *, statement: str | None, file: Path | None, limit: int) -> None:
    """Run statements one after the other and print the rows of the last."""
    if (statement is None) == (file is None):
        raise InvalidRequestError(
            "Give a statement, or a file of statements with --file.",
            code=ErrorCode.INVALID_WRITE_OPTION,
        )
    text = statement if file is None else file.read_text(encoding="utf-8")
    run_statements(context, split_statements(text or ""), limit=limit)


def run_statements(context: Context, statements: list[str], *, limit: int) -> None:
    """Run statements in one session; the first that fails ends the run."""
    if not statements:
        raise InvalidRequestError(
            "There is no statement in it.", code=ErrorCode.INVALID_WRITE_OPTION
        )
    with spark_session(context, "sql") as spark:
        for each in statements[:-1]:
            spark.sql(each).collect()
        print_rows(context, spark.sql(statements[-1]), limit=limit)


def print_rows(context: Context, frame: DataFrame, *, limit: int) -> None:
    """Print at most ``limit`` rows, and say if there are more."""
    rows = frame.limit(limit + 1).collect()
    context.output.rows([row.asDict(recursive=True) for row in rows[:limit]], frame.columns)
    if len(rows) > limit:
        context.output.note(f"Only the first {limit} rows are shown (--limit).")
