"""Which plans are nothing but a scan, told from their JSON; no session is needed."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T

from puredelta.spark.jvm.expressions import expr_ids
from puredelta.spark.scan.plain_scan import (
    PassedColumn,
    column_places,
    declared_fields,
    listed_files,
)
from puredelta.spark.session.session import NotApplicable

Node = dict[str, Any]


def passed(**columns: int) -> list[PassedColumn]:
    """By its id, after an underscore, what each column shows."""
    return [PassedColumn(expr_id=int(name[1:]), below=of) for name, of in columns.items()]


def test_columns_are_followed_through_projections() -> None:
    assert column_places([4, 5, 6], []) == (0, 1, 2)
    assert column_places([4, 5, 6], [passed(_6=6, _9=4)]) == (2, 0)
    assert column_places([4, 5, 6], [passed(_11=9, _12=9, _6=6), passed(_6=6, _9=4)]) == (0, 0, 2)


def test_a_column_from_elsewhere() -> None:
    assert isinstance(column_places([4, 5], [passed(_6=6)]), NotApplicable), "such as _metadata"
    assert isinstance(column_places([4, 5], [passed(_5=5), passed(_4=4)]), NotApplicable)
    computed = PassedColumn(expr_id=7, below=None, name="x")
    assert column_places([4], [passed(_4=4), [*passed(_4=4), computed]]) == (0,)
    shown = column_places([4], [passed(_8=7), [*passed(_4=4), computed]])
    assert isinstance(shown, NotApplicable)
    assert shown.reason == "column x is computed"


def test_ids_stand_at_the_end_of_attributes() -> None:
    assert expr_ids(["id#4L", "a#17 AS b#18", "x\ny#5", "#6"]) == [4, 18, 5, 6]
    assert expr_ids(["id#4L", "id"]) is None
    assert expr_ids(["id#4-T1000ms"]) is None


def declared(name: str, kind: Any = "long", **metadata: Any) -> Node:
    return {"name": name, "type": kind, "nullable": False, "metadata": metadata}


def test_declared_columns_by_name() -> None:
    columns = [declared("a"), declared("b", "string", comment="text")]
    assert declared_fields(columns, [1, 0, 1]) == (
        T.StructField("b", T.StringType()),
        T.StructField("a", T.LongType()),
        T.StructField("b", T.StringType()),
    )


@pytest.mark.parametrize(
    "field",
    [
        declared("a", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
        declared("a", **{"parquet.field.id": 3}),
        declared("a", EXISTS_DEFAULT="3"),
        declared("a", "void"),
        declared("a", {"type": "array", "elementType": "void", "containsNull": True}),
        declared("a", {"type": "udt", "class": "x", "sqlType": "long"}),
    ],
)
def test_columns_that_files_alone_do_not_tell(field: Node) -> None:
    assert isinstance(declared_fields([field], [0]), NotApplicable)


def test_special_columns_matter_only_if_they_are_shown() -> None:
    columns = [declared("a"), declared("b", "void")]
    assert declared_fields(columns, [0]) == (T.StructField("a", T.LongType()),)


def listed(path: str, kind: str = "LocatedFileStatus") -> str:
    return (
        f"{kind}{{path={path}; isDirectory=false; length=5; replication=1; blocksize=33554432; "
        "modification_time=7; access_time=0; owner=; group=; permission=rw-rw-rw-; "
        "isSymlink=false; hasAcl=false; isEncrypted=false; isErasureCoded=false}"
    )


def test_a_listing() -> None:
    names = ["file:/a b/%.parquet", "file:/c+d/x; length=9.parquet", "file:/e\n/f"]
    found = listed_files([*map(listed, names), listed("file:///x", "FileStatus")])
    assert not isinstance(found, NotApplicable)
    assert [file.uri for file in found] == [*names, "file:/x"]
    assert {(file.size_bytes, file.modified_ms) for file in found} == {(5, 7)}


@pytest.mark.parametrize(
    "status", [listed("s3a://bucket/x.parquet"), listed("/x.parquet"), "something else"]
)
def test_a_listing_of_files_out_of_reach(status: str) -> None:
    assert isinstance(listed_files([status]), NotApplicable)
