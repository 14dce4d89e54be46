"""``puredelta diff``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.reading.open_log import open_log
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.inspection.findings import counted, size_text
from puredelta.inspection.table.commits import commit_facts, diff_lines
from puredelta.log.files.file_table import file_keys

_COLUMNS = ("version", "operation", "inserted", "updated", "deleted", "addedFiles", "removedFiles")


def run(context: Context, *, table: str, older: int, newer: int | None) -> None:
    """Print what changed between two versions, from the log alone."""
    log = open_log(context, table)
    after = log.snapshot(version=newer)
    if older >= after.version:
        raise InvalidRequestError(
            f"Version {older} is not before version {after.version}. Write the older one first.",
            code=ErrorCode.VERSION_NOT_FOUND,
            version=older,
        )
    before = log.snapshot(version=older)
    commits = [
        commit_facts(commit.version, commit.modified_ms, commit.actions)
        for commit in log.read_commits(older, through=after.version)
    ]
    keys = [set(file_keys(s.files.rows).to_pylist()) for s in (before, after)]
    rows = [
        {
            "version": c.version,
            "operation": c.operation,
            "inserted": c.rows_inserted,
            "updated": c.rows_updated,
            "deleted": c.rows_deleted,
            "addedFiles": c.num_added,
            "removedFiles": c.num_removed,
        }
        for c in commits
    ]
    sizes = [s.files.total_size_bytes for s in (before, after)]
    counts = [s.files.num_records() for s in (before, after)]
    changes = [dict(zip(("what", "before", "after"), line, strict=True))
               for line in diff_lines(before, after)]  # fmt: skip
    numbers = len(keys[1] - keys[0]), len(keys[0] - keys[1])
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
        out.value({**value, "commits": rows, "changes": changes})
        return
    added, removed = (counted(number, "file") for number in numbers)
    out.text(f"Version {before.version} -> {after.version}: {added} added, {removed} removed, "
             f"{size_text(sizes[0])} -> {size_text(sizes[1])}, rows {counts[0]} -> {counts[1]}"
             )  # fmt: skip
    out.rows(rows, _COLUMNS)
    if changes:
        out.rows(changes)
