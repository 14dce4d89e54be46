"""Stage 8: the files of a statement: new rows, copies of touched files, deletion vectors.

New rows and copies are written at the same time: by one Spark job where workers do both, else
by two jobs. The files are invisible before the commit; if this stage fails, they are removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from pyspark.sql import DataFrame

from puredelta.commands.dml.decide import Decision
from puredelta.commands.dml.in_place import InPlaceUpdate
from puredelta.commands.dml.new_rows import NewRows
from puredelta.commands.dml.search_plan import reads_little
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.file_options import file_options
from puredelta.commands.finish import remove_quietly
from puredelta.errors import UnsupportedError
from puredelta.log.files.deletion_vectors import (
    DeletionVectorUpdate,
    WrittenVectors,
    discard_vectors,
    write_vectors,
)
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.stats import without_statistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.quantities import counted
from puredelta.spark.offload.rewrite import (
    ArrowRewriter,
    RewriteOrder,
    Rewriter,
    Rewriting,
    Rewritten,
    SparkRewriter,
)
from puredelta.spark.offload.source_copy import plan_copy
from puredelta.spark.offload.write_job import Planned, write_alone, write_both
from puredelta.spark.session.concurrent_jobs import run_concurrently
from puredelta.spark.session.names import ROW_ID
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.write.parquet_job import FileOptions
from puredelta.spark.write.writer import JobOptions, write_rows
from puredelta.spark.write.writer_settings import COPY_CODECS
from puredelta.spark.write.written_files import WriteResult, discard

logger = logging.getLogger(__name__)

NO_WRITER = "no new rows"
WORKERS = "workers copied rows of the source"
SPARK = "Spark computed the new rows"
_NOTHING_COPIED = Rewritten(adds=(), num_rows=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFiles:
    """The files of a statement, in no commit yet."""

    new: WriteResult
    """Of new rows, and of change rows."""
    made_by: str = NO_WRITER
    """The writer of the new rows: `WORKERS`, or Spark with the reason."""
    fallback: str | None = None
    """The reason why Spark made them, where its Python workers were asked first."""
    copied: Rewritten
    updated: Rewritten = _NOTHING_COPIED
    """Files whose changed rows kept their places."""
    vectors: WrittenVectors
    cleanups: tuple[Callable[[], None], ...] = field(default=(), repr=False)
    """Each removes some of the files."""

    @property
    def adds(self) -> tuple[Add, ...]:
        """The new data files."""
        return (*self.new.adds, *self.copied.adds, *self.updated.adds)

    def describe(self) -> str:
        """Return one line for the log."""
        return (
            f"{counted(len(self.new.adds), 'file')} of {counted(self.new.num_rows, 'new row')} "
            f"({self.made_by}), {len(self.copied.adds)} of {self.copied.num_rows:,} copied, "
            f"{len(self.updated.adds)} with {self.updated.num_updated:,} rows updated in place, "
            f"{counted(len(self.vectors.adds), 'deletion vector')}"
        )

    def discard(self) -> None:
        """Remove all written files, as far as storage allows."""
        for cleanup in self.cleanups:
            remove_quietly(cleanup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriters:
    """The two ways to copy the unchanged rows of touched files."""

    arrow: ArrowRewriter
    spark: SparkRewriter
    updater: ArrowRewriter | None = None
    """Writes files in which changed rows keep their places; ``None``: there are no such files."""

    @property
    def in_order(self) -> tuple[Rewriter, ...]:
        """The fastest first; the last one takes every file."""
        return self.arrow, self.spark

    @classmethod
    def of(cls, context: StatementContext) -> Rewriters:
        """Return the rewriters of one statement."""
        spark, store, snapshot = context.spark, context.store, context.snapshot
        writer = context.settings.writer

        def arrow(config: TableConfig) -> ArrowRewriter:
            workers = context.settings.workers
            return ArrowRewriter(
                spark=spark, store=store, config=config, settings=workers, writer=writer
            )

        return cls(
            arrow=arrow(snapshot.config),
            updater=arrow(context.statement.config),
            spark=SparkRewriter(spark=spark, store=store, snapshot=snapshot, writer=writer),
        )


def write(
    context: StatementContext,
    decision: Decision,
    rows: NewRows,
    *,
    rewriters: Callable[[StatementContext], Rewriters] = Rewriters.of,
    in_place: Callable[[], InPlaceUpdate | None] = lambda: None,
) -> WrittenFiles:
    """Write new rows and change rows, and keep the other rows of touched files: as a copy, or in
    place, with the changed rows under a deletion vector or beside their new values.

    Raises:
        InvalidRequestError: a row breaks a rule of the table.
        UnsupportedError: a commit cannot be made atomic here (UNSUPPORTED_STORAGE).
        DeltaError: the storage refused (WRITE_FAILED).
    """
    writing = _Writing(
        context=context, decision=decision, rows=rows, rewriters=rewriters(context), cleanups=[]
    )
    try:
        return writing.run_in_place(in_place, partial(rewriters, context)) or writing.run()
    except BaseException:
        for cleanup in writing.cleanups:
            remove_quietly(cleanup)
        raise


@dataclass(frozen=True, slots=True)
class _NewFiles:
    files: WriteResult
    made_by: str
    fallback: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    """The write of one statement's files."""

    context: StatementContext
    decision: Decision
    rows: NewRows
    rewriters: Rewriters
    cleanups: list[Callable[[], None]]
    """The files written so far; two threads add to it."""
    refusals: list[str] = field(default_factory=list)
    """The reason why Spark's Python workers could not copy, if they could not."""

    def run_in_place(
        self, plan: Callable[[], InPlaceUpdate | None], more: Callable[[], Rewriters]
    ) -> WrittenFiles | None:
        """Write files whose rows keep their places, and the rest beside; ``None``: there are none.

        What workers refuse meanwhile is written as the rest is, by rewriters that ``more`` makes.
        """
        updater = self.rewriters.updater
        if updater is None:
            return None
        if (reason := updater.update_refusal()) is not None:
            logger.debug("Rows are not updated in place: %s", reason)
            return None
        update = plan()
        if update is None:
            return None
        self.context.store.name_rule()
        self.cleanups.append(updater.discard)
        rest = replace(self, decision=update.rest, rows=update.rows)
        updating = partial(_updated, updater, update)
        if rest.rows.frame is None and not (rest.decision.files.rewritten or rest.marked):
            updated, written = updating(), rest.run()
        else:
            updated, written = run_concurrently(self.context.spark, updating, rest.run)
        if isinstance(updated, NotApplicable):
            every = dict.fromkeys(range(len(update.orders)), updated.reason)
            updated = replace(_NOTHING_COPIED, refused=every)
        if not updated.refused:
            return replace(written, updated=updated)
        for reason in dict.fromkeys(updated.refused.values()):
            logger.info("Rows are not updated in place: %s", reason)
        decision, rows = update.others(updated.refused)
        again = replace(self, decision=decision, rows=rows, rewriters=more(), refusals=[])
        others = again.run()
        return _together(written, others, updated)

    @property
    def marked(self) -> Sequence[RewriteOrder]:
        return self.decision.files.marked

    def run(self) -> WrittenFiles:
        self.cleanups.extend([self.rewriters.arrow.discard, self.rewriters.spark.discard])
        orders = self.decision.files.rewritten
        if self.rows.frame is not None or orders or self.decision.files.marked:
            self.context.store.name_rule()  # before rows are written that no commit could name
        if self.rows.frame is None:
            nothing = _NewFiles(WriteResult.nothing(), NO_WRITER)
            return self._finished(nothing, *self._kept(orders, self.rewriters.in_order))
        make = partial(self._new_rows, self.rows.frame)
        source_copy = self._planned_copy()
        if source_copy is None or not orders:
            return self._beside(partial(make, source_copy), orders, self.rewriters.in_order)
        copied, new = self._both(orders, source_copy)
        left = orders if copied is None else ()
        if isinstance(new, NotApplicable):
            make_new = partial(make, None, fallback=new.reason)
            written = self._beside(make_new, left, (self.rewriters.spark,))
        else:
            written = self._finished(new, *self._kept(left, (self.rewriters.spark,)))
        return written if copied is None else replace(written, copied=copied)

    def _beside(
        self,
        make: Callable[[], _NewFiles],
        orders: Sequence[RewriteOrder],
        ways: Sequence[Rewriter],
    ) -> WrittenFiles:
        """Make the new rows in parallel with the other rows: Spark analyses and plans meanwhile."""
        if not orders and not self.decision.files.marked:
            return self._finished(make(), _NOTHING_COPIED, WrittenVectors())
        keep = partial(self._kept, orders, ways)
        (copied, vectors), new = run_concurrently(self.context.spark, keep, make)
        return self._finished(new, copied, vectors)

    def _finished(self, new: _NewFiles, copied: Rewritten, vectors: WrittenVectors) -> WrittenFiles:
        return WrittenFiles(
            new=new.files,
            made_by=new.made_by,
            fallback=new.fallback,
            copied=copied,
            vectors=vectors,
            cleanups=tuple(self.cleanups),
        )

    def _both(
        self,
        orders: Sequence[RewriteOrder],
        source_copy: Planned[WriteResult],
    ) -> tuple[Rewritten | None, _NewFiles | NotApplicable]:
        """Let workers write copies and new rows in one job, as far as they can."""
        rewriting = self.rewriters.arrow.plan(orders)
        copied, new = write_both(
            self.context.spark, rewriting, source_copy, self.context.settings.workers
        )
        if isinstance(copied, NotApplicable):
            self.refusals.append(_logged_refusal(self.rewriters.arrow, copied))
            return None, self._by_workers(new)
        return copied, self._by_workers(new)

    def _kept(
        self, orders: Sequence[RewriteOrder], ways: Sequence[Rewriter]
    ) -> tuple[Rewritten, WrittenVectors]:
        copied = rewrite_files(ways, orders, self.refusals) if orders else _NOTHING_COPIED
        vectors = write_vectors(
            map(_hidden_rows, self.decision.files.marked),
            store=self.context.store,
            config=self.context.statement.config,
        )
        self.cleanups.append(partial(discard_vectors, vectors, self.context.store))
        return copied, vectors

    def _new_rows(
        self,
        frame: Callable[[], DataFrame],
        source_copy: Planned[WriteResult] | None,
        *,
        fallback: str | None = None,
    ) -> _NewFiles:
        if source_copy is not None:
            new = self._by_workers(
                write_alone(self.context.spark, source_copy, self.context.settings.workers)
            )
            if isinstance(new, _NewFiles):
                return new
            fallback = new.reason
        row_plan, config = self.decision.rows, self.context.statement.config
        rows = frame()
        # A task per touched file would write a file each.
        scattered = bool(row_plan.from_target) or row_plan.recorded
        rebalances = bool(config.partition_columns) and self.context.settings.rebalance
        brings_together = scattered or rebalances
        in_one_task = brings_together and self._reads_little(with_touched=scattered)
        written = write_rows(
            rows.coalesce(1) if in_one_task else rows,
            store=self.context.store,
            config=self._config_of_new_files(),
            options=JobOptions(
                rebalance=brings_together and not in_one_task,
                computed=self.context.statement.computed_columns,
                with_changes=row_plan.recorded,
                files=self._file_options(),
                hidden=self._hidden_columns(),
            ),
        )
        self.cleanups.append(partial(discard, written, self.context.store))
        made_by = SPARK if fallback is None else f"{SPARK}: {fallback}"
        return _NewFiles(written, made_by, fallback)

    def _planned_copy(self) -> Planned[WriteResult] | None:
        """Plan to write new rows that are rows of the source; ``None``: Spark makes them."""
        context, selection = self.context, self.rows.copy
        files = self._file_options()
        codec = context.settings.writer.codec
        if codec is not None and files.codec is not None:
            codec = COPY_CODECS.get(files.codec.lower())
        if selection is None or codec is None:
            return None
        if files.rows_max or files.bin_bytes is not None:
            return None  # only Spark obeys settings of file sizes
        if selection.num_partition_columns and not self._reads_little(with_touched=False):
            return None  # several tasks would write a file each for every partition
        return plan_copy(
            selection,
            context.settings.workers,
            store=context.store,
            config=self._config_of_new_files(),
            codec=codec,
            spark=context.spark,
        )

    def _by_workers(self, written: WriteResult | NotApplicable) -> _NewFiles | NotApplicable:
        if isinstance(written, NotApplicable):
            logger.info("Spark writes the new rows: %s", written.reason)
            return written
        self.cleanups.append(partial(discard, written, self.context.store))
        return _NewFiles(written, WORKERS)

    def _file_options(self) -> FileOptions:
        """Return the size limits and compression of new files."""
        properties = self.context.statement.config.properties
        return file_options(self.context.command.session.settings, properties)

    def _config_of_new_files(self) -> TableConfig:
        config = self.context.statement.config
        return config if self.context.settings.collects_statistics else without_statistics(config)

    def _reads_little(self, *, with_touched: bool) -> bool:
        """Tell whether one task soon makes the new rows of the source, and of touched files."""
        touched = self.decision.files.touched if with_touched else ()
        sizes = [add.size_bytes for add in touched]
        return reads_little([*sizes, *(file.size_bytes for file in self.context.source.files)])

    def _hidden_columns(self) -> Mapping[str, str]:
        """Return further columns of new files beside the table's: ids of updated rows (M-110).

        The log has the time of the last change, for the whole file.
        """
        tracked = self.context.tracked
        if tracked is None or not self.decision.rows.keeps_row_ids:
            return {}
        return {ROW_ID: tracked.row_id}


def _together(written: WrittenFiles, others: WrittenFiles, updated: Rewritten) -> WrittenFiles:
    """Return the files of the rest, of files that could not be updated, and of those that were."""
    one, two = written.copied, others.copied
    copied = Rewritten(
        adds=(*one.adds, *two.adds),
        num_rows=one.num_rows + two.num_rows,
        fallback=one.fallback or two.fallback,
    )
    return replace(
        others,
        new=WriteResult.together(written.new, others.new),
        fallback=written.fallback or others.fallback,
        copied=copied,
        updated=updated,
        vectors=written.vectors,
    )


def _updated(updater: ArrowRewriter, update: InPlaceUpdate) -> Rewriting:
    fallback: str | None = None
    if update.computed is not None:
        done = updater.compute(update.orders, update.computed)
        reasons = [done.reason] if isinstance(done, NotApplicable) else [*done.refused.values()]
        if isinstance(done, Rewritten) and len(reasons) < len(update.orders):
            return done
        fallback = reasons[0]
        logger.info("Spark computes new values, and workers do not: %s", fallback)
    if any(order.leaving for order in update.orders):
        return NotApplicable(reason=fallback or "rows leave files in which others change")
    try:
        rows, schema = update.values()
    except UnsupportedError as failure:  # a type that Arrow lacks
        return NotApplicable(reason=str(failure))
    found = updater.update(update.orders, rows, schema)
    return replace(found, fallback=fallback) if isinstance(found, Rewritten) else found


def rewrite_files(
    rewriters: Sequence[Rewriter], orders: Sequence[RewriteOrder], refusals: Sequence[str] = ()
) -> Rewritten:
    """Copy unchanged rows with the first rewriter that can; earlier ones may have refused. Runs one
    Spark job.
    """
    reasons = list(refusals)
    for rewriter in rewriters:
        match rewriter.rewrite(orders):
            case Rewritten() as done:
                return replace(done, fallback=reasons[-1]) if reasons else done
            case NotApplicable() as refused:
                reasons.append(_logged_refusal(rewriter, refused))
    raise RuntimeError("the last rewriter takes every file")


def _logged_refusal(rewriter: Rewriter, refused: NotApplicable) -> str:
    logger.warning("%s cannot copy here: %s", type(rewriter).__name__, refused.reason)
    return refused.reason


def _hidden_rows(order: RewriteOrder) -> DeletionVectorUpdate:
    return DeletionVectorUpdate(file=order.add, rows=order.dropped.rows().astype(np.uint64))
