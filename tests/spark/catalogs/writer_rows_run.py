"""One of several sessions that change one managed table by name at once, as a program.

Each session has rows of its own, so statements never want the same rows; a statement that loses a
race for other reasons is repeated. The answer counts the repetitions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import puredelta
from puredelta.exceptions import DeltaConcurrentModificationException

NAME = "main.sales.orders"


def main(directory: Path, url: str, writer: str, commits: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.sql.catalog.main", "io.unitycatalog.spark.UCSingleCatalog")
        .config("spark.sql.catalog.main.uri", url)
        .getOrCreate()
    )
    puredelta.activate(spark)
    repeated = sum(repeat(spark, statement(int(writer), number)) for number in range(int(commits)))
    spark.stop()
    print(json.dumps({"repeated": repeated}))  # noqa: T201 - the answer


def repeat(spark: SparkSession, text: str) -> int:
    """Execute a statement until it commits; return how often it lost."""
    lost = 0
    while True:
        try:
            spark.sql(text)
        except DeltaConcurrentModificationException:  # noqa: PERF203 - it may lose again
            lost += 1
        else:
            return lost


def statement(writer: int, number: int) -> str:
    """Return a statement about rows of one writer; `rows_after` has their result."""
    mine = f"writer = {writer} AND id"
    match number % 5:
        case 2:
            both = f"range({number - 1}, {number + 1})"
            source = f"SELECT {writer} AS writer, id, 'merged' AS note FROM {both}"
            return (
                f"MERGE INTO {NAME} t USING ({source}) s "
                f"ON t.writer = {writer} AND t.writer = s.writer AND t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        case 3:
            return f"UPDATE {NAME} SET note = 'updated' WHERE {mine} = {number - 2}"
        case 4:
            return f"DELETE FROM {NAME} WHERE {mine} = {number - 4}"
        case _:
            return f"INSERT INTO {NAME} VALUES ({writer}, {number}, 'new')"


def rows_after(writer: int, commits: int) -> dict[tuple[int, int], str]:
    """Return the rows of one writer, by a model without a table."""
    rows: dict[tuple[int, int], str] = {}
    for number in range(commits):
        match number % 5:
            case 2:
                rows |= {(writer, one): "merged" for one in (number - 1, number)}
            case 3:
                rows[writer, number - 2] = "updated"
            case 4:
                del rows[writer, number - 4]
            case _:
                rows[writer, number] = "new"
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
