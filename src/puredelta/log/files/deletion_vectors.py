"""Deletion vectors of a table's files, read from storage and written to it (M-138).

The vectors of one command share files of about two megabytes under the table root (M-135).
A data file keeps its path and its row ids, and its bounds become loose (M-134).
"""

from __future__ import annotations

import contextlib
import io
import random
import string
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, TypeAlias, TypeVar

import pyarrow.compute as pc

from puredelta.errors import CorruptTableError, Message
from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.files.file_stats import TableStatistics
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.parquet_footer import map_footers, read_end_of
from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import (
    EncodedVector,
    RowIndexes,
    block_data,
    checked_bitmap,
    decode_block,
    decode_inline,
    encode_vector,
    encode_vectors,
    framed,
    inline_data,
    require_file_version,
    vector_path,
    vector_range,
)
from puredelta.protocol.actions.paths import absolute_uri, path_below_root
from puredelta.protocol.table.stats import loosen_bounds
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store
from puredelta.store.registry import open_store

_READERS_MAX = 8

_Vectors: TypeAlias = Mapping[int, DeletionVectorDescriptor]
D = TypeVar("D")
_Decode: TypeAlias = Callable[[bytes, DeletionVectorDescriptor], D]
_Decoders: TypeAlias = tuple[Callable[[DeletionVectorDescriptor], D], _Decode[D]]


def read_positions(
    files: FileTable, root_uri: str, *, open_at: Callable[[str], Store] = open_store
) -> dict[int, RowIndexes]:
    """Return the deleted row positions of the files that have a deletion vector.

    Keys are indexes into ``files``; positions are sorted and distinct. A file with several
    vectors is opened once; ``open_at`` opens the directory it is in.
    """
    return _read_all(files, root_uri, (decode_inline, decode_block), open_at)


def read_blobs(
    files: FileTable, root_uri: str, *, open_at: Callable[[str], Store] = open_store
) -> dict[int, bytes]:
    """Return the vectors of the files as the bytes of one in a file, checked.

    Keys are indexes into ``files``. Iceberg's blobs have the same bytes.
    """

    def in_log(vector: DeletionVectorDescriptor) -> bytes:
        return framed_bitmap(inline_data(vector), vector)

    def in_file(block: bytes, vector: DeletionVectorDescriptor) -> bytes:
        return framed_bitmap(block_data(block, vector), vector)

    def framed_bitmap(data: bytes, vector: DeletionVectorDescriptor) -> bytes:
        checked_bitmap(data, vector)
        return framed(data)

    return _read_all(files, root_uri, (in_log, in_file), open_at)


def _read_all(
    files: FileTable, root_uri: str, decoders: _Decoders[D], open_at: Callable[[str], Store]
) -> dict[int, D]:
    in_log, in_file = decoders
    inline: dict[int, DeletionVectorDescriptor] = {}
    stored: defaultdict[str, dict[int, DeletionVectorDescriptor]] = defaultdict(dict)
    for index, vector in _descriptors(files).items():
        path = vector_path(vector)
        if path is None:
            inline[index] = vector
        else:
            stored[absolute_uri(root_uri, path)][index] = vector
    decoded = {index: in_log(vector) for index, vector in inline.items()}
    with ThreadPoolExecutor(_READERS_MAX, "puredelta-dv") as readers:
        read = partial(_read_file, open_at=open_at, decode=in_file)
        for found in readers.map(read, stored.keys(), stored.values()):
            decoded.update(found)
    return decoded


def read_vector(vector: DeletionVectorDescriptor, root_uri: str, *, store: Store) -> RowIndexes:
    """Return the row positions of one deletion vector of the table at ``root_uri``.

    ``store`` is the table's: it reads what is below its root, and opens what is elsewhere.
    """
    path = vector_path(vector)
    if path is None:
        return decode_inline(vector)
    uri = absolute_uri(root_uri, path)
    below = path_below_root(root_uri, path)
    if below is None:
        return _read_file(uri, {0: vector}, open_at=store.at, decode=decode_block)[0]
    opened = partial(store.open, below)
    return _read_opened(uri, {0: vector}, open_file=opened, decode=decode_block)[0]


def vector_indexes(files: FileTable) -> Sequence[int]:
    """Return the indexes of the files that have a deletion vector."""
    present = pc.is_valid(files.rows["deletion_vector"])
    # Arrow 20 and before crash where a column has no chunk at all.
    indexes: list[int] = pc.indices_nonzero(present.combine_chunks()).to_pylist()
    return indexes


def _descriptors(files: FileTable) -> dict[int, DeletionVectorDescriptor]:
    indexes = vector_indexes(files)
    if not indexes:
        return {}
    marked = files.take(indexes)
    _require_possible(marked)
    rows = marked.rows["deletion_vector"].to_pylist()
    return {
        index: DeletionVectorDescriptor(**row) for index, row in zip(indexes, rows, strict=True)
    }


def _require_possible(files: FileTable) -> None:
    """Refuse vectors that delete more rows than their file has, before they are expanded."""
    beyond = pc.greater(files.deleted_counts(), files.record_counts())
    if pc.any(beyond).as_py():
        file = next(files.select(beyond).adds())
        raise CorruptTableError(
            Message.DELETION_VECTOR_CARDINALITY_MISMATCH_STATISTICS,
            deletion_vector=file.deletion_vector,
            stats=file.stats,
            path=file.path,
        )


def _read_file(
    uri: str, vectors: _Vectors, *, open_at: Callable[[str], Store], decode: _Decode[D]
) -> dict[int, D]:
    directory, _, name = uri.rpartition("/")
    opened = partial(_open_at, open_at, directory, name)
    return _read_opened(uri, vectors, open_file=opened, decode=decode)


def _open_at(open_at: Callable[[str], Store], directory: str, name: str) -> BinaryIO:
    return open_at(directory).open(name)


def _read_opened(
    uri: str, vectors: _Vectors, *, open_file: Callable[[], BinaryIO], decode: _Decode[D]
) -> dict[int, D]:
    decoded = {}
    try:
        with open_file() as file:
            first_byte, size = file.read(1), file.seek(0, io.SEEK_END)
            for index, vector in sorted(vectors.items(), key=lambda v: vector_range(v[1])):
                require_file_version(first_byte, vector)
                offset, length = vector_range(vector)
                file.seek(offset)
                # Not to be asked for more than there is: memory would be taken for all of it.
                decoded[index] = decode(file.read(min(length, size)), vector)
    except FileNotFoundError as missing:
        raise CorruptTableError(Message.FILE_NOT_FOUND_DELETION_VECTOR, path=uri) from missing
    return decoded


VECTOR_FILE_BYTES = 2 * 1024 * 1024
"""How many bytes of vectors go into one file; a larger vector gets a file of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeletionVectorUpdate:
    """A file of the table, and all of its rows that are to be deleted."""

    file: Add
    rows: RowIndexes
    """Includes the rows that its present deletion vector deletes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenVectors:
    """The files of a table with their new vectors, not committed yet."""

    adds: tuple[Add, ...] = ()
    """Files that have a row left."""
    paths: tuple[str, ...] = ()
    """The paths of the vector files, relative to the table root."""


def write_vectors(
    updates: Iterable[DeletionVectorUpdate],
    *,
    store: Store,
    config: TableConfig,
    new_id: IdSource = random_id,
    file_bytes: int = VECTOR_FILE_BYTES,
) -> WrittenVectors:
    """Write the vectors and return the files that have them; files without rows are left out.

    If the statistics of a file lack the row count, new ones are read from its footer.

    Raises:
        CorruptTableError: such a file has no readable footer.
        StorageError: the storage failed; the vectors written so far are removed.
    """
    prefix = _random_prefix(config)
    files: list[Add] = []
    vectors: list[EncodedVector] = []
    for each in updates:
        files.append(each.file)
        vectors.append(encode_vector(each.rows))
    files = _counted(files, store, config)
    left = [n for n, vector in enumerate(vectors) if physical_rows(files[n]) != vector.cardinality]
    written: list[str] = []
    adds: list[Add] = []
    try:
        for bin_ in packed([len(vectors[n].data) for n in left], file_bytes):
            chosen = [left[n] for n in bin_]
            content, descriptors = encode_vectors(
                [vectors[n] for n in chosen], uuid.UUID(new_id()), prefix=prefix
            )
            path = str(vector_path(descriptors[0]))
            written.append(path)
            store.put(path, content)
            adds += [_with_vector(files[n], d) for n, d in zip(chosen, descriptors, strict=True)]
    except BaseException:
        discard_vectors(WrittenVectors(paths=tuple(written)), store)
        raise
    return WrittenVectors(adds=tuple(adds), paths=tuple(written))


def discard_vectors(written: WrittenVectors, store: Store) -> None:
    """Remove vectors that will not be committed, as far as storage allows."""
    for path in written.paths:
        with contextlib.suppress(OSError):
            store.delete(path)


def packed(sizes: Sequence[int], limit: int) -> Iterator[range]:
    """Cut a sequence into runs whose sum is at most ``limit``; a larger element is a run.

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


def _with_vector(file: Add, vector: DeletionVectorDescriptor) -> Add:
    """Return the file with another deletion vector and everything else as it was."""
    already = 0 if file.deletion_vector is None else file.deletion_vector.cardinality
    return replace(
        file,
        data_change=True,
        deletion_vector=vector,
        stats=loosen_bounds(str(file.stats), rows=physical_rows(file) or 0, num_deleted=already),
    )


def _counted(files: list[Add], store: Store, config: TableConfig) -> list[Add]:
    """Read the statistics of files whose row count is not in the log (M-134)."""
    unknown = [n for n, file in enumerate(files) if physical_rows(file) is None]
    statistics = TableStatistics(config)
    described = map_footers(
        unknown,
        lambda _, footer: statistics.encode(footer),
        read_end=lambda n, num_bytes: read_end_of(files[n], store, num_bytes),
        name=lambda n: files[n].path,
    )
    counted = list(files)
    for n, stats in zip(unknown, described, strict=True):
        counted[n] = replace(files[n], stats=stats)
    return counted


def _random_prefix(config: TableConfig) -> str:
    """Return a random directory, which spreads keys in object stores, if the table wants one."""
    properties = config.properties
    if not properties.randomize_file_prefixes:
        return ""
    letters = string.ascii_letters + string.digits
    return "".join(random.choices(letters, k=properties.random_prefix_length))  # noqa: S311
