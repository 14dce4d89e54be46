"""The builder of an OPTIMIZE, with the methods and argument checks of ``delta.tables``."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.optimize.optimize import run_optimize
from puredelta.commands.optimize.request import OptimizeRequest
from puredelta.commands.optimize.spec import OptimizeSpec
from puredelta.commands.report.report import Report
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.pyspark_errors import methods_like_pyspark

__all__ = ["DeltaOptimizeBuilder"]


@methods_like_pyspark
class DeltaOptimizeBuilder:
    """An OPTIMIZE in the making: `where` returns a new builder, the others run it."""

    def __init__(self, spark: SparkSession, log: TableLog, spec: OptimizeSpec) -> None:
        self._spark = spark
        self._log = log
        self._spec = spec

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Look at no partitions but those for which this SQL condition is true, too.

        Raises:
            TypeError: it is no text.
        """
        if not isinstance(partitionFilter, str):
            raise TypeError(f"partitionFilter must be str. Found {type(partitionFilter)}")
        predicates = (*self._spec.predicates, partitionFilter)
        spec = replace(self._spec, predicates=predicates)
        return DeltaOptimizeBuilder(self._spark, self._log, spec)

    def explain(self, *cols: str) -> Report:
        """Return which files would be rewritten, and why; nothing is read but the log.

        ``cols`` are those of `executeZOrderBy`; without any it is about `executeCompaction`.
        """
        return self._asked(cols).explain()

    def dry_run(self, *cols: str) -> Report:
        """Return the same as the report of a dry run: the files are known before a row is read."""
        return self._asked(cols).dry_run()

    def _asked(self, cols: tuple[str, ...]) -> OptimizeRequest:
        spec = replace(self._spec, z_order_by=cols)
        return OptimizeRequest(spark=self._spark, log=self._log, spec=spec)

    def executeCompaction(self) -> DataFrame:
        """Bring small files together, and rewrite those that lost many rows.

        Returns:
            One row: ``path`` and ``metrics``, a struct of counts and sizes.

        Raises:
            InvalidRequestError: a filter is none on partition columns.
            ConflictError: another writer deleted one of the files meanwhile.
            UnsupportedError: the table needs what is not implemented.
        """
        return run_optimize(self._spark, self._log, self._spec)

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Order the rows of each partition along a Z-order curve over these columns.

        Returns:
            One row, as `executeCompaction`.

        Raises:
            TypeError: a column is no text.
            InvalidRequestError: a column partitions the table, does not exist or gets no
                statistics.

        Examples:
            >>> today = events.optimize().where("day = '2024-01-01'")  # doctest: +SKIP
            >>> today.executeZOrderBy("user_id")  # doctest: +SKIP
        """
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        columns: list[str] = []
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"Z-order column must be str. Found {name} with type {type(name)}")
            columns.append(name)
        spec = replace(self._spec, z_order_by=tuple(columns))
        return run_optimize(self._spark, self._log, spec)
