"""Why a stream with a log of schemas ends, in delta-spark's words."""

from __future__ import annotations

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.tracking.tracked_schema import TrackedSchema
from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.schema.schema_json import simple_string


def has_changed(location: str, entry: TrackedSchema) -> InvalidRequestError:
    """Say that a change is written down, and that the query has to be restarted."""
    properties = ", ".join(f"{k}:{v}" for k, v in sorted((entry.configuration or {}).items()))
    protocol = "" if entry.protocol is None else encode_action(entry.protocol)
    return InvalidRequestError(
        "The schema, table configuration or protocol of your Delta table has changed during "
        f"streaming, at version {entry.version}. The schema or metadata tracking log at "
        f"'{location}' has been updated. Please restart the stream with a new DataFrame to "
        "continue processing using the updated metadata. Updated schema: "
        f"{simple_string(entry.schema)}. Updated table configurations: {properties}. Updated "
        f"table protocol: {protocol}.",
        code=ErrorCode.STREAMING_METADATA_EVOLUTION,
        version=entry.version,
        location=location,
    )


def made_before(location: str, read: Snapshot, entry: TrackedSchema) -> InvalidRequestError:
    """Say that a frame has other columns than its stream is to be read in by now."""
    return InvalidRequestError(
        "The streaming query's schema does not match the current table schema. Query schema (from "
        f"analysis): {simple_string(read.config.schema)}. Current table schema: "
        f"{simple_string(entry.schema)}, as the schema log at '{location}' has it since version "
        f"{entry.version}. Please create a new streaming DataFrame to pick up the current schema.",
        code=ErrorCode.STREAMING_SCHEMA_MISMATCH_ON_RESTART,
        version=entry.version,
        location=location,
    )


def other_source(location: str, here: str, known: str) -> InvalidRequestError:
    """Say that the log is that of another stream."""
    return InvalidRequestError(
        f"Detected conflicting schema location '{location}': the Delta source metadata path used "
        f"for execution '{here}' is different from the one persisted for previous processing "
        f"'{known}'. Please check if the schema location has been reused across different "
        "streaming sources. Pick a new `schemaTrackingLocation` or use `streamingSourceTrackingId` "
        "to distinguish between streaming sources.",
        code=ErrorCode.STREAMING_SCHEMA_LOCATION_CONFLICT,
        location=location,
    )


def no_common_state(location: str, first: int, last: int) -> InvalidRequestError:
    """Say that rows of a batch cannot be read in one schema."""
    return InvalidRequestError(
        f"We could not initialize the Delta streaming source schema log at '{location}' because "
        "we detected an incompatible schema or protocol change while serving a streaming batch "
        f"from table version {first} to {last}. Begin with a fresh checkpoint directory.",
        code=ErrorCode.STREAMING_SCHEMA_LOG_INIT_FAILED,
        location=location,
    )
