"""Files that a write job left in its directory become actions of a commit.

Statistics come from the footers, partition values from the directories. A job that wrote
change rows beside rows of the table left two kinds of files, each below a helper directory. They
are moved to where the protocol wants them, so that the path of a data file has no directories
but those of partition columns.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow.parquet as pq

from puredelta.log.footers.file_stats import TableStatistics
from puredelta.log.footers.parquet_footer import map_footers
from puredelta.protocol.actions.actions import Add, AddChangeFile
from puredelta.protocol.actions.log_paths import CHANGE_DATA_DIRECTORY
from puredelta.protocol.actions.paths import decode_path, encode_path
from puredelta.protocol.table.change_data import change_file, change_file_path
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.partition_escape import unescape_partition_text
from puredelta.spark.session.helper_columns import IS_CHANGE
from puredelta.spark.write.answered_files import added_file
from puredelta.spark.write.partition_text import log_value
from puredelta.store.base import NameRule, Store, StoredFile
from puredelta.worker.data_files.write_file import FileAnswer
from puredelta.worker.data_files.write_rows import CHANGES, DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """Data files, and change files, that exist and belong to no version yet."""

    directory: str
    """Relative to the table root; all data files lie in it and nothing else does. Change
    files lie in a directory of this name below ``_change_data``.
    """
    adds: tuple[Add, ...]
    num_rows: int
    """Of the data files."""
    changes: tuple[AddChangeFile, ...] = ()
    num_changes: int = 0
    """Rows of the change files."""

    @classmethod
    def nothing(cls) -> WriteResult:
        """Return the result of a write that did not happen."""
        return cls(directory="", adds=(), num_rows=0)

    @property
    def size_bytes(self) -> int:
        """Of all data files."""
        return sum(add.size_bytes for add in self.adds)


def discard(result: WriteResult, store: Store) -> None:
    """Remove the files of a write that will not be committed, as far as storage lets us."""
    trees = [result.directory] if result.adds else []
    trees += [f"{CHANGE_DATA_DIRECTORY}/{result.directory}"] if result.changes else []
    for tree in trees:
        with contextlib.suppress(OSError):
            store.delete_tree(tree)


def describe_files(
    files: Sequence[StoredFile], directory: str, config: TableConfig, store: Store
) -> WriteResult:
    """Return the actions for the data files of a job; files without rows are deleted (M-83)."""
    described = list(_described(files, directory, config, store))
    if not described:
        store.delete_tree(directory)
    return WriteResult(
        directory=directory,
        adds=tuple(add for add, _ in described),
        num_rows=sum(rows for _, rows in described),
    )


def describe_with_changes(
    files: Sequence[StoredFile], directory: str, config: TableConfig, store: Store
) -> WriteResult:
    """Do the same for a job whose files lie below a directory per value of `IS_CHANGE`.

    Data files move up, change files below ``_change_data`` (M-122).
    """
    kinds = {kind: f"{directory}/{IS_CHANGE}={kind}/" for kind in ("false", "true")}
    moved: dict[str, list[StoredFile]] = {kind: [] for kind in kinds}
    for kind, tree in kinds.items():
        for file in files:
            if file.path.startswith(tree):
                path = f"{directory}/{file.path.removeprefix(tree)}"
                path = change_file_path(path) if kind == "true" else path
                store.move(file.path, path)
                moved[kind].append(dataclasses.replace(file, path=path))
        store.delete_tree(tree)
    changes = f"{CHANGE_DATA_DIRECTORY}/{directory}"
    recorded = list(_described(moved["true"], changes, config, store))
    return dataclasses.replace(
        describe_files(moved["false"], directory, config, store),
        changes=tuple(change_file(add, path=decode_path(add.path)) for add, _ in recorded),
        num_changes=sum(rows for _, rows in recorded),
    )


def describe_answers(
    written: Mapping[str, FileAnswer], directory: str, config: TableConfig, names: NameRule
) -> WriteResult:
    """Return the actions for files that workers have written, by path; nothing is read."""
    statistics = TableStatistics(config)
    kinds = [field.type for field in config.partition_schema.fields]
    adds: dict[int, list[Add]] = {DATA: [], CHANGES: []}
    num_rows = {DATA: 0, CHANGES: 0}
    for path, answer in written.items():
        texts = [log_value(t, k, names) for t, k in zip(answer.partition, kinds, strict=True)]
        values = dict(zip(config.physical_partition_columns, texts, strict=True))
        adds[answer.ordinal].append(added_file(answer, path, values, statistics))
        num_rows[answer.ordinal] += answer.kept_rows
    return WriteResult(
        directory=directory,
        adds=tuple(adds[DATA]),
        num_rows=num_rows[DATA],
        changes=tuple(change_file(add, path=decode_path(add.path)) for add in adds[CHANGES]),
        num_changes=num_rows[CHANGES],
    )


def _described(
    files: Sequence[StoredFile], directory: str, config: TableConfig, store: Store
) -> Iterator[tuple[Add, int]]:
    """Yield every file that has rows, with their number; delete the others."""
    described: Iterable[tuple[Add, int]] = map_footers(
        files,
        partial(
            _add,
            statistics=TableStatistics(config),
            config=config,
            directory=directory,
            names=store.name_rule(),
        ),
        read_end=lambda file, num_bytes: store.read_end(file.path, num_bytes),
        name=lambda file: file.path,
    )
    for file, (add, rows) in zip(files, described, strict=True):
        if rows:
            yield add, rows
        else:
            store.delete(file.path)


def _add(
    file: StoredFile,
    footer: pq.FileMetaData,
    *,
    statistics: TableStatistics,
    config: TableConfig,
    directory: str,
    names: NameRule,
) -> tuple[Add, int]:
    add = Add(
        path=encode_path(file.path),
        partition_values=_partition_values(file, directory, config, names),
        size_bytes=file.size_bytes,
        modified_ms=file.modified_ms,
        data_change=True,
        stats=statistics.encode(footer),
    )
    return add, footer.num_rows


def _partition_values(
    file: StoredFile, directory: str, config: TableConfig, names: NameRule
) -> dict[str, str | None]:
    """Read the partition of a file back from its directories, by physical name (X-82)."""
    fields = config.partition_schema.fields
    parents = file.path.removeprefix(f"{directory}/").split("/")[:-1]
    return {
        physical: log_value(unescape_partition_text(parent.partition("=")[2]), field.type, names)
        for physical, field, parent in zip(
            config.physical_partition_columns, fields, parents, strict=True
        )
    }
