"""How Spark's Python workers reach data files: from URIs to what a worker opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from puredelta.protocol.actions.paths import absolute_uris
from puredelta.store.local_files import local_path
from puredelta.worker.files import UNKNOWN_SIZE, DataPath


@dataclass(frozen=True, slots=True)
class DataPaths:
    """Finds files for the workers of one session."""

    spark: SparkSession

    def find(self, uri: str, size_bytes: int = UNKNOWN_SIZE) -> DataPath | None:  # noqa: ARG002 - of an object
        """Return what a worker opens; ``None``: it has no way to the file.

        ``uri`` is absolute and decoded.
        """
        return local_path(uri)

    def find_all(
        self, root_uri: str, encoded_paths: Sequence[str], sizes_bytes: Sequence[int]
    ) -> list[DataPath] | None:
        """Return what a worker opens for files of a table, whose paths are as the log has them.

        ``None``: it has no way to one of them.
        """
        uris = absolute_uris(root_uri, encoded_paths)
        found = [self.find(uri, size) for uri, size in zip(uris, sizes_bytes, strict=True)]
        reached = [path for path in found if path is not None]
        return reached if len(reached) == len(found) else None
