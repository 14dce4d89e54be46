"""Partition values on a file system that takes ``p=A`` for ``p=a``, as macOS and Windows do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.protocol.actions.paths import decode_path, folded_path
from puredelta.protocol.schema.types import BINARY, STRING
from puredelta.spark.write.writer import JobOptions, write_rows
from puredelta.spark.write.written_files import log_value
from puredelta.store.base import NameRule
from puredelta.store.local import LocalStore
from tests.spark.write.test_writer import config

VALUES = (
    *("A", "a", "AB", "Ab", "aB", "ab", "\u00e9", "e\u0301", "\u00c9", "ss", "\u00df", "%41", "%"),
    *(
        "%61",
        "a.",
        "a ",
        "41",
        "__HIVE_DEFAULT_PARTITION__",
        "__hive_default_partition__",
        "\u212a",
    ),
    *("k", "K", "plain/text=1", None, "\U0001f600"),
)


class Folding(LocalStore):
    """A file system that ignores case and the form of Unicode, for all that its users know."""

    def name_rule(self) -> NameRule:
        return NameRule.FOLDED


def partitions(spark: SparkSession, store: LocalStore, *, changes: bool) -> dict[Any, str]:
    """Write a row per value; return the directory of each, by the value in the log."""
    numbered = [(number, value) for number, value in enumerate(VALUES)]
    rows = spark.createDataFrame(numbered, "id int, p string").coalesce(2)
    table = config(rows, partitions=["p"])
    if changes:
        rows = rows.selectExpr("*", "cast(null as string) as __puredelta_change")
    result = write_rows(rows, store=store, config=table, options=JobOptions(with_changes=changes))
    assert result.num_rows == len(VALUES)
    return {a.partition_values["p"]: decode_path(a.path).rpartition("/")[0] for a in result.adds}


@pytest.mark.parametrize("changes", [False, True])
def test_no_two_values_share_a_directory(
    spark: SparkSession, tmp_path: Path, *, changes: bool
) -> None:
    found = partitions(spark, Folding(tmp_path), changes=changes)
    assert set(found) == set(VALUES)
    folded = {folded_path(path) for path in found.values()}
    assert len(folded) == len(VALUES)
    assert not [path for path in folded if path.endswith((".", " "))]
    assert found["ab"].endswith("/p=ab"), "plain values keep plain directories"


def test_elsewhere_directories_bear_the_values(spark: SparkSession, tmp_path: Path) -> None:
    found = partitions(spark, LocalStore(tmp_path), changes=False)
    assert set(found) == set(VALUES)
    assert found["A"].endswith("/p=A")


def test_a_text_of_digits_is_one_only_where_names_are_folded() -> None:
    assert log_value("%41", STRING, NameRule.FOLDED) == "A"
    assert log_value("%41", STRING) == "%41"
    assert log_value("41", BINARY, NameRule.FOLDED) == "A"
