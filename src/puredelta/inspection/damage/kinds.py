"""Kinds of damage, one row each, and the occurrences that the checks have found."""

# ruff: noqa: ISC004 - a row has texts of several lines

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from puredelta.inspection.findings import Certainty, Finding, Severity
from puredelta.quantities import counted

EVIDENCE_MAX = 20
"""The occurrences of one kind that a finding shows."""


class Damage(Enum):
    """A kind of damage: severity, certainty, meaning and remedy."""

    COMMIT_MISSING = (
        "commit-missing", Severity.ERROR, Certainty.CERTAIN,
        "Commits between others are missing: what they added or removed is unknown.",
        "Restore the files from a backup. Versions after the next checkpoint are readable.",
    )  # fmt: skip
    COMMIT_UNREADABLE = (
        "commit-unreadable", Severity.ERROR, Certainty.CERTAIN,
        "Commit files are empty or cannot be parsed.",
        "Restore the files from a backup; do not run VACUUM before.",
    )  # fmt: skip
    FIRST_COMMIT = (
        "first-commit", Severity.ERROR, Certainty.CERTAIN,
        "Version 0 lacks the protocol or the metadata: another commit has replaced it.",
        "Restore the file from a backup.",
    )  # fmt: skip
    DEFINITIONS = (
        "definitions", Severity.ERROR, Certainty.CERTAIN,
        "A commit has several protocol or metadata actions, and readers differ in their choice.",
        "Set the columns and properties again: ALTER TABLE ... SET TBLPROPERTIES.",
    )  # fmt: skip
    READ_VERSION = (
        "read-version", Severity.ERROR, Certainty.CERTAIN,
        "A commit says that it read its own version or a later one: its file was copied, or its "
        "number was given again after commits were removed.",
        "Compare the rows with the sources of the jobs of that time; orphans show what was lost.",
    )  # fmt: skip
    TRANSACTION_TWICE = (
        "transaction-twice", Severity.WARNING, Certainty.LIKELY,
        "One transaction has committed twice, so its rows may be there twice.",
        "RESTORE to the version before, or DELETE the second rows.",
    )  # fmt: skip
    TIMESTAMPS = (
        "timestamps", Severity.WARNING, Certainty.POSSIBLE,
        "A commit is more than an hour older than one before it: a wrong clock, or an old file "
        "that has replaced another commit. Time travel by timestamp is unreliable there.",
        "ALTER TABLE ... SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    )  # fmt: skip
    IN_COMMIT_TIMESTAMP = (
        "in-commit-timestamp", Severity.ERROR, Certainty.CERTAIN,
        "In-commit timestamps are missing, or do not increase: a writer without the feature.",
        "Time travel by version works. Keep the writer away: it does not know the protocol.",
    )  # fmt: skip
    APPLICATION_VERSION = (
        "application-version", Severity.WARNING, Certainty.LIKELY,
        "The version of an application fell: a stream or job has started over, or a commit of it "
        "was overwritten.",
        "Compare the rows of that application with its source.",
    )  # fmt: skip
    REMOVED_UNKNOWN = (
        "removed-unknown", Severity.ERROR, Certainty.LIKELY,
        "A commit removes files that no commit has added: the commit that added them was "
        "overwritten.",
        "Compare the rows of that time with their sources; later versions may have them again.",
    )  # fmt: skip
    ADDED_AGAIN = (
        "added-again", Severity.ERROR, Certainty.LIKELY,
        "A commit adds a file as new data that the table had already: a removal was lost.",
        "Compare the rows with those of the version before: puredelta diff TABLE N M --rows",
    )  # fmt: skip
    ADDED_AND_REMOVED = (
        "added-and-removed", Severity.ERROR, Certainty.CERTAIN,
        "A commit adds and removes one file, or adds it twice: readers differ in what they see.",
        "RESTORE to the version before, and write the rows again.",
    )  # fmt: skip
    FILE_TWICE = (
        "file-twice", Severity.ERROR, Certainty.CERTAIN,
        "One data file is active twice, with different deletion vectors: its rows count twice.",
        "DELETE the rows of the file by a condition, or RESTORE to the version before.",
    )  # fmt: skip
    TABLE_ID = (
        "table-id", Severity.WARNING, Certainty.LIKELY,
        "The id of the table changed, though no statement replaced it: another table was written "
        "over this one.",
        "Look at the rows of both: puredelta diff TABLE N M --rows",
    )  # fmt: skip
    LOST_ACTIONS = (
        "lost-actions", Severity.ERROR, Certainty.LIKELY,
        "A commit adds fewer rows than its metrics say: lines of it are lost.",
        "Restore the file from a backup, or write the rows of that commit again.",
    )  # fmt: skip
    PARTITION_VALUES = (
        "partition-values", Severity.ERROR, Certainty.CERTAIN,
        "Files have other partition columns than the table, or values that are none of the "
        "column's type.",
        "DELETE the rows of the files, and write them again.",
    )  # fmt: skip
    COLUMN_IDS = (
        "column-ids", Severity.ERROR, Certainty.CERTAIN,
        "delta.columnMapping.maxColumnId is lower than an id in use: the next new column would "
        "get an id that another one has.",
        "Do not add columns. Write the rows to a new table: CREATE TABLE ... AS SELECT.",
    )  # fmt: skip
    ROW_IDS = (
        "row-ids", Severity.ERROR, Certainty.CERTAIN,
        "Row ids are missing, belong to two files, or are above the high-water mark.",
        "ALTER TABLE ... DROP FEATURE rowTracking, and enable it again.",
    )  # fmt: skip
    CHECKPOINT_DIFFERS = (
        "checkpoint-differs", Severity.ERROR, Certainty.CERTAIN,
        "A checkpoint has another state than its commits: readers see one or the other.",
        "Remove the checkpoint if its commits are right; the next commit that is due writes one.",
    )  # fmt: skip
    CHECKPOINT_UNREADABLE = (
        "checkpoint-unreadable", Severity.WARNING, Certainty.CERTAIN,
        "A checkpoint cannot be read.",
        "Remove it while the commits before it are there.",
    )  # fmt: skip
    CHECKPOINT_HINT = (
        "checkpoint-hint", Severity.WARNING, Certainty.CERTAIN,
        "_last_checkpoint names a checkpoint that is not there, or cannot be read.",
        "Remove the file _delta_log/_last_checkpoint; it is only a hint.",
    )  # fmt: skip
    CHECKSUM_FILE = (
        "checksum-file", Severity.WARNING, Certainty.CERTAIN,
        "A checksum file has other totals than its version.",
        "Remove the checksum file, if no other finding says that commits are lost.",
    )  # fmt: skip
    COMPACTED_FILE = (
        "compacted-file", Severity.ERROR, Certainty.CERTAIN,
        "A compaction of the log has other actions than its commits.",
        "Remove the compaction; the commits have everything.",
    )  # fmt: skip
    FILE_MISSING = (
        "file-missing", Severity.ERROR, Certainty.CERTAIN,
        "Data files of the newest version are not there, so reading fails.",
        "Restore them from a backup, or go back: puredelta restore TABLE --version N.",
    )  # fmt: skip
    FILE_UNREADABLE = (
        "file-unreadable", Severity.ERROR, Certainty.CERTAIN,
        "Data files of the newest version are no Parquet files, or are damaged.",
        "Restore them from a backup, or go back: puredelta restore TABLE --version N.",
    )  # fmt: skip
    FILE_SIZE = (
        "file-size", Severity.ERROR, Certainty.CERTAIN,
        "Data files have another size than the log says: they were written again or cut off.",
        "Compare the rows with a backup. OPTIMIZE writes correct entries, with the present rows.",
    )  # fmt: skip
    NUM_RECORDS = (
        "num-records", Severity.ERROR, Certainty.CERTAIN,
        "Files have another number of rows than numRecords: counts from the log are wrong.",
        "OPTIMIZE the partitions of the files.",
    )  # fmt: skip
    BOUNDS = (
        "bounds", Severity.ERROR, Certainty.CERTAIN,
        "Files have values outside of their minimum and maximum: queries skip rows.",
        "OPTIMIZE the partitions of the files; do not MERGE before.",
    )  # fmt: skip
    BOUNDS_ORDER = (
        "bounds-order", Severity.ERROR, Certainty.CERTAIN,
        "A minimum is above its maximum: queries skip rows.",
        "OPTIMIZE the partitions of the files; do not MERGE before.",
    )  # fmt: skip
    NULL_COUNT = (
        "null-count", Severity.ERROR, Certainty.CERTAIN,
        "Files have another number of NULLs than nullCount: IS NULL may skip rows.",
        "OPTIMIZE the partitions of the files.",
    )  # fmt: skip
    NULL_IN_COLUMN = (
        "null-in-column", Severity.ERROR, Certainty.CERTAIN,
        "A column that is NOT NULL has NULLs.",
        "UPDATE the rows, or ALTER TABLE ... ALTER COLUMN ... DROP NOT NULL.",
    )  # fmt: skip
    STATISTICS = (
        "statistics", Severity.WARNING, Certainty.CERTAIN,
        "Statistics of files cannot be parsed.",
        "OPTIMIZE the partitions of the files.",
    )  # fmt: skip
    VECTOR = (
        "deletion-vector", Severity.ERROR, Certainty.CERTAIN,
        "Deletion vectors are missing or damaged, have another cardinality than the log says, or "
        "delete rows that the file does not have.",
        "Restore the file of the vector from a backup, or go back: puredelta restore TABLE.",
    )  # fmt: skip
    CHANGE_FILE = (
        "change-file", Severity.ERROR, Certainty.CERTAIN,
        "Change files are missing or damaged: the change data feed fails over their versions.",
        "Read the feed from a later version.",
    )  # fmt: skip
    CHANGE_ROWS = (
        "change-rows", Severity.ERROR, Certainty.CERTAIN,
        "Change files disagree with the files that their commits add and remove.",
        "Readers of the feed: take the rows of a later version as a whole.",
    )  # fmt: skip
    ORPHANS = (
        "orphans", Severity.WARNING, Certainty.POSSIBLE,
        "Files with rows are there that no version names: left by failed jobs, or by commits that "
        "were overwritten.",
        "Look at their rows before VACUUM deletes them: spark.read.parquet(...).",
    )  # fmt: skip

    def __init__(
        self, label: str, severity: Severity, certainty: Certainty, message: str, mend: str
    ) -> None:
        self.label = label
        self.severity = severity
        self.certainty = certainty
        self.message = message
        self.mend = mend


@dataclass(slots=True)
class Damages:
    """The occurrences found so far."""

    evidence: dict[Damage, list[str]] = field(default_factory=dict)
    counts: dict[Damage, int] = field(default_factory=dict)

    def add(self, kind: Damage, evidence: str) -> None:
        """Record an occurrence."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        shown = self.evidence.setdefault(kind, [])
        if len(shown) < EVIDENCE_MAX:
            shown.append(evidence)

    def include(self, others: Damages) -> None:
        """Record the occurrences of another part of the work, too."""
        for kind, count in others.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + count
            shown = [*self.evidence.get(kind, ()), *others.evidence[kind]]
            self.evidence[kind] = shown[:EVIDENCE_MAX]

    def findings(self) -> Iterator[Finding]:
        """Return a finding for each kind, the worst first."""
        order = list(Severity)
        for kind in sorted(self.counts, key=lambda one: -order.index(one.severity)):
            is_explained = kind is Damage.ORPHANS and self._has_lost_commits()
            yield Finding(
                check=kind.label,
                severity=kind.severity,
                message=f"{kind.message} Found {counted(self.counts[kind], 'occurrence')}.",
                mend=kind.mend,
                certainty=Certainty.LIKELY if is_explained else kind.certainty,
                evidence=tuple(self.evidence[kind]),
            )

    def _has_lost_commits(self) -> bool:
        lost = {Damage.COMMIT_MISSING, Damage.READ_VERSION, Damage.REMOVED_UNKNOWN}
        return not lost.isdisjoint(self.counts)
