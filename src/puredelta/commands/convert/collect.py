"""Read the footers of all files once: what kind each one is, its rows, its statistics.

Statistics need the table's schema, and the schema needs all footers. So the schema is
guessed from the first and the last file, which is right for a directory whose files are
alike or have gained columns over time; only where the guess was wrong are the footers read
again. Nothing but footers is read, on the driver; what is kept per file is what will be
committed (W-22).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import pyarrow.parquet as pq

from puredelta.commands.convert.infer import FoundSchema, schema_text
from puredelta.log.footers.parquet_footer import map_footers, schema_message
from puredelta.store.base import Store, StoredFile


class ReadFile(NamedTuple):
    """One file and what its footer says."""

    file: StoredFile
    schema_text: str
    """Shared by all files of a kind."""
    stats: str | None


DescribeStatistics = Callable[[pq.FileMetaData, str], str | None]
"""Returns the statistics of a file as JSON, ``None`` where none are wanted, from its footer and
the footer's `schema_message`."""


def read_files(
    store: Store,
    files: Iterable[StoredFile],
    describe: DescribeStatistics,
    *,
    ignore_corrupt: bool = False,
) -> list[ReadFile]:
    """Read the footers of ``files``, in their order.

    With ``ignore_corrupt`` files without a readable footer are left out (C-32).

    Raises:
        CorruptTableError: a file that is not Parquet, or damaged; the message names it
            (DELTA_FAILED_READ_FILE_FOOTER).
    """
    texts: dict[str, str] = {}

    def read(file: StoredFile, footer: pq.FileMetaData) -> ReadFile | None:
        message = schema_message(footer)
        text = schema_text(footer, message)
        return ReadFile(file, texts.setdefault(text, text), describe(footer, message))

    found = map_footers(
        files,
        read,
        read_end=lambda file, num_bytes: store.read_end(file.path, num_bytes),
        name=lambda file: file_uri(store, file),
        recover=(lambda *_: None) if ignore_corrupt else None,
    )
    return [file for file in found if file is not None]


def distinct_schemas(store: Store, files: Sequence[ReadFile]) -> list[FoundSchema]:
    """Return the kinds of files, each with its first file, in the order of those."""
    first: dict[str, StoredFile] = {}
    for read in files:
        first.setdefault(read.schema_text, read.file)
    return [FoundSchema(text, file_uri(store, file)) for text, file in first.items()]


def file_uri(store: Store, file: StoredFile) -> str:
    """Return the decoded URI of a file: what messages show and Spark takes."""
    return f"{store.root_uri}/{file.path}"
