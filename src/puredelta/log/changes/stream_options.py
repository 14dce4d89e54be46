"""The options of a reader that say what a stream delivers, and how much at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.changes.schema_log import ALWAYS, OPTIONS
from puredelta.log.changes.stream import (
    ChangeStream,
    RowStream,
    Streamed,
    StreamRules,
    StreamSettings,
)
from puredelta.log.changes.stream_offsets import ReadLimits, StreamStart
from puredelta.log.changes.stream_schema import StreamedTable

_SIZE = re.compile(r"\s*([0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)
_UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_UNITS |= {f"{unit}b": power for unit, power in _UNITS.items() if unit not in {"", "b"}}
_NAME = re.compile(r"[^/\\\x00-\x1f]+")
_CHANGES = ("readChangeFeed", "readChangeData")
_TRACKING = ("schemaTrackingLocation", "schemaLocation")

Option = Callable[[str], str | None]
"""Gives the text of an option by name, whatever its case; None if it was not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingOptions:
    """Where a stream keeps its log of schemas, and which changes it may follow."""

    location: str
    source_id: str | None = None
    """Tells two streams over one table in one query apart."""
    allowed: Mapping[str, str] = field(default_factory=dict)

    def directory(self, table_id: str) -> str:
        """Return the directory of the log for a table.

        >>> TrackingOptions(location="/c/", source_id="b").directory("7")
        '/c/_schema_log_7_b'
        """
        suffix = "" if self.source_id is None else f"_{self.source_id}"
        return f"{self.location.rstrip('/')}/_schema_log_{table_id}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The values of a stream's options."""

    settings: StreamSettings
    rules: StreamRules
    limits: ReadLimits
    reads_changes: bool
    tracking: TrackingOptions | None = None
    """None: no log of schemas is kept, and changes of columns end the stream."""

    @classmethod
    def parse(cls, option: Option, millis: Callable[[str], int]) -> StreamOptions:
        """Read the options of a stream; ``millis`` reads ``startingTimestamp``."""
        _require_known(option)
        ignores_all = read_flag(option, "ignoreFileDeletion")
        fails_on_data_loss = read_flag(option, "failOnDataLoss", default=True)
        return cls(
            settings=StreamSettings(
                start=StreamStart.parse(
                    option("startingVersion"), option("startingTimestamp"), millis
                ),
                exclude=_pattern(option, "excludeRegex"),
                fails_on_data_loss=fails_on_data_loss,
            ),
            rules=StreamRules(
                ignore_deletes=read_flag(option, "ignoreDeletes") or ignores_all,
                ignore_changes=read_flag(option, "ignoreChanges") or ignores_all,
                skip_change_commits=read_flag(option, "skipChangeCommits"),
            ),
            limits=ReadLimits.of_options(
                _count(option, "maxFilesPerTrigger"), _size(option, "maxBytesPerTrigger")
            ),
            reads_changes=any(read_flag(option, name) for name in _CHANGES),
            tracking=_tracking(option, fails_on_data_loss=fails_on_data_loss),
        )

    def require_untracked(self) -> None:
        """Refuse a log of schemas, which only the native streams of classic sessions keep.

        Raises:
            UnsupportedError: the options ask for one.
        """
        if self.tracking is not None:
            raise UnsupportedError(
                Message.OPERATION_NOT_ALLOWED_STREAM_TRACKING, tracking=_TRACKING[0]
            )

    def streamed(self, table: StreamedTable) -> Streamed:
        """Return what the options ask for of a table."""
        if self.reads_changes:
            return ChangeStream(table=table)
        return RowStream(table=table, rules=self.rules)


def _require_known(option: Option) -> None:
    for name in ("versionAsOf", "timestampAsOf"):
        if option(name) is not None:
            raise InvalidRequestError(Message.UNSUPPORTED_TIME_TRAVEL_VIEWS_STREAM, name=name)
    if read_flag(option, "withEventTimeOrder"):
        raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_STREAM_OPTION)


def _tracking(option: Option, *, fails_on_data_loss: bool) -> TrackingOptions | None:
    location = next((text for name in _TRACKING if (text := option(name)) is not None), None)
    if location is None:
        return None
    if not location.strip():
        raise illegal_option(
            _TRACKING[0], location, "must be a location under that of the checkpoint"
        )
    if not fails_on_data_loss:
        raise illegal_option(
            "failOnDataLoss",
            "false",
            f"{_TRACKING[0]} cannot tolerate missing commit files, which may change the schema",
        )
    allowed = {name: text.strip().lower() for name in OPTIONS if (text := option(name)) is not None}
    for name, text in allowed.items():
        if text != ALWAYS and not text.isdecimal():
            raise illegal_option(name, text, f"must be '{ALWAYS}' or the version of a change")
    source_id = option("streamingSourceTrackingId")
    if source_id is not None and not _NAME.fullmatch(source_id):
        raise illegal_option(
            "streamingSourceTrackingId", source_id, "must be a name without a slash"
        )
    return TrackingOptions(location=location, source_id=source_id, allowed=allowed)


def illegal_option(name: str, value: str, explanation: str) -> InvalidRequestError:
    """Return the error for the value of an option of a reader."""
    return InvalidRequestError(
        Message.INVALID_WRITE_OPTION_STREAM, explanation=explanation, option=name, value=value
    )


def read_flag(option: Option, name: str, *, default: bool = False) -> bool:
    """Return the value of an option that is true or false.

    Raises:
        InvalidRequestError: it is neither (DELTA_ILLEGAL_OPTION).
    """
    text = option(name)
    if text is None:
        return default
    if text.lower() not in {"true", "false"}:
        raise illegal_option(name, text, "must be 'true' or 'false'")
    return text.lower() == "true"


def _count(option: Option, name: str) -> int | None:
    text = option(name)
    if text is None:
        return None
    if not text.strip().isdecimal() or not 0 < int(text) < 1 << 31:
        raise illegal_option(name, text, "must be a positive integer")
    return int(text)


def _size(option: Option, name: str) -> int | None:
    text = option(name)
    if text is None:
        return None
    found = _SIZE.fullmatch(text)
    power = None if found is None else _UNITS.get(found[2].lower())
    size = 0 if found is None or power is None else int(found[1]) << power
    if not 0 < size < 1 << 63:
        raise illegal_option(name, text, "must be a size configuration such as '10g'")
    return size


def _pattern(option: Option, name: str) -> re.Pattern[str] | None:
    text = option(name)
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise illegal_option(name, text, f"must be a regular expression ({error})") from error
