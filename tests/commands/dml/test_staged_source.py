"""The source once it is staged: its names, its keys, and its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.commands.dml.resolve.resolved_statement import EquiPair
from puredelta.commands.dml.settings import KeyLimits
from puredelta.commands.dml.source import read_distinct_keys, source_in_use
from puredelta.commands.dml.staged_source import ColumnNames, StagedSource
from puredelta.errors import DeltaError, ErrorCode
from puredelta.protocol.schema.predicates import Ref, Side
from puredelta.protocol.schema.types import LONG, STRING, DataType
from puredelta.protocol.table.stats import LeafStatistics
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.write.staging import StagedRows
from tests.commands.dml.statements import context_of, statement

LEAF = LeafStatistics(minimum=1, maximum=9, null_count=0)
NAMES = ColumnNames(in_files={"s0": "k", "s1": "k", "s2": "v"})


def test_a_staged_name_becomes_a_name_inside_the_files_in_one_place() -> None:
    assert [NAMES.in_file(name) for name in ("s0", "s1", "s2", "s3")] == ["k", "k", "v", "s3"]
    assert NAMES.by_staged_name({("k", "x"): LEAF, ("other",): LEAF}) == {
        ("s0", "x"): LEAF,
        ("s1", "x"): LEAF,
    }
    own = {("s0",): LEAF}
    assert ColumnNames().by_staged_name(own) is own


def pair(staged: str, kind: DataType, target: DataType | None = None) -> EquiPair:
    return EquiPair(
        target=Ref(Side.TARGET, ("id",), target or kind), source=Ref(Side.SOURCE, (staged,), kind)
    )


def keys(tmp_path: Path, *pairs: EquiPair, **limits: int) -> Any:
    files = []
    for n, (k, v) in enumerate([([3, None, 1], ["b", "a", None]), ([3, 2], ["a", "c"])]):
        path = tmp_path / f"{n}.parquet"
        pq.write_table(pa.table({"k": pa.array(k, pa.int64()), "v": v}), path)
        files.append(DataFile(uri=str(path), size_bytes=path.stat().st_size))
    staged = StagedRows(directory=None, files=tuple(files), group_rows=((3,), (2,)), columns={})
    return read_distinct_keys(
        staged,
        pairs,
        NAMES,
        limits=KeyLimits(**limits),
        open_file=opened,
    )


def opened(file: DataFile) -> BinaryIO:
    return Path(file.uri).open("rb")


def test_the_keys_of_a_small_source_are_known_by_heart(tmp_path: Path) -> None:
    found = keys(tmp_path, pair("s0", LONG), pair("s2", STRING))
    assert list(found[("s0",)]) == [1, 2, 3]
    assert sorted(found[("s2",)]) == ["a", "b", "c"]


def test_limits_of_what_is_known_by_heart(tmp_path: Path) -> None:
    both = (pair("s0", LONG), pair("s2", STRING))
    assert keys(tmp_path, *both, rows_max=4) == {}
    assert keys(tmp_path, *both, values_max=2).keys() == {("s0",)}
    assert keys(tmp_path, pair("s2", STRING, target=LONG)) == {}, "a cast decides"


def test_long_keys_are_read_a_batch_at_a_time_and_given_up(tmp_path: Path) -> None:
    """They were all held at once: 20,000 keys of 10 KB are 200 MB."""
    path = tmp_path / "long.parquet"
    letters = np.random.default_rng(1).integers(97, 123, (20_000, 10_000), dtype=np.uint8)
    texts = pa.array([row.tobytes().decode() for row in letters])
    pq.write_table(pa.table({"v": texts}), path, row_group_size=5_000)
    files = (DataFile(uri=str(path), size_bytes=path.stat().st_size, modified_ms=0),)
    staged = StagedRows(directory=None, files=files, group_rows=((20_000,),), columns={})
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        found = read_distinct_keys(
            staged,
            [pair("s2", STRING)],
            NAMES,
            limits=KeyLimits(values_max=1_000_000),
            open_file=opened,
        )
    finally:
        pa.set_memory_pool(usual)
    assert found == {}
    assert counted.max_memory() < 150_000_000


class Source:
    """As much of a source read in place as is asked."""

    def __init__(self, *, changed: bool) -> None:
        self.changed, self.removed = changed, 0

    def require_unchanged(self) -> None:
        if self.changed:
            raise DeltaError("changed", code=ErrorCode.MERGE_SOURCE_CHANGED)

    def remove(self, _: Any) -> None:
        self.removed += 1


@pytest.mark.parametrize(
    ("changed", "failure", "raised"),
    [
        (True, RuntimeError("Spark stumbled"), "changed"),
        (False, RuntimeError("Spark stumbled"), "Spark stumbled"),
        (True, DeltaError("a rule", code=ErrorCode.INVALID_CONF_VALUE), "a rule"),
    ],
)
def test_what_a_failure_is_called_where_the_source_changed(
    changed: bool,
    failure: Exception,
    raised: str,
) -> None:
    source: Any = Source(changed=changed)
    context = replace(context_of(statement()), source=source)

    def work() -> None:
        with source_in_use(context):
            raise failure

    with pytest.raises(Exception, match=raised):
        work()
    assert source.removed == 1


def test_the_source_is_removed_when_all_went_well() -> None:
    source: Any = Source(changed=False)
    with source_in_use(replace(context_of(statement()), source=source)):
        assert source.removed == 0
    assert source.removed == 1


def test_a_statement_without_a_source_has_nothing_to_read_or_remove() -> None:
    none = StagedSource.none()
    assert (none.num_rows, none.files, none.row_counts, none.is_materialized) == (0, (), (), False)
    none.require_unchanged()
