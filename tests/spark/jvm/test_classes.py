"""Classes and collections of the JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from puredelta.spark.jvm.gateway import (
    has_class,
    java_class,
    java_constant,
    java_messages,
    jvm_of,
    name_proxy,
    proxy_name,
    scala_object,
    scala_seq,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_classes_keep_what_stays_the_same(spark: SparkSession) -> None:
    jvm = spark._jvm
    math = java_class(jvm, "java.lang.Math")
    assert java_class(jvm, "java.lang.Math") is math
    assert (math.abs(-3), math.max(1, 2), math.abs(-4)) == (3, 2, 4)
    assert {"abs", "max"} <= vars(math).keys()
    assert math.E == 2.718281828459045
    assert "E" not in vars(math)  # a field that may change, for all that is known
    nothing = scala_object(jvm, "scala.None")
    assert scala_object(jvm, "scala.None") is nothing
    assert nothing.isEmpty()


def test_a_sequence_of_scala(spark: SparkSession) -> None:
    assert scala_seq(spark._jvm, ["a", "b", "c"]).mkString("-") == "a-b-c"
    assert scala_seq(spark._jvm, ("a",)).size() == 1
    assert scala_seq(spark._jvm, []).isEmpty()


def test_a_constant_is_asked_for_once(spark: SparkSession) -> None:
    jvm = jvm_of(spark)
    first = java_constant(jvm, "java.util.Locale", "getDefault")
    assert java_constant(jvm, "java.util.Locale", "getDefault") is first


def test_what_is_on_the_class_path(spark: SparkSession) -> None:
    assert has_class(spark, "org.apache.spark.sql.Row")
    assert not has_class(spark, "org.example.Nothing")


def test_every_message_of_a_java_exception(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.sql("SELECT raise_error('broken: ' || id) FROM range(1)").collect()
    assert any("broken: 0" in message for message in java_messages(raised.value))
    assert list(java_messages(ValueError("no Java behind it"))) == []


def test_names_of_objects_go_by_identity(spark: SparkSession) -> None:
    lists = java_class(jvm_of(spark), "java.util.ArrayList")
    named, equal = lists(), lists()
    name_proxy(named, "first")
    assert proxy_name(named) == "first"
    assert named.equals(equal)
    assert proxy_name(equal) is None
    assert proxy_name(None) is None
