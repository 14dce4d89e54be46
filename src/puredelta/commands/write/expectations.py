"""Expectations about the rows of a write, and the treatment of rows that break one.

The rows are evaluated once and kept on the executors while they are counted and written, so
that the counted rows are the committed rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from operator import or_
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import SetTransaction
from puredelta.spark.session.names import quote

logger = logging.getLogger(__name__)

VIOLATIONS = "_violations"
"""The column of a quarantine table with the names of a row's broken expectations."""
_FLAG = "__expectation_{}"
_EXAMPLES_MAX = 3
_EXAMPLE_LENGTH_MAX = 300


class OnViolation(Enum):
    """Treatment of a row that breaks an expectation."""

    WARN = "warn"
    """The row is committed, counted and logged."""
    DROP = "drop"
    """The row is counted and left out, or put into the quarantine table."""
    FAIL = "fail"
    """Nothing is written."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition on rows, and the treatment of rows that break it.

    A row satisfies it where it is true; NULL counts as false, as in a CHECK constraint of a table.
    """

    condition: str | Column
    action: str = OnViolation.WARN.value
    """``warn``, ``drop`` or ``fail``."""


Expectations: TypeAlias = Mapping[str, Expectation | str | Column]
"""Expectations by name; a condition alone is a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRows:
    """The rows to commit."""

    rows: DataFrame
    violations: Mapping[str, int] = field(default_factory=dict)
    """Number of rows that broke each expectation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    """Checked expectations, and the table for dropped rows."""

    conditions: Mapping[str, str | Column]
    actions: Mapping[str, OnViolation]
    quarantine: TableLog | None = None
    set_transaction: SetTransaction | None = None
    """Prevents a repeated batch from being put into quarantine again."""

    @classmethod
    def of(
        cls,
        expectations: Expectations,
        *,
        quarantine: TableLog | None = None,
        set_transaction: SetTransaction | None = None,
    ) -> RowCheck:
        """Check the expectations as arguments."""
        given = {
            name: one if isinstance(one, Expectation) else Expectation(one)
            for name, one in expectations.items()
        }
        return cls(
            conditions={name: _condition(name, one.condition) for name, one in given.items()},
            actions={name: _action(name, one.action) for name, one in given.items()},
            quarantine=quarantine,
            set_transaction=set_transaction,
        )

    def __call__(self, rows: DataFrame) -> CheckedRows:
        """Count violations, and return the rows to commit. Runs a job or two."""
        if not self.conditions:
            return CheckedRows(rows=rows)
        flags = {name: _FLAG.format(n) for n, name in enumerate(self.conditions)}
        broken = {
            flags[name]: ~F.coalesce(_column(condition).cast("boolean"), F.lit(False))  # noqa: FBT003
            for name, condition in self.conditions.items()
        }
        kept = rows.withColumns(broken).localCheckpoint()
        counts = kept.agg(
            *(F.coalesce(F.sum(F.col(flag).cast("long")), F.lit(0)).alias(flag) for flag in broken)
        ).collect()[0]
        violations = {name: int(counts[flag]) for name, flag in flags.items()}
        self._fail(kept, rows.columns, flags, violations)
        dropped = [
            flags[name] for name, action in self.actions.items() if action is OnViolation.DROP
        ]
        for name, action in self.actions.items():
            if violations[name] and action is not OnViolation.FAIL:
                logger.warning(
                    "%d rows break the expectation %r (%s)", violations[name], name, action.value
                )
        if dropped and any(counts[flag] for flag in dropped):
            is_dropped = reduce(or_, map(F.col, dropped))
            self._put_away(kept.where(is_dropped), rows.columns, flags)
            kept = kept.where(~is_dropped)
        return CheckedRows(rows=kept.drop(*broken), violations=violations)

    def _fail(
        self,
        kept: DataFrame,
        columns: Sequence[str],
        flags: Mapping[str, str],
        violations: Mapping[str, int],
    ) -> None:
        failed = [
            name
            for name, action in self.actions.items()
            if action is OnViolation.FAIL and violations[name]
        ]
        if not failed:
            return
        row = F.to_json(F.struct(*(F.col(quote(name)) for name in columns)))
        examples = {
            name: [
                found["row"]
                for found in kept.where(flags[name])
                .select(F.substring(row, 1, _EXAMPLE_LENGTH_MAX).alias("row"))
                .limit(_EXAMPLES_MAX)
                .collect()
            ]
            for name in failed
        }
        shown = "; ".join(
            f"{name!r} by {violations[name]} rows, such as {', '.join(examples[name])}"
            for name in failed
        )
        raise InvalidRequestError(
            Message.EXPECTATION_VIOLATED,
            shown=shown,
            violations={name: violations[name] for name in failed},
            examples=examples,
        )

    def _put_away(
        self, dropped: DataFrame, columns: Sequence[str], flags: Mapping[str, str]
    ) -> None:
        if self.quarantine is None:
            return
        names = [F.when(F.col(flag), F.lit(name)) for name, flag in flags.items()]
        marked = dropped.select(
            *map(quote, columns), F.array_compact(F.array(*names)).alias(VIOLATIONS)
        )
        mark = self.set_transaction
        options: dict[str, object] = {"mergeSchema": True}
        if mark is not None:
            options |= {"txnAppId": mark.app_id, "txnVersion": mark.version}
        write_table(marked, self.quarantine, WriteRequest(mode=SaveMode.APPEND, options=options))


def _column(condition: str | Column) -> Column:
    return F.expr(condition) if isinstance(condition, str) else condition


def _condition(name: str, given: object) -> str | Column:
    if isinstance(given, str | Column):
        return given
    raise InvalidRequestError(
        Message.INVALID_ARGUMENT_EXPECTATION, type=type(given).__name__, expectation=name
    )


def _action(name: str, given: str) -> OnViolation:
    try:
        return OnViolation(given)
    except ValueError:
        raise InvalidRequestError(
            Message.INVALID_ARGUMENT_EXPECTATION_ACTION, given=given, expectation=name
        ) from None
