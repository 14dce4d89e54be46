"""``df.write.format("delta").save(path)``: what a writer was told, as one write of our own."""

from __future__ import annotations

import logging
from typing import Any

from pyspark.sql import DataFrame

from puredelta.activation.paths import require_path
from puredelta.activation.told import Told
from puredelta.commands.write import write_table
from puredelta.commands.write_options import WRITE_OPTIONS, SaveMode
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.table_log import TableLog

logger = logging.getLogger(__name__)

_PROPERTY_PREFIX = "delta."
_KNOWN = frozenset(name.lower() for name in WRITE_OPTIONS)
_REFUSED = {
    "datachange": ("false", "every commit counts as new data here"),
    "replaceon": (None, "use replaceWhere, or a MERGE"),
    "replaceusing": (None, "use replaceWhere, or a MERGE"),
    "targettable": (None, "name the table in saveAsTable"),
}
"""Options that would change what is written: the value that matters (None: any), and why not."""


def save(rows: DataFrame, told: Told, path: Any) -> None:
    """Write the rows as the writer was told.

    Raises:
        InvalidRequestError: no path, an unknown mode, or what `write_table` refuses.
        UnsupportedError: an option or a layout that is not implemented.
    """
    location = require_path(told, path)
    write_table(
        rows,
        TableLog.open(location),
        mode=SaveMode.parse(told.mode or SaveMode.ERROR.value),
        partition_by=told.partition_by,
        options=write_options(told),
    )


def write_options(told: Told) -> dict[str, str]:
    """Return the options that mean something; others have no effect, as in the reference.

    Raises:
        UnsupportedError: one that is not implemented and must not be ignored, or
            ``bucketBy``, ``sortBy`` or ``clusterBy``.
    """
    if told.layout is not None:
        raise UnsupportedError(
            f"{told.layout} is not supported when a Delta table is written by a DataFrame writer. "
            "Use partitionBy, or create the table with DeltaTable.create().clusterBy(...) first.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
            layout=told.layout,
        )
    chosen: dict[str, str] = {}
    for name, value in (told.options or {}).items():
        _require_possible(name, value)
        if name.lower() in _KNOWN or name.startswith(_PROPERTY_PREFIX):
            chosen[name] = value
        elif name.lower() != "path":
            logger.info("The option %s has no effect on a Delta table.", name)
    return chosen


def _require_possible(name: str, value: str) -> None:
    if name.lower() not in _REFUSED:
        return
    refused, reason = _REFUSED[name.lower()]
    if refused is None or value.lower() == refused:
        raise UnsupportedError(
            f"The write option {name}={value!r} is not supported: {reason}.",
            code=ErrorCode.INVALID_WRITE_OPTION,
            option=name,
        )
