"""Where a stream over a table is, as delta-spark writes it into checkpoints.

An offset names a version and the last file of it that has been delivered. The files of a version
are counted in the order of its commit, or, where a stream begins with a whole version, by time and
path. The text is delta-spark's to the letter, so that either of us continues what the other began.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from puredelta.errors import ErrorCode, InvalidRequestError

BEFORE_FIRST = -100
"""The index before the first file of a version; written as -1."""
_BEFORE_FIRST_TEXT = -1
SCHEMA_BARRIER = -20
"""The index of a change of the schema that a tracking log has yet to take."""
AFTER_BARRIER = -19
_PLAIN, _WITH_BARRIER = 1, 3
"""Formats: the second one has indexes of schema changes. There is none between."""
_BEGAN = "puredeltaStartVersion"
"""Left alone by delta-spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """Everything up to and with this file of this version has been delivered."""

    table_id: str
    version: int
    index: int = BEFORE_FIRST
    is_initial: bool = False
    """Whether the files are those of the whole version, with which the stream begins."""
    began_at: int | None = None
    """At the end of the first batch: the version whose commit it begins with, if it is none that
    follows from the rest. A batch that is run again after a restart needs it."""

    @property
    def place(self) -> tuple[int, int]:
        """Version and index, which order the offsets of one table."""
        return self.version, self.index

    def values(self) -> dict[str, Any]:
        """Return the offset as the JSON object that stands for it."""
        is_barrier = self.index in {SCHEMA_BARRIER, AFTER_BARRIER}
        values: dict[str, Any] = {
            "sourceVersion": _WITH_BARRIER if is_barrier else _PLAIN,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": _BEFORE_FIRST_TEXT if self.index == BEFORE_FIRST else self.index,
            "isStartingVersion": self.is_initial,
        }
        return values if self.began_at is None else {**values, _BEGAN: self.began_at}

    def text(self) -> str:
        """Return the JSON text of a checkpoint.

        >>> StreamOffset(table_id="t", version=3).text()
        '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":3,"index":-1,"isStartingVersion":false}'
        """
        return json.dumps(self.values(), separators=(",", ":"))


def parse_offset(
    given: str | Mapping[str, Any], *, table_id: str, root_uri: str = ""
) -> StreamOffset:
    """Read the offset of a checkpoint: delta-spark's, or ours of releases that wrote versions only.

    Raises:
        InvalidRequestError: it is no offset (DELTA_INVALID_SOURCE_OFFSET_FORMAT), one of a format
            that is not known (DELTA_INVALID_SOURCE_VERSION,
            DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION), or of another table
            (DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE).
    """
    values = _object(given)
    try:
        source_version = int(values.get("sourceVersion", _PLAIN))
    except (TypeError, ValueError) as error:
        raise _malformed(given) from error
    _require_known_format(source_version)
    try:
        if "sourceVersion" in values:
            offset = _parsed(values, source_version)
        else:
            offset = StreamOffset(
                table_id=str(values["tableId"]), version=int(values["version"]) + 1
            )
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(given) from error
    if offset.table_id != table_id:
        raise InvalidRequestError(
            f"The streaming query was reading from an unexpected Delta table (id = '{table_id}'). "
            f"It used to read from another Delta table (id = '{offset.table_id}') according to "
            "checkpoint. Please revert your change or delete your streaming query checkpoint to "
            "restart from scratch.",
            code=ErrorCode.DIFFERENT_TABLE_READ_BY_STREAM,
            path=root_uri,
        )
    return offset


def _object(given: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    try:
        values = json.loads(given)
    except ValueError as error:
        raise _malformed(given) from error
    if not isinstance(values, dict):
        raise _malformed(given)
    return values


def _require_known_format(source_version: int) -> None:
    if source_version > _WITH_BARRIER:
        raise InvalidRequestError(
            f"Unsupported format of the offsets in this checkpoint. Expected version "
            f"{_WITH_BARRIER} at most, found {source_version}. Please upgrade.",
            code=ErrorCode.INVALID_FORMAT_FROM_SOURCE_VERSION,
            version=source_version,
        )
    if source_version not in {_PLAIN, _WITH_BARRIER}:
        raise InvalidRequestError(
            f"sourceVersion({source_version}) is invalid in an offset of this checkpoint. Begin "
            "with a fresh checkpoint directory.",
            code=ErrorCode.INVALID_SOURCE_VERSION,
            version=source_version,
        )


def _parsed(values: Mapping[str, Any], source_version: int) -> StreamOffset:
    index = int(values["index"])
    began = values.get(_BEGAN)
    return StreamOffset(
        table_id=str(values["reservoirId"]),
        version=int(values["reservoirVersion"]),
        index=BEFORE_FIRST if (source_version, index) == (_PLAIN, _BEFORE_FIRST_TEXT) else index,
        is_initial=bool(values["isStartingVersion"]),
        began_at=None if began is None else int(began),
    )


def _malformed(given: object) -> InvalidRequestError:
    return InvalidRequestError(
        f"The stored source offset format is invalid: {given}. Restore the checkpoint, or begin "
        "with a fresh checkpoint directory.",
        code=ErrorCode.INVALID_SOURCE_OFFSET_FORMAT,
    )
