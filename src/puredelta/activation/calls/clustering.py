"""``clusterBy`` of writers: the clustering columns of a table that is made, or that is there."""

from __future__ import annotations

from puredelta.activation.calls.captured_options import CapturedOptions
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.table.clustering import ColumnPath, clustering_columns
from puredelta.spark.session.identifiers import parse_name


def clustering_paths(captured: CapturedOptions) -> tuple[ColumnPath, ...]:
    """Return the columns that a writer was given, each as the parts of its name."""
    return tuple(map(parse_name, captured.cluster_by))


def is_clustered_otherwise(log: TableLog, captured: CapturedOptions) -> bool:
    """Return whether the table is clustered by other columns than the writer says, or not there."""
    return _known(log) != _folded(clustering_paths(captured))


def clustered_otherwise(log: TableLog, captured: CapturedOptions) -> InvalidRequestError:
    """Return the error for rows that are to be clustered otherwise than their table."""
    known = [".".join(path) for path in _known(log) or ()]
    return InvalidRequestError(
        "The provided clustering columns do not match the existing table's.\n"
        f"- provided: {', '.join(captured.cluster_by)}\n- existing: {', '.join(known)}\n"
        "Leave clusterBy out, or change the table by ALTER TABLE ... CLUSTER BY first.",
        code=ErrorCode.CLUSTERING_COLUMNS_MISMATCH,
        provided=captured.cluster_by,
        existing=tuple(known),
    )


def _known(log: TableLog) -> tuple[ColumnPath, ...] | None:
    snapshot = log.find_snapshot()
    if snapshot is None:
        return None
    return _folded(clustering_columns(snapshot.config, snapshot.domain_metadata))


def _folded(paths: tuple[ColumnPath, ...]) -> tuple[ColumnPath, ...]:
    """Names of columns ignore case."""
    return tuple(tuple(part.lower() for part in path) for path in paths)
