"""Which column of the table the left side of an assignment means.

The analyzer resolves it like any expression, so what it cannot resolve is Spark's own error;
what it can, but nobody could write to (a value of a map), is Delta's.
"""

from __future__ import annotations

from pyspark.sql import functions as F

from puredelta.commands.merge.column_paths import TargetField, TargetNames
from puredelta.errors import InvalidRequestError
from puredelta.protocol.schema.types import StructType
from puredelta.spark.resolve.expressions import Resolver
from puredelta.spark.resolve.frames import Scope


def find_set_column(
    written: str, schema: StructType, resolver: Resolver, *, case_sensitive: bool
) -> TargetField:
    """Return the column or field; a qualifier of the table may stand before it.

    Raises:
        InvalidRequestError: it lies inside an array or a map.
        pyspark.errors.AnalysisException: there is no such column or field.
    """
    frames = resolver.frames
    names = TargetNames(
        schema=schema,
        qualifier=frames.target_qualifier,
        displayed=frames.displayed(Scope.TARGET),
        case_sensitive=case_sensitive,
    )
    try:
        return names.find(written, clause="UPDATE clause")
    except InvalidRequestError:
        resolver.check([F.col(written)], Scope.TARGET)
        raise
