"""The names of ``delta.exceptions``, so that an existing import needs one word changed.

``DeltaConcurrentModificationException`` is the base of all conflicts there; here that is
`puredelta.errors.ConflictError`.
"""

from __future__ import annotations

from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)
from puredelta.errors import ConflictError as DeltaConcurrentModificationException

__all__ = [
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
]
