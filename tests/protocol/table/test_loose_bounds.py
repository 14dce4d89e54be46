"""M-134: what statistics say once a deletion vector hides rows."""

from __future__ import annotations

import json

from puredelta.protocol.table.stats import loosen_bounds


def test_bounds_are_wide_and_nothing_else_changes() -> None:
    text = (
        '{"numRecords":3,"minValues":{"d":0.10,"f":-1e-7,"s":"é\\u0001","t":{"x":1}},'
        '"maxValues":{"d":123456789012345678.90},"nullCount":{"d":0,"s":2}}'
    )
    wide = loosen_bounds(text, rows=3, num_deleted=0)
    assert wide == text[:-1] + ',"tightBounds":false}'


def test_a_column_of_nulls_counts_physical_rows() -> None:
    """Tight statistics count visible rows: a column with 7 NULLs in 7 visible rows is all NULL."""
    tight = {
        "numRecords": 10,
        "nullCount": {"all": 7, "some": 3, "none": 0, "s": {"all": 7}},
        "tightBounds": True,
    }
    wide = json.loads(loosen_bounds(json.dumps(tight), rows=10, num_deleted=3))
    assert wide["nullCount"] == {"all": 10, "some": 3, "none": 0, "s": {"all": 10}}
    assert wide["tightBounds"] is False


def test_counts_that_were_wide_stay() -> None:
    """There 7 is only a guess: the rows the vector hides may be among them."""
    wide = {"numRecords": 10, "nullCount": {"c": 7}, "tightBounds": False}
    assert json.loads(loosen_bounds(json.dumps(wide), rows=10, num_deleted=3)) == wide


def test_of_broken_statistics_only_the_count_is_kept() -> None:
    for text in ('{"numRecords":4,"minValues":', '{"numRecords":4,"x":' + "[" * 100_000):
        assert loosen_bounds(text, rows=4, num_deleted=1) == '{"numRecords":4,"tightBounds":false}'
