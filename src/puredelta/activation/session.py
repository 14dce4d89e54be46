"""Switch the activation on and off, for all sessions of one kind in this process."""

from __future__ import annotations

import importlib
import threading
import warnings

from pyspark.sql import SparkSession

from puredelta.activation.methods.patched_methods import Owner, patched
from puredelta.activation.methods.patches import Patches
from puredelta.spark.jvm.classes import has_class
from puredelta.spark.session.session import is_connect

_JAR_CLASS = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG_CLASS = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_EXTENSIONS, _CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
_CLASSIC, _CONNECT = "pyspark.sql", "pyspark.sql.connect"

_lock = threading.Lock()
_active: dict[str, Patches] = {}
"""What is replaced, by the package of the kind of session."""


def activate(spark: SparkSession) -> bool:
    """Let the session read, write and query Delta tables through PySpark's own calls.

    ``spark.read.format("delta")``, ``df.write.format("delta")``, ``df.writeTo``,
    ``df.mergeInto``, ``df.writeStream``, ``spark.sql`` and ``spark.table`` then work as with
    delta-spark; `docs/activation.md` lists what they take. Every other format and statement
    takes PySpark's own path. Methods of PySpark's classes are replaced, so every session of
    this process that is of the same kind (classic or Connect) is active; readers and writers
    made before are not. Activating twice is once.

    Returns:
        Whether the session is active. A session that has delta-spark's JAR is left alone,
        with a warning: it knows Delta already. So is one whose settings only name it.

    Examples:
        >>> import puredelta
        >>> puredelta.activate(spark)  # doctest: +SKIP
        True
        >>> reader = spark.read.format("delta").option("versionAsOf", 3)  # doctest: +SKIP
        >>> events = reader.load("/data/events")  # doctest: +SKIP
    """
    if _is_configured_alone(spark):
        warnings.warn(
            f"This session is configured for delta-spark ({_EXTENSIONS} or {_CATALOG} names its "
            "classes), but its JAR is not here, so neither delta-spark nor puredelta can work. "
            "Remove both settings and start a new session.",
            stacklevel=2,
        )
        return False
    if _has_jar(spark):
        warnings.warn(
            "This session has delta-spark's JAR, so puredelta.activate() changes nothing: its "
            "readers, writers and SQL are delta-spark's. Start the session without the JAR and "
            f"without {_EXTENSIONS} to use puredelta, or call puredelta.read, puredelta.write and "
            "puredelta.sql.",
            stacklevel=2,
        )
        return False
    package = _CONNECT if is_connect(spark) else _CLASSIC
    with _lock:
        if package not in _active:
            _active[package] = patched(_owners(package))
    return True


def deactivate() -> None:
    """Put back every method that `activate` has replaced, the very same function objects."""
    with _lock:
        while _active:
            _, patches = _active.popitem()
            patches.undo()


def _owners(package: str) -> dict[Owner, type]:
    """Return the classes of a kind of session; Connect's are imported only where it is used."""
    found: dict[Owner, type] = {}
    for owner in Owner:
        module, name = owner.value
        inner = "classic.dataframe" if (package, owner) == (_CLASSIC, Owner.FRAME) else module
        found[owner] = getattr(importlib.import_module(f"{package}.{inner}"), name)
    return found


def _is_configured_alone(spark: SparkSession) -> bool:
    """Tell whether settings name delta-spark's classes and there are none."""
    named = (spark.conf.get(key, None) or "" for key in (_EXTENSIONS, _CATALOG))
    is_named = any(
        name in text for name, text in zip((_JAR_CLASS, _CATALOG_CLASS), named, strict=True)
    )
    return is_named and not is_connect(spark) and not has_class(spark, _JAR_CLASS)


def _has_jar(spark: SparkSession) -> bool:
    """Tell whether delta-spark is in the session, as configured or on its class path."""
    if _JAR_CLASS in (spark.conf.get(_EXTENSIONS, None) or ""):
        return True
    if is_connect(spark):
        return False  # a client cannot see the server's classes
    return has_class(spark, _JAR_CLASS)
