"""What OPTIMIZE and auto compaction decide before anything runs: no Spark."""

from __future__ import annotations

import pytest

from puredelta.commands.compaction import (
    AutoCompactSettings,
    OptimizeSettings,
    added_partitions,
    operation_metrics,
    partitions_over_threshold,
)
from puredelta.commands.optimize import resolve_z_columns
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.schema.types import INTEGER, STRING, StructField, StructType
from puredelta.protocol.table.partitioning import PartitionColumn, Partitioning
from puredelta.protocol.table.table_config import TableConfig
from tests.log.tables import PLAIN, add, metadata

AUTO = "delta.autoOptimize.autoCompact"


def table(**properties: str) -> TableConfig:
    inner = StructType((StructField("x", INTEGER), StructField("odd.name", STRING)))
    fields = (StructField("id", INTEGER), StructField("S", inner), StructField("p", STRING))
    found = metadata(partitioned_by=("p",), schema=StructType(fields), **properties)
    return TableConfig.of(PLAIN, found)


def paths(*names: str, config: TableConfig | None = None, **flags: bool) -> list[tuple[str, ...]]:
    chosen = {"case_sensitive": False, "checks_statistics": True, **flags}
    return [path for path, _ in resolve_z_columns(names, config or table(), **chosen)]


def test_z_columns_are_found() -> None:
    assert paths("ID", "s.X", "s.`odd.name`", "S") == [
        ("id",),
        ("S", "x"),
        ("S", "odd.name"),
        ("S",),
    ]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("P", ErrorCode.ZORDERING_ON_PARTITION_COLUMN),
        ("nope", ErrorCode.ZORDERING_COLUMN_DOES_NOT_EXIST),
        ("S.nope", ErrorCode.ZORDERING_COLUMN_DOES_NOT_EXIST),
        ("id.x", ErrorCode.ZORDERING_COLUMN_DOES_NOT_EXIST),
        ("", ErrorCode.ZORDERING_COLUMN_DOES_NOT_EXIST),
        ("id, S.x", ErrorCode.ZORDERING_COLUMN_DOES_NOT_EXIST),
    ],
)
def test_other_z_columns_are_refused(name: str, code: ErrorCode) -> None:
    with pytest.raises(InvalidRequestError) as error:
        paths(name)
    assert error.value.code is code


def test_columns_without_statistics_are_refused_unless_the_user_insists() -> None:
    config = table(delta__dataSkippingNumIndexedCols="2")
    assert paths("id", "S", config=config) == [("id",), ("S",)]
    with pytest.raises(InvalidRequestError) as error:
        paths("id", "s.`odd.name`", config=config)
    assert error.value.code is ErrorCode.ZORDERING_ON_COLUMN_WITHOUT_STATS
    assert paths("s.`odd.name`", config=config, checks_statistics=False) == [("S", "odd.name")]
    with pytest.raises(InvalidRequestError):
        paths("ID", case_sensitive=True)


def settings(**given: str) -> dict[str, str]:
    return {f"spark.databricks.delta.{k.replace('__', '.')}": v for k, v in given.items()}


def test_defaults_are_those_of_delta_spark() -> None:
    found = OptimizeSettings.parse(settings())
    assert (found.limits.min_file_size, found.limits.max_file_size) == (1 << 30, 1 << 30)
    assert (found.limits.max_deleted_rows_ratio, found.checks_statistics) == (0.05, True)
    with pytest.raises(InvalidRequestError, match=r"optimize\.maxFileSize cannot be 'much'"):
        OptimizeSettings.parse(settings(optimize__maxFileSize="much"))
    with pytest.raises(InvalidRequestError, match="from 0 to 1"):
        OptimizeSettings.parse(settings(optimize__maxDeletedRowsRatio="2"))


@pytest.mark.parametrize(
    ("session", "properties", "wanted"),
    [
        (None, {}, False),
        (None, {AUTO: "true"}, True),
        (None, {AUTO: "false"}, False),
        (None, {"delta.autoOptimize": "true", AUTO: "false"}, True),
        ("false", {"delta.autoOptimize": "true", AUTO: "true"}, False),
        ("true", {}, True),
    ],
)
def test_the_session_has_the_first_word(
    session: str | None, properties: dict[str, str], *, wanted: bool
) -> None:
    given = {} if session is None else {"autoCompact__enabled": session}
    found = AutoCompactSettings.parse(settings(**given), TableProperties.of(properties))
    assert (found is not None) is wanted
    if found is not None:
        assert (found.limits.min_file_size, found.limits.max_file_size) == (1 << 26, 1 << 27)
        assert (found.min_num_files, found.changed_partitions_only) == (50, True)


def test_partitions_of_new_rows_and_of_many_files() -> None:
    x, y = (add(f"{p}{n}", {"p": p}) for n, p in enumerate("xy"))
    by_text = Partitioning(
        columns=(PartitionColumn(physical_name="p", type=STRING, is_padded=False, time_zone=None),)
    )
    assert added_partitions([x, add("z", {"p": "z"}, data_change=False)], by_text) == {("x",)}
    files = FileTable.of([y, x, y, x, x])
    assert partitions_over_threshold(files, by_text, min_num_files=2) == [("x",), ("y",)]
    files = FileTable.of([x, y, x])
    assert partitions_over_threshold(files, by_text, min_num_files=2) == [("x",)]


def test_metrics_of_nothing_left() -> None:
    """All rows of the files were deleted ones."""
    assert operation_metrics((), ())["p50FileSize"] == 0
