"""The stand-in for ``delta.pip_utils``, and the names of ``delta`` and ``delta.exceptions``."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta import errors, exceptions
from puredelta.pip_utils import configure_spark_with_delta_pip


def test_a_builder_loses_what_only_the_jar_has() -> None:
    builder = SparkSession.Builder()
    builder.config("spark.sql.extensions", "a.B, io.delta.sql.DeltaSparkSessionExtension")
    builder.config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
    builder.config("spark.ui.enabled", "false")
    assert configure_spark_with_delta_pip(builder, extra_packages=["x:y:1", "z:w:2"]) is builder
    assert builder._options == {
        "spark.sql.extensions": "a.B",
        "spark.ui.enabled": "false",
        "spark.jars.packages": "x:y:1,z:w:2",
    }


def test_other_settings_stay_as_they_are() -> None:
    builder = SparkSession.Builder()
    builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder.config("spark.sql.catalog.spark_catalog", "my.Catalog")
    configure_spark_with_delta_pip(builder)
    assert builder._options == {"spark.sql.catalog.spark_catalog": "my.Catalog"}


def test_only_a_builder_is_taken() -> None:
    with pytest.raises(TypeError, match="builder as the argument"):
        configure_spark_with_delta_pip("spark")  # type: ignore[arg-type]


def test_imports_of_delta_need_one_word_changed() -> None:
    for name in ("DeltaTable", "configure_spark_with_delta_pip", "__version__"):
        assert hasattr(puredelta, name), name


def test_exceptions_have_the_names_of_the_reference() -> None:
    assert set(exceptions.__all__) == {
        *("ConcurrentAppendException", "ConcurrentDeleteDeleteException"),
        *("ConcurrentDeleteReadException", "ConcurrentTransactionException"),
        *("ConcurrentWriteException", "DeltaConcurrentModificationException"),
        *("MetadataChangedException", "ProtocolChangedException"),
    }
    for name in exceptions.__all__:
        assert issubclass(getattr(exceptions, name), errors.ConflictError)
