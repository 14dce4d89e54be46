"""Queries that need no file, or few: counts, bounds and limits that the log can tell.

A frame stays what it is; the plan that runs in its place has the answer where an ``Aggregate``
over all rows of a table or of whole partitions stood, and a scan of the first files below a
LIMIT. The answer is of the version that the frame is bound to, by the very list of files that its
scan would ask for. What is in Spark's cache is served from there. Where anything is not understood
or not certain the query runs as it is (X-73). Classic sessions only.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.exact import (
    ExactAnswers,
    Value,
    decided,
    fewest_files,
    rows_per_file,
)
from puredelta.protocol.schema.predicates import Predicate, Side
from puredelta.spark.jvm.cache import FrameCache
from puredelta.spark.jvm.expressions import expr_ids, name_of
from puredelta.spark.jvm.file_index import AskedIndex, any_asked
from puredelta.spark.jvm.frames import LazyDataFrame, analyzed_plan, frame_of
from puredelta.spark.jvm.plan_parts import (
    GlobalAggregate,
    asked_scan,
    may_ask,
    numbered_lines,
    part_at,
    renamed_columns,
    scan_of,
    simple_condition,
)
from puredelta.spark.jvm.plans import Plan
from puredelta.spark.resolve.predicate_from_json import SideColumn, predicate_of
from puredelta.spark.scan.skippable_files import SkippableFiles
from puredelta.spark.scan.table_rows import find_origin
from puredelta.spark.session.delta_conf import LIMIT_PUSHDOWN, METADATA_QUERY
from puredelta.spark.session.read_settings import log_may_answer
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.types import to_spark

logger = logging.getLogger(__name__)

_LINE = re.compile(r"^[ :+\-]*(?P<kind>Aggregate|GlobalLimit) (?P<rest>.*)$")
_CALL = re.compile(r"\b(?:count|min|max)\(", re.IGNORECASE)
_NUMBER = re.compile(r"\d+$")
_TRANSPARENT = frozenset({"SubqueryAlias", "View"})
_PARTS_MAX = 20
"""Of one query; one with more of them takes long enough without."""
_STEPS_MAX = 50
_ROWS_MAX = 1 << 31

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableRows:
    """A part of a plan whose rows are all rows of some files of a table."""

    files: SkippableFiles
    index: AskedIndex
    scan: Plan
    columns: Mapping[int, str]
    """By the expression ids that the part has for them."""
    conditions: Sequence[Predicate]

    def chosen(self) -> FileTable | None:
        """Return the files of whose rows all conditions are true; None if that is not certain."""
        mask = decided(self.files.table, self.files.config, self.conditions)
        return None if mask is None else self.files.table.select(mask)


def answered(rows: DataFrame) -> DataFrame | None:
    """Return a frame of the same rows that reads fewer files or none; None if there is no such."""
    return _unless_it_fails(rows, lambda plan: _answered_frame(rows, plan))


def counted(rows: DataFrame) -> int | None:
    """Return how many rows a frame has; None if the log does not tell."""
    return _unless_it_fails(rows, lambda plan: _counted(rows, plan))


def limited(rows: DataFrame, num_rows: int) -> DataFrame | None:
    """Return a frame of so many of the rows, or more, that reads fewer files; None: no such."""
    spark = rows.sparkSession

    def make(plan: Plan) -> DataFrame | None:
        replaced = _limited(spark, plan, num_rows)
        if replaced is None or FrameCache(spark).serves(plan):
            return None
        return frame_of(spark, replaced)

    return _unless_it_fails(rows, make)


def _unless_it_fails(rows: DataFrame, make: Callable[[Plan], _Answer | None]) -> _Answer | None:
    is_classic = isinstance(rows, ClassicFrame) and not isinstance(rows, LazyDataFrame)
    if not is_classic or not any_asked():
        return None
    try:
        return make(analyzed_plan(rows)) if may_ask(rows) else None
    except Exception:  # an answer is never needed
        logger.warning("A query runs as it is: looking for a shorter one failed", exc_info=True)
        return None


# --- counts and bounds ----------------------------------------------------------------------


def _answered_frame(rows: DataFrame, plan: Plan) -> DataFrame | None:
    spark = rows.sparkSession
    found = [(n, m) for n, line in enumerate(numbered_lines(plan)) if (m := _LINE.match(line))]
    if not found or len(found) > _PARTS_MAX:
        return None
    replaced = []
    for number, line in found:
        part = part_at(plan, number, line["kind"])
        if part is None:
            continue
        if line["kind"] == "Aggregate":
            new = _answered_part(spark, part) if _CALL.search(line["rest"]) else None
        else:
            new = _limited_part(spark, part, line["rest"])
        if new is not None:
            replaced.append((part, new))
    if not replaced or FrameCache(spark).serves(plan):
        return None
    return frame_of(spark, plan.with_replaced(replaced))


def _counted(rows: DataFrame, plan: Plan) -> int | None:
    spark = rows.sparkSession
    found = _table_rows(plan)
    if found is None or not log_may_answer(settings_of(spark), METADATA_QUERY):
        return None
    chosen = found.chosen()
    counts = None if chosen is None else rows_per_file(chosen)
    if counts is None or FrameCache(spark).serves(plan):
        return None
    return int(pc.sum(counts).as_py() or 0)


def _answered_part(spark: SparkSession, part: Plan) -> Plan | None:
    """Return one row in the place of an ``Aggregate``, if the log knows what it gives."""
    if GlobalAggregate.has_groups(part) or not log_may_answer(settings_of(spark), METADATA_QUERY):
        return None
    aggregate = GlobalAggregate(part)
    calls = aggregate.calls()
    found = _table_rows(part.child()) if calls else None
    chosen = None if found is None else found.chosen()
    if not calls or found is None or chosen is None:
        return None
    exact = ExactAnswers(chosen, found.files.config)
    answers: dict[int, str | None] = {}
    for call in calls:
        name = None if call.column is None else found.columns.get(call.column)
        is_known = call.column is None or name is not None
        answer = exact.answer(call.function.lower(), name) if is_known else None
        if answer is None:
            return None
        answers[call.place] = _text(*answer)
    return aggregate.answered(spark, answers)


def _text(value: Value) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case dt.date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)


# --- limits ---------------------------------------------------------------------------------


def _limited_part(spark: SparkSession, part: Plan, limit: str) -> Plan | None:
    """Return a ``GlobalLimit`` that reads fewer files."""
    local = part.child()
    if _NUMBER.match(limit) is None or local.kind != "LocalLimit":
        return None
    rows = _limited(spark, local.child(), int(limit))
    return None if rows is None else part.with_children(local.with_children(rows))


def _limited(spark: SparkSession, plan: Plan, num_rows: int) -> Plan | None:
    """Return a plan of the first files only, if they have so many rows."""
    if not 0 < num_rows < _ROWS_MAX or not log_may_answer(settings_of(spark), LIMIT_PUSHDOWN):
        return None
    found = _table_rows(plan)
    if found is None:
        return None
    counts = rows_per_file(found.files.table)
    chosen = decided(found.files.table, found.files.config, found.conditions)
    if counts is None or chosen is None:
        return None
    places = fewest_files(counts, chosen, num_rows)
    if places is None:
        return None
    scan = scan_of(spark, found.scan, found.index.some_files(places))
    return plan.with_replaced([(found.scan, scan)])


# --- what is read ---------------------------------------------------------------------------


def _table_rows(plan: Plan) -> _TableRows | None:
    """Return what a plan reads, if it is nothing but rows of a table under conditions."""
    steps: list[Plan] = []
    for _ in range(_STEPS_MAX):
        kind = plan.kind
        if kind not in _TRANSPARENT:
            if find_origin(plan) is not None:
                return _above(plan, steps)
            if kind not in ("Project", "Filter"):
                return None
            steps.append(plan)
        plan = plan.child()
    return None


def _above(part: Plan, steps: Sequence[Plan]) -> _TableRows | None:
    """Follow the columns of a table's rows up through projections and conditions."""
    asked = asked_scan(part.leaves)
    if asked is None:
        return None
    scan, index = asked
    files = index.known
    if not isinstance(files, SkippableFiles):
        return None
    texts = part.output_texts()
    ids = expr_ids(texts)
    names = list(files.config.schema.names)
    if ids is None or [name_of(text) for text in texts] != names:
        return None
    types = to_spark(files.config.schema)
    columns = dict(zip(ids, names, strict=True))
    conditions = []
    for step in reversed(steps):
        if step.kind == "Project":
            renamed = renamed_columns(step)
            columns = {new: columns[old] for new, old in renamed.items() if old in columns}
            continue
        nodes = simple_condition(step)
        if nodes is None:
            return None
        known = {n: SideColumn(Side.TARGET, c, types[c].dataType) for n, c in columns.items()}
        conditions.append(predicate_of(nodes, known, time_zone="UTC"))
    return _TableRows(
        files=files, index=index, scan=scan, columns=columns, conditions=tuple(conditions)
    )
