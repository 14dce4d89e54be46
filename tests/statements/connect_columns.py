"""Queries over Connect bring the columns that they name, where workers read by Arrow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.api import sql, write
from puredelta.spark.session.delta_conf import IO

_READ = re.compile(r"MapInArrow [^\[]*\[([^\]]*)\]")


def query_columns(spark: SparkSession, directory: Path) -> Any:
    """Return, query by query, the columns that workers read, and the rows."""
    table = f"delta.`{directory}/t`"
    rows = spark.sql(
        "SELECT id, id % 2 AS p, id * 2 AS `a.b`, 'x' AS `é`, 7 AS seven FROM range(4)"
    )
    write(rows, str(directory / "t"), partition_by="p")
    write(rows.drop("p"), str(directory / "u"))
    write(rows.limit(1), str(directory / "t"), mode="append")
    spark.conf.set(IO.key, "arrow")
    try:
        return [
            _answer(sql(spark, text.format(t=table, u=f"delta.`{directory}/u`")))
            for text in (
                "SELECT ID, max(`a.b`) FROM {t} WHERE id > 1 GROUP BY ID",
                "SELECT count(*) FROM {t}",
                "SELECT count(*) FROM {u}",
                "SELECT count(*) FROM {t} VERSION AS OF 0",
                "SELECT p, sum(x) FROM (SELECT p, id * 2 AS x FROM {t}) GROUP BY ALL",
                "SELECT a.id FROM {t} a JOIN {u} b ON a.id = b.id WHERE a.p = 1 GROUP BY ALL",
                "SELECT *, p FROM {u} JOIN {t} USING (id) WHERE id = 3",
                "SELECT `É`, id FROM {t} WHERE id = 2 GROUP BY `É`, id",
                "SELECT count(*) FROM {t} WHERE id IN (SELECT seven - 4 FROM {u})",
                "SELECT id FROM {t} WHERE id = 2",
            )
        ] + [_found_below(sql(spark, f"SELECT id FROM {table}"))]
    finally:
        spark.conf.unset(IO.key)


def _answer(rows: DataFrame) -> Any:
    plan = rows._explain_string(mode="simple")
    read = [re.sub(r"#\d+L?", "", names) for names in _READ.findall(plan)]
    return [read, sorted(list(map(str, row)) for row in rows.collect())]


def _found_below(rows: DataFrame) -> Any:
    """A frame's conditions and order may name columns that its text does not."""
    return [row["id"] for row in rows.where("p = 1").orderBy("`a.b`", "seven").collect()]
