"""The deletion vectors of a table's files, read through the store and checked (M-138)."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import BinaryIO, TypeAlias

import pyarrow.compute as pc

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import (
    RowIndexes,
    decode_block,
    decode_inline,
    require_file_version,
    vector_path,
    vector_range,
)
from puredelta.protocol.actions.paths import absolute_uri, path_below_root
from puredelta.store.base import Store
from puredelta.store.registry import open_store

_READERS_MAX = 8

_Vectors: TypeAlias = Mapping[int, DeletionVectorDescriptor]


def read_positions(
    files: FileTable, root_uri: str, *, open_at: Callable[[str], Store] = open_store
) -> dict[int, RowIndexes]:
    """Return the deleted row positions of the files that have a deletion vector.

    Keys are indexes into ``files``; positions are sorted and distinct. A file with several
    vectors is opened once; ``open_at`` opens the directory it is in.

    Raises:
        CorruptTableError: a vector is missing, damaged, or not what the log says it is.
    """
    inline: dict[int, DeletionVectorDescriptor] = {}
    stored: defaultdict[str, dict[int, DeletionVectorDescriptor]] = defaultdict(dict)
    for index, vector in _descriptors(files).items():
        path = vector_path(vector)
        if path is None:
            inline[index] = vector
        else:
            stored[absolute_uri(root_uri, path)][index] = vector
    positions = {index: decode_inline(vector) for index, vector in inline.items()}
    with ThreadPoolExecutor(_READERS_MAX, "puredelta-dv") as readers:
        read = partial(_read_file, open_at=open_at)
        for found in readers.map(read, stored.keys(), stored.values()):
            positions.update(found)
    return positions


def read_vector(vector: DeletionVectorDescriptor, root_uri: str, *, store: Store) -> RowIndexes:
    """Return the row positions of one deletion vector of the table at ``root_uri``.

    ``store`` is the table's: it reads what is below its root, and opens what is elsewhere.

    Raises:
        CorruptTableError: it is missing, damaged, or not what the log says it is.
    """
    path = vector_path(vector)
    if path is None:
        return decode_inline(vector)
    uri = absolute_uri(root_uri, path)
    below = path_below_root(root_uri, path)
    if below is None:
        return _read_file(uri, {0: vector}, open_at=store.at)[0]
    return _read_opened(uri, {0: vector}, open_file=partial(store.open, below))[0]


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
            f"The deletion vector of {file.path} deletes more rows than the file has by its "
            f"statistics: {file.deletion_vector}, {file.stats}.",
            code=ErrorCode.DELETION_VECTOR_CARDINALITY_MISMATCH,
            path=file.path,
        )


def _read_file(
    uri: str, vectors: _Vectors, *, open_at: Callable[[str], Store]
) -> dict[int, RowIndexes]:
    directory, _, name = uri.rpartition("/")
    return _read_opened(uri, vectors, open_file=lambda: open_at(directory).open(name))


def _read_opened(
    uri: str, vectors: _Vectors, *, open_file: Callable[[], BinaryIO]
) -> dict[int, RowIndexes]:
    positions = {}
    try:
        with open_file() as file:
            first_byte, size = file.read(1), file.seek(0, io.SEEK_END)
            for index, vector in sorted(vectors.items(), key=lambda v: vector_range(v[1])):
                require_file_version(first_byte, vector)
                offset, length = vector_range(vector)
                file.seek(offset)
                # Not to be asked for more than there is: memory would be taken for all of it.
                positions[index] = decode_block(file.read(min(length, size)), vector)
    except FileNotFoundError as missing:
        raise CorruptTableError(
            f"The deletion vector file {uri} is missing: it is unknown which rows are deleted. "
            "Restore the file.",
            code=ErrorCode.FILE_NOT_FOUND,
            path=uri,
        ) from missing
    return positions
