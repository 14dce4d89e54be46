"""Statistics of files that many programs wrote, compared with the rows as Spark reads them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from puredelta.commands.convert.convert_to_delta import convert_to_delta
from tests.commands.convert.directories import adds
from tests.commands.convert.other_files import FROM_ARROW, random_table

FILES = 24


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", FROM_ARROW)
def test_every_bound_of_every_program_is_true(
    spark: SparkSession, tmp_path: Path, program: str
) -> None:
    random = Random(program)
    for number in range(FILES):
        FROM_ARROW[program](random_table(random), tmp_path / f"{number}.parquet")
    for log in tmp_path.rglob("_delta_log"):
        for file in log.iterdir():
            file.unlink()
        log.rmdir()
    result = convert_to_delta(spark, f"parquet.`{tmp_path}`", verify=True)
    assert result.num_files == FILES
    found = adds(tmp_path).values()
    assert all(add["stats"]["numRecords"] for add in found)
    assert any("l" in add["stats"]["minValues"] for add in found)
