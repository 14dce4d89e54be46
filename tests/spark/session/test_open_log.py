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
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.storage import file_system_options, open_log
from puredelta.store.object_store import ObjectStore
from puredelta.store.registry import Storage
from puredelta.tables import DeltaTable
from tests.commands.sessions import FakeSession, Settings

HDFS = "hdfs://name-node:8020"


class Client(FakeSession):
    """A Connect session whose server has a default file system that no setting names."""

    def __init__(self, default: str) -> None:
        super().__init__(spark__hadoop__fs__defaultFS="")
        self.conf = Settings({})
        self.asked = 0
        self.read = SimpleNamespace(text=self._text)
        self._default = default

    def _text(self, path: str) -> Any:
        self.asked += 1
        raise AnalysisException(f"[PATH_NOT_FOUND] Path does not exist: {self._default}{path}.")


@pytest.mark.parametrize("made", [lambda: FakeSession(spark__hadoop__fs__defaultFS=HDFS),
                                  lambda: Client(HDFS)])  # fmt: skip
def test_a_client_does_not_take_a_path_of_the_server_for_its_own(made: Callable[[], Any]) -> None:
    spark = made()
    for location in ("/data/t", Path("/data/t")):
        with pytest.raises(UnsupportedError, match=f"{HDFS}/data/t") as caught:
            open_log(spark, location)
        assert caught.value.code is ErrorCode.UNSUPPORTED_STORAGE
    with pytest.raises(UnsupportedError, match=f"such as {HDFS}/data/t"):
        open_log(spark, "data/t")
    assert open_log(spark, "file:/data/t").root_uri == "file:/data/t"
    assert open_log(spark, "file:///data/t").root_uri == "file:/data/t"


def test_settings_of_a_client_reach_the_store() -> None:
    spark: Any = FakeSession(
        spark__hadoop__fs__defaultFS="s3a://lake",
        spark__hadoop__fs__s3a__endpoint="http://store:9000",
        spark__hadoop__fs__s3a__path__style__access="true",
        spark__hadoop__fs__s3a__access__key="AK",
        spark__hadoop__fs__s3a__secret__key="SK",
        spark__puredelta__storage__region="eu-west-1",
    )
    log = open_log(spark, "/t", storage_options={"fs.s3a.secret.key": "mine", "timeout": "9s"})
    assert log.root_uri == "s3a://lake/t"
    assert isinstance(log.store, ObjectStore)
    assert log.store.access.config == {
        "access_key_id": "AK",
        "secret_access_key": "mine",
        "endpoint": "http://store:9000",
        "virtual_hosted_style_request": "false",
        "region": "eu-west-1",
    }
    assert log.store.access.client_options == {"allow_http": "true", "timeout": "9s"}
    assert log.is_at("s3://lake/t")
    with pytest.raises(InvalidRequestError, match="'regoin' is no option"):
        open_log(spark, "s3://lake/t", storage_options={"regoin": "x"})


def test_spark_is_asked_once_and_only_where_it_matters() -> None:
    spark: Any = Client("file:")
    open_log(spark, "file:/data/t")
    assert spark.asked == 0
    assert open_log(spark, "/data/t").root_uri == "file:/data/t"
    open_log(spark, "/data/u")
    assert spark.asked == 1


def test_a_path_means_what_spark_takes_it_for(spark: SparkSession, tmp_path: Path) -> None:
    assert open_log(spark, str(tmp_path)).root_uri == f"file:{tmp_path}"
    other = spark.newSession()
    other.conf.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    assert open_log(other, "/a b/t%20").root_uri == "hdfs://127.0.0.1:1/a b/t%20"
    assert open_log(other, "a/t").root_uri.startswith("hdfs://127.0.0.1:1/user/")
    path = str(tmp_path / "t")
    puredelta.write(other.range(3), f"file:{path}")
    assert puredelta.read(other, f"file:{path}").count() == 3


def test_another_default_file_system_in_a_running_session_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    other, path = spark.newSession(), str(tmp_path / "t")
    puredelta.write(other.range(1), path)
    hadoop, key = other.sparkContext._jsc.hadoopConfiguration(), "fs.defaultFS"
    was = hadoop.get(key)
    hadoop.set(key, "hdfs://127.0.0.1:1")
    try:
        assert open_log(other, path).root_uri == f"hdfs://127.0.0.1:1{path}"
        other.conf.set(key, "hdfs://127.0.0.1:2")
        assert open_log(other, path).root_uri == f"hdfs://127.0.0.1:2{path}"
    finally:
        hadoop.set(key, was)
    other.conf.unset(key)
    assert open_log(other, path).root_uri == f"file:{path}"
    other.conf.set("fs.default.name", "hdfs://127.0.0.1:3")
    assert open_log(other, path).root_uri == f"hdfs://127.0.0.1:3{path}"


def test_a_client_s_own_default_file_system_counts() -> None:
    spark: Any = FakeSession()
    assert open_log(spark, "/data/t").root_uri == "file:/data/t"
    spark = FakeSession(fs__defaultFS=HDFS)
    with pytest.raises(UnsupportedError, match=f"{HDFS}/data/t"):
        open_log(spark, "/data/t")


def test_keys_that_are_set_in_a_running_session_count(spark: SparkSession) -> None:
    other = spark.newSession()
    assert _keys(other) == (None, None)
    hadoop = other.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.s3a.access.key", "AK")
    hadoop.set("fs.s3a.secret.key", "SK")
    try:
        assert _keys(other) == ("AK", "SK")
        other.conf.set("fs.s3a.bucket.lake.access.key", "B")
        assert _keys(other) == ("B", "SK")
        other.conf.set("spark.puredelta.storage.access_key_id", "own")
        other.conf.set("spark.puredelta.storage.secret_access_key", "own too")
        assert _keys(other) == ("own", "own too")
    finally:
        hadoop.unset("fs.s3a.access.key")
        hadoop.unset("fs.s3a.secret.key")


def _keys(spark: SparkSession) -> tuple[str | None, str | None]:
    store = open_log(spark, "s3://lake/t").store
    assert isinstance(store, ObjectStore)
    config = store.access.config
    return config.get("access_key_id"), config.get("secret_access_key")


def test_options_of_a_reader_reach_the_store(spark: SparkSession) -> None:
    seen: list[object] = []

    def refuse(location: str, *, storage: Storage) -> TableLog:
        seen.append((location, dict(storage.settings)["fs.s3a.access.key"]))
        raise RuntimeError("seen")

    options = {"fs.s3a.access.key": "given", "mergeSchema": "true"}
    at = "s3a://lake/t"
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(TableLog, "open", refuse)
        for action in (
            lambda: puredelta.read(spark, at, storage_options=file_system_options(options)),
            lambda: puredelta.write(spark.range(1), at, options=options),
            lambda: DeltaTable.forPath(spark, at, {"fs.s3a.access.key": "given"}),
        ):
            with pytest.raises(RuntimeError, match="seen"):
                action()
    assert seen == [(at, "given")] * 3


def test_a_wrong_option_shows_no_secret(spark: SparkSession) -> None:
    with pytest.raises(InvalidRequestError, match="hadoop configuration keys") as caught:
        DeltaTable.forPath(spark, "/t", {"spark.hadoop.fs.s3a.secret.key": "top-secret"})
    assert "top-secret" not in str(caught.value)
