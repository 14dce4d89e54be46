"""What a writer of the race can do, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from simulation.rivals.bank import Order, Row


class ConflictLost(Exception):  # noqa: N818 - the outcome of a race
    """Another writer was faster; the statement committed nothing."""


class Rival(Protocol):
    """A writer in a process of its own."""

    def open_bank(self, table: Path, *, vectors: bool) -> None:
        """Create the table with the rows the bank opens with."""

    def execute(self, table: Path, order: Order) -> None:
        """Execute one order.

        Raises:
            ConflictLost: another writer was faster; nothing was committed.
        """

    def rows(self, table: Path) -> list[Row]:
        """Return the rows of the newest version."""
