"""Data files rewritten without some of their rows, by Arrow or by Spark.

A rewriter replaces each file by one or more new ones without the dropped rows. The reason for
which a row is dropped is unknown here.

`Rewriter` has two implementations.

*Arrow in Python workers.* No row crosses between JVM and Python, nothing is shuffled, and order
and clustering are kept: a third of the time of reading and writing the same files with Spark. The
old file's directory, partition values and tags are kept; statistics come from the footer that the
task returns. Workers need Python, numpy and pyarrow, and must reach the storage themselves;
otherwise the answer is `NotApplicable`.

*Spark.* Slower, but without Python workers: any storage that the JVM reaches, any type that Spark
knows. Copied rows are not checked against constraints: they were in the table before (W-17).

Rewriting a file of some kilobytes costs as much as opening, encoding and describing a new one, and
leaves as many files as before. So adjacent small files of one partition are rewritten into one, up
to a size at which statistics still skip much.
"""

from __future__ import annotations

import itertools
import logging
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.errors import DeltaError, Message
from puredelta.log.files.clock import random_id
from puredelta.log.files.file_stats import TableStatistics
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import absolute_uri, path_below_root
from puredelta.protocol.table.iceberg_compat import other_tags
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.row_tracking import RowTrackingColumns, tracked_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.workers import (
    ENABLED,
    WorkerCalls,
    WorkerSettings,
    assign_to_tasks,
    count_source_tasks,
    count_tasks,
    parallelism_of,
    run_in_workers,
)
from puredelta.spark.offload.write_job import Planned, PlannedFiles, streamed_answers, write_alone
from puredelta.spark.scan.bitmaps import mark_rows
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.scan.row_tracking_scan import hidden_row_columns, tracked_scan
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.data_access import DataPaths, note_files_of_workers
from puredelta.spark.session.names import FILE_ORDINAL, MARK, ROW_INDEX
from puredelta.spark.session.row_bitmap import RowBitmap, count_rows
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.session.types import quoted
from puredelta.spark.write.parquet_job import (
    SERVER_ENCRYPTS,
    FileOptions,
    named_failures,
    server_encrypts,
)
from puredelta.spark.write.writer import JobOptions, write_rows
from puredelta.spark.write.writer_settings import COPY_CODECS, WriterSettings
from puredelta.spark.write.written_files import WriteResult, added_file, discard, keep_answered
from puredelta.store.base import Store, StoredFile
from puredelta.worker.computed_rows import (
    COMPUTED_FILES,
    COMPUTED_VALUES,
    ComputedFile,
    ComputedValues,
    compute_rows,
)
from puredelta.worker.data_files.rewrite_file import REWRITE_TASKS, RewriteTask, rewrite
from puredelta.worker.data_files.update_rows import UPDATE_ORDERS, UpdateOrder
from puredelta.worker.data_files.updated_file import FileUpdate
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from puredelta.worker.files import joined
from puredelta.worker.lookup.lookup_request import Constants
from puredelta.worker.wire import LIMITS_CODEC, Limits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewriteOrder:
    """A file of the table, and the rows that are dropped from it."""

    add: Add
    dropped: RowBitmap
    """Physical rows, those of the file's deletion vector included."""
    leaving: RowBitmap = field(default_factory=RowBitmap.empty)
    """Where the other rows of ``dropped`` get new values in the file: those that leave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedUpdate:
    """New values that workers compute, and the rows that get them."""

    values: ComputedValues
    rows: tuple[tuple[RowBitmap, ...], ...]
    """For each order the rows of each clause."""
    constants: tuple[Constants, ...]
    """For each order the partition columns that find source rows."""
    source_files: tuple[DataFile, ...] = ()
    source_bytes: int = 0
    """What a task holds of the source, estimated; 0: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The files that take the place of the old ones; in no commit yet."""

    adds: tuple[Add, ...]
    num_rows: int
    """Rows copied."""
    num_updated: int = 0
    """Rows whose values changed where they are."""
    copied_groups: int = 0
    """Row groups that were copied as bytes."""
    fallback: str | None = None
    """Why Spark copied them and not its Python workers, where these were asked first."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """The orders, by number, whose files could not get new values in place, with the reasons."""


Rewriting: TypeAlias = Rewritten | NotApplicable
Answers: TypeAlias = "list[FileAnswer] | NotApplicable"


class Rewriter(Protocol):
    """One way to rewrite files, for one command."""

    def rewrite(self, orders: Sequence[RewriteOrder]) -> Rewriting:
        """Rewrite all files or none."""
        ...

    def discard(self) -> None:
        """Delete every file written so far; called when the command fails."""
        ...


SMALL_BYTES = 2 * 1024 * 1024
"""A file of less is brought together with others."""
GROUP_BYTES_MAX = 16 * 1024 * 1024
GROUP_FILES_MAX = 128
"""A task has all files of a group open."""
SMALL_FILES_MIN = 16
"""With fewer in one place there is nothing to gain, and files stay what they were."""


def small_groups(
    adds: Sequence[Add], directories: Sequence[str], partitioning: Partitioning
) -> list[int | None]:
    """Return for each file the number of its group, ``None`` if it is rewritten alone.

    ``directories`` are where new files go. Files that bear tags or were clustered stay alone:
    what is said of them is not true of another file.
    """
    groups: list[int | None] = [None] * len(adds)
    count = 0
    for members in _by_place(adds, directories, partitioning):
        if len(members) < SMALL_FILES_MIN:
            continue
        for run in _runs(members, adds):
            for number in run:
                groups[number] = count
            count += 1
    return groups


def _by_place(
    adds: Sequence[Add], directories: Sequence[str], partitioning: Partitioning
) -> list[list[int]]:
    """Return the small files of each directory and partition, in their order."""
    places: dict[object, list[int]] = {}
    for number, (add, directory) in enumerate(zip(adds, directories, strict=True)):
        is_alone = other_tags(add) or add.clustering_provider is not None
        if add.size_bytes < SMALL_BYTES and not is_alone:
            place = (directory, partitioning.key(add.partition_values))
            places.setdefault(place, []).append(number)
    return list(places.values())


def _runs(members: Sequence[int], adds: Sequence[Add]) -> list[list[int]]:
    """Cut files that follow each other into runs of a bounded size."""
    runs: list[list[int]] = []
    size_bytes = 0
    for number in members:
        size_bytes += adds[number].size_bytes
        if not runs or size_bytes > GROUP_BYTES_MAX or len(runs[-1]) == GROUP_FILES_MAX:
            runs.append([])
            size_bytes = adds[number].size_bytes
        runs[-1].append(number)
    return runs


logger = logging.getLogger(__name__)

_UPDATE_TASKS = 4
"""Tasks for each one that a copy would have: files are distributed over them by hash."""
_NAMED_MAX = 3
"""Files that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowRewriter:
    """Rewrites files of one table for one command; every file it writes bears ``job_id``."""

    spark: SparkSession
    store: Store
    config: TableConfig
    settings: WorkerSettings = field(default_factory=WorkerSettings)
    writer: WriterSettings = field(default_factory=WriterSettings)
    job_id: str = field(default_factory=random_id)
    _directories: set[str] = field(default_factory=set, init=False)

    @property
    def _limits(self) -> Limits:
        """Those of the session, and what the table asks of each new file."""
        return replace(
            self.settings.limits,
            filters=tuple(self.config.filtered_columns.items()),
            needs_columns=self.config.materialized_partition_columns,
            needs_ids=self.config.columns_with_ids,
        )

    def rewrite(self, orders: Sequence[RewriteOrder]) -> Rewriting:
        """Rewrite all files in one Spark job (two on Connect), or refuse and leave no file."""
        return write_alone(self.spark, self.plan(orders), self.settings)

    def update(
        self, orders: Sequence[RewriteOrder], rows: DataFrame, schema: pa.Schema
    ) -> Rewriting:
        """Give the rows that each order names other values, and keep every row in its place.

        ``rows`` has the values by ``schema``, then the number of the order and the position. Runs
        one Spark job. What workers cannot do is named by file; where they can do nothing the
        answer is a refusal, and no file is left.
        """

        def streamed(files: tuple[FileUpdate, ...], num_tasks: int) -> Answers:
            update = UpdateOrder(files=files, schema=schema, limits=self._limits)
            fields, many = UPDATE_ORDERS.encode(update), _UPDATE_TASKS * num_tasks
            return streamed_answers(rows, fields, min(many, len(files)))

        return self._updated(orders, streamed)

    def compute(self, orders: Sequence[RewriteOrder], update: ComputedUpdate) -> Rewriting:
        """Do the same with values that workers compute. Nothing is shuffled."""
        values = replace(update.values, limits=self._limits)
        if values.source is not None:
            paths = DataPaths(self.store.at)
            found = [paths.find(file.uri, file.size_bytes) for file in update.source_files]
            files = tuple(path for path in found if path is not None)
            if len(files) < len(found):
                return NotApplicable(reason="workers have no way to files of the source")
            values = replace(values, source=replace(values.source, files=files))

        def computed(files: tuple[FileUpdate, ...], num_tasks: int) -> Answers:
            fields = COMPUTED_VALUES.encode(values)
            tasks = [
                COMPUTED_FILES.encode(ComputedFile(update=file, rows=rows, constants=constants))
                for file, rows, constants in zip(
                    files, map(_packed, update.rows), update.constants, strict=True
                )
            ]
            sizes = [order.add.size_bytes for order in orders]
            if size := update.source_bytes:
                tasks_max = self.settings.memory.tasks_max(size)
                parallelism = parallelism_of(self.spark)
                num_tasks = count_source_tasks(sizes, parallelism, size, tasks_max)
            assigned = assign_to_tasks(range(len(tasks)), sizes, num_tasks=num_tasks)
            messages = [(fields, [tasks[n] for n in some]) for some in assigned]
            calls = WorkerCalls(function=compute_rows, messages=messages)
            found = run_in_workers(self.spark, [calls], self.settings)
            if isinstance(found, NotApplicable):
                return found
            return [FILE_ANSWERS.decode(one) for task in found[0] for one in task]

        return self._updated(orders, computed)

    def _updated(
        self,
        orders: Sequence[RewriteOrder],
        write: Callable[[tuple[FileUpdate, ...], int], Answers],
    ) -> Rewriting:
        if (reason := self.update_refusal()) is not None:
            return NotApplicable(reason=reason)
        directories = [self._directory(order.add) for order in orders]
        tasks = self._tasks(orders, directories)
        if isinstance(tasks, NotApplicable):
            return tasks
        files = tuple(
            FileUpdate(
                ordinal=task.ordinal,
                source=task.source,
                directory=task.directory,
                name_prefix=task.name_prefix,
                num_updates=len(order.dropped) - len(order.leaving),
                leaving=order.leaving.packed(),
                touched=order.dropped.packed() if order.leaving else (b"", b""),
            )
            for task, order in zip(tasks, orders, strict=True)
        )
        sizes = [order.add.size_bytes for order in orders]
        with named_failures(self.store.root_uri):
            answers = write(files, self._count_tasks(files, sizes))
        if isinstance(answers, NotApplicable):
            self.discard()
            return answers
        refused = {one.ordinal: one.refusal for one in answers if one.refusal is not None}
        done = [one for one in answers if one.ordinal not in refused]
        found = self._rewritten(orders, directories, done, in_place=True, num_left=len(refused))
        return replace(found, refused=refused)

    def update_refusal(self) -> str | None:
        """Return the reason why no file can be updated; ``None``: `update` may do it."""
        if (reason := self._writer_refusal()) is not None:
            return reason
        if not self.settings.enabled:
            return f"{ENABLED.key} is false"
        codec = self.config.properties.compression_codec or self.writer.copy_codec
        return None if codec is None else f"files are to have the codec {codec}"

    def _writer_refusal(self) -> str | None:
        if self.writer.only_spark is not None:
            return f"{self.writer.only_spark} is set"
        return SERVER_ENCRYPTS if server_encrypts(self.spark, self.store) else None

    def plan(
        self,
        orders: Sequence[RewriteOrder],
        groups: Sequence[Sequence[RewriteOrder]] | None = None,
    ) -> Planned[Rewritten]:
        """Plan to rewrite all files, those of each group into one, if there are groups.

        To finish raises a DeltaError if a file does not hold the rows it should.
        """
        if (reason := self._writer_refusal()) is not None:
            return NotApplicable(reason=reason)
        codec = self.config.properties.compression_codec or self.writer.copy_codec
        if codec is not None and codec.strip().lower() not in COPY_CODECS:
            return NotApplicable(reason=f"only Spark writes the codec {codec}")
        directories = [self._directory(order.add) for order in orders]
        tasks = self._tasks(orders, directories)
        if isinstance(tasks, NotApplicable):
            return tasks
        if groups is not None:
            numbers = (number for number, group in enumerate(groups) for _ in group)
            columns = self._stored_columns()
            tasks = [
                replace(task, group=number, columns=columns)
                for task, number in zip(tasks, numbers, strict=True)
            ]
        return PlannedFiles(
            calls=self._calls(tasks, [order.add.size_bytes for order in orders]),
            finish=partial(self._rewritten, orders, directories),
            discard=self.discard,
            location=self.store.root_uri,
        )

    def combine(self, groups: Sequence[Sequence[RewriteOrder]]) -> list[Rewriting]:
        """Write the rows of each group into one new file, which has no tag of an old one.

        Runs one Spark job. Of a group that is refused no file is left: its files are not alike or
        have columns that the table lacks, or workers cannot read them.
        """
        orders = [order for group in groups for order in group]
        if not (orders and self.settings.enabled):
            return [NotApplicable(reason=f"{ENABLED.key} is false") for _ in groups]
        planned = self.plan(orders, groups)
        if not isinstance(planned, PlannedFiles):
            return [planned] * len(groups)
        with named_failures(self.store.root_uri):
            found = run_in_workers(self.spark, [planned.calls], self.settings)
        if isinstance(found, NotApplicable):
            self.discard()
            return [found] * len(groups)
        answers = [FILE_ANSWERS.decode(one) for task in found[0] for one in task]
        numbers = [number for number, group in enumerate(groups) for _ in group]
        refused = {numbers[one.ordinal]: one.refusal for one in answers if one.refusal is not None}
        done = [one for one in answers if numbers[one.ordinal] not in refused]
        directories = [self._directory(order.add) for order in orders]
        left = sum(len(groups[number]) for number in refused)
        written = iter(self._rewritten(orders, directories, done, num_left=left).adds)
        by_group: dict[int, Rewriting] = {
            number: NotApplicable(reason=reason) for number, reason in refused.items()
        }
        for answer in sorted(done, key=lambda one: one.ordinal):
            adds = () if answer.name is None else (self._untagged(next(written)),)
            by_group[numbers[answer.ordinal]] = Rewritten(
                adds=adds, num_rows=answer.kept_rows, copied_groups=answer.copied_groups
            )
        return [by_group[number] for number in range(len(groups))]

    def _untagged(self, add: Add) -> Add:
        tags = TableStatistics(self.config).file_tags
        return replace(add, tags=tags, clustering_provider=None)

    def _tasks(
        self, orders: Sequence[RewriteOrder], directories: Sequence[str]
    ) -> list[RewriteTask] | NotApplicable:
        paths, root_uri = DataPaths(self.store.at), self.store.root_uri
        root = paths.find(root_uri)
        adds = [order.add for order in orders]
        sources = paths.find_all(root_uri, [a.path for a in adds], [a.size_bytes for a in adds])
        if root is None or sources is None:
            return NotApplicable(reason=f"workers have no way to files of {root_uri}")
        tracked = tracked_columns(self.config)
        self._directories.update(directories)
        groups = small_groups(adds, directories, Partitioning.of(self.config))
        named = self.config.properties.compression_codec or self.writer.copy_codec or ""
        codec = COPY_CODECS.get(named.strip().lower())
        return [
            RewriteTask(
                ordinal=number,
                source=source,
                directory=joined(root, directory),
                name_prefix=f"part-{self.job_id}-{number:05d}",
                words=words,
                bits=bits,
                codec=codec,
                group=group,
                **hidden_columns(order.add, tracked),
            )
            for number, (order, source, directory, group) in enumerate(
                zip(orders, sources, directories, groups, strict=True)
            )
            for words, bits in (order.dropped.packed(),)
        ]

    def _stored_columns(self) -> tuple[str, ...]:
        """Return the columns that files of the table have."""
        tracked = tracked_columns(self.config)
        hidden = () if tracked is None else (tracked.row_id, tracked.row_commit_version)
        names = map(self.config.physical_name, self.config.schema.names)
        return (*names, *hidden)

    def _calls(self, tasks: Sequence[RewriteTask], sizes_bytes: Sequence[int]) -> WorkerCalls:
        """Assign files to Spark tasks by their sizes; files of a group stay together."""
        groups: dict[int, list[int]] = {}
        for number, task in enumerate(tasks):
            groups.setdefault(-1 - number if task.group is None else task.group, []).append(number)
        sizes = [sum(sizes_bytes[number] for number in group) for group in groups.values()]
        num_tasks = self._count_tasks(tasks, sizes)
        assigned = assign_to_tasks(list(groups.values()), sizes, num_tasks=num_tasks)
        limits = LIMITS_CODEC.encode(self._limits)
        fields = [REWRITE_TASKS.encode(task) for task in tasks]
        messages = [(limits, [fields[n] for group in some for n in group]) for some in assigned]
        return WorkerCalls(function=rewrite, messages=messages)

    def _count_tasks(
        self, files: Sequence[RewriteTask | FileUpdate], sizes_bytes: Sequence[int]
    ) -> int:
        are_objects = any(isinstance(file.source, tuple) for file in files)
        return count_tasks(sizes_bytes, parallelism_of(self.spark), are_objects=are_objects)

    def discard(self) -> None:
        """Delete every file of this job; best effort."""
        try:
            for file in list(self._files()):
                self.store.delete(file.path)
        except OSError as failure:
            logger.warning("Could not clean up %s: %s", self.store.root_uri, failure)

    def _rewritten(
        self,
        orders: Sequence[RewriteOrder],
        directories: Sequence[str],
        answers: list[FileAnswer],
        *,
        in_place: bool = False,
        num_left: int = 0,
    ) -> Rewritten:
        statistics = TableStatistics(self.config)
        adds: list[Add] = []
        written: dict[str, FileAnswer] = {}
        done: set[int] = set()
        for answer in sorted(answers, key=lambda a: a.ordinal):
            order = orders[answer.ordinal]
            copied = (answer.ordinal, *answer.others)
            done.update(copied)
            gone = count_rows(orders[n].leaving if in_place else orders[n].dropped for n in copied)
            _require_complete([orders[n] for n in copied], answer, gone)
            if answer.name is None:
                continue
            path = posixpath.join(directories[answer.ordinal], answer.name)
            written[path] = answer
            before = [orders[n].add for n in copied]
            added = added_file(answer, path, order.add.partition_values, statistics, before=before)
            tags = {**other_tags(order.add), **(added.tags or {})} or None
            provider = order.add.clustering_provider
            adds.append(replace(added, tags=tags, clustering_provider=provider))
        if len(done) + num_left != len(orders):
            raise _mismatch(f"{len(orders)} files were to be rewritten and {len(done)} were")
        with named_failures(self.store.root_uri):
            keep_answered(self.store, self._files(), written)
        note_files_of_workers(self.spark, self.store, written)
        num_updated = 0
        if in_place:
            num_updated = sum(len(orders[n].dropped) - len(orders[n].leaving) for n in done)
        return Rewritten(
            adds=tuple(adds),
            num_rows=sum(answer.kept_rows for answer in answers) - num_updated,
            num_updated=num_updated,
        )

    def _directory(self, add: Add) -> str:
        """Return where the new file goes: beside the old one, unless that lies elsewhere.

        Then it keeps the tail of partition directories: some readers take values from there.
        """
        root = self.store.root_uri
        path = path_below_root(root, add.path)
        if path is not None:
            return posixpath.dirname(path)
        parents = posixpath.dirname(absolute_uri(root, add.path)).split("/")
        tail = itertools.takewhile(lambda part: "=" in part, reversed(parents))
        return "/".join(reversed(list(tail)))

    def _files(self) -> Iterator[StoredFile]:
        """Yield the files of this job, also of attempts that failed or lost."""
        prefix = f"part-{self.job_id}"
        for directory in self._directories:
            for file in self.store.list_from(directory, prefix):
                if not file.name.startswith(prefix):
                    break
                yield file


def _packed(rows: Sequence[RowBitmap]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple(one.packed() for one in rows)


def hidden_columns(add: Add, tracked: RowTrackingColumns | None) -> dict[str, Any]:
    """Return what an order says of row ids; nothing where rows are not tracked."""
    if tracked is None:
        return {}
    return {
        "row_id_column": tracked.row_id,
        "base_row_id": add.base_row_id,
        "version_column": tracked.row_commit_version,
        "default_version": add.default_row_commit_version,
    }


def _require_complete(orders: Sequence[RewriteOrder], answer: FileAnswer, dropped: int) -> None:
    if answer.physical_rows - dropped != answer.kept_rows:
        named = ", ".join(order.add.path for order in orders[:_NAMED_MAX])
        more = "" if len(orders) <= _NAMED_MAX else f" and {len(orders) - _NAMED_MAX} more"
        raise _mismatch(
            f"{named}{more} has {answer.physical_rows} rows, {dropped} were to be "
            f"dropped and {answer.kept_rows} stayed"
        )


def _mismatch(problem: str) -> DeltaError:
    return DeltaError(Message.NUM_RECORDS_MISMATCH_REWRITE, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRewriter:
    """Rewrites files of one snapshot for one command."""

    spark: SparkSession
    store: Store
    snapshot: Snapshot
    writer: WriterSettings = field(default_factory=WriterSettings)
    _written: list[WriteResult] = field(default_factory=list, init=False)

    def rewrite(self, orders: Sequence[RewriteOrder]) -> Rewritten:
        """Rewrite all files in one Spark job; rows keep their partition, not their file."""
        files = FileTable.of(order.add for order in orders)
        config = self.snapshot.config
        tracked = tracked_columns(config)
        if tracked is None:
            rows = scan(self.spark, self.snapshot, files, with_position=True)
        else:
            names = config.schema.names
            rows = tracked_scan(self.spark, self.snapshot, files, tracked, columns=names)
        hidden = hidden_row_columns(tracked)
        dropped = {number: order.dropped for number, order in enumerate(orders)}
        marked = mark_rows(rows, {MARK: dropped}, file=FILE_ORDINAL, row=ROW_INDEX)
        kept = marked.where(~F.col(MARK)).select(
            *(F.col(quoted(name)) for name in config.schema.names), *hidden
        )
        result = write_rows(
            kept,
            store=self.store,
            config=config,
            options=JobOptions(
                enforce_constraints=False,
                rebalance=bool(config.partition_columns),
                hidden=hidden,
                files=FileOptions(parquet=self.writer.options),
            ),
        )
        self._written.append(result)
        return Rewritten(adds=result.adds, num_rows=result.num_rows)

    def discard(self) -> None:
        """Delete every file written so far."""
        for result in self._written:
            discard(result, self.store)
