"""How Spark's Python workers reach data files: from URIs to what a worker opens."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.protocol.actions.paths import absolute_uris
from puredelta.store.access.location import ObjectLocation, parse_object_location
from puredelta.store.base import Store
from puredelta.store.local_files import local_path
from puredelta.store.object_store import ObjectStore
from puredelta.worker.files import UNKNOWN_SIZE, DataPath, StoreFields


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
    arguments = store.access.arguments()
    return arguments.pop("url"), pickle.dumps(arguments)


def unreachable(uri: str) -> UnsupportedError:
    """Build the error for a file or directory, by its absolute URI, that nobody has a way to."""
    scheme = uri.partition(":")[0]
    return UnsupportedError(
        f"{uri} cannot be reached: neither Spark nor its Python workers have a file system for "
        f"{scheme!r}. Put Hadoop's client for it on the class path (spark.jars.packages), or read "
        "a version of the table whose files are elsewhere.",
        code=ErrorCode.UNSUPPORTED_STORAGE,
        path=uri,
        scheme=scheme,
    )
