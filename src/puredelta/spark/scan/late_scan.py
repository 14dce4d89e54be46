"""Marks in the plans of a Connect client, in the places of scans of tables.

The frame of a table has a mark in the place of its scan: a relation that no server knows. When a
plan is sent, `puredelta.spark.scan.late_planner` replaces each mark by a scan of some files.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from puredelta.errors import Message as ErrorMessage
from puredelta.errors import UnsupportedError
from puredelta.log.files.clock import random_id
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.predicates import And, Predicate, Ref, Side
from puredelta.protocol.schema.types import StructType
from puredelta.spark.connect.messages import (
    Message,
    empty_relation,
    new_relation,
    plan_of,
)
from puredelta.spark.resolve.plan_conditions import Column
from puredelta.spark.scan.skippable_files import SkippableFiles
from puredelta.spark.session.delta_conf import BOUNDS_TELL_NAN, STATS_SKIPPING
from puredelta.spark.session.names import METADATA
from puredelta.spark.session.session import known_settings

_FORMAT = "puredelta"
"""No server has a data source of this name: a mark that is not replaced is an error."""
_SCAN_OPTION = "puredelta.scan"
MARK = _SCAN_OPTION.encode()
"""Bytes of every plan with such a relation."""
_METADATA_OPTION = "puredelta.metadata"
_scans: weakref.WeakValueDictionary[str, LateScan] = weakref.WeakValueDictionary()


@dataclass(frozen=True, kw_only=True, eq=False)
class LateScan:
    """What a mark stands for."""

    files: SkippableFiles
    make: Callable[[FileTable, frozenset[str] | None], DataFrame]
    """Returns the rows of some files; columns that are not in the names may be NULL."""
    shown: T.StructType
    """The columns that a frame of the rows shows."""
    settings: Mapping[str, str]
    """Of the session, when the frame was made."""
    by_column: bool
    """Whether each column that is read costs, so that it pays to ask for them."""
    with_metadata: Callable[[FileTable], DataFrame] | None
    """Returns the rows with `METADATA_OF_ROW`; None where the server's ``_metadata`` is all."""
    server_shows_metadata: Callable[[], bool]
    """Returns whether a plan finds the server's ``_metadata`` wherever it names it, and no more is
    shown; may ask for the version of the server.
    """

    @property
    def schema(self) -> StructType:
        """The columns of the table."""
        return self.files.config.schema

    @property
    def shows_as_read(self) -> bool:
        """Whether the server says of the columns that it reads what a frame shows of them.

        Values of partitions are constants, which are never NULL there, and have no comment. A
        column that is read from files may be NULL there.
        """
        config = self.files.config
        is_mapped = config.column_mapping is not ColumnMappingMode.NONE
        has_metadata = any(field.metadata for field in self.shown.fields)
        has_required = not all(field.nullable for field in self.shown.fields)
        is_other = is_mapped or has_metadata or has_required
        return not (self.by_column or config.partition_columns or is_other)

    def columns(self) -> list[Column]:
        """Return the columns as conditions name them."""
        return [
            (
                f.name,
                Ref(Side.TARGET, (f.name,), f.type),
                f.type if isinstance(f.type, StructType) else None,
            )
            for f in self.schema.fields
        ]

    def chosen(self, conditions: Sequence[Predicate]) -> FileTable:
        """Return the files that may hold rows of which all conditions are true."""
        if not conditions:
            return self.files.table
        places = self.files.places_for(
            And(tuple(conditions)),
            by_statistics=STATS_SKIPPING.flag(self.settings),
            bounds_tell_nan=BOUNDS_TELL_NAN.flag(self.settings),
        )
        return self.files.table if places is None else self.files.table.take(places)

    def relation(
        self, mark: Message, files: FileTable, names: frozenset[str] | None = None
    ) -> Message:
        """Return the scan of some files for a mark."""
        with known_settings(self.settings):
            if self.with_metadata is not None and shows_metadata(mark):
                return plan_of(self.with_metadata(files))
            return plan_of(self.make(files, names))

    def nothing(self, mark: Message) -> Message:
        """Return a relation of no rows for a mark; Spark's log warns of a scan without files."""
        if self.with_metadata is not None and shows_metadata(mark):
            return self.relation(mark, self.first(0))
        return empty_relation(self.shown)

    def first(self, n: int) -> FileTable:
        """Return the first files, at most ``n``."""
        return self.files.table.take(range(min(len(self.files.table), n)))


def mark_of(scan: LateScan, options: Mapping[str, str]) -> Message:
    """Return a mark for a scan, which has to be kept alive; ``options`` tell its table."""
    token = random_id()
    _scans[token] = scan
    relation = new_relation()
    source = relation.read.data_source
    source.format = _FORMAT
    for name, value in {**options, _SCAN_OPTION: token}.items():
        source.options[name] = value
    return relation


def late_scan_of(relation: Message) -> LateScan | None:
    """Return the scan that a relation is a mark of, if it is one.

    Raises:
        UnsupportedError: the frame that the mark was made for is gone.
    """
    if relation.WhichOneof("rel_type") != "read":
        return None
    if relation.read.WhichOneof("read_type") != "data_source":
        return None
    token = relation.read.data_source.options.get(_SCAN_OPTION)
    if token is None:
        return None
    found = _scans.get(token)
    if found is None:
        raise UnsupportedError(ErrorMessage.UNSUPPORTED_ON_CONNECT_FRAME_GONE)
    return found


def table_of(relation: Message) -> tuple[object, ...] | None:
    """Return what a relation reads of a table, whichever version; None for any other relation."""
    scan = late_scan_of(relation)
    if scan is None:
        return None
    config = scan.files.config
    settings = tuple(sorted(scan.settings.items()))
    return config.metadata.id, config.metadata.schema_string, scan.shown.json(), settings


def shows_metadata(mark: Message) -> bool:
    """Return whether a scan shows `METADATA_OF_ROW`."""
    return _METADATA_OPTION in mark.read.data_source.options


def let_show_metadata(relation: Message) -> bool:
    """Let a scan show `METADATA_OF_ROW` if it can; False for any other relation."""
    scan = late_scan_of(relation)
    if scan is None or scan.with_metadata is None or scan.server_shows_metadata():
        return False
    relation.read.data_source.options[_METADATA_OPTION] = "true"
    return True


def metadata_rows(rows: DataFrame) -> DataFrame | None:
    """Return the rows of a table with ``_metadata`` as their last column; None for other frames.

    None also if the table has a column of that name. Connect sessions only.
    """
    scan = late_scan_of(plan_of(rows))
    if scan is None or scan.schema.find_ignoring_case(METADATA) is not None:
        return None
    return rows.select("*", METADATA)


def put_relation(relation: Message, new: Message) -> None:
    """Put another relation in the place of one; columns that are bound to it stay bound."""
    number = relation.common.plan_id if relation.common.HasField("plan_id") else None
    relation.CopyFrom(new)
    if number is not None:
        relation.common.plan_id = number
