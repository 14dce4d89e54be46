"""The switch of the activation, the module ``delta``, and the Python of data sources.

Spark starts PYSPARK_PYTHON, else the ``python3`` of the PATH. If that Python lacks this package (a
notebook's kernel, ``venv/bin/python job.py``), ``saveAsTable`` would not know the format.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import ModuleType

from pyspark.sql import SparkSession

import puredelta.exceptions
import puredelta.pip_utils
import puredelta.tables
from puredelta.activation.data_source import DeltaSource
from puredelta.activation.patched_methods import Owner, patched
from puredelta.activation.patches import Patches
from puredelta.catalogs.settings import (
    SESSION_CATALOG,
    SPARK_PREFIX,
    UNITY_CLASSES,
    require_own_name,
)
from puredelta.errors import InvalidRequestError, Message
from puredelta.spark.session.session import CLASSIC, has_extension, pyspark_package, settings_of
from puredelta.version import __version__

_NAME = "delta"
_PARTS = {
    "tables": puredelta.tables,
    "exceptions": puredelta.exceptions,
    "pip_utils": puredelta.pip_utils,
}
_MARK = "__puredelta__"


def install_delta_module() -> None:
    """Make this package's ``tables``, ``exceptions`` and ``pip_utils`` available as ``delta``.

    Raises:
        InvalidRequestError: another package called ``delta`` is installed, which stays as it is.
    """
    if is_installed():
        return
    if _NAME in sys.modules or importlib.util.find_spec(_NAME) is not None:
        raise InvalidRequestError(
            Message.INVALID_WRITE_OPTION_DELTA_MODULE, release=_release(), module=_NAME
        )
    module = ModuleType(_NAME, "delta-spark's modules, as puredelta has them.")
    module.__path__ = []
    module.__version__ = __version__  # type: ignore[attr-defined]
    setattr(module, _MARK, True)
    module.DeltaTable = puredelta.tables.DeltaTable  # type: ignore[attr-defined]
    module.configure_spark_with_delta_pip = (  # type: ignore[attr-defined]
        puredelta.pip_utils.configure_spark_with_delta_pip
    )
    sys.modules[_NAME] = module
    for name, part in _PARTS.items():
        setattr(module, name, part)
        sys.modules[f"{_NAME}.{name}"] = part


def remove_delta_module() -> None:
    """Remove the modules again, if they are this package's."""
    if is_installed():
        for name in (_NAME, *(f"{_NAME}.{part}" for part in _PARTS)):
            sys.modules.pop(name, None)


def is_installed() -> bool:
    """Return whether ``delta`` is this package."""
    return hasattr(sys.modules.get(_NAME), _MARK)


def _release() -> str:
    try:
        return f" (delta-spark {importlib.metadata.version('delta-spark')})"
    except importlib.metadata.PackageNotFoundError:
        return ""


_WAIT_SECONDS = 20


def let_spark_find_source(spark: SparkSession) -> None:
    """Register the data source in a local session, to be run by this Python; warn in others.

    Does nothing where PYSPARK_PYTHON is set or the ``python3`` of the PATH is this one. Workers of
    the user's own functions keep their Python.
    """
    if os.environ.get("PYSPARK_PYTHON") or not sys.executable:
        return
    python = shutil.which("python3")
    if python is not None and _is_this(python):
        return
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        known = context.pythonExec
        context.pythonExec = sys.executable
        try:
            spark.dataSource.register(DeltaSource)
        finally:
            context.pythonExec = known
    elif python is None or not _has_package(python):
        warnings.warn(
            f"Spark starts {python or 'python3, which is not on the PATH'} for Python code, and "
            "that Python cannot import puredelta: saveAsTable fails with DATA_SOURCE_NOT_FOUND. "
            "Install puredelta there, or set PYSPARK_PYTHON to a Python that has it before the "
            f"session starts (here: PYSPARK_PYTHON={sys.executable}).",
            stacklevel=3,
        )


def _is_this(python: str) -> bool:
    """Return whether a program is in this Python's directory; its own link is ignored."""
    return Path(python).parent.resolve() == Path(sys.executable).parent.resolve()


def _has_package(python: str) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - the Python that Spark starts
            [python, "-c", "import puredelta"], capture_output=True, check=False,
            timeout=_WAIT_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


_JAR_CLASS = "io.delta.sql.DeltaSparkSessionExtension"
_EXTENSIONS = "spark.sql.extensions"
_CATALOG = "spark.sql.catalog.spark_catalog"
_CATALOG_CLASS = "org.apache.spark.sql.delta."

_lock = threading.Lock()
_active: dict[str, Patches] = {}
"""The replaced methods, by the package of the kind of session."""


def activate(spark: SparkSession, *, delta_module: bool = False) -> bool:
    """Let the session read, write and query Delta tables through PySpark's own calls.

    ``spark.read.format("delta")``, ``df.write.format("delta")``, ``df.writeTo``,
    ``df.mergeInto``, ``df.writeStream``, ``spark.sql`` and ``spark.table`` then work as with
    delta-spark; `docs/activation.md` lists their options. Every other format and statement
    takes PySpark's own path. Methods of PySpark's classes are replaced, so every session of
    this process that is of the same kind (classic or Connect) is active; readers and writers
    made before are not. A second activation has no effect.

    Returns:
        Whether the session is active. A session that has delta-spark's JAR is left alone,
        with a warning: it supports Delta already.

    Raises:
        InvalidRequestError: a setting makes ``spark_catalog`` a catalog of this library
            (INVALID_CONF_VALUE).

    Examples:
        >>> import puredelta
        >>> puredelta.activate(spark)  # doctest: +SKIP
        True
        >>> reader = spark.read.format("delta").option("versionAsOf", 3)  # doctest: +SKIP
        >>> events = reader.load("/data/events")  # doctest: +SKIP
    """
    if has_extension(spark, _JAR_CLASS):
        warnings.warn(
            "This session has delta-spark's JAR, so puredelta.activate() changes nothing: its "
            "readers, writers and SQL are delta-spark's. Start the session without the JAR and "
            f"without {_EXTENSIONS} to use puredelta, or call puredelta.read, puredelta.write and "
            "puredelta.sql.",
            stacklevel=2,
        )
        return False
    package = pyspark_package(spark)
    if package == CLASSIC and not _runs_sql(spark):  # a server runs it already
        return False
    if delta_module:
        install_delta_module()
    with _lock:
        if package not in _active:
            _active[package] = patched(_owners(package), package)
    if package == CLASSIC:
        let_spark_find_source(spark)
    return True


def deactivate() -> None:
    """Restore every method that `activate` has replaced, as the same function object."""
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
        if package == CLASSIC and owner in {Owner.TEXT, Owner.CALL}:
            continue
        inner = "classic.dataframe" if (package, owner) == (CLASSIC, Owner.FRAME) else module
        found[owner] = getattr(importlib.import_module(f"{package}.{inner}"), name)
    return found


def _runs_sql(spark: SparkSession) -> bool:
    """Return whether SQL runs with the settings of a classic session."""
    return _is_free_of_delta_spark(spark) and _loads_no_catalog(spark)


def _is_free_of_delta_spark(spark: SparkSession) -> bool:
    """Warn of settings that name delta-spark's classes; return whether SQL still runs."""
    catalog = spark.conf.get(_CATALOG, None) or ""
    named = [_EXTENSIONS] if _JAR_CLASS in (spark.conf.get(_EXTENSIONS, None) or "") else []
    named += [_CATALOG] if catalog.startswith(_CATALOG_CLASS) else []
    if named:
        breaks = _CATALOG in named
        warnings.warn(
            f"{' and '.join(named)} name delta-spark's classes, but its JAR is not here"
            + (": such a session runs no SQL, so it is not activated" if breaks else "")
            + f". Remove {'both' if len(named) > 1 else 'it'} and start a new session.",
            stacklevel=4,
        )
    return _CATALOG not in named


_DEFAULT_CATALOG = "spark.sql.defaultCatalog"


def _loads_no_catalog(spark: SparkSession) -> bool:
    """Warn of settings by which Spark loads the class of a Unity catalog; return whether SQL runs.

    Spark would load it before any statement.
    """
    default = spark.conf.get(_DEFAULT_CATALOG, None) or ""
    for key, name in ((_DEFAULT_CATALOG, default), (_CATALOG, SESSION_CATALOG)):
        if (spark.conf.get(f"{SPARK_PREFIX}{name}", None) or "").strip() in UNITY_CLASSES:
            warnings.warn(
                f"{key} lets Spark load the class of the Unity catalog {name}, whose JAR is not "
                "here: such a session runs no SQL, so it is not activated. Remove the setting, "
                "give the catalog its own name in spark.sql.catalog.NAME, and say USE NAME.schema "
                "after puredelta.activate(spark).",
                stacklevel=4,
            )
            return False
    require_own_name(settings_of(spark))
    return True
