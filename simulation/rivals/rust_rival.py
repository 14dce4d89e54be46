"""A writer that is delta-rs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from simulation.rivals.bank import COLUMNS, IS_ACCOUNT, ON, Kind, Order, Row, opening_rows
from simulation.rivals.rival import ConflictLost

_SCHEMA = pa.schema(
    [("entry", pa.string()), ("amount", pa.int64()), ("source", pa.int32()), ("target", pa.int32())]
)


class RustRival:
    """Executes orders without Spark."""

    def open_bank(self, table: Path, *, vectors: bool) -> None:
        """Create the table; delta-rs writes no deletion vectors."""
        if vectors:
            raise ValueError("delta-rs writes no deletion vectors")
        configuration: dict[str, str | None] = {"delta.checkpointInterval": "5"}
        write_deltalake(table, _table(opening_rows()), configuration=configuration)

    def execute(self, table: Path, order: Order) -> None:
        """Execute one order."""
        try:
            self._execute(table, order)
        except CommitFailedError as failure:
            raise ConflictLost(str(failure)) from failure

    def rows(self, table: Path) -> list[Row]:
        """Return the rows of the newest version."""
        found = DeltaTable(table).to_pyarrow_table().select(list(COLUMNS)).to_pylist()
        return [(row["entry"], row["amount"], row["source"], row["target"]) for row in found]

    def _execute(self, table: Path, order: Order) -> None:
        match order.kind:
            case Kind.TRANSFER:
                source = _table(order.rows())
                merge = DeltaTable(table).merge(source, ON, source_alias="s", target_alias="t")
                changed = merge.when_matched_update(
                    {"amount": "t.amount + s.amount"}, predicate=IS_ACCOUNT
                )
                changed.when_not_matched_insert_all().execute()
            case Kind.NOTE:
                write_deltalake(table, _table(order.rows()), mode="append")
            case Kind.FORGET:
                DeltaTable(table).delete(f"entry = '{order.name}'")
            case Kind.COMPACT:
                DeltaTable(table).optimize.compact()


def _table(rows: object) -> pa.Table:
    columns = zip(*list(rows), strict=True)  # type: ignore[call-overload]
    return pa.table([list(column) for column in columns], schema=_SCHEMA)
