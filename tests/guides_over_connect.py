"""Blocks of pages in a Spark Connect session whose class is derived from PySpark's, as a program.

Clients of platforms have such classes, as `DataprocSparkSession`. The answer says for each page
that its blocks ran.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import puredelta
from tests.connect_session import connect_builder
from tests.test_guides import DOCS, run_page


def main(directory: Path, *pages: str) -> None:
    spark = connect_builder().getOrCreate()
    kind = type("PlatformSession", (type(spark),), {"__module__": "platform_of_tests"})
    spark.__class__ = kind
    assert puredelta.activate(spark)
    answers = {}
    for page in pages:
        data = directory / page
        data.mkdir()
        run_page(DOCS / "guides" / f"{page}.md", spark, data)
        answers[page] = "run"
    puredelta.deactivate()
    spark.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
