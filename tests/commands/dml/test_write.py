"""Stage 8: which way files are written, and that a failure leaves none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from puredelta.commands.dml.decide import Decision, FilePlan, plan_rows
from puredelta.commands.dml.new_rows import NewRows
from puredelta.commands.dml.positions import RowPositions
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.write import NO_WRITER, Rewriters, rewrite_files, write
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.offload.rewrite import RewriteOrder, Rewriting, Rewritten
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import NotApplicable
from tests.commands.dml.statements import by_source, context_of, rows, statement
from tests.log.tables import add, feature_protocol

COPIED = Rewritten(adds=(add("copy.parquet", rows=8),), num_rows=8)


class Rewriter:
    """Answers as it is told."""

    def __init__(self, answer: Rewriting | Exception) -> None:
        self.answer, self.asked, self.discarded = answer, 0, 0

    def rewrite(self, _: Any) -> Rewriting:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def discard(self) -> None:
        self.discarded += 1


def context() -> StatementContext:
    return context_of(
        lambda config: statement(by_source(), config=config),
        add("a.parquet", rows=10),
        add("b.parquet", rows=10),
        protocol=feature_protocol(readers=("deletionVectors",)),
        delta__enableDeletionVectors="true",
    )


def order(path: str) -> RewriteOrder:
    (dropped,) = rows(1, 2).values()
    return RewriteOrder(add=add(path, rows=10), dropped=dropped)


def decision(of: StatementContext, **files: Any) -> Decision:
    positions = RowPositions(by_source=(rows(1, 2),), source_of=())
    row_plan = plan_rows(of.statement, positions, num_source_rows=0)
    return Decision(positions=positions, rows=row_plan, files=FilePlan(**files), removes=())


def rewriters(arrow: Rewriter, spark: Rewriter) -> Any:
    return lambda _: Rewriters(arrow=arrow, spark=spark)  # type: ignore[arg-type]


def test_other_rows_are_copied_by_the_first_that_can() -> None:
    statement_context = context()
    arrow, spark = Rewriter(NotApplicable(reason="no pyarrow")), Rewriter(COPIED)
    written = write(
        statement_context,
        decision(statement_context, rewritten=(order("a.parquet"),)),
        NewRows(),
        rewriters=rewriters(arrow, spark),
    )
    copied = replace(COPIED, fallback="no pyarrow")
    assert (written.copied, written.new.adds, written.made_by) == (copied, (), NO_WRITER)
    assert (arrow.asked, spark.asked, written.adds) == (1, 1, COPIED.adds)


def test_marked_files_stay_under_a_vector_until_they_are_discarded() -> None:
    statement_context = context()
    store: Any = statement_context.store
    before = set(store.files)
    arrow, spark = Rewriter(COPIED), Rewriter(COPIED)
    written = write(
        statement_context,
        decision(statement_context, marked=(order("a.parquet"),)),
        NewRows(),
        rewriters=rewriters(arrow, spark),
    )
    (marked,) = written.vectors.adds
    assert (marked.path, arrow.asked, written.adds) == ("a.parquet", 0, ())
    assert marked.deletion_vector is not None
    assert marked.deletion_vector.cardinality == 2
    assert len(set(store.files) - before) == 1
    written.discard()
    assert set(store.files) == before
    assert (arrow.discarded, spark.discarded) == (1, 1)


def test_a_failure_removes_what_is_there_and_passes() -> None:
    statement_context = context()
    arrow, spark = Rewriter(OSError("full")), Rewriter(COPIED)
    before = set(statement_context.store.files)  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="full"):
        write(
            statement_context,
            decision(statement_context, rewritten=(order("a.parquet"),)),
            NewRows(),
            rewriters=rewriters(arrow, spark),
        )
    assert (arrow.discarded, spark.discarded) == (1, 1)
    assert set(statement_context.store.files) == before  # type: ignore[attr-defined]


def test_what_cannot_be_removed_hides_no_error() -> None:
    class Stubborn(Rewriter):
        def discard(self) -> None:
            super().discard()
            raise OSError("read-only")

    statement_context = context()
    arrow, spark = Stubborn(OSError("full")), Rewriter(COPIED)
    with pytest.raises(OSError, match="full"):
        write(
            statement_context,
            decision(statement_context, rewritten=(order("a.parquet"),)),
            NewRows(),
            rewriters=rewriters(arrow, spark),
        )
    assert spark.discarded == 1


def test_storage_that_cannot_commit_is_found_out_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statement_context = context()

    def refuse(_: object) -> None:
        raise UnsupportedError("no hard links", code=ErrorCode.UNSUPPORTED_STORAGE)

    monkeypatch.setattr(type(statement_context.store), "name_rule", refuse)
    arrow, spark = Rewriter(COPIED), Rewriter(COPIED)
    for some in ({"rewritten": (order("a.parquet"),)}, {"marked": (order("a.parquet"),)}):
        with pytest.raises(UnsupportedError, match="no hard links"):
            write(
                statement_context,
                decision(statement_context, **some),
                NewRows(),
                rewriters=rewriters(arrow, spark),
            )
    assert (arrow.asked, spark.asked) == (0, 0)


def test_nothing_to_do_asks_nobody() -> None:
    statement_context = context()
    arrow, spark = Rewriter(COPIED), Rewriter(COPIED)
    written = write(
        statement_context,
        decision(statement_context),
        NewRows(),
        rewriters=rewriters(arrow, spark),
    )
    assert (written.adds, written.vectors.adds, arrow.asked, spark.asked) == ((), (), 0, 0)


def test_the_last_rewriter_takes_every_file() -> None:
    refusing = Rewriter(NotApplicable(reason="no"))
    with pytest.raises(RuntimeError, match="takes every file"):
        rewrite_files([refusing], [replace(order("a"), dropped=RowBitmap.empty())])
