"""The rows of a table version as a DataFrame: exactly its files, under its schema.

Reads no data and runs no job; deletion vectors are read when the frame is made. Columns have
their logical names and current types, even where the files have other names (column mapping) or
narrower types (type widening). Everything is nullable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.log.files.deletion_vectors import read_positions
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.skipping.calendar_gap import gap_columns
from puredelta.protocol.table.row_tracking import (
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    RowTrackingColumns,
    tracked_columns,
)
from puredelta.spark.connect.messages import with_known_columns
from puredelta.spark.scan.arrow_scan import arrow_scan, pruning_arrow_scan
from puredelta.spark.scan.bitmaps import rows_by_file, rows_outside
from puredelta.spark.scan.connect_scan import connect_scan
from puredelta.spark.scan.data_file import DataFile, ReadLayout
from puredelta.spark.scan.field_ids import have_names_of_ids
from puredelta.spark.scan.late_planner import late_rows
from puredelta.spark.scan.late_scan import LateScan
from puredelta.spark.scan.native_scan import native_scan, skipping_scan
from puredelta.spark.scan.scan_columns import (
    PARQUET_ROW_INDEX,
    ScanColumns,
    client_metadata_text,
    days_in,
    fields_of,
    metadata_type,
)
from puredelta.spark.scan.skippable_files import SkippableFiles, data_files, is_for_spark
from puredelta.spark.session.data_access import DataIo, DataPaths, data_io
from puredelta.spark.session.delta_conf import BOUNDS_TELL_NAN
from puredelta.spark.session.names import (
    BASE_ROW_ID,
    FILE_ORDINAL,
    METADATA,
    METADATA_OF_ROW,
    ROW_INDEX,
)
from puredelta.spark.session.session import (
    is_connect,
    known_settings,
    setting_of,
    settings_of,
    version_of_spark,
)
from puredelta.spark.session.types import as_nullable, without_table_metadata
from puredelta.spark.values.char_varchar import read_limits
from puredelta.store.base import Store
from puredelta.store.registry import open_store

TABLE_OPTION = "puredelta.table"
VERSION_OPTION = "puredelta.version"
TIME_TRAVEL_OPTION = "puredelta.timeTravel"
"""Reader options that say what a relation reads. Spark compares them: two scans of the same
files are the same to its cache only if they mean the same version for the same reason."""
TABLE_OPTIONS = frozenset({"puredelta.table", "puredelta.version", "puredelta.timetravel"})
"""Their names, as Spark compares them: a relation that has them reads a version of a table."""
POSITION = (FILE_ORDINAL, ROW_INDEX)
"""Where a row lies: the columns that `scan` adds for it."""
_SKIPPABLE_MIN = 2
"""Asking costs a query a few milliseconds, about as much as opening a file."""
_NO_FILE_MAY_BE_MISSING = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
"""A user may choose to read past lost files, but rows that are to be rewritten must be there."""
_NO_METADATA_UNDER_AN_ALIAS = "4.0."
"""Such servers find the ``_metadata`` of a relation under an alias only right below it."""
_USUAL_NAMES_ARE_IGNORED = {"ignoredPathSegmentRegex": "^[._]"}
"""A setting of PySpark 4.3 leaves files out by their names, but the log names those of a table.

The default: it hides what `require_readable` refuses, and with another one, even an empty one,
Spark's index lists the virtual directory, where no file is.
"""


def scan(
    spark: SparkSession,
    snapshot: Snapshot,
    files: FileTable | None = None,
    *,
    columns: Sequence[str] | None = None,
    with_position: bool = False,
    time_travel: bool = False,
) -> DataFrame:
    """Return the rows of ``files``, by default all files of the snapshot.

    ``columns`` are top-level columns by their exact logical names, in the order wanted; only
    they are read. ``with_position`` adds `FILE_ORDINAL` (int, index into ``files``) and
    `ROW_INDEX` (long, physical row in its file, deleted rows counted). Rows that a deletion
    vector deletes are left out. On classic sessions ``_metadata`` stays reachable.
    ``time_travel`` tells that the user chose the version. On classic sessions a query over all
    files reads those that its conditions can reach, unless positions are asked for.

    Examples:
        >>> scan(spark, log.snapshot(), columns=["id"]).count()  # doctest: +SKIP
        1200
    """
    if is_connect(spark) and files is None and not with_position:
        settings = settings_of(spark)
        with known_settings(settings):
            read = for_query(spark, read_columns(spark, snapshot, columns))
            return _late_scan(spark, snapshot, read, settings, time_travel=time_travel)
    read = read_columns(spark, snapshot, columns, files)
    if not with_position:
        read = for_query(spark, read)
    rows = physical_rows(
        spark, snapshot, files, read, with_position=with_position, time_travel=time_travel
    )
    return _selected(rows, read, with_position=with_position)


def _selected(rows: DataFrame, read: ScanColumns, *, with_position: bool) -> DataFrame:
    selected = read.select(rows, *(POSITION if with_position else ()))
    if not is_connect(rows.sparkSession):
        return selected
    fields = _shown(read).fields
    position = zip(POSITION, (T.IntegerType(), T.LongType()), strict=True)
    added = [T.StructField(*one) for one in position] if with_position else []
    return with_known_columns(selected, T.StructType([*fields, *added]))


def _shown(read: ScanColumns) -> T.StructType:
    """Return the columns that a frame of a client shows; what is nested may be NULL."""
    columns = without_table_metadata(read.wanted).fields
    return T.StructType(
        [T.StructField(f.name, as_nullable(f.dataType), f.nullable, f.metadata) for f in columns]
    )


def _late_scan(
    spark: SparkSession,
    snapshot: Snapshot,
    read: ScanColumns,
    settings: Mapping[str, str],
    *,
    time_travel: bool,
) -> DataFrame:
    """Return the rows of a snapshot over Connect, whose files are chosen when a plan is sent."""
    tracked = readable_ids(spark, snapshot)

    def make(files: FileTable, names: frozenset[str] | None) -> DataFrame:
        some = read if names is None else read.only(names)
        return some.select(physical_rows(spark, snapshot, files, some, time_travel=time_travel))

    def make_with_metadata(files: FileTable) -> DataFrame:
        return _with_metadata(spark, snapshot, files, read, tracked)

    by_spark = is_for_spark(spark, snapshot.files, snapshot.root_uri)
    may_show = by_spark and not _has_name_of_metadata(snapshot)
    late = LateScan(
        files=SkippableFiles.of(snapshot),
        make=make,
        shown=_shown(read),
        settings=settings,
        by_column=not by_spark,
        with_metadata=make_with_metadata if may_show or not len(snapshot.files) else None,
        server_shows_metadata=lambda: (
            tracked is None
            and len(snapshot.files) > 0
            and not version_of_spark(spark).startswith(_NO_METADATA_UNDER_AN_ALIAS)
        ),
    )
    return late_rows(spark, late, _origin_options(snapshot, time_travel=time_travel))


def readable_ids(spark: SparkSession, snapshot: Snapshot) -> RowTrackingColumns | None:
    """Return the columns in files that keep ids of rows; None if a query cannot show the ids."""
    config = snapshot.config
    names = config.metadata.configuration
    if not (names.get(ROW_ID_COLUMN) and names.get(ROW_COMMIT_VERSION_COLUMN)):
        return None
    tracked = tracked_columns(config)
    if tracked is None or not config.schema.fields or _has_name_of_metadata(snapshot):
        return None
    return tracked if is_for_spark(spark, snapshot.files, snapshot.root_uri) else None


def _has_name_of_metadata(snapshot: Snapshot) -> bool:
    """Return whether a table has a column of a name that `METADATA_OF_ROW` is made of."""
    names = (METADATA, PARQUET_ROW_INDEX)
    return any(snapshot.config.schema.find_ignoring_case(n) is not None for n in names)


def _with_metadata(
    spark: SparkSession,
    snapshot: Snapshot,
    files: FileTable,
    read: ScanColumns,
    tracked: RowTrackingColumns | None,
) -> DataFrame:
    """Return rows over Connect with `METADATA_OF_ROW`, which is NULL if there is no file."""
    some = read if tracked is None else read.with_row_ids(tracked)
    rows = physical_rows(spark, snapshot, files, some)
    text = client_metadata_text(tracked) if len(files) else "NULL"
    metadata = F.expr(text).cast(metadata_type(tracked))
    return read.select(rows.withColumn(METADATA_OF_ROW, metadata), METADATA_OF_ROW)


def scan_strictly(
    spark: SparkSession,
    snapshot: Snapshot,
    files: FileTable | None = None,
    *,
    columns: Sequence[str] | None = None,
    time_travel: bool = False,
) -> DataFrame:
    """Return rows as `scan` does, for a command that must see all of them.

    A missing or damaged file is an error, whatever the session says.
    """
    read = replace(read_columns(spark, snapshot, columns, files), misses_no_file=True)
    return read.select(physical_rows(spark, snapshot, files, read, time_travel=time_travel))


def read_columns(
    spark: SparkSession,
    snapshot: Snapshot,
    columns: Sequence[str] | None,
    files: FileTable | None = None,
) -> ScanColumns:
    """Return what is read for columns of a table, all of them for None; errors as `scan`.

    ``files`` are those that are read, by default all of the snapshot.
    """
    config = snapshot.config
    fields = fields_of(config.schema, columns)
    chosen = snapshot.files if files is None else files
    read = ScanColumns.of(config, fields, read_limits(spark, config))
    return replace(
        read,
        gap_columns=gap_columns(chosen, config, fields),
        keeps_conditions=read.by_field_id and not is_connect(spark),
    )


def for_query(spark: SparkSession, read: ScanColumns) -> ScanColumns:
    """Return what is read for a query of the user's, who may say that bounds tell of NaN."""
    key, default = BOUNDS_TELL_NAN.key, BOUNDS_TELL_NAN.default
    tells = BOUNDS_TELL_NAN.read({key: setting_of(spark, key, str(default))})
    return replace(read, bounds_tell_nan=tells)


def physical_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    files: FileTable | None,
    read: ScanColumns,
    *,
    with_position: bool = False,
    time_travel: bool = False,
) -> DataFrame:
    """Return the columns of ``read`` as they are in files, of rows that are not deleted.

    The rest as in `scan`.
    """
    chosen = snapshot.files if files is None else files
    deleted = read_positions(chosen, snapshot.root_uri, open_at=snapshot.open_at)
    read_files: Sequence[DataFile] | SkippableFiles
    with_row_ids = BASE_ROW_ID in read.partition_schema.names
    may_skip = files is None and not with_position and not is_connect(spark)
    if may_skip and (
        len(chosen) >= _SKIPPABLE_MIN or not is_for_spark(spark, chosen, snapshot.root_uri)
    ):
        read_files = SkippableFiles.of(snapshot, numbered=list(deleted), with_row_ids=with_row_ids)
    else:
        ordinals = {n: n for n in (range(len(chosen)) if with_position else deleted)}
        read_files = data_files(chosen, snapshot.root_uri, ordinals, with_row_ids=with_row_ids)
    rows = _read(
        spark,
        read_files,
        read,
        has_ordinal=with_position or bool(deleted),
        options={
            **_origin_options(snapshot, time_travel=time_travel),
            **_strictness(strict=with_position or read.misses_no_file),
        },
        open_at=snapshot.open_at,
    )
    # Without deletion vectors a table stays one pure scan.
    return rows_outside(rows, rows_by_file(deleted)) if deleted else rows


def scan_parquet(
    spark: SparkSession,
    files: Sequence[DataFile],
    *,
    schema: T.StructType,
    with_position: bool = False,
    open_at: Callable[[str], Store] = open_store,
) -> DataFrame:
    """Return the rows of any Parquet files, read by column name under ``schema``.

    For files that no log names, such as staged ones; their partition values are not looked
    at. ``with_position`` as in `scan`, the ordinal being the index into ``files``. ``open_at``
    opens a directory with the settings of the session.
    """
    read = ScanColumns(
        data_schema=schema,
        partition_schema=T.StructType(),
        wanted=without_table_metadata(schema),
        sources=tuple(schema.names),
        is_mapped=False,
        gap_columns=days_in(schema),
    )
    numbered = [
        replace(file, partition_values={FILE_ORDINAL: str(n)}) for n, file in enumerate(files)
    ]
    rows = _read(
        spark,
        numbered,
        read,
        has_ordinal=with_position,
        options=_strictness(strict=True),
        open_at=open_at,
    )
    return _selected(rows, read, with_position=with_position)


def _read(
    spark: SparkSession,
    files: Sequence[DataFile] | SkippableFiles,
    read: ScanColumns,
    *,
    has_ordinal: bool,
    options: Mapping[str, str],
    open_at: Callable[[str], Store],
) -> DataFrame:
    """Return physical columns, with `FILE_ORDINAL` and `ROW_INDEX` if they are needed."""
    ordinal = [T.StructField(FILE_ORDINAL, T.IntegerType())] if has_ordinal else []
    layout = ReadLayout(
        data_schema=read.data_schema,
        partition_schema=T.StructType([*read.partition_schema.fields, *ordinal]),
        options={**_USUAL_NAMES_ARE_IGNORED, **options},
        by_field_id=read.by_field_id,
        required=read.required,
    )
    row_index = ROW_INDEX if has_ordinal else None
    if isinstance(files, SkippableFiles):
        if not files.is_for_spark(spark):
            paths = DataPaths(open_at)
            return pruning_arrow_scan(spark, files, layout, paths=paths, row_index=row_index)
        rows = skipping_scan(spark, files, layout)
    elif data_io(spark, (file.uri for file in files)) is DataIo.ARROW or not _finds_columns(
        spark, files, layout, open_at
    ):
        return arrow_scan(spark, files, layout, paths=DataPaths(open_at), row_index=row_index)
    else:
        reader = connect_scan if is_connect(spark) else native_scan
        rows = reader(spark, files, layout)
    if not has_ordinal:
        return rows
    if not files and is_connect(spark):  # an empty relation there has no _metadata
        return rows.withColumn(ROW_INDEX, F.lit(0).cast("long"))
    has_own = PARQUET_ROW_INDEX in read.data_schema.names
    row = PARQUET_ROW_INDEX if has_own else "_metadata.row_index"
    return rows.withColumn(ROW_INDEX, F.col(row))


def _finds_columns(
    spark: SparkSession,
    files: Sequence[DataFile],
    layout: ReadLayout,
    open_at: Callable[[str], Store],
) -> bool:
    """Return whether Spark finds the columns of files: by id it does in classic sessions only."""
    if not (layout.by_field_id and is_connect(spark)):
        return True
    return have_names_of_ids(files, layout.data_schema, open_at)


def _origin_options(snapshot: Snapshot, *, time_travel: bool) -> Mapping[str, str]:
    return {
        TABLE_OPTION: snapshot.address,
        VERSION_OPTION: str(snapshot.version),
        TIME_TRAVEL_OPTION: str(time_travel).lower(),
    }


def _strictness(*, strict: bool) -> Mapping[str, str]:
    return _NO_FILE_MAY_BE_MISSING if strict else {}
