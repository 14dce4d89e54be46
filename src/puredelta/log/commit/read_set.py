"""What a transaction has read: the half of every conflict that is ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from puredelta.log.files.file_table import FileTable
from puredelta.protocol.actions.paths import canonical_path
from puredelta.protocol.values.predicates import Predicate


@dataclass(frozen=True, kw_only=True)
class ReadSet:
    """The rows, files and application versions that a transaction's result depends on.

    Rows are described by predicates, because a rival may add rows that no file of ours
    holds yet: every row that matches *any* of ``predicates`` counts as read, also where
    no file did. Files are the candidates left after pruning, not merely those that were
    changed: a candidate was read to find out that nothing in it changes (X-29).

    Adding to a read set gives a new one; a transaction only ever reads more.
    """

    predicates: tuple[Predicate, ...] = ()
    scans: tuple[FileTable, ...] = ()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()

    def with_files(self, predicate: Predicate | None, files: FileTable) -> ReadSet:
        """Add the rows that match and the files they were looked for in; None is every row."""
        if predicate is None:
            return replace(self, scans=(*self.scans, files), whole_table=True)
        return replace(self, predicates=(*self.predicates, predicate), scans=(*self.scans, files))

    def with_app_id(self, app_id: str) -> ReadSet:
        """Add an application whose last committed version the result depends on."""
        return replace(self, app_ids=self.app_ids | {app_id})

    @property
    def depends_on_data(self) -> bool:
        """Whether any row was read; if not, a commit that only adds files is a blind append."""
        return self.whole_table or bool(self.predicates) or any(map(len, self.scans))

    @cached_property
    def files(self) -> Mapping[str, Mapping[str, str | None]]:
        """Partition values by canonical path; built when a race is lost, not before."""
        return {
            canonical_path(path): dict(values or ())
            for scan in self.scans
            for path, values in zip(
                scan.rows["path"].to_pylist(),
                scan.rows["partition_values"].to_pylist(),
                strict=True,
            )
        }
