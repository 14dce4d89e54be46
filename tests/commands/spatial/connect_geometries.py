"""What `test_geometries_over_connect` asks of a Spark Connect session: a program of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from puredelta.api import read, write
from puredelta.tables import DeltaTable
from tests.commands.spatial.geometries import (
    at,
    logical_types,
    merge_places,
    on_earth,
    places,
    shown,
)
from tests.connect_session import connect_builder


def main(directory: Path) -> None:
    """Write, merge, change and compact a table; print its rows and its types."""
    spark = connect_builder().getOrCreate()
    path = str(directory / "t")
    write(places(spark, 0, 6), path, properties={"delta.enableDeletionVectors": "true"})
    table = DeltaTable.forPath(spark, path)
    merge_places(table, places(spark, 4, 7, x=2))
    table.update("id = 1", {"g": "NULL"})
    table.delete("id = 0")
    more = spark.range(9, 10).selectExpr("id", f"{at(2, 2)} g", f"{on_earth(2, 2)} y")
    write(more, path, mode="append")
    table.optimize().executeCompaction()
    rows, kinds = shown(spark, path), sorted(logical_types(path))
    present = read(spark, path).where("g IS NOT NULL").select("id", "g").toArrow()
    spark.stop()
    print(json.dumps([rows, kinds, present.num_rows]))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
