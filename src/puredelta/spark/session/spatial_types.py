"""Which columns of geometries and geographies this PySpark can hold."""

from __future__ import annotations

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.traversal import primitive_names
from puredelta.protocol.schema.types import StructType


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


HAVE_SPATIAL_TYPES = _release(pyspark.__version__) >= (4, 2) and _release(pa.__version__) >= (20, 0)
"""Whether Spark stores the types in Parquet (4.1 has their names alone), and Arrow, which reads
the statistics of new files, opens such files."""


def require_known_spatial_types(schema: StructType) -> None:
    """Check that this PySpark can read and write the columns of geometries and geographies.

    Raises:
        UnsupportedError: it, or Arrow, is older than the types, or it does not know the reference
            system or the algorithm (GEOSPATIAL_NOT_SUPPORTED).
    """
    found = [(path, SpatialName.parse(name)) for path, name in primitive_names(schema)]
    spatial = [(".".join(path), kind) for path, kind in found if kind is not None]
    if not spatial:
        return
    if not HAVE_SPATIAL_TYPES:
        listed = ", ".join(f"{path}: {kind.name}" for path, kind in spatial)
        raise UnsupportedError(
            "Columns of geometry and geography need PySpark 4.2 and pyarrow 20, or newer; here "
            f"are PySpark {pyspark.__version__} and pyarrow {pa.__version__}: {listed}. Use newer "
            "ones for this table, or leave these columns out of a new one.",
            code=ErrorCode.GEOSPATIAL_NOT_SUPPORTED,
        )
    unknown = [(path, kind) for path, kind in spatial if not _is_known(kind)]
    if unknown:
        listed = ", ".join(f"{path}: {kind.name}" for path, kind in unknown)
        raise UnsupportedError(
            f"PySpark {pyspark.__version__} does not know the coordinate reference system or "
            f"the algorithm of these columns: {listed}. It knows SRID 0, 3857 and 4326 "
            "(OGC:CRS84), and the algorithm spherical.",
            code=ErrorCode.GEOSPATIAL_NOT_SUPPORTED,
        )


def _is_known(kind: SpatialName) -> bool:
    if kind.is_mixed:
        return False
    field = {"name": "value", "type": kind.spark_name, "nullable": True, "metadata": {}}
    try:
        T.StructField.fromJson(field)
    except (PySparkException, AssertionError, ValueError):
        return False
    return True
