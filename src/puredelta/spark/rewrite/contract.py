"""The seam between a command that drops rows and the two ways to rewrite files without them.

A rewriter replaces each file by one or more new ones without the dropped rows. What a row
was dropped for, and what becomes of it, is unknown here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from puredelta.protocol.actions.actions import Add
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.row_bitmap import RowBitmap


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewriteOrder:
    """A file of the table, and the rows that are dropped from it."""

    add: Add
    dropped: RowBitmap
    """Physical rows, those of the file's deletion vector included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The files that take the place of the old ones; in no commit yet."""

    adds: tuple[Add, ...]
    num_rows: int
    """Rows copied."""
    fallback: str | None = None
    """Why Spark copied them and not its Python workers, where these were asked first."""


Rewriting: TypeAlias = Rewritten | NotApplicable


class Rewriter(Protocol):
    """One way to rewrite files, for one command."""

    def rewrite(self, orders: Sequence[RewriteOrder]) -> Rewriting:
        """Rewrite all files or none."""
        ...

    def discard(self) -> None:
        """Delete every file written so far; called when the command fails."""
        ...
