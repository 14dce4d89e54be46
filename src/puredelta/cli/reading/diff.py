"""``puredelta diff``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.reading.open_log import open_log
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.inspection.table.commits import CommitFacts, commit_facts, diff_lines, require_before
from puredelta.log.files.file_table import file_keys
from puredelta.quantities import counted, size_text

_COLUMNS = ("version", "operation", "inserted", "updated", "deleted", "addedFiles", "removedFiles")


def run(context: Context, *, table: str, older: int, newer: int | None, **of_rows: object) -> None:
    """Print what changed between two versions, from the log alone.

    ``of_rows`` are options of ``--rows``, with which `puredelta.cli.session.diff` runs.
    """
    if of_rows["keys"] is not None:
        raise InvalidRequestError(
            "--keys is for the rows that differ. Add --rows.", code=ErrorCode.INVALID_WRITE_OPTION
        )
    log = open_log(context, table)
    after = log.snapshot(version=newer)
    require_before(older, after.version)
    before = log.snapshot(version=older)
    commits = [
        _shown(commit_facts(commit.version, commit.modified_ms, commit.actions))
        for commit in log.read_commits(older, through=after.version)
    ]
    named = [set(file_keys(s.files.rows).to_pylist()) for s in (before, after)]
    sizes = [s.files.total_size_bytes for s in (before, after)]
    counts = [s.files.num_records() for s in (before, after)]
    changes = [dict(zip(("what", "before", "after"), line, strict=True))
               for line in diff_lines(before, after)]  # fmt: skip
    numbers = len(named[1] - named[0]), len(named[0] - named[1])
    value = {
        "older": before.version,
        "newer": after.version,
        "filesAdded": numbers[0],
        "filesRemoved": numbers[1],
        "numRows": counts,
        "sizeInBytes": sizes,
    }
    out = context.output
    if out.as_json:
        out.value({**value, "commits": commits, "changes": changes})
        return
    added, removed = (counted(number, "file") for number in numbers)
    out.text(f"Version {before.version} -> {after.version}: {added} added, {removed} removed, "
             f"{size_text(sizes[0])} -> {size_text(sizes[1])}, rows {counts[0]} -> {counts[1]}"
             )  # fmt: skip
    out.rows(commits, _COLUMNS)
    if changes:
        out.rows(changes)


def _shown(commit: CommitFacts) -> dict[str, object]:
    return {
        "version": commit.version,
        "operation": commit.operation,
        "inserted": commit.rows_inserted,
        "updated": commit.rows_updated,
        "deleted": commit.rows_deleted,
        "addedFiles": commit.num_added,
        "removedFiles": commit.num_removed,
    }
