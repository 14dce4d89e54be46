"""Every version of the table, read without the writers, and what they were told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from puredelta.inspection.damage.deep import deep_findings
from puredelta.inspection.damage.kinds import Damage
from puredelta.inspection.findings import Severity
from puredelta.log.files.deletion_vectors import read_positions
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.paths import decode_path
from simulation.rivals.bank import COLUMNS, Kind, Order, Row, require_sound


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a writer was told of an order: done, conflict, failed, or killed (nothing)."""

    order: Order
    writer: str
    outcome: str
    detail: str = ""


def judge(table: Path, told: Sequence[Told]) -> int:
    """Return the number of versions that were judged.

    Raises:
        ValueError: a version or an answer is wrong.
    """
    log = TableLog.open(str(table))
    newest = log.snapshot().version
    before: frozenset[str] = frozenset()
    forgotten = {each.order.name for each in told if each.order.kind is Kind.FORGET}
    # Version 0 may be the empty table.
    first = 0 if any(rows_of(log.snapshot(version=0))) else 1
    for version in range(first, newest + 1):
        try:
            names = require_sound(rows_of(log.snapshot(version=version)))
        except ValueError as wrong:
            raise ValueError(f"version {version}: {wrong}") from wrong
        if lost := before - names - forgotten:
            raise ValueError(f"version {version} has lost {sorted(lost)}")
        before = names
    _require_told_the_truth(told, before)
    _require_healthy(log)
    return newest + 1


def _require_healthy(log: TableLog) -> None:
    """Require that the deep check finds no damage; a writer that lost or died leaves files."""
    for finding in deep_findings(log):
        is_damage = finding.severity in {Severity.WARNING, Severity.ERROR}
        if is_damage and finding.check != Damage.ORPHANS.label:
            raise ValueError(f"the table is damaged: {finding}")


def _require_told_the_truth(told: Sequence[Told], names: frozenset[str]) -> None:
    asked = {each.order.name for each in told}
    if unknown := names - asked:
        raise ValueError(f"nobody wrote {sorted(unknown)}")
    forgotten = {each.order.name for each in told if each.order.kind is Kind.FORGET}
    for each in told:
        name, is_there = each.order.name, each.order.name in names
        match each.order.kind, each.outcome:
            case ((Kind.TRANSFER | Kind.NOTE), "done") if not is_there and name not in forgotten:
                raise ValueError(f"{each} is not in the table")
            case ((Kind.TRANSFER | Kind.NOTE), ("conflict" | "failed")) if is_there:
                raise ValueError(f"{each} is in the table")
            case Kind.FORGET, "done" if is_there:
                raise ValueError(f"{each} did not delete its row")
            case _:
                pass


def rows_of(snapshot: Snapshot) -> Iterator[Row]:
    """Read the rows of a version with pyarrow alone."""
    root = Path(snapshot.root_uri.removeprefix("file:"))
    deleted = read_positions(snapshot.files, snapshot.root_uri)
    for number, add in enumerate(snapshot.files.adds()):
        rows = pq.ParquetFile(root / decode_path(add.path)).read(columns=list(COLUMNS))
        hidden = frozenset(map(int, deleted.get(number, ())))
        for position, row in enumerate(rows.to_pylist()):
            if position not in hidden:
                yield (row["entry"], row["amount"], row["source"], row["target"])
