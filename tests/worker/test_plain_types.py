"""Files whose columns are views in Arrow: delta-rs writes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.read_rows import opened, read_batches, without_views

pytestmark = pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 20, reason="this Arrow cannot make views"
)

TEXTS = ["x", None, "longer than what a view holds in place"]
PLAIN = pa.table(
    {
        "s": TEXTS,
        "b": [b"1", None, b"3"],
        "st": pa.array([{"v": t} for t in TEXTS], pa.struct([("v", pa.string())])),
        "l": pa.array([TEXTS, [], None], pa.list_(pa.string())),
        "n": [1, 2, 3],
    }
)
VIEWS = pa.schema(
    [
        ("s", pa.string_view()),
        ("b", pa.binary_view()),
        ("st", pa.struct([("v", pa.string_view())])),
        ("l", pa.list_(pa.string_view())),
        ("n", pa.int64()),
    ],
    {"k": "v"},
)


def test_a_schema_without_views_is_left_alone() -> None:
    schema = PLAIN.schema
    assert without_views(schema) is schema
    named = pa.schema([("st", pa.struct([("review", pa.string())]))])
    assert without_views(named) is named


def test_views_are_what_they_are_views_of() -> None:
    assert without_views(VIEWS).types == PLAIN.schema.types
    assert without_views(VIEWS).metadata == {b"k": b"v"}


def test_rows_are_read_as_strings(tmp_path: Path) -> None:
    path = str(tmp_path / "views.parquet")
    struct = pa.StructArray.from_arrays([pa.array(TEXTS, pa.string_view())], names=["v"])
    lists = pa.ListArray.from_arrays(
        pa.array([0, 3, None, 3], pa.int32()), pa.array(TEXTS, pa.string_view())
    )
    columns = [
        pa.array(TEXTS, pa.string_view()),
        pa.array([b"1", None, b"3"], pa.binary_view()),
        struct,
        lists,
        pa.array([1, 2, 3]),
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=VIEWS), path)
    file = opened(path)
    assert file.schema_arrow.types == PLAIN.schema.types
    (batch,) = read_batches(file, None)
    assert batch.schema.types == PLAIN.schema.types
    assert batch.take(pa.array([0, 2])).column("s").to_pylist() == [TEXTS[0], TEXTS[2]]
    (some,) = read_batches(file, None, columns=["st"])
    assert some.filter(pa.array([False, True, True])).to_pylist() == [
        {"st": {"v": None}},
        {"st": {"v": TEXTS[2]}},
    ]
