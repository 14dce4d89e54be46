"""Damage in data files: footers, deletion vectors and change files beside the log, and orphans."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.errors import DeltaError, InvalidRequestError, Message
from puredelta.inspection.damage.history import CommitChanges
from puredelta.inspection.damage.kinds import Damage, Damages
from puredelta.log.files.deletion_vectors import read_vector
from puredelta.log.files.file_stats import StatisticsReader
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.parquet_footer import map_footers, read_end_of
from puredelta.log.files.row_counts import physical_rows
from puredelta.log.files.stats_columns import read_raw_statistics, typed_statistics
from puredelta.log.files.stats_json import StatisticsColumn
from puredelta.log.maintenance.garbage import visible_to_vacuum
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add, FileActionKey
from puredelta.protocol.actions.paths import absolute_uri, folded_path, path_below_root
from puredelta.protocol.schema.schema_json import parse_json
from puredelta.protocol.schema.traversal import struct_fields
from puredelta.protocol.schema.types import (
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    PrimitiveType,
)
from puredelta.protocol.table.stats import LeafPath, LeafStatistics, encode_statistics
from puredelta.store.base import FileEnd, Store, StoredFile

_READERS_MAX = 8
_BATCH_FILES = 2_000
_WHOLE = 1 << 30
"""Characters of a text that are kept: all."""
_TRUNCATED_CHARACTERS = 32
"""Texts of this length may be cut off, in the log or in a footer."""
_TRUNCATED_MICROS = 1_000
_YOUNG_MS = 3_600_000
"""Younger files may be those of a job at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Footer:
    size_bytes: int
    num_rows: int
    leaves: Mapping[LeafPath, LeafStatistics]


class CheckedFiles:
    """The part of a version's data files that has been checked, kept in a file of the caller.

    A check that is interrupted goes on from there. The file names the table and the version: for
    another table it is begun again. Without a path nothing is kept.
    """

    def __init__(self, path: Path | None, newest: Snapshot) -> None:
        self.path, self.newest = path, newest
        self.count = 0
        """How many files are checked, in the order of their paths."""
        self.found = Damages()
        self._active: set[FileActionKey] | None = None
        known = self._read()
        self.version = newest.version if known is None else int(known["version"])
        if known is not None:
            self.count = int(known["count"])
            self.found.counts = {Damage[kind]: int(n) for kind, n in known["counts"].items()}
            self.found.evidence = {Damage[kind]: list(t) for kind, t in known["evidence"].items()}

    def _read(self) -> Mapping[str, Any] | None:
        if self.path is None or not self.path.exists():
            return None
        try:
            known = json.loads(self.path.read_text(encoding="utf-8"))
            is_known = known["table"] == self.newest.metadata.id
            return known if is_known and int(known["version"]) <= self.newest.version else None
        except (ValueError, KeyError, TypeError):
            raise InvalidRequestError(
                Message.INVALID_WRITE_OPTION_RESUME, path=str(self.path)
            ) from None

    def is_active(self, add: Add) -> bool:
        """Return whether the newest version has a file, too: VACUUM may have deleted others."""
        if self.version == self.newest.version:
            return True
        if self._active is None:
            self._active = {FileActionKey.of(one) for one in self.newest.files.adds()}
        return FileActionKey.of(add) in self._active

    def keep(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is None:
            return
        text = json.dumps(
            {
                "table": self.newest.metadata.id,
                "version": self.version,
                "count": self.count,
                "counts": {kind.name: n for kind, n in self.found.counts.items()},
                "evidence": {kind.name: list(t) for kind, t in self.found.evidence.items()},
            }
        )
        part = self.path.with_name(f"{self.path.name}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(self.path)

    def forget(self) -> None:
        """Remove the file: the work is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def check_data_files(
    snapshot: Snapshot, store: Store, checked: CheckedFiles, progress: Callable[[str], None]
) -> None:
    """Compare each data file of a version with its entry in the log."""
    files = snapshot.files.take(pc.sort_indices(snapshot.files.rows["path"]).to_pylist())
    found, reader = checked.found, StatisticsReader(snapshot.config.physical_data_schema())
    with ThreadPoolExecutor(_READERS_MAX, "puredelta-doctor") as readers:
        for start in range(checked.count, len(files), _BATCH_FILES):
            part = FileTable(files.rows.slice(start, _BATCH_FILES))
            adds = list(part.adds())
            footers = list(readers.map(lambda add: _read_footer(add, store, reader), adds))
            for add, footer in zip(adds, footers, strict=True):
                is_vacuumed = isinstance(footer, FileNotFoundError) and not checked.is_active(add)
                if not is_vacuumed:
                    _check_file(add, footer, found)
            is_read = [isinstance(footer, _Footer) for footer in footers]
            read = [footer for footer in footers if isinstance(footer, _Footer)]
            _check_statistics(part.select(pa.array(is_read, pa.bool_())), read, snapshot, found)
            active = list(filter(checked.is_active, adds))
            for text in readers.map(lambda add: _vector_problem(add, snapshot, store), active):
                if text is not None:
                    found.add(Damage.VECTOR, text)
            checked.count += len(adds)
            checked.keep()
            progress(f"{checked.count:,} of {len(files):,} data files are checked")


def _read_footer(add: Add, store: Store, reader: StatisticsReader) -> _Footer | Exception:
    size = 0

    def read_end(file: Add, num_bytes: int) -> FileEnd:
        nonlocal size
        end = read_end_of(file, store, num_bytes)
        size = end.size_bytes
        return end

    def describe(_: Add, footer: pq.FileMetaData) -> _Footer:
        return _Footer(size_bytes=size, num_rows=footer.num_rows, leaves=reader.leaves(footer))

    try:
        return next(map_footers([add], describe, read_end=read_end, threads=1))
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        return error


def _check_file(add: Add, footer: _Footer | Exception, found: Damages) -> None:
    if isinstance(footer, FileNotFoundError):
        found.add(Damage.FILE_MISSING, add.path)
        return
    if isinstance(footer, Exception):
        text = str(footer).partition("\n")[0]
        found.add(Damage.FILE_UNREADABLE, f"{add.path}: {text}")
        return
    if footer.size_bytes != add.size_bytes:
        text = f"{add.path}: {footer.size_bytes:,} bytes, the log says {add.size_bytes:,}"
        found.add(Damage.FILE_SIZE, text)
    rows = physical_rows(add)
    if rows is not None and rows != footer.num_rows:
        text = f"{add.path}: {footer.num_rows:,} rows, the log says {rows:,}"
        found.add(Damage.NUM_RECORDS, text)
    if add.stats is not None and not _is_object(add.stats):
        found.add(Damage.STATISTICS, f"{add.path}: {add.stats[:80]!r}")


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse_json(text), dict)
    except ValueError:
        return False


# --- bounds and counts ----------------------------------------------------------------------


def _check_statistics(
    files: FileTable, footers: Sequence[_Footer], snapshot: Snapshot, found: Damages
) -> None:
    """Compare the statistics of the log with those that the footers prove."""
    if not footers:
        return
    config = snapshot.config
    leaves: dict[LeafPath, DataType] = {}
    required: dict[LeafPath, str] = {}
    for path, one in struct_fields(config.schema):
        if path[0] in config.partition_columns:
            continue
        if isinstance(one.type, PrimitiveType | DecimalType):
            leaves[config.physical_path(path)] = one.type
            if len(path) == 1 and not one.nullable:
                required[config.physical_path(path)] = one.name
    proven = pa.array(
        [
            encode_statistics(f.leaves, num_records=f.num_rows, string_prefix_length=_WHOLE)
            for f in footers
        ],
        pa.string(),
    )
    said = _as_written(files.rows["stats"], leaves)
    true = _as_written(proven, leaves)
    paths = files.rows["path"].to_pylist()
    is_tight = pc.equal(files.deleted_counts(), 0).to_numpy(zero_copy_only=False)
    for path, kind in leaves.items():
        name = ".".join(path)
        compared = _compare(said[path], true[path], kind, is_tight)
        for damage, places in compared:
            for place in places:
                found.add(damage, f"{paths[place]}: column {name}")
        if path in required:
            counts = pc.fill_null(true[path].null_count, 0)
            for place in np.flatnonzero(counts.to_numpy(zero_copy_only=False)).tolist():
                found.add(Damage.NULL_IN_COLUMN, f"{paths[place]}: column {required[path]}")


def _as_written(
    texts: pa.Array | pa.ChunkedArray, leaves: Mapping[LeafPath, DataType]
) -> Mapping[LeafPath, StatisticsColumn]:
    """Return the statistics, with the bounds of decimals as other engines take them."""
    raw = read_raw_statistics(texts, leaves)
    typed = typed_statistics(raw, leaves)
    return {
        path: (raw if isinstance(kind, DecimalType) else typed).leaves[path]
        for path, kind in leaves.items()
    }


def _compare(
    said: StatisticsColumn, true: StatisticsColumn, kind: DataType, is_tight: np.ndarray
) -> Iterator[tuple[Damage, Sequence[int]]]:
    known = pc.and_(pc.is_valid(said.null_count), pc.is_valid(true.null_count))
    differs = pc.and_(known, pc.not_equal(said.null_count, true.null_count))
    counts = pc.fill_null(differs, fill_value=False).to_numpy(zero_copy_only=False)
    yield Damage.NULL_COUNT, np.flatnonzero(counts & is_tight).tolist()
    if said.low is None or said.high is None or true.low is None or true.high is None:
        return
    slack = _TRUNCATED_MICROS if kind in {TIMESTAMP, TIMESTAMP_NTZ} else 0
    yield Damage.BOUNDS_ORDER, _places(pc.greater(said.low, said.high))
    low, high = true.low, true.high
    if kind == STRING:
        low, high = _short(low), _short(high)
    if slack:
        low, high = pc.add(low, slack), pc.subtract(high, 2 * slack)
    outside = pc.or_kleene(pc.greater(said.low, low), pc.less(said.high, high))
    yield Damage.BOUNDS, _places(outside)


def _short(texts: pa.Array) -> pa.Array:
    """Leave out texts that may be cut off."""
    is_short = pc.less(pc.utf8_length(texts), _TRUNCATED_CHARACTERS)
    return pc.if_else(is_short, texts, pa.scalar(None, texts.type))


def _places(mask: pa.Array) -> list[int]:
    flags = pc.fill_null(mask, fill_value=False).to_numpy(zero_copy_only=False)
    places: list[int] = np.flatnonzero(flags).tolist()
    return places


# --- deletion vectors, change files, orphans ------------------------------------------------


def _vector_problem(add: Add, snapshot: Snapshot, store: Store) -> str | None:
    if add.deletion_vector is None:
        return None
    try:
        positions = read_vector(add.deletion_vector, snapshot.root_uri, store=store)
    except (DeltaError, OSError, ValueError) as error:
        return f"{add.path}: {str(error).partition(chr(10))[0]}"
    if len(positions) != add.deletion_vector.cardinality:
        return f"{add.path}: {len(positions)} rows, not {add.deletion_vector.cardinality}"
    rows = physical_rows(add)
    highest = int(positions[-1]) if len(positions) else -1
    if rows is not None and highest >= rows:
        return f"{add.path}: row {highest} of {rows} is deleted"
    return None


def check_change_files(
    changes: Sequence[CommitChanges], store: Store, found: Damages, *, kept_since_ms: int
) -> None:
    """Compare change files with what their commits add and remove.

    Files of commits older than ``kept_since_ms`` may have been deleted by VACUUM.
    """
    for change in changes:
        kinds: Counter[str] = Counter()
        try:
            for path in change.paths:
                kinds += _change_types(store, path)
        except FileNotFoundError:
            if change.modified_ms >= kept_since_ms:
                found.add(Damage.CHANGE_FILE, f"version {change.version}: a file is missing")
            continue
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            text = str(error).partition("\n")[0]
            found.add(Damage.CHANGE_FILE, f"version {change.version}: {text}")
            continue
        pairs = kinds["update_postimage"] - kinds["update_preimage"]
        difference = kinds["insert"] - kinds["delete"] + pairs
        if pairs or (change.difference is not None and difference != change.difference):
            counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            text = f"version {change.version}: {counts}; the files differ by {change.difference}"
            found.add(Damage.CHANGE_ROWS, text)


def _change_types(store: Store, path: str) -> Counter[str]:
    directory, _, name = absolute_uri(store.root_uri, path).rpartition("/")
    with store.at(directory).open(name) as file:
        column = pq.ParquetFile(file).read(["_change_type"])["_change_type"]
    return Counter({row["values"]: row["counts"] for row in pc.value_counts(column).to_pylist()})


def check_orphans(
    snapshot: Snapshot,
    store: Store,
    found: Damages,
    *,
    named: set[str],
    written_ms: tuple[int, int],
) -> None:
    """List the table once, and report files that no commit names.

    ``written_ms`` are the times of the oldest commit that is left and of now: older files may be
    those of commits that are gone, younger ones those of a job at work.
    """
    root = snapshot.root_uri
    known = {folded_path(p) for path in named if (p := path_below_root(root, path)) is not None}
    since_ms, now_ms = written_ms
    is_wanted = visible_to_vacuum(snapshot.config.physical_partition_columns)
    for entry in store.inventory("", is_wanted=is_wanted):
        if not isinstance(entry, StoredFile) or not entry.path.endswith(".parquet"):
            continue
        is_old = since_ms <= entry.modified_ms < now_ms - _YOUNG_MS
        if is_old and folded_path(entry.path) not in known and _has_rows(store, entry.path):
            found.add(Damage.ORPHANS, f"{entry.path}: {entry.size_bytes:,} bytes")


def _has_rows(store: Store, path: str) -> bool:
    """Return whether a file may have rows; delta-spark leaves out of its commits what has none."""
    try:
        with store.open(path) as file:
            return bool(pq.ParquetFile(file).metadata.num_rows)
    except (OSError, ValueError, pa.ArrowException):
        return True
