"""A stream's log of schemas in storage: files 0, 1, 2, ..., of which the last one counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError
from puredelta.log.tracking.tracked_schema import TrackedSchema, parse_tracked
from puredelta.store.base import PutOutcome, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLog:
    """The log as it was when it was last read or written; one query writes it."""

    store: Store
    """Its root is the directory of the log."""
    number: int = -1
    """That of the last entry."""
    current: TrackedSchema | None = None
    """The last entry."""

    @classmethod
    def read(cls, store: Store, table_id: str) -> SchemaLog:
        """Read the last entry.

        Raises:
            CorruptTableError: it cannot be read (see `parse_tracked`).
            InvalidRequestError: it is that of another table
                (DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID).
        """
        names = (file.name for file in store.list_from("", ""))
        numbers = (int(name) for name in names if name.isascii() and name.isdecimal())
        number = max(numbers, default=-1)
        if number < 0:
            return cls(store=store)
        current = parse_tracked(store.read(str(number)), store.root_uri)
        if current.table_id != table_id:
            raise InvalidRequestError(
                f"Detected incompatible Delta table id when trying to read Delta stream. "
                f"Persisted table id: {current.table_id}, Table id: {table_id}. The schema log at "
                f"'{store.root_uri}' might have been reused. Please pick a new schema location.",
                code=ErrorCode.STREAMING_SCHEMA_LOG_INCOMPATIBLE_TABLE_ID,
                location=store.root_uri,
            )
        return cls(store=store, number=number, current=current)

    def previous(self) -> TrackedSchema | None:
        """Return the entry that was in force before the current one; None if there was none.

        Raises:
            CorruptTableError: it cannot be read, or is gone.
        """
        number = self._previous_number
        if number < 0:
            return None
        try:
            return parse_tracked(self.store.read(str(number)), self.store.root_uri)
        except FileNotFoundError as error:
            raise CorruptTableError(
                f"Incomplete log file in the Delta streaming source schema log at "
                f"'{self.store.root_uri}': entry {number} is gone, which says what changed. "
                "Please pick a new schema location.",
                code=ErrorCode.STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED,
                location=self.store.root_uri,
            ) from error

    def with_entry(self, entry: TrackedSchema) -> SchemaLog:
        """Write another entry, and return the log with it; an equal one is not written again.

        Raises:
            InvalidRequestError: somebody else has written it
                (DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT).
        """
        if entry == self.current:
            return self
        number = self.number + 1
        outcome = self.store.put_if_absent(str(number), entry.text().encode())
        if outcome is PutOutcome.ALREADY_EXISTS:
            raise location_conflict(self.store.root_uri)
        return replace(self, number=number, current=entry)

    def with_replaced(self, entry: TrackedSchema) -> SchemaLog:
        """Write an entry in place of the current one: that before it stays the one before.

        Errors as `with_entry`.
        """
        if self.current is None:
            return self.with_entry(entry)
        return self.with_entry(replace(entry, previous=self._previous_number))

    @property
    def _previous_number(self) -> int:
        current = self.current
        known = None if current is None else current.previous
        return self.number - 1 if known is None else known


def location_conflict(location: str) -> InvalidRequestError:
    """Say that two streams have one log of schemas."""
    return InvalidRequestError(
        f"Detected conflicting schema location '{location}'. Another stream may be reusing the "
        "same schema location, which is not allowed. Please provide a new unique "
        "`schemaTrackingLocation` path or `streamingSourceTrackingId` as a reader option for one "
        "of the streams from this table.",
        code=ErrorCode.STREAMING_SCHEMA_LOCATION_CONFLICT,
        location=location,
    )
