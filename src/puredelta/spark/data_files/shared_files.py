"""Whether Spark sees the files of a ``file:`` path that this program sees.

An object store and HDFS are the same for everybody. A path on a disk is not: over Spark Connect
the server may have another disk there than the client, and on a cluster an executor than the
driver. What is written to such a path is lost, or is a table that nobody can read.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import cast
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from puredelta.errors import DeltaError, ErrorCode, UnsupportedError
from puredelta.spark.data_files.globs import as_glob
from puredelta.spark.session.session import is_connect, runs_here
from puredelta.store.base import Store, temporary_name
from puredelta.store.local_files import local_path

_NOT_FOUND = "PATH_NOT_FOUND"
_MISSING = (_NOT_FOUND, "FILE_NOT_EXIST", "FileNotFoundException")
_WAY_OUT = (
    "Mount the same file system at that path on the driver and on every executor (over Spark "
    "Connect: on the client and on the server, too), or keep the table in an object store or HDFS."
)

_shared_roots: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def require_shared_root(spark: SparkSession, store: Store) -> None:
    """Check that a Connect server sees what this client writes to a directory.

    An empty file is written there, the server is asked for it, and it is removed: one request
    and no job, once per session and directory.

    Raises:
        DeltaError: the server sees no such file (WRITE_FAILED); nothing is left behind.
    """
    root = store.root_uri
    if local_path(root) is None or not is_connect(spark):
        return
    known = _shared_roots.setdefault(spark, set())
    if root in known:
        return
    # Spark reads no hidden file, but says whether there is one.
    name = temporary_name()
    store.put(name, b"")
    try:
        is_seen = _exists(spark, f"{root}/{name}")
    finally:
        with suppress(OSError):
            store.delete(name)
    if not is_seen:
        raise DeltaError(
            f"The Spark server does not see {root}, where this client writes the log of the "
            f"table: it has another disk there. Nothing was written. {_WAY_OUT}",
            code=ErrorCode.WRITE_FAILED,
            path=root,
        )
    known.add(root)


def _exists(spark: SparkSession, uri: str) -> bool:
    try:
        _ = spark.read.schema("value string").text(as_glob(uri)).columns
    except AnalysisException as failure:
        if failure.getCondition() != _NOT_FOUND:
            raise
        return False
    return True


def require_seen(spark: SparkSession, files: Iterable[tuple[str, int]]) -> None:
    """Check that Spark sees files with the sizes that this program sees; a few files are enough.

    ``files`` are absolute, decoded URIs and bytes. Runs one small job where Spark's tasks run on
    other machines and a file is on a disk; else nothing.

    Raises:
        UnsupportedError: it does not see one of them, or sees another (UNSUPPORTED_STORAGE).
    """
    if not is_connect(spark) and runs_here(spark.sparkContext.master):
        return
    wanted = {uri: size for uri, size in files if local_path(uri) is not None}
    if not wanted or sorted(_sizes(spark, wanted)) == sorted(wanted.values()):
        return
    shown = min(wanted)
    raise UnsupportedError(
        f"Spark does not see {shown} ({wanted[shown]} bytes) as this program does, so nobody could "
        "read the table: the driver or an executor (over Spark Connect: the server) has another "
        f"disk there. Nothing was written. {_WAY_OUT}",
        code=ErrorCode.UNSUPPORTED_STORAGE,
        path=shown,
    )


def _sizes(spark: SparkSession, uris: Iterable[str]) -> list[int]:
    """Return the bytes of files as Spark's tasks see them; less than were asked for if they
    lack one.
    """
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        rows = reader.load([as_glob(uri) for uri in uris]).select("length").collect()
    except PySparkException as failure:
        if not any(sign in str(failure) for sign in _MISSING):
            raise
        return []
    return [cast(int, row[0]) for row in rows]
