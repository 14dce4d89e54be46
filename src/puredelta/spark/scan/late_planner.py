"""Rows of a table over Spark Connect whose files are chosen when a plan is sent.

A client owns its plans until they are sent, so the client is the planner. The frame of a table has
a mark in the place of its scan: a relation that no server knows. Right before a plan is sent, each
mark is replaced by the scan of the files that the plan needs: those that may hold rows of its
conditions, by the evaluator that a classic session is answered with. A plan that is only asked for
its columns reads no file at all.

Conditions are read from the plan. Where that leaves doubts (SQL text, joins, functions) and there
are many files, the optimizer is asked: one request. A frame in Spark's cache keeps the plan that it
was cached with.
"""

from __future__ import annotations

import logging
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from puredelta.log.files.file_table import FileTable
from puredelta.spark.connect.messages import (
    RELATION,
    Message,
    copy_of,
    every_message,
    kind_of,
    parts_of,
    plan_of,
    relation_rows,
    texts_of,
)
from puredelta.spark.connect.plan_hook import Use, is_query, watch_plans
from puredelta.spark.connect.pushed_filters import Needed, Skeleton, needed_of, zone_in
from puredelta.spark.resolve.plan_conditions import Column, TableRead, table_reads
from puredelta.spark.resolve.plan_metadata import mentions_metadata, show_metadata
from puredelta.spark.scan.connect_scan import LISTED_AT_ONCE
from puredelta.spark.scan.kept_answers import kept_answers
from puredelta.spark.scan.late_answers import put_answers
from puredelta.spark.scan.late_scan import (
    MARK,
    LateScan,
    late_scan_of,
    let_show_metadata,
    mark_of,
    put_relation,
    shows_metadata,
)
from puredelta.spark.scan.skippable_files import data_files
from puredelta.spark.session.data_access import as_glob
from puredelta.spark.session.types import quoted, to_spark

logger = logging.getLogger(__name__)


ASKED_MIN = 8
"""Files from which on a question to the optimizer costs less than to open them all."""
_ASKED_BYTES_MAX = 1 << 20
"""A plan with more data in it is not sent twice."""

_ANALYZED_FILES_MAX = LISTED_AT_ONCE
"""Of more files the server would know the columns late."""
_ANALYZED_MAX = 8

_CLOCK = re.compile(
    r"\b(?:now|current_timestamp|current_date|current_time|curdate|localtimestamp|unix_timestamp|"
    r"today|tomorrow|yesterday)\b",
    re.IGNORECASE,
)
"""Words of conditions that mean another time when the plan is run than when it is explained."""


def late_rows(spark: SparkSession, scan: LateScan, options: Mapping[str, str]) -> DataFrame:
    """Return a frame of a Connect session with a mark for a scan; ``options`` tell its table."""
    watch_plans(spark, MARK, LatePlanner(spark))
    return relation_rows(spark, mark_of(scan, options), keep=scan)


class LatePlanner:
    """Replaces the marks in the plans of one session; threads may share it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = weakref.ref(spark)
        self._lock = threading.Lock()
        self._cached: set[bytes] = set()
        """Relations that are in Spark's cache."""
        self._zone: list[Any] = []
        self._analyzed: dict[bytes, Message] = {}
        """Relations as the server has analyzed them, by what they were before."""

    def __call__(self, plan: Message, use: Use) -> None:
        """Replace the marks in a plan or a relation that is sent for a use."""
        names_metadata = mentions_metadata(plan)
        if names_metadata:
            for outer in _outermost(plan):
                show_metadata(outer, let_show_metadata)
        if use in {Use.CACHED, Use.UNCACHED}:
            self._remember(plan, use)
        if use in {Use.ROWS, Use.COLUMNS} and self._put_analyzed(
            plan, use, keep_one=names_metadata
        ):
            return
        if use not in {Use.ROWS, Use.FILES, Use.BOUND}:
            for relation, scan in list(_marks(plan)):
                put_relation(relation, _for_use(relation, scan, use, keep_one=names_metadata))
            return
        self._put_files(plan, use, keep_one=names_metadata)

    def _put_files(self, plan: Message, use: Use, *, keep_one: bool) -> None:
        if self._cached:
            self._keep_cached(plan)
        if use is Use.ROWS:
            put_answers(plan)
        for outer in _outermost(plan):
            self._choose(outer, by_column=use is not Use.BOUND, keep_one=keep_one)

    def _put_analyzed(self, plan: Message, use: Use, *, keep_one: bool) -> bool:
        """Let a text be asked for its columns as it will be run, if that reads few files.

        The server keeps what it has analyzed, for the next plan that is equal: then it neither
        lists the files again nor analyzes the text.
        """
        if self._cached or kind_of(plan) == RELATION or not _is_text(plan.root):
            return False
        key = plan.root.SerializeToString(deterministic=True)
        if use is Use.ROWS:
            with self._lock:
                known = self._analyzed.pop(key, None)
            if known is not None:
                plan.root.CopyFrom(known)
            return known is not None
        scans = [scan for _, scan in _marks(plan)]
        num_files = sum(len(scan.files) for scan in scans)
        is_plain = num_files <= _ANALYZED_FILES_MAX and all(scan.shows_as_read for scan in scans)
        if not is_plain or put_answers(copy_of(plan)):  # an answer shows other names of calls
            return False
        self._put_files(plan, Use.ROWS, keep_one=keep_one)
        with self._lock:
            if len(self._analyzed) >= _ANALYZED_MAX:
                self._analyzed.clear()
            self._analyzed[key] = copy_of(plan.root)
        return True

    def _remember(self, relation: Message, use: Use) -> None:
        key = relation.SerializeToString(deterministic=True)
        with self._lock:
            if use is Use.CACHED:
                self._cached.add(key)
            else:
                self._cached.discard(key)

    def _keep_cached(self, plan: Message) -> None:
        for message in every_message(plan):
            if kind_of(message) != RELATION:
                continue
            if message.SerializeToString(deterministic=True) in self._cached:
                for relation, scan in list(_marks(message)):
                    put_relation(relation, scan.relation(relation, scan.files.table))

    def _choose(self, outer: Message, *, by_column: bool, keep_one: bool) -> None:
        """Replace the marks in a relation by the files and, ``by_column``, columns it needs."""
        scans = {id(relation): scan for relation, scan in _marks(outer)}
        if not scans:
            return
        try:
            reads = table_reads(outer, _columns_of)
        except Exception:  # doubt skips no file
            logger.warning("All files are read: choosing some failed", exc_info=True)
            reads = [TableRead(relation) for relation, _ in _marks(outer)]
        found = [scan for read in reads if (scan := late_scan_of(read.relation)) is not None]
        files = [scan.chosen(read.conditions) for read, scan in zip(reads, found, strict=True)]
        asked = [
            n
            for n, (read, scan) in enumerate(zip(reads, found, strict=True))
            if not shows_metadata(read.relation)
            and ((read.in_doubt and len(files[n]) >= ASKED_MIN) or (by_column and scan.by_column))
        ]
        needed = self._needed(outer, reads, asked)
        for n, (read, scan) in enumerate(zip(reads, found, strict=True)):
            more = needed.get(n, Needed())
            chosen = scan.chosen([*read.conditions, *more.conditions])
            names = more.columns if by_column and scan.by_column else None
            new = (
                scan.relation(read.relation, chosen, names)
                if len(chosen) or not len(scan.files)
                else _few(read.relation, scan, keep_one=keep_one)
            )
            put_relation(read.relation, new)

    def _needed(
        self, outer: Message, reads: Sequence[TableRead], asked: Sequence[int]
    ) -> Mapping[int, Needed]:
        """Return what the optimizer would read in some places; it is asked once for a query."""
        if not asked or not _may_be_asked(outer):
            return {}
        known = kept_answers(self._spark(), outer)
        if known is not None and known.needed.keys() >= set(asked):
            return known.needed
        needed = self._asked(outer, reads, asked)
        if known is not None:
            known.needed.update(needed)
        return needed

    def _asked(
        self, outer: Message, reads: Sequence[TableRead], asked: Sequence[int]
    ) -> dict[int, Needed]:
        """Return what the optimizer would read in some places; nothing if it does not say."""
        spark = self._spark()
        if spark is None:
            return {}
        places = {id(reads[n].relation): n for n in asked}
        skeletons = {n: Skeleton.of(scan.schema) for n in asked
                     if (scan := late_scan_of(reads[n].relation)) is not None}  # fmt: skip
        explained = _explained(spark, partial(_with_skeletons, spark, outer, places, skeletons))
        if explained is None:
            return {}
        answers = needed_of(explained, list(skeletons.values()), self._server_zone)
        return dict(zip(skeletons, answers, strict=True))

    def _server_zone(self) -> Any:
        """Return the time zone of the server's JVM, asked for once."""
        spark = self._spark()
        if not self._zone and spark is not None:
            try:
                [row] = spark.sql(_ZONE).collect()
                self._zone.append(zone_in(str(row[0])))
            except PySparkException:
                self._zone.append(None)
        return self._zone[0] if self._zone else None


_ZONE = "SELECT java_method('java.util.TimeZone', 'getDefault')"


def _is_text(relation: Message) -> bool:
    """Return whether a relation is a text that names rows."""
    if relation.WhichOneof("rel_type") != "with_relations":
        return False
    return bool(relation.with_relations.root.WhichOneof("rel_type") == "sql")


def _columns_of(relation: Message) -> list[Column] | None:
    scan = late_scan_of(relation)
    return None if scan is None else scan.columns()


def _marks(message: Message) -> list[tuple[Message, LateScan]]:
    return [
        (part, scan)
        for part in every_message(message)
        if kind_of(part) == RELATION and (scan := late_scan_of(part)) is not None
    ]


def _outermost(message: Message) -> list[Message]:
    """Return the relations inside a message that are inside no other relation."""
    if kind_of(message) == RELATION:
        return [message]
    return [found for part in parts_of(message) for found in _outermost(part)]


def _for_use(mark: Message, scan: LateScan, use: Use, *, keep_one: bool) -> Message:
    """Return what a mark is sent as if no row is computed now."""
    match use:
        case Use.COLUMNS:
            return _few(mark, scan, keep_one=keep_one)
        case Use.MEANING:  # the options of a scan tell table and version
            return scan.relation(mark, scan.first(int(keep_one)))
        case _:
            return scan.relation(mark, scan.files.table)


def _few(mark: Message, scan: LateScan, *, keep_one: bool) -> Message:
    """Return a relation of one file for a mark, or of none, which has no ``_metadata``."""
    if keep_one and len(scan.files):
        return scan.relation(mark, scan.first(1))
    return scan.nothing(mark)


def _explained(spark: SparkSession, question: Callable[[int], Message]) -> str | None:
    """Return how the server would run a plan; None if the plan itself is refused soon.

    ``question`` returns it with a number of files of each table. Spark's log warns of a scan
    without files, and a file that is missing may be one that the plan does not read.
    """
    for num_files in (1, 0):
        frame: Any = relation_rows(spark, question(num_files))
        try:
            return str(frame._explain_string(mode="formatted"))  # noqa: SLF001 - public: prints
        except PySparkException as failure:
            if failure.getCondition() != "PATH_NOT_FOUND":
                return None
    return None


def _with_skeletons(
    spark: SparkSession,
    outer: Message,
    places: Mapping[int, int],
    skeletons: Mapping[int, Skeleton],
    num_files: int,
) -> Message:
    """Return a copy of a relation with skeletons in some places, and few files in all.

    Of a place without rows the optimizer would make a plan that reads nothing elsewhere, either.
    """
    question = copy_of(outer)
    for relation, (mark, scan) in zip(_marks(outer), _marks(question), strict=True):
        n = places.get(id(relation[0]))
        some = scan.first(0 if scan.by_column else num_files)
        if n is None:
            put_relation(mark, scan.relation(mark, some))
        else:
            put_relation(mark, _skeleton_relation(spark, scan, skeletons[n], some))
    return question


def _skeleton_relation(
    spark: SparkSession, scan: LateScan, skeleton: Skeleton, files: FileTable
) -> Message:
    kinds = to_spark(scan.schema)
    for field, other in zip(kinds.fields, skeleton.columns, strict=True):
        field.name, field.metadata = other, {}
    uris = [file.uri for file in data_files(files, scan.files.root_uri)]
    reader = spark.read.options(recursiveFileLookup="true").schema(kinds)  # no partitions
    rows = reader.parquet(*map(as_glob, uris))
    names = skeleton.columns.items()
    return plan_of(rows.selectExpr(*(f"{n} AS {quoted(real)}" for n, (real, _) in names)))


def _may_be_asked(outer: Message) -> bool:
    """Return whether an explanation of a relation runs nothing and stays true when it is run."""
    if outer.ByteSize() > _ASKED_BYTES_MAX or any(map(_CLOCK.search, texts_of(outer))):
        return False
    texts = [m.query for m in every_message(outer) if kind_of(m) == "spark.connect.SQL"]
    return all(map(is_query, texts))
