"""Read the footers of all files once: what kind each one is, its rows, its statistics.

Statistics need the table's schema, and the schema needs all footers. So the schema is
guessed from the first and the last file, which is right for a directory whose files are
alike or have gained columns over time; only where the guess was wrong are the footers read
again. Nothing but footers is read, on the driver; what is kept per file is what will be
committed, and that waits in a temporary file (W-22).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from puredelta.commands.convert.infer import FoundSchema
from puredelta.log.footers.file_stats import TableStatistics
from puredelta.log.footers.known_footers import FooterSummary, KnownFooters
from puredelta.log.footers.parquet_footer import map_ends
from puredelta.store.base import Store, StoredFile

_THREADS = 16
"""Where storage is slow, as many footers are on their way."""


class ReadFile(NamedTuple):
    """One file and what its footer says."""

    file: StoredFile
    footer: FooterSummary


def read_files(
    store: Store,
    files: Iterable[StoredFile],
    statistics: TableStatistics | None,
    *,
    ignore_corrupt: bool = False,
) -> Iterator[ReadFile]:
    """Yield what the footers of ``files`` say, in their order; statistics, if they are wanted.

    With ``ignore_corrupt`` files without a readable footer are left out (C-32).

    Raises:
        CorruptTableError: a file that is not Parquet, or damaged; the message names it
            (DELTA_FAILED_READ_FILE_FOOTER).
    """
    known = KnownFooters(statistics)
    found: Iterator[ReadFile | None] = map_ends(
        files,
        lambda file, end: ReadFile(file, known.describe(end)),
        read_end=lambda file, num_bytes: store.read_end(file.path, num_bytes),
        name=lambda file: file_uri(store, file),
        threads=_THREADS,
        recover=(lambda *_: None) if ignore_corrupt else None,
    )
    return (file for file in found if file is not None)


def found_schemas(store: Store, kinds: Mapping[str, StoredFile]) -> list[FoundSchema]:
    """Return the kinds of files, given as the first file of each schema text, in their order."""
    return [FoundSchema(text, file_uri(store, file)) for text, file in kinds.items()]


def file_uri(store: Store, file: StoredFile) -> str:
    """Return the decoded URI of a file: what messages show and Spark takes."""
    return f"{store.root_uri}/{file.path}"
