"""Statements before they run (`Prepared`) and while they run (`Running`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql import SparkSession

from puredelta.commands.statement.parts import ReportState
from puredelta.commands.statement.progress import ProgressLine, open_progress
from puredelta.commands.statement.report import Report, remember
from puredelta.commands.statement.stages import (
    Around,
    find_tracer,
    set_counts,
    stage_span,
    statement_span,
)
from puredelta.spark.session.concurrent_jobs import count_started_jobs, tagged_jobs
from puredelta.spark.session.session import settings_of

logger = logging.getLogger("puredelta.statement")
"""A separate logger: one line for every executed statement."""


ResultT = TypeVar("ResultT")
Result_co = TypeVar("Result_co", covariant=True)


class Prepared(Protocol[Result_co]):
    """A checked statement that has not run yet.

    Every call reads the newest version of the table.
    """

    def explain(self) -> Report:
        """Return a report of the plan; changes nothing."""
        ...

    def dry_run(self) -> Report:
        """Return a report with the counts of an execution; changes nothing."""
        ...

    def execute(self) -> Result_co:
        """Run the statement."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFiles(Generic[ResultT]):
    """A prepared statement on whole files: its plan needs no row, so it has all counts."""

    report: Callable[[ReportState], Report]
    run: Callable[[], ResultT]

    def explain(self) -> Report:
        """Return a report of added and removed files; changes nothing, runs no Spark job."""
        return self.report(ReportState.PLANNED)

    def dry_run(self) -> Report:
        """Return the report of `explain` as that of a dry run."""
        return self.report(ReportState.DRY_RUN)

    def execute(self) -> ResultT:
        """Run the statement."""
        return self.run()


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A statement in execution."""

    spark: SparkSession
    tag: str | None
    """The tag of every Spark job that it starts, if it starts any."""
    around: Sequence[Around] = field(default=(), repr=False)
    """Context that runs beside every stage."""
    span: Any = field(default=None, repr=False)
    line: ProgressLine | None = field(default=None, repr=False)

    def note(self, text: str) -> None:
        """Show the current work of the statement on the progress line."""
        if self.line is not None:
            self.line.show(text)

    def jobs_run(self) -> int | None:
        """Return the number of Spark jobs started so far; ``None`` over Connect."""
        if self.tag is None:
            return 0
        return count_started_jobs(self.spark, self.tag)

    def finish(self, make: Callable[[], Report | None]) -> Report | None:
        """Make the report of the executed statement, remember and log it.

        A failure here does not affect the statement: it has no report then.
        """
        try:
            report = make()
        except Exception:
            logger.warning("No report of a statement that was executed", exc_info=True)
            return None
        if report is not None:
            remember(report)
            set_counts(self.span, _counts(report))
            _log(report)
        return report


@contextmanager
def running_statement(
    spark: SparkSession,
    name: str,
    table: str,
    settings: Mapping[str, str] | None = None,
    *,
    runs_jobs: bool = True,
) -> Iterator[Running]:
    """Tag the jobs of a statement, show its progress as the session wants it, and trace it.

    ``name`` is ``MERGE``, ``OPTIMIZE``, ...; ``table`` the root of the table; ``settings`` those of
    the session, if they are known. A statement without ``runs_jobs`` does not touch Spark.
    """
    made = settings_of(spark) if settings is None else settings
    tracer = find_tracer()
    with ExitStack() as contexts:
        span = contexts.enter_context(statement_span(tracer, name, table))
        tag = contexts.enter_context(tagged_jobs(spark)) if runs_jobs else None
        around: list[Around] = []
        line = open_progress(spark, tag, f"{name} {table}", made)
        if line is not None:
            contexts.enter_context(line.shown())
            around.append(line.stage)
        if tracer is not None:
            around.append(partial(stage_span, tracer))
        yield Running(spark=spark, tag=tag, around=tuple(around), span=span, line=line)


def _counts(report: Report) -> Mapping[str, int | None]:
    rows, files = report.rows, report.files
    return {
        "version": report.committed_version,
        "jobs": report.jobs_run,
        "rows_inserted": None if rows is None else rows.inserted,
        "rows_updated": None if rows is None else rows.updated,
        "rows_deleted": None if rows is None else rows.deleted,
        "files_added": None if files is None else files.added,
    }


def _log(report: Report) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return
    counted = ", ".join(f"{k} {n}" for k, n in _counts(report).items() if n is not None)
    logger.info(
        "%s of %s: %s",
        report.statement,
        report.table,
        counted or "nothing changed",
        extra={"puredelta_report": report.to_dict()},
    )
