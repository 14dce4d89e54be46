"""The value of one key in many maps is what Arrow's own lookup finds, however the maps lie."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from puredelta.log.files.file_table import map_texts

_TYPE = pa.map_(pa.string(), pa.string())
_CASES = {
    "one key in all": [[("a", "1")], [("a", None)], [("a", "3")]],
    "two keys": [[("a", "1"), ("b", "2")], [("b", "3"), ("a", "4")]],
    "twice in one, not in the next": [[("a", "1"), ("a", "2")], [("b", "3")]],
    "twice in all": [[("a", "1"), ("a", "2")], [("a", "3"), ("a", "4")]],
    "not everywhere": [[("a", "1")], [], [("b", "2"), ("a", "3")]],
    "nowhere": [[("b", "1")], []],
    "no maps": [],
    "a map that is not there": [[("a", "1")], None, [("a", "2")]],
}


@pytest.mark.parametrize("name", _CASES)
def test_texts_are_found_as_arrow_finds_them(name: str) -> None:
    whole = pa.array([[("a", "before")], *_CASES[name], [("a", "behind")]], _TYPE)
    for maps in (whole, whole[1:-1], whole[1:], whole[:-1], whole[:0]):
        chunks = pa.chunked_array([maps, whole])
        for key in ("a", "b", "c"):
            assert map_texts(chunks, key).equals(pc.map_lookup(chunks, key, "first"))


def test_no_arrays_give_no_texts() -> None:
    found = map_texts(pa.chunked_array([], _TYPE), "a")
    assert (len(found), found.type) == (0, pa.string())


def test_any_maps_are_read_as_arrow_reads_them() -> None:
    random = Random(7)
    for _ in range(300):
        keys = random.choice(["a", "ab", "aab"])
        width = random.choice([None, 1, 2])
        rows = [
            [
                (random.choice(keys), random.choice(["1", "", None]))
                for _ in range(random.randrange(3) if width is None else width)
            ]
            for _ in range(random.randrange(6))
        ]
        whole = pa.array(rows, _TYPE)
        maps = pa.chunked_array([whole[random.randrange(len(rows) + 1) :], whole])
        assert map_texts(maps, "a").equals(pc.map_lookup(maps, "a", "first")), rows
