"""What a transaction has read: conflicts are found by comparing it with winning commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from puredelta.log.files.file_table import FileTable
from puredelta.protocol.actions.paths import CanonicalPath, canonical_path
from puredelta.protocol.values.predicates import Predicate


@dataclass(frozen=True, kw_only=True)
class ReadSet:
    """The rows, files and application versions that a transaction's result depends on.

    Rows are described by predicates, because other writers may add rows that are in no file
    yet: every row that matches *any* of ``predicates`` counts as read. Files are the candidates
    left after pruning, not only those that were changed: a candidate was read to find out that
    nothing in it changes (X-29).

    Adding to a read set gives a new one.
    """

    predicates: tuple[Predicate, ...] = ()
    scans: tuple[FileTable, ...] = ()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()
    judges_rows_alone: bool = True
    """Whether what happens to a row that was read depends on no other row of the table."""

    def with_files(
        self, predicate: Predicate | None, files: FileTable, *, judges_rows_alone: bool = False
    ) -> ReadSet:
        """Add the rows that match and the files that were searched; None stands for every row."""
        predicates = self.predicates if predicate is None else (*self.predicates, predicate)
        return replace(
            self,
            predicates=predicates,
            scans=(*self.scans, files),
            whole_table=self.whole_table or predicate is None,
            judges_rows_alone=self.judges_rows_alone and judges_rows_alone,
        )

    def with_app_id(self, app_id: str) -> ReadSet:
        """Add an application whose last committed version the result depends on."""
        return replace(self, app_ids=self.app_ids | {app_id})

    @property
    def depends_on_data(self) -> bool:
        """Whether any row was read; otherwise a commit that only adds files is a blind append."""
        return self.whole_table or bool(self.predicates) or any(map(len, self.scans))

    @cached_property
    def files(self) -> Mapping[CanonicalPath, Mapping[str, str | None]]:
        """Partition values by canonical path; computed only when a race is lost."""
        return {
            canonical_path(path): dict(values or ())
            for scan in self.scans
            for path, values in zip(
                scan.rows["path"].to_pylist(),
                scan.rows["partition_values"].to_pylist(),
                strict=True,
            )
        }
