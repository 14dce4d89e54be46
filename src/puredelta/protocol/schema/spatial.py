"""The names of the types geometry and geography: in the log, in Spark's JSON and in its SQL.

The log names the coordinate reference system (CRS) as the proposal "Geospatial types" of the
protocol says: ``geometry(<crs>)`` and ``geography(<crs>, <algorithm>)``, the algorithm in lower
case, a number as ``srid:<number>``. Spark names a few systems by numbers (SRIDs), writes
``SRID:0`` for none, and algorithms in upper case. Some names mean one system to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = re.compile(
    r"(geometry|geography)(?:\(\s*([^\s(),]{1,255})\s*(?:,\s*([A-Za-z]{1,32})\s*)?\))?"
)
_DEFAULT_CRS = "OGC:CRS84"
_DEFAULT_ALGORITHM = "spherical"
_SRID = re.compile(r"srid:(\w+)", re.IGNORECASE)

_NUMBERS: Mapping[str, int] = {
    "SRID:0": 0,
    "EPSG:3857": 3857,
    "SRID:3857": 3857,
    "OGC:CRS84": 4326,
    "EPSG:4326": 4326,
    "SRID:4326": 4326,
}
"""What Spark calls the systems that its Python types know. Well-known binary has x before y, so
that EPSG:4326 and OGC:CRS84 are one to Spark (`GeometryType.equals`)."""
_SPARK_CRS = {0: "SRID:0", 3857: "EPSG:3857", 4326: "OGC:CRS84"}


@dataclass(frozen=True, slots=True)
class SpatialName:
    """A type of geometries or geographies, by its name.

    >>> SpatialName.parse("geography").name
    'geography(OGC:CRS84, spherical)'
    """

    base: str
    """``geometry`` or ``geography``."""
    crs: str
    algorithm: str | None
    """How edges are interpolated, in lower case; geometries have none."""

    @staticmethod
    def parse(name: str) -> SpatialName | None:
        """Return the type of this name, as any writer spells it; ``None`` for other types.

        A name without a system means the default, and so does one without an algorithm. The
        only argument of a geography is an algorithm if it has no colon.
        """
        match = _NAME.fullmatch(name) if name.startswith("geo") else None
        if match is None:
            return None
        base, crs, algorithm = match[1], match[2], match[3]
        if base == "geometry":
            return None if algorithm else SpatialName(base, _crs(crs), None)
        if crs is not None and algorithm is None and ":" not in crs:
            crs, algorithm = None, crs
        return SpatialName(base, _crs(crs), (algorithm or _DEFAULT_ALGORITHM).lower())

    @property
    def name(self) -> str:
        """How the log names it."""
        return self._with(self.crs, self.algorithm)

    @property
    def srid(self) -> int | None:
        """Spark's number of the system; ``None`` where its Python types have none."""
        return _NUMBERS.get(self.crs.upper())

    @property
    def is_mixed(self) -> bool:
        """Whether every value has a system of its own, for which the protocol has no name."""
        return self.crs.upper() == "SRID:ANY"

    @property
    def meaning(self) -> tuple[str, object, str | None]:
        """What tells it from other types, whatever the spelling."""
        srid = self.srid
        return self.base, self.crs if srid is None else srid, self.algorithm

    @property
    def spark_crs(self) -> str:
        """How Spark names the system; one that this module does not know stays as it is."""
        srid = self.srid
        if srid is None:
            return self.crs.upper() if self.is_mixed else self.crs
        return _SPARK_CRS[srid]

    @property
    def spark_name(self) -> str:
        """How Spark's JSON names it."""
        return self._with(self.spark_crs, self.algorithm and self.algorithm.upper())

    @property
    def catalog_name(self) -> str:
        """How Spark's SQL names it, where it can: ``geometry(3857)``."""
        if self.is_mixed:
            return f"{self.base}(any)"
        if self.srid is None or self.algorithm not in (None, _DEFAULT_ALGORITHM):
            return self.name
        return f"{self.base}({self.srid})"

    def _with(self, crs: str, algorithm: str | None) -> str:
        return f"{self.base}({crs if algorithm is None else f'{crs}, {algorithm}'})"


def _crs(given: str | None) -> str:
    """Return the system in the spelling of the log."""
    if given is None:
        return _DEFAULT_CRS
    number = _SRID.fullmatch(given)
    return given if number is None else f"srid:{number[1].lower()}"
