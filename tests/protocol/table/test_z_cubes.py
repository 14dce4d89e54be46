"""Tags of files that were clustered together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from puredelta.protocol.table.clustering import ZCube, column_name, find_z_cube
from tests.log.tables import add


def test_tags_are_those_of_delta_spark() -> None:
    cube = ZCube(id="5df6", columns=("a", "s.x", "ä"))
    assert cube.tags == {"ZCUBE_ID": "5df6", "ZCUBE_ZORDER_BY": '["a","s.x","ä"]'}
    assert find_z_cube(replace(add("f"), tags=cube.tags)) == cube


@pytest.mark.parametrize(
    "tags",
    [
        None,
        {},
        {"ZCUBE_ID": "1"},
        {"ZCUBE_ID": "1", "ZCUBE_ZORDER_BY": "a"},
        {"ZCUBE_ID": "1", "ZCUBE_ZORDER_BY": '{"a": 1}'},
        {"ZCUBE_ID": "1", "ZCUBE_ZORDER_BY": "[1]"},
        {"ZCUBE_ID": None, "ZCUBE_ZORDER_BY": "[]"},
        {"ZCUBE_ID": "1", "ZCUBE_ZORDER_BY": "[" * 2000},
    ],
)
def test_other_tags_name_no_cube(tags: dict[str, str | None] | None) -> None:
    assert find_z_cube(replace(add("f"), tags=tags)) is None


def test_names_are_spelt_as_delta_spark_does() -> None:
    assert column_name(("s", "a.b", "c d")) == "s.`a.b`.c d"
