"""A statement that is tried before it is executed: both must say the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta import DeltaTable, Report, last_report
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.types import quoted
from puredelta.spark.write.parquet_job import temporary_settings
from tests.corpus.case import Case
from tests.corpus.conftest import explain
from tests.corpus.run import Run, _named, _positional
from tests.corpus.values import encode_rows

PREVIEW_MAX = 10_000
NO_DELTA_TABLE = "UNSUPPORTED_FEATURE.TABLE_OPERATION"
"""What Spark says of it; a dry run names the statements that can be tried on Delta tables."""


@dataclass(frozen=True)
class Tried:
    """A statement in puredelta's public API, of whatever makes one."""

    dry_run: Callable[[], Report]
    preview: Callable[[], DataFrame]
    execute: Callable[[], object]
    has_feed: bool = False
    """Whether the table records its changes."""
    is_repeatable: bool = True
    """Whether its new rows are the same when they are made again."""


def require_same(run: Run, case: Case) -> str:
    """Try and execute a case on a copy of its table, and say how far they were compared."""
    path = run.place.copy(run._base(case.setup), f"tried-{case.id}")
    try:
        for text in case.prepare:
            run.engine.run_sql(run.place.named(text, path)).collect()
        source = run._source(case, path)
        with temporary_settings(run.spark, case.settings):
            return _compared(run, case, path, source)
    finally:
        shutil.rmtree(path)


def _compared(run: Run, case: Case, path: str, source: DataFrame | None) -> str:
    tried = tried_of(run, case, path, source)
    if tried is None:
        return "no statement that is tried"
    tried = replace(
        tried,
        has_feed=case.has_feed,
        is_repeatable="rand(" not in str(case) and "uuid(" not in str(case),
    )
    return require_same_of(run.spark, path, tried)


def require_same_of(spark: SparkSession, path: str, tried: Tried) -> str:
    """Try and execute a statement on the table at a path, and say how far they were compared."""
    log = TableLog.open(path)
    before, version = files_below(path), log.latest_version()
    report, refusal = _outcome(tried.dry_run)
    preview, unseen = _outcome(lambda: encode_rows(tried.preview().drop("_clause")))
    assert files_below(path) == before, "something was left"
    _, error = _outcome(tried.execute)
    if error is not None:
        assert refusal is not None, f"the dry run did not see {error}"
        if explain(error)["class"] == NO_DELTA_TABLE:
            assert explain(refusal)["class"] == ErrorCode.OPERATION_NOT_ALLOWED_DETAIL.error_class
        else:
            assert explain(refusal) == explain(error)
        return "refused"
    assert refusal is None, refusal
    assert unseen is None, unseen
    done = last_report()
    assert done is not None
    require_alike(report, done)
    if log.latest_version() == version or not tried.has_feed:
        return "counts"
    if tried.is_repeatable:
        feed = puredelta.read_changes(spark, path, starting_version=version + 1)
        columns = [quoted(name) for name in puredelta.read(spark, path).columns]
        assert preview == encode_rows(feed.select(*columns, "_change_type"))
    return "counts and change feed"


def require_alike(tried: Report, done: Report) -> None:
    """Compare what a dry run says with what the execution did."""
    assert tried.rows == done.rows
    totals = ("rewritten", "rewritten_bytes", "marked", "marked_bytes", "removed", "removed_bytes")
    for name in totals:
        assert getattr(tried.files, name) == getattr(done.files, name), name
    assert tried.selected == done.selected
    for one, other in zip(tried.clauses, done.clauses, strict=True):
        assert (one.number, one.text, one.action) == (other.number, other.text, other.action)
        assert other.rows is None or one.rows == other.rows
    assert set(tried.decisions) == set(done.decisions)


def tried_of(run: Run, case: Case, path: str, source: DataFrame | None) -> Tried | None:
    """Return the statement of a case as what can be tried; None if it is another one."""
    if case.statement is not None:
        spark, text = run.spark, run.place.named(case.statement, path)
        words = text.split()[0].upper()
        if words not in ("MERGE", "UPDATE", "DELETE", "WITH"):
            return None
        return Tried(
            dry_run=lambda: puredelta.dry_run(spark, text),
            preview=lambda: puredelta.preview(spark, text, PREVIEW_MAX),
            execute=lambda: puredelta.sql(spark, text),
        )
    assert case.calls is not None
    names = [name for name, *_ in case.calls]
    if "sql" in names or names[-1] not in ("execute", "update", "delete"):
        return None

    def request() -> Any:
        at: Any = DeltaTable.forPath(run.spark, path)
        for name, *arguments in case.calls or ():
            if name == "merge":
                assert source is not None
                at = at.merge(source.alias(arguments[0]), arguments[1])
            elif name in ("update", "delete"):
                prepare = getattr(at, f"prepare{name.capitalize()}")
                at = prepare(*_positional(arguments), **_named(arguments))
            elif name != "execute":
                at = getattr(at, name)(*_positional(arguments), **_named(arguments))
        return at

    return Tried(
        dry_run=lambda: request().dry_run(),
        preview=lambda: request().preview(PREVIEW_MAX),
        execute=lambda: request().execute(),
    )


def _outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except (DeltaError, PySparkException, ValueError, TypeError) as error:
        return None, error


def files_below(path: str) -> set[str]:
    """Every file and directory below a table's root."""
    return {
        os.path.relpath(f"{folder}/{name}", path)
        for folder, folders, names in os.walk(path)
        for name in (*folders, *names)
    }
