"""A stand-in for ``delta.pip_utils``: sessions need no JAR here, and set-up code may stay."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

__all__ = ["configure_spark_with_delta_pip"]

_EXTENSIONS = "spark.sql.extensions"
_CATALOG = "spark.sql.catalog.spark_catalog"
_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder,
    extra_packages: Sequence[str] | None = None,
) -> SparkSession.Builder:
    """Return the builder for a session without delta-spark's JAR.

    Only ``extra_packages`` are requested. The extension and the catalog of delta-spark are
    removed from the builder: their classes are in the JAR, and a session with a catalog that it
    cannot load runs no statement.

    Raises:
        TypeError: the argument is no builder of a session.
    """
    if not isinstance(spark_session_builder, SparkSession.Builder):
        raise TypeError(
            "This function must be called with a SparkSession builder as the argument. The "
            f"argument found is of type {type(spark_session_builder)}."
        )
    _forget_delta(spark_session_builder._options)  # noqa: SLF001 - there is no way to unset
    if extra_packages:
        spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    return spark_session_builder


def _forget_delta(options: dict[str, object]) -> None:
    if options.get(_CATALOG) == _DELTA_CATALOG:
        del options[_CATALOG]
        logger.info(
            "%s=%s is left out: the class is in delta-spark's JAR", _CATALOG, _DELTA_CATALOG
        )
    extensions = str(options.get(_EXTENSIONS, "")).split(",")
    others = [name for name in map(str.strip, extensions) if name and name != _DELTA_EXTENSION]
    if len(others) < len([name for name in extensions if name.strip()]):
        if others:
            options[_EXTENSIONS] = ",".join(others)
        else:
            del options[_EXTENSIONS]
