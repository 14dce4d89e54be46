"""The way to pyiceberg, which is installed on request."""

from __future__ import annotations

import importlib

from puredelta.commands.convert.iceberg.content import IcebergTable
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.store.base import Store

_READER = "puredelta.commands.convert.iceberg.table"


def open_iceberg(store: Store) -> IcebergTable:
    """Open an Iceberg table; the store is at its root, or at one of its metadata files.

    Raises:
        UnsupportedError: pyiceberg is not installed (DELTA_MISSING_ICEBERG_CLASS).
        InvalidRequestError: there is no table.
    """
    try:
        reader = importlib.import_module(_READER)  # a second of imports that few need
    except ImportError as missing:
        raise UnsupportedError(
            "Iceberg class was not found. Please ensure Delta Iceberg support is installed: "
            f"pip install 'puredelta[iceberg]' ({missing}).",
            code=ErrorCode.MISSING_ICEBERG_CLASS,
            path=store.root_uri,
        ) from missing
    table: IcebergTable = reader.open_table(store)
    return table
