"""What the library does with a Parquet file, without Spark: all functions that let Arrow open one.

As in tasks of Spark, and as in the driver. Each ends with rows, or with a refusal that leaves the
file to Spark or names it. Anything else is raised.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from puredelta.commands.convert.conversion_plan import ParquetTypes
from puredelta.commands.convert.plan import found_schemas, read_files
from puredelta.commands.convert.schema import FileSchemas
from puredelta.commands.dml.staged_source import _FooterReader
from puredelta.errors import CorruptTableError, DeltaError, ErrorCode
from puredelta.log.changes.file_rows import ReadableFile, read_batches
from puredelta.log.files.file_stats import TableStatistics
from puredelta.log.files.parquet_footer import map_footers
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import DOUBLE, INTEGER, LONG, STRING, StructType
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.store.base import FileEnd
from puredelta.store.registry import open_store
from puredelta.worker.data_files.copy_rows import CopyOrder, RowGroups, copy_source_rows
from puredelta.worker.data_files.rewrite_file import RewriteTask, rewrite_together
from puredelta.worker.data_files.write_file import FileAnswer
from puredelta.worker.lookup.conditions import ResidualConditions
from puredelta.worker.lookup.key_lookup import look_up
from puredelta.worker.lookup.lookup_request import (
    LOOKUP_BATCHES,
    LOOKUP_REQUESTS,
    FileLookup,
    KeyColumn,
    LookupRequest,
)
from puredelta.worker.read_rows import ranges_of_columns
from puredelta.worker.scan_rows import FilePart, ScanError, ScanLayout, read_part
from puredelta.worker.sound_kinds import sound_parquet
from puredelta.worker.wire import Limits
from tests.fuzz.outcome import outcome
from tests.fuzz.parquet_files import SIMPLE, rows
from tests.log.files.test_file_stats import struct, table_config
from tests.worker.expressions import expression, group_condition
from tests.worker.lookup.batches import batch_of

SCHEMA: StructType = struct(id=LONG, i=INTEGER, t=STRING, d=DOUBLE)
_KINDS = {"id": pa.int64(), "i": pa.int32(), "t": pa.string(), "d": pa.float64()}
_DROPPED = RowBitmap.of_rows(np.array([3, 41], np.int64))
_WORDS, _BITS = _DROPPED.packed()
_STATISTICS = TableStatistics(table_config(SCHEMA, vectors=False))
Use: TypeAlias = Callable[[Path], str]
_NAME, _SOUND = "mutated.parquet", "sound.parquet"


def outcomes_of_file(
    directory: Path, content: bytes, sound: bytes, uses: Sequence[Use]
) -> Mapping[str, str]:
    """Use a file in some ways, beside the one that it was made of; say what came of each.

    Raises:
        Exception: anything that the callers of these functions do not expect.
    """
    (directory / _NAME).write_bytes(content)
    (directory / _SOUND).write_bytes(sound)
    found = {}
    for use in uses:
        (directory / "new").mkdir()
        found[use.__name__.strip("_")] = use(directory)
        shutil.rmtree(directory / "new")
    return found


def outcome_of_checkpoint(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Use a log whose checkpoint was changed."""
    return {"checkpoint": outcome(files)}


def _convert(directory: Path) -> str:
    """CONVERT: the sound file teaches what the others may be like."""
    store = open_store(directory.as_uri())
    listed = [file for file in store.walk("") if file.name in (_SOUND, _NAME)]
    listed.sort(key=lambda file: file.name, reverse=True)
    schemas = FileSchemas(ParquetTypes(), _ask_spark)
    found = "read"
    try:
        for file, footer, is_sparks in read_files(store, listed, _STATISTICS):
            found = "left to Spark" if is_sparks else "read"
            for kind in found_schemas(store, {footer.schema_text: file}):
                schemas.read(kind)
    except DeltaError as refusal:
        return _named(refusal)
    return found


def _ask_spark(uri: str) -> StructType:
    raise CorruptTableError(f"{uri}: Spark says", code=ErrorCode.FAILED_READ_FILE_FOOTER)


def _named(refusal: DeltaError) -> str:
    assert _NAME in str(refusal) or _SOUND in str(refusal), refusal
    assert len(str(refusal)) < 5_000, "a message repeats the input"
    return f"refused {refusal.code.name}"


def _read_in_place(directory: Path) -> str:
    """MERGE, whose source is read in place."""
    fields = [T.StructField("id", T.LongType()), T.StructField("t", T.StringType())]
    reader = _FooterReader(fields, ["id"])
    content = (directory / _NAME).read_bytes()
    try:
        (found,) = map_footers(
            [_NAME],
            reader.described,
            read_end=lambda _, size: FileEnd(content[-size:], len(content)),
        )
    except DeltaError as refusal:
        return _named(refusal)
    return type(found).__name__


def _keys_of_source(directory: Path) -> str:
    with (directory / _NAME).open("rb") as file:
        try:
            sound_parquet(file).read(columns=["id"])
        except (OSError, pa.ArrowException) as refusal:
            return f"refused {type(refusal).__name__}"
    return "read"


def _task(directory: Path, name: str, ordinal: int) -> RewriteTask:
    return RewriteTask(
        ordinal=ordinal,
        source=str(directory / name),
        directory=str(directory / "new"),
        name_prefix="part",
        words=_WORDS,
        bits=_BITS,
        group=1,
    )


def _answers(answers: list[FileAnswer]) -> str:
    refusals = [answer.refusal for answer in answers if answer.refusal]
    return "refused" if refusals else f"{sum(a.kept_rows for a in answers)} rows"


def _rewrite(directory: Path) -> str:
    answers = rewrite_together([_task(directory, _NAME, 0)], Limits())
    for answer in answers:
        assert answer.refusal or answer.kept_rows + 2 >= answer.physical_rows, answer
    return _answers(answers)


def _rewrite_together(directory: Path) -> str:
    tasks = [_task(directory, _SOUND, 0), _task(directory, _NAME, 1)]
    return _answers(rewrite_together(tasks, Limits()))


def _lookup(directory: Path, target: list[str], source: str, limits: Limits) -> str:
    conditions = ResidualConditions(
        on=expression(("greater_equal", ("target", 1), ("value", 0, pa.int32()))),
        matched=(expression(("is_valid", ("target", 0))), expression(("is_null", ("source", 0)))),
        by_source=(expression(("is_valid", ("target", 0))),),
        target_columns=(("t", pa.string()), ("i", pa.int32())),
        source_columns=(("d", pa.float64()),),
    )
    request = LookupRequest(
        keys=(KeyColumn(target="id", source="id", null_safe=False),),
        source_files=(str(directory / source),),
        conditions=conditions,
        limits=limits,
    )
    files = [FileLookup(n, str(directory / name)) for n, name in enumerate(target)]
    reason, found = look_up(
        (LOOKUP_REQUESTS.encode(request), LOOKUP_BATCHES.encode(batch_of(files)))
    )
    return "refused" if reason else f"{len(found)} sets"


def _lookup_in_target(directory: Path) -> str:
    return _lookup(directory, [_NAME], _SOUND, Limits(small_file_rows=0))


def _lookup_in_small_files(directory: Path) -> str:
    return _lookup(directory, [_SOUND, _NAME, _SOUND], _SOUND, Limits())


def _lookup_of_source(directory: Path) -> str:
    return _lookup(directory, [_SOUND], _NAME, Limits())


def _copy(directory: Path) -> str:
    source = RowGroups(
        path=str(directory / _NAME), groups=(0,), first_row=0, words=_WORDS, bits=_BITS
    )
    order = CopyOrder(
        ordinal=0,
        sources=(source,),
        include=False,
        columns=tuple((name, name, _KINDS[name]) for name in SIMPLE),
        directory=str(directory / "new"),
        name_prefix="part",
        codec="snappy",
    )
    return _answers(copy_source_rows(order))


def _scan(directory: Path) -> str:
    path = directory / _NAME
    layout = ScanLayout(
        data=rows().schema,
        constants=pa.schema([]),
        row_index="row",
        by_field_id=False,
        case_sensitive=False,
        skips_missing=False,
        condition=group_condition(
            (
                "or_kleene",
                (("equal", "id", 7), ("greater", "d", 3.0), ("starts_with", "t", "text")),
            )
        ),
    )
    size = path.stat().st_size
    parts = [
        FilePart(path=str(path), start=start, stop=stop, size=size, constants=())
        for start, stop in ((0, size), (size // 3, size))
    ]
    try:
        found = sum(batch.num_rows for part in parts for batch in read_part(layout, part))
    except ScanError as refusal:
        return "refused" if _NAME in str(refusal) else f"no file is named: {refusal}"
    return f"{found} rows"


def _places_of_object(directory: Path) -> str:
    """Choose what of an object is brought."""
    file = io.BytesIO((directory / _NAME).read_bytes())
    try:
        ranges = ranges_of_columns(["id", "t"], file)  # type: ignore[arg-type]
    except (OSError, pa.ArrowException) as refusal:
        return f"refused {type(refusal).__name__}"
    size = len(file.getvalue())
    assert all(0 <= start <= end <= size for start, end in ranges), ranges
    return "read"


def _rows_by_the_log(directory: Path) -> str:
    """What the data source and ``puredelta show`` read."""
    file = ReadableFile(
        uri=(directory / _NAME).as_uri(), partition_values={}, root_uri=directory.as_uri()
    )
    wanted = pa.schema(list(_KINDS.items()))
    try:
        batches = list(
            read_batches(file, SCHEMA, wanted, partition_columns=(), mode=ColumnMappingMode.NONE)
        )
    except DeltaError as refusal:
        return _named(refusal)
    return f"{sum(batch.num_rows for batch in batches)} rows"


USES: tuple[Use, ...] = (
    _convert,
    _read_in_place,
    _keys_of_source,
    _rewrite,
    _rewrite_together,
    _lookup_in_target,
    _lookup_in_small_files,
    _lookup_of_source,
    _copy,
    _scan,
    _places_of_object,
    _rows_by_the_log,
)
