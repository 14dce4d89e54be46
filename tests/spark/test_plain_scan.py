"""Which plans are nothing but a scan, told from their JSON; no session is needed."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T

from puredelta.spark.plain_scan import column_names, declared_fields, listed_files
from puredelta.spark.rewriting import Refused

Node = dict[str, Any]


def attribute(name: str, expr_id: int, kind: str = "long") -> Node:
    return {
        "class": "org.apache.AttributeReference",
        "name": name,
        "dataType": kind,
        "exprId": {"id": expr_id},
    }


def alias(name: str, expr_id: int) -> Node:
    return {"class": "org.apache.Alias", "name": name, "exprId": {"id": expr_id}}


def cast(kind: str) -> Node:
    return {"class": "org.apache.Cast", "dataType": kind}


def project(*trees: list[Node]) -> Node:
    return {"class": "org.apache.Project", "projectList": list(trees)}


RELATION = {
    "class": "org.apache.LogicalRelation",
    "isStreaming": False,
    "output": [[attribute("a", 1)], [attribute("b", 2)], [attribute("c", 3)]],
}
NAMED = {"class": "org.apache.SubqueryAlias"}


def test_columns_are_followed_through_aliases() -> None:
    assert column_names([RELATION]) == ("a", "b", "c")
    assert column_names([NAMED, RELATION]) == ("a", "b", "c")
    inner = project([alias("x", 11), attribute("b", 2)], [attribute("a", 1)])
    outer = project([attribute("a", 1)], [alias("y", 12), attribute("x", 11)], [attribute("x", 11)])
    assert column_names([outer, NAMED, inner, RELATION]) == ("a", "b", "b")


def test_a_cast_to_the_same_type_is_none() -> None:
    """The text of a view is cast to the types that it had."""
    same = project([alias("x", 11), cast("long"), attribute("a", 1)])
    assert column_names([same, RELATION]) == ("a",)


@pytest.mark.parametrize(
    "tree",
    [
        [alias("x", 11), cast("int"), attribute("a", 1)],
        [alias("x", 11), {"class": "org.apache.Add"}, attribute("a", 1), attribute("b", 2)],
        [alias("x", 11), {"class": "org.apache.Literal"}],
        [attribute("elsewhere", 99)],
    ],
)
def test_a_column_that_is_computed(tree: list[Node]) -> None:
    assert isinstance(column_names([project(tree), RELATION]), Refused)


def test_a_stream_is_no_scan() -> None:
    assert column_names([{**RELATION, "isStreaming": True}]) == Refused(reason="it is a stream")


def declared(name: str, kind: Any = "long", **metadata: Any) -> Node:
    return {"name": name, "type": kind, "nullable": False, "metadata": metadata}


def test_declared_columns_by_name() -> None:
    schema = {"fields": [declared("a"), declared("b", "string", comment="text")]}
    assert declared_fields(schema, ["b", "a", "b"]) == (
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
        declared("b"),
    ],
)
def test_columns_that_files_alone_do_not_tell(field: Node) -> None:
    assert isinstance(declared_fields({"fields": [field]}, ["a"]), Refused)


def test_special_columns_matter_only_if_they_are_shown() -> None:
    schema = {"fields": [declared("a"), declared("b", "void")]}
    assert declared_fields(schema, ["a"]) == (T.StructField("a", T.LongType()),)


def listed(uri: str) -> Node:
    return {"path": {"uri": uri}, "length": 5, "modification_time": 7}


def test_a_listing() -> None:
    found = listed_files([listed("file:///a%20b/%25.parquet"), listed("file:/c+d/x.parquet")])
    assert not isinstance(found, Refused)
    assert [file.uri for file in found] == ["file:/a b/%.parquet", "file:/c+d/x.parquet"]
    assert {(file.size_bytes, file.modified_ms) for file in found} == {(5, 7)}


@pytest.mark.parametrize("uri", ["s3a://bucket/x.parquet", "file:/%ff.parquet", "/x.parquet"])
def test_a_listing_of_files_out_of_reach(uri: str) -> None:
    assert isinstance(listed_files([listed(uri)]), Refused)
