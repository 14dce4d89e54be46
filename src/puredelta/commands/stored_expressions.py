"""Expressions that a table stores are code of whoever wrote them: what they may not do here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Action, Metadata, Protocol
from puredelta.protocol.table.stored_expressions import (
    find_reflection,
    reaches_out,
    stored_expressions,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import ALLOW_REFLECTION


def require_harmless(config: TableConfig, settings: Mapping[str, str]) -> None:
    """Refuse a table whose stored expressions reach beyond the row that is written.

    Call it before any of them reaches Spark: the analyzer evaluates some.

    Raises:
        InvalidRequestError: one of them calls methods of the JVM and the session does not allow
            that, or reads tables (DELTA_UNSUPPORTED_EXPRESSION).
    """
    _require_harmless(stored_expressions(config), settings)


def require_harmless_change(
    actions: Iterable[Action], existing: Snapshot | None, settings: Mapping[str, str]
) -> None:
    """Refuse to store such an expression; those that are there already may stay.

    Raises:
        InvalidRequestError: as `require_harmless`.
    """
    given = list(actions)
    metadata = next((a for a in given if isinstance(a, Metadata)), None)
    protocol = next((a for a in given if isinstance(a, Protocol)), None)
    protocol = protocol or (None if existing is None else existing.protocol)
    if metadata is None or protocol is None:
        return
    known = frozenset(() if existing is None else stored_expressions(existing.config).values())
    after = stored_expressions(TableConfig.of(protocol, metadata))
    _require_harmless({k: sql for k, sql in after.items() if sql not in known}, settings)


def _require_harmless(expressions: Mapping[str, str], settings: Mapping[str, str]) -> None:
    for what, sql in expressions.items():
        if reaches_out(sql):
            raise InvalidRequestError(
                f"The {what} of the table is no expression over one row: {sql}. Queries in it "
                "would read tables of everybody who writes to this one. Remove it with ALTER "
                "TABLE.",
                code=ErrorCode.UNSUPPORTED_EXPRESSION,
                expression=sql,
            )
        function = None if ALLOW_REFLECTION.flag(settings) else find_reflection(sql)
        if function is not None:
            raise InvalidRequestError(
                f"The {what} of the table calls {function}, which runs code in the JVM of "
                f"everybody who writes to the table: {sql}. Remove it with ALTER TABLE, or, if "
                f"you trust all who may write to the table, set {ALLOW_REFLECTION.key} to true.",
                code=ErrorCode.UNSUPPORTED_EXPRESSION,
                expression=sql,
                function=function,
            )
