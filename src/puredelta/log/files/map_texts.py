"""The value of one key in each of many maps, as partition values have them.

Arrow's own ``map_lookup`` goes through the maps one by one: 0.3 seconds for a million of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def map_texts(maps: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return the first value of a key in every map; null where the map or the key is not there.

    >>> maps = pa.array([[("a", "1"), ("b", "2")], [("b", None)]], pa.map_("string", "string"))
    >>> map_texts(pa.chunked_array([maps]), "b").to_pylist()
    ['2', None]
    """
    return pa.chunked_array(
        [_texts(chunk, name) for chunk in maps.chunks], type=maps.type.item_type
    )


def _texts(maps: pa.MapArray, name: str) -> pa.Array:
    if not len(maps) or maps.null_count:
        return pc.map_lookup(maps, name, "first")
    ends = maps.offsets.to_numpy()
    begin, length = int(ends[0]), int(ends[-1] - ends[0])
    found = pc.equal(maps.keys.slice(begin, length), name)
    places = np.flatnonzero(found.to_numpy(zero_copy_only=False))
    if not len(places):
        return pa.nulls(len(maps), maps.type.item_type)
    places += begin
    # As many as there are maps, and each within its map: one in every map.
    if len(places) != len(maps) or np.any(places < ends[:-1]) or np.any(places >= ends[1:]):
        return pc.map_lookup(maps, name, "first")
    items = maps.items.slice(begin, length)
    return items if length == len(places) else items.filter(found)
