"""Access to data files: by Spark or by Arrow, with paths and code for workers.

The one place that decides it.

An object store and HDFS are the same for everybody. A path on a disk is not: over Spark Connect
the server may have another disk there than the client, and on a cluster an executor than the
driver. What is written to such a path is lost, or is an unreadable table.
"""

from __future__ import annotations

import functools
import pickle
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, cast
from weakref import WeakKeyDictionary

from pyspark import cloudpickle
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta import worker
from puredelta.errors import DeltaError, Message, UnsupportedError
from puredelta.log.files.clock import random_id
from puredelta.protocol.actions.paths import absolute_uris
from puredelta.spark.connect.messages import hide_in_log
from puredelta.spark.jvm.gateway import mapped_in_arrow
from puredelta.spark.jvm.hadoop import has_file_system
from puredelta.spark.session.catalogs import has_vended_keys
from puredelta.spark.session.delta_conf import IO
from puredelta.spark.session.key_service import grant_of
from puredelta.spark.session.session import is_connect, runs_here, seen_files, setting_of
from puredelta.store.base import Store
from puredelta.store.location import ObjectLocation, parse_object_location
from puredelta.store.object_store import ObjectStore
from puredelta.store.registry import local_path
from puredelta.worker.bootstrap import run_stream
from puredelta.worker.files import RENEWAL, UNKNOWN_SIZE, DataPath, StoreFields

_LOCAL = "file"


class DataIo(Enum):
    """The two ways to data files."""

    SPARK = "spark"
    """Spark's own Parquet reader and writer."""
    ARROW = "arrow"
    """Arrow, in Spark's Python workers."""


def data_io(spark: SparkSession, uris: Iterable[str]) -> DataIo:
    """Return the way to some files or directories, given by absolute URIs.

    Of a session of Spark Connect it is unknown which file systems its server has, so that Arrow has
    all but local files.

    Raises:
        InvalidRequestError: the session asks for a way that there is not.
    """
    chosen = IO.read({IO.key: setting_of(spark, IO.key, str(IO.default))})
    if chosen != IO.default:
        return DataIo(chosen)
    wanted = tuple(uris)
    if any(has_vended_keys(spark, uri) for uri in wanted):
        return DataIo.ARROW
    schemes = {uri.partition(":")[0] for uri in wanted} - {_LOCAL}
    if all(not is_connect(spark) and has_file_system(spark, scheme) for scheme in schemes):
        return DataIo.SPARK
    return DataIo.ARROW


class DataPaths:
    """Finds files for workers; what it knows of a bucket is found out once."""

    def __init__(self, open_at: Callable[[str], Store]) -> None:
        """``open_at`` opens any directory with the settings of the session."""
        self._open_at = open_at
        self._stores: dict[str, StoreFields | None] = {}

    def find(self, uri: str, size_bytes: int = UNKNOWN_SIZE) -> DataPath | None:
        """Return what a worker opens; ``None``: it has no way to the file.

        ``uri`` is absolute and decoded.
        """
        if (path := local_path(uri)) is not None:
            return path
        location = parse_object_location(uri)
        if location is None or (store := self._store(location)) is None:
            return None
        return store, location.path, size_bytes

    def find_all(
        self, root_uri: str, encoded_paths: Sequence[str], sizes_bytes: Sequence[int]
    ) -> list[DataPath] | None:
        """Return what a worker opens for files of a table, whose paths are as the log has them.

        ``None``: it has no way to one of them.
        """
        self._stores.clear()  # a key may have been renewed since the last job
        uris = absolute_uris(root_uri, encoded_paths)
        found = [self.find(uri, size) for uri, size in zip(uris, sizes_bytes, strict=True)]
        reached = [path for path in found if path is not None]
        return reached if len(reached) == len(found) else None

    def _store(self, location: ObjectLocation) -> StoreFields | None:
        bucket = location.bucket_uri
        if bucket not in self._stores:
            store = self._open_at(bucket)
            self._stores[bucket] = _fields(store) if isinstance(store, ObjectStore) else None
        return self._stores[bucket]


def _fields(store: ObjectStore) -> StoreFields:
    store.renew()
    hide_in_log(store.access.secrets)
    arguments = store.access.arguments()
    url = arguments.pop("url")
    if (grant := grant_of(store)) is not None:
        arguments[RENEWAL] = store.access.expires_ms, grant
    return url, pickle.dumps(arguments)


def unreachable(uri: str) -> UnsupportedError:
    """Build the error for a file or directory, by its absolute URI, that nothing can reach."""
    scheme = uri.partition(":")[0]
    return UnsupportedError(Message.UNSUPPORTED_STORAGE_NO_FILE_SYSTEM, path=uri, scheme=scheme)


_SPECIAL = re.compile(r"[\\{}\[\]*?]")


def as_glob(path: str) -> str:
    r"""Return the pattern that matches this path alone.

    >>> print(as_glob("file:/data/a[1]*.parquet"))
    file:/data/a\[1\]\*.parquet
    """
    return _SPECIAL.sub(r"\\\g<0>", path)


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
        DeltaError: the server sees no such file (WRITE_FAILED); no file is left.
    """
    root = store.root_uri
    if local_path(root) is None or not is_connect(spark):
        return
    known = _shared_roots.setdefault(spark, set())
    if root in known:
        return
    # Not a hidden one, of which Spark's log would warn.
    name = f"seen-by-server-{random_id()}"
    store.put(name, b"")
    try:
        is_seen = _exists(spark, f"{root}/{name}")
    finally:
        with suppress(OSError):
            store.delete(name)
    if not is_seen:
        raise DeltaError(Message.WRITE_FAILED_OTHER_DISK, way_out=_WAY_OUT, path=root)
    known.add(root)


def note_files_of_workers(spark: SparkSession, store: Store, paths: Iterable[str]) -> None:
    """Note that a Connect server sees files of a store that its workers have written.

    This client sees them: where the server sees what the client writes, it does so, too.
    """
    root = store.root_uri
    if local_path(root) is None or root in _shared_roots.get(spark, ()):
        seen_files(spark).update(f"{root}/{path}" for path in paths)


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
        Message.UNSUPPORTED_STORAGE_OTHER_DISK,
        num_bytes=wanted[shown],
        way_out=_WAY_OUT,
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


cloudpickle.register_pickle_by_value(worker)  # type: ignore[no-untyped-call]


@functools.cache
def packed_code(function: Callable[..., Any]) -> bytes:
    """Return a function of a worker module with all the code of this package that it needs.

    Packed once: it takes milliseconds, and the code does not change. Compressed it is a third:
    the JVM takes each byte in hand several times before a worker has it.
    """
    code: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    return zlib.compress(code)


def streamed(
    rows: DataFrame, function: Callable[..., Any], argument: object, schema: T.StructType
) -> DataFrame:
    """Return what a function of a worker module makes of the rows of each task. Runs no job.

    The function takes ``argument``, which is of plain values (`puredelta.worker.wire`), and an
    iterator of Arrow batches; it yields Arrow batches of ``schema``.
    """
    work = worker_function(function, argument)
    if is_connect(rows.sparkSession):
        return rows.mapInArrow(work, schema)
    python = workers_python(rows.sparkSession)
    return mapped_in_arrow(rows, work, schema, name=function.__name__, python=python)


def worker_function(function: Callable[..., Any], argument: object) -> Callable[..., Any]:
    """Return a function of a worker module, bound to its first argument, with all its code."""
    return functools.partial(run_stream, packed_code(function), argument)


def workers_python(spark: SparkSession) -> str | None:
    """Return what the workers of a classic session run; None: what the session says.

    In a local session they are the driver's own Python.
    """
    return sys.executable if runs_here(spark.sparkContext.master) else None
