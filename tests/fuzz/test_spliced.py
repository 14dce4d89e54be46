"""A sample of the spliced files of ``make fuzz``."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.fuzz.spliced import READERS, run


@pytest.mark.filterwarnings("ignore")  # of other readers
@pytest.mark.parametrize("files", [1, pytest.param(5, marks=pytest.mark.thorough)])
def test_every_reader_finds_the_rows_of_a_file_of_copied_chunks(
    spark: SparkSession, files: int
) -> None:
    counts = run(spark, files, seed=2)
    assert "VIOLATION" not in counts
    assert len(counts) > files // 2
    assert len(READERS) == 5
