"""Verification of a conversion's statistics against the data, before the commit.

Statistics come from footers, which other programs wrote. If those programs are not trusted, Spark
reads every row once: each value must be within its bounds, and the counts must be right. The
comparison runs in Spark and parses the statistics as readers of the log do; only the first
errors come back to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.schema.traversal import struct_fields
from puredelta.protocol.schema.types import BINARY, BOOLEAN, DataType, DecimalType, PrimitiveType
from puredelta.protocol.table.stats import LeafPath, indexed_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.names import FILE_ORDINAL
from puredelta.spark.session.types import to_spark_type

_WITHOUT_BOUNDS = (BINARY, BOOLEAN, PrimitiveType("void"))
_SHOWN = 3
_STATS, _COUNT, _PROBLEMS = "stats", "rows", "problems"


def require_statistics(*, collected: bool) -> None:
    """Refuse verification without statistics.

    Raises:
        InvalidRequestError: the conversion collects no statistics.
    """
    if not collected:
        raise InvalidRequestError(Message.OPERATION_NOT_ALLOWED_DETAIL_VERIFY)


def require_true_statistics(spark: SparkSession, snapshot: Snapshot) -> None:
    """Read all rows of a table that is to be committed and compare them with its statistics.

    Runs one job over all columns that have statistics.

    Raises:
        CorruptTableError: a bound, a count of NULLs or of rows is wrong; the message names the
            files, the columns and the values.
    """
    leaves = _leaves(snapshot.config)
    columns = tuple(dict.fromkeys(leaf.logical[0] for leaf in leaves))
    rows = scan(spark, snapshot, columns=columns, with_position=True)
    found = rows.groupBy(FILE_ORDINAL).agg(
        F.count(F.lit(1)).alias(_COUNT),
        *(value.alias(name) for leaf in leaves for name, value in leaf.aggregates()),
    )
    known = _statistics(spark, snapshot, leaves).join(found, FILE_ORDINAL, "left")
    deleted = F.col("deleted")
    problems = [
        _problem(
            ~(F.col(f"{_STATS}.numRecords") - deleted).eqNullSafe(
                F.coalesce(F.col(_COUNT), F.lit(0))
            ),
            "it has {} rows, and the statistics say {}",
            F.coalesce(F.col(_COUNT), F.lit(0)),
            F.col(f"{_STATS}.numRecords") - deleted,
        ),
        *(problem for leaf in leaves for problem in leaf.problems()),
    ]
    wrong = known.select(FILE_ORDINAL, F.array_compact(F.array(*problems)).alias(_PROBLEMS))
    mistakes = wrong.where(F.size(_PROBLEMS) > 0).limit(_SHOWN).collect()
    if mistakes:
        raise _wrong(snapshot, [(row[0], row[1]) for row in mistakes])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaf:
    """One column with statistics: its names, and those of its aggregates."""

    number: int
    logical: LeafPath
    physical: LeafPath
    type: DataType

    @property
    def shown(self) -> str:
        return ".".join(self.logical)

    @property
    def is_bounded(self) -> bool:
        bounded = isinstance(self.type, PrimitiveType | DecimalType)
        return bounded and self.type not in _WITHOUT_BOUNDS

    def aggregates(self) -> Iterator[tuple[str, Column]]:
        """Yield the aggregates over the rows of a file, by name."""
        value = _column(self.logical)
        yield f"n{self.number}", F.count(value)
        if self.is_bounded:
            yield f"a{self.number}", F.min(value)
            yield f"z{self.number}", F.max(value)

    def problems(self) -> Iterator[Column]:
        """Yield an error text for each wrong statistic, NULL for a correct one."""
        rows, values = F.coalesce(F.col(_COUNT), F.lit(0)), F.col(f"n{self.number}")
        nulls, stated = rows - F.coalesce(values, F.lit(0)), self._stated("nullCount")
        # Deleted rows can be NULL in the column, too.
        may_be = (stated >= nulls) & (stated <= nulls + F.col("deleted"))
        yield _problem(
            ~may_be, f"{self.shown} is NULL in {{}} rows, the statistics say {{}}", nulls, stated
        )
        if self.is_bounded:
            low, high = F.col(f"a{self.number}"), F.col(f"z{self.number}")
            text = f"{self.shown} has the value {{}}, and the statistics say that its"
            minimum, maximum = self._stated("minValues"), self._stated("maxValues")
            yield _problem(minimum > low, f"{text} minimum is {{}}", low, minimum)
            yield _problem(maximum < high, f"{text} maximum is {{}}", high, maximum)

    def _stated(self, kind: str) -> Column:
        return _column((_STATS, kind, *self.physical))


def _leaves(config: TableConfig) -> Sequence[_Leaf]:
    types = {path: found.type for path, found in struct_fields(config.data_schema)}
    return [
        _Leaf(number=n, logical=path, physical=config.physical_path(path), type=types[path])
        for n, path in enumerate(indexed_columns(config.data_schema, config.properties))
    ]


def _column(path: LeafPath) -> Column:
    return F.col(".".join(f"`{name.replace('`', '``')}`" for name in path))


def _problem(is_wrong: Column, text: str, *values: Column) -> Column:
    shown = F.format_string(
        text.replace("%", "%%").replace("{}", "%s"), *(v.cast("string") for v in values)
    )
    return F.when(is_wrong, shown)


def _statistics(spark: SparkSession, snapshot: Snapshot, leaves: Sequence[_Leaf]) -> DataFrame:
    """Return the statistics of each file, as they are to be committed."""
    files = snapshot.files
    table = pa.table(
        {
            FILE_ORDINAL: pa.array(range(len(files)), pa.int32()),
            "deleted": files.deleted_counts(),
            "text": pa.array([add.stats for add in files.adds()], pa.string()),
        }
    )
    text = spark.createDataFrame(table)
    parsed = F.from_json("text", _schema(leaves)).alias(_STATS)
    return text.select(FILE_ORDINAL, F.col("deleted").cast("bigint").alias("deleted"), parsed)


def _schema(leaves: Sequence[_Leaf]) -> T.StructType:
    bounds = _nested(
        [(leaf.physical, to_spark_type(leaf.type)) for leaf in leaves if leaf.is_bounded]
    )
    return T.StructType(
        [
            T.StructField("numRecords", T.LongType()),
            T.StructField("minValues", bounds),
            T.StructField("maxValues", bounds),
            T.StructField("nullCount", _nested([(leaf.physical, T.LongType()) for leaf in leaves])),
        ]
    )


def _nested(leaves: Sequence[tuple[LeafPath, T.DataType]]) -> T.StructType:
    """Return a struct that has these leaves, in which structs may hold structs."""
    fields: dict[str, T.DataType | list[tuple[LeafPath, T.DataType]]] = {}
    for (name, *rest), data_type in leaves:
        if not rest:
            fields[name] = data_type
            continue
        inner = fields.setdefault(name, [])
        if isinstance(inner, list):
            inner.append((tuple(rest), data_type))
    return T.StructType(
        [
            T.StructField(name, _nested(found) if isinstance(found, list) else found)
            for name, found in fields.items()
        ]
    )


def _wrong(snapshot: Snapshot, mistakes: Sequence[tuple[int, Sequence[str]]]) -> CorruptTableError:
    adds = list(snapshot.files.take([number for number, _ in mistakes]).adds())
    shown = "\n".join(
        f"{add.path}: {'; '.join(problems[:_SHOWN])}"
        for add, (_, problems) in zip(adds, mistakes, strict=True)
    )
    return CorruptTableError(
        Message.WRONG_STATISTICS,
        shown=shown,
        path=snapshot.root_uri,
        files=tuple(add.path for add in adds),
    )
