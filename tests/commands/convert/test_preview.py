"""A conversion that is only looked at, and partition columns that the directories suggest."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.commands.convert.partitions import INFER, infer_partitions, shown_ddl
from puredelta.commands.convert.preview import ConversionPreview, preview_convert
from puredelta.errors import InvalidRequestError
from tests.commands.convert.directories import adds, contents, first_commit, write
from tests.commands.sessions import FakeSession


def preview(root: Path, *given: str | T.StructType, **options: bool) -> ConversionPreview:
    before = contents(root)
    found = preview_convert(FakeSession(), f"parquet.`{root}`", *given, **options)
    assert contents(root) == before
    assert not (root / "_delta_log").exists()
    return found


def test_a_preview_says_what_the_conversion_does(tmp_path: Path) -> None:
    nan = pa.array([1.0, float("nan")])
    write(tmp_path, "p=1/a.parquet", {"id": [1, 2], "f": nan, "s": [{"x": 1}, {"x": 2}]})
    write(tmp_path, "p=2/b.parquet", {"id": [3], "f": pa.array([None], pa.float64())})
    columns = T.StructType([T.StructField("p", T.IntegerType())])
    found = preview(tmp_path, columns)
    assert (found.num_files, found.num_rows, found.num_partitions) == (2, 3, 2)
    assert found.num_bytes == sum(size for size, _ in contents(tmp_path).values())
    assert found.partition_columns == ("p",)
    assert dict(found.missing_statistics) == {
        "f": "the footers of 1 of 2 files hold none that can be trusted"
    }
    assert found.problems == ()
    assert ("column id", "bigint") in found.lines()
    convert_to_delta(FakeSession(), f"parquet.`{tmp_path}`", columns)
    commit = tmp_path / "_delta_log" / f"{0:020d}.json"
    info = len(commit.read_bytes().splitlines()[0]) + 1
    assert found.commit_bytes == commit.stat().st_size - info


def test_without_statistics_nothing_is_counted(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", {"id": [1, 2]})
    found = preview(tmp_path, collect_stats=False)
    assert (found.num_rows, dict(found.missing_statistics)) == (None, {"id": "none were asked for"})


def test_problems_are_told_and_not_raised(tmp_path: Path) -> None:
    write(tmp_path, "day=2024-01-01/n=007/a.parquet", {"id": [1]})
    found = preview(tmp_path)
    [problem] = found.problems
    assert "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME" in problem
    assert "such as 'day STRING, n STRING'" in problem
    assert shown_ddl(found.inferred) == "day date, n string"
    assert found.num_files == 1
    (tmp_path / "day=2024-01-01" / "n=007" / "b.parquet").write_text("nothing")
    [problem] = preview(tmp_path, INFER).problems
    assert "DELTA_FAILED_READ_FILE_FOOTER" in problem
    assert preview(tmp_path / "absent").problems[0].startswith("[DELTA_PATH_DOES_NOT_EXIST]")


def test_what_is_a_table_has_nothing_to_preview(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", {"id": [1]})
    convert_to_delta(FakeSession(), f"parquet.`{tmp_path}`")
    found = preview_convert(FakeSession(), f"parquet.`{tmp_path}`")
    assert (found.already_delta, found.num_files) == (True, 0)


def test_columns_are_inferred_on_request(tmp_path: Path) -> None:
    for year in (2023, 2024):
        write(tmp_path, f"year={year}/odd name=a%2Fb/a.parquet", {"id": [1]})
    found = preview(tmp_path, INFER)
    assert [(c.name, c.reason) for c in found.inferred] == [
        ("year", "all 2 values are a whole number in the range of INT"),
        ("odd name", "'a/b' is text"),
    ]
    assert found.problems[0].startswith("[DELTA_INVALID_PARTITION_COLUMN_NAME]")


def test_an_inferred_conversion_is_that_of_the_columns(tmp_path: Path) -> None:
    write(tmp_path, "y=2023/d=2024-01-01/a.parquet", {"id": [1]})
    write(tmp_path, "y=__HIVE_DEFAULT_PARTITION__/d=2024-01-02/a.parquet", {"id": [1]})
    convert_to_delta(FakeSession(), f"parquet.`{tmp_path}`", " Infer ")
    info = first_commit(tmp_path)["commitInfo"][0]
    assert info["operationParameters"]["partitionedBy"] == '["y","d"]'
    values = [add["partitionValues"] for add in adds(tmp_path).values()]
    assert values == [{"y": "2023", "d": "2024-01-01"}, {"y": None, "d": "2024-01-02"}]


@pytest.mark.parametrize(
    ("texts", "kind", "reason"),
    [
        (["1", "-20"], "integer", "all 2 values are a whole number in the range of INT"),
        (["3000000000"], "long", "the only value is a whole number in the range of BIGINT"),
        (["1", "007"], "string", "'007' has a leading zero that a number would lose"),
        (["1", "9999999999999999999"], "string", "'9999999999999999999' is text"),
        (["1.5"], "string", "'1.5' is text"),
        (["2024-01-01", "2024-12-31"], "date", "all 2 values are a date"),
        (["2024-13-01"], "string", "'2024-13-01' is text"),
        (["2024-01-01 10%3A00%3A00"], "timestamp", "the only value is a timestamp"),
        (["true", "false"], "boolean", "all 2 values are true or false"),
        (["1", "true"], "string", "the values are of several types"),
        (["__HIVE_DEFAULT_PARTITION__"], "string", "all values are NULL"),
    ],
)
def test_the_type_keeps_every_value(texts: list[str], kind: str, reason: str) -> None:
    [column] = infer_partitions((f"k={text}/f" for text in texts), "file:/t")
    assert (column.name, column.type.name, column.reason) == ("k", kind, reason)


def test_directories_that_disagree_are_not_guessed_about() -> None:
    with pytest.raises(InvalidRequestError, match="cannot be inferred"):
        infer_partitions(["a=1/f", "b=1/f"], "file:/t")
    assert infer_partitions(["f", "below/f"], "file:/t") == ()
    assert infer_partitions(["A=1/f", "a=2/f"], "file:/t")[0].name == "A"
