"""Locations without a scheme, where Spark's default file system is another one than ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.session.open_log import open_log
from puredelta.tables import DeltaTable
from tests.commands.sessions import FakeSession

HDFS = "hdfs://name-node:8020"


class Client(FakeSession):
    """A Connect session whose server has a default file system that no setting names."""

    def __init__(self, default: str) -> None:
        super().__init__(spark__hadoop__fs__defaultFS="")
        self.conf = SimpleNamespace(get=lambda _, default: default)
        self.asked = 0
        self.read = SimpleNamespace(text=self._text)
        self._default = default

    def _text(self, path: str) -> Any:
        self.asked += 1
        raise AnalysisException(f"[PATH_NOT_FOUND] Path does not exist: {self._default}{path}.")


@pytest.mark.parametrize("made", [lambda: FakeSession(spark__hadoop__fs__defaultFS=HDFS),
                                  lambda: Client(HDFS)])  # fmt: skip
def test_a_path_that_spark_looks_for_elsewhere_is_refused(made: Callable[[], Any]) -> None:
    spark = made()
    for location in ("/data/t", "data/t", Path("/data/t")):
        with pytest.raises(
            UnsupportedError, match=r"fs\.defaultFS.* write file:/.*data/t"
        ) as caught:
            open_log(spark, location)
        assert caught.value.code is ErrorCode.UNSUPPORTED_STORAGE
        assert HDFS in str(caught.value)
    assert open_log(spark, "file:/data/t").root_uri == "file:/data/t"
    assert open_log(spark, "file:///data/t").root_uri == "file:/data/t"
    with pytest.raises(UnsupportedError, match="'s3a' storage"):
        open_log(spark, "s3a://bucket/t")


def test_spark_is_asked_once_and_only_where_it_matters() -> None:
    spark: Any = Client("file:")
    open_log(spark, "file:/data/t")
    assert spark.asked == 0
    assert open_log(spark, "/data/t").root_uri == "file:/data/t"
    open_log(spark, "/data/u")
    assert spark.asked == 1


def test_a_session_whose_paths_are_hdfs(spark: SparkSession, tmp_path: Path) -> None:
    assert open_log(spark, str(tmp_path)).root_uri == f"file:{tmp_path}"
    other = spark.newSession()
    other.conf.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    path = str(tmp_path / "t")
    for action in (
        lambda: puredelta.write(other.range(3), path),
        lambda: puredelta.read(other, path),
        lambda: DeltaTable.forPath(other, path),
        lambda: DeltaTable.isDeltaTable(other, path),
        lambda: DeltaTable.convertToDelta(other, f"parquet.`{path}`"),
        lambda: DeltaTable.create(other).location(path).addColumn("id", "INT").execute(),
        lambda: puredelta.sql(other, f"CREATE TABLE delta.`{path}` (id INT) USING delta"),
        lambda: puredelta.sql(other, f"SELECT * FROM delta.`{path}`"),
        lambda: puredelta.sql(other, f"DELETE FROM delta.`{path}`"),
    ):
        with pytest.raises(UnsupportedError, match=r"hdfs://127\.0\.0\.1:1"):
            action()
    assert not (tmp_path / "t").exists()
    puredelta.write(other.range(3), f"file:{path}")
    assert puredelta.read(other, f"file:{path}").count() == 3
