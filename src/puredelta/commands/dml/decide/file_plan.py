"""Which files a statement rewrites, marks with a deletion vector or drops. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy.typing as npt
from typing_extensions import assert_never

from puredelta.log.files.file_table import FileTable
from puredelta.log.files.row_counts import physical_rows
from puredelta.log.files.tombstones import remove_file
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.protocol.table.table_config import TableConfig
from puredelta.quantities import counted
from puredelta.spark.rewrite.contract import RewriteOrder
from puredelta.spark.session.row_bitmap import RowBitmap

_DEAD_BYTES_MIN = 8 * 1024 * 1024
"""What every later reader must pass over before a copy, one task more, is worth its while."""
_DEAD_PER_LIVE_ROW_MIN = 2
"""A copy then writes half of what it spares the next reader, and less."""


class RewriteStrategy(Enum):
    """How the rows are kept that no clause took out of a touched file."""

    COPY_ON_WRITE = "copied to new files"
    DELETION_VECTORS = "left where they are, the others under a deletion vector"
    PER_FILE = "file by file, whichever costs less"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilePlan:
    """What happens to the touched files: those some clause fired in (M-82, W-3)."""

    rewritten: tuple[RewriteOrder, ...] = ()
    """Files of which the other rows are copied to new files."""
    marked: tuple[RewriteOrder, ...] = ()
    """Files that stay, the rows under a deletion vector (M-131)."""
    dropped: tuple[Add, ...] = ()
    """Files that lose every row: no task, no new file (M-83, M-133)."""

    @property
    def touched(self) -> tuple[Add, ...]:
        """Every file that leaves the table as it was."""
        return (*(order.add for order in (*self.rewritten, *self.marked)), *self.dropped)

    def removes(self) -> tuple[Remove, ...]:
        """Return the actions that remove the touched files."""
        return tuple(map(remove_file, self.touched))

    def describe(self) -> str:
        """Return it for the log."""
        return (
            f"{counted(len(self.rewritten), 'file')} rewritten, {len(self.marked)} marked, "
            f"{len(self.dropped)} dropped"
        )


def uses_deletion_vectors(config: TableConfig) -> bool:
    """Tell whether the table wants deletion vectors instead of copies (M-130)."""
    return config.supports("deletionVectors") and config.properties.enable_deletion_vectors


def plan_files(
    files: FileTable,
    rows: Mapping[int, RowBitmap],
    strategy: RewriteStrategy,
    *,
    deleted: Mapping[int, npt.NDArray[Any]],
) -> FilePlan:
    """Decide file by file what becomes of the rows that no clause took out of it.

    Args:
        files: the touched files.
        rows: by place in ``files`` the rows that leave it.
        strategy: how the other rows are kept.
        deleted: by place in ``files`` the rows that its deletion vector hides already.
    """
    rewritten: list[RewriteOrder] = []
    marked: list[RewriteOrder] = []
    dropped: list[Add] = []
    for place, add in enumerate(files.adds()):
        gone = rows[place]
        if place in deleted:
            gone |= RowBitmap.of_rows(deleted[place])
        if _loses_every_row(add, gone):
            dropped.append(add)
        elif _is_copied(add, gone, strategy):
            rewritten.append(RewriteOrder(add=add, dropped=gone))
        else:
            marked.append(RewriteOrder(add=add, dropped=gone))
    return FilePlan(rewritten=tuple(rewritten), marked=tuple(marked), dropped=tuple(dropped))


def _is_copied(add: Add, dropped: RowBitmap, strategy: RewriteStrategy) -> bool:
    match strategy:
        case RewriteStrategy.COPY_ON_WRITE:
            return True
        case RewriteStrategy.DELETION_VECTORS:
            return False
        case RewriteStrategy.PER_FILE:
            rows = physical_rows(add)
            if not rows:
                return False
            dead, live = len(dropped), rows - len(dropped)
            return (
                dead >= _DEAD_PER_LIVE_ROW_MIN * live
                and add.size_bytes * dead // rows >= _DEAD_BYTES_MIN
            )
        case _:
            assert_never(strategy)


def _loses_every_row(add: Add, dropped: RowBitmap) -> bool:
    """Tell from the log alone; only a count that the positions themselves confirm is taken."""
    rows = physical_rows(add)
    return rows is not None and len(dropped) == rows and dropped.last == rows - 1
