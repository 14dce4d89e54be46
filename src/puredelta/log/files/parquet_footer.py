"""Footers of Parquet files: many are read at once, and each names the program that wrote it.

Only the last bytes of a file are read, in a pool of threads and with a bounded number of
footers in memory. `puredelta.log.files.file_stats` reads what a footer says about columns.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.store.base import FileEnd, Store
from puredelta.store.read_ahead import read_in_order
from puredelta.worker.footers.sound_footer import (
    EncryptedFileError,
    UnsoundFooterError,
    footer_length,
)
from puredelta.worker.sound_kinds import require_sound_footer

FOOTER_THREADS = 4
"""Threads that read where storage is slow; footers are parsed in the caller's thread."""

_TAIL_BYTES = 64 * 1024
"""How much is read from the end of a file: nearly all footers fit into one request."""

_PARSED_TOGETHER = 16
"""Footers parsed before they are described: one kind of work in a row is quicker."""

_SPARK_VERSION_KEY = b"org.apache.spark.version"
_LEGACY_CALENDAR_KEY = b"org.apache.spark.legacyDateTime"
_SPARK_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_CREATED_BY = re.compile(
    r"\s*(?P<name>\S+)(?:.*?\bversion\s+(?P<version>\d+(?:\.\d+)*))?", re.DOTALL
)

S = TypeVar("S")
R = TypeVar("R")

ReadEnd: TypeAlias = Callable[[S, int], FileEnd]
"""Returns the last bytes of a file: the given number, or all if there are fewer."""


@dataclass(frozen=True, slots=True)
class ParquetWriter:
    """Which program wrote a file: writers differ in what their bounds mean (C-51b)."""

    name: str
    """Lower case, ``""`` if the file does not say."""
    version: tuple[int, ...]
    """``()`` if the file does not say."""
    hybrid_calendar: bool = False
    """Whether dates may be in the Julian calendar: written by Spark before 3.0, or by a setting."""

    @classmethod
    def of(cls, footer: pq.FileMetaData) -> ParquetWriter:
        """Read ``created_by`` and Spark's own keys."""
        pairs = footer.metadata or {}
        spark_version = pairs.get(_SPARK_VERSION_KEY)
        return _named_writer(
            footer.created_by or "",
            hybrid_calendar=_LEGACY_CALENDAR_KEY in pairs
            or (spark_version is not None and _numbers(spark_version.decode()) < (3,)),
        )


@lru_cache(maxsize=256)
def _named_writer(created_by: str, *, hybrid_calendar: bool) -> ParquetWriter:
    match = _CREATED_BY.match(created_by)
    return ParquetWriter(
        name=match["name"].lower() if match else "",
        version=_numbers(match["version"] or "") if match else (),
        hybrid_calendar=hybrid_calendar,
    )


def spark_schema_json(footer: pq.FileMetaData) -> str | None:
    """Return the schema that Spark left in the footer, as JSON text (C-33)."""
    text = (footer.metadata or {}).get(_SPARK_SCHEMA_KEY)
    return None if text is None else text.decode()


def schema_message(footer: pq.FileMetaData) -> str:
    """Return the message type as text; two files have equal texts exactly if their types are equal.

    ``ParquetSchema.equals`` is no substitute: it compares the leaves alone, so that a field
    ``x`` of the struct ``s`` equals one of the struct ``t``.
    """
    # Not footer.schema: the footer keeps that, which keeps the footer, so that thousands of
    # them wait for the garbage collector. The first line is the object's address.
    return str(pq.ParquetSchema(footer)).partition("\n")[2]


def schema_text(footer: pq.FileMetaData, message: str) -> str:
    """Return a text that two footers share exactly if they mean the same schema: Spark's own
    JSON where Spark wrote the file (C-33), else the Parquet message type, its `schema_message`.
    """
    spark_schema = spark_schema_json(footer)
    return message if spark_schema is None else spark_schema


def read_end_of(file: Add, store: Store, num_bytes: int) -> FileEnd:
    """Return the last bytes of a table's data file, which may lie in another directory."""
    directory, _, name = absolute_uri(store.root_uri, file.path).rpartition("/")
    return store.at(directory).read_end(name, num_bytes)


def map_footers(
    sources: Iterable[S],
    describe: Callable[[S, pq.FileMetaData], R],
    *,
    read_end: ReadEnd[S],
    name: Callable[[S], str] = str,
    recover: Callable[[S, CorruptTableError], R] | None = None,
    threads: int = FOOTER_THREADS,
) -> Iterator[R]:
    """Yield ``describe(source, footer)`` for every source, in their order.

    Where storage is slow, files are read ahead in threads; footers are parsed and described in
    the caller's thread. Sources are taken lazily, a few per thread ahead of the caller, so
    memory does not grow with their number. The first error is raised and the rest is abandoned.
    For a file whose footer cannot be read, ``recover`` returns what to yield instead.

    Raises:
        CorruptTableError: a file is not Parquet (FAILED_READ_FILE_FOOTER).
    """

    def read(source: S) -> FooterEnd | NoFooterError:
        try:
            return _footer_bytes(source, read_end)
        except NoFooterError as error:
            return error

    ends = read_in_order(sources, read, threads=threads)
    while batch := list(itertools.islice(ends, _PARSED_TOGETHER)):
        for source, footer in [(source, _try_parse(end)) for source, end in batch]:
            if not isinstance(footer, NoFooterError):
                yield describe(source, footer)
            elif recover is None:
                raise _unreadable(name(source), footer)
            else:
                yield recover(source, _unreadable(name(source), footer))


def map_ends(
    sources: Iterable[S],
    describe: Callable[[S, FooterEnd], R],
    *,
    read_end: ReadEnd[S],
    name: Callable[[S], str] = str,
    recover: Callable[[S, CorruptTableError], R] | None = None,
    threads: int = FOOTER_THREADS,
) -> Iterator[R]:
    """Yield ``describe(source, end)`` as `map_footers` does, of footers that are not parsed.

    `NoFooterError` of ``describe`` counts as a footer that cannot be read.
    """

    def read(source: S) -> FooterEnd | NoFooterError:
        try:
            return _footer_bytes(source, read_end)
        except NoFooterError as error:
            return error

    for source, end in read_in_order(sources, read, threads=threads):
        found = end if isinstance(end, NoFooterError) else _described(source, end, describe)
        if not isinstance(found, NoFooterError):
            yield found
        elif recover is None:
            raise _unreadable(name(source), found)
        else:
            yield recover(source, _unreadable(name(source), found))


class FooterEnd(NamedTuple):
    """A footer, and where it is."""

    content: bytes
    """With the eight bytes that follow it."""
    begins_at: int
    """In the file."""


def _described(
    source: S, end: FooterEnd, describe: Callable[[S, FooterEnd], R]
) -> R | NoFooterError:
    try:
        return describe(source, end)
    except NoFooterError as error:
        return error
    except UnicodeDecodeError as error:  # Arrow gives names as texts when they are asked for
        named = NoFooterError(f"a name in its schema is no UTF-8: {error.object!r}")
        named.__cause__ = error
        return named


class NoFooterError(Exception):
    """Why some bytes have no readable footer at their end."""

    @property
    def is_encrypted(self) -> bool:
        """Return whether the file, or columns of it, take keys to be read."""
        return isinstance(self.__cause__, EncryptedFileError)


def _try_parse(end: FooterEnd | NoFooterError) -> pq.FileMetaData | NoFooterError:
    if isinstance(end, NoFooterError):
        return end
    try:
        return parse_footer(end)
    except NoFooterError as error:
        return error


def parse_footer(end: FooterEnd) -> pq.FileMetaData:
    """Let Arrow parse a footer that is sound: of another the process may end.

    Raises:
        NoFooterError: it is none, or not sound.
    """
    reader = pq.ParquetReader()
    try:
        require_sound_footer(end.content, end.begins_at)
        # Not ParquetFile, which looks at every column, nor read_metadata, which makes one. And
        # no unpickling of a FileMetaData: a damaged footer would end the process.
        reader.open(pa.BufferReader(end.content))
    except (UnsoundFooterError, pa.ArrowException, OSError) as damaged:
        raise NoFooterError(str(damaged)) from damaged
    return reader.metadata


def schema_only(end: FooterEnd, refused: NoFooterError) -> str:
    """Return the `schema_text` of a footer that is refused for what it says of column chunks.

    Raises:
        NoFooterError: ``refused``, where Arrow finds no schema either.
    """
    if not isinstance(refused.__cause__, UnsoundFooterError):
        raise refused
    reader = pq.ParquetReader()
    try:
        reader.open(pa.BufferReader(end.content))
        footer = reader.metadata
        return schema_text(footer, schema_message(footer))
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise refused from refused.__cause__


def _footer_bytes(source: S, read_end: ReadEnd[S]) -> FooterEnd:
    """Return the footer with what follows it, and nothing before."""
    tail, size = read_end(source, _TAIL_BYTES)
    try:
        needed = footer_length(tail, size)
    except UnsoundFooterError as reason:
        raise NoFooterError(str(reason)) from reason
    if needed > len(tail):
        tail = read_end(source, needed).content
    return FooterEnd(tail[-needed:], size - needed)


def _unreadable(label: str, reason: NoFooterError) -> CorruptTableError:
    what = "It is not a Parquet file that can be read, or it is damaged."
    if reason.is_encrypted:
        what = (
            "Only Spark reads encrypted files, in a session that has the keys "
            "(spark.hadoop.parquet.crypto.factory.class and what the factory needs)."
        )
    error = CorruptTableError(
        Message.FAILED_READ_FILE_FOOTER_DATA_FILE, reason=reason, what=what, file=label
    )
    error.__cause__ = reason
    return error


@lru_cache(maxsize=256)
def _numbers(version: str) -> tuple[int, ...]:
    """Parse the leading numbers: ``2.4.8-SNAPSHOT`` is (2, 4, 8)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
