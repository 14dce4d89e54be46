"""Rows that leave a table while their files stay: new deletion vectors, and who bears them.

The vectors of one command share files of about two megabytes under the table root (M-135).
A file keeps its path, its statistics become wide (M-134), and its row ids are kept.
"""

from __future__ import annotations

import contextlib
import random
import string
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.files.row_counts import physical_rows
from puredelta.log.footers.file_stats import TableStatistics
from puredelta.log.footers.parquet_footer import map_footers
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import (
    EncodedVector,
    RowIndexes,
    encode_vector,
    encode_vectors,
    vector_path,
)
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.table.loose_bounds import wide_statistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import FileEnd, Store
from puredelta.store.registry import open_store

VECTOR_FILE_BYTES = 2 * 1024 * 1024
"""What vectors of one file have together, unless a single one has more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeletionVectorUpdate:
    """A file of the table, and which of its rows nobody sees any more."""

    file: Add
    rows: RowIndexes
    """Those that its present vector hides included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenVectors:
    """The files of a table with their new vectors; in no commit yet."""

    adds: tuple[Add, ...] = ()
    """Files of which a row is left."""
    paths: tuple[str, ...] = ()
    """Of the vector files, relative to the table root."""


def write_vectors(
    hidden: Iterable[DeletionVectorUpdate],
    *,
    store: Store,
    config: TableConfig,
    new_id: IdSource = random_id,
) -> WrittenVectors:
    """Write the vectors and return the files that bear them; a file without rows is left out.

    Where a file's statistics lack its row count, its footer is read for new ones.

    Raises:
        CorruptTableError: such a file has no readable footer.
        StorageError: the storage refused; what was written is removed.
    """
    prefix = _random_prefix(config)
    files: list[Add] = []
    vectors: list[EncodedVector] = []
    for each in hidden:
        files.append(each.file)
        vectors.append(encode_vector(each.rows))
    files = _counted(files, store, config)
    left = [n for n, vector in enumerate(vectors) if physical_rows(files[n]) != vector.cardinality]
    written: list[str] = []
    adds: list[Add] = []
    try:
        for bin_ in packed([len(vectors[n].data) for n in left], VECTOR_FILE_BYTES):
            chosen = [left[n] for n in bin_]
            content, descriptors = encode_vectors(
                [vectors[n] for n in chosen], uuid.UUID(new_id()), prefix=prefix
            )
            path = str(vector_path(descriptors[0]))
            written.append(path)
            store.put(path, content)
            adds += [_hiding(files[n], d) for n, d in zip(chosen, descriptors, strict=True)]
    except BaseException:
        discard_vectors(WrittenVectors(paths=tuple(written)), store)
        raise
    return WrittenVectors(adds=tuple(adds), paths=tuple(written))


def discard_vectors(written: WrittenVectors, store: Store) -> None:
    """Remove vectors that will not be committed, as far as storage lets us."""
    for path in written.paths:
        with contextlib.suppress(OSError):
            store.delete(path)


def packed(sizes: Sequence[int], limit: int) -> Iterator[range]:
    """Cut a sequence into runs of at most ``limit`` together; a larger element stands alone.

    >>> list(packed([3, 4, 9, 2], 8))
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    start = total = 0
    for number, size in enumerate(sizes):
        if number > start and total + size > limit:
            yield range(start, number)
            start, total = number, 0
        total += size
    if start < len(sizes):
        yield range(start, len(sizes))


def _hiding(file: Add, vector: DeletionVectorDescriptor) -> Add:
    """Return the file with this vector; all the log knew of it stays."""
    already = 0 if file.deletion_vector is None else file.deletion_vector.cardinality
    return replace(
        file,
        data_change=True,
        deletion_vector=vector,
        stats=wide_statistics(str(file.stats), num_hidden=already),
    )


def _counted(files: list[Add], store: Store, config: TableConfig) -> list[Add]:
    """Fill in the statistics of files whose row count the log does not know (M-134)."""
    unknown = [n for n, file in enumerate(files) if physical_rows(file) is None]
    statistics = TableStatistics(config)
    described = map_footers(
        unknown,
        lambda _, footer: statistics.encode(footer),
        read_end=lambda n, num_bytes: _read_end(files[n], store, num_bytes),
        name=lambda n: files[n].path,
    )
    counted = list(files)
    for n, stats in zip(unknown, described, strict=True):
        counted[n] = replace(files[n], stats=stats)
    return counted


def _read_end(file: Add, store: Store, num_bytes: int) -> FileEnd:
    directory, _, name = absolute_uri(store.root_uri, file.path).rpartition("/")
    return open_store(directory).read_end(name, num_bytes)


def _random_prefix(config: TableConfig) -> str:
    """Return the directory that spreads the keys of object stores, where the table asks for it."""
    properties = config.properties
    if not properties.randomize_file_prefixes:
        return ""
    letters = string.ascii_letters + string.digits
    return "".join(random.choices(letters, k=properties.random_prefix_length))  # noqa: S311
