"""What a report shows of a table, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.inspection.findings import Finding, Severity
from puredelta.inspection.table.checks import table_findings
from puredelta.inspection.table.commits import CommitFacts, newest_commits
from puredelta.inspection.table.described import Row, detail_row, time_text
from puredelta.inspection.table.overlap import ColumnDepth, column_depths
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog

_BUCKETS = ((1 << 20, "up to 1 MiB"), (16 << 20, "1 to 16 MiB"), (64 << 20, "16 to 64 MiB"),
            (256 << 20, "64 to 256 MiB"), (1 << 30, "256 MiB to 1 GiB"))  # fmt: skip
_LAST_BUCKET = "over 1 GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBucket:
    """How many files have a size within some limits."""

    label: str
    num_files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """Everything that the page says."""

    detail: Row
    commits: Sequence[CommitFacts]
    """Oldest first."""
    num_commits: int
    """In all: the newest version and one."""
    buckets: Sequence[SizeBucket]
    depths: Sequence[ColumnDepth]
    clustered_by: frozenset[str]
    findings: Sequence[Finding]
    sentences: Sequence[str]
    """The table in words."""
    made: str

    @property
    def warnings(self) -> Sequence[Finding]:
        """What somebody should do something about, the worst first."""
        order = [Severity.ERROR, Severity.WARNING]
        wanted = [f for f in self.findings if f.severity in order]
        return sorted(wanted, key=lambda f: order.index(f.severity))


def report_facts(log: TableLog, *, commits: int, clock: Clock = wall_clock) -> ReportFacts:
    """Read a table for its report: the newest version, some commits, and a listing of the root.

    Raises:
        DeltaError: the newest version cannot be read.
    """
    snapshot = log.snapshot()
    detail = detail_row(snapshot)
    found = newest_commits(log, snapshot, limit=commits)
    return ReportFacts(
        detail=detail,
        commits=found,
        num_commits=snapshot.version + 1,
        buckets=size_buckets(snapshot),
        depths=column_depths(snapshot),
        clustered_by=frozenset(detail["clusteringColumns"]),
        findings=tuple(table_findings(log, clock=clock)),
        sentences=tuple(_sentences(snapshot, detail)),
        made=time_text(clock()),
    )


def size_buckets(snapshot: Snapshot) -> tuple[SizeBucket, ...]:
    """Count files by size."""
    counts = [[0, 0] for _ in range(len(_BUCKETS) + 1)]
    for size_bytes in snapshot.files.rows["size_bytes"].to_pylist():
        place = next((n for n, (top, _) in enumerate(_BUCKETS) if size_bytes <= top), len(_BUCKETS))
        counts[place][0] += 1
        counts[place][1] += size_bytes
    labels = [*(label for _, label in _BUCKETS), _LAST_BUCKET]
    return tuple(
        SizeBucket(label=label, num_files=files, size_bytes=size)
        for label, (files, size) in zip(labels, counts, strict=True)
    )


def _sentences(snapshot: Snapshot, detail: Row) -> list[str]:
    """Say what protocol and properties mean, in words."""
    properties, config = snapshot.config.properties, snapshot.config
    reader, writer = detail["minReaderVersion"], detail["minWriterVersion"]
    said = [f"Readers need protocol version {reader}, writers version {writer}."]
    if detail["partitionColumns"]:
        said.append(f"Rows are in directories by {', '.join(detail['partitionColumns'])}.")
    if detail["clusteringColumns"]:
        said.append(f"OPTIMIZE orders rows by {', '.join(detail['clusteringColumns'])}.")
    features = (
        ("deletionVectors", "Changed rows are marked in deletion vectors, files stay."),
        ("changeDataFeed", "Each commit keeps which rows it changed (change data feed)."),
        ("columnMapping", "Columns have names of their own in the files, so they can be renamed."),
        ("rowTracking", "Every row keeps its id."),
        ("checkConstraints", "Rows must fulfil CHECK constraints."),
        ("inCommitTimestamp", "Commits carry their own time."),
        ("appendOnly", "Rows can only be appended."),
    )
    said += [text for name, text in features if config.is_active(name)]
    said.append(
        f"Removed files are kept {_span(properties.deleted_file_retention.total_seconds())}, the "
        f"log {_span(properties.log_retention.total_seconds())}; a checkpoint is due every "
        f"{properties.checkpoint_interval} commits."
    )
    return said


def _span(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}" + ("s" if count > 1 else "")
    return f"{seconds:g} seconds"
