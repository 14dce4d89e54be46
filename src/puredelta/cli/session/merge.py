"""``puredelta merge``."""

from __future__ import annotations

from pathlib import Path

from puredelta.cli.context import Context
from puredelta.cli.session.names import format_name, quoted, table_name
from puredelta.cli.session.sql import print_rows, run_statements
from puredelta.cli.session.start import spark_session
from puredelta.cli.session.statements import split_statements
from puredelta.errors import ErrorCode, InvalidRequestError

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}
_ROWS_MAX = 50


def run(context: Context, *, table: str, source: str | None, keys: str | None) -> None:
    """Run the statement of a file, or an upsert of a source by its keys."""
    if source is None and keys is None:
        path = Path(table)
        if not path.is_file():
            raise InvalidRequestError(
                f"{table} is no file of SQL. For an upsert give --source and --keys.",
                code=ErrorCode.INVALID_WRITE_OPTION,
                path=table,
            )
        statements = split_statements(path.read_text(encoding="utf-8"))
        run_statements(context, statements, limit=_ROWS_MAX)
        return
    columns = [name.strip() for name in (keys or "").split(",") if name.strip()]
    if source is None or not columns:
        raise InvalidRequestError(
            "An upsert needs both --source and --keys, such as --source new.parquet --keys id.",
            code=ErrorCode.INVALID_WRITE_OPTION,
        )
    with spark_session(context, f"merge {table}") as spark:
        suffix = Path(source).suffix.lower()
        if _FORMATS.get(suffix) == "csv":
            rows = spark.read.csv(source, header=True, inferSchema=True)
        else:
            rows = spark.table(format_name(source, _FORMATS.get(suffix, "delta")))
        rows.createOrReplaceTempView("_puredelta_source")
        print_rows(context, spark.sql(upsert_text(table, columns)), limit=_ROWS_MAX)


def upsert_text(table: str, keys: list[str]) -> str:
    """Return the MERGE that updates and inserts rows by keys; NULL equals NULL.

    >>> upsert_text("t", ["id"])  # doctest: +ELLIPSIS
    'MERGE INTO `t` AS t USING _puredelta_source AS s ON t.`id` <=> s.`id` WHEN MATCHED THEN ...'
    """
    condition = " AND ".join(f"t.{quoted(key)} <=> s.{quoted(key)}" for key in keys)
    return (
        f"MERGE INTO {table_name(table)} AS t USING _puredelta_source AS s ON {condition} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
