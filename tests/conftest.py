"""Fixtures that more than one layer needs: the shared Spark session."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.class_archive import java_options, start_connect_service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# CI repeats the same examples, so that a red run is about the change; elsewhere they vary.
# No example has a deadline: on a busy machine that would fail tests that are right.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Before anything starts a JVM or a Python worker: both inherit this environment.
os.environ["TZ"] = "UTC"
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# Java's second compiler and its collector's threads take a third of two cores, which does not pay.
# Without that compiler compiled code has 48 MB, which one or two minutes fill: methods are dropped,
# interpreted and compiled again from then on. Each step of the heap and of the space for classes,
# which begins with 21 MB, is a full collection. Most tests run code that is new to the JVM: it is
# compiled sooner, and garbage of a test is collected before it grows old. What Spark and its
# compiler of queries have made is not verified, which takes a twentieth of a run.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:ReservedCodeCacheSize=512m -XX:MetaspaceSize=512m -Xms1g -Xmn500m "
    "-XX:CompileThresholdScaling=0.3 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote " + java_options(),
)
time.tzset()

# Thousands of commits are flushed, which takes milliseconds on a disk and nothing in memory.
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 4 << 30
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of what has a sample in ``make test``."""
    config.addinivalue_line("markers", "thorough: the rest of a sample (make thorough)")
    config.addinivalue_line("markers", "sampled(n): about one case of n is in the sample")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the search for garbage away from the collected tests, which stay to the end.

    Each search would walk all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    """Let the end of the process free the collected tests: libraries list what is left then."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for the session, so that ``-m 'not spark'`` means what it says.

    Files that start processes come first: theirs are the longest tests, and a long test at the end
    of a run would keep one core busy and leave the other ones idle. Clients of the Connect server
    of ``spark`` stay in their places: that server answers sooner once its JVM is warm.
    """
    _mark_samples(items)
    of_server = {
        item.path for item in items if "connect_server" in getattr(item, "fixturenames", ())
    }
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: item.path in of_server or not _starts_processes(item))


def _mark_samples(items: Sequence[pytest.Item]) -> None:
    """Leave cases of tests that are ``sampled`` to ``make thorough``: all but the first and some.

    A case is chosen by its name, so that the sample of a product has values of each factor, and
    stays the same when a case is added.
    """
    begun = set()
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is None:
            continue
        test, _, case = item.nodeid.partition("[")
        if test in begun and zlib.crc32(case.encode()) % marker.args[0]:
            item.add_marker(pytest.mark.thorough)
        begun.add(test)


def _starts_processes(item: pytest.Item) -> bool:
    return not _PROCESSES.isdisjoint(vars(getattr(item, "module", None) or item))


_PROCESSES = {"answers_and_log_of", "answers_of", "ask", "subprocess"}
"""Names that a module of tests imports where it starts a process."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small local session for the whole run: no UI, UTC, a warehouse of its own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - fast tests never load pyspark

    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("puredelta tests")
        .config("spark.driver.memory", "1500m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config(
            "spark.driver.extraJavaOptions", f"-Dderby.system.home={scratch} -Duser.timezone=UTC"
        )
        .config("spark.executorEnv.TZ", "UTC")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.ui.enabled", "false")
        # Queries of earlier tests come again: 100 would be kept.
        .config("spark.sql.codegen.cache.maxEntries", "5000")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.connect.grpc.binding.port", "0")
        # PUREDELTA_IO=arrow: the same tests of the other way to data files, without any server.
        .config("spark.puredelta.io", os.environ.get("PUREDELTA_IO", "auto"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    _look_classes_up_once(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_server(spark: SparkSession) -> str:
    """The URL of a Connect server in the JVM of ``spark``, whose start and warm-up it shares.

    Each client has a session of its own. The catalog is that of all tests.
    """
    jvm: Any = spark.sparkContext._jvm
    # Refused calls are logged as errors, with the whole trace.
    off = jvm.org.apache.logging.log4j.Level.OFF
    levels = jvm.org.apache.logging.log4j.core.config.Configurator
    levels.setLevel("org.apache.spark.sql.connect", off)
    return start_connect_service(spark)


_CLASSES_OF_PYSPARK = (
    "PythonRDD",
    "PythonSQLUtils",
    "PythonUtils",
    "SerDeUtil",
    "SimplePythonFunction",
    "functions",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.functions",
    "py4j",
)


def _look_classes_up_once(spark: SparkSession) -> None:
    """Keep what PySpark asks the JVM for at each use: a sixth of a run's time in the JVM.

    A name without a package is tried in each imported package, and a miss asks hundreds of JARs.
    """
    view: Any = spark.sparkContext._jvm
    for name in _CLASSES_OF_PYSPARK:
        setattr(view, name, getattr(view, name))


@pytest.fixture
def without_workers(spark: SparkSession) -> Iterator[None]:
    """Let Spark do what Python workers do otherwise."""
    spark.conf.set("spark.puredelta.workers.enabled", "false")
    yield
    spark.conf.unset("spark.puredelta.workers.enabled")


@pytest.fixture(scope="module", autouse=True)
def _views_end_with_their_file() -> Iterator[None]:
    """A temporary view hides tables of its name, so none outlives the file that made it."""
    yield
    if "pyspark.sql" not in sys.modules:
        return
    from pyspark.sql import SparkSession  # noqa: PLC0415 - fast tests never load pyspark

    session: Any = SparkSession.getActiveSession()
    if session is None or not hasattr(session, "_jsparkSession"):
        return
    # listTables() would resolve every table that tests have left.
    views = session._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    for n in range(views.size()):
        session.catalog.dropTempView(views.apply(n).table())
