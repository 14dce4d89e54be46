"""Switch the activation on and off, for all sessions of one kind in this process."""

from __future__ import annotations

import importlib
import threading
import warnings

from pyspark.sql import SparkSession

from puredelta.activation.delta_module import install_delta_module, remove_delta_module
from puredelta.activation.methods.patched_methods import Owner, patched
from puredelta.activation.methods.patches import Patches
from puredelta.activation.source_python import let_spark_find_source
from puredelta.spark.jvm.classes import has_class
from puredelta.spark.session.session import is_connect

_JAR_CLASS = "io.delta.sql.DeltaSparkSessionExtension"
_EXTENSIONS = "spark.sql.extensions"
_CATALOG = "spark.sql.catalog.spark_catalog"
_CATALOG_CLASS = "org.apache.spark.sql.delta."
_CLASSIC, _CONNECT = "pyspark.sql", "pyspark.sql.connect"

_lock = threading.Lock()
_active: dict[str, Patches] = {}
"""What is replaced, by the package of the kind of session."""


def activate(spark: SparkSession, *, delta_module: bool = False) -> bool:
    """Let the session read, write and query Delta tables through PySpark's own calls.

    ``spark.read.format("delta")``, ``df.write.format("delta")``, ``df.writeTo``,
    ``df.mergeInto``, ``df.writeStream``, ``spark.sql`` and ``spark.table`` then work as with
    delta-spark; `docs/activation.md` lists what they take. Every other format and statement
    takes PySpark's own path. Methods of PySpark's classes are replaced, so every session of
    this process that is of the same kind (classic or Connect) is active; readers and writers
    made before are not. Activating twice is once.

    Returns:
        Whether the session is active. A session that has delta-spark's JAR is left alone,
        with a warning: it knows Delta already.

    Examples:
        >>> import puredelta
        >>> puredelta.activate(spark)  # doctest: +SKIP
        True
        >>> reader = spark.read.format("delta").option("versionAsOf", 3)  # doctest: +SKIP
        >>> events = reader.load("/data/events")  # doctest: +SKIP
    """
    if _has_jar(spark):
        warnings.warn(
            "This session has delta-spark's JAR, so puredelta.activate() changes nothing: its "
            "readers, writers and SQL are delta-spark's. Start the session without the JAR and "
            f"without {_EXTENSIONS} to use puredelta, or call puredelta.read, puredelta.write and "
            "puredelta.sql.",
            stacklevel=2,
        )
        return False
    if not _is_free_of_delta_spark(spark):
        return False
    if delta_module:
        install_delta_module()
    package = _CONNECT if is_connect(spark) else _CLASSIC
    with _lock:
        if package not in _active:
            _active[package] = patched(_owners(package))
    if package == _CLASSIC:
        let_spark_find_source(spark)
    return True


def deactivate() -> None:
    """Put back every method that `activate` has replaced, the very same function objects."""
    with _lock:
        while _active:
            _, patches = _active.popitem()
            patches.undo()
    remove_delta_module()


def _owners(package: str) -> dict[Owner, type]:
    """Return the classes of a kind of session; Connect's are imported only where it is used."""
    found: dict[Owner, type] = {}
    for owner in Owner:
        module, name = owner.value
        inner = "classic.dataframe" if (package, owner) == (_CLASSIC, Owner.FRAME) else module
        found[owner] = getattr(importlib.import_module(f"{package}.{inner}"), name)
    return found


def _has_jar(spark: SparkSession) -> bool:
    """Tell whether delta-spark is in the session: on its class path, or configured on a server."""
    if is_connect(spark):  # a client cannot see the server's classes
        return _JAR_CLASS in (spark.conf.get(_EXTENSIONS, None) or "")
    return has_class(spark, _JAR_CLASS)


def _is_free_of_delta_spark(spark: SparkSession) -> bool:
    """Warn of settings that name delta-spark's classes; return whether SQL runs all the same."""
    if is_connect(spark):
        return True
    catalog = spark.conf.get(_CATALOG, None) or ""
    named = [_EXTENSIONS] if _JAR_CLASS in (spark.conf.get(_EXTENSIONS, None) or "") else []
    named += [_CATALOG] if catalog.startswith(_CATALOG_CLASS) else []
    if named:
        breaks = _CATALOG in named
        warnings.warn(
            f"{' and '.join(named)} name delta-spark's classes, but its JAR is not here"
            + (": such a session runs no SQL, so it is not activated" if breaks else "")
            + f". Remove {'both' if len(named) > 1 else 'it'} and start a new session.",
            stacklevel=3,
        )
    return _CATALOG not in named
