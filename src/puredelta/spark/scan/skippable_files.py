"""The files of a version, of which each query reads those that may hold its rows.

Spark's planner asks with the conditions of a query, and the evaluator that MERGE prunes with
answers. Statistics are parsed when a condition first asks for a column, and kept. All frames
over the same files share them, as long as Spark or Python holds one of the frames.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.skipping.file_bounds import has_unreadable_partition_values
from puredelta.log.skipping.pruning import Pruning, prune
from puredelta.protocol.actions.paths import absolute_uri, absolute_uris, short_uri
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.schema.predicates import Predicate, Side
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.predicate_from_json import (
    Node,
    SideColumn,
    class_name,
    predicate_of,
)
from puredelta.spark.scan.data_file import (
    DataFile,
    is_odd_path,
    require_readable,
    uri_in_java,
)
from puredelta.spark.session.data_access import DataIo, data_io
from puredelta.spark.session.names import (
    BASE_ROW_ID,
    DEFAULT_COMMIT_VERSION,
    FILE_ORDINAL,
    FILE_PATH,
    FILE_SIZE,
    FILE_TIME,
)
from puredelta.spark.session.types import to_spark

logger = logging.getLogger(__name__)

_FILE_COLUMNS = ("path", "size_bytes", "modified_ms", "partition_values")
_ROW_ID_COLUMNS = {
    BASE_ROW_ID: "base_row_id",
    DEFAULT_COMMIT_VERSION: "default_row_commit_version",
    FILE_SIZE: "size_bytes",
    FILE_TIME: "modified_ms",
}
_METADATA_FIELDS = frozenset(
    {
        "file_path",
        "file_name",
        "file_size",
        "file_block_start",
        "file_block_length",
        "file_modification_time",
        "row_index",
    }
)
"""In conditions a field of ``_metadata`` cannot be told from a column of its name."""
_MAYBE_HIDDEN = r"(^|[/\\])[._][^/\\]*$|:"

_shared: WeakValueDictionary[tuple[str, int, str], SkippableFiles] = WeakValueDictionary()
_lock = threading.Lock()


def data_files(
    files: FileTable,
    root_uri: str,
    ordinals: Mapping[int, int] | None = None,
    *,
    with_row_ids: bool = False,
) -> list[DataFile]:
    """Return files as a scan reads them; ``ordinals`` are values of `FILE_ORDINAL`, by place.

    ``with_row_ids`` adds values of the columns of which ``_metadata`` is made
    (`puredelta.spark.scan.scan_columns.metadata_text`).
    """
    columns = [files.rows[name].to_pylist() for name in _FILE_COLUMNS]
    root = short_uri(root_uri).rstrip("/")
    known = ordinals or {}
    found = [
        DataFile(
            # Most paths are plain, and there are many.
            uri=absolute_uri(root, path) if is_odd_path(path) else f"{root}/{path}",
            size_bytes=size_bytes,
            modified_ms=modified_ms,
            partition_values={
                **dict(values or ()),
                FILE_ORDINAL: str(known[n]) if n in known else None,
            },
        )
        for n, (path, size_bytes, modified_ms, values) in enumerate(zip(*columns, strict=True))
    ]
    return list(_with_row_ids(found, files)) if with_row_ids else found


def _with_row_ids(found: Sequence[DataFile], files: FileTable) -> Iterator[DataFile]:
    texts = [files.rows[name].cast(pa.string()).to_pylist() for name in _ROW_ID_COLUMNS.values()]
    for file, *values in zip(found, *texts, strict=True):
        known = dict(zip(_ROW_ID_COLUMNS, values, strict=True))
        known[FILE_PATH] = uri_in_java(file.uri)
        partition_values = {**file.partition_values, **known}
        yield dataclasses.replace(file, partition_values=partition_values)


def is_for_spark(spark: SparkSession, files: FileTable, root_uri: str) -> bool:
    """Return whether Spark itself reads files of a table; few of them lie outside of it."""
    paths = files.rows["path"]
    elsewhere = paths.filter(pc.match_substring(paths, ":")).to_pylist()
    return data_io(spark, [root_uri, *absolute_uris(root_uri, elsewhere)]) is DataIo.SPARK


class SkippableFiles:
    """The files of one version of a table; threads may share it."""

    def __init__(
        self, snapshot: Snapshot, *, numbered: Sequence[int], with_row_ids: bool = False
    ) -> None:
        """``numbered`` are the places of files that have their place as `FILE_ORDINAL`;
        ``with_row_ids`` as in `data_files`.
        """
        self._with_row_ids = with_row_ids
        self._files = snapshot.files
        self._config = snapshot.config
        self._root_uri = snapshot.root_uri
        self._numbered = np.zeros(len(self._files), np.bool_)
        self._numbered[list(numbered)] = True
        self._statistics = NOTHING_PARSED
        self.identity = self._digest()

    @classmethod
    def of(
        cls, snapshot: Snapshot, *, numbered: Sequence[int] = (), with_row_ids: bool = False
    ) -> SkippableFiles:
        """Return the files of a version, shared with other frames of it."""
        files = cls(snapshot, numbered=numbered, with_row_ids=with_row_ids)
        if files._may_be_unreadable():
            require_readable(files.every_file())
        with _lock:
            return _shared.setdefault((snapshot.root_uri, snapshot.version, files.identity), files)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def root_uri(self) -> str:
        """Of the table."""
        return self._root_uri

    @property
    def table(self) -> FileTable:
        """The files as the log has them."""
        return self._files

    @property
    def config(self) -> TableConfig:
        """The configuration of the table at the version."""
        return self._config

    @property
    def size_bytes(self) -> int:
        """The sum of the file sizes."""
        return self._files.total_size_bytes

    @property
    def has_odd_partition_values(self) -> bool:
        """Whether Spark may be unable to parse a partition value."""
        return has_unreadable_partition_values(self._files, self._config)

    def is_for_spark(self, spark: SparkSession) -> bool:
        """Return whether Spark itself reads the files."""
        return is_for_spark(spark, self._files, self._root_uri)

    def every_file(self) -> list[DataFile]:
        """Return all files."""
        return self._data_files(self._files, np.arange(len(self)))

    def files_at(self, places: Sequence[int]) -> list[DataFile]:
        """Return the files at some places, which are in order."""
        return self._data_files(self._files.take(places), np.array(places, np.int64))

    def files_for(
        self, predicate: Predicate, *, by_statistics: bool, bounds_tell_nan: bool = False
    ) -> list[DataFile] | None:
        """Return the files that may hold rows of which the predicate is true; None for all.

        ``predicate`` is that of `predicate`; ``bounds_tell_nan`` as in `prune`.
        """
        places = self.places_for(
            predicate, by_statistics=by_statistics, bounds_tell_nan=bounds_tell_nan
        )
        return None if places is None else self.files_at(places)

    def places_for(
        self, predicate: Predicate, *, by_statistics: bool, bounds_tell_nan: bool = False
    ) -> list[int] | None:
        """Return the places of the files that `files_for` returns, in order; None for all."""
        pruning = prune(
            self._files,
            self._config,
            predicate,
            by_statistics=by_statistics,
            statistics=self._statistics,
            bounds_tell_nan=bounds_tell_nan,
        )
        # Another thread may have parsed other columns meanwhile; then they are parsed again.
        self._statistics = pruning.statistics
        places = np.flatnonzero(pruning.mask.to_numpy(zero_copy_only=False))
        self._log(pruning, len(places))
        return None if len(places) == len(self) else list(map(int, places))

    def stored_names(self) -> dict[str, str]:
        """Return the names that columns have in data files, by their logical names."""
        mode = self._config.column_mapping
        return {field.name: physical_name(field, mode) for field in self._config.schema.fields}

    def predicate(self, conditions: Sequence[Node]) -> Predicate:
        """Return conditions, one tree over the physical names of columns, over logical names."""
        mode = self._config.column_mapping
        types = to_spark(self._config.schema)
        by_name = {
            physical_name(field, mode): SideColumn(Side.TARGET, field.name, types[n].dataType)
            for n, field in enumerate(self._config.schema.fields)
        }
        ids: dict[str, set[int]] = {}
        for node in conditions:
            if class_name(node) == "AttributeReference":
                ids.setdefault(node["name"], set()).add(node["exprId"]["id"])
        columns = {
            next(iter(some)): by_name[name]
            for name, some in ids.items()
            if len(some) == 1 and name in by_name and name.lower() not in _METADATA_FIELDS
        }
        return predicate_of(conditions, columns, time_zone="UTC")

    def _data_files(self, files: FileTable, places: np.ndarray[Any, Any]) -> list[DataFile]:
        numbered = np.flatnonzero(self._numbered[places])
        ordinals = {int(n): int(places[n]) for n in numbered}
        return data_files(files, self._root_uri, ordinals, with_row_ids=self._with_row_ids)

    def _may_be_unreadable(self) -> bool:
        rows = self._files.rows
        hidden = pc.any(pc.match_substring_regex(rows["path"], _MAYBE_HIDDEN)).as_py()
        empty = pc.any(pc.less_equal(rows["size_bytes"], 0)).as_py()
        return bool(hidden or empty)

    def _digest(self) -> str:
        """Name what is read: equal digests mean equal files."""
        numbers = ("base_row_id", "default_row_commit_version") if self._with_row_ids else ()
        rows = self._files.rows.select(_FILE_COLUMNS + numbers).combine_chunks()
        columns = repr((self._config.schema, self._config.partition_columns, numbers))
        digest = hashlib.sha256(json.dumps([self._root_uri, len(self), columns]).encode())
        for batch in rows.to_batches():
            digest.update(batch.serialize())
        digest.update(np.packbits(self._numbered).tobytes())
        return digest.hexdigest()

    def _log(self, pruning: Pruning, num_left: int) -> None:
        if not logger.isEnabledFor(logging.INFO):
            return
        totals: dict[str, int] = {}
        for some in pruning.skipped:
            totals[some.by.value] = totals.get(some.by.value, 0) + some.num_files
        reasons = ", ".join(f"{count} by {by}" for by, count in totals.items())
        logger.info(
            "%s: %d of %d files are read (skipped: %s)",
            self._root_uri,
            num_left,
            len(self),
            reasons or "none",
        )
