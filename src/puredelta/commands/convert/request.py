"""A CONVERT that was asked for, to be looked at before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.convert.preview import ConversionPreview, preview_convert
from puredelta.commands.report.parts import FileTotals, JobCount, ReportState, RowTotals
from puredelta.commands.report.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertRequest:
    """One CONVERT TO DELTA; to explain it reads footers, and writes nothing."""

    spark: SparkSession
    identifier: str
    partition_schema: T.StructType | str | None = None
    collect_stats: bool = True

    def explain(self, mode: str = "plan") -> Report:
        """Return what would be converted; ``mode`` makes no difference."""
        del mode
        return self._report(ReportState.PLANNED)

    def dry_run(self) -> Report:
        """Return the same: all is known before the commit."""
        return self._report(ReportState.DRY_RUN)

    def _report(self, state: ReportState) -> Report:
        preview = preview_convert(
            self.spark, self.identifier, self.partition_schema, collect_stats=self.collect_stats
        )
        return convert_report(preview, state)


def convert_report(preview: ConversionPreview, state: ReportState) -> Report:
    """Return what a preview says as a report; what would stop the conversion is among the notes."""
    shown = {"location", "files", "bytes", "rows", "problem"}
    return Report(
        statement="CONVERT",
        table=preview.location,
        state=state,
        rows=RowTotals(inserted=preview.num_rows),
        files=FileTotals(added=preview.num_files, added_bytes=preview.num_bytes),
        jobs_expected=(
            JobCount(stage="footers", jobs=0, reason="1 where only Spark can read a schema"),
        ),
        details=tuple(line for line in preview.lines() if line[0] not in shown),
        notes=tuple(f"This stops the conversion: {text}" for text in preview.problems),
    )
