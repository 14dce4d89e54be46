"""What ``commitInfo`` says about a command: its name and parameters, as delta-spark writes them.

History readers parse these, so the quirks are kept (M-161, C-56): lists and nested objects
are *text that holds JSON*, numbers and booleans are JSON values. Predicates are plain SQL.
delta-spark writes Catalyst's text with expression ids there, which no parser can read back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The name of a command and the JSON values of ``operationParameters``, in order."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def with_parameters(self, more: Mapping[str, Any]) -> Operation:
        """Return the command with further parameters before its own."""
        return Operation(name=self.name, parameters={**more, **self.parameters})


class WriteMode(Enum):
    """How a DataFrame write treats existing rows, in the words of the log."""

    APPEND = "Append"
    OVERWRITE = "Overwrite"
    ERROR_IF_EXISTS = "ErrorIfExists"
    IGNORE = "Ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseSummary:
    """One WHEN clause: ``update``, ``delete`` or ``insert``, and its condition in SQL."""

    action: str
    condition: str | None = None


def write(
    mode: WriteMode,
    *,
    partition_by: Sequence[str] = (),
    replace_where: str | None = None,
    merges_schema: bool = False,
    overwrites_schema: bool = False,
    overwrites_partitions: bool = False,
) -> Operation:
    """Describe a DataFrame write; ``partition_by`` is what the caller gave, not the table's.

    >>> write(WriteMode.APPEND).parameters
    {'mode': 'Append', 'partitionBy': '[]'}
    """
    return Operation(
        name="WRITE",
        parameters={
            "mode": mode.value,
            "partitionBy": json_text(list(partition_by)),
            **({} if replace_where is None else {"predicate": replace_where}),
            **({"canMergeSchema": True} if merges_schema else {}),
            **({"canOverwriteSchema": True} if overwrites_schema else {}),
            **({"isDynamicPartitionOverwrite": True} if overwrites_partitions else {}),
        },
    )


def merge(
    *,
    predicate: str,
    matched: Iterable[ClauseSummary] = (),
    not_matched: Iterable[ClauseSummary] = (),
    not_matched_by_source: Iterable[ClauseSummary] = (),
) -> Operation:
    """Describe a MERGE: the ON condition and every clause, in statement order."""
    return Operation(
        name="MERGE",
        parameters={
            "predicate": json_text([predicate]),
            "matchedPredicates": _clauses(matched),
            "notMatchedPredicates": _clauses(not_matched),
            "notMatchedBySourcePredicates": _clauses(not_matched_by_source),
        },
    )


def update(predicate: str | None = None) -> Operation:
    """Describe an UPDATE; ``None`` means that it has no condition.

    >>> update("id = 1").parameters
    {'predicate': '["id = 1"]'}
    """
    return Operation(name="UPDATE", parameters={"predicate": _predicates(predicate)})


def delete(predicate: str | None = None) -> Operation:
    """Describe a DELETE; without a condition it deletes every row.

    >>> delete().parameters
    {'predicate': '["true"]'}
    """
    return Operation(name="DELETE", parameters={"predicate": _predicates(predicate or "true")})


def convert(
    *,
    num_files: int,
    partitioned_by: Sequence[str] = (),
    collect_stats: bool = True,
    catalog_table: str | None = None,
    source_format: str = "parquet",
) -> Operation:
    """Describe a CONVERT (C-56); ``partitioned_by`` is the list the user gave (C-57).

    >>> convert(num_files=5, partitioned_by=["p"]).parameters
    {'numFiles': 5, 'partitionedBy': '["p"]', 'collectStats': True, 'sourceFormat': 'parquet'}
    """
    return Operation(
        name="CONVERT",
        parameters={
            "numFiles": num_files,
            "partitionedBy": json_text(list(partitioned_by)),
            "collectStats": collect_stats,
            **({} if catalog_table is None else {"catalogTable": catalog_table}),
            "sourceFormat": source_format,
        },
    )


def _predicates(predicate: str | None) -> str:
    return json_text([] if predicate is None else [predicate])


def _clauses(clauses: Iterable[ClauseSummary]) -> str:
    return json_text(
        [
            {
                **({} if clause.condition is None else {"predicate": clause.condition}),
                "actionType": clause.action,
            }
            for clause in clauses
        ]
    )


def json_text(value: object) -> str:
    """Return a list or an object as the text in which operation parameters hold it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
