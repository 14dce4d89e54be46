"""Groups of files rewritten, each as one file or a few, in one Spark job.

Every output file is one partition of one shuffle, so no task writes two files and all are
written at once. Rows keep the order of their files, unless an order along a curve is asked for.
Deleted rows are left out, row ids are kept, nothing is checked: the rows were in the table before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import accumulate

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.log.files.clock import random_id
from puredelta.log.files.file_table import FileTable
from puredelta.log.maintenance.compaction_plan import Bin
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.features.column_mapping import PHYSICAL_NAME
from puredelta.protocol.schema.types import INTEGER, StructField, StructType
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.row_tracking_scan import hidden_row_columns, tracked_scan
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.names import BIN, CURVE_PLACE, FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.types import quoted
from puredelta.spark.write.parquet_job import SESSION_FILES, FileOptions
from puredelta.spark.write.writer import JobOptions, write_rows
from puredelta.spark.write.written_files import WriteResult
from puredelta.spark.write.zorder_curves import SECTION, CurveOrder, placed_rows
from puredelta.store.base import Store

_MASK = 0xFFFFFFFF
_HASH_SEED = 42


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BinOptions:
    """Options for writing the rows of bins."""

    order: CurveOrder | None = None
    """The curve along which rows are sorted; ``None``: rows keep the order of their files."""
    into: TableConfig | None = None
    """The table that the files are for, if not as it is in the snapshot: the same columns, under
    other names inside files or without statistics."""
    files: FileOptions = SESSION_FILES
    """Settings of Parquet's writer, which those of one write have in auto compaction, too."""


def rewrite_bins(
    spark: SparkSession,
    store: Store,
    snapshot: Snapshot,
    bins: Sequence[Bin],
    options: BinOptions,
) -> WriteResult:
    """Write the rows of every bin into new files; the caller commits or discards them.

    Runs one Spark job of two stages; with an order, a job before it takes a sample.
    """
    config, order = snapshot.config if options.into is None else options.into, options.order
    binned = _Binned(snapshot=snapshot, bins=bins, column=f"bin-{random_id()}")
    keys = partition_keys(sum(each.num_ranges for each in bins))
    if order is None:
        rows = binned.rows(spark, keys)
        sent_by, sorted_by = F.col(BIN), [F.col(FILE_ORDINAL), F.col(ROW_INDEX)]
    else:
        numbers = range(len(bins))
        sections = [each.num_ranges for each in bins]
        sampled = binned.positions(spark, numbers, columns=order.column_names)
        rows = placed_rows(spark, binned.rows(spark, numbers), order, sampled, sections)
        sent_by = _element(keys, _element(_starts(sections), F.col(BIN)) + F.col(SECTION))
        sorted_by = [F.col(CURVE_PLACE), F.col(FILE_ORDINAL), F.col(ROW_INDEX)]
    hidden = hidden_row_columns(tracked_columns(config))
    sorted_rows = rows.repartition(len(keys), sent_by).sortWithinPartitions(*sorted_by)
    return write_rows(
        sorted_rows.select(*(F.col(quoted(name)) for name in config.schema.names), *hidden),
        store=store,
        config=config,
        options=JobOptions(
            enforce_constraints=False, keeps_order=True, hidden=hidden, files=options.files
        ),
    )


def _starts(sections: Sequence[int]) -> list[int]:
    """Return the number of every bin's first section."""
    return [0, *accumulate(sections)][: len(sections)]


def _element(values: Sequence[int], index: Column) -> Column:
    texts = ",".join(map(str, values))
    return F.get(F.expr(f"array({texts})"), index)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Binned:
    """The files of all bins as a table with one more partition column: a number per bin.

    So the scan stays one scan, and a row's bin costs nothing.
    """

    snapshot: Snapshot
    bins: Sequence[Bin]
    column: str
    """A name that no column of a table has."""

    def rows(self, spark: SparkSession, numbers: Sequence[int]) -> DataFrame:
        """Return all rows with their position, row ids, and as `BIN` the number of their bin."""
        names = self.snapshot.config.schema.names
        tracked = tracked_columns(self.snapshot.config)
        if tracked is None:
            return self.positions(spark, numbers, columns=names)
        columns = [*names, self.column]
        rows = tracked_scan(spark, self._snapshot(), self._files(numbers), tracked, columns=columns)
        return rows.withColumnRenamed(self.column, BIN)

    def positions(
        self, spark: SparkSession, numbers: Sequence[int], *, columns: Sequence[str]
    ) -> DataFrame:
        """Return some columns of all rows, with position and `BIN`."""
        rows = scan(
            spark,
            self._snapshot(),
            self._files(numbers),
            columns=[*columns, self.column],
            with_position=True,
        )
        return rows.withColumnRenamed(self.column, BIN)

    def _snapshot(self) -> Snapshot:
        config = self.snapshot.config
        field = StructField(self.column, INTEGER, metadata={PHYSICAL_NAME: self.column})
        return dataclasses.replace(
            self.snapshot,
            config=dataclasses.replace(
                config,
                schema=StructType((*config.schema.fields, field)),
                partition_columns=(*config.partition_columns, self.column),
            ),
        )

    def _files(self, numbers: Sequence[int]) -> FileTable:
        return FileTable.of(
            dataclasses.replace(
                add, partition_values={**add.partition_values, self.column: str(number)}
            )
            for each, number in zip(self.bins, numbers, strict=False)
            for add in each.files
        )


# --- hash partitions ------------------------------------------------------------------------
#
# ``repartition(n, column)`` puts a row into partition ``pmod(murmur3(column), n)``. With a number
# chosen for every partition a frame is cut exactly as wanted: a group of rows per task, none with
# two of them and none empty, on every version and kind of session.


def partition_keys(num_partitions: int) -> tuple[int, ...]:
    """Return, for each partition in order, an int that Spark sends there.

    >>> partition_keys(3)
    (0, 1, 11)
    """
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < num_partitions:
        found.setdefault(spark_hash(candidate) % num_partitions, candidate)
        candidate += 1
    return tuple(found[number] for number in range(num_partitions))


def spark_hash(value: int) -> int:
    """Return ``hash(value)`` of Spark SQL for an ``int``: 32-bit Murmur3 with its seed.

    >>> spark_hash(1)
    -559580957
    """
    mixed = _rotated(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    state = (_rotated(_HASH_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= 4  # the length in bytes
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
