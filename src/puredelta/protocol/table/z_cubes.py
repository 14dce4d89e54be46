"""Z-cubes: the files that one run of clustering has written together.

The protocol says that ``clusteringProvider`` names who clustered a file (section "Clustered
Table"). Which files belong together, and by which columns, is in tags of delta-spark's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.protocol.actions.actions import Add
from puredelta.protocol.json_text import parse_json

LIQUID = "liquid"
"""The provider whose way of clustering delta-spark and this library share."""
_ID, _COLUMNS = "ZCUBE_ID", "ZCUBE_ZORDER_BY"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCube:
    """One run of clustering."""

    id: str
    columns: tuple[str, ...]
    """Logical names, as `column_name` spells them."""

    @property
    def tags(self) -> dict[str, str]:
        """The tags of each of its files."""
        columns = json.dumps(self.columns, separators=(",", ":"), ensure_ascii=False)
        return {_ID: self.id, _COLUMNS: columns}


def find_z_cube(add: Add) -> ZCube | None:
    """Return the cube that a file belongs to, ``None`` if its tags name none.

    >>> cube = ZCube(id="1", columns=("a", "s.x"))
    >>> file = Add(
    ...     path="f", partition_values={}, size_bytes=1, modified_ms=0, data_change=False,
    ...     tags=cube.tags,
    ... )
    >>> find_z_cube(file) == cube
    True
    """
    tags = add.tags or {}
    number, columns = tags.get(_ID), tags.get(_COLUMNS)
    if number is None or columns is None:
        return None
    try:
        names = parse_json(columns)
    except ValueError:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return ZCube(id=number, columns=tuple(names))


def column_name(path: Sequence[str]) -> str:
    """Return the name of a column, or of a field in structs, as delta-spark spells it.

    >>> column_name(("s", "odd.name"))
    's.`odd.name`'
    """
    return ".".join(f"`{part}`" if "." in part else part for part in path)
