"""What of one table the rows of a Connect client read, as far as a client can know.

The client sees the messages that it sends. A scan of this library says in its options which
table and version it reads. Names and SQL text mean something on the server only, which is asked
where it reads: two requests, no job, and only for rows that have names or text in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame

from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.paths import absolute_uri, short_uri
from puredelta.spark.resolve.connect_clock import parts_of, plan_of
from puredelta.spark.scan.scan import TABLE_OPTION, TIME_TRAVEL_OPTION, VERSION_OPTION

_SCAN = "spark.connect.Read.DataSource"
_OF_SERVER = frozenset({"spark.connect.Read.NamedTable", "spark.connect.SQL"})
_FILE_SCHEME = re.compile("^file:/+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectReads:
    """How rows read a table."""

    reads_table: bool
    is_current: bool
    """Whether they certainly read it as the version in question has it."""


def connect_reads(
    rows: DataFrame, snapshot: Snapshot, *, is_table: Callable[[str], bool]
) -> ConnectReads:
    """Return how the rows read a table, beside versions that were asked for."""
    versions, asks_server = set[int](), False
    for message in _every_message(plan_of(rows)):
        kind = message.DESCRIPTOR.full_name
        asks_server = asks_server or kind in _OF_SERVER
        if kind == _SCAN and TABLE_OPTION in message.options:
            options = message.options
            if options[TIME_TRAVEL_OPTION] != "true" and is_table(options[TABLE_OPTION]):
                versions.add(int(options[VERSION_OPTION]))
    is_current = versions <= {snapshot.version}
    if asks_server and not versions and _is_read_by_server(rows, snapshot):
        return ConnectReads(reads_table=True, is_current=_shows_all_files(rows, snapshot))
    return ConnectReads(reads_table=bool(versions), is_current=is_current)


def _every_message(plan: Any) -> Iterator[Any]:
    pending = [plan]
    while pending:
        message = pending.pop()
        yield message
        pending.extend(parts_of(message))


def _is_read_by_server(rows: DataFrame, snapshot: Snapshot) -> bool:
    """Return whether any scan, those of subqueries included, begins with a file of the table."""
    frame: Any = rows
    explained: str = frame._explain_string(mode="formatted")  # noqa: SLF001 - the public one prints
    return f"[{short_uri(snapshot.root_uri)}/" in explained


def _shows_all_files(rows: DataFrame, snapshot: Snapshot) -> bool:
    """Return whether the rows are read from just the files of the version, none of which has a
    deletion vector: those do not show in the names of files.
    """
    vectors = snapshot.files.rows["deletion_vector"]
    root = f"{short_uri(snapshot.root_uri)}/"
    paths = (short_uri(unquote(_FILE_SCHEME.sub("file:/", path))) for path in rows.inputFiles())
    found = {path for path in paths if path.startswith(root)}
    wanted = {
        absolute_uri(snapshot.root_uri, path) for path in snapshot.files.rows["path"].to_pylist()
    }
    return vectors.null_count == len(vectors) and found == wanted
