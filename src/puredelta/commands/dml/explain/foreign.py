"""Commits of other writers beside a statement that was tried: which it could have followed."""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.commands.command import Command
from puredelta.commands.dml.prune.plan import SearchPlan
from puredelta.commands.report.parts import ForeignCommit
from puredelta.errors import DeltaError
from puredelta.log.commit.conflict_errors import conflict_error
from puredelta.log.commit.conflicts import OurCommit, find_conflicts
from puredelta.log.commit.isolation import isolation_level
from puredelta.log.commit.read_set import ReadSet
from puredelta.log.commit.winning_commit import WinningCommit
from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.actions.actions import Add, Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCommit:
    """What a statement would commit, as far as the rules of conflicts look at it."""

    plan: SearchPlan
    removes: tuple[Remove, ...]
    judges_rows_alone: bool


def foreign_commits(
    command: Command, tried: TriedCommit, *, since: int
) -> tuple[ForeignCommit, ...]:
    """Return the commits after version ``since``, each with the conflict it would have been.

    That is: had the statement read version ``since``. Where deletion vectors let writers share a
    file, rows of the same file are not compared: the conflict may be none. Reads the log alone.
    """
    found = []
    for commit in command.log.read_commits(since):
        winner = WinningCommit.of(commit)
        error = _conflict(command, tried, winner)
        found.append(
            ForeignCommit(
                version=winner.version,
                operation=winner.info.operation or "unknown",
                conflict=None if error is None else error.message,
                error=None if error is None else type(error).__name__,
            )
        )
    return tuple(found)


def _conflict(command: Command, tried: TriedCommit, winner: WinningCommit) -> DeltaError | None:
    config, plan = command.snapshot.config, tried.plan
    reads = ReadSet().with_files(
        plan.read_predicate, plan.candidates, judges_rows_alone=tried.judges_rows_alone
    )
    # What a commit took away is no candidate any more: it was one if its rows could match.
    removed = tuple(r for r in winner.removes if r.data_change)
    table = FileTable.of(map(_as_add, removed))
    reads = reads.with_files(
        plan.read_predicate, table.select(prune_files(table, config, plan.read_predicate))
    )
    ours = OurCommit(
        actions=tried.removes,
        isolation=isolation_level(tried.removes or (_ANY_ADD,), command.snapshot.metadata),
        is_blind_append=False,
    )
    conflicts = find_conflicts(ours, winner, read_set=reads, config=config)
    if not conflicts:
        return None
    name = f"delta.`{command.log.root_uri.removeprefix('file:')}`"
    return conflict_error(
        conflicts, winner, table=config.metadata.name or name, read_version=winner.version - 1
    )


def _as_add(remove: Remove) -> Add:
    return Add(
        path=remove.path,
        partition_values=remove.partition_values or {},
        size_bytes=remove.size_bytes or 0,
        modified_ms=0,
        data_change=True,
        stats=remove.stats,
    )


_ANY_ADD = Add(path="new", partition_values={}, size_bytes=0, modified_ms=0, data_change=True)
"""Stands for the files of a statement that only adds some."""
