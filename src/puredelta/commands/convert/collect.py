"""Read the footers of all files once: what kind each one is, its rows, its statistics.

Statistics need the table's schema, and the schema needs all footers. So the schema is
guessed from the first and the last file, which is right for a directory whose files are
alike or have gained columns over time; only where the guess was wrong are the footers read
again. Nothing but footers is read, on the driver; what is kept per file is what will be
committed, and that waits in a temporary file (W-22).

A footer that is encrypted, or that Arrow must not look at (`puredelta.worker.footers`), is left to
Spark, which has the keys and looks at less: such a file has no statistics, as nothing proves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from puredelta.commands.convert.infer import FoundSchema
from puredelta.errors import CorruptTableError
from puredelta.log.footers.file_stats import TableStatistics
from puredelta.log.footers.known_footers import FooterSummary, KnownFooters
from puredelta.log.footers.parquet_footer import FooterEnd, NoFooterError, map_ends, schema_only
from puredelta.store.base import Store, StoredFile

_THREADS = 16
"""Where storage is slow, as many footers are on their way."""


class ReadFile(NamedTuple):
    """One file and what its footer says."""

    file: StoredFile
    footer: FooterSummary
    is_sparks: bool = False
    """Whether Spark alone reads it: `require_read_by_spark` asks whether it does."""


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

    def describe(file: StoredFile, end: FooterEnd) -> ReadFile:
        try:
            return ReadFile(file, known.describe(end))
        except NoFooterError as unsound:
            return ReadFile(file, FooterSummary(schema_only(end, unsound), None), is_sparks=True)

    def recover(file: StoredFile, error: CorruptTableError) -> ReadFile | None:
        if isinstance(reason := error.__cause__, NoFooterError) and reason.is_encrypted:
            # Files of which nobody else knows the schema are each a kind of their own.
            return ReadFile(file, FooterSummary(f"encrypted {file.path}", None), is_sparks=True)
        if ignore_corrupt:
            return None
        raise error

    found: Iterator[ReadFile | None] = map_ends(
        files,
        describe,
        read_end=lambda file, num_bytes: store.read_end(file.path, num_bytes),
        name=lambda file: file_uri(store, file),
        threads=_THREADS,
        recover=recover,
    )
    return (file for file in found if file is not None)


def found_schemas(store: Store, kinds: Mapping[str, StoredFile]) -> list[FoundSchema]:
    """Return the kinds of files, given as the first file of each schema text, in their order."""
    return [FoundSchema(text, file_uri(store, file)) for text, file in kinds.items()]


def file_uri(store: Store, file: StoredFile) -> str:
    """Return the decoded URI of a file: what messages show and Spark takes."""
    return f"{store.root_uri}/{file.path}"
