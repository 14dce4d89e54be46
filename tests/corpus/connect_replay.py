"""The recorded statements on names of the catalog, in a Spark Connect session.

Run as a program of its own: its answer has the cases whose outcome is another one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import puredelta
from puredelta.tables import DeltaTable
from tests.corpus.case import Case, all_cases
from tests.corpus.conftest import engine
from tests.corpus.run import LocalPlace, Run


@dataclass(frozen=True, slots=True)
class NamedPlace(LocalPlace):
    """Tables below a local directory, whose copies have entries in the session catalog."""

    spark: SparkSession
    names: dict[str, str] = field(default_factory=dict)
    """By location."""

    def copy(self, base: str, name: str) -> str:
        """Return the location of the copy."""
        location = LocalPlace.copy(self, base, name)
        entry = f"recorded_{len(self.names)}"
        self.spark.sql(f"CREATE TABLE {entry} USING delta LOCATION '{location}'").collect()
        self.names[location] = entry
        return location

    def named(self, text: str, location: str) -> str:
        """Return a statement with the name of a copy, or the path of a base, for {table}."""
        name = self.names.get(location)
        return (
            LocalPlace.named(self, text, location)
            if name is None
            else text.replace("{table}", name)
        )


_NO_WHOLE_TABLE = {"error": {"class": "DELTA_UNSUPPORTED_SOURCE", "sqlstate": "0AKDD"}}
DIFFERENT = {
    "values-division-by-zero": {"error": {"class": "DIVIDE_BY_ZERO", "sqlstate": "22012"}},
    "errors-target-is-no-table": _NO_WHOLE_TABLE,
    "errors-target-view-computes": _NO_WHOLE_TABLE,
}
"""By case: an error inside a value is not taken for one of the cast to its column, and a client
does not see why a view is no whole table."""


def replayed(spark: SparkSession, directory: Path, cases: Sequence[Case]) -> dict[str, Any]:
    """Run cases by name; return what came out and what should, of those that differ."""
    directory.mkdir(parents=True, exist_ok=True)
    place = NamedPlace(directory, spark)
    by_name = replace(
        engine(spark),
        open=lambda path: DeltaTable.forName(spark, place.names[path]),
        run_sql=spark.sql,
    )
    run = Run(spark=spark, directory=directory, engine=by_name, place=place)
    found: dict[str, Any] = {}
    for case in cases:
        outcome = json.loads(json.dumps(run.outcome(case)))
        expected = expected_over_connect(case)
        if outcome != expected:
            found[case.id] = [outcome, expected]
    return found


def expected_over_connect(case: Case) -> dict[str, Any]:
    """Return what should come out, with the documented differences of a client."""
    return DIFFERENT.get(case.id, case.expected_here)


def main(directory: Path, part: int, parts: int) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    assert puredelta.activate(spark)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    found = replayed(spark, directory / "recorded", all_cases()[part::parts])
    puredelta.deactivate()
    spark.stop()
    print(json.dumps(found))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
